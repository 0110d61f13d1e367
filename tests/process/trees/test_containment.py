"""The promises of each containment about an agent's tree, with programs that leave it in every way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.tree import AgentChild, _child, _keeper
from pytest_agentproc.tree._kernel import read_parent
from pytest_agentproc.vocabulary import CONTAINMENT_NAMES
from tests.process.escapes import (
    HYDRA,
    WAYS,
    await_alone,
    await_exit,
    build_escape_command,
    build_program_command,
    read_line,
)
from tests.process.stand import is_gone, list_open_descriptors, start_with_used_pid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BEYOND = {
    "group": {
        "daemon",
        "daemon with closed streams",
        "daemon with a cleared environment",
        "daemon with neither",
    },
    "subreaper": {"daemon with a cleared environment", "daemon with neither"},
    "keeper": set[str](),
}
"""The kinds that each containment cannot reach."""


RESPAWN = """
import os, signal, sys, time
if os.fork() == 0:
    os.close(1)
    def respawn():
        for _ in range(200):
            if os.fork():
                time.sleep(0.001)
                os._exit(0)
        os._exit(0)
    respawn()
print(flush=True)
signal.pause()
"""
LETS_GO = """
import os, sys
pid = os.fork()
if pid == 0:
    import signal
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.setsid()
    os.close(1)
    signal.pause()
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
while os.getsid(pid) != pid:
    pass
print(pid, flush=True)
sys.stdin.readline()
os.waitpid(pid, 0)
print("reaped", flush=True)
signal.pause()
"""
BYSTANDERS = """
import os, select, subprocess, sys
from multiprocessing import resource_tracker
from pytest_agentproc.tree import AgentChild
resource_tracker.ensure_running()
sibling = subprocess.Popen(["sleep", "60"])
daemon = subprocess.Popen(["sleep", "60"], start_new_session=True)
tracker = resource_tracker._resource_tracker._pid
for containment in ("group", "subreaper", "keeper"):
    child = AgentChild(["/bin/sh", "-c", "setsid sleep 60 & sleep 60"], containment=containment)
    late = subprocess.Popen(["sleep", "60"], start_new_session=True)
    child.terminate()
    child.kill()
    assert child.kill_and_reap() in (-9, -15)
    assert sibling.poll() is daemon.poll() is late.poll() is None
    os.kill(tracker, 0)
    assert open(f"/proc/{tracker}/stat").read().rpartition(")")[2].split()[0] != "Z"
    late.kill()
    late.wait()
    print("survived")
for one in (sibling, daemon):
    one.kill()
    one.wait()
"""
POWERLESS = """
import ctypes, os, sys
if "--now" not in sys.argv:
    ctypes.CDLL(None).prctl(24, 5, 0, 0, 0)  # root without CAP_KILL, from the next program on
    os.execv(sys.executable, [*sys.orig_argv, "--now"])
import select, time
from pytest_agentproc.tree import AgentChild
child = AgentChild(sys.argv[2:-1], containment=sys.argv[1])
child.watch_stream("stdout", wanted=True)
select.select([child.descriptor], [], [], 20)
pid = child.read("stdout", 100).decode().strip()
begin = time.monotonic()
child.kill()
child.kill_and_reap()
print(pid, child.containment, *child.list_survivors(), time.monotonic() - begin)
"""
CHANGES_USER = """
import os, signal
told, tell = os.pipe()
if os.fork() == 0:
    os.setresuid(4711, 4711, 4711)
    os.write(tell, b"%d" % os.getpid())
    os.close(1)
    signal.pause()
print(int(os.read(told, 20)), flush=True)
signal.pause()
"""


@pytest.fixture
def start() -> Iterator[Callable[..., AgentChild]]:
    """Give a starter of children, of which none outlives the test."""
    children: list[AgentChild] = []

    def starter(argv: list[str], containment: str, **options: object) -> AgentChild:
        children.append(AgentChild(argv, containment=containment, **options))  # type: ignore[arg-type]
        assert children[-1].containment == containment
        return children[-1]

    yield starter
    for child in children:
        child.kill_and_reap()


def end_lost(pid: int) -> None:
    """End a process that has no holder any more, and its zombie if it is ours."""
    os.kill(pid, signal.SIGKILL)
    assert is_gone(pid)
    try:
        os.waitid(os.P_PID, pid, os.WEXITED)
    except ChildProcessError:
        return


@pytest.mark.parametrize("containment", CONTAINMENT_NAMES)
@pytest.mark.parametrize("way", WAYS)
def test_a_kill_reaches_processes_that_left_the_tree(
    start: Callable[..., AgentChild], way: str, containment: str
) -> None:
    """Every process in reach is dead, and every other one is alive: a promise that is too small is also wrong."""
    before = list_open_descriptors()
    child = start(build_escape_command(WAYS[way]), containment)
    pid = int(read_line(child))
    is_beyond = way in BEYOND[containment]
    child.kill()
    assert await_exit(child) == -signal.SIGKILL
    assert await_alone(child)
    assert is_gone(pid, 0) is not is_beyond
    assert child.list_unknown_children() == ([pid] if is_beyond and containment == "subreaper" else [])
    child.reap()
    child.close()
    if is_beyond:
        end_lost(pid)
    assert list_open_descriptors() == before


@pytest.mark.slow
@pytest.mark.parametrize("containment", ["subreaper", "keeper"])
def test_many_heads_without_a_pause_are_dead_within_a_second(
    start: Callable[..., AgentChild], containment: str
) -> None:
    """Each has ended before it can be signalled, and another has started: killing has to converge."""
    child = start(build_program_command(HYDRA, "16"), containment)
    read_line(child)
    begin = time.monotonic()
    child.kill()
    assert await_alone(child, 5.0)
    assert time.monotonic() - begin < 1
    await_exit(child)
    child.reap()


@pytest.mark.parametrize("containment", CONTAINMENT_NAMES)
def test_who_forks_again_in_the_session_is_ended_where_it_is_in_reach(
    start: Callable[..., AgentChild], containment: str
) -> None:
    """A member that forks after the kill has found it was never killed: now every member found later is killed."""
    child = start(build_program_command(RESPAWN), containment)
    read_line(child)
    child.kill("agent")
    await_exit(child)
    assert not child.is_alone()
    child.kill()
    assert await_alone(child, 5.0)


@pytest.mark.slow
@pytest.mark.parametrize("containment", ["subreaper", "keeper"])
def test_stopping_all_first_converges_too(
    start: Callable[..., AgentChild], containment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second way, which comes after half a second of the first, taken in turns of 20 ms."""
    monkeypatch.setattr(_child, "_SECONDS_PER_KILL_METHOD", 0.02)
    child = start(build_program_command(HYDRA, "4"), containment)
    read_line(child)
    child.kill()
    assert await_alone(child, 5.0)


