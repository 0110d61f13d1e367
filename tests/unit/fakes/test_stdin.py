"""How a fake reads stdin before it begins; `tests/fidelity/stdin.py` compares it with the real CLIs."""

from __future__ import annotations

import pytest

from pytest_agentproc.fake_agents.flags import adapt_program_to_arguments
from pytest_agentproc.harness._agent_launch import describe_accepted_flags
from pytest_agentproc.scenario import loads
from pytest_agentproc.vocabulary import Policy
from tests.unit.bookkeeping import StagedPlay

SECOND = 1_000_000_000
MODES = ("claude", "codex", "pi", "opencode", "gemini", "{dialect: gemini, mode: stream}")
PATIENCE_BY_MODE = {"claude": 3 * SECOND, "gemini": SECOND // 2, "{dialect: gemini, mode: stream}": SECOND // 2}
EMPTY_STDIN_CODE_BY_MODE = {"pi": 0, "gemini": 42, "{dialect: gemini, mode: stream}": 42}
PROMPT_OPTION = {"gemini": ["-p"], "{dialect: gemini, mode: stream}": ["-p"]}


def stage(agent: str, script: str = "[{answer: done}]", argv: list[str] | None = None) -> StagedPlay:
    """Put the fake of a script on a stage, with the kit's arguments or with others."""
    scenario = loads(f"scenario: a\nagent: {agent}\nscript: {script}\n")
    program = scenario.bind(Policy()).program
    if argv is not None:
        table = describe_accepted_flags(scenario)["flags"]
        program, _ = adapt_program_to_arguments({**program, "argv": argv}, table, ())
    return StagedPlay(program=program)


def has_answered(done: list[tuple[object, ...]]) -> bool:
    """Say whether it printed its answer."""
    return any(act[0] == "stdout" and b"done" in act[1] for act in done)  # type: ignore[operator]


@pytest.mark.parametrize("agent", MODES)
def test_a_run_reads_stdin_to_its_end_before_it_begins(agent: str) -> None:
    """The prompt is an argument. A pipe with a byte in it is read to its end by each of them."""
    play = stage(agent)
    assert not has_answered(play.grant(0, stdin=b"more"))
    assert not has_answered(play.grant(3600 * SECOND))
    assert has_answered(play.grant(3601 * SECOND, stdin=b""))


@pytest.mark.parametrize("agent", MODES)
def test_an_open_pipe_without_a_byte_stops_a_run_for_ever_or_for_a_moment(agent: str) -> None:
    """Claude and gemini go on without it."""
    patience = PATIENCE_BY_MODE.get(agent)
    play = stage(agent)
    assert not has_answered(play.grant(0))
    assert play.player.earliest_wake_instant == patience
    if patience is None:
        assert not has_answered(play.grant(3600 * SECOND))
        return
    done = play.grant(patience)
    assert has_answered(done)
    assert (b"no stdin data received in 3s" in done[0][1]) == (agent == "claude")


_EMPTY_COMMANDS = {"codex": ["exec"], "opencode": ["run"], "gemini": ["--skip-trust"]}


@pytest.mark.parametrize("agent", MODES)
def test_a_run_without_a_prompt_ends_if_its_stdin_is_empty(agent: str) -> None:
    """Claude and gemini do not wait for the end of stdin."""
    play = stage(agent, argv=_EMPTY_COMMANDS.get(agent.removeprefix("{dialect: ").partition(",")[0], []))
    patience = PATIENCE_BY_MODE.get(agent)
    begun = play.grant(0)
    assert [act for act in begun if act[0] == "exit"] == []
    done = play.grant(5) if patience is None else play.grant(patience)
    if patience is None:
        done = play.grant(6, stdin=b"")
    assert done[-1] == ("exit", EMPTY_STDIN_CODE_BY_MODE.get(agent, 1))


@pytest.mark.parametrize("steps", ["stdin: stop", "close: stdin", "{when: eof, do: [{exit: 3}]}", "wait_for: eof"])
def test_a_script_says_itself_how_stdin_is_read(steps: str) -> None:
    """Then the agent does not wait before it."""
    step = steps if steps.startswith("{") else f"{{{steps}}}"
    assert b"hi" in b"".join(act[1] for act in stage("codex", f"[{{say: hi}}, {step}]").grant(0) if act[0] == "stdout")


def test_codex_says_that_it_reads_stdin() -> None:
    """Its first line on stderr comes at once, for a prompt on stdin another one."""
    assert stage("codex").grant(0) == [("stderr", b"Reading additional input from stdin...\n")]
    assert stage("codex", argv=["exec"]).grant(0) == [("stderr", b"Reading prompt from stdin...\n")]
    assert stage("codex", argv=["exec", "-"]).grant(0) == []


def test_codex_that_resumes_a_session_reads_stdin_for_a_prompt_only() -> None:
    """`tests/fidelity` saw both with codex itself: with a prompt it goes on although stdin stays open."""
    resume = ["exec", "resume", "--last"]
    assert stage("codex", argv=[*resume, "hi"]).grant(0)[-1] == ("exit", 0)
    assert stage("codex", argv=resume).grant(0) == [("stderr", b"Reading prompt from stdin...\n")]
