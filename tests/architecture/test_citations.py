"""What the project cites, its reader can open: a file of the repository, or a public address."""

from __future__ import annotations

import ast
import builtins
import re
import subprocess
import sys
from functools import cache
from typing import TYPE_CHECKING

from tests.architecture.sources import ROOT, find_product_files, find_python_files, parse_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_NOTES = "|".join(
    (
        "seeds" + "/0",
        "DE" + "SIGN",
        "PROTO" + "COLS",
        "CLO" + r"CK\.md",
        "UP" + "STREAM",
        "BUG-" + "REPORTS",
        "CONFORM" + "ANCE",
    )
)
"""Notes of the authors that do not ship. In pieces, so that this file does not cite them."""
_FOLDERS = r"(?:docs|tests|scenarios|pytest_agentproc|fake_agents|\.ci)"
_PATH = re.compile(rf"(?<![\w./~-]){_FOLDERS}/[\w./-]+\.(?:md|py|yaml|jsonl|json|mjs|txt|toml|c|h)\b")
_BUILT = "docs/reference/"
"""Sphinx makes these pages of the tables."""
_PAGES = ("*.md", "docs/explanation/*.md", "docs/glossary.md", "scenarios/README.md", "tests/clients/*.md")
_FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_SOURCE = re.compile(r"^source: (\S+)$", re.MULTILINE)
_ADDRESS = "https://"
_NAME = re.compile(r"(?<!`)`([A-Za-z_][\w.]*)(?:\(\))?`(?!`)")
_WORD = re.compile(r"[A-Za-z_]\w*")
_FOREIGN_NAMES = frozenset(
    {
        *("telegram_token", "basic_auth", "private_key"),  # plugins of detect-secrets that nobody asks
        *("API_KEY_PROD", "TOKEN2", "user_password", "agentproc_NAME"),  # examples of what a user may write
        *("Cancelled", "Pipe", "create_time", "gi", "git...", "pyvenv.cfg", "shim_waits.c"),
    }
)
"""Names in docstrings and comments that no code of the project has, and that are right."""


@cache
def _list_repository_files() -> tuple[Path, ...]:
    """List the files of the repository; in a source archive, all files in folders that are not hidden."""
    asked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if asked.returncode == 0:
        return tuple(file for name in asked.stdout.split("\0") if name and (file := ROOT / name).is_file())
    return tuple(file for file in ROOT.rglob("*") if file.is_file() and file.relative_to(ROOT).parts[0][0] != ".")


def _read_repository_texts() -> Iterator[tuple[Path, str]]:
    """Give each file that is text; a byte NUL is in pictures only, and their bytes say anything by chance."""
    for file in _list_repository_files():
        content = file.read_bytes()
        if b"\0" not in content:
            yield file, content.decode(errors="replace")


def _read_prose(file: Path) -> str:
    """Give the docstrings and comments of a Python file."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docs = [ast.get_docstring(node) or "" for node in ast.walk(parse_file(file)) if isinstance(node, kinds)]
    return "\n".join([*docs, *re.findall(r"#.*", file.read_text("utf-8"))])


def _list_code_words(file: Path) -> set[str]:
    """Give the words of a Python file that are no docstring and no comment: names, and words of other strings."""
    tree = ast.parse(file.read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            node.value = ast.Constant(None)
    return set(_WORD.findall(ast.unparse(tree)))


_DECIMAL = re.compile(r"\d ?[kKMG]B\b")
_DATA = ("tests/data/", "tests/unit/malformed/", "tests/unit/pasted/")
"""Texts of other programs, and of users who make a mistake."""


def test_sizes_have_one_kind_of_unit() -> None:
    """A limit of 3 million bytes beside one of 3 MiB makes a reader ask which of them is meant."""
    texts = {str(file.relative_to(ROOT)): text for file, text in _read_repository_texts()}
    of_the_kit = {name: text for name, text in texts.items() if not name.startswith(_DATA)}
    assert {name: found for name, text in of_the_kit.items() if (found := _DECIMAL.findall(text))} == {}


def test_no_text_cites_a_document_that_does_not_ship() -> None:
    """A reader who follows such a name finds nothing."""
    found = []
    for file, text in _read_repository_texts():
        found += [f"{file.relative_to(ROOT)}: {name}" for name in re.findall(rf"\b(?:{_NOTES})", text)]
    assert found == []


def test_each_path_in_a_docstring_or_a_comment_exists() -> None:
    """A file that was moved or deleted leaves no name behind."""
    texts = {file: _read_prose(file) for file in find_python_files()}
    for pattern in _PAGES:
        texts |= {page: _FENCE.sub("", page.read_text("utf-8")) for page in ROOT.glob(pattern)}
    missing = [
        f"{file.relative_to(ROOT)}: {path}"
        for file, text in texts.items()
        for path in _PATH.findall(text)
        if not path.startswith(_BUILT) and not (ROOT / path).exists()
    ]
    assert missing == []


def test_each_name_in_a_docstring_or_a_comment_exists() -> None:
    """A name that was changed in the code is dead in the prose; a reader searches for it in vain."""
    known = {*dir(builtins), *sys.stdlib_module_names, *_FOREIGN_NAMES}
    for file in _list_repository_files():
        if file.suffix == ".py":
            known.update(_list_code_words(file))
        elif file.suffix in (".c", ".h", ".yaml", ".toml"):
            known.update(_WORD.findall(file.read_text("utf-8")))
    dead = [
        f"{file.relative_to(ROOT)}: {name}"
        for file in find_product_files()
        for name in _NAME.findall(_read_prose(file))
        if name not in known and not known.issuperset(name.split("."))
    ]
    assert dead == []


def test_each_source_of_a_scenario_is_an_address_or_a_file() -> None:
    """A scenario says where its facts come from, and the reader can look."""
    sources = [
        (file.relative_to(ROOT), source)
        for folder in ("scenarios", "tests/mirrors")
        for file in (ROOT / folder).rglob("*.yaml")
        for source in _SOURCE.findall(file.read_text("utf-8"))
    ]
    assert sources
    assert [
        source for source in sources if not source[1].startswith(_ADDRESS) and not (ROOT / source[1]).exists()
    ] == []
