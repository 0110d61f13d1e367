"""A Ctrl-C at any call of a block that changes the interpreter ends the block whole, and arrives as a Ctrl-C.

This takes a sample of the calls. All calls of a block, one after the other, by hand: `interrupts.py BLOCK`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_agentproc.clock.preload import find_coordinator
from tests.attacks import SEED, TIMES

PROGRAM = Path(__file__).with_name("interrupts.py")
ROOT = Path(__file__).parents[2]
STEP_BY_BLOCK = {
    "asyncio": 23,
    "trio": 23,
    "loops": 23,
    "popen": 3,
    "signals": 5,
    "stdin": 5,
    "adoption": 5,
    "leaks": 17,
    "fake": 23,
    "play": 151,
    "play on trio": 149,
    "play below a coordinator": 97,
    "below a coordinator": 5,
}
BELOW = "below a coordinator"

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("block", STEP_BY_BLOCK)
def test_a_ctrl_c_at_any_call_leaves_no_half_of_a_block(block: str, tmp_path: Path) -> None:
    """Once a patched clock was left behind, and users saw an IndexError of freezegun in place of their Ctrl-C."""
    step = max(1, STEP_BY_BLOCK[block] // TIMES)
    start = [str(find_coordinator()), "--session"] if block == BELOW else []
    completed = subprocess.run(
        [*start, sys.executable, "-W", "ignore", PROGRAM, block, str(step), str(SEED % step)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr
    *wrong, last = completed.stdout.splitlines()
    assert json.loads(last)["tried"] > 0
    assert not wrong, "\n".join(wrong)
    assert "Error" not in completed.stderr
