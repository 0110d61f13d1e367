"""Agents that another program starts for the supervisor: a shell, `timeout`, a script. Time passes as without it."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import pytest

from pytest_agentproc.clock import VirtualClock, _wrappers
from pytest_agentproc.errors import Deadlock, ForeignProgram, Stall
from pytest_agentproc.scenario import loads
from pytest_agentproc.subjects import Function
from pytest_agentproc.verdict import Verdict, choose_overall_verdict, judge_all_expectations, list_unmet_checks
from tests.bundled import load_bundled
from tests.plugin.examples import careful
from tests.process.stand import Stand, is_gone

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_agentproc.harness import ScenarioRunner
    from pytest_agentproc.vocabulary import RunRequest

HANDS_ON = """
import subprocess, sys
with subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, bufsize=0) as agent:
    while data := agent.stdout.read(4096):
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
sys.exit(agent.returncode)
"""

AROUND: dict[str, Callable[[list[str]], list[str]]] = {
    "a shell that goes on": lambda argv: ["sh", "-c", '"$0" "$@"; exit $?', *argv],
    "a shell that is replaced": lambda argv: ["sh", "-c", f"exec {shlex.join(argv)}"],
    "a shell in another folder": lambda argv: ["sh", "-c", f"cd / && {shlex.join(argv)}"],
    "a shell in a shell": lambda argv: ["sh", "-c", f"sh -c '{argv[0]}; exit $?'; exit $?"],
    "a login shell": lambda argv: ["bash", "-lc", shlex.join(argv)],
    "a pipeline": lambda argv: ["bash", "-c", f"set -o pipefail; {shlex.join(argv)} | cat | cat"],
    "a watchdog": lambda argv: ["timeout", "9999", *argv],
    "a script that hands on what it reads": lambda argv: [sys.executable, "-S", "-c", HANDS_ON, *argv],
}


@pytest.mark.parametrize("around", AROUND.values(), ids=AROUND)
def test_time_passes_as_without_it(stand: Stand, backend: str, around: Callable[[list[str]], list[str]]) -> None:
    """Each byte and the end come at their instants, with any program between the supervisor and its agent."""
    argv = around(stand.fake("- silence: 2s\n- say: one\n- silence: 1h\n- say: two\n- exit: 3"))

    async def host() -> list[Any]:
        async with await anyio.open_process(argv) as agent:
            assert agent.stdout is not None
            seen = [(stand.seconds, data) async for data in agent.stdout]
            return [*seen, (await agent.wait(), stand.seconds)]

    assert stand.run(host, backend=backend) == [(2.0, b"one\n"), (3602.0, b"two\n"), (3, 3602.0)]


def test_more_than_a_pipe_holds_goes_through(stand: Stand, backend: str) -> None:
    """A writer that hands it on waits for the supervisor in the middle; that is no trouble for virtual time."""
    argv = stand.fake("- silence: 2s\n- flood: {stdout: 300 KiB}\n- silence: 2s\n- exit: 0")

    async def host() -> tuple[int, int, float]:
        completed = await anyio.run_process(["sh", "-c", f"{argv[0]} | cat"])
        return len(completed.stdout), completed.returncode, stand.seconds

    assert stand.run(host, backend=backend) == (300 * 1024, 0, 4.0)


def test_a_signal_to_the_shell_alone_leaves_the_agent(stand: Stand) -> None:
    """That is the fault of the signal's sender, and it is seen: the shell dies at once, the agent lives."""
    argv = stand.fake("- silence: 1h\n- exit: 0")

    async def host() -> tuple[int, float, list[str]]:
        shell = subprocess.Popen(["sh", "-c", f"{argv[0]}; :"], start_new_session=True)
        await anyio.sleep(5)
        shell.terminate()
        status = shell.poll()  # at once: the signal has had its whole effect
        living = [participant.name for participant in stand.clock.hub.registry.living.values()]
        os.killpg(shell.pid, signal.SIGKILL)
        assert status is not None
        return status, stand.seconds, living

    assert stand.run(host) == (-15, 5.0, ["agent"])


def test_a_signal_to_the_group_takes_both(stand: Stand, backend: str) -> None:
    """The agent has its last words, and the shell, which waits for it, reports its code."""
    argv = stand.fake("- when: {signal: TERM}\n  do: [{silence: 1s}, {say: bye}, {exit: 7}]\n- silence: 1h")
    line = f"trap : TERM; {argv[0]} & wait $!; wait $!; exit $?"

    async def host() -> tuple[bytes, int, float]:
        async with await anyio.open_process(["sh", "-c", line], start_new_session=True) as shell:
            await anyio.sleep(5)
            os.killpg(shell.pid, signal.SIGTERM)
            assert shell.stdout is not None
            told = await shell.stdout.receive()
            return told, await shell.wait(), stand.seconds

    assert stand.run(host, backend=backend) == (b"bye\n", 7, 6.0)


