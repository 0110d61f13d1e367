"""The page of found faults is what the stored results give. Runs no package and needs no network."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.bundled import load_bundled
from tests.clients.found.packages import NOT_JUDGED, PACKAGES
from tests.clients.found.page import PAGE, read_results, write_page_text

_HERE = Path(__file__).parent
_LONGEST = 16


def test_the_page_is_what_the_results_give() -> None:
    """Write it again with `python -m tests.clients.found`."""
    assert write_page_text() == PAGE.read_text("utf-8")


def test_each_result_is_of_the_package_and_the_scenario_that_are_named() -> None:
    """A version or a scenario that changed here was not tried yet."""
    named = {package.name: (package.version, package.scenario_id) for package in PACKAGES}
    assert {name: (row["version"], row["scenario"]) for name, row in read_results().items()} == named
    assert [id_ for _, id_ in named.values() if load_bundled(id_).level == "info"] == []


def test_enough_packages_were_tried_and_have_a_fault() -> None:
    """Fewer are no proof of worth."""
    assert len(PACKAGES) + len(NOT_JUDGED) >= 30
    assert sum("check" in row for row in read_results().values()) >= 25


def test_each_adapter_is_short_and_each_package_has_one() -> None:
    """A long adapter has faults of its own."""
    tree = ast.parse((_HERE / "adapters.py").read_text("utf-8"))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    lines = {node.name: (node.end_lineno or 0) - node.lineno + 1 for node in functions}
    assert {name: count for name, count in lines.items() if count > _LONGEST} == {}
    names = {f"_{package.name.replace('-', '_')}" for package in PACKAGES if package.registry == "PyPI"}
    assert {name for name in lines if name != "_give"} == names
    in_node = set(re.findall(r'^  "([^"]+)": ', (_HERE / "adapters.mjs").read_text("utf-8"), re.MULTILINE))
    assert in_node == {package.name for package in PACKAGES if package.registry == "npm"}
