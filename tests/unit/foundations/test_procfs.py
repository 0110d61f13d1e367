"""The facts of /proc about a process, as the kernel writes them."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from pytest_agentproc import procfs
from pytest_agentproc.procfs import iterate_pids, list_threads, read_command_words, read_proc, read_stat


def test_it_reads_this_process() -> None:
    """Its words as they were given, and its names for others."""
    mine = read_stat(os.getpid())
    assert mine is not None
    assert (mine.parent, mine.group, mine.session) == (os.getppid(), os.getpgrp(), os.getsid(0))
    assert read_command_words(os.getpid())[1:] == sys.orig_argv[1:]
    assert os.getpid() in iterate_pids()
    assert os.getpid() in list_threads(os.getpid())


def test_a_process_that_has_lost_its_coordinator_knows_the_time_since_boot() -> None:
    """The variable is there, and the shim is not: a static Python, or one that sees another /proc."""
    code = "from pytest_agentproc.procfs import read_nanoseconds_since_boot; print(read_nanoseconds_since_boot())"
    begun = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    printed = subprocess.check_output([sys.executable, "-c", code], env={**os.environ, "AGENTPROC_CLOCK": "/nowhere"})
    assert begun < int(printed) < time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def test_who_is_gone_says_nothing() -> None:
    """That happens between any two looks."""
    gone = 2**22 + 1
    assert (read_stat(gone), read_command_words(gone), read_proc(f"{gone}/comm"), list_threads(gone)) == (
        None,
        [],
        b"",
        [],
    )


def test_who_goes_as_its_threads_are_listed_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder is open by then, and the kernel finds no process for it."""

    def listed(folder: str) -> list[str]:
        raise ProcessLookupError(3, "No such process", folder)

    monkeypatch.setattr(os, "listdir", listed)
    assert list_threads(os.getpid()) == []


@pytest.mark.parametrize(
    ("written", "words"),
    [
        (b"", []),
        (b"pi\0--mode\0rpc\0", ["pi", "--mode", "rpc"]),
        (b"pi\0\0", ["pi", ""]),
        (b"nginx: master process", ["nginx: master process"]),
    ],
)
def test_a_command_ends_with_a_zero_or_is_a_title(
    monkeypatch: pytest.MonkeyPatch, written: bytes, words: list[str]
) -> None:
    """A server that writes over its command is named by what it wrote."""
    monkeypatch.setattr(procfs, "read_proc", lambda _file: written)
    assert read_command_words(1) == words


def test_a_name_may_hold_brackets_and_blanks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last bracket ends it."""
    line = b"7 (a) b (c)) S 1 2 3" + b" 0" * 15 + b" 99 0"
    monkeypatch.setattr(procfs, "read_proc", lambda _file: line)
    assert read_stat(7) == ("a) b (c)", "S", 1, 2, 3, 99)
