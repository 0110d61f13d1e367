"""The supervisor ends every hostile agent in time, with bounded memory, and leaves no process of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.attacks import MAX_MEGABYTES, MAX_SECONDS
from tests.attacks.hostile import WAYS
from tests.attacks.trials import AGENTPROC, Trial, run_trial

PROGRAM = Path(__file__).with_name("hostile.py")
ROOT = Path(__file__).parents[2]
RECORDED = ["a flood of stderr", "half a line", "bytes that are no text", "deep JSON", "many texts"]

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("way", WAYS)
def test_a_hostile_agent_costs_little_and_leaves_nothing(way: str) -> None:
    """An agent runs code that its model wrote."""
    completed = subprocess.run(
        [sys.executable, PROGRAM, way],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/local/bin:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr[-3000:]
    message = json.loads(completed.stdout)
    assert (message["kept"], message["left"]) == (0, [])
    assert message["outcome"] not in ("completed", "spawn_failed")
    assert message["seconds"] < MAX_SECONDS
    assert message["megabytes"] < MAX_MEGABYTES


@pytest.mark.parametrize("way", RECORDED)
def test_a_hostile_agent_is_recorded_in_bounds(way: str, tmp_path: Path) -> None:
    """The recorder runs in its place, and its caller waits for both."""
    program = [sys.executable, str(PROGRAM), way, "agent"]
    quiet = subprocess.DEVNULL
    trial = Trial(tmp_path, [*AGENTPROC, "record", "--yes", "--out", "x.scenario.yaml", "--", *program], stdout=quiet)
    found = run_trial(trial, [0], lambda _trial: False)
    assert not found, "\n".join(found)
