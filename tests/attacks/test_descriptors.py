"""Whatever number of descriptors is free, supervision ends with an outcome, ends the tree, and keeps nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("descriptors.py")
ROOT = Path(__file__).parents[2]
NUMBERS = [*range(25), 30, 45, 60]
"""An agent that is started needs 14; with 25 every process of the tree has one."""
EXPECTED = {
    "run": {"spawn_failed", "inactive"},
    "cancel": {"spawn_failed", "cancelled"},
    "session": {"spawn_failed", "handshake_failed"},
    "crowd": {"spawn_failed", "inactive"},
}

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("containment", ["group", "subreaper", "keeper"])
@pytest.mark.parametrize("kind", ["run", "cancel", "session", "crowd"])
def test_any_number_of_free_descriptors_ends_with_an_outcome_and_nothing_is_kept(kind: str, containment: str) -> None:
    """A program that has opened too many files still ends what it started."""
    numbers = NUMBERS if kind != "crowd" else [13, 16, 24, 40, 60]
    done = subprocess.run(
        [sys.executable, PROGRAM, containment, kind, *map(str, numbers)],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/local/bin:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["free"] for line in lines] == numbers
    wrong = [
        line
        for line in lines
        if line["outcome"] not in EXPECTED[kind]
        or (line["outcome"] == "spawn_failed") is not line["error"].endswith("agent: Too many open files (errno 24)")
        or line["kept"]
        or line["left"]
    ]
    assert not wrong, "\n".join(map(str, wrong))