@pytest.mark.parametrize("way", WAYS)
def test_a_killed_keeper_costs_containment_and_nobody(start: Callable[..., AgentChild], way: str) -> None:
    """The keeper's processes are adopted here, and known by their mark."""
    child = start(build_escape_command("stay", WAYS[way]), "keeper")
    pid = int(read_line(child))
    os.kill(read_parent(child.pid), signal.SIGKILL)
    child.terminate()
    child.kill()
    assert child.containment == "subreaper"
    assert await_exit(child) in (-signal.SIGKILL, -signal.SIGTERM)
    assert await_alone(child)
    assert is_gone(pid, 0)
    assert child.list_unknown_children() == []


@pytest.mark.parametrize("ended", ["exits", "is killed"])
def test_a_status_survives_the_keeper(start: Callable[..., AgentChild], ended: str) -> None:
    """The zombie of an agent is ours once its keeper is dead."""
    child = start(["/bin/sh", "-c", "echo; read line; exit 7"], "keeper")
    read_line(child)
    os.kill(read_parent(child.pid), signal.SIGKILL)
    if ended == "exits":
        child.close_stdin()
    else:
        child.kill()
    assert await_exit(child) == (7 if ended == "exits" else -signal.SIGKILL)
    assert await_alone(child)
    child.reap()


@pytest.mark.parametrize("missing", ["keeper", "both"])
def test_what_cannot_be_had_is_replaced_by_the_next(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    """A supervisor runs its agent all the same, and reports which containment holds."""
    before = list_open_descriptors()
    monkeypatch.setattr(_keeper, "_KEEPER_START_CODE", "raise SystemExit(1)")
    if missing == "both":

        def refuse() -> None:
            raise OSError(22, "no such thing")

        monkeypatch.setattr(_keeper, "adopt_orphans", refuse)
        monkeypatch.setattr(_child, "adopt_orphans", refuse)
    child = AgentChild(["/bin/cat"], containment="keeper")
    assert child.containment == ("group" if missing == "both" else "subreaper")
    child.kill_and_reap()
    assert list_open_descriptors() == before


@pytest.mark.parametrize("containment", CONTAINMENT_NAMES)
def test_a_pid_that_is_somebody_elses_by_now_is_spared(start: Callable[..., AgentChild], containment: str) -> None:
    """The kernel is made to give the freed pid of a member, which also was a session, to an innocent (T2)."""
    child = start(build_program_command(LETS_GO), containment)
    pid = int(read_line(child))
    child.watch_stream("stdin", wanted=True)
    child.terminate()
    os.kill(pid, signal.SIGKILL)
    assert is_gone(pid)
    child.write(b"reap\n")
    assert read_line(child) == b"reaped\n"
    innocent = start_with_used_pid(pid, lambda: subprocess.Popen(["sleep", "60"], start_new_session=True))
    try:
        child.kill()
        assert await_exit(child) == -signal.SIGKILL
        assert await_alone(child)
        assert innocent.poll() is None
    finally:
        innocent.kill()
        innocent.wait()


@pytest.mark.slow
def test_unrelated_processes_survive_every_escalation() -> None:
    """A sibling, a daemon of another session, and the resource tracker of multiprocessing are children of ours, too."""
    told = subprocess.run([sys.executable, "-c", BYSTANDERS], capture_output=True, text=True, check=False, timeout=60)
    assert (told.stdout, told.stderr) == ("survived\n" * 3, "")


@pytest.mark.slow
@pytest.mark.skipif(os.getuid() != 0, reason="only root can make a process that its parent may not signal")
@pytest.mark.parametrize("containment", CONTAINMENT_NAMES)
def test_a_process_that_may_not_be_signalled_is_reported_and_not_tried_for_ever(containment: str) -> None:
    """A program of another user, under a supervisor without the right to signal it: its pid is a leak."""
    command = [sys.executable, "-c", POWERLESS, containment, *build_program_command(CHANGES_USER)]
    host = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert host.stderr == ""
    pid, containment_told, leaks, seconds = host.stdout.split()
    try:
        assert (containment_told, leaks) == (containment, pid)
        assert float(seconds) < 2
        assert not is_gone(int(pid), 0)
    finally:
        os.kill(int(pid), signal.SIGKILL)
    assert is_gone(int(pid))
