"""A leak tracker leaves nothing in this process, no adoption and no patch; and how it looks at processes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from pytest_agentproc.tree import LeakTracker, adopt_orphans_in_block
from pytest_agentproc.tree._kernel import is_dead, read_stat
from pytest_agentproc.tree._prctl import is_subreaper
from pytest_agentproc.tree._starts import START_COOKIE_VARIABLE
from pytest_agentproc.tree._walk import list_descendants as plain
from pytest_agentproc.tree._walk import read_environment

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

ORPHAN = "sleep 1000 >/dev/null 2>&1 &"


@contextmanager
def track_leaks() -> Iterator[LeakTracker]:
    """Watch while the block runs, and end the processes that it leaves."""
    watch = LeakTracker()
    watch.begin()
    try:
        yield watch
    finally:
        watch.end_owned_processes(watch.find_owned().mine)
        watch.close()


def test_adoption_lasts_as_long_as_anybody_wants_it() -> None:
    """Blocks overlap in any order, in several threads, and the end of one is not the end of all."""
    first, second = ExitStack(), ExitStack()
    assert not is_subreaper()
    assert first.enter_context(adopt_orphans_in_block())
    thread = threading.Thread(target=lambda: second.enter_context(adopt_orphans_in_block()))
    thread.start()
    thread.join()
    first.close()
    assert is_subreaper()
    second.close()
    assert not is_subreaper()


def test_adoption_that_was_there_before_stays() -> None:
    """A program that is a subreaper on its own account is one afterwards."""
    program = """
import ctypes
from pytest_agentproc.tree import adopt_orphans_in_block
from pytest_agentproc.tree._prctl import is_subreaper
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
with adopt_orphans_in_block() as holds:
    assert holds
assert is_subreaper()
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_everything_is_as_it_was_afterwards() -> None:
    """A program that is watched for a moment is not changed for ever."""
    names = ("fork", "forkpty", "posix_spawn", "posix_spawnp", "system")
    before = [subprocess.Popen.__init__, threading.Thread.start, *(getattr(os, name) for name in names)]
    with track_leaks():
        assert subprocess.Popen.__init__ is not before[0]
        assert START_COOKIE_VARIABLE in os.environ
    after = [subprocess.Popen.__init__, threading.Thread.start, *(getattr(os, name) for name in names)]
    assert after == before
    assert START_COOKIE_VARIABLE not in os.environ


def test_a_class_that_somebody_put_in_place_of_another_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    """A class patched for one tracker is patched again for the next only if it is still the class in use."""

    class Other(threading.Thread):
        """Starts as threads do."""

    with track_leaks():
        pass
    plain = Other.start
    monkeypatch.setattr(threading, "Thread", Other)
    with track_leaks():
        assert Other.__dict__["start"] is not plain
    assert Other.start is plain


def test_two_custodies_know_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pytest within a pytest is watched by both; processes older than the inner one are not the inner one's."""
    monkeypatch.setenv(START_COOKIE_VARIABLE, "somebody.else")
    with track_leaks() as outer:
        subprocess.run(ORPHAN, shell=True, check=True)
        with track_leaks() as inner:
            subprocess.run(ORPHAN, shell=True, check=True)
            assert len(inner.find_owned().mine) == 1
            assert len(outer.find_owned().mine) == 2
        assert len(outer.find_owned().mine) == 1
    assert os.environ[START_COOKIE_VARIABLE] == "somebody.else"


def test_what_is_started_in_a_pause_is_somebody_elses() -> None:
    """A fixture that outlives the test starts its server in one."""
    with track_leaks() as watch:
        with watch.pause(), subprocess.Popen(["sleep", "1000"]) as server:
            shown = subprocess.run(["printenv", START_COOKIE_VARIABLE], stdout=subprocess.PIPE, check=False)
            assert shown.stdout == b""
            server.kill()
        with watch.pause():
            server = subprocess.Popen(["sleep", "1000"])
        assert watch.find_owned().mine == ()
        assert server.poll() is None
    server.kill()
    server.wait()


def test_a_child_whose_start_is_under_way_is_left_to_its_starter(monkeypatch: pytest.MonkeyPatch) -> None:
    """A child may have ended before its start is known; another thread that sends a signal then must not reap it."""
    plain = os.posix_spawn

    def posix_spawn(path: str, argv: list[str], env: dict[str, str]) -> int:
        pid = plain(path, argv, env)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        thread = threading.Thread(target=os.kill, args=(os.getpid(), 0))
        thread.start()
        thread.join()
        return pid

    monkeypatch.setattr(os, "posix_spawn", posix_spawn)
    with track_leaks():
        pid = os.posix_spawn("/bin/sh", ["sh", "-c", "exit 3"], dict(os.environ))
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3


def test_a_tree_that_changes_under_the_look_is_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A daemon's parent that goes between the reading of its parent's children and of its own hides the daemon."""
    looks = []

    def descendants(pid: int) -> list[int]:
        looks.append(pid)
        return [gone] if len(looks) == 1 else plain(pid)

    with track_leaks() as watch:
        with subprocess.Popen(["true"]) as process:
            gone = process.pid
        subprocess.run(ORPHAN, shell=True, check=True)
        monkeypatch.setattr("pytest_agentproc.tree._leak_tracker.list_descendants", descendants)
        [found] = watch.find_owned().mine
        assert (found.how, len(looks)) == ("adopted", 2)


def test_the_end_includes_processes_that_come_late() -> None:
    """A program that starts another when its child dies is ended with all that it starts."""
    with track_leaks() as watch:
        loop = subprocess.Popen("while :; do sleep 1000; done", shell=True, start_new_session=True)
        found = watch.find_owned().mine
        assert watch.end_owned_processes(found) == []
        assert watch.find_owned().mine == ()
        assert loop.returncode is not None


BECOMES = '[ "$LEFT" = 0 ] && exit; export LEFT=$((LEFT-1)); exec sh -c "$AGAIN"'

EXITING = [b"4"] * 7
"""The rest of the kernel's entry of an ended process: its flags."""


def test_a_process_that_becomes_another_program_keeps_its_environment() -> None:
    """The kernel shows none while it puts the new program in place: whose the process is must not depend on that."""
    given = {"LEFT": "1000", "AGAIN": BECOMES, "PATH": os.environ["PATH"]}
    looks, empty = 0, 0
    with subprocess.Popen(["sh", "-c", BECOMES], env=given) as process:
        pidfd = os.pidfd_open(process.pid)
        while not is_dead(pidfd):
            looks += 1
            empty += not read_environment(process.pid) and int((read_stat(process.pid) or EXITING)[6]) & 4 == 0
        os.close(pidfd)
    assert (looks > 0, empty) == (True, 0)


def test_a_process_without_an_environment_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has none for good, as soon as its program is in place, and when it is dead."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={}) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"there")
        process.stdin.flush()
        assert process.stdout.read(5) == b"there"
        monkeypatch.setattr("pytest_agentproc.tree._walk.select", None)
        assert read_environment(process.pid) == b""
        process.stdin.close()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert read_environment(process.pid) == b""
    assert read_environment(process.pid) == b""
