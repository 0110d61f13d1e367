"""Every way to get away from a supervisor against every way to hold a tree. Owns the table, and how a cell is played.

`python -m tests.process.tree_matrix --runs 400` runs the given number of cells on two workers of pytest at once. Cells
that must be red run beside cells that must be green; the program prints how many verdicts were wrong. The table is
the promise of docs/explanation/process-trees.md, written by hand: the processes that a supervisor with this
containment ends, and the rest, which is left.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pytest_agentproc import defects
from pytest_agentproc.scenario import loads
from pytest_agentproc.subjects import Command, ReferenceSupervisor, reference_supervisor
from pytest_agentproc.verdict import Verdict, judge_all_expectations, list_leaks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_agentproc.harness import ScenarioRunner
    from pytest_agentproc.scenario import Scenario
    from pytest_agentproc.vocabulary import Subject

__all__ = [
    "CELLS",
    "ENDINGS",
    "KINDS",
    "SUBJECTS",
    "Escape",
    "MatrixCell",
    "build_supervisor",
    "judge_cell",
    "write_scenario",
]


class Escape(NamedTuple):
    """One way in which a descendant gets away.

    Args:
        step: what the agent's script says.
        names: the processes that survive below the agent if no supervisor ends them.
        leaves_session: whether they are in another session than the agent.
        is_orphan: whether they have lost their parent before the agent ends.
        is_pauseless: whether virtual time would never move again.
        is_nameless: whether they cleared their environment, too, so that an adopter cannot tell whose they are.
    """

    step: str
    names: tuple[str, ...] = ("x",)
    leaves_session: bool = False
    is_orphan: bool = False
    is_nameless: bool = False
    is_pauseless: bool = False


KINDS = {
    "same group": Escape("{id: x}"),
    "own group": Escape("{id: x, how: own_group}"),
    "new session": Escape("{id: x, how: new_session}", leaves_session=True),
    "double fork": Escape("{id: x, how: double_fork}", is_orphan=True),
    "daemon": Escape("{id: x, how: daemon}", leaves_session=True, is_orphan=True),
    "below a launcher": Escape("{id: x, how: launcher}", leaves_session=True, is_orphan=True),
    "closed descriptors": Escape("{id: x, how: daemon, closed_fds: true}", leaves_session=True, is_orphan=True),
    "cleared environment": Escape(
        "{id: x, how: daemon, clear_env: true}", leaves_session=True, is_orphan=True, is_nameless=True
    ),
    "cleared environment in the session": Escape("{id: x, how: double_fork, clear_env: true}", is_orphan=True),
    "both closed and cleared": Escape(
        "{id: x, how: daemon, closed_fds: true, clear_env: true}",
        leaves_session=True,
        is_orphan=True,
        is_nameless=True,
    ),
    "ignores_signals": Escape("{id: x, ignores_signals: true}"),
    "deaf daemon": Escape("{id: x, how: daemon, ignores_signals: true}", leaves_session=True, is_orphan=True),
    "stopped": Escape("{id: x, how: new_session, stopped: true}", leaves_session=True),
    "stopped daemon": Escape("{id: x, how: daemon, stopped: true}", leaves_session=True, is_orphan=True),
    "re-forking": Escape("{id: x, how: refork, every: 10s}", leaves_session=True, is_orphan=True),
    "re-forking with heads": Escape(
        "{id: x, how: refork, every: 10s, heads: 4}", ("x", "x 2", "x 3", "x 4"), leaves_session=True, is_orphan=True
    ),
    "re-forking without a pause": Escape(
        "{id: x, how: refork, every: 0s, heads: 2}", leaves_session=True, is_orphan=True, is_pauseless=True
    ),
    "short-lived": Escape("{id: x, how: daemon, for: 100ms}", ()),
    "zombie": Escape("{id: x, zombie: true, for: 100ms}", ()),
    "nested subreaper": Escape(
        "{id: x, subreaper: true, script: [{spawn: {id: y, how: daemon}}, {silence: for ever}]}", ("x", "y")
    ),
    "holds stdout": Escape("{id: x, inherits: [stdout]}"),
    "holds stderr in a session of its own": Escape(
        "{id: x, how: new_session, inherits: [stderr]}", leaves_session=True
    ),
}

ENDINGS = {"exits": "exit: 0", "is ended": "silence: for ever"}
"""How the agent ends: by itself, or by its supervisor, which then walks the tree first."""

SUBJECTS = ("group", "subreaper", "keeper", "direct child only", "faulty command", "sound command")
"""The reference supervisor at each containment; a defect of it that ends only the agent; programs below a keeper."""

_REAL = ("faulty command", "sound command")
_LEAVES_ALL = ("direct child only", "faulty command")


class MatrixCell(NamedTuple):
    """One kind, ended in one way, under one supervisor."""

    subject: str
    kind: str
    ending: str

    @property
    def is_real(self) -> bool:
        """Whether it is played in real time."""
        return self.subject in _REAL

    @property
    def expected(self) -> tuple[str, ...]:
        """List the processes that are left, by the promise."""
        kind = KINDS[self.kind]
        if self.subject in _LEAVES_ALL:
            return kind.names
        was_walked = self.ending == "is ended"
        is_found = not kind.leaves_session or (was_walked and not kind.is_orphan)
        if self.subject == "subreaper":
            is_found = is_found or not kind.is_nameless
        return () if is_found or self.subject in ("keeper", "sound command") else kind.names


CELLS = [
    MatrixCell(subject, kind, ending)
    for subject in SUBJECTS
    for kind in KINDS
    for ending in ENDINGS
    if subject in _REAL or not KINDS[kind].is_pauseless
]

_FAULTY = (
    "import subprocess, sys; none = subprocess.DEVNULL;"
    "agent = subprocess.Popen(sys.argv[2:], stdin=none, stdout=none, stderr=none)\n"
    "try: agent.wait(float(sys.argv[1]))\n"
    "except subprocess.TimeoutExpired: agent.kill(); agent.wait()"
)
_SOUND = (
    "import anyio, sys; from pytest_agentproc.supervisor import Policy, run_once;"
    "policy = Policy(inactivity_timeout=float(sys.argv[1]), containment='keeper', kill_grace=0.1);"
    "sys.exit(anyio.run(lambda: run_once(sys.argv[2:], policy=policy)).exit_code)"
)


def write_scenario(cell: MatrixCell) -> Scenario:
    """Write the scenario of a cell; every scenario expects that no process is left."""
    containment = cell.subject if cell.subject in SUBJECTS[:3] else "group"
    return loads(
        f"""scenario: {cell.kind}, and the agent {cell.ending}
