"""Runs a program below the coordinator. Owns the command line and the limit; judges nothing."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pytest_agentproc.clock.preload import find_coordinator

LIMIT = 60


@dataclass(frozen=True, slots=True)
class TimedRun:
    """The effects of a command in virtual time."""

    code: int
    out: str
    err: str

    @property
    def virtual(self) -> str:
        """Give the seconds of virtual time, as they were printed."""
        found = re.search(r"([0-9.]+) s of virtual time", self.err)
        return found[1] if found else ""

    @property
    def notes(self) -> list[str]:
        """Give the lines of the coordinator's, without pids and without the last, which has the two times."""
        lines = [line for line in self.err.splitlines() if line.startswith("agentproc time: ")]
        return [re.sub(r"pid \d+", "pid N", line.removeprefix("agentproc time: ")) for line in lines[:-1]]


def run_in_virtual_time(*words: str | Path, **more: Any) -> TimedRun:
    """Run a command in virtual time, to its end."""
    program = require_program(str(words[0]))
    completed = subprocess.run(  # noqa: PLW1510  # the code is one of the things that a test looks at
        [find_coordinator(), program, *words[1:]], capture_output=True, text=True, timeout=LIMIT, **more
    )
    return TimedRun(completed.returncode, completed.stdout, completed.stderr)


def require_program(name: str) -> str:
    """Give a program's path, or skip the test."""
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed here")
    return path


def require_tracing() -> None:
    """Skip the test on a machine that forbids tracing, or has no tracer."""
    if os.uname().machine != "x86_64":
        pytest.skip("programs are traced on x86-64 alone")
    if not _may_trace():
        pytest.skip("this machine forbids tracing")


@cache
def _may_trace() -> bool:
    scope = Path("/proc/sys/kernel/yama/ptrace_scope")
    if scope.exists() and int(scope.read_text("ascii")) > 1:
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    with subprocess.Popen(["sleep", "60"]) as child:
        is_allowed = bool(libc.ptrace(_PTRACE_SEIZE, child.pid, 0, 0) == 0)
        child.kill()
    return is_allowed


_PTRACE_SEIZE = 0x4206
