"""A supervisor that does not report when it knew its outcome: what its acts show, and what they do not."""

from __future__ import annotations

import pytest

from pytest_agentproc.record import Record
from pytest_agentproc.verdict import judge_all_expectations
from pytest_agentproc.vocabulary import Policy, RunReport
from tests.event_lines import add_line
from tests.unit.handmade import SECOND, BoundScenario, Expected, play_by_hand

QUARTER = SECOND // 4


def judge_elapsed(
    outcome: str, *, signalled: int | None, returned: int, policy: Policy | None = None
) -> tuple[str, str]:
    """Judge an outcome that was to be known at five seconds."""
    record = Record()
    add_line(record, 0, "p", {"process": "agent", "seen": True, "parent": "supervisor", "line": 0})
    if signalled is not None:
        add_line(record, signalled, "s", {"process": "agent", "signal": "TERM"})
    add_line(record, returned, "m", {"process": "supervisor", "returned": True})
    bound = BoundScenario((Expected("outcome", outcome), Expected("elapsed", 5 * SECOND)), policy or Policy())
    row = judge_all_expectations(play_by_hand(bound, record, RunReport(outcome=outcome)))[1]
    return row.verdict.value, row.hint or row.seen


def test_a_return_before_the_outcome_could_be_known_fails() -> None:
    """No supervisor knows after its return what it did not know before."""
    assert judge_elapsed("completed", signalled=None, returned=4 * SECOND) == ("failed", "1 s earlier")
    assert judge_elapsed("inactive", signalled=2 * SECOND, returned=4 * SECOND) == ("failed", "1 s earlier")


def test_a_later_return_shows_nothing() -> None:
    """The supervisor may have had the outcome, and waited for the agent to go."""
    assert judge_elapsed("completed", signalled=None, returned=6 * SECOND) == (
        "undecided",
        "not reported by the subject",
    )
    late = judge_elapsed("completed", signalled=None, returned=5 * SECOND + QUARTER)
    assert late == ("undecided", "not reported by the subject"), "a return is no signal after a grace"


@pytest.mark.parametrize(
    ("signalled", "policy", "observed"),
    [
        (5 * SECOND + QUARTER, Policy(), "passed"),
        (5 * SECOND + QUARTER, Policy(linger_grace=1), "undecided"),
        (6 * SECOND, Policy(linger_grace=1), "passed"),
        (8 * SECOND, Policy(linger_grace=1, background_grace=2), "passed"),
        (7 * SECOND, Policy(linger_grace=1), "undecided"),
    ],
)
def test_a_lingering_agent_is_ended_a_stated_grace_after_the_outcome(
    signalled: int, policy: Policy, observed: str
) -> None:
    """Its TERM shows when the grace began."""
    assert judge_elapsed("completed", signalled=signalled, returned=9 * SECOND, policy=policy)[0] == observed


def test_after_a_limit_there_is_no_such_grace() -> None:
    """A silent agent is ended at once, and a later signal shows nothing."""
    assert judge_elapsed("inactive", signalled=5 * SECOND + QUARTER, returned=9 * SECOND)[0] == "undecided"
    assert judge_elapsed("inactive", signalled=5 * SECOND, returned=9 * SECOND)[0] == "passed"
