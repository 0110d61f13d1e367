"""The reference supervisor on the real clock, with ordinary commands, on both loops: it works for any program.

Nothing hangs, nothing leaks, nothing outlives its run.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from pytest_agentproc.errors import UsageError
from pytest_agentproc.events import Event, OutputEndRead, OutputRead, SignalSent
from pytest_agentproc.supervisor import Outcome, Policy, Result, run_once
from tests.process.stand import CEILING, is_gone, list_open_descriptors

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

QUICK = Policy(
    inactivity_timeout=CEILING, linger_grace=0.05, linger_kill_grace=0.05, leftover_kill_grace=0.05, kill_grace=0.05
)
PYTHON = sys.executable
MIB = 1 << 20
GRACE = 0.2
NEVER = "sleep 1000"
DEAF_AFTER_ITS_END = "trap '' TERM; echo '{\"type\": \"agent_end\"}'; " + NEVER


@dataclass
class Trace:
    """The actions of the supervisor, and a function to call at its first read."""

    events: list[Event] = field(default_factory=list)
    on_output: Callable[[], None] | None = None

    def __call__(self, event: Event) -> None:
        """Keep the actions."""
        self.events.append(event)
        if isinstance(event, OutputRead | OutputEndRead) and self.on_output is not None:
            self.on_output()

    def signals(self) -> dict[str, int]:
        """Give the signals that it sent, with their instants."""
        return {event.signal: event.at for event in self.events if isinstance(event, SignalSent)}


def run_with_ceiling(backend: str, function: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Run in real time, with a ceiling."""

    async def run() -> Any:
        with anyio.fail_after(CEILING):
            return await function()

    return anyio.run(run, backend=backend)


def run_command_once(backend: str, *argv: str, **options: Any) -> Result:
    """Run one command under the reference supervisor."""
    options.setdefault("policy", QUICK)

    async def run() -> Result:
        return await run_once(argv, **options)

    result = run_with_ceiling(backend, run)
    assert isinstance(result, Result)
    return result


def run_shell_line(backend: str, line: str, **options: Any) -> Result:
    """Run one line of shell under the reference supervisor."""
    return run_command_once(backend, "/bin/sh", "-c", line, **options)


def cancel_at_first_output(backend: str, script: str) -> bool:
    """Run a shell as the agent and cancel the run at its first output; say whether the run was cut."""
    trace = Trace()

    async def main() -> bool:
        with anyio.CancelScope() as scope:
            trace.on_output = scope.cancel
            await run_once(["sh", "-c", script], trace=trace)
        return scope.cancelled_caught

    return anyio.run(main, backend=backend)


def test_output_exit_code_and_stderr_are_the_commands(backend: str) -> None:
    """The plainest run of all."""
    result = run_shell_line(backend, "echo one; echo two; echo oops >&2; exit 0")
    assert (result.outcome, result.exit_code, result.agent_status) == (Outcome.COMPLETED, 0, 0)
    assert (result.text, result.stderr_tail, result.forced) == ("one\ntwo", b"oops\n", False)


def test_the_agent_is_reaped(backend: str) -> None:
    """A zombie would keep its pid for as long as the supervisor lives (T3)."""
    result = run_shell_line(backend, "echo $$")
    assert result.text is not None
    assert not Path("/proc", result.text).exists()


@pytest.mark.parametrize(
    ("line", "outcome", "code", "status"),
    [
        ("exit 0", Outcome.COMPLETED, 0, 0),
        ("exit 3", Outcome.FAILED, 3, 3),
        ("exit 255", Outcome.FAILED, 255, 255),
        ("kill -TERM $$", Outcome.INCOMPLETE, 143, -15),
        ("kill -SEGV $$", Outcome.INCOMPLETE, 139, -11),
        ("kill -KILL $$", Outcome.INCOMPLETE, 137, -9),
        ("kill -40 $$", Outcome.INCOMPLETE, 168, -40),
    ],
)
def test_exit_codes_and_signals_become_outcomes(
    backend: str, line: str, outcome: Outcome, code: int, status: int
) -> None:
    """128 + n for a signal, the agent's own code else; its output is kept."""
    result = run_shell_line(backend, f"echo hello; {line}")
    assert (result.outcome, result.exit_code, result.agent_status) == (outcome, code, status)
    assert (result.text, result.forced) == ("hello", False)


def test_a_command_that_does_not_exist_is_spawn_failed(backend: str) -> None:
    """It is an outcome and not an exception, and it names the missing program."""
    result = run_command_once(backend, "/nope/agent")
    assert (result.outcome, result.exit_code, result.agent_status) == (Outcome.SPAWN_FAILED, 127, None)
    assert result.error == "/nope/agent: /nope/agent: No such file or directory (errno 2)"


def test_a_command_that_cannot_be_executed_is_spawn_failed_with_126(backend: str, tmp_path: Path) -> None:
    """As a shell has it."""
    (tmp_path / "agent").write_text("no program", "utf-8")
    result = run_command_once(backend, str(tmp_path / "agent"))
    assert (result.outcome, result.exit_code) == (Outcome.SPAWN_FAILED, 126)
    assert result.error.endswith("agent: Permission denied (errno 13)")


