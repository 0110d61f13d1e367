"""Limits that a supervisor does not state: what is demanded of it, and what is not."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_agentproc.errors import Deadlock
from pytest_agentproc.record import Record
from pytest_agentproc.scenario import loads
from pytest_agentproc.verdict import Verdict, choose_overall_verdict, judge_all_expectations, judge_play
from pytest_agentproc.vocabulary import ALL_LIMIT_NAMES, Policy, RunReport, mark_unstated_limits
from tests.unit.handmade import SECOND, BoundScenario, Events, Expected, PlayResult, Script, Unstated

REMEDY = "state limits={'kill_grace': ...} to have this judged"
FILE = (Expected("outcome", "inactive"), Expected("text", {"exact": "hi"}), Expected("leaks", []))
RIGHT: dict[str, Any] = {"outcome": "inactive", "text": "hi"}
KILLED: Events = [(SECOND, "x", {"process": "agent", "signal": "KILL"})]
ENDED: Events = [(SECOND, "s", {"process": "agent", "signal": "TERM"}), *KILLED]


def build_play(
    answer: dict[str, Any] | Exception,
    unstated: Unstated | None = None,
    *,
    file: tuple[Expected, ...] = FILE,
    policy: Policy | None = None,
    events: Events = (),  # type: ignore[assignment]
    catches: str = "",
) -> PlayResult:
    """Write a run by hand: what was answered, or the fault."""
    script = Script(catches={"x": catches} if catches else {})
    bound = BoundScenario(file, policy or Policy(), script)
    record = Record()
    record.add(0, "p", {"process": "agent", "seen": True, "parent": "supervisor", "line": 0})
    for at, code, data in events:
        record.add(at, code, data)
    if isinstance(answer, Exception):
        return PlayResult(bound, record, None, answer, unstated=unstated)
    return PlayResult(bound, record, RunReport(**answer), unstated=unstated)


def list_verdicts(played: PlayResult) -> dict[str, str]:
    """Judge it, check by check."""
    return {row.key: row.verdict.value for row in judge_all_expectations(played)}


def build_unstated(*variants: dict[str, Any] | Exception, default: dict[str, Any] = RIGHT) -> Unstated:
    """Write by hand the reference supervisor's results under other values of kill_grace."""
    return Unstated(
        ("kill_grace",), build_play(default), {"kill_grace": tuple(build_play(variant) for variant in variants)}
    )


def test_what_differs_under_another_value_is_not_demanded() -> None:
    """The text that comes before the kill depends on when the kill comes."""
    unstated = build_unstated(RIGHT, {**RIGHT, "text": ""})
    wrong = {**RIGHT, "text": "h"}
    assert list_verdicts(build_play(wrong)) == {"outcome": "passed", "text": "failed", "leaks": "passed"}
    assert list_verdicts(build_play(wrong, unstated)) == {
        "outcome": "passed",
        "text": "not applicable",
        "leaks": "passed",
    }
    row = judge_all_expectations(build_play(wrong, unstated))[1]
    assert (row.seen, row.unstated) == (f'"h"; {REMEDY}', ("kill_grace",))


def test_what_is_the_same_under_every_value_is_demanded() -> None:
    """A wrong text stays one, whatever the grace is."""
    assert list_verdicts(build_play({**RIGHT, "text": "h"}, build_unstated(RIGHT, RIGHT)))["text"] == "failed"


def test_what_the_reference_misses_with_the_default_is_no_matter_of_that_limit() -> None:
    """Other limits are looked at elsewhere."""
    unstated = build_unstated({**RIGHT, "text": ""}, default={**RIGHT, "text": "other"})
    assert list_verdicts(build_play({**RIGHT, "text": "h"}, unstated))["text"] == "failed"


def test_with_another_outcome_only_leftovers_are_judged() -> None:
    """It is another story from there on."""
    left: Events = [(SECOND, "m", {"process": "tool", "leaked": "alive", "line": 4})]
    unstated = build_unstated({**RIGHT, "outcome": "completed"})
    played = build_play({"outcome": "failed", "text": ""}, unstated, events=left)
    assert list_verdicts(played) == {"outcome": "not applicable", "text": "not applicable", "leaks": "failed"}


def test_a_run_that_never_ends_is_right_under_no_limit() -> None:
    """Unless the reference supervisor does not end either."""
    other = {**RIGHT, "outcome": "completed"}
    assert list_verdicts(build_play(Deadlock("nobody"), build_unstated(other)))["outcome"] == "failed"
    assert set(list_verdicts(build_play(Deadlock("nobody"), build_unstated(Deadlock("nobody")))).values()) == {
        "not applicable"
    }


