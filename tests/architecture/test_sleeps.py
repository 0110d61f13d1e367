"""No test waits in real time: a test sleeps only where the virtual clock makes a sleep free."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tests.architecture.sources import ROOT, imports, parse, python_files

if TYPE_CHECKING:
    from pathlib import Path

_ASYNC = frozenset({"anyio", "asyncio", "trio"})


def _sleeps(file: Path) -> list[tuple[str, int]]:
    """List a file's sleeps as (library, line), under whatever name they are called."""
    found = []
    for node in ast.walk(parse(file)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.startswith("sleep"):
            found.append((getattr(node.func.value, "id", "?"), node.lineno))
        if isinstance(node, ast.ImportFrom) and any(alias.name.startswith("sleep") for alias in node.names):
            found.append((node.module or "?", node.lineno))
    return found


def _is_on_the_virtual_clock(file: Path) -> bool:
    """Say whether the file works with the virtual clock: it imports it or takes the fixture."""
    names = {node.arg for node in ast.walk(parse(file)) if isinstance(node, ast.arg)}
    return "virtual_clock" in names or any(used.module.startswith("pytest_agentproc.clock") for used in imports(file))


def test_tests_never_sleep_in_real_time() -> None:
    """A real sleep is slow where it is long enough and flaky where it is not."""
    wrong = [
        f"{file.relative_to(ROOT)}:{line}: {library}.sleep without the virtual clock"
        for file in python_files()
        if file.relative_to(ROOT).parts[0] == "tests"
        for library, line in _sleeps(file)
        if library not in _ASYNC or not _is_on_the_virtual_clock(file)
    ]
    assert wrong == []
