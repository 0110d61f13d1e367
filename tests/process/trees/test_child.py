"""A child process as the supervisor holds it: its streams, its exit, its descendants, with ordinary commands."""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import select
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.tree import AgentChild
from tests.process.stand import CEILING, is_gone, list_open_descriptors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

GRANDCHILD = (
    "import subprocess, sys;"
    "child = subprocess.Popen(['/bin/sleep', '60'], start_new_session={});"
    "print(child.pid, flush=True); sys.stdin.read()"
)


@pytest.fixture
def start() -> Iterator[Callable[..., AgentChild]]:
    """Give a starter of children, of which none outlives the test."""
    children: list[AgentChild] = []

    def starter(*argv: str, **options: object) -> AgentChild:
        children.append(AgentChild(argv, **options))  # type: ignore[arg-type]
        return children[-1]

    yield starter
    for child in children:
        child.kill_and_reap()


def wait_for(child: AgentChild, name: str) -> None:
    """Wait until a child's poll reports an event."""
    poll = select.poll()
    poll.register(child.descriptor, select.POLLIN)
    while name not in child.poll():
        assert poll.poll(CEILING * 1000), f"no {name}"


def read_next_bytes(child: AgentChild, name: str = "stdout") -> bytes:
    """Read the next bytes on a stream."""
    child.watch_stream(name, wanted=True)
    wait_for(child, name)
    child.watch_stream(name, wanted=False)
    data = child.read(name, 65536)
    assert data is not None
    return data


def test_a_child_leads_its_own_session(start: Callable[..., AgentChild]) -> None:
    """A signal for its group is none for ours, and its session finds what a dead root's walk cannot."""
    child = start("/bin/cat")
    assert os.getsid(child.pid) == os.getpgid(child.pid) == child.pid


def test_streams_would_block_or_end_and_never_wait(start: Callable[..., AgentChild]) -> None:
    """None is 'not now', nothing is 'never again', and a full pipe takes no more."""
    child = start("/bin/cat")
    assert child.read("stdout", 10) is None
    assert child.write(b"abc") == 3
    assert read_next_bytes(child) == b"abc"
    stopped = start("/bin/sh", "-c", "kill -STOP $$")
    count = 0
    while (more := stopped.write(b"x" * 65536)) is not None:
        count += more
    assert count == 65536
    child.close_stdin()
    assert read_next_bytes(child) == b""
    wait_for(child, "exit")


def test_writing_to_a_child_that_reads_no_more_is_a_broken_pipe(start: Callable[..., AgentChild]) -> None:
    """And no SIGPIPE of ours."""
    child = start("/bin/true")
    wait_for(child, "exit")
    with pytest.raises(BrokenPipeError):
        child.write(b"x")


def test_an_exit_is_reported_once_and_reaped_on_demand(start: Callable[..., AgentChild]) -> None:
    """The status comes without reaping: until then the pid, and so the tree, stays ours."""
    child = start("/bin/sh", "-c", "exit 7")
    wait_for(child, "exit")
    assert (child.read_exit_status(), child.read_exit_status()) == (7, 7)
    assert child.poll() == set()
    assert os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT) is not None
    child.reap()
    with pytest.raises(ChildProcessError):
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)


def test_a_signal_is_reported_as_its_negative_number(start: Callable[..., AgentChild]) -> None:
    """As subprocess has it."""
    child = start("/bin/cat")
    child.terminate()
    wait_for(child, "exit")
    assert child.read_exit_status() == -signal.SIGTERM


@pytest.mark.parametrize("own_session", [False, True], ids=["same group", "session of its own"])
def test_killing_the_tree_kills_a_grandchild_wherever_it_is(
    start: Callable[..., AgentChild], own_session: bool
) -> None:
    """A real CLI gives each of its tools a session of its own: the walk finds them all the same."""
    child = start(sys.executable, "-S", "-c", GRANDCHILD.format(own_session))
    grandchild = int(read_next_bytes(child))
    child.kill()
    assert is_gone(grandchild)
    wait_for(child, "exit")
    assert child.read_exit_status() == -signal.SIGKILL


def test_signalling_the_agent_alone_spares_the_grandchild(start: Callable[..., AgentChild]) -> None:
    """The leftovers are then found by their session, though their parent has ended."""
    child = start(sys.executable, "-S", "-c", GRANDCHILD.format(False))
    grandchild = int(read_next_bytes(child))
    child.kill("agent")
    wait_for(child, "exit")
    assert not is_gone(grandchild, 0)
    assert not child.is_alone()
    child.kill()
    assert is_gone(grandchild)
    wait_for(child, "members")
    assert child.is_alone()