def test_a_line_that_the_shortest_value_cuts_excuses_no_count() -> None:
    """Under a grace of 0 an agent is ended in the middle of a line, which is noise then."""
    file = (*FILE, Expected("noise", 3))

    def with_noise(count: int, unstated: Unstated | None = None) -> PlayResult:
        return build_play({**RIGHT, "noise": count}, unstated, file=file)

    for variants, seen in [((4, 3), "failed"), ((4, 4), "not applicable")]:
        plays = tuple(with_noise(count) for count in variants)
        unstated = Unstated(("kill_grace",), with_noise(3), {"kill_grace": plays})
        assert list_verdicts(with_noise(0, unstated))["noise"] == seen


SIGNALS = (Expected("signals", [("TERM", SECOND)]), Expected("outcome", "inactive"))
GRACELESS = mark_unstated_limits(Policy(), {"linger_kill_grace"})


@pytest.mark.parametrize(
    ("policy", "observed"),
    [
        (Policy(), "failed"),
        (GRACELESS, "not applicable"),
        (mark_unstated_limits(Policy(), {"kill_grace"}), "failed"),
    ],
)
def test_a_grace_that_is_not_stated_may_be_none(policy: Policy, observed: str) -> None:
    """TERM is not demanded of a supervisor that may give no time between TERM and KILL."""
    names = tuple(name for name in ALL_LIMIT_NAMES if name in policy.unstated)
    quiet = build_play({"outcome": "inactive"}, file=SIGNALS, events=ENDED)
    unstated = Unstated(names, quiet, {}) if names else None
    played = build_play({"outcome": "inactive"}, unstated, file=SIGNALS, policy=policy, events=KILLED)
    assert list_verdicts(played)["signals"] == observed


def test_a_check_that_names_an_unstated_limit_says_what_to_state() -> None:
    """Its value would be the default of the reference supervisor, and of no other."""
    text = (
        "scenario: x\nagent: raw\nscript: [{silence: for ever}]\n"
        "expect: {outcome: inactive, returned: inactivity_timeout + kill_grace, elapsed: inactivity_timeout}\n"
    )
    bound = loads(text).bind(mark_unstated_limits(Policy(), {"inactivity_timeout"}))
    assert {expectation.key: expectation.unstated for expectation in bound.expect} == {
        "outcome": (),
        "returned": ("kill_grace",),
        "elapsed": (),
        "leaks": (),
    }
    assert all(expectation.unstated == () for expectation in loads(text).bind(Policy()).expect)


def test_a_scenario_that_nothing_decides_any_more_has_not_passed() -> None:
    """A check that its defects turn red is not judged, and the rest is green for a faulty supervisor, too."""
    file = (*FILE, Expected("returned", 5, unstated=("kill_grace",)))
    rows = judge_all_expectations(build_play(RIGHT, file=file, catches="returned"))
    assert (rows[-1].seen, rows[-1].wanted) == (REMEDY, "it depends on kill_grace")
    assert choose_overall_verdict(rows) is Verdict.NOT_APPLICABLE
    assert judge_play(build_play(RIGHT, file=file, catches="returned")).reason == REMEDY
    assert (
        choose_overall_verdict(judge_all_expectations(build_play(RIGHT, file=file, catches="text"))) is Verdict.PASSED
    )
    wrong = judge_all_expectations(build_play({**RIGHT, "text": ""}, file=file, catches="returned"))
    assert choose_overall_verdict(wrong) is Verdict.FAILED


def test_a_limit_that_can_be_switched_off_is_off_and_not_unstated() -> None:
    """A supervisor that does not name it does not have it."""
    assert "inactivity_timeout" not in mark_unstated_limits(Policy(), ()).unstated
    assert mark_unstated_limits(Policy(), ()).unstated == {
        *("linger_grace", "background_grace", "linger_kill_grace", "leftover_kill_grace", "kill_grace"),
        *("cancel_grace", "permission_timeout", "hook_timeout", "restart_backoff", "close_grace", "max_line_bytes"),
    }
    assert type(mark_unstated_limits(Policy(), ALL_LIMIT_NAMES)) is Policy
    assert mark_unstated_limits(Policy(), ()).adapt_to_session().unstated == mark_unstated_limits(Policy(), ()).unstated


def test_a_longest_line_that_is_not_stated_is_one_that_real_agents_print() -> None:
    """16 MiB, the value of the reference supervisor, would be asked of no other; 1 MiB is too short for an image."""
    assert mark_unstated_limits(Policy(), ()).max_line_bytes == 2 * 1024**2
    assert mark_unstated_limits(Policy(max_line_bytes=100), {"max_line_bytes"}).max_line_bytes == 100
