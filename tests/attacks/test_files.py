"""Whatever a file that a user hands in says, the kit takes or refuses it, soon, with a message and no traceback."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.attacks import MOST_MEGABYTES, MOST_SECONDS, SEED, TIMES

PROGRAM = Path(__file__).with_name("fuzzing.py")
ROOT = Path(__file__).parents[2]
COUNTS = {
    "scenario": 300,
    "play": 300,
    "log": 150,
    "secret": 60,
    "wrapper": 1000,
    "results": 2000,
    "baseline": 1000,
    "ini": 2000,
}

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kind", COUNTS)
def test_a_spoiled_file_is_taken_or_refused(kind: str) -> None:
    """Files come from editors, merges, generators and strangers."""
    count = COUNTS[kind] * TIMES
    done = subprocess.run(
        [sys.executable, PROGRAM, kind, str(SEED), str(count)],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/local/bin:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=30 + 120 * TIMES,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout)
    sys.stdout.write(f"{kind}, seed {SEED}: { {name: told[name] for name in told if name != 'found'} }\n")
    assert told["found"] == [], "\n".join(told["found"])
    assert told["accepted"] > 0
    assert told["kept"] == 0
    assert told["slowest"] < MOST_SECONDS
    assert told["megabytes"] < MOST_MEGABYTES
