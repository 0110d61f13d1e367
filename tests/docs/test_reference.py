"""The reference is whole: each word has an anchor, a sentence and an example that runs."""

from __future__ import annotations

import dataclasses
import re
import shlex
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from pytest_agentproc import hookspecs
from pytest_agentproc.cli._commands import MODULE_AND_PURPOSE_BY_COMMAND
from pytest_agentproc.corpus import split_agent
from pytest_agentproc.defects import DEFECT_NAMES
from pytest_agentproc.plugin import _fixtures as plugin_fixtures
from pytest_agentproc.plugin._options import _PLUGIN_OPTIONS
from pytest_agentproc.reference import (
    DANGERS,
    find_page,
    find_reason,
    find_trials,
    format_as_markdown,
    list_agents,
    list_entries,
    make_heading_anchor,
    read_bundled_scenarios,
)
from pytest_agentproc.scenario import format_schema, list_key_tables
from pytest_agentproc.subjects._program_file import _CHECKS_BY_TOML_KEY
from pytest_agentproc.verdict import VERDICT_TEXTS, JudgedCheck, JudgedScenario, Verdict
from pytest_agentproc.vocabulary import BUG_FAMILIES, LEVELS, RULES, SIGNAL_TEXTS, Outcome
from tests.architecture.sources import ROOT
from tests.docs.blocks import run_command
from tests.docs.reference import list_anchors, load_page_writer, make_pages

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

pytestmark = pytest.mark.once

OWN = sorted((ROOT / "pytest_agentproc" / "reference").glob("*.scenario.yaml"))


def test_every_word_of_the_tables_has_an_entry() -> None:
    """A new step, key, outcome, verdict, rule, level, limit, defect or bug family needs no work on a page."""
    names = {(entry.kind, entry.name) for entry in list_entries()}
    keys = {
        (table.kind, f"{table.path}: {key.name}".removeprefix(": "))
        for table in list_key_tables()
        for key in table.keys
    }
    words: dict[str, Iterable[str]] = {"rule": RULES, "outcome": Outcome, "verdict": Verdict, "level": LEVELS}
    words |= {"defect": DEFECT_NAMES, "bug family": BUG_FAMILIES, "signal": SIGNAL_TEXTS}
    assert names == keys | {(kind, str(name)) for kind, those in words.items() for name in those}


def test_a_danger_is_tried_with_each_agent_or_it_is_said_why_not() -> None:
    """A danger that one dialect alone is tried with lets a supervisor of another one pass with the fault."""
    unclear = [
        (danger.name, agent)
        for danger, trials in ((danger, find_trials(danger)) for danger in DANGERS)
        for agent in list_agents()
        if (agent in trials) == bool(find_reason(danger, agent))
    ]
    assert unclear == []
    known = {split_agent(scenario.id)[0]: scenario.covers for scenario in read_bundled_scenarios()}
    assert [file for danger in DANGERS for file in danger.files if file not in known] == []
    assert {danger.name for danger in DANGERS if not any(danger.rule in known[file] for file in danger.files)} == set()
    assert {agent for danger in DANGERS for agent in danger.reasons} <= {*list_agents(), "runs"}


def test_each_entry_has_a_sentence_an_anchor_and_an_example() -> None:
    """A reader who comes from a failure has to understand it here."""
    pages = {name: (text, list_anchors(text)) for name, text in make_pages().items()}
    for entry in list_entries():
        text, known = pages[f"{find_page(entry)}.md"]
        where = f"{entry.kind} {entry.name}"
        assert re.match(r"[A-Z`].*[a-z].*[.?!]$", entry.says, re.DOTALL), where
        assert entry.example.text or entry.example.commands, where
        assert make_heading_anchor(entry.name) in known, where
        assert format_as_markdown(entry).partition("\n")[2].strip() in text, where
        assert load_page_writer().is_made(f"{find_page(entry)}.md"), where


def test_the_site_has_the_schema(tmp_path: Path) -> None:
    """An editor reads the file of a version from the site, too."""
    connected: dict[str, Any] = {}
    builder = SimpleNamespace(format="html")
    app = SimpleNamespace(outdir=tmp_path, builder=builder, connect=connected.__setitem__)
    load_page_writer().setup(app)
    connected["build-finished"](app, None)
    assert (tmp_path / "agentproc.schema.json").read_text("utf-8") == format_schema()


def test_no_two_headings_of_a_page_have_one_anchor() -> None:
    """The second one could not be linked."""
    found = {name: list_anchors(page) for name, page in make_pages().items()}
    assert {name: those for name, those in found.items() if len(set(those)) < len(those)} == {}


