"""The processes that share a search: how they fail, how they are interrupted, and that none is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from select import poll
from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.cli import _workers, main
from tests.architecture.sources import ROOT

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

_LONGEST = 60_000
"""Real milliseconds after which something never comes."""

_SCENARIO = """\
scenario: an agent that exits soon is not ended
agent: raw
script:
  - silence: {between: [1s, 2s]}
  - exit: 3
"""

_SUBJECTS = """\
import os, signal
from pytest_agentproc.subjects import Function

async def die(order):
    os._exit(9)

async def be_killed(order):
    signal.raise_signal(signal.SIGKILL)

async def be_interrupted(order):
    raise KeyboardInterrupt

async def wait(order):
    with open("ready", "w") as ready:
        ready.write(f"{os.getpid()}\\n")
    open("gate").close()

async def ignore_interrupts(order):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    await wait(order)

dying, killed, interrupted, waiting, deaf = map(Function, (die, be_killed, be_interrupted, wait, ignore_interrupts))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Be in a folder with two open scenarios, and supervisors for them."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "odd.py").write_text(_SUBJECTS, "utf-8")
    for fifo in ("ready", "gate"):
        os.mkfifo(tmp_path / fifo)
    for name in "ab":
        (tmp_path / f"{name}.scenario.yaml").write_text(_SCENARIO, "utf-8")
    return tmp_path


def _build_search_arguments(subject: str) -> list[str]:
    return ["search", ".", "-j", "2", "--runs", "1", "--subject", f"odd:{subject}"]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("subject", "how"), [("dying", "with exit code 9"), ("killed", "by signal 9")])
def test_a_process_that_ends_by_itself_is_reported(capsys: pytest.CaptureFixture[str], subject: str, how: str) -> None:
    """The command does not wait for a result. A machine without memory kills, so the signal is named."""
    assert main(_build_search_arguments(subject)) == 3
    text = f"the kit failed: the process for a.scenario.yaml ended {how}, without a result; -j 1 needs no such process"
    assert capsys.readouterr().err.splitlines()[-1] == f"agentproc search: {text}"


@pytest.mark.usefixtures("folder")
def test_an_interrupt_of_one_process_is_meant_for_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    """A terminal interrupts all of them at once."""
    assert main(_build_search_arguments("interrupted")) == 130
    assert capsys.readouterr().err == "agentproc search: interrupted\n"


def test_each_interpreter_is_started_as_this_one_was(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under -W error a supervisor may go another way."""
    monkeypatch.setattr(sys, "warnoptions", ["error::FutureWarning"])
    with (folder / "odd.py").open("a", encoding="utf-8") as file:
        file.write("import sys\nassert sys.warnoptions[-1] == 'error::FutureWarning'\n")
    assert main(_build_search_arguments("interrupted")) == 130  # and not 2: the module can be imported there


@pytest.mark.parametrize("subject", ["waiting", "deaf"])
@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_process_outlives_the_command(folder: Path, signum: signal.Signals, subject: str) -> None:
    """A signal that only the command gets ends all of them, in the middle of their work, deaf or not."""
    words = [sys.executable, "-m", "pytest_agentproc", *_build_search_arguments(subject)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    reader = os.open(folder / "ready", os.O_RDWR)  # so that it waits for no writer
    with os.fdopen(reader) as ready, subprocess.Popen(words, stderr=subprocess.DEVNULL, env=env) as command:
        pidfds = [os.pidfd_open(int(ready.readline())) for _ in range(2)]
        command.send_signal(signum)
        for pidfd in pidfds:
            ended = poll()
            ended.register(pidfd)
            assert ended.poll(_LONGEST), "it lives on"
            os.close(pidfd)


def test_a_process_that_a_command_leaves_holds_up_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has the stdout of the command open. The command used to wait for the end of that."""
    program = "import subprocess; print(subprocess.Popen(['sleep', '20']).pid)"
    monkeypatch.setattr(_workers, "_WORKER_PYTHON_CODE", program)
    [(code, output)] = _workers.run_command_for_each_scenario([], ["a"], 1)
    pidfd, ended = os.pidfd_open(int(output)), poll()
    ended.register(pidfd)
    has_ended = ended.poll(0)
    signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    os.close(pidfd)
    assert (code, has_ended) == (0, [])
