"""Members of a tree for which no descriptor was left belong to it until they are reaped, whatever becomes of them."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from typing import TYPE_CHECKING

from pytest_agentproc.tree import AgentChild
from pytest_agentproc.tree._kernel import list_children, read_state
from tests.attacks.descriptors import leave_descriptors_free

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_PATIENCE = 10.0


def _await_condition(is_true: Callable[[], bool]) -> None:
    end = time.monotonic() + _PATIENCE
    while not is_true():
        assert time.monotonic() < end
        select.select([], [], [], 0.001)


def _read_pid(child: AgentChild) -> int:
    """Read the first line of an agent: the pid of a child that becomes the leader of a session."""
    child.watch_stream("stdout", wanted=True)
    line = b""
    while not line.endswith(b"\n"):
        select.select([child.descriptor], [], [], _PATIENCE)
        if "stdout" in child.poll():
            line += child.read("stdout", 1) or b""
    child.watch_stream("stdout", wanted=False)
    pid = int(line)
    _await_condition(lambda: os.getsid(pid) == pid and read_state(child.pid) == "T")
    return pid


@contextlib.contextmanager
def _start_agent(script: str) -> Iterator[AgentChild]:
    """Start an agent, and end it."""
    child = AgentChild(["bash", "-c", script], containment="subreaper")
    try:
        yield child
    finally:
        child.kill_and_reap()


def _await_end(child: AgentChild) -> None:
    """Do the steps of a run after a kill, until no process is left."""
    end = time.monotonic() + _PATIENCE
    has_exited = False
    while not (has_exited and child.is_alone()):
        assert time.monotonic() < end
        select.select([child.descriptor], [], [], 0.1)
        if "exit" in child.poll():
            child.read_exit_status()
            has_exited = True
    child.reap()


def test_a_member_that_dies_before_its_parent_leaves_no_zombie() -> None:
    """Its zombie is adopted later, in a session of its own, and shows no environment that says whose it is."""
    with _start_agent("setsid sleep 60 & echo $!; kill -STOP $$") as child:
        with leave_descriptors_free(0):
            pid = _read_pid(child)
            assert not child.is_alone()
            os.kill(pid, signal.SIGKILL)
            _await_condition(lambda: read_state(pid) == "Z")
            child.is_alone()
            child.kill()
            _await_end(child)
        child.close()
        assert pid not in list_children(os.getpid())


def test_a_member_stays_one_when_a_descriptor_is_left_again() -> None:
    """As an orphan with an environment and a session of its own it no longer shows whose it is."""
    with _start_agent("env -i setsid sleep 60 & echo $!; kill -STOP $$") as child:
        with leave_descriptors_free(0):
            pid = _read_pid(child)
            assert not child.is_alone()
        child.kill("agent")
        _await_condition(lambda: pid in list_children(os.getpid()))
        child.kill()
        _await_end(child)
        child.close()
        assert pid not in list_children(os.getpid())