def test_no_command_is_a_callers_mistake(backend: str) -> None:
    """An error that is no agent's doing is raised, before anything is started."""
    with pytest.raises(UsageError, match="argv is empty, but must name the agent's command"):
        run_command_once(backend)


def test_a_prompt_too_long_for_an_argument_is_spawn_failed(backend: str) -> None:
    """The kernel refuses it; the caller gets an outcome and no exception."""
    result = run_command_once(backend, "true", "x" * (1 << 18))
    assert (result.outcome, result.exit_code) == (Outcome.SPAWN_FAILED, 126)


@pytest.mark.slow
def test_a_big_prompt_goes_through_while_output_comes_back(backend: str) -> None:
    """Writing and reading at once: several MiB both ways cannot deadlock."""
    prompt = b"0123456789abcde\n" * (1 << 17)
    result = run_command_once(backend, "/bin/cat", prompt=prompt)
    assert result.outcome is Outcome.COMPLETED
    assert result.transcript.encode() + b"\n" == prompt


def test_a_big_prompt_that_nobody_reads_is_no_error(backend: str) -> None:
    """EPIPE never raises: the exit decides."""
    result = run_shell_line(backend, "exec 0<&-; echo done", prompt=b"x" * (1 << 20))
    assert (result.outcome, result.text) == (Outcome.COMPLETED, "done")


def test_much_output_on_both_streams_is_all_read(backend: str) -> None:
    """An agent that fills stderr first would otherwise never come to speak (F4)."""
    script = f"import sys; sys.stderr.write('e' * {MIB}); print('x' * {MIB})"
    result = run_command_once(backend, PYTHON, "-IS", "-c", script)
    assert result.outcome is Outcome.COMPLETED
    assert result.text == "x" * MIB
    assert result.stderr_tail == b"e" * 65536


@pytest.mark.slow
def test_silence_ends_a_run_and_says_how_long_it_was(backend: str) -> None:
    """The real clock keeps the limit: not before; an agent that obeys TERM gets no more signals (A1)."""
    result = run_shell_line(backend, f"echo begun; exec {NEVER}", policy=Policy(inactivity_timeout=0.2))
    assert (result.outcome, result.exit_code, result.agent_status) == (Outcome.INACTIVE, 124, -15)
    assert (result.text, result.forced) == ("begun", True)
    assert result.elapsed >= 200_000_000
    assert result.error.startswith("no output for 0.2")


@pytest.mark.slow
def test_a_deaf_tree_is_killed_after_the_grace(backend: str) -> None:
    """TERM is ignored by shell and child alike; KILL is not."""
    line = "trap '' TERM; sh -c 'trap \"\" TERM; echo $$; sleep 60'; sleep 60"
    start = time.monotonic()
    result = run_shell_line(backend, line, policy=Policy(inactivity_timeout=0.2, kill_grace=0.1))
    assert result.outcome is Outcome.INACTIVE
    assert result.agent_status == -9
    assert time.monotonic() - start >= 0.3
    assert is_gone(int(result.transcript))


@pytest.mark.slow
def test_a_deaf_agent_is_killed_and_not_before_its_grace(backend: str) -> None:
    """Its result was good and stays good; the rest is force (C1)."""
    trace = Trace()
    policy = Policy(linger_grace=0.0, linger_kill_grace=GRACE)
    result = run_shell_line(backend, DEAF_AFTER_ITS_END, dialect="pi", policy=policy, trace=trace)
    assert (result.outcome, result.agent_status, result.forced) == (Outcome.COMPLETED, -9, True)
    assert list(trace.signals()) == ["TERM", "KILL"]
    assert trace.signals()["KILL"] - trace.signals()["TERM"] >= GRACE * 1e9


@pytest.mark.parametrize("streams", ["", ">/dev/null 2>&1"], ids=["holds-the-pipes", "holds-nothing"])
def test_leftovers_end_before_the_run_returns(backend: str, streams: str) -> None:
    """An agent's exit leaves no process, and the run does not wait for the end of its pipes (C4, T6)."""
    result = run_shell_line(backend, f"{NEVER} {streams} & echo $!; exit 3", policy=Policy())
    assert (result.outcome, result.forced) == (Outcome.FAILED, False)
    assert result.text is not None
    assert is_gone(int(result.text), 0)


@pytest.mark.slow
def test_deaf_leftovers_are_killed_after_their_grace(backend: str) -> None:
    """They had their chance, which was no shorter than promised (T6)."""
    trace = Trace()
    policy = Policy(leftover_kill_grace=GRACE)
    result = run_shell_line(backend, f"trap '' TERM; {NEVER} & echo $!; exit 3", policy=policy, trace=trace)
    assert (result.outcome, result.agent_status, result.forced) == (Outcome.FAILED, 3, False)
    assert list(trace.signals()) == ["TERM", "KILL"]
    assert trace.signals()["KILL"] - trace.signals()["TERM"] >= GRACE * 1e9
    assert result.text is not None
    assert is_gone(int(result.text), 0)


