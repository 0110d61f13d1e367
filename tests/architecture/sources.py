"""The project's own source text, parsed: files and imports. Knows no rule; the tests beside it hold the rules."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = [
    "PRODUCT",
    "ROOT",
    "Import",
    "find_package",
    "find_product_files",
    "find_python_files",
    "list_imports",
    "parse_file",
]

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = ("pytest_agentproc", "fake_agents")
_BUILDS = frozenset({"build", "dist"})
_SECOND_PATH = ROOT / "pytest_agentproc/fake_agents"
"""A link to `fake_agents`, and a copy of it in a source archive: each file there has its place in the first folder."""


@dataclass(frozen=True, slots=True)
class Import:
    """One import, at any place in the file: the module that it loads (dotted, absolute), its place, and its name there.

    A name is "" where the module itself is imported.
    """

    module: str
    where: str
    name: str = ""

    @property
    def package(self) -> str:
        """The top-level package that it loads."""
        return self.module.partition(".")[0]

    @property
    def file(self) -> Path | None:
        """The product file that it loads; None for foreign code."""
        for module in (f"{self.module}.{self.name}", self.module):
            base = ROOT.joinpath(*module.split("."))
            files = (base.with_suffix(".py"), base / "__init__.py")
            found = [file.resolve() for file in files if self.package in PRODUCT and file.is_file()]
            if found:
                return found[0]
        return None


@cache
def find_python_files() -> tuple[Path, ...]:
    """Find every Python file of the project, tests included; environments, caches and builds are none."""
    files = (
        file
        for file in ROOT.rglob("*.py")
        if not _is_foreign(file.relative_to(ROOT).parts[:-1]) and _SECOND_PATH not in file.parents
    )
    return tuple(sorted(files))


def _is_foreign(folders: tuple[str, ...]) -> bool:
    return any((name.startswith(".") and name != ".ci") or name in _BUILDS for name in folders)


def find_product_files() -> list[Path]:
    """Find the Python files that users install."""
    return [file for file in find_python_files() if file.relative_to(ROOT).parts[0] in PRODUCT]


@cache
def parse_file(file: Path) -> ast.Module:
    """Read a file's syntax tree."""
    return ast.parse(file.read_text(encoding="utf-8"), filename=str(file))


def find_package(file: Path) -> str:
    """Name the row of the import table that a product file belongs to.

    That is the subpackage or the module directly under `pytest_agentproc`, `pytest_agentproc` itself for its root,
    and `fake_agents` for everything in there.
    """
    top, *rest = file.relative_to(ROOT).with_suffix("").parts
    return rest[0] if top == "pytest_agentproc" and rest != ["__init__"] else top


@cache
def list_imports(file: Path) -> tuple[Import, ...]:
    """List what a file imports: at its top, inside functions, for type checkers only, and by `import_module("...")`."""
    place = file.relative_to(ROOT)
    return tuple(
        Import(module, f"{place}:{getattr(node, 'lineno', 0)}", name)
        for node in ast.walk(parse_file(file))
        for module, name in _list_imported_modules(node, place)
    )


def _list_imported_modules(node: ast.AST, place: Path) -> list[tuple[str, str]]:
    if isinstance(node, ast.Import):
        return [(alias.name, "") for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            parents = place.parts[: len(place.parts) - node.level]
            base = ".".join([*parents, *([base] if base else [])])
        names = [alias.name for alias in node.names]
        return [(f"{base}.{name}", "") for name in names] if base in PRODUCT else [(base, name) for name in names]
    if isinstance(node, ast.Call) and _find_called_name(node) in ("import_module", "__import__") and node.args:
        name = node.args[0]
        return [(name.value, "")] if isinstance(name, ast.Constant) and isinstance(name.value, str) else []
    return []


def _find_called_name(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
