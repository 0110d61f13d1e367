"""The kit accepts or refuses any spoiled file of a user, soon, with a message and no traceback."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_agentproc.errors import ScenarioError
from pytest_agentproc.scenario import loads
from tests.attacks import MAX_MEGABYTES, MAX_SECONDS, SEED, TIMES
from tests.attacks.fuzzing import mutate_text
from tests.attacks.trials import Trial, run_trial

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
    completed = subprocess.run(
        [sys.executable, PROGRAM, kind, str(SEED), str(count)],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/local/bin:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=30 + 120 * TIMES,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr[-3000:]
    message = json.loads(completed.stdout)
    sys.stdout.write(f"{kind}, seed {SEED}: { {name: message[name] for name in message if name != 'found'} }\n")
    assert message["found"] == [], "\n".join(message["found"])
    assert message["accepted"] > 0
    assert message["kept"] == 0
    assert message["slowest"] < MAX_SECONDS
    assert message["megabytes"] < MAX_MEGABYTES


def test_a_spoiled_scenario_that_is_taken_runs_with_processes(tmp_path: Path) -> None:
    """If the check accepts a file, a run judges it with some verdict, and leaves nothing."""
    rnd = random.Random(SEED)  # noqa: S311  # the same inputs each time
    folder = tmp_path / "spoiled"
    folder.mkdir()
    files = sorted((ROOT / "scenarios").glob("**/*.scenario.yaml"))
    texts = [file.read_text("utf-8") for file in files if "file:" not in file.read_text("utf-8")]
    count = 0
    while count < 20 * TIMES:
        text = mutate_text(rnd.choice(texts), rnd, texts).encode("utf-8", "replace").decode()
        try:
            loads(text, "x.scenario.yaml", folder)
        except ScenarioError:
            continue
        count += 1
        (folder / f"s{count}.scenario.yaml").write_text(text, "utf-8", newline="")
    argv = [sys.executable, "-m", "pytest", str(folder), "-q", "-p", "no:cacheprovider", "--agentproc-timeline=off"]
    found = run_trial(Trial(tmp_path / "run", argv, limit=60 + 30 * TIMES), [0, 1], lambda _trial: False)
    assert not found, "\n".join(found)
