"""Checks out a program at a commit, installs what it needs, and plays a scenario against it. Writes no page."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

from pytest_agentproc.scenario import load
from pytest_agentproc.subjects import AcpProgram, Command
from pytest_agentproc.verdict import Verdict, judge_all_expectations, list_unmet_checks
from tests.bundled import load_bundled
from tests.clients.comparison import shorten
from tests.clients.packages import fill_cached_folder, find_node
from tests.wild.cases import DRIVERS, OWN_SCENARIOS

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_agentproc.harness import ScenarioRunner
    from tests.wild.cases import Case, Program

__all__ = ["find_repository", "play_case"]

_SAYS = {"outcome": {"exit_code": {0: "completed", "other": "failed"}}, "text": "stdout"}
_NPM = "npm install --no-audit --no-fund --no-update-notifier --loglevel=error --ignore-scripts"


def find_repository(sources: Path, repository: str) -> Path | None:
    """Give the git directory of a repository below the folder of sources, if it is there."""
    base = sources / repository.replace("/", "+")
    return next((path for path in (base, base / "repo", base / ".git") if (path / "HEAD").exists()), None)


def play_case(runner: ScenarioRunner, case: Case, repository: Path) -> dict[str, dict[str, str]]:
    """Play the commits before and after the fix; give for each the first check that failed, if any.

    The check that the report is about goes before the others, which count at level `must` only.
    """
    return {
        when: _play_commit(runner, case, _check_out(case.program, repository, commit))
        for when, commit in (("before", case.before), ("after", case.after))
    }


def _play_commit(runner: ScenarioRunner, case: Case, folder: Path) -> dict[str, str]:
    own = case.scenario in OWN_SCENARIOS
    scenario = load(OWN_SCENARIOS[case.scenario]) if own else load_bundled(case.scenario)
    played = runner.play(scenario, _build_subject(case.program, folder))
    failed = []
    for found in list_unmet_checks(judge_all_expectations(played)):
        assert found.verdict not in (Verdict.CRASHED, Verdict.KIT_ERROR), f"{case.name}: {found.seen}"
        if found.level == "must" or found.key == case.key:
            check = {"check": found.key, "expected": shorten(found.wanted), "seen": shorten(found.seen)}
            failed.append(check if found.verdict is Verdict.FAILED else {**check, "verdict": str(found.verdict)})
    failed.sort(key=lambda check: check["check"] != case.key)
    seconds = round(max(event.at for event in played.record.events) / 1e9, 2)
    clock = str(played.record.header["clock"])
    return {"clock": clock, "seconds": f"{seconds:g}", **(failed[0] if failed else {})}


def _build_subject(program: Program, folder: Path) -> Command:
    file, *words = shlex.split(program.driver)
    starter = [sys.executable, "-P"] if file.endswith(".py") else [find_node()]
    kind, more = (AcpProgram, ["cancelled"]) if program.holds_sessions else (Command, [])
    return kind(
        [*starter, str(DRIVERS[file]), *words],
        name=program.repository,
        says=None if program.holds_sessions else _SAYS,
        outcomes=["completed", "failed", *more],
        dialects=[program.agent],
        limits=program.limits,
        env={"PYTHONPATH": f"{folder}/src:{folder}:{folder}/.wild", **program.env},
        cwd=str(folder),
        on_path=True,
    )


def _check_out(program: Program, repository: Path, commit: str) -> Path:
    """Give a folder of the cache with the commit and what it needs."""

    def fill(folder: Path) -> list[str]:
        take = f"git --git-dir={shlex.quote(str(repository))} archive {commit} {program.paths} | tar --extract"
        words = {"PIP": f"{shlex.quote(sys.executable)} -m pip install --quiet --target .wild", "NPM": _NPM}
        set_words = "; ".join(f"{name}={shlex.quote(value)}" for name, value in words.items())
        lines = ("set -e -o pipefail", f"cd {shlex.quote(str(folder))}", take, set_words, program.install)
        return ["bash", "-c", "; ".join(lines)]

    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    pins = [commit, program.install, program.paths, python]
    return fill_cached_folder(f"wild-{program.repository.replace('/', '+')}", pins, fill)
