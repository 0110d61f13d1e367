"""One process of the kit is stopped, and another one is killed: nothing is left, and nothing hangs.

A stopped process cannot look after the others. So each process of the kit is looked after by two. One limit remains:
the tree of a stopped pytest waits until somebody lets pytest go on.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
from typing import TYPE_CHECKING

import pytest

from tests.attacks.trials import Trial, run_trial

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.slow

WRAPPER = """\
command = "bash supervisor.sh {agent}"
dialects = ["raw"]
limits = {inactivity_timeout = 180, kill_grace = 5}
"""
SUPERVISOR = """\
"$@" </dev/null & while :; do :; done
"""
JUDGE = [sys.executable, "-m", "pytest", "-q", "--agentproc-corpus", "--agentproc-subject=wrapper.toml"]
ROLES = ("pytest", "watcher", "coordinator", "play server", "supervisor", "agent", "broker")
SECONDS_TO_START = 60


def stop_one_and_kill_another(stopped: str, killed: str, told: list[str]) -> Callable[[Trial], bool]:
    """Attack once all processes are there; then pytest is interrupted, unless it is dead."""

    def attack(trial: Trial) -> bool:
        roles: dict[str, int] = {}
        for _ in range(SECONDS_TO_START * 5):
            if trial.has_ended_after(0.2) or {stopped, killed} <= (roles := trial.find_roles()).keys():
                break
        if not {stopped, killed} <= roles.keys():
            told.append(f"not found: {roles}")
            return True
        os.kill(roles[stopped], signal.SIGSTOP)
        os.kill(roles[killed], signal.SIGKILL)
        if not trial.has_ended_after(2):
            os.kill(trial.process.pid, signal.SIGCONT)
            os.kill(trial.process.pid, signal.SIGINT)
        return True

    return attack


@pytest.mark.parametrize(("stopped", "killed"), [*itertools.permutations(ROLES, 2)])
def test_nothing_is_left_after_two_faults(stopped: str, killed: str, tmp_path: Path) -> None:
    """The tree of a killed pytest stayed while its play server was stopped."""
    tmp_path.joinpath("wrapper.toml").write_text(WRAPPER, "utf-8")
    tmp_path.joinpath("supervisor.sh").write_text(SUPERVISOR, "utf-8")
    told: list[str] = []
    told += run_trial(Trial(tmp_path, JUDGE), range(-64, 256), stop_one_and_kill_another(stopped, killed, told))
    assert not told, "\n\n".join(told)
