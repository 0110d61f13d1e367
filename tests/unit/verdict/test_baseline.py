"""The list of known failures: what it makes of rows, what it says of its own mistakes, how it is written anew."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_agentproc.errors import ScenarioError
from pytest_agentproc.verdict import (
    Baseline,
    CheckRow,
    JudgedCheck,
    JudgedScenario,
    Verdict,
    accept_failures,
    choose_overall_verdict,
)
from tests.unit.verdict.test_summary import ONE

LISTED = """\
# What we know of.

# The second one is worse.
- scenario: one
  check: outcome
  reason: "we call it failed: a matter of taste"  # kept
# About the escalation.
- scenario: two
  check: signals
  subject: mine
  reason: no TERM yet

- scenario: three
  check: leaks
  reason: helpers stay
# The end.
"""


def build_checks(**verdicts: Verdict) -> list[CheckRow]:
    """Give rows by their keys."""
    return [CheckRow(key, 1, "this", "that", verdict) for key, verdict in verdicts.items()]


def apply_baseline(
    given: list[CheckRow], scenario: str = "one", subject: str = "mine", *, is_reference: bool = False
) -> dict[str, CheckRow]:
    """Read rows in the light of LISTED."""
    read = Baseline(LISTED, "known.yaml").apply_to_rows(given, scenario, subject, is_reference=is_reference)
    return {row.key: row for row in read}


@pytest.mark.parametrize(
    "verdict", [Verdict.FAILED, Verdict.UNDECIDED, Verdict.NOT_EXERCISED, Verdict.ADAPTER_ERROR], ids=str
)
def test_a_listed_check_that_is_red_is_known(verdict: Verdict) -> None:
    """With the reason that the list gives."""
    row = apply_baseline(build_checks(outcome=verdict, text=Verdict.PASSED))["outcome"]
    assert (row.verdict, row.hint) == (Verdict.KNOWN, "we call it failed: a matter of taste")


def test_what_was_not_exercised_because_of_it_is_excused_with_it() -> None:
    """A deadlock leaves nothing to see after it; another failure beside it fails all the same."""
    known = build_checks(outcome=Verdict.KNOWN, text=Verdict.NOT_EXERCISED, leaks=Verdict.PASSED)
    assert choose_overall_verdict(known) is Verdict.KNOWN
    assert choose_overall_verdict([*known, *build_checks(noise=Verdict.FAILED)]) is Verdict.FAILED
    assert choose_overall_verdict([*known, *build_checks(noise=Verdict.UNDECIDED)]) is Verdict.UNDECIDED


def test_a_listed_check_that_passes_fails() -> None:
    """A list that keeps what is mended hides the next failure."""
    row = apply_baseline(build_checks(outcome=Verdict.PASSED))["outcome"]
    assert (row.verdict, row.hint) == (Verdict.FAILED, "listed in known.yaml:4, but it passes: remove the entry")
    row = apply_baseline(build_checks(signals=Verdict.PASSED), "three")["leaks"]
    assert (row.verdict, row.hint) == (Verdict.FAILED, "listed in known.yaml:13, but it passes: remove the entry")
    assert apply_baseline(build_checks(outcome=Verdict.NOT_APPLICABLE))["outcome"].verdict is Verdict.NOT_APPLICABLE


def test_a_listed_check_that_the_scenario_does_not_have_is_reported_with_the_nearest() -> None:
    """Its line, and what was meant."""
    row = apply_baseline(build_checks(signal=Verdict.PASSED), "two")["signals"]
    assert (row.verdict, row.hint) == (
        Verdict.FAILED,
        "listed in known.yaml:8, but the scenario has no such check: did you mean signal?",
    )


def test_an_entry_is_of_its_subject_or_of_everybody_but_the_reference() -> None:
    """Two supervisors have two lists in one file; the kit's own is compared with, not excused."""
    failed = build_checks(signals=Verdict.FAILED)
    assert apply_baseline(failed, "two", "mine")["signals"].verdict is Verdict.KNOWN
    assert apply_baseline(failed, "two", "other")["signals"].verdict is Verdict.FAILED
    failed = build_checks(outcome=Verdict.FAILED)
    assert apply_baseline(failed, subject="other")["outcome"].verdict is Verdict.KNOWN
    assert apply_baseline(failed, subject="reference", is_reference=True)["outcome"].verdict is Verdict.FAILED


