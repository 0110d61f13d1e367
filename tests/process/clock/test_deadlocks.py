"""A program in which no process can move fails at once, and the message names each process and its wait."""

from __future__ import annotations

import asyncio
import dataclasses
import signal
import subprocess
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from pytest_agentproc.errors import Deadlock
from pytest_agentproc.events import FaultFound
from pytest_agentproc.subjects import reference_supervisor
from tests.process.stand import build_scenario, format_line_of, is_gone

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_agentproc.harness import ScenarioRunner
    from tests.process.stand import Stand


def run_into_deadlock(stand: Stand, backend: str, host: Callable[[], Any]) -> str:
    """Run into a deadlock; give its message once every process has ended."""
    with pytest.raises(Deadlock) as dead:
        stand.run(host, backend=backend)
    assert all(is_gone(pid) for pid in stand.pids())
    return str(dead.value)


def test_two_that_wait_for_each_other_are_named_with_what_they_wait_for(stand: Stand, backend: str) -> None:
    """The agent waits for input that never comes, the program for output: both stand in the message."""
    argv = stand.fake("- say: what now?\n- wait_for: {stdin: answer}")

    async def host() -> None:
        async with await anyio.open_process(argv) as process:
            assert process.stdout is not None
            await process.stdout.receive()
            await process.stdout.receive()

    said = run_into_deadlock(stand, backend, host)
    (pid,) = stand.pids()
    assert said == (
        "nobody can move: the supervising program waits, and no timer of it runs; "
        f"agent (pid {pid}) waits for data on stdin (descriptor 0), last at line 5 (await_stdin)\n"
        f"the supervising program waits at {format_line_of(host, 4)}"
    )


def test_an_stderr_that_nobody_reads_is_named_by_its_descriptor(stand: Stand, backend: str) -> None:
    """A full stderr pipe blocks the agent for ever: the classic hang of clients that never read it."""
    argv = stand.fake("- flood: {stderr: 400KiB}\n- say: done")

    async def host() -> None:
        async with await anyio.open_process(argv) as process:
            assert process.stdout is not None
            await process.stdout.receive()

    assert "agent (pid" in (said := run_into_deadlock(stand, backend, host))
    assert "waits for data on stdin (descriptor 0) or room in stderr (descriptor 2), last at line 4 (flood)" in said


def test_a_stopped_agent_is_named_as_stopped(stand: Stand, backend: str) -> None:
    """No process continues it, so nothing can ever happen."""
    argv = stand.fake("- silence: 5s")

    async def host() -> None:
        async with await anyio.open_process(argv) as process:
            await anyio.sleep(1)
            process.send_signal(signal.SIGSTOP)
            await process.wait()

    assert "is stopped, last at line 4 (sleep)" in run_into_deadlock(stand, backend, host)


def test_the_error_of_a_program_that_waits_for_itself_says_that_no_agent_lives(stand: Stand, backend: str) -> None:
    """A deadlock without any agent is one as well."""
    assert run_into_deadlock(stand, backend, anyio.Event().wait) == (
        "nobody can move: the supervising program waits, and no timer of it runs; no agent lives"
    )


def test_every_agent_is_named_in_the_order_of_the_starts(stand: Stand) -> None:
    """With several agents the message is the list of all."""
    argvs = [stand.fake("- silence: for ever", name=name) for name in ("first", "second")]

    async def host() -> None:
        processes = [await asyncio.create_subprocess_exec(*argv) for argv in argvs]
        for process in processes:
            await process.wait()

    said = run_into_deadlock(stand, "asyncio", host)
    assert 0 < said.index("first (pid") < said.index("second (pid")


def test_cleaning_up_after_a_deadlock_may_wait_again(stand: Stand, backend: str) -> None:
    """The program under test is cancelled, not killed: its own clean-up runs, in which the agent is dead already."""
    argv = stand.fake("- silence: for ever")
    codes = []

    async def host() -> None:
        process = await anyio.open_process(argv)
        try:
            await process.wait()
        finally:
            with anyio.CancelScope(shield=True):
                codes.append(await process.wait())
                await process.aclose()

    run_into_deadlock(stand, backend, host)
    assert codes == [-9]


def test_a_clean_up_that_deadlocks_again_changes_no_verdict(stand: Stand, backend: str) -> None:
    """A shielded wait for ever in a finally: the user sees the first message, whatever breaks after it."""
    argv = stand.fake("- silence: for ever")

    async def host() -> None:
        async with await anyio.open_process(argv) as process:
            try:
                await process.wait()
            finally:
                with anyio.CancelScope(shield=True):
                    await anyio.sleep_forever()

    assert "agent (pid" in run_into_deadlock(stand, backend, host)


def test_an_error_on_the_way_out_of_a_deadlock_changes_no_verdict(stand: Stand, backend: str) -> None:
    """The program's words about its own cancellation are a consequence of the cause."""

    async def host() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            raise LookupError("no answer")

    assert run_into_deadlock(stand, backend, host).startswith("nobody can move")


def test_another_clock_runs_after_a_deadlock(make_stand: Callable[..., Stand], backend: str) -> None:
    """A fault leaves the interpreter clean: patches are undone, loops closed, processes reaped."""
    run_into_deadlock(make_stand(), backend, anyio.sleep_forever)
    stand = make_stand()
    argv = stand.fake("- silence: 3s\n- exit: 2")

    async def host() -> int:
        return (await anyio.run_process(argv, check=False)).returncode

    assert (stand.run(host, backend=backend), stand.seconds) == (2, 3.0)
    assert subprocess.run(["true"], check=False).returncode == 0


def test_a_scenario_in_which_nobody_can_move_is_played_to_a_deadlock(runner: ScenarioRunner, backend: str) -> None:
    """A play has the fault instead of an answer, and says so in its record."""
    scenario = build_scenario("- wait_for: {stdin: never}", "{dialect: pi, prompt: argv}")
    scenario = dataclasses.replace(scenario, policy={"inactivity_timeout": None})
    played = runner.play(scenario, reference_supervisor(), backend=backend)
    assert played.answer is None
    assert isinstance(played.fault, Deadlock)
    assert "the supervisor waits for output or the exit of its agent, and no timer runs" in str(played.fault)
    assert "last at line 4 (await_stdin)" in str(played.fault)
    assert [event.fault for event in played.record.events if isinstance(event, FaultFound)] == ["deadlock"]
