"""Supervisors that spin in virtual time, which stands still meanwhile: a fault with a name, and soon."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.errors import Spin
from pytest_agentproc.harness import ScenarioRunner, _spins
from pytest_agentproc.originals import monotonic
from pytest_agentproc.scenario import load
from pytest_agentproc.subjects import Command, Function
from pytest_agentproc.verdict import Verdict, judge_play
from pytest_agentproc.vocabulary import RunReport

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_agentproc.vocabulary import RunRequest, Subject

CLOSES_EARLY = """\
scenario: an agent that closes its output and works on is at work
agent: raw
script: [{say: hello}, {close: stdout}, {silence: 30s}, {exit: 0}]
expect: {returned: 30s, outcome: completed}
"""
SPINS = """
import os, select, subprocess, sys
agent = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
while agent.poll() is None:
    if select.select([agent.stdout], [], [], 1)[0]:
        os.read(agent.stdout.fileno(), 65536)
"""
COMPUTES = """
import os, subprocess, sys, time
agent = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
heard = b""
while words := os.read(agent.stdout.fileno(), 65536):
    heard += words
begin = os.times().user
while os.times().user < begin + 7:
    sum(range(100000))
sys.exit(agent.wait())
"""
ASKS_A_SOCKET = """
import socket, subprocess, sys
agent = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
ours, theirs = socket.socketpair()
ours.setblocking(False)
while agent.poll() is None:
    try:
        ours.recv(1)
    except BlockingIOError:
        pass
"""
LOOKS_AT_A_FLAG = """
import subprocess, sys, threading
agent = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
ended = []
threading.Thread(target=lambda: ended.append(agent.wait())).start()
while not ended:
    pass
"""
SAYS = {"outcome": {"exit_code": {0: "completed", "other": "failed"}}}
_LONGEST_PLAY_SECONDS = 60
"""A spin has to be found within 10 s on a free machine. Tests share the machine with others."""


def spin_in_thread(order: RunRequest) -> RunReport:
    """Look again and again at a pipe that is at its end, until the agent exits."""
    agent = subprocess.Popen(order.argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert agent.stdout is not None
    with agent.stdout as stdout:
        while agent.poll() is None:
            if select.select([stdout], [], [], 1)[0]:
                os.read(stdout.fileno(), 65536)
    return RunReport(outcome="completed")


@pytest.fixture
def runner() -> Iterator[ScenarioRunner]:
    """Give a runner, which ends what spins."""
    with ScenarioRunner() as runner:
        yield runner


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["program", "thread"])
def test_a_supervisor_that_spins_is_red_by_that_name(runner: ScenarioRunner, kind: str, tmp_path: Path) -> None:
    """The output is at its end, so `select` says readable at once, and each read gives nothing."""
    subject: Subject = (
        Function(spin_in_thread) if kind == "thread" else Command([sys.executable, "-c", SPINS, "{agent}"], says=SAYS)
    )
    path = tmp_path / "closes.scenario.yaml"
    path.write_text(CLOSES_EARLY, "utf-8")
    begin = monotonic()
    played = runner.play(load(path), subject)
    assert monotonic() - begin < _LONGEST_PLAY_SECONDS
    assert isinstance(played.fault, Spin)
    judgement = judge_play(played)
    assert judgement.verdict is Verdict.FAILED
    assert {row.key: row.seen for row in judgement.rows}["outcome"].startswith(
        "spin: the supervisor reads again and again at one instant, and gets nothing"
    )
    again = runner.play(load(path), Command(["sh", "-c", '"$@"', "sh", "{agent}"], says=SAYS))
    assert judge_play(again).verdict is Verdict.PASSED


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "seen"),
    [
        pytest.param(ASKS_A_SOCKET, "calls the kernel again and again at one instant, and gets nothing", id="socket"),
        pytest.param(LOOKS_AT_A_FLAG, "uses a core at one instant, and waits for nothing", id="flag"),
    ],
)
def test_a_supervisor_that_spins_without_a_read_has_a_name_too(
    runner: ScenarioRunner, program: str, seen: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Time stood still until the kit gave up, after 300 s of the machine, and blamed itself."""
    monkeypatch.setattr(_spins, "_CALLS_CPU_SECONDS", 2)
    monkeypatch.setattr(_spins, "_COMPUTING_CPU_SECONDS", 3)
    path = tmp_path / "closes.scenario.yaml"
    path.write_text(CLOSES_EARLY, "utf-8")
    begin = monotonic()
    played = runner.play(load(path), Command([sys.executable, "-c", program, "{agent}"], says=SAYS))
    assert monotonic() - begin < _LONGEST_PLAY_SECONDS
    judgement = judge_play(played)
    assert judgement.verdict is Verdict.FAILED
    assert {row.key: row.seen for row in judgement.rows}["outcome"].startswith(f"spin: the supervisor {seen}")


@pytest.mark.slow
def test_a_supervisor_that_computes_for_long_does_not_spin(runner: ScenarioRunner, tmp_path: Path) -> None:
    """It uses as much of a core at one instant as one that spins, but each of its reads gave something."""
    path = tmp_path / "speaks.scenario.yaml"
    path.write_text(
        "scenario: an agent speaks and ends\nagent: raw\nscript: [{say: hello}, {exit: 0}]\n"
        "expect: {outcome: completed}\n",
        "utf-8",
    )
    played = runner.play(load(path), Command([sys.executable, "-c", COMPUTES, "{agent}"], says=SAYS))
    assert judge_play(played).verdict is Verdict.PASSED
