"""The behaviour of each client on each fault, as its tests say and show; makes FINDINGS.md of them. Runs no client.

A test carries its statement: `@finding("claude-agent-sdk, query()", "lingers after its result", "waits for ever")`.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.clients.packages import ALONE, NPM, PYPI

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["PAGE", "Finding", "mark_finding", "write_page_text"]

_HERE = Path(__file__).parent
PAGE = _HERE / "FINDINGS.md"
_HEAD = """# What real clients do when the agent misbehaves

Each line is shown by the test that it names, with the client unmodified and a fake agent. Times of Python clients are
exact instants of virtual time, those of Node clients are real. Made by `python -m tests.clients.findings`.
"""


@dataclass(frozen=True)
class Finding:
    """One statement.

    Args:
        client: the client that behaves so: the package, and its entry point if it has several.
        situation: what the agent does.
        does: what the client does then, in one sentence.
        test: the test that shows it.
    """

    client: str
    situation: str
    does: str
    test: str


def mark_finding(client: str, situation: str, does: str) -> Callable[[Any], Any]:
    """Say what the decorated test shows; the arguments must be literals.

    Args:
        client: a package's name as in `packages`, `, ` and a door of it if it has several.
        situation: what the agent does.
        does: what the client does then.
    """

    def keep(test: Any) -> Any:
        test.finding = (client, situation, does)
        return test

    return keep


def _iterate_findings() -> Iterator[Finding]:
    for path in sorted(_HERE.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                for mark in node.decorator_list:
                    if isinstance(mark, ast.Call) and getattr(mark.func, "id", "") == "mark_finding":
                        client, situation, does = (ast.literal_eval(value) for value in mark.args)
                        yield Finding(client, situation, does, f"{path.relative_to(_HERE)}::{node.name}")


def write_page_text() -> str:
    """Write the page: the versions, and a table for each client."""
    versions = [f"{name} {version} (PyPI)" for name, version in (PYPI | ALONE).items()]
    versions += [f"{package} {version} (npm)" for packages in NPM.values() for package, version in packages.items()]
    clients: dict[str, list[Finding]] = {}
    for finding in _iterate_findings():
        clients.setdefault(finding.client, []).append(finding)
    parts = [_HEAD, "Versions: " + "; ".join(versions) + ".\n"]
    for client, found in sorted(clients.items()):
        rows = [f"| {entry.situation} | {entry.does} | `{entry.test}` |" for entry in found]
        parts.append("\n".join([f"## {client}\n", "| the agent | the client | shown by |", "|---|---|---|", *rows, ""]))
    return "\n".join(parts)


def main() -> None:
    """Write the page."""
    PAGE.write_text(write_page_text(), "utf-8")


if __name__ == "__main__":
    main()
