"""The text of a bad ending: how the agent exited, how long after its last output, and its last words (C4, P6)."""

from __future__ import annotations

import pytest

from pytest_agentproc.supervisor import Policy, RunMachine, RunSettings
from pytest_agentproc.supervisor import _events as machine_events
from pytest_agentproc.supervisor._ending import append_stderr, explain_exit, explain_start, prefix_command
from tests.unit.session_stage import Stage

SECOND = 1_000_000_000


def find_error(dialect: str, *events: object) -> str:
    """Give the error of a run whose agent starts at 1 s; each further event comes a second after the one before."""
    machine = RunMachine(RunSettings(dialect, b"", Policy()))
    machine.feed(machine_events.RunStarted(), SECOND)
    machine.feed(machine_events.AgentSpawned(7), SECOND)
    for number, event in enumerate(events, 2):
        machine.feed(event, number * SECOND)  # type: ignore[arg-type]  # the tests give events alone
    return machine.build_result(SECOND).error


def build_output_event(text: str, stream: str = "stdout") -> machine_events.OutputRead:
    """Give the event of a text that the agent prints."""
    return machine_events.OutputRead(stream, text.encode(), drained=True)


def test_a_run_without_a_result_says_the_code_the_time_and_the_end_of_stderr() -> None:
    """An empty error leaves the reader with a guess."""
    assert find_error("claude", build_output_event("out of memory\n", "stderr"), machine_events.AgentExited(3)) == (
        "the agent exited with code 3, 1 s after its last output: out of memory"
    )


def test_a_run_that_a_signal_ended_names_it() -> None:
    """No user should have to look up a number."""
    assert (
        find_error("claude", build_output_event("{}\n"), machine_events.AgentExited(-15))
        == "SIGTERM ended the agent, 1 s after its last output"
    )


def test_a_run_that_fails_by_its_exit_code_is_explained_too() -> None:
    """Plain output has no other result than the exit."""
    assert (
        find_error("raw", machine_events.AgentExited(2))
        == "the agent exited with code 2, 1 s after its start, without any output"
    )


def test_the_agents_own_words_come_first() -> None:
    """They say why, and the exit says that nothing came after them."""
    words = build_output_event('{"type": "error", "message": "stream disconnected"}\n')
    assert find_error("codex", words, machine_events.AgentExited(1)) == (
        "stream disconnected; the agent exited with code 1, 1 s after its last output"
    )


def test_a_result_is_explained_by_its_own_words_alone() -> None:
    """The exit code after an error result says nothing new."""
    failed = build_output_event('{"type": "turn.failed", "error": {"message": "no credit"}}\n')
    assert find_error("codex", failed, machine_events.AgentExited(1)) == "no credit"


@pytest.mark.parametrize(("dialect", "code"), [("raw", 0), ("claude", 0)])
def test_only_a_bad_ending_is_explained(dialect: str, code: int) -> None:
    """Exit 0 is good where nothing else says so, and bad where a result is missing."""
    assert bool(find_error(dialect, machine_events.AgentExited(code))) is (dialect == "claude")


def test_a_lost_turn_says_the_same() -> None:
    """In a session the reader is left alone as easily."""
    stage = Stage()
    stage.greet_as_pi()
    stage.prompt()
    stage.accept_prompt(1)
    stage.agent.output["stderr"] += b"heap\nout of memory\n"
    stage.look()
    stage.advance_to(4)
    stage.exit_agent(-6)
    [outcome] = [event for event in stage.events if event.kind == "outcome"]
    assert outcome.result is not None
    assert outcome.result.error == "SIGABRT ended the agent, 4 s after its last output: heap\nout of memory"


UNSEEN = "it is not known how the agent ended: another part of this process reaped it"


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (143, "the agent exited with code 143 (128 + SIGTERM), 1.5 s after its start, without any output"),
        (
            None,
            f"{UNSEEN}, 1.5 s after its start, without any output",
        ),
        (255, "the agent exited with code 255, 1.5 s after its start, without any output"),
        (-99, "signal 99 ended the agent, 1.5 s after its start, without any output"),
    ],
)
def test_a_code_above_128_names_the_signal_if_there_is_one(status: int | None, words: str) -> None:
    """Programs that handle a signal exit with 128 and its number."""
    assert explain_exit(status, 2 * SECOND, SECOND // 2, None) == words


def test_an_exit_that_is_noted_before_the_last_bytes_is_not_before_them() -> None:
    """The text said "-0 s"."""
    assert explain_exit(0, SECOND, 0, SECOND + 1000) == "the agent exited with code 0, 0 s after its last output"


def test_the_end_of_stderr_is_bounded_and_begins_with_a_whole_line() -> None:
    """A stack trace of many pages is for the log."""
    stderr = b"".join(b"line %d\n" % number for number in range(1000)) + b"\n\n"
    words = append_stderr("it ended", stderr)
    assert words.startswith("it ended: line ")
    assert words.endswith("line 998\nline 999")
    assert len(words) < 1020
    assert append_stderr("it ended", b"x" * 5000) == "it ended: " + "x" * 1000


def test_blank_stderr_adds_nothing() -> None:
    """There is nothing to read in it."""
    assert append_stderr("it ended", b" \n\n") == "it ended"


def test_a_long_command_is_cut() -> None:
    """The prompt may be part of it."""
    words = prefix_command(["pi", "x" * 5000], "no")
    assert words.startswith("pi xxx")
    assert words.endswith("...: no")
    assert len(words) < 1020


def test_a_start_without_an_error_number_names_none() -> None:
    """Errno 0 would say that nothing is wrong."""
    assert (explain_start("no", 0), explain_start("no", 2)) == ("no", "no (errno 2)")


def test_a_run_that_cannot_start_names_the_command_and_the_error_number() -> None:
    """As a session does (P6)."""
    machine = RunMachine(RunSettings("raw", argv=("pi", "--mode", "json")))
    machine.feed(machine_events.RunStarted(), 0)
    machine.feed(machine_events.SpawnFailed(2, "pi: No such file or directory"), 0)
    assert machine.error == "pi --mode json: pi: No such file or directory (errno 2)"
