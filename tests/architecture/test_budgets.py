"""The budgets of every Python file and of its folder. There is no list of exceptions."""

from __future__ import annotations

import ast
from collections import Counter

from tests.architecture.sources import ROOT, find_python_files, parse_file
from tests.docs.reference import is_made

LINES_OF_A_FILE = 1000
LINES_OF_A_FUNCTION = 80
FILES_OF_A_FOLDER = 20


def test_no_file_is_longer_than_its_budget() -> None:
    """A subject that fills its file is not cut in two for a number."""
    lengths = {str(file.relative_to(ROOT)): len(file.read_text("utf-8").splitlines()) for file in find_python_files()}
    assert {file: lines for file, lines in lengths.items() if lines > LINES_OF_A_FILE} == {}


def test_no_function_is_longer_than_its_budget() -> None:
    """A function that fits on a screen does one thing."""
    long = {}
    for file in find_python_files():
        for node in ast.walk(parse_file(file)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > LINES_OF_A_FUNCTION:
                    long[f"{file.relative_to(ROOT)}:{node.lineno} {node.name}"] = lines
    assert long == {}


def test_no_folder_holds_more_files_than_its_budget() -> None:
    """A reader finds a file by its subject, and not in a list of a hundred names."""
    counts = Counter(str(file.relative_to(ROOT).parent) for file in find_python_files())
    assert {folder: files for folder, files in counts.items() if files > FILES_OF_A_FOLDER} == {}


def test_no_folder_of_scenarios_or_pages_holds_more_files_than_its_budget() -> None:
    """A tester opens a folder and sees at once which of its files is about the subject."""
    places = [path for name in ("scenarios", "docs") for path in (ROOT / name).rglob("*") if path.is_file()]
    shown = [file for file in places if file.suffix in (".md", ".yaml") and not is_made(file)]
    counts = Counter(str(file.relative_to(ROOT).parent) for file in shown)
    assert {folder: files for folder, files in counts.items() if files > FILES_OF_A_FOLDER} == {}
