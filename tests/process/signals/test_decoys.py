"""Decoys: real processes beside a run in real time, for the signals that no patch of Python sees."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest

from pytest_agentproc.harness import ScenarioRunner
from pytest_agentproc.harness import _decoy as decoy_program
from pytest_agentproc.harness._signal_guard import DecoyHit, Decoys
from pytest_agentproc.subjects import NeverStartsAgent
from pytest_agentproc.subjects._trivial import _report_success, _start_agent
from pytest_agentproc.verdict import Verdict, judge_all_expectations
from tests.process.stand import CEILING, build_scenario, is_gone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_agentproc.vocabulary import RunReport, RunRequest

ROOT = Path(__file__).resolve().parents[3]
GROUP, APART = "in the process group of pytest", "in a session of its own"


def list_decoy_pids(decoys: Decoys) -> list[int]:
    """Give the pids of the decoys, that of pytest's group first."""
    return [process.pid for process in decoys._processes.values()]  # noqa: SLF001  # whom to hit is no user's question


class SignallingShell:
    """A shell that signals a process and then waits, so that the kernel can name the sender."""

    def __init__(self, command: str) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(["/bin/sh", "-c", f"{command}; echo; read end"], stdin=pipe, stdout=pipe)
        assert self.process.stdout is not None
        self.process.stdout.readline()

    def end(self) -> None:
        """Let it go."""
        with self.process:
            pass


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no other workers beside this one, whatever runs these tests."""
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)


@pytest.fixture
def beside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have other workers beside this one."""
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw1")


@pytest.fixture
def decoys() -> Iterator[Callable[[], Decoys]]:
    """Make decoys that are up, once the environment is as a test wants it."""
    made: list[Decoys] = []

    def make() -> Decoys:
        made.append(Decoys(["pi", "claude"]))
        made[-1].start_missing()
        return made[-1]

    yield make
    for decoy in made:
        decoy.close()


@pytest.mark.slow
@pytest.mark.usefixtures("alone")
def test_a_subject_whose_shell_signals_a_bystander_fails() -> None:
    """In real time it may start any program; the next run begins with decoys that are alive."""

    class Shelled(NeverStartsAgent):
        async def run_one(self, order: RunRequest) -> RunReport:
            process = _start_agent(order)
            in_group, apart = list_decoy_pids(runner._decoys)  # noqa: SLF001  # as above
            await anyio.run_process(["/bin/sh", "-c", f"kill -KILL {in_group}; kill -TERM {apart}"])
            process.kill()
            process.wait()
            return _report_success(order)

    with ScenarioRunner() as runner:
        scenario = build_scenario("- silence: 5s")
        rows = judge_all_expectations(runner.play_real(scenario, Shelled()))
        (row,) = [row for row in rows if row.key == "unrelated_processes"]
        assert (row.verdict, row.seen) == (
            Verdict.FAILED,
            "KILL to a decoy process in the process group of pytest; TERM to a decoy process in a session of its own",
        )
        assert row.hint.startswith("a process beside the run, which nobody has a reason to signal")
        clean = judge_all_expectations(runner.play_real(scenario, Killing()))
        assert [row.key for row in clean if row.verdict is Verdict.FAILED] == []


class Killing(NeverStartsAgent):
    """Kills its agent and no other process."""

    async def run_one(self, order: RunRequest) -> RunReport:
        """Start it and kill it."""
        process = _start_agent(order)
        process.kill()
        process.wait()
        return _report_success(order)


@pytest.mark.usefixtures("alone")
def test_every_signal_is_noted(decoys: Callable[[], Decoys]) -> None:
    """A process cannot report a signal that it cannot block: KILL shows as a death, STOP as silence."""
    watched = decoys()
    first, second = list_decoy_pids(watched)
    for name in ("TERM", "HUP", "INT", "QUIT", "USR1", "USR2", "CONT", "CHLD"):
        shell = SignallingShell(f"kill -{name} {second}")
        assert watched.collect_hits() == [DecoyHit(name, APART, "run")]
        shell.end()
    SignallingShell(f"kill -STOP {first}; kill -KILL {second}").end()
    assert watched.collect_hits() == [DecoyHit("STOP", GROUP, "unknown"), DecoyHit("KILL", APART, "unknown")]
    assert is_gone(first)
    assert list_decoy_pids(watched) == []
    watched.start_missing()
    assert (len(list_decoy_pids(watched)), watched.collect_hits()) == (2, [])