def test_a_shell_that_starts_one_agent_after_the_other(stand: Stand, backend: str) -> None:
    """Between the two it works in real time, and none passes."""
    first, second = stand.fake("- silence: 2s\n- exit: 1"), stand.fake("- silence: 3s\n- exit: 4")

    async def host() -> tuple[int, float]:
        line = f"{first[0]} || {second[0]}"
        return (await anyio.run_process(["sh", "-c", f"{line}; exit $?"], check=False)).returncode, stand.seconds

    assert stand.run(host, backend=backend) == (4, 5.0)


@pytest.mark.parametrize("line", ["{}; exit $?", "n=0; while [ $n -lt 50000 ]; do n=$((n+1)); done; exec {}"])
def test_a_declared_shell_goes_with_its_agent_as_well(make_stand: Callable[..., Stand], line: str) -> None:
    """Time is held for it until it starts one, or becomes one."""
    stand = make_stand(allow=["sh"])
    argv = stand.fake("- silence: 1s\n- exit: 5")

    async def host() -> tuple[int, float]:
        completed = await anyio.run_process(["sh", "-c", line.format(argv[0])], check=False)
        return completed.returncode, stand.seconds

    assert stand.run(host) == (5, 1.0)


def test_what_is_left_of_a_shell_and_its_agent_is_ended(stand: Stand) -> None:
    """A supervisor that forgets both leaves no process to the next test."""
    argv = stand.fake("- silence: 1h")
    started: list[subprocess.Popen[bytes]] = []

    async def host() -> None:
        started.append(subprocess.Popen(["sh", "-c", f"{argv[0]}; :"]))
        await anyio.sleep(5)

    stand.run(host)
    left = [started[0].pid, *(participant.pid for participant in stand.clock.hub.registry.living.values())]
    stand.close()
    assert len(left) == 2
    assert all(is_gone(pid) for pid in left)


@pytest.mark.slow
def test_a_shell_without_an_agent_is_refused(stand: Stand) -> None:
    """The program for which it waits is no fake, and virtual time cannot see what such a program does."""

    async def host() -> None:
        await anyio.run_process(["sh", "-c", "cat; :"], stdin=subprocess.PIPE)

    with pytest.raises(ForeignProgram, match=r"^'sh' \(pid \d+\) is no fake agent"):
        stand.run(host)


@pytest.mark.parametrize(("call", "sleeps"), [(b"61 0xffffffff 0x7ffd 0x0\n", True), (b"running\n", False)])
def test_a_shell_that_reaps_its_agent_is_not_asleep(monkeypatch: pytest.MonkeyPatch, call: bytes, sleeps: bool) -> None:
    """The kernel's wait4 is in state S while it reaps a child, and on a busy machine it waits there for a core."""
    files = {"7/task/7/status": b"State:\tS (sleeping)\nvoluntary_ctxt_switches:\t3\n", "7/task/7/syscall": call}
    monkeypatch.setattr(_wrappers, "list_threads", lambda pid: [pid])
    monkeypatch.setattr(_wrappers, "iterate_pids", list)
    monkeypatch.setattr(_wrappers, "read_proc", files.__getitem__)
    assert _wrappers.SleepProof(7, ()).is_tree_asleep() is sleeps


COUNTS = {
    "a sleep": "import subprocess, sys, time; subprocess.Popen(sys.argv[1:]); time.sleep(60)",
    "a limit": "import select, subprocess, sys; one = subprocess.Popen(sys.argv[1:], stdout=-1);"
    "select.select([one.stdout], [], [], 60)",
    "an event loop": "import asyncio, sys\nasync def main():\n await asyncio.create_subprocess_exec(*sys.argv[1:])\n"
    " await asyncio.sleep(60)\nasyncio.run(main())",
}


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/syscall").exists(), reason="the kernel does not tell system calls")
@pytest.mark.parametrize("program", COUNTS.values(), ids=COUNTS)
def test_a_program_around_an_agent_that_counts_in_real_time_is_refused(stand: Stand, program: str) -> None:
    """It is a supervisor itself, which would take the agent's hour for the moment that it was."""
    argv = stand.fake("- silence: 1h\n- exit: 0")

    async def host() -> None:
        await anyio.run_process([sys.executable, "-S", "-c", program, *argv])

    with pytest.raises(
        ForeignProgram, match=r"^'python[^']*' \(pid \d+\), around an agent, counts in real time by itself"
    ):
        stand.run(host)


def test_a_moment_of_sleep_is_waited_for(stand: Stand, backend: str) -> None:
    """A script may wait for a lock, or for a file."""
    argv = stand.fake("- silence: 1h\n- exit: 4")
    program = (
        "import subprocess, sys, time; one = subprocess.Popen(sys.argv[1:]); time.sleep(0.2); sys.exit(one.wait())"
    )

    async def host() -> tuple[int, float]:
        completed = await anyio.run_process([sys.executable, "-S", "-c", program, *argv], check=False)
        return completed.returncode, stand.seconds

    assert stand.run(host, backend=backend) == (4, 3600.0)


