"""The ACP agent over Claude Code against fakes of claude, in virtual time, before its fix and after it.

The kit is its editor. They differ in when a turn is over: for 0.20.2 it is with the next result, for 0.23.1 when claude
says that it is idle.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.scenario import loads
from tests.clients.findings import mark_finding
from tests.clients.reports import build_acp_program
from tests.clients.running import IGNORES_EOF
from tests.event_lines import list_lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_agentproc.harness import ScenarioRunner
    from pytest_agentproc.plays import PlayResult

    Hold = Callable[..., PlayResult]

pytestmark = pytest.mark.slow

BEFORE, AFTER = "0.20.2", "0.23.1"
PROMPTS = "[{prompt: first}, {wait_for: turn 1}, {wait: 10s}, {prompt: second}]"


@pytest.fixture
def hold(runner: ScenarioRunner) -> Hold:
    """Give a function that holds a session of a version over a claude."""

    def hold(version: str, script: str, drive: str = "[{prompt: hi}]", handler: str = "") -> PlayResult:
        steps = textwrap.indent(textwrap.dedent(script).strip(), "  ")
        head = f"scenario: its claude\nagent: {{dialect: claude, mode: session}}\n{handler}drive: {drive}\n"
        return runner.play(loads(f"{head}script:\n{steps}\nexpect: {{spawns: [0s]}}\n"), build_acp_program(version))

    return hold


def list_turns(played: PlayResult) -> list[tuple[str | None, str | None]]:
    """Give the stop reason and the text of each turn."""
    assert played.answer is not None
    return [(turn.stop_reason, turn.text) for turn in played.answer.turns or ()]


def get_error(played: PlayResult) -> str:
    """Give the error that was the answer to the one prompt."""
    assert played.answer is not None
    (turn,) = played.answer.turns or ()
    return str(turn.error)


def get_stderr(played: PlayResult) -> str:
    """Give what the program printed on stderr."""
    return next(str(event.data["stderr"]) for event in list_lines(played.record) if "program" in event.data)


def get_agent_end(played: PlayResult) -> dict[str, object]:
    """Give how claude ended."""
    ends = [event.data for event in list_lines(played.record) if event.code == "x" and event.data["process"] == "agent"]
    return {key: ends[0][key] for key in ("code", "signal", "leaked") if key in ends[0]}


SEED = """
    - wait_for: prompt 1
    - task: build
    - task_done: build
    - answer: may I go on?
    - background_turn: {task: build, answer: I still wait for your answer}
    - wait_for: prompt 2
    - answer: the files are written
"""
"""The task ends within the turn, so that claude is not idle between its result and the background turn."""

LATE = """
    - wait_for: prompt 1
    - task: build
    - answer: may I go on?
    - silence: 5s
    - task_done: build
    - background_turn: {task: build, answer: I still wait for your answer}
    - wait_for: prompt 2
    - answer: the files are written
"""


@mark_finding(
    "@zed-industries/claude-agent-acp 0.20.2",
    "goes on before it is idle, as a background task has ended",
    "answers the next prompt by that late output, and the prompt's own answer is not shown",
)
def test_before_the_fix_the_next_prompt_is_answered_by_stale_output(hold: Hold) -> None:
    """A result in the queue is taken for the one of the prompt that has just been sent."""
    held = list_turns(hold(BEFORE, SEED, PROMPTS))
    assert held == [("end_turn", "may I go on?"), ("end_turn", "I still wait for your answer")]


@mark_finding(
    "@zed-industries/claude-agent-acp 0.23.1",
    "goes on before it is idle, as a background task has ended",
    "holds the turn until it is idle and shows the output there, and the next prompt has its own answer",
)
def test_after_the_fix_the_next_prompt_has_its_own_answer(hold: Hold) -> None:
    """The same agent, the same prompts."""
    held = list_turns(hold(AFTER, SEED, PROMPTS))
    assert held == [("end_turn", "may I go on?I still wait for your answer"), ("end_turn", "the files are written")]


@mark_finding(
    "@zed-industries/claude-agent-acp 0.20.2",
    "says idle, and goes on when a background task ends",
    "answers the next prompt by that late output, and the prompt's own answer is not shown",
)
def test_before_the_fix_late_output_is_stale_too(hold: Hold) -> None:
    """The state of the session means nothing to it."""
    assert [text for _, text in list_turns(hold(BEFORE, LATE, PROMPTS))] == [
        "may I go on?",
        "I still wait for your answer",
    ]


@mark_finding(
    "@zed-industries/claude-agent-acp 0.23.1",
    "says idle, and goes on when a background task ends, as claude 2.1.330 does",
    "answers the next prompt by that late output, and the prompt's own answer is not shown",
)
def test_after_the_fix_late_output_is_stale_still(hold: Hold) -> None:
    """It drops the late result, and reads the late idle as the end of the prompt's turn."""
    held = hold(AFTER, LATE, PROMPTS)
    assert "consuming background task result" in get_stderr(held)
    assert [text for _, text in list_turns(held)] == ["may I go on?", "I still wait for your answer"]


CANCELLED = """
    - wait_for: prompt 1
    - say: well
    - wait_for: cancel
    - acknowledge: cancel
    - wait_for: prompt 2
    - answer: two
"""
CANCELS = "[{prompt: first}, {wait_for: status prompting}, {cancel: {turn: 1}, after: 1s}, {prompt: second}]"


@mark_finding(
    "@zed-industries/claude-agent-acp 0.20.2", "is told to cancel", "gives the stop reason, and the next answer"
)
def test_before_the_fix_a_cancel_leaves_the_session(hold: Hold) -> None:
    """The error result ends the turn."""
    assert list_turns(hold(BEFORE, CANCELLED, CANCELS)) == [("cancelled", "well"), ("end_turn", "two")]


