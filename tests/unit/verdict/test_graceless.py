"""A supervisor that states a grace of 0 may leave TERM out, or send KILL right after it; one with a grace may not."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_agentproc.record import Record
from pytest_agentproc.verdict import judge_all_expectations
from pytest_agentproc.vocabulary import Policy, RunReport
from tests.event_lines import add_line
from tests.unit.handmade import SECOND, BoundScenario, Events, Expected, Script, play_by_hand

AT_ONCE = Policy(kill_grace=0, linger_kill_grace=0)
TERM, KILL = ("TERM", SECOND), ("KILL", SECOND)
STATUS = {"code": None, "signal": "TERM", "forced": True}


def catch_signals(*signals: tuple[str, int]) -> Events:
    """Let the agent catch all but the last, and die of that."""
    return [(at, "x" if name == signals[-1][0] else "s", {"signal": name}) for name, at in signals]


def judge_key(
    key: str, wanted: Any, events: Events, policy: Policy = AT_ONCE, outcome: str = "inactive", tolerance: int = 0
) -> str:
    """Compare one key of a run that ended so."""
    record = Record()
    add_line(record, 0, "p", {"process": "agent", "seen": True, "parent": "supervisor", "line": 0})
    for at, code, data in events:
        add_line(record, at, code, {"process": "agent", **data})
    bound = BoundScenario((Expected("outcome", outcome), Expected(key, wanted)), policy)
    return judge_all_expectations(play_by_hand(bound, record, RunReport(outcome=outcome), None, tolerance))[
        1
    ].verdict.value


@pytest.mark.parametrize("wanted", [[TERM], [TERM, KILL]])
@pytest.mark.parametrize("observed", [[TERM], [KILL], [TERM, KILL]])
def test_without_a_grace_every_ladder_of_one_instant_is_the_same(
    wanted: list[tuple[str, int]], observed: list[tuple[str, int]]
) -> None:
    """A TERM that KILL overtook leaves no trace, and an agent cannot use a time of zero."""
    assert judge_key("signals", wanted, catch_signals(*observed)) == "passed"


@pytest.mark.parametrize(
    "observed", [[], [("KILL", 2 * SECOND)], [TERM, ("KILL", 2 * SECOND)], [("INT", SECOND), KILL]]
)
def test_without_a_grace_the_end_still_has_its_instant(observed: list[tuple[str, int]]) -> None:
    """A late KILL is not what was stated, and neither is another signal before it."""
    assert judge_key("signals", [TERM], catch_signals(*observed)) == "failed"


def test_real_time_may_lie_between_the_two_signals() -> None:
    """There no two things happen at one instant."""
    seen = catch_signals(TERM, ("KILL", SECOND + 5))
    assert [judge_key("signals", [TERM], seen, tolerance=ns) for ns in (10, 0)] == ["passed", "failed"]


@pytest.mark.parametrize(
    ("policy", "outcome"),
    [
        (Policy(), "inactive"),
        (Policy(kill_grace=2, linger_kill_grace=0), "inactive"),
        (Policy(kill_grace=0, linger_kill_grace=2), "completed"),
    ],
)
def test_a_stated_grace_is_owed(policy: Policy, outcome: str) -> None:
    """The grace of the run's end counts; the other grace excuses nothing."""
    assert judge_key("signals", [TERM], catch_signals(KILL), policy, outcome) == "failed"
    assert judge_key("agent_status", STATUS, catch_signals(KILL), policy, outcome) == "failed"


@pytest.mark.parametrize(
    ("linger", "outcome", "observed"),
    [(0, None, "passed"), (1, None, "failed"), (1, "inactive", "passed"), (1, "failed", "failed")],
)
def test_where_more_than_one_outcome_is_right_the_reported_one_counts(
    linger: float, outcome: str | None, observed: str
) -> None:
    """If no outcome is reported, it is unknown which grace is the one at the end, and both count."""
    record = Record()
    add_line(record, 0, "p", {"process": "agent", "seen": True, "parent": "supervisor", "line": 0})
    add_line(record, SECOND, "x", {"process": "agent", "signal": "KILL"})
    expect = Expected("outcome", {"not": "completed"}), Expected("signals", [TERM])
    bound = BoundScenario(expect, Policy(kill_grace=0, linger_kill_grace=linger))
    assert judge_all_expectations(play_by_hand(bound, record, RunReport(outcome=outcome)))[1].verdict.value == observed