@pytest.mark.slow
def test_a_shell_that_outlives_its_agent_holds_time(make_stand: Callable[..., Stand], backend: str) -> None:
    """Its later work takes real time: it is named if that does not end."""
    stand = make_stand(guard=0.5)
    argv = stand.fake("- silence: 1s\n- exit: 0")

    async def host() -> None:
        async with await anyio.open_process(["sh", "-c", f"{argv[0]}; sleep 60"]):
            await anyio.sleep(60)

    with pytest.raises(Stall, match=r"^the program around an agent, 'sh' \(pid \d+\): it neither rests nor ends"):
        stand.run(host, backend=backend)


def test_a_deadlock_with_a_shell_names_the_agent(stand: Stand, backend: str) -> None:
    """A shell that waits for an agent that waits for ever holds nothing up."""
    argv = stand.fake("- silence: for ever")

    async def host() -> None:
        await anyio.run_process(["sh", "-c", f"{argv[0]}; :"])

    with pytest.raises(Deadlock, match=r"agent \(pid \d+\) waits for a signal"):
        stand.run(host, backend=backend)


# The rows about a supervisor.

HELLO = loads(
    "scenario: hello\nagent: raw\nscript: [silence: 2s, say: hello, silence: 2s]\nexpect: {outcome: completed}\n"
)


def judge_hello(runner: ScenarioRunner, supervise: Callable[[RunRequest], Any]) -> dict[str, tuple[Verdict, str]]:
    """Play HELLO, and give the result of each check."""
    return {row.key: (row.verdict, row.seen) for row in judge_all_expectations(runner.play(HELLO, Function(supervise)))}


def start_through_shell(order: RunRequest) -> subprocess.Popen[bytes]:
    """Start the agent through a shell."""
    argv = ["/bin/sh", "-c", '"$0" "$@"; exit $?', *order.argv]
    return subprocess.Popen(argv, env=order.env, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize(
    ("seconds", "begin", "end"),
    [(5, "/bin/sh -c ", "(zombie)"), (1, "agent (still alive), /bin/sh -c ", "(still alive)")],
    ids=["zombie", "alive"],
)
def test_a_shell_that_nobody_waits_for_is_a_leak(runner: ScenarioRunner, seconds: float, begin: str, end: str) -> None:
    """It is the supervisor's own child; its command line has a fake's in it, but it is no fake."""
    shells: list[subprocess.Popen[bytes]] = []

    async def supervise(order: RunRequest) -> str:
        shells.append(start_through_shell(order))
        await anyio.sleep(seconds)
        return "completed"

    verdict, seen = judge_hello(runner, supervise)["leaks"]
    shells[0].poll()
    assert verdict is Verdict.FAILED
    assert (seen[: len(begin)], seen[-len(end) :]) == (begin, end)


def test_a_thread_that_waits_for_the_agent_says_nothing_of_its_supervisor(
    runner: ScenarioRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds time, and the agent waits for time: a fault of neither, so it is no verdict, and real time is named."""
    usual = VirtualClock.__init__.__kwdefaults__ or {}
    monkeypatch.setattr(VirtualClock.__init__, "__kwdefaults__", {**usual, "guard": 0.3})

    async def supervise(order: RunRequest) -> str:
        shell = start_through_shell(order)
        await anyio.to_thread.run_sync(shell.wait)
        return "completed"

    rows = judge_hello(runner, supervise)
    assert rows["answer"][0] is Verdict.ADAPTER_ERROR
    assert "1 thread(s) of the supervising program did not return" in rows["answer"][1]
    assert "--clock real" in rows["answer"][1]
    assert rows["outcome"][0] is Verdict.NOT_EXERCISED


@pytest.mark.slow
def test_a_program_that_waits_for_something_else_says_nothing_either(runner: ScenarioRunner) -> None:
    """It is named, and so is real time."""

    async def supervise(_: RunRequest) -> str:
        await anyio.run_process(["/bin/cat"], stdin=subprocess.PIPE)
        return "completed"

    verdict, seen = judge_hello(runner, supervise)["answer"]
    assert verdict is Verdict.ADAPTER_ERROR
    assert "'cat' (pid " in seen


def test_a_right_supervisor_is_right_below_a_shell_as_well(runner: ScenarioRunner) -> None:
    """But it cannot see that the agent closed its stdin, which the shell has open: that is not applicable."""

    async def supervise(order: RunRequest) -> Any:
        argv = ("/bin/sh", "-c", '"$0" "$@"; exit $?', *order.argv)
        return await careful.supervise(replace(order, argv=argv), careful.Run)

    graces = dict.fromkeys(("kill_grace", "linger_kill_grace", "leftover_kill_grace"), careful.LADDER)
    limits = {"inactivity_timeout": careful.SILENCE, **graces}
    subject = Function(supervise, limits=limits, dialects=["raw"])
    for name in ("byte-a-minute", "silent-past-the-limit", "leftover-ends-by-itself"):
        assert list_unmet_checks(judge_all_expectations(runner.play(load_bundled(name), subject))) == [], name
    rows = judge_all_expectations(runner.play(load_bundled("closes-stdin-and-lingers"), subject))
    assert choose_overall_verdict(rows) is Verdict.NOT_APPLICABLE
