"""The core on the real clock with real programs, on both loops: nothing hangs, nothing leaks, nothing outlives it."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from pytest_agentproc.errors import UsageError
from pytest_agentproc.supervisor import Outcome, Policy, Result, run_once
from tests.process.stand import is_gone

if TYPE_CHECKING:
    from collections.abc import Callable

MIB = 1 << 20
GRACE = 0.2
NEVER = "sleep 1000"
DEAF_AFTER_ITS_END = "trap '' TERM; echo '{\"type\": \"agent_end\"}'; " + NEVER


@dataclass
class Trace:
    """What the supervisor did, and what is called when it first reads."""

    events: list[tuple[int, str, dict[str, Any]]] = field(default_factory=list)
    on_output: Callable[[], None] | None = None

    def __call__(self, at: int, code: str, data: dict[str, Any]) -> None:
        """Keep what was done."""
        self.events.append((at, code, data))
        if code == "o" and self.on_output is not None:
            self.on_output()

    def signals(self) -> dict[str, int]:
        """Give the signals that it sent, with their instants."""
        return {data["signal"]: at for at, code, data in self.events if code == "s"}


def supervise(backend: str, *argv: str, **options: Any) -> Result:
    """Run one agent on an event loop of its own, in real time."""
    return anyio.run(partial(run_once, argv, **options), backend=backend)


def shell(backend: str, script: str, **options: Any) -> Result:
    """Run a shell as the agent."""
    return supervise(backend, "sh", "-c", script, **options)


def cancelled(backend: str, script: str) -> bool:
    """Run a shell as the agent and cancel the run at its first output; say whether the run was cut."""
    trace = Trace()

    async def main() -> bool:
        with anyio.CancelScope() as scope:
            trace.on_output = scope.cancel
            await run_once(["sh", "-c", script], trace=trace)
        return scope.cancelled_caught

    return anyio.run(main, backend=backend)


@pytest.mark.parametrize(
    ("script", "outcome", "status", "code"),
    [
        ("echo hello", Outcome.COMPLETED, 0, 0),
        ("echo hello; exit 3", Outcome.FAILED, 3, 3),
        ("echo hello; kill -9 $$", Outcome.INCOMPLETE, -9, 137),
        ("echo hello; kill -15 $$", Outcome.INCOMPLETE, -15, 143),
    ],
)
def test_an_exit_is_told_as_it_was(backend: str, script: str, outcome: Outcome, status: int, code: int) -> None:
    """The caller exits as the agent did, a signal included, and has what it printed."""
    result = shell(backend, script)
    assert (result.outcome, result.agent_status, result.exit_code) == (outcome, status, code)
    assert (result.text, result.forced) == ("hello", False)


@pytest.mark.parametrize(("mode", "code"), [(None, 127), (0o600, 126)])
def test_an_agent_that_cannot_be_started_is_an_outcome(
    backend: str, tmp_path: Path, mode: int | None, code: int
) -> None:
    """A file that is missing is told from one that cannot be executed, as a shell does (P6)."""
    agent = tmp_path / "agent"
    if mode is not None:
        agent.write_text("#!/bin/sh\n")
        agent.chmod(mode)
    result = supervise(backend, str(agent))
    assert (result.outcome, result.exit_code, result.agent_status) == (Outcome.SPAWN_FAILED, code, None)
    assert str(agent) in result.error


def test_a_prompt_too_long_for_an_argument_is_an_outcome(backend: str) -> None:
    """The kernel refuses it; the caller is told and not hit by an exception."""
    result = supervise(backend, "true", "x" * (1 << 18))
    assert (result.outcome, result.exit_code) == (Outcome.SPAWN_FAILED, 126)


def test_no_command_is_the_callers_mistake() -> None:
    """It is raised before anything is started."""
    with pytest.raises(UsageError, match="argv is empty, but must name the agent's command"):
        supervise("asyncio")


def test_the_agent_is_reaped(backend: str) -> None:
    """A zombie would keep its pid for as long as the supervisor lives (T3)."""
    result = shell(backend, "echo $$")
    assert result.text is not None
    assert not Path("/proc", result.text).exists()


@pytest.mark.parametrize("streams", ["", ">/dev/null 2>&1"], ids=["holds-the-pipes", "holds-nothing"])
def test_leftovers_end_before_the_run_returns(backend: str, streams: str) -> None:
    """An agent's exit leaves nobody behind, whether or not its pipes show it (T6)."""
    result = shell(backend, f"{NEVER} {streams} & echo $!")
    assert (result.outcome, result.forced) == (Outcome.COMPLETED, False)
    assert result.text is not None
    assert is_gone(int(result.text), 0)