def test_an_example_of_a_scenario_is_a_part_of_that_scenario() -> None:
    """Bundled scenarios run as tests, so their lines do."""
    texts = {scenario.id: scenario.text for scenario in read_bundled_scenarios()}
    own = [file.read_text("utf-8") for file in OWN]
    for entry in list_entries():
        for line in entry.example.text.splitlines() if entry.example.language == "yaml" else []:
            named = [words[2] for command in entry.example.commands if (words := shlex.split(command))]
            assert any(line.strip() in text for text in ([texts[named[0]]] if named else own)), (entry.name, line)
    runs = [shlex.split(command) for entry in list_entries() for command in entry.example.commands]
    assert [words for words in runs if words[:2] == ["agentproc", "run"] and words[2] not in texts] == []


def test_each_defect_is_shown_by_a_scenario_that_catches_it() -> None:
    """Its command turns red; tests/process/verdicts/test_defects.py runs them all."""
    catches = {scenario.id: scenario.catches for scenario in read_bundled_scenarios()}
    shown = [
        (entry.name, *shlex.split(entry.example.commands[0])[2:]) for entry in list_entries() if entry.kind == "defect"
    ]
    assert [words for words in shown if words[0] != words[-1] or words[0] not in catches[words[1]]] == []


@pytest.mark.slow
def test_the_examples_of_the_reference_itself_pass(pytester: pytest.Pytester) -> None:
    """They are for keys that no bundled scenario uses."""
    for file in OWN:
        pytester.path.joinpath(file.name).write_text(file.read_text("utf-8"), "utf-8")
    pytester.path.joinpath("greeting.txt").write_text("hello from a file\n", "utf-8")
    pytester.runpytest_subprocess("-p", "no:asyncio", *(file.name for file in OWN)).assert_outcomes(passed=len(OWN))


@pytest.mark.slow
@pytest.mark.parametrize("verdict", [*VERDICT_TEXTS])
def test_the_example_of_a_verdict_shows_it(verdict: Verdict, tmp_path: Path) -> None:
    """A kit error cannot be made on purpose: its example is the command that looks for one."""
    [entry] = [entry for entry in list_entries() if (entry.kind, entry.name) == ("verdict", verdict)]
    if entry.example.file:
        tmp_path.joinpath(entry.example.file).write_text(entry.example.text, "utf-8")
    printed = ""
    for command in entry.example.commands:
        completed = run_command(["sh", "-c", command], tmp_path)
        printed = completed.stdout + completed.stderr
    expected = {Verdict.KIT_ERROR: "passed", Verdict.KNOWN: "xfailed"}.get(verdict, str(verdict))
    assert expected in printed


@pytest.mark.slow
@pytest.mark.parametrize("option", [option.name for option in _PLUGIN_OPTIONS])
def test_the_example_of_an_option_runs(option: str, tmp_path: Path) -> None:
    """Tests that fail are fine, a command line that pytest refuses is not."""
    tmp_path.joinpath("test_mine.py").write_text("def test_nothing():\n    pass\n", "utf-8")
    tmp_path.joinpath("known.yaml").write_text("[]\n", "utf-8")
    example = load_page_writer().OPTION_EXAMPLES[option]
    assert f"--agentproc-{option.replace('_', '-')}" in example
    completed = run_command(["sh", "-c", example], tmp_path)
    assert completed.returncode in (0, 1), f"{example}\n{completed.stdout}{completed.stderr}"


@pytest.mark.slow
def test_the_examples_of_commands_run(tmp_path: Path) -> None:
    """`new` comes first: it writes the scenario that others take."""
    examples = load_page_writer().COMMAND_EXAMPLES
    assert sorted(examples) == sorted(MODULE_AND_PURPOSE_BY_COMMAND)
    for name in ("new", *(name for name in examples if name != "new")):
        completed = run_command(["sh", "-c", examples[name]], tmp_path)
        assert completed.returncode == 0, f"{examples[name]}\n{completed.stdout}{completed.stderr}"


def _list_headings(name: str) -> list[str]:
    return list_anchors((ROOT / "docs" / "reference" / f"{name}.md").read_text("utf-8"))


def test_every_fixture_marker_and_hook_has_its_heading() -> None:
    """Their examples are blocks of the page, which run."""
    fixtures = [name for name in plugin_fixtures.__all__ if not name.startswith("pytest_")]
    assert {make_heading_anchor(name) for name in (*fixtures, "agent_scenario")} <= set(_list_headings("fixtures"))
    assert {make_heading_anchor(f"Marker: {name}") for name in ("agentproc", "virtual_time", "process_tree")} <= set(
        _list_headings("fixtures")
    )
    assert {make_heading_anchor(name) for name in hookspecs.__all__} <= set(_list_headings("hooks"))


def test_every_key_of_wrapper_toml_and_of_the_results_has_its_row() -> None:
    """A reader finds the key of a file that another program writes or reads."""
    wrapper, results = (
        (ROOT / "docs" / "reference" / f"{name}.md").read_text("utf-8") for name in ("wrapper-toml", "results-json")
    )
    assert [key for key in _CHECKS_BY_TOML_KEY if f"| `{key}` |" not in wrapper] == []
    fields = [field.name for kind in (JudgedScenario, JudgedCheck) for field in dataclasses.fields(kind)]
    assert [name for name in fields if f"`{name}`" not in results] == []
