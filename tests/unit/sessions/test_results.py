"""The values of a session beside the outcome: transcripts, warnings, noise, stderr, the agent's own end."""

from __future__ import annotations

from typing import Any

from pytest_agentproc.supervisor import Policy, SessionEvent, TurnResult
from pytest_agentproc.supervisor import _events as machine_events
from pytest_agentproc.supervisor._turns import TurnAnswer
from pytest_agentproc.supervisor.dialects import Finished, Message, Piece, ToolProgress, ToolStarted, TurnProgress
from tests.unit.session_stage import Stage


def build_greeted_pi(**limits: Any) -> Stage:
    """Have a pi that has greeted."""
    stage = Stage("pi", policy=Policy(**limits))
    stage.greet_as_pi()
    return stage


def list_results(stage: Stage, kind: str = "outcome") -> list[TurnResult]:
    """Give the results that were told, in order."""
    return [event.result for event in stage.events if event.kind == kind and event.result is not None]


def collect_answer(*progress: TurnProgress) -> TurnAnswer:
    """Collect what is said, to its end."""
    collected = TurnAnswer()
    for event in progress:
        collected.add_progress(event)
    collected.note_end(Finished(True))
    return collected


def test_a_turns_transcript_is_all_its_messages() -> None:
    """Each on a line of its own, as a run's; the text is the last of them alone."""
    stage = build_greeted_pi()
    stage.prompt()
    stage.accept_prompt(1)
    stage.end_message("looking", "toolUse")
    stage.answer_and_settle("found")
    stage.prompt()
    stage.accept_prompt(2)
    stage.answer_and_settle("again")
    assert [result.transcript for result in list_results(stage)] == ["looking\nfound", "again"]


def test_a_turn_that_was_cut_short_has_the_transcript_till_then() -> None:
    """The words before a timeout are not lost with it."""
    stage = build_greeted_pi(prompt_timeout=10)
    stage.prompt()
    stage.accept_prompt(1)
    stage.end_message("looking", "toolUse")
    stage.advance_to(10)
    [result] = list_results(stage)
    assert (result.outcome.value, result.transcript) == ("timed_out", "looking")


def test_a_transcript_has_the_bound_of_a_runs_and_says_so() -> None:
    """The last lines are kept, the last message whole, and a warning tells that there were more (F6)."""
    stage = build_greeted_pi(max_transcript_bytes=8)
    stage.prompt()
    stage.accept_prompt(1)
    for word in ("one", "two", "three"):
        stage.end_message(word, "toolUse")
    stage.answer_and_settle("four")
    [result] = list_results(stage)
    assert (result.text, result.transcript) == ("four", "four")
    assert stage.session.warnings == ("transcript_truncated",)


def test_a_background_turn_has_a_transcript_of_its_own() -> None:
    """Its words stand in no prompt's (B1)."""
    stage = build_greeted_pi()
    stage.print_lines({"type": "agent_start"})
    stage.end_message("looked", "toolUse")
    stage.answer_and_settle("done")
    stage.prompt()
    stage.accept_prompt(1)
    stage.answer_and_settle("yes")
    assert [result.transcript for result in list_results(stage, "background")] == ["looked\ndone"]
    assert [result.transcript for result in list_results(stage)] == ["yes"]


def test_blocks_of_one_name_are_one_message() -> None:
    """A message may come block by block, with a tool's result in between."""
    said = collect_answer(
        Message("a", id="m"),
        ToolStarted("t", "Bash"),
        Message("b", id="m"),
        Message("c", id="n"),
    )
    assert (said.text, said.transcript) == ("c", "ab\nc")


def test_pieces_are_no_message_where_the_whole_follows() -> None:
    """A sub-agent's tool in between ends nothing; only what comes in pieces alone ends at a tool."""
    whole = collect_answer(Piece("a"), ToolProgress(), Piece("b"), Message("ab"))
    pieces = collect_answer(Piece("a"), ToolProgress(ends_message=True), Piece("b"))
    assert (whole.transcript, pieces.transcript) == ("ab", "a\nb")


def test_warnings_are_collected_and_bounded() -> None:
    """The last thousand, and of each its beginning: a session may last for months."""
    stage = build_greeted_pi()
    for number in range(1100):
        stage.session.receive_event(SessionEvent(0, "warning", text=f"{number} " + "x" * 2000))
    assert (len(stage.session.warnings), len(stage.session.warnings[0])) == (1000, 1000)
    assert stage.session.warnings[0].startswith("100 ")


def test_noise_and_stderr_outlive_the_agent() -> None:
    """Its last words are there until another one is started."""
    stage = build_greeted_pi()
    stage.agent.output["stdout"] += b"hello\n{\n"
    stage.agent.output["stderr"] += b"panic"
    stage.look()
    stage.exit_agent(3)
    assert (stage.session.noise, stage.session.stderr_tail) == (2, b"panic")
    assert (stage.session.agent_status, stage.session.forced) == (3, False)
    stage.advance_to(1)
    assert (stage.session.noise, stage.session.stderr_tail, stage.session.agent_status) == (2, b"", 3)


def test_the_status_of_an_agent_that_was_forced_says_so() -> None:
    """And there is none before the first of them has ended."""
    stage = build_greeted_pi()
    before = stage.session.agent_status
    stage.send_intents(machine_events.StopAgent())
    assert (before, stage.session.agent_status, stage.session.forced) == (None, -15, True)


def test_the_status_of_an_abandoned_agent_is_known() -> None:
    """A caller that cancels the session can see what became of the agent (T4)."""
    stage = build_greeted_pi()
    stage.driver.abandon()
    assert (stage.session.agent_status, stage.session.forced) == (-9, True)
