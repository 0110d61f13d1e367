"""With any number of free descriptors, supervision ends with an outcome, ends the tree, and keeps no descriptor.

This takes a sample of a fixed seed, for less than a minute. `descriptors.py` takes any numbers, as often as you like.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("descriptors.py")
ROOT = Path(__file__).parents[2]
FEWEST, ENOUGH, MOST = 14, 25, 60
"""An agent that is started needs the first; with the second every process of its tree has one."""
SEED = 31
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
    draw = random.Random(f"{SEED} {kind} {containment}")  # noqa: S311  # the same numbers each time
    few, some, many = range(FEWEST), range(FEWEST, ENOUGH), range(ENOUGH, MOST + 1)
    numbers = [*draw.sample(some, 2), draw.choice(many)]
    if kind != "crowd":  # which takes long, and of which nothing is started with fewer
        numbers += [0, *draw.sample(few, 2), FEWEST, *draw.sample(some, 2)]
    completed = subprocess.run(
        [sys.executable, PROGRAM, containment, kind, *map(str, numbers)],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/local/bin:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr
    lines = [json.loads(line) for line in completed.stdout.splitlines()]
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
