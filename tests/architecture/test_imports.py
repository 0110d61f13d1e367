"""The arrows of the house: one table of the allowed imports, and one of where each third-party package lives."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from filecmp import dircmp
from graphlib import CycleError, TopologicalSorter

import pytest

import pytest_agentproc
from tests.architecture.sources import (
    PRODUCT,
    ROOT,
    Import,
    find_package,
    find_product_files,
    find_python_files,
    list_imports,
    parse_file,
)

GROUND = {
    "errors",
    "events",
    "files",
    "foreign",
    "interrupts",
    "machine",
    "originals",
    "places",
    "processes",
    "procfs",
    "terminal",
    "vocabulary",
}
LOWER = {"clock", "record", "scenario", "supervisor", "tree"}
MIDDLE = {"harness", "plays", "subjects", "verdict"}

MAY_IMPORT: dict[str, set[str]] = {
    "pytest_agentproc": set(),
    "__main__": {"cli"},
    "corpus": set(),
    "errors": set(),
    "events": set(),
    "files": set(),
    "foreign": set(),
    "interrupts": set(),
    "machine": {"interrupts", "originals", "procfs"},
    "originals": set(),
    "places": {"files"},
    "processes": {"machine", "procfs"},
    "procfs": set(),
    "terminal": set(),
    "vocabulary": {"errors", "events"},
    "hookspecs": {"defects", "record", "vocabulary"},
    "tree": GROUND,
    "clock": GROUND | {"fake_agents"},
    "record": GROUND,
    "scenario": GROUND | {"fake_agents"},
    "supervisor": GROUND | {"clock", "tree"},
    "defects": GROUND | {"supervisor"},
    "subjects": GROUND | LOWER,
    "plays": {"errors", "events", "record", "scenario", "vocabulary"},
    "harness": GROUND | LOWER | {"fake_agents", "plays"},
    "verdict": GROUND | LOWER | {"corpus", "plays"},
    "search": GROUND | LOWER | MIDDLE,
    "reference": GROUND | {"corpus", "defects", "scenario", "verdict"},
    "plugin": GROUND | LOWER | MIDDLE | {"corpus", "defects", "hookspecs", "search"},
    "capture": GROUND | LOWER | {"fake_agents", "harness", "subjects"},
    "cli": GROUND | LOWER | MIDDLE | {"pytest_agentproc", "capture", "corpus", "defects", "reference", "search"},
    "fake_agents": set(),
}

HEADINGS = [
    *("Entry points", "Tools built on the harness", "Running and judging", "Domain", "Foundations"),
    "Beside this package",
]

HOMES: dict[str, set[str]] = {
    "_pytest": {"plugin"},  # the clock by which pytest counts its own durations
    "anyio": {"clock", "harness", "subjects", "supervisor"},  # a session's caller waits for turns on either loop
    "argcomplete": {"cli"},
    "argparse": {"cli"},
    "detect_secrets": {"capture"},
    "freezegun": {"clock"},
    "hypothesis": {"search"},
    "psutil": {"processes"},
    "outcome": {"clock"},  # comes with trio, and speaks for it
    "pytest": {"hookspecs", "plugin"},  # hooks speak of its config
    "trio": {"clock"},
    "yaml": {"scenario"},
}


def _find_imported_package(loaded: Import) -> str | None:
    """Name the row that an import of our own code points at; None for foreign code."""
    if loaded.package not in PRODUCT:
        return None
    parts = loaded.module.split(".")
    return parts[1] if loaded.package == "pytest_agentproc" and len(parts) > 1 else parts[0]


def test_the_map_names_every_part_once_and_above_all_that_it_imports() -> None:
    """The root docstring is where a reader begins: a part is understood by what stands below it, and nothing else."""
    doc = pytest_agentproc.__doc__ or ""
    assert re.findall(r"^([A-Z].*)$", doc[doc.index("\nEntry") :], re.MULTILINE)[:6] == HEADINGS
    parts = re.findall(r"^    (\w+)/?  ", doc, re.MULTILINE)
    assert sorted(parts) == sorted((MAY_IMPORT.keys() | {"docs", "scenarios", "tests"}) - {"pytest_agentproc"})
    order = {part: place for place, part in enumerate(parts)}
    own = MAY_IMPORT.keys() - {"pytest_agentproc"}
    wrong = [
        f"{part} imports {row}, which stands above it"
        for part in parts
        for row in own & MAY_IMPORT.get(part, set())
        if order[row] < order[part]
    ]
    assert wrong == []


def test_every_part_of_the_house_has_its_row() -> None:
    """A subpackage without a row would import whatever it likes; a row without one would be a plan, not a fact."""
    assert {find_package(file) for file in find_product_files()} == set(MAY_IMPORT)


def test_an_install_adds_one_top_level_name() -> None:
    """`fake_agents` is a name that a user's own project may have: it is installed inside the package."""
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]["targets"]["wheel"]
    names = {wheel["sources"].get(folder, folder).partition("/")[0] for folder in wheel["only-include"]}
    assert names == {"pytest_agentproc"}
    installed, first = ROOT / "pytest_agentproc/fake_agents", ROOT / "fake_agents"
    assert not dircmp(first, installed).diff_files  # the same folder, or its copy in a source archive
    assert installed.is_symlink() or not ROOT.joinpath(".git").exists()
    assert [
        loaded.where for file in find_python_files() for loaded in list_imports(file) if loaded.package == "fake_agents"
    ] == []