agent: raw
policy: {{containment: {containment}, inactivity_timeout: 5s}}
script:
  - spawn: {KINDS[cell.kind].step}
  - silence: 1s
  - {ENDINGS[cell.ending]}
""",
        "cell.scenario.yaml",
    )


def build_supervisor(cell: MatrixCell) -> Subject:
    """Give the supervisor of a cell."""
    if cell.is_real:
        program = _FAULTY if cell.subject == "faulty command" else _SOUND
        return Command([sys.executable, "-c", program, "{inactivity_timeout}", "{agent}"], name=cell.subject)
    if cell.subject == "direct child only":
        defect = defects.find_defect("direct-child-only")
        return ReferenceSupervisor(cell.subject, defect.deciders, defect.session_deciders)
    return reference_supervisor()


def judge_cell(runner: ScenarioRunner, cell: MatrixCell) -> tuple[Verdict, tuple[str, ...]]:
    """Run a cell; give the verdict on its tree, and the processes that were left."""
    scenario, subject = write_scenario(cell), build_supervisor(cell)
    played = runner.play_real(scenario, subject) if cell.is_real else runner.play(scenario, subject)
    rows = {row.key: row.verdict for row in judge_all_expectations(played)}
    return rows["leaks"], tuple(sorted(leak.process for leak in list_leaks(played.record)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Play many cells on two workers and count the wrong verdicts; the exit code is 1 if there is one."""
    parser = argparse.ArgumentParser(prog="python -m tests.process.tree_matrix", description=main.__doc__)
    parser.add_argument("--runs", type=int, default=400, help="how many cells are played at least")
    again = sum(not cell.is_real for cell in CELLS)
    rounds = 1 + max(0, -(-(parser.parse_args(arguments).runs - len(CELLS)) // again))
    test = str(Path(__file__).parent / "trees" / "test_matrix.py")
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--tb=line", "-p", "no:cacheprovider", test]
    environment = {**os.environ, "TREE_MATRIX_ROUNDS": str(rounds)}
    completed = subprocess.run(command, env=environment, timeout=3000, check=False, stdout=subprocess.PIPE, text=True)
    counts = {word: int(number) for number, word in re.findall(r"(\d+) (passed|failed|errors?)", completed.stdout)}
    missed, accused = (
        completed.stdout.count(f"AssertionError: {text}") for text in ("a leak was missed", "a leak was made up")
    )
    runs, wrong = sum(counts.values()), sum(counts.values()) - counts.get("passed", 0)
    sys.stdout.write(f"{runs} runs: {accused} false positives, {missed} false negatives, {wrong} wrong in all\n")
    if wrong:
        sys.stdout.write(completed.stdout)
    return completed.returncode


if __name__ == "__main__":
    sys.exit(main())
