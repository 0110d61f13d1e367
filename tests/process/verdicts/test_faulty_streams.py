"""Checks that no built-in defect fails, as the fault is not a wrong judgement: each is red if the work is done wrongly.

The kit's own supervisor is right in all these scenarios. Here one function that starts, reads or writes is another one.
"""

from __future__ import annotations

import asyncio
from asyncio.subprocess import PIPE
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from pytest_agentproc import subjects
from pytest_agentproc.supervisor import _agent_process, _spawn, _streams
from pytest_agentproc.supervisor.dialects import _claude_session_protocol, _json
from pytest_agentproc.tree import AgentChild
from pytest_agentproc.verdict import Verdict, judge_all_expectations
from tests.bundled import load_bundled

if TYPE_CHECKING:
    from pytest_agentproc.harness import ScenarioRunner

Break = Callable[[pytest.MonkeyPatch], None]


def start_with_path_alone(patch: pytest.MonkeyPatch, first: int = 1) -> None:
    """Start each agent from this number on without the environment of its order."""
    started: list[AgentChild] = []

    def start(argv: Any, cwd: Any, env: Any, containment: str) -> AgentChild:
        kept = {"PATH": env["PATH"]} if len(started) + 1 >= first else env
        started.append(AgentChild(argv, cwd, kept, containment))
        return started[-1]

    patch.setattr(_spawn, "AgentChild", start)


def start_by_a_shell(patch: pytest.MonkeyPatch) -> None:
    """Cut the command line at its blanks, as a shell without quotes does."""

    def start(argv: Any, *more: Any) -> AgentChild:
        return AgentChild(" ".join(argv).split(), *more)

    patch.setattr(_spawn, "AgentChild", start)


def write_once(patch: pytest.MonkeyPatch) -> None:
    """Take what one write has taken for the whole prompt."""

    def note_written(feeder: _streams.StdinFeeder, _count: int) -> None:
        feeder._rest = memoryview(b"")  # noqa: SLF001

    patch.setattr(_streams.StdinFeeder, "note_written", note_written)


def keep_half_a_line(patch: pytest.MonkeyPatch) -> None:
    """Read the first line of the next agent behind the last one of the agent that has crashed."""
    kept, splitter = bytearray(), _streams.LineSplitter
    begin = splitter.__init__

    def begin_with_rest(self: _streams.LineSplitter) -> None:
        begin(self)
        self._rest = kept

    patch.setattr(splitter, "__init__", begin_with_rest)
    patch.setattr(splitter, "flush", lambda _self: [])


def allow_without_input(patch: pytest.MonkeyPatch) -> None:
    """Allow a tool, and give it an empty input."""
    protocol = _claude_session_protocol.ClaudeSessionProtocol
    encode = protocol.encode_answer

    def encode_without_input(self: Any, question: Any, *, allowed: bool | None) -> bytes:
        return encode(self, replace(question, detail={**question.detail, "input": {}}), allowed=allowed)

    patch.setattr(protocol, "encode_answer", encode_without_input)


def die_at(patch: pytest.MonkeyPatch, word: bytes) -> None:
    """Read nothing more once a line with this word has come."""
    dead: list[bytes] = []

    def wrap(decode: Callable[[Any, bytes], list[Any]]) -> Callable[[Any, bytes], list[Any]]:
        def decode_until_dead(self: Any, line: bytes) -> list[Any]:
            dead.extend([line] if word in line else [])
            return [] if dead else decode(self, line)

        return decode_until_dead

    patch.setattr(_json.ObjectDecoder, "decode", wrap(_json.ObjectDecoder.decode))


def mix_stderr_into_stdout(patch: pytest.MonkeyPatch) -> None:
    """Read both streams as one."""
    handle = _agent_process.ProcessMachine._handle_output  # noqa: SLF001

    def handle_as_stdout(self: Any, event: Any, now: int) -> Any:
        return handle(self, replace(event, stream="stdout"), now)

    patch.setattr(_agent_process.ProcessMachine, "_handle_output", handle_as_stdout)


OF_SESSIONS = ("claude", "pi", "acp", "codex")
CASES: list[tuple[Break, str, str]] = [
    *((start_with_path_alone, f"session-sees-its-prompt[{name}]", "processes.agent.env") for name in OF_SESSIONS),
    *(
        (
            partial(start_with_path_alone, first=2),
            f"session-restart-keeps-its-environment[{name}]",
            "processes.agent 2.env",
        )
        for name in OF_SESSIONS
    ),
    *(
        (start_with_path_alone, f"sees-its-prompt-on-stdin[{name}]", "processes.agent.env")
        for name in ("claude", "codex", "opencode")
    ),
    *(
        (start_by_a_shell, f"sees-its-prompt-with-quotes[{name}]", "received.prompt")
        for name in ("claude", "codex", "gemini", "opencode", "pi")
    ),
    *(
        (write_once, f"sees-a-large-prompt-on-stdin[{name}]", "received.stdin")
        for name in ("claude", "codex", "opencode")
    ),
    *((keep_half_a_line, f"session-dies-in-half-a-line[{name}]", "turns.2.text") for name in OF_SESSIONS),
    (allow_without_input, "claude-session-allowed-tool-keeps-its-input", "received.stdin"),
    (partial(die_at, word=b"image/png"), "acp-session-says-more-than-text", "turns.1.outcome"),
    (partial(die_at, word=b"isReplay"), "claude-session-repeats-a-prompt-as-text", "turns.1.outcome"),
    (partial(die_at, word=b"isReplay"), "claude-repeats-a-prompt-as-text", "text"),
    *(
        (mix_stderr_into_stdout, f"session-stderr-before-the-end-of-the-answer[{name}]", "turns.1.outcome")
        for name in ("claude", "acp")
    ),
]


@pytest.mark.once
@pytest.mark.parametrize(("break_it", "name", "key"), CASES, ids=[name for _, name, _ in CASES])
def test_a_supervisor_that_starts_reads_or_writes_wrongly_is_red(
    runner: ScenarioRunner, monkeypatch: pytest.MonkeyPatch, break_it: Break, name: str, key: str
) -> None:
    """It passes with the function as it is: tests of the corpus show that."""
    break_it(monkeypatch)
    rows = judge_all_expectations(runner.play(load_bundled(name), subjects.reference_supervisor()))
    assert key in [row.key for row in rows if row.verdict is Verdict.FAILED]


@pytest.mark.once
@pytest.mark.parametrize("name", ["claude", "codex", "gemini", "opencode", "pi"])
def test_a_supervisor_that_pipes_its_prompt_is_right(runner: ScenarioRunner, name: str) -> None:
    """Each of these CLIs takes its prompt as an argument or on stdin: no user notices a difference."""
    scenario = load_bundled(f"sees-its-prompt-with-quotes[{name}]")

    async def pipe_the_prompt(order: Any) -> dict[str, Any]:
        argv = [word for word in order.argv if word != order.prompt]
        agent = await asyncio.create_subprocess_exec(
            *argv, env=order.env, cwd=order.cwd, stdin=PIPE, stdout=PIPE, stderr=PIPE
        )
        out, _ = await agent.communicate(order.prompt.encode())
        return {"outcome": "completed", "text": "hi" if b"hi" in out else ""}

    played = runner.play(scenario, subjects.Function(pipe_the_prompt, limits={}, cannot=["argv"]))
    found = {row.key: row.verdict for row in judge_all_expectations(played)}
    assert found == dict.fromkeys(["outcome", "text", "received.prompt", "leaks"], Verdict.PASSED)