def test_what_is_pending_when_the_question_is_read_is_in_the_answer() -> None:
    """The question may come while a decoy still writes the answer before: no signal then wakes it in between."""
    program = (
        "import os, runpy, signal, sys\n"
        "decoy = runpy.run_path(sys.argv[1])\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())\n"
        "signal.raise_signal(signal.SIGTERM)\n"
        "assert not decoy['answer_requests']([], os.getpid())\n"
    )
    command = [sys.executable, "-c", program, decoy_program.__file__]
    completed = subprocess.run(command, input=b"?", capture_output=True, check=True, timeout=60)
    assert completed.stdout == b"15:run\n"


@pytest.mark.usefixtures("beside")
def test_beside_other_workers_only_a_sender_that_is_known_counts(decoys: Callable[[], Decoys]) -> None:
    """Another worker's test may kill by name: without proof of the sender, no run is accused."""
    watched = decoys()
    first, second = list_decoy_pids(watched)
    shell = SignallingShell(f"kill -TERM {first}")
    SignallingShell(f"kill -KILL {second}").end()
    assert watched.collect_hits() == [DecoyHit("TERM", GROUP, "run")]
    shell.end()


@pytest.mark.usefixtures("alone")
def test_a_hit_between_two_runs_is_no_runs_doing(decoys: Callable[[], Decoys]) -> None:
    """A hit of an earlier test is forgotten when the next run begins."""
    watched = decoys()
    shell = SignallingShell(f"kill -TERM {list_decoy_pids(watched)[0]}; kill -KILL {list_decoy_pids(watched)[1]}")
    watched.start_missing()
    assert watched.collect_hits() == []
    shell.end()


def test_one_is_in_the_group_of_pytest_and_one_is_not(decoys: Callable[[], Decoys]) -> None:
    """And both look like agents to a program that kills by name."""
    watched = decoys()
    first, second = list_decoy_pids(watched)
    assert (os.getpgid(first), os.getsid(second)) == (os.getpgrp(), second)
    for pid in (first, second):
        assert Path(f"/proc/{pid}/cmdline").read_bytes().endswith(b"\0pi\0claude\0")


def test_where_a_signal_came_from() -> None:
    """The senders: a terminal, this process, a process of another user, a process that has ended."""
    nobody = 2**22 + 1
    assert (
        decoy_program.find_signal_origin(signal.SI_KERNEL if hasattr(signal, "SI_KERNEL") else 0x80, 0, os.getpid())
        == "kernel"
    )
    assert decoy_program.find_signal_origin(0, os.getpid(), os.getpid()) == "run"
    assert decoy_program.find_signal_origin(0, nobody, os.getpid()) == "unknown"
    assert decoy_program.find_signal_origin(0, 0, os.getpid()) == "else"
    with subprocess.Popen([sys.executable, "-IS", "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert decoy_program.find_signal_origin(0, child.pid, os.getpid()) == "run"
        assert decoy_program.find_signal_origin(0, child.pid, nobody) == "else"
        child.kill()


@pytest.mark.slow
def test_canaries_go_with_their_harness() -> None:
    """A harness that is killed leaves none."""
    code = """
import os, signal
from pytest_agentproc.harness._signal_guard import Decoys
made = Decoys([])
made.start_missing()
print(*[process.pid for process in made._processes.values()], flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    completed = subprocess.run([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, check=False)
    assert completed.returncode == -signal.SIGKILL
    assert all(is_gone(int(pid)) for pid in completed.stdout.split())
    assert len(completed.stdout.split()) == 2


def test_a_decoy_whose_harness_was_killed_as_it_asked_says_nothing() -> None:
    """It printed a traceback into the terminal of whoever had killed pytest."""
    reading, writing = os.pipe()
    os.close(reading)
    words = [sys.executable, "-IS", decoy_program.__file__, str(os.getpid())]
    with os.fdopen(writing, "wb") as broken:
        decoy = subprocess.run(words, input=b"?", stdout=broken, stderr=subprocess.PIPE, timeout=CEILING, check=False)
    assert (decoy.returncode, decoy.stderr) == (0, b"")
