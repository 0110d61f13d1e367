"""A process that sleeps by the clock is known by its system call. With real processes."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_agentproc.clock import make_popen_limits_exact
from pytest_agentproc.clock._guards import has_timed_wait

WAITS = {
    "reads": ("input()", False),
    "polls": ("import select; p = select.poll(); p.register(0, 1); p.poll()", False),
    "polls with a limit": ("import select; p = select.poll(); p.register(0, 1); p.poll(60_000)", True),
    "selects": ("import select; select.select([0], [], [])", False),
    "selects with a limit": ("import select; select.select([0], [], [], 60)", True),
    "epolls": ("import select; p = select.epoll(); p.register(0, 1); p.poll()", False),
    "epolls with a limit": ("import select; p = select.epoll(); p.register(0, 1); p.poll(60)", True),
    "sleeps": ("import time; time.sleep(60)", True),
}


@pytest.mark.skipif(not Path("/proc/self/syscall").exists(), reason="the kernel does not tell system calls")
@pytest.mark.parametrize(("program", "is_told"), WAITS.values(), ids=WAITS)
def test_a_wait_with_a_limit_is_distinguished_from_a_wait_without(program: str, is_told: bool) -> None:
    """This holds for each call, and for each name of its limit."""
    argv = [sys.executable, "-IS", "-c", f"print(flush=True); {program}"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        while Path(f"/proc/{process.pid}/stat").read_text("ascii").rpartition(")")[2].split()[0] != "S":
            pass
        told = has_timed_wait(process.pid)
        process.kill()
    assert told is is_told


def test_nothing_is_reported_of_processes_that_are_gone() -> None:
    """He may have ended as he was looked at."""
    process = subprocess.Popen(["true"])
    process.wait()
    assert not has_timed_wait(process.pid)


def test_an_exact_limit_of_a_child_takes_a_descriptor_of_any_number() -> None:
    """`select` takes none from 1024 on, and a program may have so many files open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (2048, hard))
    held = [os.dup(0)]
    try:
        while held[-1] < 1024:
            held.append(os.dup(0))
        with make_popen_limits_exact(), subprocess.Popen(["sleep", "10"]) as child:
            with pytest.raises(subprocess.TimeoutExpired):
                child.wait(0.001)
            child.kill()
            assert child.wait(60) == -9
    finally:
        for number in held:
            os.close(number)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
