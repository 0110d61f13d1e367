"""The table of words that people bring from elsewhere: it holds no word of the language, and its remedies name some."""

from __future__ import annotations

import re

import pytest

from pytest_agentproc.errors import ScenarioError
from pytest_agentproc.scenario import list_key_tables, loads
from pytest_agentproc.verdict import Verdict
from pytest_agentproc.vocabulary import (
    ERRNO_BY_SPAWN_ERROR,
    LEVELS,
    REMEDY_BY_KIND_AND_WORD,
    Outcome,
    RunReport,
    find_remedy,
)


def _list_names(kind: str, path: str = "") -> set[str]:
    return {key.name for table in list_key_tables() if (table.kind, table.path) == (kind, path) for key in table.keys}


NAMES_BY_KIND = {
    **{kind: _list_names(kind) for kind in ("step", "limit", "expect key", "drive item", "file key")},
    "process check": _list_names("expect key", "processes"),
    "received check": _list_names("expect key", "received"),
    "text check": _list_names("expect key", "TEXT"),
    "agent key": _list_names("file key", "agent"),
    "spawn key": _list_names("step", "spawn"),
    "spawn kind": {"same_group", "own_group", "new_session", "double_fork", "daemon", "launcher", "refork"},
    "spawn error": set(ERRNO_BY_SPAWN_ERROR),
    "outcome": {str(outcome) for outcome in Outcome},
    "level": set(LEVELS),
    "verdict": {str(verdict) for verdict in Verdict},
    "report field": set(RunReport.__dataclass_fields__),
}


@pytest.mark.parametrize("kind", NAMES_BY_KIND)
def test_a_word_with_a_remedy_is_no_name_and_the_remedy_has_one(kind: str) -> None:
    """A remedy for a right word would never be shown, and a remedy without a name helps nobody."""
    names, remedies = NAMES_BY_KIND[kind], REMEDY_BY_KIND_AND_WORD[kind]
    assert sorted(names & set(remedies)) == []
    elsewhere = "a scenario starts no command", "it is a step", "it belongs to a when", "for another script"
    without = {
        remedy
        for remedy in remedies.values()
        if not remedy.startswith(elsewhere) and remedy not in names and not names & set(re.findall(r"\w+", remedy))
    }
    assert without == set()


def test_every_kind_is_looked_at() -> None:
    """A new kind needs a line above; notes are for `agentproc explain` alone."""
    assert set(REMEDY_BY_KIND_AND_WORD) == {*NAMES_BY_KIND, "note"}


@pytest.mark.parametrize("word", ["kill-after", "KILL_AFTER", " kill after "])
def test_a_word_is_found_in_any_writing(word: str) -> None:
    """Every tool joins words in its own way."""
    assert find_remedy("limit", word) == "write kill_grace, which is from TERM to KILL"


@pytest.mark.parametrize(
    ("kind", "word", "name"),
    [
        ("step", "ctrl+c", "when"),
        ("step", "Ctrl-C", "when"),
        ("step", "keyboard_interrupt", "when"),
        ("step", "kill -9", "die"),
        ("step", "out of memory", "die"),
        ("step", "429", "api_retry"),
        ("step", "deadlock", "silence"),
        ("step", "nothing", "silence"),
        ("step", "orphan", "spawn"),
        ("step", "newline", "raw"),
        ("step", "stderr_line", "raw"),
        ("limit", "timeout_sec", "inactivity_timeout"),
        ("limit", "max-duration-ms", "max_runtime"),
        ("limit", "term_grace", "kill_grace"),
        ("limit", "max_idle", "inactivity_timeout"),
        ("limit", "max_turns", "max_runtime"),
        ("expect key", "elapsed_seconds", ""),
        ("expect key", "duration_s", "elapsed"),
        ("expect key", "no_zombies", "leaks"),
        ("expect key", "stdout_contains", "text"),
        ("expect key", "cause", "error"),
        ("outcome", "OOM", "incomplete"),
        ("outcome", "rate-limited", "failed"),
    ],
)
def test_a_word_near_to_the_spelling_of_another_name_goes_by_its_meaning(kind: str, word: str, name: str) -> None:
    """`orphan` is near to `plan`, and `timeout_sec` to `hook_timeout`: both hints were wrong. "": spelling is right."""
    remedy = find_remedy(kind, word)
    assert name in remedy if name else not remedy


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ('["- exit: 1", "- answer: done"]', 'not "- exit: 1": for another script at each start of the agent write'),
        (
            "[[{exit: 1}], [{answer: done}]]",
            'not a list: for another script at each start of the agent write the key "scripts": [[{"exit": 1}], ',
        ),
        ("[hang]", 'not "hang": write silence: for ever'),
        ("[ignore TERM]", 'not "ignore TERM": write "- when: {signal: TERM}", and below it "do: []"'),
        ("[[say, hello]]", 'not a list: write "name: value"'),
    ],
)
def test_what_is_no_step_is_answered_by_its_meaning(script: str, message: str) -> None:
    """The agent that first fails and then works is the second test that people write."""
    with pytest.raises(ScenarioError) as caught:
        loads(f"scenario: a\nagent: raw\nscript: {script}\n")
    assert message in str(caught.value)


def test_a_key_that_is_meant_is_not_missed_as_well() -> None:
    """One mistake gets one message."""
    with pytest.raises(ScenarioError) as caught:
        loads("name: a\nagent: raw\nsteps: [{answer: done}]\n")
    assert [problem.message for problem in caught.value.problems] == [
        'unknown key in the scenario "name": write scenario, the claim in one sentence',
        'unknown key in the scenario "steps": write script',
    ]
