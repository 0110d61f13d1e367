"""Processes that burn every core while something is measured. Owns them from start to end; knows no project."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["burn_all_cores"]

_SOURCE = """
import os, sys, time
core, parent, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
os.sched_setaffinity(0, [core])
end = time.monotonic() + seconds
while time.monotonic() < end and os.getppid() == parent:
    for _ in range(10_000):
        pass
"""


@contextmanager
def burn_all_cores(seconds: float) -> Iterator[None]:
    """Keep every core that this process may use busy with one process each.

    Args:
        seconds: real time after which they end by themselves, whatever happens; they also end with this process.
    """
    cores = sorted(os.sched_getaffinity(0))
    command = [sys.executable, "-IS", "-c", _SOURCE]
    started: list[subprocess.Popen[bytes]] = []
    try:
        for core in cores:
            burner_process = subprocess.Popen([*command, str(core), str(os.getpid()), str(seconds)])
            started.append(burner_process)
        yield
        if any(burner.poll() is not None for burner in started):
            raise RuntimeError(f"a burner ended before the {seconds:g} s were over")
    finally:
        for burner in started:
            burner.kill()
            burner.wait()