def test_a_kill_that_is_expected_alone_is_no_term() -> None:
    """It came from outside, and a supervisor that sends TERM there has sent an unexpected signal."""
    assert judge_key("signals", [KILL], catch_signals(TERM)) == "failed"


@pytest.mark.parametrize("wanted", [STATUS, {"code": 143, "signal": None, "forced": True}])
def test_without_a_grace_an_agent_may_die_of_kill(wanted: dict[str, Any]) -> None:
    """Its reaction to TERM needs time that it does not get."""
    assert judge_key("agent_status", wanted, catch_signals(KILL)) == "passed"
    assert judge_key("agent_status", {**wanted, "forced": None}, catch_signals(KILL)) == "failed"


def judge_helper(policy: Policy, agent: list[tuple[str, str]], *, is_session: bool) -> str:
    """Judge a helper that was to get TERM at one second and got KILL, after an agent that ended so at that instant."""
    record = Record()
    add_line(record, 0, "p", {"process": "agent", "seen": True, "parent": "supervisor", "line": 0})
    add_line(record, 0, "p", {"process": "helper", "seen": True, "parent": "agent", "line": 3})
    for code, name in agent:
        add_line(record, SECOND, code, {"process": "agent", **({"signal": name} if name else {"code": 0})})
    add_line(record, SECOND, "x", {"process": "helper", "signal": "KILL"})
    expect = Expected("outcome", "completed"), Expected("processes.helper.signals", [TERM])
    bound = BoundScenario(expect, policy, Script(is_session=is_session))
    return judge_all_expectations(play_by_hand(bound, record, RunReport(outcome="completed")))[1].verdict.value


LEFT = Policy(leftover_kill_grace=0)
EXITS, ENDED = [("x", "")], [("s", "TERM"), ("x", "TERM")]


@pytest.mark.parametrize("is_session", [False, True])
@pytest.mark.parametrize(("policy", "observed"), [(LEFT, "passed"), (AT_ONCE, "failed"), (Policy(), "failed")])
def test_what_an_agent_leaves_that_exits_by_itself_has_a_grace_of_its_own(
    policy: Policy, observed: str, is_session: bool
) -> None:
    """A supervisor may give its agent time, and none to what the agent left."""
    assert judge_helper(policy, EXITS, is_session=is_session) == observed


@pytest.mark.parametrize(
    ("policy", "in_run", "in_session"),
    [
        (LEFT, "failed", "failed"),
        (Policy(kill_grace=0), "failed", "passed"),
        (Policy(linger_kill_grace=0), "passed", "failed"),
    ],
)
def test_a_helper_of_an_agent_that_is_ended_has_the_grace_of_the_agent(
    policy: Policy, in_run: str, in_session: str
) -> None:
    """A session knows one grace for an agent that it ends; a run has a short one after a good end."""
    assert judge_helper(policy, ENDED, is_session=False) == in_run
    assert judge_helper(policy, ENDED, is_session=True) == in_session


def test_in_a_session_the_grace_of_the_kill_alone_counts() -> None:
    """A supervisor states no grace after a completion for an agent that lives on for further prompts."""
    record = Record()
    add_line(record, 0, "p", {"process": "agent", "seen": True, "parent": "supervisor", "line": 0})
    add_line(record, SECOND, "x", {"process": "agent", "signal": "KILL"})
    expect = Expected("signals", [TERM, ("KILL", SECOND)]), Expected("agent_status", STATUS)
    bound = BoundScenario(expect, Policy(kill_grace=0), Script(is_session=True))
    assert [row.verdict.value for row in judge_all_expectations(play_by_hand(bound, record, RunReport(turns=())))] == [
        "passed",
        "passed",
    ]
