"""After SIGKILL of any process in virtual time, at any instant, nothing is left: no process, no file, no shared memory.

The command ends in any case, and whatever it prints is no traceback of the kit's. By hand, for 200 trials:

    ATTACK_SEED=7 ATTACK_TIMES=17 nice pytest tests/attacks/test_kills.py
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.attacks import SEED, TIMES
from tests.attacks.trials import AGENTPROC, Trial, run_trial

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.slow

PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
WRAPPER = """\
command = "bash supervisor.sh {agent}"
dialects = ["raw"]
limits = {inactivity_timeout = 180, kill_grace = 5}
"""
SUPERVISOR = """\
while :; do "$@" </dev/null | { while read -r -t 180; do :; done; }; sleep 1; done
"""
"""It starts its agent again and again, so that there is something to kill until the play is given up."""

SPINS = """\
"$@" </dev/null & while :; do :; done
"""
MARKED = """\
import subprocess
import pytest


@pytest.mark.virtual_time
@pytest.mark.parametrize("number", range(1000))
def test_many(fake_agent, number):
    agent = fake_agent("[{spawn: helper}, {silence: 1h}, {answer: done}]")
    assert subprocess.run(agent.argv, capture_output=True, text=True, timeout=7200).stdout == "done\\n"
"""
FILES = {"wrapper.toml": WRAPPER, "supervisor.sh": SUPERVISOR, "test_marked.py": MARKED}
BUSY = "setsid sh -c 'while :; do sleep 1; done' & while :; do sleep 2 & wait $!; done"
JUDGE = [*PYTEST[:4], "--agentproc-corpus", "--agentproc-subject=wrapper.toml"]
"""With a cache folder: without one, the page of a failed run stays in a folder of its own, for its reader."""
COMMANDS: dict[str, list[str]] = {
    "time": [*AGENTPROC, "time", "--", "bash", "-c", BUSY],
    "judge": JUDGE,
    "spin": JUDGE,
    "marked": [*PYTEST, "test_marked.py"],
}


def plan_random_kill(rnd: random.Random, killed: list[str]) -> Callable[[Trial], bool]:
    """Kill a process of the command at an instant: the one that was started, or any other. An interrupt ends the rest.

    Args:
        rnd: decides.
        killed: receives the command line of that process.
    """
    delay, choice = rnd.uniform(0.2, 4), rnd.random()

    def attack(trial: Trial) -> bool:
        if not trial.has_ended_after(delay):
            members = sorted(trial.list_living_processes())
            pid = trial.process.pid if choice < 0.3 else members[int(choice * len(members))]
            with contextlib.suppress(OSError):
                killed.append(Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")[:200])
                os.kill(pid, signal.SIGKILL)
            if not trial.has_ended_after(1):
                os.kill(trial.process.pid, signal.SIGINT)
        return False

    return attack


@pytest.mark.parametrize("name", COMMANDS)
def test_a_kill_leaves_nothing(name: str, tmp_path: Path) -> None:
    """Machines run out of memory, and CI ends what takes too long."""
    rnd = random.Random(f"{name} {SEED}")  # noqa: S311  # the same kills each time
    found: list[str] = []
    for number in range(3 * TIMES):
        folder = tmp_path / str(number)
        folder.mkdir()
        for file, text in {**FILES, **({"supervisor.sh": SPINS} if name == "spin" else {})}.items():
            folder.joinpath(file).write_text(text, "utf-8")
        trial = Trial(folder, COMMANDS[name])
        killed: list[str] = []
        told = run_trial(trial, range(-64, 256), plan_random_kill(rnd, killed))
        found += [f"seed {SEED}, number {number}, killed {killed}: {fault}" for fault in told]
    assert not found, "\n\n".join(found)
