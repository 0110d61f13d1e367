"""What psutil says of a process: its identity, and the facts that a message shows, as far as they are known."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING

import freezegun
import psutil
import pytest

from pytest_agentproc.processes import (
    describe_processes,
    list_programs_below,
    open_process,
    open_processes,
    read_command,
    read_name,
)
from pytest_agentproc.procfs import read_stat

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

GONE = 2**22 + 1
ME = os.getpid()
HOLDS_ALL = """
import signal, socket, sys
signal.alarm(60)
kept = [socket.create_server(("127.0.0.1", 0)) for _ in range(int(sys.argv[1]))]
kept += [socket.socket(socket.AF_INET, socket.SOCK_DGRAM)]
kept[-1].bind(("127.0.0.1", 0))
kept += [socket.create_connection(kept[0].getsockname())]
files = [open(path, "w") for path in sys.argv[2:]]
print(*(one.getsockname()[1] for one in kept), flush=True)
signal.pause()
"""


def read_birth(pid: int) -> int:
    """Give the tick at which a living process was started."""
    seen = read_stat(pid)
    assert seen is not None
    return seen.started


def describe(pid: int) -> str:
    """Describe one process."""
    return ", ".join(describe_processes([(pid, read_birth(pid))])[pid])


@pytest.fixture
def ends() -> Iterator[ExitStack]:
    """Give a stack that ends what a test has started."""
    with ExitStack() as stack:
        yield stack


def start(ends: ExitStack, *argv: str) -> subprocess.Popen[bytes]:
    """Start a program that the test's end kills."""
    process = ends.enter_context(subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0))
    ends.callback(process.kill)
    return process


def test_ports_and_files_are_named_and_long_lists_are_cut(ends: ExitStack, tmp_path: Path) -> None:
    """A client's own end is no port that it listens on; a newline in a path makes no line of its own."""
    paths = [str(tmp_path / f"{name}.log") for name in ("a", "b\nc", "d", "e", "f")]
    holder = start(ends, sys.executable, "-c", HOLDS_ALL, "1", *paths)
    assert holder.stdout is not None
    tcp, udp, _client = map(int, holder.stdout.readline().split())
    text = describe(holder.pid)
    first, second = sorted([f"127.0.0.1:{tcp}", f"127.0.0.1:{udp} (UDP)"])
    assert f", listens on {first} and {second}, open: " in text
    assert "\n" not in text
    assert text.endswith(" and 2 more")
    assert re.match(r"\d+\.\d s old in real time, \d+\.\d MiB of memory, listens on ", text)


@pytest.mark.parametrize(
    "error",
    [
        psutil.AccessDenied(ME),
        psutil.ZombieProcess(ME),
        FileNotFoundError(2, "No such file", "/proc/net/tcp"),
        RuntimeError("error while parsing /proc/net/tcp; malformed line"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_fact_that_cannot_be_read_is_left_out(
    monkeypatch: pytest.MonkeyPatch, ends: ExitStack, error: Exception
) -> None:
    """A process of another user hides its files, and a container may have no /proc/net: the leak is reported anyway."""

    def refuse(*_: object) -> None:
        raise error

    process = start(ends, "sleep", "60")
    for name in ("memory_info", "net_connections", "open_files"):
        monkeypatch.setattr(psutil.Process, name, refuse)
    assert re.fullmatch(r"\d\.\d s old in real time", describe(process.pid))
    monkeypatch.setattr(psutil.Process, "num_fds", refuse)
    assert re.fullmatch(r"\d\.\d s old in real time", describe(process.pid))


def test_the_age_is_by_the_clock_of_the_machine(ends: ExitStack) -> None:
    """A test may have moved the date by years: psutil's date of birth is not compared with it."""
    process = start(ends, "sleep", "60")
    with freezegun.freeze_time("2001-01-01"):
        assert float(describe(process.pid).split()[0]) < 60


def test_at_most_ten_processes_are_looked_at_and_for_a_second(monkeypatch: pytest.MonkeyPatch, ends: ExitStack) -> None:
    """A test that leaves a thousand processes fails as fast as one that leaves ten."""
    several = [start(ends, "sleep", "60") for _ in range(12)]
    wanted = [(process.pid, read_birth(process.pid)) for process in several]
    assert [*describe_processes(wanted)] == [pid for pid, _ in wanted[:10]]
    seconds = iter(range(100))
    monkeypatch.setattr("pytest_agentproc.machine.read_monotonic", lambda: next(seconds))
    assert [*describe_processes(wanted)] == [wanted[0][0]]


def test_a_process_with_very_many_files_is_not_asked_for_them(monkeypatch: pytest.MonkeyPatch, ends: ExitStack) -> None:
    """Each file would be one question to the kernel, or several."""
    process = start(ends, "sleep", "60")
    monkeypatch.setattr(psutil.Process, "num_fds", lambda _: 513)
    monkeypatch.setattr(psutil.Process, "open_files", lambda _: pytest.fail("it was asked"))
    assert "open:" not in describe(process.pid)


def test_a_handle_is_of_the_process_that_was_seen(ends: ExitStack) -> None:
    """A pid may be another process's by now; then the one that was seen has ended."""
    process = start(ends, "sleep", "60")
    born = read_birth(process.pid)
    assert open_process(process.pid, born) == psutil.Process(process.pid)
    for pid, started in ((process.pid, born - 1), (process.pid, None), (GONE, born)):
        with pytest.raises(psutil.NoSuchProcess):
            open_process(pid, started)
    assert open_processes([(GONE, born), (process.pid, born), (ME, born - 1)]) == (psutil.Process(process.pid),)
    assert describe_processes([(GONE, born), (ME, 1)]) == {}


def test_a_process_that_is_gone_has_no_words_and_no_name(ends: ExitStack) -> None:
    """That happens between any two looks; a zombie has no words either."""
    assert (read_command(GONE), read_name(GONE), list_programs_below(GONE, ())) == ((), "", [])
    process = start(ends, "cat")
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b".")
    process.stdout.read(1)  # for a moment within an exec the kernel shows no words
    assert (read_command(process.pid), read_name(process.pid)) == (["cat"], "cat")
    process.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert read_command(process.pid) == ()


def test_the_programs_that_are_waited_for_are_the_last_of_each_branch(ends: ExitStack) -> None:
    """A shell waits for its command: the command is named, also one that a thread has started."""
    here, there = socket.socketpair()
    code = (
        "import signal, subprocess, sys, threading; signal.alarm(60)\n"
        "start = lambda: started.append(subprocess.Popen(['sh', '-c', 'sleep 61; true']))\n"
        "started = []; one = threading.Thread(target=start); one.start(); one.join()\n"
        "sys.stdout.write('.'); sys.stdout.flush(); signal.pause()"
    )
    with here, there:
        host = start(ends, sys.executable, "-c", code)
        assert host.stdout is not None
        host.stdout.read(1)
        [shell] = psutil.Process(host.pid).children()
        ends.callback(shell.kill)
        while not (sleeps := shell.children()) or sleeps[0].cmdline() != ["sleep", "61"]:
            pass
        ends.callback(sleeps[0].kill)
        assert list_programs_below(host.pid, ()) == [f"sleep 61 (pid {sleeps[0].pid})"]
        assert list_programs_below(host.pid, {shell.pid}) == []
