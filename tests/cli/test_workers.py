"""The processes that share a command's work: what they give in which order, how they fail, and that none is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from select import poll
from typing import TYPE_CHECKING, Any

import pytest

from pytest_agentproc.cli._workers import shared
from pytest_agentproc.errors import KitError, Problem, ScenarioError, UsageError
from tests.architecture.sources import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.slow

_LONGEST = 60_000
"""Real milliseconds after which something never comes."""


class Worker:
    """Does what a task's first word says; notes in a file that its block has ended.

    Args:
        folder: where that is noted, and where processes meet.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __enter__(self) -> Callable[[str], tuple[int, str]]:
        return self.work

    def __exit__(self, *error: object) -> None:
        (self.folder / f"left-{os.getpid()}").touch()

    def work(self, task: str) -> tuple[int, str]:
        """Do a task; give in which process that was, and its name."""
        word, _, name = task.partition(" ")
        getattr(self, word)(name)
        return os.getpid(), name

    def pass_on(self, name: str) -> None:
        """Do nothing."""

    def wait(self, name: str) -> None:
        """Wait until another process does the task `meet` of this name."""
        (self.folder / name).read_bytes()

    def meet(self, name: str) -> None:
        """Let the process go on that waits."""
        (self.folder / name).write_bytes(b"")

    def told(self, name: str) -> None:
        """Tell who this is, and wait."""
        sys.stdout.write(f"{os.getpid()}\n")
        sys.stdout.flush()
        self.wait(name)

    def scenario(self, name: str) -> None:
        """Have a mistake in a file."""
        raise ScenarioError([Problem(name, 2, 1, "no such key"), Problem(name, 1, 1, "no agent")])

    def misuse(self, name: str) -> None:
        """Be used wrongly."""
        raise UsageError(f"{name}: not so", "do it so")

    def fail(self, name: str) -> None:
        """Have a mistake of its own."""
        raise LookupError(name)

    def go(self, name: str) -> None:
        """End without a word."""
        os._exit(int(name))


@pytest.fixture
def worker(tmp_path: Path) -> Worker:
    """Give a worker; processes meet at `gate`."""
    os.mkfifo(tmp_path / "gate")
    return Worker(tmp_path)


def test_what_comes_of_tasks_is_told_in_their_order(worker: Worker) -> None:
    """The first one ends last: two are done at a time, or it would never end."""
    came = list(shared(worker, ["wait gate", "pass_on b", "meet gate", "pass_on c"], 2))
    assert [name for _, name in came] == ["gate", "b", "gate", "c"]
    pids = {pid for pid, _ in came}
    assert len(pids) == 2
    assert os.getpid() not in pids
    assert {file.name for file in worker.folder.glob("left-*")} == {f"left-{pid}" for pid in pids}


@pytest.mark.parametrize(("tasks", "jobs"), [(["pass_on a", "pass_on b"], 1), (["pass_on a"], 8)])
def test_one_at_a_time_is_done_here(worker: Worker, tasks: list[str], jobs: int) -> None:
    """What one process does needs no other."""
    assert [pid for pid, _ in shared(worker, tasks, jobs)] == [os.getpid()] * len(tasks)


def _raised(worker: Worker, task: str, kind: type[Exception]) -> str:
    """Give what a task raises, behind what came of the one before it."""
    came: list[str] = []
    with pytest.raises(kind) as caught:
        came.extend(name for _, name in shared(worker, ["wait gate", task, "meet gate", "pass_on d"], 3))
    assert came == ["gate"]
    return str(caught.value)


def test_what_a_task_raises_is_raised_in_its_place(worker: Worker) -> None:
    """An error of the kit's own kinds says what it says in one process; of any other the traceback is there."""
    assert _raised(worker, "misuse x", UsageError) == "x: not so\ndo it so"
    assert _raised(worker, "scenario f.yaml", ScenarioError) == "f.yaml:1:1: no agent\nf.yaml:2:1: no such key"
    told = _raised(worker, "fail here", RuntimeError)
    assert "in fail\n" in told
    assert told.endswith("LookupError: here\n")


def test_a_worker_that_ends_by_itself_is_told(worker: Worker) -> None:
    """Nobody waits for it, and the number of its end is there."""
    assert _raised(worker, "go 9", KitError) == "a worker ended by itself, with 9; -j 1 does without any"


def test_who_is_at_work_when_nobody_asks_any_more_is_interrupted(worker: Worker) -> None:
    """Its block ends as after an interrupt, so that what it started ends as well."""
    doing = shared(worker, ["pass_on a", "wait gate", "wait gate"], 2)
    assert next(doing)[1] == "a"
    doing.close()  # type: ignore[attr-defined]  # it is a generator
    assert len([*worker.folder.glob("left-*")]) == 2


_ASKS = """\
import sys
from pathlib import Path
from pytest_agentproc.cli._workers import shared
from tests.cli.test_workers import Worker
if __name__ == "__main__":
    list(shared(Worker(Path(sys.argv[1])), ["told gate", "told gate"], 2))
"""


_BESIDE = ("sh", "-c", 'trap "" INT; exec "$@"', "sh")
"""Has a program ignore INT, as a shell does that starts it beside itself."""


@pytest.mark.parametrize(
    ("signum", "before"),
    [(signal.SIGKILL, ()), (signal.SIGTERM, ()), (signal.SIGINT, ()), (signal.SIGKILL, _BESIDE)],
    ids=["KILL", "TERM", "INT", "KILL beside a shell"],
)
def test_no_worker_outlives_who_asks(worker: Worker, signum: signal.Signals, before: tuple[str, ...]) -> None:
    """A signal that only that one gets ends all, in the middle of their tasks."""
    command: Any = [*before, sys.executable, "-c", _ASKS, str(worker.folder)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0)
    assert process.stdout is not None
    with process:
        pidfds = [os.pidfd_open(int(process.stdout.readline())) for _ in range(2)]
        process.send_signal(signum)
        for pidfd in pidfds:
            ended = poll()
            ended.register(pidfd)
            assert ended.poll(_LONGEST), "it lives on"
            os.close(pidfd)
    assert len([*worker.folder.glob("left-*")]) == 2