@mark_finding(
    "@zed-industries/claude-agent-acp 0.23.1",
    "is told to cancel",
    "gives the stop reason, and ends the next prompt at once without an answer",
)
def test_after_the_fix_the_prompt_after_a_cancel_has_no_answer(hold: Hold) -> None:
    """The error result ends the turn, and the idle after it ends the next one."""
    assert list_turns(hold(AFTER, CANCELLED, CANCELS)) == [("cancelled", "well"), ("end_turn", "")]


@pytest.fixture(params=[BEFORE, AFTER])
def version(request: pytest.FixtureRequest) -> str:
    """Give both versions, one after the other."""
    return str(request.param)


@mark_finding(
    "@zed-industries/claude-agent-acp 0.20.2 and 0.23.1",
    "asks for a permission",
    "asks its client, and its answer decides what the agent does",
)
def test_a_permission_is_the_clients(hold: Hold, version: str) -> None:
    """Two protocols lie between the question and its answer."""
    script = """
        - wait_for: prompt 1
        - tool: {id: a, name: Bash, input: {command: ls}}
        - ask: {permission: Bash, allowed: [{say: it may}]}
        - tool_done: {id: a, output: x}
        - answer: done
    """
    held = hold(version, script, handler="handler: {permission: allow}\n")
    assert list_turns(held) == [("end_turn", "it maydone")]
    assert get_agent_end(held) == {"code": 0}


@mark_finding(
    "@zed-industries/claude-agent-acp 0.20.2 and 0.23.1",
    "calls the hook of a tool before the tool is shown",
    "complains on stderr that nobody waits for it: the callback comes with the tool",
)
def test_a_hook_before_its_tool_has_no_callback(hold: Hold, version: str) -> None:
    """The race of docs/explanation/five-reports.md: the callback is registered when the tool is shown."""
    script = """
        - wait_for: prompt 1
        - ask: {hook: hook_0, event: PostToolUse}
        - tool: {id: toolu_asked_1, name: Bash, input: {command: ls}}
        - tool_done: {id: toolu_asked_1, output: x}
        - answer: done
    """
    held = hold(version, script)
    assert "No onPostToolUseHook found for tool use ID: toolu_asked_1" in get_stderr(held)
    assert list_turns(held) == [("end_turn", "done")]


@mark_finding(
    "@zed-industries/claude-agent-acp 0.20.2 and 0.23.1", "dies in the middle of a prompt", "answers it by an error"
)
def test_a_crash_is_an_error_of_the_prompt(hold: Hold, version: str) -> None:
    """Its code is on stderr only."""
    held = hold(version, "- wait_for: prompt 1\n- say: well\n- exit: 3")
    assert "The Claude Agent process exited unexpectedly. Please start a new session." in get_error(held)
    assert "Claude Code process exited with code 3" in get_stderr(held)


@pytest.mark.parametrize(
    ("script", "reported"),
    [
        ("- say: well\n- exit: 0", "Session did not end in result"),
        ("- say: well\n- result: {text: no credit, is_error: true}", "Internal error: no credit"),
        ('- raw: "oops\\n"\n- answer: done', "CLI output was not valid JSON."),
    ],
    ids=["exit", "error", "noise"],
)
@mark_finding(
    "@zed-industries/claude-agent-acp 0.20.2 and 0.23.1",
    "exits 0 without a result, reports an error result, or prints a line that is no JSON",
    "answers the prompt by an error that says so",
)
def test_what_is_no_answer_is_an_error_of_the_prompt(hold: Hold, version: str, script: str, reported: str) -> None:
    """The SDK inside drops lines that are no JSON by now, and threw at that time."""
    assert reported in get_error(hold(version, f"- wait_for: prompt 1\n{script}"))


@mark_finding(
    "@zed-industries/claude-agent-acp 0.20.2 and 0.23.1",
    "dies before the handshake",
    "answers session/new by an error that does not tell why",
)
def test_a_death_before_the_handshake_is_an_error_without_a_cause(hold: Hold, version: str) -> None:
    """Claude's words on stderr are nowhere."""
    held = hold(version, "- raw: {text: no licence, to: stderr}\n- exit: 1")
    assert "Query closed before response received" in get_error(held)
    assert "no licence" not in get_stderr(held)


@mark_finding(
    "@zed-industries/claude-agent-acp 0.20.2 and 0.23.1",
    "serves a client that closes its stdin",
    "lives on, and claude with it",
)
def test_the_end_of_stdin_is_not_noticed(hold: Hold, version: str) -> None:
    """An editor that quits must end it by TERM, and does so after all graces that it may use, 5.25 s."""
    held = hold(version, "- wait_for: prompt 1\n- answer: done")
    assert [event.data["program"] for event in list_lines(held.record) if "program" in event.data] == ["dies of TERM"]
    assert [event.at for event in list_lines(held.record) if event.code == "i" and event.data.get("eof")] == [
        5_250_000_000
    ]


@mark_finding(
    "@zed-industries/claude-agent-acp 0.20.2 and 0.23.1",
    "ignores the end of stdin, and the client ends the agent by TERM",
    "goes without a word to claude, which lives on",
)
def test_an_agent_that_is_terminated_leaves_its_claude(hold: Hold, version: str) -> None:
    """It has no handler, and a signal does not run the steps that its SDK does at an exit."""
    held = hold(version, f"{IGNORES_EOF}\n- wait_for: prompt 1\n- answer: done\n- silence: for ever")
    assert [event for event in list_lines(held.record) if event.code == "s"] == []
    assert [event.data["leaked"] for event in list_lines(held.record) if "leaked" in event.data] == ["alive"]
