"""What is written to a terminal arrives before time moves: in both directions, and its echo."""

from __future__ import annotations

import shutil
import sys

import pytest

from tests.process.preload.stand import run_in_virtual_time

EXCHANGES = 300
DRIVES = """
import os, pty, select, subprocess, sys, time

near, far = pty.openpty()
agent = subprocess.Popen(sys.argv[2:], stdin=far, stdout=far, stderr=far, start_new_session=True)
os.close(far)
begin, late = time.monotonic_ns(), 0
for count in range(1, int(sys.argv[1]) + 1):
    os.write(near, b"go on\\n")
    seen = b""
    while b"tick" not in seen:
        if select.select([near], [], [], 7.001)[0]:
            seen += os.read(near, 100)
    late += time.monotonic_ns() - begin != 7 * 10**9 * count
os.close(near)
print(late, "late, exit code", agent.wait())
"""


@pytest.mark.slow
def test_each_answer_on_a_terminal_comes_at_its_instant() -> None:
    """Nearly each answer came late: the kernel was still to bring the text to the other end when time moved."""
    agent = [shutil.which("sh") or "sh", "-c", "while read word; do sleep 7; echo tick; done"]
    run = run_in_virtual_time(sys.executable, "-c", DRIVES, str(EXCHANGES), *agent)
    assert (run.out, run.notes, run.virtual) == ("0 late, exit code 0\n", [], str(7 * EXCHANGES)), run.err