def test_terminating_reaches_a_stopped_child(start: Callable[..., AgentChild]) -> None:
    """CONT comes with TERM: a stopped process would never hear it."""
    child = start("/bin/sh", "-c", "trap 'exit 9' TERM; echo; kill -STOP $$; sleep 60")
    read_next_bytes(child)
    child.terminate()
    wait_for(child, "exit")
    assert child.read_exit_status() == 9


def test_signalling_after_the_exit_harms_nobody(start: Callable[..., AgentChild]) -> None:
    """Signals go by pidfd: a pid that may belong to another process by now is never used (T2)."""
    child = start("/bin/true")
    wait_for(child, "exit")
    child.terminate()
    child.kill()
    child.read_exit_status()
    child.reap()
    child.terminate()
    child.kill("agent")


def test_a_bystander_outside_the_tree_is_left_alone(start: Callable[..., AgentChild]) -> None:
    """Neither a sibling of ours nor its children belong to the agent's tree."""
    bystander, child = start("/bin/cat"), start("/bin/cat")
    child.kill()
    wait_for(child, "exit")
    assert bystander.poll() == set()
    assert not is_gone(bystander.pid, 0)


def test_abandoning_kills_and_reaps_and_may_be_done_twice(start: Callable[..., AgentChild]) -> None:
    """For a caller that was cancelled in the middle of anything."""
    child = start("/bin/sh", "-c", "trap '' TERM; echo; sleep 60")
    read_next_bytes(child)
    assert child.kill_and_reap() == child.kill_and_reap() == -signal.SIGKILL
    with pytest.raises(ChildProcessError):
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)


def test_a_descendant_that_may_not_be_signalled_is_a_leak(
    start: Callable[..., AgentChild], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program of another user can be neither ended nor forgotten: the caller learns of it, if it lives on."""
    send, refused = signal.pidfd_send_signal, set[int]()

    def refuse(pidfd: int, signum: int) -> None:
        told = Path(f"/proc/self/fdinfo/{pidfd}").read_text("utf-8").splitlines()
        if any(line.startswith("Pid:") and int(line.split()[1]) in refused for line in told):
            raise PermissionError(1, "Operation not permitted")
        send(pidfd, signum)

    monkeypatch.setattr(signal, "pidfd_send_signal", refuse)
    before = list_open_descriptors()
    child = start("/bin/sh", "-c", "sleep 60 & one=$!; sleep 60 & echo $one $!; wait")
    first, second = (int(word) for word in read_next_bytes(child).split())
    refused.update((first, second))
    try:
        child.kill()
        assert child.is_alone()
        os.kill(first, signal.SIGKILL)
        assert is_gone(first)
        assert child.kill_and_reap() == -signal.SIGKILL
        assert child.list_survivors() == [second]
    finally:
        os.kill(second, signal.SIGKILL)
    assert list_open_descriptors() == before


def test_a_child_that_cannot_start_leaves_no_descriptor() -> None:
    """The pipes of a failed start are closed again."""
    before = list_open_descriptors()
    with pytest.raises(FileNotFoundError):
        AgentChild(["/nope"])
    assert list_open_descriptors() == before


def test_a_child_that_nobody_closes_gives_its_descriptors_back(start: Callable[..., AgentChild]) -> None:
    """A wrong supervisor drops its agent, and the program that tests it goes on for hours."""
    start("true").kill_and_reap()
    before = list_open_descriptors()
    child = AgentChild(["true"])
    wait_for(child, "exit")
    child.reap()
    del child
    gc.collect()
    assert list_open_descriptors() == before


@pytest.mark.parametrize("most", [100, 150_000])
def test_a_keeper_that_may_write_no_large_file_keeps_no_descriptor(most: int, start: Callable[..., AgentChild]) -> None:
    """The limit holds for files in memory too: here for the keeper's program, and for a long command."""
    start("true", containment="keeper").kill_and_reap()
    before, limits = list_open_descriptors(), resource.getrlimit(resource.RLIMIT_FSIZE)
    command = ["true", *["x" * 100_000] * 3]
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, limits[1]))
    try:
        with contextlib.suppress(OSError):
            AgentChild(command, containment="keeper").kill_and_reap()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list_open_descriptors() == before
