"""The product works without docstrings and assertions: `python -OO` drops both, and users and packagers call it so."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.architecture.sources import ROOT, find_product_files, parse_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

READERS_OF_DOCSTRINGS = {"__doc__", "getdoc", "get_docstring", "cleandoc"}
"""`pytest --fixtures` reads docstrings of fixtures itself, and shows a fixture without one, too."""


def _find_nodes(*kinds: type[ast.AST]) -> Iterator[tuple[Path, ast.AST]]:
    for file in find_product_files():
        yield from ((file, node) for node in ast.walk(parse_file(file)) if isinstance(node, kinds))


def _describe(file: Path, node: ast.AST) -> str:
    return f"{file.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}: {ast.unparse(node)}"


def test_no_text_for_users_is_read_from_a_docstring() -> None:
    """A docstring is for readers of the code. A text that the kit prints is data."""
    names = (
        (file, node, node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", ""))
        for file, node in _find_nodes(ast.Attribute, ast.Name)
    )
    read = [(file, node) for file, node, name in names if name in READERS_OF_DOCSTRINGS]
    assert [_describe(*one) for one in read if not isinstance(getattr(one[1], "ctx", None), ast.Store)] == []


def test_an_assertion_only_looks() -> None:
    """An assertion that does something, such as a call or an assignment, would not be done under `python -O`."""
    deeds = (ast.Call, ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
    found = [
        _describe(file, node)
        for file, node in _find_nodes(ast.Assert)
        for inner in ast.walk(node)
        if isinstance(inner, deeds) and not (isinstance(inner, ast.Call) and ast.unparse(inner.func) == "isinstance")
    ]
    assert found == []


def test_no_code_waits_for_a_failed_assertion() -> None:
    """Under `python -O` the assertion does not fail, and the code goes on with a wrong value."""
    handlers = ((file, getattr(node, "type", None)) for file, node in _find_nodes(ast.ExceptHandler))
    assert [_describe(file, kind) for file, kind in handlers if kind and "Assertion" in ast.unparse(kind)] == []


PRINT_ALL_TEXTS = """\
import json
from pytest_agentproc.defects import DEFECTS
from pytest_agentproc.reference import format_for_terminal, list_entries
print(json.dumps([[format_for_terminal(entry, 100) for entry in list_entries()],
    [[defect.name, defect.breaks, defect.story] for defect in DEFECTS.values()]]))
"""


@pytest.mark.slow
def test_the_reference_says_the_same_without_docstrings() -> None:
    """Each rule, limit, defect and key keeps its text, and no text is empty."""
    commands = [[sys.executable, *flags, "-c", PRINT_ALL_TEXTS] for flags in ([], ["-OO"])]
    plain, optimized = [
        json.loads(subprocess.run(words, capture_output=True, timeout=100, check=True).stdout) for words in commands
    ]
    assert optimized == plain
    assert all(text for defect in optimized[1] for text in defect)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "last_lines"),
    [
        *((["explain", word], 1000) for word in ("A1", "kill_grace", "duration-timeout", "inactive", "must", "drip")),
        (["list", "--rule", "A1"], 1000),
        (["run", "--help"], 1000),
        (["run", "lingers-and-ignores-term", "--defect", "waits-for-exit"], 1),  # the verdict, with its digest
    ],
    ids=str,
)
def test_a_command_prints_the_same_without_docstrings(words: list[str], last_lines: int) -> None:
    """PYTHONOPTIMIZE=2 is set for a whole container, and reaches every program in it."""
    plain, optimized = (
        subprocess.run(
            [sys.executable, "-m", "pytest_agentproc", *words],
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
            env={**os.environ, "PYTHONOPTIMIZE": level},
        )
        for level in ("", "2")
    )
    assert "Traceback" not in optimized.stderr
    assert optimized.returncode == plain.returncode
    assert optimized.stdout.splitlines()[-last_lines:] == plain.stdout.splitlines()[-last_lines:]
