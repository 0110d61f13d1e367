"""Limits that a supervisor does not state: what is demanded of it, and what is not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from pytest_agentproc.errors import Deadlock
from pytest_agentproc.record import Record
from pytest_agentproc.scenario import loads
from pytest_agentproc.verdict import CheckRow, Verdict, choose_overall_verdict, judge_all_expectations, judge_play
from pytest_agentproc.vocabulary import ALL_LIMIT_NAMES, Policy, RunReport, mark_unstated_limits
from tests.event_lines import add_line
from tests.unit.handmade import SECOND, BoundScenario, Events, Expected, Reference, Script, Unstated, play_by_hand

if TYPE_CHECKING:
    from pytest_agentproc.plays import PlayResult

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
    add_line(record, 0, "p", {"process": "agent", "seen": True, "parent": "supervisor", "line": 0})
    for at, code, data in events:
        add_line(record, at, code, data)
    if isinstance(answer, Exception):
        return play_by_hand(bound, record, None, answer, unstated=unstated)
    return play_by_hand(bound, record, RunReport(**answer), unstated=unstated)


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


TALK = (
    *(Expected("turns.1.outcome", "timed_out"), Expected("turns.2.outcome", "completed")),
    *(Expected("turns.2.text", {"exact": "two"}), Expected("spawns", [0]), Expected("signals", [])),
)
ONE = {"outcome": "timed_out", "text": "one"}
"""The first turn, as the right supervisor reports it under any value."""
CUT = {"outcome": "cancelled", "text": ""}
CANCEL: Events = [(10 * SECOND, "t", {"process": "supervisor", "timer": "cancel_grace", "armed": 310 * SECOND})]
NEXT: tuple[int, str, dict[str, Any]] = (20 * SECOND, "p", {"process": "agent 2", "seen": True, "parent": "supervisor"})


def list_verdicts_of_talk(second: dict[str, Any] | None, events: Events) -> dict[str, str]:
    """Judge a talk of two prompts, where a short cancel_grace ends the agent at 20 s and so cuts the second turn."""

    def talk(*turns: dict[str, Any], events: Events, unstated: Unstated | None = None) -> PlayResult:
        reports = tuple(RunReport(**turn) for turn in turns)
        return build_play({"turns": reports}, unstated, file=TALK, events=events)

    short = talk(ONE, CUT, events=[*CANCEL, (20 * SECOND, "s", {"process": "agent", "signal": "TERM"}), NEXT])
    default = talk(ONE, {"outcome": "completed", "text": "two"}, events=CANCEL)
    unstated = Unstated(("cancel_grace",), default, {"cancel_grace": (short,)})
    return list_verdicts(talk(ONE, *([second] if second else []), events=events, unstated=unstated))


TERM = {"process": "agent", "signal": "TERM"}


@pytest.mark.parametrize(
    ("second", "events", "failed"),
    [
        pytest.param(CUT, [(30 * SECOND, "s", TERM), NEXT], "", id="the agent is ended after another grace"),
        pytest.param(None, [], "turns.2.outcome turns.2.text", id="a prompt without a turn"),
        pytest.param({"outcome": "completed", "text": "one"}, [], "turns.2.text", id="words of another turn"),
        pytest.param(CUT, [NEXT, (NEXT[0], "p", {**NEXT[2], "process": "agent 3"})], "spawns", id="one start too many"),
        pytest.param(
            *(CUT, [(10 * SECOND, "s", TERM), NEXT], "turns.2.outcome turns.2.text spawns signals"),
            id="TERM at the instant at which a cancel is due",
        ),
    ],
)
def test_what_no_value_explains_is_demanded(second: dict[str, Any] | None, events: Events, failed: str) -> None:
    """A short grace may end an agent and cut its turn. It drops no prompt, mixes no answers, starts no third agent."""
    seen = list_verdicts_of_talk(second, events)
    assert [key for key, verdict in seen.items() if verdict == "failed"] == failed.split()


def test_what_an_outcome_does_not_carry_is_demanded() -> None:
    """Under another grace a run may have another outcome and text. That starts no second agent."""
    file = (*FILE, Expected("spawns", [0]))
    other = build_play({"outcome": "completed", "text": "hi"}, file=file)
    unstated = Unstated(("kill_grace",), build_play(RIGHT, file=file), {"kill_grace": (other,)})
    events: Events = [(SECOND, "p", {"process": "agent 2", "seen": True, "parent": "supervisor"})]
    played = build_play({"outcome": "failed", "text": ""}, unstated, file=file, events=events)
    assert list_verdicts(played)["spawns"] == "failed"


def test_limits_in_another_order_explain_no_dropped_prompt() -> None:
    """With the limits of the supervisor the first turn may end in another way. The second prompt has a turn, too."""

    def talk(*outcomes: str, reference: Reference | None = None) -> PlayResult:
        turns = tuple(RunReport(outcome=outcome, text=outcome) for outcome in outcomes)
        return replace(build_play({"turns": turns}, file=TALK[:2]), reference=reference)

    reference = Reference(talk("completed", "failed"), talk("timed_out", "completed"))
    assert set(list_verdicts(talk("completed", "failed", reference=reference)).values()) == {"not applicable"}
    assert list_verdicts(talk("completed", reference=reference))["turns.2.outcome"] == "failed"


@pytest.mark.parametrize(("must", "observed"), [("not applicable", "not applicable"), ("passed", "passed")])
def test_a_scenario_whose_musts_do_not_apply_has_not_passed(must: str, observed: str) -> None:
    """What is only good practice shows no conformance, nor does a check that the file does not state."""
    rows = [
        CheckRow("turns.2.outcome", 9, "", "", Verdict(must)),
        CheckRow("signals", 9, "", "", Verdict.PASSED, level="should"),
        CheckRow("leaks", 0, "", "", Verdict.PASSED),
    ]
    assert choose_overall_verdict(rows) is Verdict(observed)


AGENT_2 = {"process": "agent 2", "seen": True, "parent": "supervisor"}
AGENT_3 = {**AGENT_2, "process": "agent 3"}
HUNG: Events = [
    (60 * SECOND, "s", TERM),
    (60 * SECOND, "t", {"process": "supervisor", "timer": "kill_grace", "armed": 62 * SECOND}),
    (62 * SECOND, "x", {"process": "agent", "signal": "KILL"}),
    (63 * SECOND, "p", AGENT_2),
]
KILL = {"process": "agent", "signal": "KILL"}
NAMING_A_GRACE = tuple(
    Expected(key, wanted, unstated=("kill_grace",))
    for key, wanted in [
        ("signals", [("TERM", 60 * SECOND), ("KILL", 62 * SECOND)]),
        ("spawns", [0, 63 * SECOND]),
        ("turns.2.elapsed", 62 * SECOND),
    ]
)


@pytest.mark.parametrize(
    ("turns", "events", "failed"),
    [
        pytest.param(2, HUNG, "", id="as the default has it"),
        pytest.param(2, [HUNG[0], (70 * SECOND, "x", KILL), (71 * SECOND, "p", AGENT_2)], "", id="a longer grace"),
        pytest.param(2, [(60 * SECOND, "x", KILL), (61 * SECOND, "p", AGENT_2)], "", id="no grace"),
        pytest.param(1, HUNG, "turns.2.elapsed", id="a prompt without a turn"),
        pytest.param(2, [*HUNG, (80 * SECOND, "p", AGENT_3)], "spawns", id="one start too many"),
        pytest.param(2, [(59 * SECOND, "s", TERM), *HUNG[2:]], "signals", id="TERM before the limit"),
        pytest.param(2, [(60 * SECOND, "s", {**TERM, "signal": "QUIT"}), *HUNG[2:]], "signals", id="another signal"),
        pytest.param(2, [(61 * SECOND, "x", {**KILL, "signal": "PIPE"}), HUNG[3]], "", id="a closed pipe"),
        pytest.param(2, [*HUNG[:3], (1 * SECOND, "p", AGENT_2)], "spawns", id="a start before the limit"),
    ],
)
def test_a_check_that_names_an_unstated_limit_stays_where_no_value_explains_it(
    turns: int, events: Events, failed: str
) -> None:
    """A list of signals or starts was dropped whole, because one of its instants was open."""

    def play(count: int, happened: Events, unstated: Unstated | None = None) -> PlayResult:
        answer = {"turns": tuple(RunReport(elapsed=62 * SECOND) for _ in range(count))}
        return build_play(answer, unstated, file=NAMING_A_GRACE, events=sorted(happened, key=lambda event: event[0]))

    at_once = play(2, [(60 * SECOND, "x", KILL), (61 * SECOND, "p", AGENT_2)])
    unstated = Unstated(("kill_grace",), play(2, HUNG), {"kill_grace": (at_once,)})
    seen = list_verdicts(play(turns, events, unstated))
    assert {key for key, verdict in seen.items() if verdict == "failed"} == {*failed.split()}
    assert {*seen.values()} <= {"failed", "not applicable"}


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