def test_a_scenario_that_there_is_not_is_reported_with_the_nearest() -> None:
    """A typing mistake excuses nothing."""
    baseline = Baseline(LISTED, "known.yaml")
    assert baseline.list_unknown_scenarios(["one", "twos"]) == [
        "known.yaml:8: there is no scenario two: did you mean twos?",
        "known.yaml:13: there is no scenario three: remove the entry",
    ]


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("scenario: one\n", ['1:1: there must be a list, not a mapping: write "- " before each entry']),
        ("- one\n", ['1:3: an entry must have the keys scenario, check and reason, not "one"']),
        (
            "- scenario: one\n  chek: outcome\n  reason: x\n",
            ["1:3: the entry has no check: write check: ...", '2:3: unknown key "chek": did you mean "check"?'],
        ),
        ("- {scenario: one, check: [a], reason: x}\n", ["1:26: check must be text, not a list"]),
        ("- {scenario: one, check: a, reason: }\n", ["1:37: reason must be text, not nothing"]),
    ],
)
def test_a_malformed_list_is_reported_with_its_places(text: str, problems: list[str]) -> None:
    """All mistakes at once, as in a scenario."""
    with pytest.raises(ScenarioError) as error:
        Baseline(text, "known.yaml")
    assert [str(problem) for problem in error.value.problems] == [f"known.yaml:{problem}" for problem in problems]


def build_judged_scenario(scenario: str, subject: str = "mine", **verdicts: str) -> JudgedScenario:
    """Give a judged scenario whose rows have verdicts."""
    found = tuple(JudgedCheck(key, verdict, "this", "that") for key, verdict in verdicts.items())
    return dataclasses.replace(ONE, scenario=scenario, subject=subject, rows=found)


def update_baseline(
    *given: JudgedScenario, text: str = LISTED, there: tuple[str, ...] = ("one", "two", "three", "four")
) -> str:
    """Write LISTED anew."""
    return Baseline(text, "known.yaml").format_updated_baseline(given, there, ["reference"])


def test_what_stays_keeps_its_lines_and_comments() -> None:
    """The reasons are the worth of the list; an entry without a verdict stays as it is."""
    assert update_baseline() == LISTED
    assert update_baseline(build_judged_scenario("one", outcome="known")) == LISTED


def test_what_passes_goes_with_its_comments_and_what_is_new_comes_last() -> None:
    """A reason cannot be written by a machine."""
    text = update_baseline(
        build_judged_scenario("two", signals="passed"),
        build_judged_scenario("four", leaks="known", text="known", outcome="passed"),
    )
    begin, _, rest = LISTED.partition("# About the escalation.\n")
    assert text == (
        begin
        + rest.partition("no TERM yet\n")[2]
        + "- scenario: four\n  check: leaks\n  reason: not looked at yet\n"
        + "- scenario: four\n  check: text\n  reason: not looked at yet\n"
    )
    assert [known.check for known in Baseline(text, "known.yaml").known] == ["outcome", "leaks", "leaks", "text"]


def test_an_entry_of_a_scenario_that_is_gone_goes() -> None:
    """It will never be judged again."""
    assert [failure.scenario for failure in Baseline(update_baseline(there=("two",)), "known.yaml").known] == ["two"]


def test_with_several_subjects_new_entries_name_theirs() -> None:
    """So they do for the reference supervisor, which entries without a subject do not excuse."""
    text = update_baseline(
        build_judged_scenario("four", "a", text="known"), build_judged_scenario("four", "b", text="passed"), text=""
    )
    assert text == "- scenario: four\n  check: text\n  subject: a\n  reason: not looked at yet\n"
    text = update_baseline(build_judged_scenario("four", "reference", text="known"), text="")
    assert text == "- scenario: four\n  check: text\n  subject: reference\n  reason: not looked at yet\n"
    assert update_baseline(build_judged_scenario("four", "reference", text="known"), text=text) == text


def test_a_list_in_brackets_is_written_line_by_line() -> None:
    """Entries that share a line cannot be cut out of it."""
    text = '[{scenario: one, check: a, reason: "it: is"}, {scenario: two, check: b, reason: y}]\n'
    assert (
        update_baseline(build_judged_scenario("two", b="passed"), text=text)
        == '- scenario: one\n  check: a\n  reason: "it: is"\n'
    )


def test_all_failures_are_accepted_when_the_list_is_written() -> None:
    """A check that was not exercised is listed only where nothing else explains it."""
    some = accept_failures(
        build_checks(a=Verdict.FAILED, b=Verdict.UNDECIDED, c=Verdict.NOT_EXERCISED, d=Verdict.PASSED)
    )
    known, passed = Verdict.KNOWN, Verdict.PASSED
    assert [row.verdict for row in some] == [known, known, Verdict.NOT_EXERCISED, passed]
    assert [row.verdict for row in accept_failures(build_checks(c=Verdict.NOT_EXERCISED, d=Verdict.PASSED))] == [
        known,
        passed,
    ]
