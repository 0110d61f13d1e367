"""No test waits in real time: a test sleeps only where the virtual clock makes a sleep free."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tests.architecture.sources import ROOT, find_python_files, list_imports, parse_file

if TYPE_CHECKING:
    from pathlib import Path

_ASYNC = frozenset({"anyio", "asyncio", "trio"})


def _list_sleeps(file: Path) -> list[tuple[str, int]]:
    """List a file's sleeps as (library, line), under whatever name they are called."""
    found = []
    for node in ast.walk(parse_file(file)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.startswith("sleep"):
            found.append((getattr(node.func.value, "id", "?"), node.lineno))
        if isinstance(node, ast.ImportFrom) and any(alias.name.startswith("sleep") for alias in node.names):
            found.append((node.module or "?", node.lineno))
    return found


def _is_on_the_virtual_clock(file: Path) -> bool:
    """Say whether a file works with the virtual clock: by fixture, marker, import, or a helper of ours."""
    used = [loaded.module for loaded in list_imports(file)]
    helpers = [ROOT.joinpath(*module.split(".")).with_suffix(".py") for module in used if module.startswith("tests.")]
    return (
        any(node.arg == "virtual_clock" for node in ast.walk(parse_file(file)) if isinstance(node, ast.arg))
        or any(node.attr == "virtual_time" for node in ast.walk(parse_file(file)) if isinstance(node, ast.Attribute))
        or any(module.startswith("pytest_agentproc.clock") for module in used)
        or any(_is_on_the_virtual_clock(helper) for helper in helpers if helper.exists())
    )


def test_tests_never_sleep_in_real_time() -> None:
    """A real sleep is slow where it is long enough and flaky where it is not."""
    wrong = [
        f"{file.relative_to(ROOT)}:{line}: {library}.sleep without the virtual clock"
        for file in find_python_files()
        if file.relative_to(ROOT).parts[0] == "tests" and "examples" not in file.parts  # those are what is judged
        for library, line in _list_sleeps(file)
        if library not in _ASYNC or not _is_on_the_virtual_clock(file)
    ]
    assert wrong == []
