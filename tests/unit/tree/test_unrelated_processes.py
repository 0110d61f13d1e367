"""Whose process a pid is, by what /proc says: only who certainly is a stranger is a bystander."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from pytest_agentproc.harness._unrelated_processes import (
    is_unrelated_process,
    iterate_group_members,
    read_alive_or_stopped,
    read_boot_ticks,
)
from pytest_agentproc.procfs import ProcessStat, read_stat

BEGUN = 1000
ME = 50
TABLE = {
    # pid: (parent, started); the run is in process 50, below a shell and a worker's master
    1: (0, 1),
    20: (1, 10),
    30: (20, 500),
    ME: (30, 600),
    60: (ME, 700),  # a server that an earlier test started
    61: (60, 1001),  # what that server has forked since
    70: (ME, 1001),  # an agent of this run
    71: (70, 1002),  # its helper
    72: (1, 1003),  # one that lost its parent
    73: (72, 1004),
    74: (30, 1005),  # one that the master adopted, or started
    80: (30, 601),  # another worker
    81: (80, 1001),  # its agent
    82: (81, 1002),
    90: (20, 400),  # what else runs in the shell
}


def seen(pid: int) -> ProcessStat | None:
    """Look into the table."""
    return ProcessStat("name", "S", TABLE[pid][0], pid, pid, TABLE[pid][1]) if pid in TABLE else None


@pytest.mark.parametrize("pid", [1, 20, 30, 60, 80, 81, 82, 90])
def test_who_was_there_before_and_his_children_are_unrelated_processes(pid: int) -> None:
    """The processes above, an earlier child, another worker of xdist and its agents."""
    assert is_unrelated_process(pid, BEGUN, ME, seen)


@pytest.mark.parametrize("pid", [ME, 61, 70, 71, 72, 73, 74, 99])
def test_who_may_belong_to_the_run_is_none(pid: int) -> None:
    """A process is one of ours if it is below this process, or has lost its parent: an accusation must be right."""
    assert not is_unrelated_process(pid, BEGUN, ME, seen)


def test_a_process_that_vanishes_while_it_is_looked_at_is_none() -> None:
    """The parent of its parent is no longer known."""
    table = {pid: seen(pid) for pid in TABLE if pid != 80}
    assert not is_unrelated_process(81, BEGUN, ME, table.get)


def test_the_kernel_is_read_as_it_writes() -> None:
    """A name may have spaces and brackets; this process was started before now."""
    mine = read_stat(os.getpid())
    assert mine is not None
    assert (mine.parent, mine.group) == (os.getppid(), os.getpgrp())
    assert mine.started <= read_boot_ticks()
    assert read_alive_or_stopped(os.getpid()) == "alive"
    assert read_stat(2**22 + 1) is None


def test_who_is_dead_is_no_member_of_a_group() -> None:
    """When a zombie is reaped is up to others, and a verdict must not be."""
    program = [sys.executable, "-IS", "-c", "import sys; sys.stdin.read()"]
    with subprocess.Popen(program, stdin=subprocess.PIPE, process_group=0) as process:
        assert [*iterate_group_members(process.pid)] == [process.pid]
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert [*iterate_group_members(process.pid)] == []