@pytest.mark.slow
def test_deaf_leftovers_are_killed_after_their_grace(backend: str) -> None:
    """They had their chance, which was no shorter than promised (T6)."""
    trace = Trace()
    policy = Policy(linger_kill_grace=GRACE)
    result = shell(backend, f"trap '' TERM; {NEVER} & echo $!", policy=policy, trace=trace)
    assert list(trace.signals()) == ["TERM", "KILL"]
    assert trace.signals()["KILL"] - trace.signals()["TERM"] >= GRACE * 1e9
    assert result.text is not None
    assert is_gone(int(result.text), 0)


@pytest.mark.slow
def test_a_deaf_agent_is_killed_and_not_before_its_grace(backend: str) -> None:
    """Its result was good and stays good; the rest is force (C1)."""
    trace = Trace()
    policy = Policy(linger_grace=0.0, linger_kill_grace=GRACE)
    result = shell(backend, DEAF_AFTER_ITS_END, dialect="pi", policy=policy, trace=trace)
    assert (result.outcome, result.agent_status, result.forced) == (Outcome.COMPLETED, -9, True)
    assert list(trace.signals()) == ["TERM", "KILL"]
    assert trace.signals()["KILL"] - trace.signals()["TERM"] >= GRACE * 1e9


def test_a_silent_agent_is_terminated_and_not_before_its_limit(backend: str) -> None:
    """Real time counts where no virtual clock runs (A1)."""
    result = shell(backend, f"exec {NEVER}", policy=Policy(inactivity_timeout=0.05))
    assert (result.outcome, result.agent_status, result.exit_code) == (Outcome.INACTIVE, -15, 124)
    assert result.elapsed >= 50_000_000


def test_a_long_prompt_goes_through_an_agent_that_echoes_it(backend: str) -> None:
    """Whoever writes all before reading hangs here, at 64 KiB (F5)."""
    prompt = ("0" * 1023 + "\n") * (MIB // 1024)
    result = supervise(backend, "cat", prompt=prompt)
    assert result.outcome is Outcome.COMPLETED
    assert result.text == prompt.removesuffix("\n")


def test_a_prompt_that_nobody_reads_harms_nobody(backend: str) -> None:
    """A broken pipe is never raised, and an agent that needs no input may succeed (F5)."""
    result = shell(backend, "exec <&-; echo done", prompt=b"x" * MIB)
    assert (result.outcome, result.text) == (Outcome.COMPLETED, "done")


def test_much_output_on_both_streams_is_all_read(backend: str) -> None:
    """An agent that fills stderr first would otherwise never come to speak (F4)."""
    script = f"import sys; sys.stderr.write('e' * {MIB}); print('x' * {MIB})"
    result = supervise(backend, sys.executable, "-IS", "-c", script)
    assert result.outcome is Outcome.COMPLETED
    assert result.text == "x" * MIB
    assert result.stderr_tail == b"e" * 65536


def test_a_cancelled_run_leaves_nobody(backend: str, tmp_path: Path) -> None:
    """The tree is killed, deaf ones too, and the agent reaped before the cancellation goes on."""
    pids = tmp_path / "pids"
    assert cancelled(backend, f"trap '' TERM; {NEVER} & echo $$ $! > {pids}; echo ready; wait")
    agent, child = pids.read_text().split()
    assert not Path("/proc", agent).exists()
    assert is_gone(int(child))


def test_no_descriptor_is_left(backend: str, tmp_path: Path) -> None:
    """A supervisor runs for days: one descriptor a run would end it."""

    def run_every_way() -> int:
        shell(backend, "echo hello", prompt="hi")
        shell(backend, "exec <&-; echo done", prompt=b"x" * MIB)
        shell(backend, f"{NEVER} & exit 3")
        supervise(backend, str(tmp_path / "missing"))
        cancelled(backend, f"{NEVER} & echo ready; wait")
        return sum(1 for _ in Path("/proc/self/fd").iterdir())

    first = run_every_way()
    assert run_every_way() == first
