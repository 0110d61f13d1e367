"""Supervisors that are no async Python, judged in virtual time: a program, a function in a thread, a stranger."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.harness import ScenarioRunner
from pytest_agentproc.scenario import load
from pytest_agentproc.subjects import Command, Function
from pytest_agentproc.verdict import Verdict, judged
from tests.process.preload.stand import require, timed
from tests.process.preload.supervising import patient

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_agentproc.harness import Played
    from pytest_agentproc.vocabulary import RunReport, RunRequest, Subject

PROGRAM = Path(__file__).parent / "programs" / "supervisor.mjs"
LIMITS = {"inactivity_timeout": 180, "kill_grace": 5}
"""Hard-coded in both: real time can judge them at scale 1 only, in minutes."""

DEAF = """\
scenario: an agent that says nothing and ignores TERM is killed
agent: raw
script: [{when: {signal: TERM}, do: []}, {silence: for ever}]
expect:
  signals: [{TERM: inactivity_timeout}, {KILL: inactivity_timeout + kill_grace}]
  returned: inactivity_timeout + kill_grace
"""
LATE = """\
scenario: an agent that speaks a millisecond before the limit is left alone
agent: raw
script: [{silence: inactivity_timeout - 1ms}, {say: hello}, {silence: 1s}, {exit: 0}]
expect: {signals: [], outcome: completed}
"""


@pytest.fixture(scope="module")
def lab() -> Iterator[ScenarioRunner]:
    """Have one process below the coordinator for all plays of this file."""
    with ScenarioRunner() as lab:
        yield lab


@pytest.mark.parametrize("text", [DEAF, LATE], ids=["deaf", "late"])
@pytest.mark.parametrize("kind", ["node", "thread"])
def test_hard_coded_minutes_are_judged_exactly(lab: ScenarioRunner, kind: str, text: str, tmp_path: Path) -> None:
    """185 s pass in a moment, each signal comes at its millisecond, and two plays have the same record."""
    path = tmp_path / "one.scenario.yaml"
    path.write_text(text, "utf-8")
    subject = _supervisor(kind)
    plays = [lab.play(load(path), subject) for _ in range(2)]
    for played in plays:
        assert (played.record.header["clock"], played.record.header["arm"]) == ("virtual", "preload")
        judgement = judged(played)
        assert judgement.verdict is Verdict.PASSED, [(row.key, row.seen, row.wanted) for row in judgement.rows]
    assert plays[0].record.digest() == plays[1].record.digest()


def _supervisor(kind: str) -> Subject:
    if kind == "thread":
        return Function(patient, limits=LIMITS)
    says = {"outcome": {"exit_code": {0: "completed", 124: "inactive", "other": "failed"}}}
    return Command([require("node"), str(PROGRAM), "{agent}"], limits=LIMITS, says=says)


SHORT = "scenario: it ends by itself\nagent: raw\nscript: [{silence: 1s}, {exit: 0}]\nexpect: {signals: []}\n"
STATIC = """
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char **words) {
  int status = 0;
  if (!fork()) execv(words[count > 1], words + 1);
  return wait(&status) < 0 || status;
}
"""


def test_a_supervisor_out_of_reach_is_judged_in_real_time(lab: ScenarioRunner, tmp_path: Path) -> None:
    """It is never silently wrong: the record says which clock it was, and why."""
    (tmp_path / "static.c").write_text(STATIC)
    program = tmp_path / "static"
    assert timed(require("cc"), "-static", tmp_path / "static.c", "-o", program).code == 0
    played = _short(lab, tmp_path, Command([str(program), "{agent}"], limits=LIMITS))
    reason = played.record.header["out_of_reach"]
    assert re.sub(r"\d+", "N", reason) == (
        "static (pid N) lives: it is a static, musl or setuid program, which virtual time cannot reach"
    )


def test_a_function_that_cannot_be_sent_is_judged_in_real_time(lab: ScenarioRunner, tmp_path: Path) -> None:
    """A function inside a test has no name under which another process would find it."""

    def inner(order: RunRequest) -> RunReport:
        return patient(order)

    played = _short(lab, tmp_path, Function(inner, limits=LIMITS))
    assert played.record.header["out_of_reach"].startswith("inner cannot be sent to another process: ")


def _short(lab: ScenarioRunner, folder: Path, subject: Subject) -> Played:
    path = folder / "one.scenario.yaml"
    path.write_text(SHORT, "utf-8")
    played = lab.play(load(path), subject)
    assert (judged(played).verdict, played.record.header["clock"]) == (Verdict.PASSED, "real")
    return played
