"""After any fault during its run, a command ends with an exit code that its help names, and leaves nothing."""

from __future__ import annotations

import os
import random
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.attacks import SEED, TIMES
from tests.attacks.trials import AGENTPROC, Trial, run_trial

if TYPE_CHECKING:
    from collections.abc import Callable

SCENARIOS = Path(__file__).parents[2] / "scenarios"
LOG = Path(__file__).parents[1] / "unit" / "pasted"
COMMANDS: dict[str, list[str]] = {
    "check": [*AGENTPROC, "check", str(SCENARIOS)],
    "list": [*AGENTPROC, "list"],
    "schema": [*AGENTPROC, "schema"],
    "new": [*AGENTPROC, "new", "claude"],
    "import": [*AGENTPROC, "import", str(min(LOG.glob("*.claude.txt"))), "--dialect", "claude"],
    "run": [*AGENTPROC, "run", "lingers-and-ignores-term"],
    "run in real time": [*AGENTPROC, "run", "lingers-and-ignores-term", "--clock", "real"],
    "conform": [*AGENTPROC, "conform", "reference", "-k", "lingers-and-ignores-term", "-j", "1"],
    "search": [*AGENTPROC, "search", "open-session-timeouts", "--seconds", "1", "-j", "1", "--out", "."],
    "fake": [*AGENTPROC, "fake", "lingers-and-ignores-term", "--dir", "fakes", "--name", "pi"],
    "record": [
        *AGENTPROC,
        "record",
        "--yes",
        "--out",
        "x.scenario.yaml",
        "--",
        "bash",
        "-c",
        "for i in 1 2 3; do echo $i; sleep .2; done",
    ],
    "pytest": [
        sys.executable,
        "-m",
        "pytest",
        "--agentproc-corpus",
        "-k",
        "lingers-and-ignores-term",
        "-q",
        "-p",
        "no:cacheprovider",
    ],
}
CODES = {0, 1, 2, 3, 130, 141}
"""Also 141: the reader of the output is closed."""
PYTEST_CODES = {0, 1, 2, 3, 4, 5}
SIGNALS = ("INT", "INT", "TERM", "HUP", "KILL", "STOP")
ENVIRONMENTS: tuple[dict[str, str], ...] = (
    {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"},
    {"PATH": ""},
    {"HOME": "/nowhere"},
    {"COLUMNS": "0", "LINES": "-1", "TERM": "dumb"},
    {"COLUMNS": "9" * 40},
    {"PYTHONDEVMODE": "1", "PYTHONHASHSEED": "1"},
    {"TZ": "Not/There", "LANG": "x" * 5000},
    {"PYTHONOPTIMIZE": "2"},
    {"ODD\nNAME": "odd\nvalue", "BYTES": os.fsdecode(b"\xff\xfe")},
    {"AGENTPROC_HARNESS": "1", "CLAUDECODE": "1"},
)

pytestmark = pytest.mark.slow


def plan_random_signal(rnd: random.Random, _name: str) -> tuple[dict[str, Any], Callable[[Trial], bool]]:
    """Signal a random process of the command at a random instant; a stopped process continues later."""
    number, delay = getattr(signal, f"SIG{rnd.choice(SIGNALS)}"), rnd.uniform(0.4, 2.5)
    is_main = rnd.random() < 0.7

    def attack(trial: Trial) -> bool:
        if trial.has_ended_after(delay):
            return False
        pids = [trial.process.pid] if is_main else trial.list_living_processes()
        pid = rnd.choice(pids or [trial.process.pid])
        try:
            os.kill(pid, number)
            if number == signal.SIGSTOP:
                trial.has_ended_after(0.3)
                os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            return False
        return number not in (signal.SIGINT, signal.SIGSTOP)

    return {}, attack


def plan_missing_resource(rnd: random.Random, name: str) -> tuple[dict[str, Any], Callable[[Trial], bool]]:
    """Close a stream, fill the disk, or take a right away, from the beginning on."""
    streams = [] if name == "pytest" else ["stdout", "stderr", "full", "gone", "files"]  # pytest's own are not ours
    kind = rnd.choice(["stdin", "umask", "nowhere", *streams])
    fields: dict[str, str] = {
        "stdin": "exec <&-",
        "stdout": "exec >&-",
        "stderr": "exec 2>&-",
        "full": "exec >/dev/full",
        "gone": "exec > >(exec sleep 0)",
        "files": "ulimit -f 0; exec >/dev/null 2>&1",
        "umask": "umask 777",
        "nowhere": "export TMPDIR=/nowhere",
    }
    return {"shell": fields[kind]}, lambda _trial: False


def plan_strange_environment(rnd: random.Random, name: str) -> tuple[dict[str, Any], Callable[[Trial], bool]]:
    """Have an environment that no other test covers."""
    env = rnd.choice(ENVIRONMENTS)
    is_pytests = name == "pytest" and "COLUMNS" in env  # it does not know what to do with such a terminal
    return {"env": {} if is_pytests else env}, lambda _trial: False


@pytest.mark.parametrize("name", COMMANDS)
def test_random_faults_leave_nothing(name: str, tmp_path: Path) -> None:
    """Machines are full, people press ctrl-C, and pipelines end early."""
    rnd = random.Random(f"{name} {SEED}")  # noqa: S311  # the same faults each time
    found: list[str] = []
    codes = PYTEST_CODES if name == "pytest" else CODES | {127} if name == "record" else CODES
    for number in range(3 * TIMES):
        fault = [plan_random_signal, plan_missing_resource, plan_strange_environment][number % 3]
        how, attack = fault(rnd, name)
        argv = COMMANDS[name]
        if "shell" in how:
            argv = ["bash", "-c", f'{how["shell"]}; exec "$@"', "x", *argv]
        trial = Trial(tmp_path / str(number), argv, how.get("env"))
        by_signal = {-getattr(signal, f"SIG{word}") for word in SIGNALS} | {128 + 15, 128 + 1, 128 + 9}
        told = run_trial(trial, [*codes, *by_signal], attack)
        found += [f"seed {SEED}, number {number}, {fault.__name__} {how}: {problem}" for problem in told]
    assert not found, "\n\n".join(found)
