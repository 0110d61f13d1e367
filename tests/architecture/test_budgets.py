"""The budgets of every Python file, tests included. There is no list of exceptions."""

from __future__ import annotations

import ast

from tests.architecture.sources import ROOT, parse, python_files

LINES_OF_A_FILE = 600
LINES_OF_A_FUNCTION = 60


def test_no_file_is_longer_than_its_budget() -> None:
    """A file that fits in one reading is read."""
    lengths = {str(file.relative_to(ROOT)): len(file.read_text("utf-8").splitlines()) for file in python_files()}
    assert {file: lines for file, lines in lengths.items() if lines > LINES_OF_A_FILE} == {}


def test_no_function_is_longer_than_its_budget() -> None:
    """A function that fits on a screen does one thing."""
    long = {}
    for file in python_files():
        for node in ast.walk(parse(file)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > LINES_OF_A_FUNCTION:
                    long[f"{file.relative_to(ROOT)}:{node.lineno} {node.name}"] = lines
    assert long == {}
