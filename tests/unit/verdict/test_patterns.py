"""Patterns are matched within a bound of time, and what is shown of a text cannot steer a terminal."""

from __future__ import annotations

import re
from time import monotonic

import pytest

from pytest_agentproc import subjects
from pytest_agentproc.errors import ScenarioError
from pytest_agentproc.harness import run_in_model
from pytest_agentproc.scenario import loads
from pytest_agentproc.verdict import _patterns, explain_play, judge_all_expectations
from pytest_agentproc.verdict._patterns import SlowPattern, has_match
from pytest_agentproc.verdict._value_text import quote

LONG = "a" * 39 + "b"
SLOW = ["(a+)+$", "(a|a)*$", "([a-z]+)*$", r"((a*)b?)*$", "(a?){39}a{39}$"]
QUICK = [("(?s).+", "x\ny", True), (r"\A(line\n)+last\Z", "line\nline\nlast", True), ("[(]+[)]+", "x", False)]


@pytest.mark.parametrize("pattern", SLOW)
def test_a_pattern_without_an_end_is_given_up(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would hold up the judge for years."""
    monkeypatch.setattr(_patterns, "MAX_MATCH_SECONDS", 0.3)
    start = monotonic()
    with pytest.raises(SlowPattern, match=r"does not come to an end within 0.3 s on 79 characters"):
        has_match(pattern, "a" * 78 + "!")
    assert monotonic() - start < 10


@pytest.mark.parametrize(("pattern", "text", "wanted"), QUICK)
def test_plain_patterns_are_tried_at_once(
    pattern: str, text: str, wanted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process for each of them would make every judgement slower."""
    monkeypatch.setattr(_patterns, "_has_match_in_subprocess", lambda *_: pytest.fail("a process was started"))
    assert has_match(pattern, text) is wanted


@pytest.mark.parametrize(
    ("pattern", "text"),
    [(r"^(\w+ )+end$", "one two end"), (r"^(\w+ )+end$", "one"), (".*a.*b.*c", "x" * 9000), ("(a|b)+c", "ab\udc80c")],
)
def test_a_process_of_its_own_says_the_same(pattern: str, text: str) -> None:
    """Where it is tried makes no difference to what fits."""
    assert has_match(pattern, text) is (re.search(pattern, text) is not None)


def test_such_a_pattern_is_a_located_error_of_its_scenario(monkeypatch: pytest.MonkeyPatch) -> None:
    """The supervisor cannot help it."""
    monkeypatch.setattr(_patterns, "MAX_MATCH_SECONDS", 0.3)
    text = f'scenario: a\nagent: raw\nscript: [{{answer: {LONG}}}]\nexpect:\n  text: {{matches: "(a+)+$"}}\n'
    with pytest.raises(ScenarioError) as error:
        judge_all_expectations(run_in_model(loads(text, "x.scenario.yaml"), subjects.reference_supervisor()))
    assert str(error.value).startswith("x.scenario.yaml:5:1: text: the pattern '(a+)+$' does not come to an end ")


def test_a_pattern_with_a_number_of_5000_digits_is_a_mistake() -> None:
    """Python reads no such number."""
    text = f"scenario: a\nagent: raw\nscript: []\nexpect: {{text: {{matches: 'a{{{'9' * 5000}}}'}}}}\n"
    with pytest.raises(ScenarioError, match="is no regular expression"):
        loads(text)


@pytest.mark.parametrize("char", ["\x9b", "\x7f", "\u202e", "\x1b", "\u2066", "\U000e0041", "\u2028"])
def test_what_steers_a_terminal_is_escaped(char: str) -> None:
    """An agent could recolor, hide or turn around what a failure says."""
    assert quote(f"a{char}b").isprintable()
    text = (
        'scenario: a\nagent: raw\nscript:\n  - raw: "A\\x9b31m\\x7f\\u202e\\u2066\\x1b[31m\\n"\n  - answer: x\n'
        "expect: {transcript: nothing}\n"
    )
    played = run_in_model(loads(text), subjects.reference_supervisor())
    rows = judge_all_expectations(played)
    assert all(row.seen.replace("\n", "").isprintable() for row in rows)
    assert explain_play(played, rows).replace("\n", "").isprintable()