@pytest.mark.parametrize("way", ["deadline", "cancel"])
def test_cancelling_a_run_kills_and_reaps_its_tree(backend: str, way: str, tmp_path: Path) -> None:
    """When the cancelled task continues, no process is left, whether it ignores signals or not (T4)."""
    fifo = tmp_path / "pids"
    os.mkfifo(fifo)
    begin = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    line = f"trap '' TERM; (trap '' TERM; sleep 60) & echo $$ $! >{fifo}; wait"

    async def host() -> list[int]:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(supervise)
                await anyio.wait_readable(begin)
                if way == "cancel":
                    scope.cancel()
                else:
                    scope.deadline = anyio.current_time()
        return [int(word) for word in os.read(begin, 100).split()]

    async def supervise() -> None:
        await run_once(["/bin/sh", "-c", line], policy=QUICK)

    pids = run_with_ceiling(backend, host)
    os.close(begin)
    assert len(pids) == 2
    assert all(is_gone(pid) for pid in pids)


def test_a_run_that_is_cancelled_by_its_own_trace_leaves_nobody(backend: str, tmp_path: Path) -> None:
    """In the middle of a read: the tree is killed and the agent reaped before the cancellation continues (T3, T4)."""
    pids = tmp_path / "pids"
    assert cancel_at_first_output(backend, f"trap '' TERM; {NEVER} & echo $$ $! > {pids}; echo ready; wait")
    agent, child = pids.read_text().split()
    assert not Path("/proc", agent).exists()
    assert is_gone(int(child))


def test_a_run_leaves_neither_descriptor_nor_zombie_nor_warning(backend: str) -> None:
    """Twenty runs of every kind of ending cost nothing that stays."""
    run_shell_line(backend, "exit 0")
    cancel_at_first_output(backend, f"{NEVER} & echo ready; wait")
    before = list_open_descriptors()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for line in ("exit 0", "exit 3", "kill -TERM $$", "sleep 60 & exit 0", "exec 1>&- 2>&-; exit 1") * 3:
            run_shell_line(backend, line)
        run_shell_line(backend, "exec 0<&-; echo done", prompt=b"x" * MIB)
        cancel_at_first_output(backend, f"{NEVER} & echo ready; wait")
        run_command_once(backend, "/nope/agent")
        gc.collect()
    assert list_open_descriptors() == before


def test_many_runs_at_once_keep_apart(backend: str) -> None:
    """One machine and one driver each: nothing is shared."""
    results: dict[int, str | None] = {}

    async def supervise(number: int) -> None:
        results[number] = (await run_once(["/bin/echo", str(number)], policy=QUICK)).text

    async def host() -> None:
        async with anyio.create_task_group() as group:
            for number in range(8):
                group.start_soon(supervise, number)

    run_with_ceiling(backend, host)
    assert results == {number: str(number) for number in range(8)}


def test_an_agent_that_closes_its_output_is_still_waited_for(backend: str) -> None:
    """A closed stream is no exit, and no reason to spin (A5)."""
    code = "import os; os.close(1); os.close(2); os._exit(len(os.read(0, 99)))"
    result = run_command_once(backend, PYTHON, "-S", "-c", code, prompt=b"seven..")
    assert (result.agent_status, result.text) == (7, None)


@pytest.mark.slow
def test_a_stopped_agent_is_ended_all_the_same(backend: str) -> None:
    """TERM reaches it because CONT comes with it."""
    result = run_shell_line(
        backend,
        "trap 'exit 9' TERM; kill -STOP $$; sleep 60",
        policy=Policy(inactivity_timeout=0.2, kill_grace=CEILING),
    )
    assert (result.outcome, result.agent_status) == (Outcome.INACTIVE, 9)


@pytest.mark.slow
def test_a_child_that_left_the_group_is_still_its_parents_child(backend: str) -> None:
    """Real CLIs put each tool in a session of its own: the walk finds it, a group kill would not (T1)."""
    code = (
        "import subprocess, sys, time;"
        "child = subprocess.Popen(['/bin/sleep', '60'], start_new_session=True);"
        "print(child.pid, flush=True); time.sleep(60)"
    )
    result = run_command_once(backend, PYTHON, "-S", "-c", code, policy=Policy(inactivity_timeout=0.5, kill_grace=0.1))
    assert result.outcome is Outcome.INACTIVE
    assert is_gone(int(result.transcript))


def test_the_reference_needs_no_loop_of_its_own_choice(backend: str) -> None:
    """Started beside other children of the same program, it reaps its own only."""
    other = subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE)
    assert run_shell_line(backend, "exit 5").agent_status == 5
    assert other.poll() is None
    other.communicate(timeout=CEILING)
    assert other.returncode == 0