def test_the_table_has_no_cycle() -> None:
    """Layers are layers only as long as no lower one knows a higher one."""
    assert list(TopologicalSorter(MAY_IMPORT).static_order())


def test_parts_import_only_what_their_row_allows() -> None:
    """Siblings that know each other can no longer be read, replaced or tested alone."""
    wrong = [
        f"{loaded.where}: {row} imports {loaded.module}"
        for file in find_product_files()
        for row in [find_package(file)]
        for loaded in list_imports(file)
        for target in [_find_imported_package(loaded)]
        if target is not None and target not in {row, *MAY_IMPORT[row]}
    ]
    assert wrong == []


def test_no_file_imports_itself_through_others() -> None:
    """A reader can begin at the bottom; an import that stands in a function, or for type checkers only, counts too."""
    files = {file: {loaded.file for loaded in list_imports(file)} - {file, None} for file in find_product_files()}
    circle: list[str] = []
    try:
        TopologicalSorter(files).prepare()
    except CycleError as error:
        circle = [str(file.relative_to(ROOT)) for file in error.args[1]]
    assert circle == []


def test_parts_meet_at_their_public_names_only() -> None:
    """A file `_noun.py` is free to change as long as no code outside its subpackage names it."""
    wrong = [
        f"{loaded.where}: {loaded.module} is private"
        for file in find_product_files()
        for loaded in list_imports(file)
        if _find_imported_package(loaded) not in (None, find_package(file))
        and any(part.startswith("_") for part in loaded.module.split(".")[1:])
    ]
    assert wrong == []


def test_files_inside_a_subpackage_are_private_nouns() -> None:
    """The file's name says whether it may be named from outside; `__init__` is the one public door."""
    house = ROOT / "pytest_agentproc"
    rooms = {file for file in find_product_files() if house in file.parents and file.parent != house}
    assert [str(file.relative_to(ROOT)) for file in sorted(rooms) if not file.name.startswith("_")] == []


def test_third_party_packages_stay_at_home() -> None:
    """A package that one part imports can be replaced in one place, and loads only if it is needed."""
    wrong = [
        f"{loaded.where}: {find_package(file)} imports {loaded.package}"
        for file in find_product_files()
        for loaded in list_imports(file)
        if loaded.package not in PRODUCT
        and (loaded.package in HOMES or loaded.package not in sys.stdlib_module_names)
        and find_package(file) not in HOMES.get(loaded.package, ())
    ]
    assert wrong == []


@pytest.mark.parametrize(
    "package", ["argcomplete", "detect_secrets", "freezegun", "hypothesis", "psutil", "trio", "yaml"]
)
def test_a_package_that_could_be_replaced_has_one_file(package: str) -> None:
    """Its replacement, or a look at our use of it, concerns one file; anyio and pytest are the code's own language."""
    files = {file for file in find_product_files() for loaded in list_imports(file) if loaded.package == package}
    assert len(files) <= 1, sorted(str(file.relative_to(ROOT)) for file in files)


def test_init_files_only_reexport() -> None:
    """A reader who opens `__init__.py` sees the public names and nothing to understand."""
    allowed = (ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign, ast.If, ast.Expr)
    wrong = [
        f"{file.relative_to(ROOT)}:{node.lineno}: not an import, a docstring or __all__"
        for file in find_product_files()
        if file.name == "__init__.py" and file.relative_to(ROOT).parts[0] == "pytest_agentproc"
        for node in parse_file(file).body
        if not isinstance(node, allowed) and getattr(node, "name", "") not in ("__getattr__", "__dir__")
    ]
    assert wrong == []


def test_private_files_list_no_names() -> None:
    """A name without an underscore is for the other files; a second list of them only grows stale."""
    read_by_star = ROOT / "pytest_agentproc/plugin/_fixtures.py"
    files = [file for file in find_product_files() if re.match(r"_[a-z]", file.name) and file != read_by_star]
    assert [str(file.relative_to(ROOT)) for file in files if "\n__all__ = " in file.read_text("utf-8")] == []


_OWN_PROGRAMS = {
    "pytest_agentproc/harness/_decoy.py",
    "pytest_agentproc/harness/fakes/_broker.py",
    "pytest_agentproc/tree/_keeper_server.py",
}
_MOCKED_NAMES = {
    "time": {"monotonic", "monotonic_ns", "sleep", "time", "time_ns"},
    "subprocess": {"Popen"},
    "shutil": {"which"},
}
_MOCKED_CALLS = {"open"} | {f"{module}.{name}" for module, names in _MOCKED_NAMES.items() for name in names}


def test_what_tests_mock_comes_from_before_the_test() -> None:
    """A user's test may put mocks in their place, and the kit's own waits and starts must not meet these."""
    wrong = [
        f"{file.relative_to(ROOT)}:{node.lineno}: {ast.unparse(node)}"
        for file in find_product_files()
        if find_package(file) not in {"cli", "fake_agents", "originals"}
        and str(file.relative_to(ROOT)) not in _OWN_PROGRAMS
        for node in ast.walk(parse_file(file))
        if (
            isinstance(node, ast.ImportFrom)
            and any(alias.name in _MOCKED_NAMES.get(node.module or "", ()) for alias in node.names)
        )
        or (isinstance(node, ast.Call) and ast.unparse(node.func) in _MOCKED_CALLS)
    ]
    assert wrong == []
