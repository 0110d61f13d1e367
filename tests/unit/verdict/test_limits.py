"""Limits in another order than a file has in mind: results that follow from them alone are no fault."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_agentproc.errors import AdapterError, Deadlock
from pytest_agentproc.record import Record
from pytest_agentproc.verdict import Verdict, choose_overall_verdict, judge_all_expectations
from pytest_agentproc.vocabulary import RunReport
from tests.event_lines import add_line
from tests.unit.handmade import BoundScenario, Expected, Reference, Script, play_by_hand

if TYPE_CHECKING:
    from pytest_agentproc.plays import PlayResult

FILE = (Expected("outcome", "inactive"), Expected("elapsed", 60), Expected("leaks", []))
HERE: dict[str, Any] = {"outcome": "inactive", "elapsed": 60}
OTHER: dict[str, Any] = {"outcome": "overran", "elapsed": 50}
LATER: dict[str, Any] = {"outcome": "inactive", "elapsed": 70}
SCRIPT = Script()
NOT_JUDGED = "not applicable"


def build_play(
    answer: dict[str, Any] | Exception,
    reference: Reference | None = None,
    *,
    leak: str = "",
    script: Script = SCRIPT,
    file: tuple[Expected, ...] = FILE,
) -> PlayResult:
    """Write a run by hand: what was answered, or the fault, and who was left."""
    bound = BoundScenario(file, scenario=script)
    record = Record()
    add_line(record, 0, "p", {"process": "agent", "seen": True, "parent": "supervisor", "line": 0})
    if leak:
        add_line(record, 60, "m", {"process": leak, "leaked": "alive", "line": 4})
    if isinstance(answer, Exception):
        return play_by_hand(bound, record, None, answer, reference=reference)
    return play_by_hand(bound, record, RunReport(**answer), reference=reference)


def list_verdicts(played: PlayResult) -> list[str]:
    """Judge it, check by check."""
    return [row.verdict.value for row in judge_all_expectations(played)]


def build_reference(there: dict[str, Any] | Exception, here: dict[str, Any] | Exception = HERE) -> Reference:
    """Write by hand what the kit's own supervisor does under the subject's limits, and under the file's."""
    return Reference(build_play(there), build_play(here))


def test_another_story_is_not_judged() -> None:
    """Under these limits the longest run is over before the silence is, whatever the supervisor says of it."""
    for answer in (OTHER, HERE, {"outcome": "failed", "elapsed": 9}):
        assert list_verdicts(build_play(answer, build_reference(OTHER))) == [NOT_JUDGED, NOT_JUDGED, "passed"]
    rows = judge_all_expectations(build_play({"outcome": "overran", "elapsed": 51}, build_reference(OTHER)))
    assert rows[0].seen == "overran; with these limits the kit's own supervisor fails this check, too: outcome overran"


def test_a_scenario_of_which_nothing_is_left_is_not_passed() -> None:
    """A supervisor that leaves nothing has not shown the file's subject; without `leaks` in it nothing is judged."""
    played = build_play(OTHER, build_reference(OTHER))
    rows = [row for row in judge_all_expectations(played) if row.key != "leaks"]
    assert choose_overall_verdict(rows) is Verdict.NOT_APPLICABLE


def test_an_instant_that_limits_move_is_not_judged_and_all_else_is() -> None:
    """The outcome is the same, so that it counts."""
    assert list_verdicts(build_play(LATER, build_reference(LATER))) == ["passed", NOT_JUDGED, "passed"]
    assert list_verdicts(build_play(OTHER, build_reference(LATER))) == ["failed", NOT_JUDGED, "passed"]


def test_a_scenario_whose_deciding_keys_limits_move_is_not_judged() -> None:
    """The rest of it has no weight alone; where something else decides, too, the rest is judged."""
    script = Script(catches={"a": "elapsed"})
    assert list_verdicts(build_play(LATER, build_reference(LATER), script=script)) == [NOT_JUDGED, NOT_JUDGED, "passed"]
    script = Script(catches={"a": "elapsed", "b": "outcome"})
    assert list_verdicts(build_play(LATER, build_reference(LATER), script=script)) == ["passed", NOT_JUDGED, "passed"]


def test_a_text_that_limits_cut_off_is_not_judged() -> None:
    """The reference supervisor has none to report; another reports an empty one."""
    file = (Expected("elapsed", 60), Expected("text", {"exact": "done"}), Expected("leaks", []))
    script = Script(catches={"a": "elapsed", "b": "text"})

    def run(elapsed: int, text: str | None, reference: Reference | None = None) -> PlayResult:
        return build_play({"elapsed": elapsed, "text": text}, reference, script=script, file=file)

    there, here = run(50, None), run(60, "done")
    assert list_verdicts(there) == ["failed", NOT_JUDGED, "passed"]
    assert list_verdicts(run(50, "", Reference(there, here))) == [NOT_JUDGED, NOT_JUDGED, "passed"]
    assert list_verdicts(run(60, "", Reference(here, here))) == ["passed", "failed", "passed"]


def test_what_limits_do_not_explain_is_failed() -> None:
    """The kit's own supervisor meets it under both, or under neither: then the file says something of its own."""
    assert list_verdicts(build_play(OTHER, build_reference(HERE))) == ["failed", "failed", "passed"]
    assert list_verdicts(build_play(OTHER, build_reference(OTHER, OTHER))) == ["failed", "failed", "passed"]


def test_who_was_left_was_left_under_any_limits() -> None:
    """An orphan is one."""
    assert list_verdicts(build_play(OTHER, build_reference(OTHER), leak="child1")) == [NOT_JUDGED, NOT_JUDGED, "failed"]


def test_a_run_without_an_end_is_excused_by_a_reference_without_one() -> None:
    """A limit that is off ends nothing, so nothing is asked of it; a left process was left under any limits.

    One whose limits do end the run, and that never comes to it, has failed.
    """
    stuck = Deadlock("nobody can move")
    assert list_verdicts(build_play(stuck, build_reference(stuck))) == [NOT_JUDGED, NOT_JUDGED, NOT_JUDGED]
    assert list_verdicts(build_play(stuck, build_reference(stuck), leak="child1")) == [NOT_JUDGED, NOT_JUDGED, "failed"]
    assert list_verdicts(build_play(stuck, build_reference(OTHER)))[0] == "failed"


def test_an_error_in_the_adapter_is_reported_whatever_the_limits() -> None:
    """It says nothing of the supervisor, and a person has to mend it."""
    assert list_verdicts(build_play(AdapterError("it raised"), build_reference(OTHER)))[0] == "adapter error"
