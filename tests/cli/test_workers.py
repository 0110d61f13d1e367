"""The processes that share a command's work: what they give in which order, how they fail, and that none is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from select import poll
from threading import Thread
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from pytest_agentproc.cli import _workers
from pytest_agentproc.cli._workers import run_tasks
from pytest_agentproc.errors import KitError, ScenarioError, UsageError
from tests.architecture.sources import ROOT
from tests.cli.tasks import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

pytestmark = pytest.mark.slow

_LONGEST = 60_000
"""Real milliseconds after which something never comes."""


@pytest.fixture
def worker(tmp_path: Path) -> Worker:
    """Give a worker; processes meet at `gate`."""
    os.mkfifo(tmp_path / "gate")
    return Worker(tmp_path)


def test_what_comes_of_tasks_is_told_in_their_order(worker: Worker) -> None:
    """The first one ends last: two are done at a time, or it would never end."""
    came = list(run_tasks(worker, ["wait gate", "pass_on b", "meet gate", "pass_on c"], 2))
    assert [name for _, name in came] == ["gate", "b", "gate", "c"]
    pids = {pid for pid, _ in came}
    assert len(pids) == 2
    assert os.getpid() not in pids
    assert {file.name for file in worker.folder.glob("left-*")} == {f"left-{pid}" for pid in pids}


@pytest.mark.parametrize(("tasks", "jobs"), [(["pass_on a", "pass_on b"], 1), (["pass_on a"], 8)])
def test_one_at_a_time_is_done_here(worker: Worker, tasks: list[str], jobs: int) -> None:
    """Work for one process needs no second process."""
    assert [pid for pid, _ in run_tasks(worker, tasks, jobs)] == [os.getpid()] * len(tasks)


def _raised(worker: Worker, task: str, kind: type[BaseException]) -> str:
    """Give what a task raises, behind what came of the one before it."""
    came: list[str] = []
    with pytest.raises(kind) as caught:
        came.extend(name for _, name in run_tasks(worker, ["wait gate", task, "meet gate", "pass_on d"], 3))
    assert came == ["gate"]
    return str(caught.value)


def test_what_a_task_raises_is_raised_in_its_place(worker: Worker) -> None:
    """An error of the kit's own kinds says what it says in one process; of any other the traceback is there."""
    assert _raised(worker, "misuse x", UsageError) == "x: not so\ndo it so"
    assert _raised(worker, "scenario f.yaml", ScenarioError) == "f.yaml:1:1: no agent\nf.yaml:2:1: no such key"
    told = _raised(worker, "fail here", RuntimeError)
    assert "in fail\n" in told
    assert told.endswith("LookupError: here\n")
    assert _raised(worker, "line torn", RuntimeError).endswith("EOFError: torn\n")
    told = _raised(worker, "group of", RuntimeError)
    assert "ValueError: of" in told
    assert _raised(worker, "own words", RuntimeError).endswith("tasks.OwnError: words, and more\n")
    assert _raised(worker, "leave 7", SystemExit) == "7"


def test_a_worker_that_ends_by_itself_is_told(worker: Worker) -> None:
    """The command does not wait for it, and reports the number of its end."""
    assert _raised(worker, "go 9", KitError) == "a worker ended by itself, with 9; -j 1 does without any"


@contextmanager
def _beside(function: Callable[[str], None], name: str) -> Iterator[None]:
    """Do something while this process waits for its workers."""
    thread = Thread(target=function, args=(name,), daemon=True)
    thread.start()
    yield
    thread.join()


def _is_over(pid: int) -> bool:
    """Wait until a process has ended, and say whether it has in time."""
    pidfd = os.pidfd_open(pid)
    try:
        ended = poll()
        ended.register(pidfd)
        return bool(ended.poll(_LONGEST))
    finally:
        os.close(pidfd)


def test_a_worker_that_ended_while_it_had_nothing_to_do_is_told(worker: Worker) -> None:
    """It has no reader when it gets its next task."""
    doing = run_tasks(worker, ["pass_on a", "wait gate", "pass_on c"], 2)
    pid, _ = next(doing)
    os.kill(pid, signal.SIGKILL)
    assert _is_over(pid)
    with _beside(worker.meet, "gate"), pytest.raises(KitError, match="a worker ended by itself, with -9"):
        list(doing)


def test_a_worker_that_ended_before_it_heard_its_task_is_told(worker: Worker) -> None:
    """The other process kills it, and its unread data makes its line a broken one."""
    doing = run_tasks(worker, ["pass_on a", "wait gate", "pass_on c", "end stopped"], 2)
    stopped, _ = next(doing)
    os.kill(stopped, signal.SIGSTOP)
    (worker.folder / "stopped").write_text(str(stopped), "utf-8")
    with _beside(worker.meet, "gate"), pytest.raises(KitError, match="a worker ended by itself, with -9"):
        list(doing)


def test_no_task_is_begun_behind_one_that_failed(worker: Worker) -> None:
    """As if each were done after the other: what was begun before ends, and no more is."""
    os.mkfifo(worker.folder / "failing")
    os.mkfifo(worker.folder / "other")

    def go_on(name: str) -> None:
        assert _is_over(int((worker.folder / name).read_bytes()))
        worker.meet("other")
        worker.meet("gate")

    doing = run_tasks(worker, ["wait gate", "fail_as failing", "wait other", "note a"], 3)
    with _beside(go_on, "failing"):
        assert next(doing)[1] == "gate"
        with pytest.raises(RuntimeError):
            next(doing)
    assert not (worker.folder / "a").exists()


def test_workers_are_started_as_this_interpreter_was(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under -W error a supervisor may go another way."""
    monkeypatch.setattr(sys, "warnoptions", ["error::FutureWarning"])
    assert len(list(run_tasks(worker, ["flags error::FutureWarning"] * 2, 2))) == 2


_SIGNALS = """\
import os, signal
from pathlib import Path
Path(os.environ["NOTES"], f"blocked-{os.getpid()}-{*signal.pthread_sigmask(signal.SIG_BLOCK, []),}").touch()
"""


def test_no_worker_is_interrupted_before_it_can_take_it(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would end with a traceback of its own in the middle of an import."""
    (worker.folder / "sitecustomize.py").write_text(_SIGNALS, "utf-8")
    monkeypatch.setenv("PYTHONPATH", str(worker.folder))
    monkeypatch.setenv("NOTES", str(worker.folder))
    list(run_tasks(worker, ["pass_on a", "pass_on b"], 2))
    blocked = [file.name for file in worker.folder.glob("blocked-*")]
    assert len(blocked) == 2
    assert all("SIGINT" in name for name in blocked)


def test_what_was_started_ends_if_another_cannot_be(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no block that could end it."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        if started:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        started.append(subprocess.Popen(*arguments, **options))
        return started[0]

    monkeypatch.setattr(_workers, "subprocess", SimpleNamespace(**{**vars(subprocess), "Popen": start}))
    with pytest.raises(BlockingIOError):
        list(run_tasks(worker, ["pass_on a", "pass_on b"], 2))
    assert [process.returncode for process in started] == [0]


def test_who_ignores_the_interrupt_is_killed(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    """A supervisor may have a handler of its own for it."""
    monkeypatch.setattr(_workers, "_PATIENCE", 0.0)
    monkeypatch.setattr(_workers, "_LAST", 0.1)
    os.mkfifo(worker.folder / "other")
    doing = run_tasks(worker, ["wait gate", "deaf other"], 2)
    assert next(doing)[1] == "gate"
    doing.close()  # type: ignore[attr-defined]  # it is a generator
    with pytest.raises(ProcessLookupError):
        os.kill(int((worker.folder / "ignores_signals").read_text("utf-8")), 0)


def test_who_is_at_work_when_nobody_asks_any_more_is_interrupted(worker: Worker) -> None:
    """Its block ends as after an interrupt, so that what it started ends as well."""
    doing = run_tasks(worker, ["pass_on a", "wait gate", "wait gate"], 2)
    assert next(doing)[1] == "a"
    doing.close()  # type: ignore[attr-defined]  # it is a generator
    assert len([*worker.folder.glob("left-*")]) == 2


_ASKS = """\
import sys
from pathlib import Path
from pytest_agentproc.cli._workers import run_tasks
from tests.cli.tasks import Worker
if __name__ == "__main__":
    list(run_tasks(Worker(Path(sys.argv[1])), [sys.argv[2]] * 2, 2))
"""


@pytest.mark.parametrize("word", ["interrupt", "interrupt_group"])
def test_a_task_that_is_interrupted_is_told_behind_what_is_done(worker: Worker, word: str) -> None:
    """An interrupt of one worker is meant for the command."""
    came: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        came.extend(name for _, name in run_tasks(worker, ["wait gate", "pass_on b", f"{word} c"], 2))
    assert came == ["b"]


def test_an_interrupt_is_told_and_not_what_another_task_has_raised(worker: Worker) -> None:
    """That task waits after a task that is not done."""
    os.mkfifo(worker.folder / "failing")
    os.mkfifo(worker.folder / "other")

    def go_on(name: str) -> None:
        assert _is_over(int((worker.folder / name).read_bytes()))
        worker.meet("other")

    with _beside(go_on, "failing"), pytest.raises(KeyboardInterrupt):
        list(run_tasks(worker, ["wait gate", "fail_as failing", "interrupt_after other"], 3))


_TELLS = """\
import sys
from pathlib import Path
from pytest_agentproc.cli._workers import run_tasks
from tests.cli.tasks import Worker
try:
    for _, name in run_tasks(Worker(Path(sys.argv[1])), ["wait gate", "pass_on b", "stop c"], 2):
        print(name)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_what_is_done_when_somebody_interrupts_is_told(worker: Worker) -> None:
    """It may have been waiting for its turn behind one that takes long."""
    command = [sys.executable, "-c", _TELLS, str(worker.folder)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, timeout=_LONGEST / 1000, check=True)
    assert done.stdout.decode().split() == ["b", "interrupted"]


_BESIDE = ("sh", "-c", 'trap "" INT; exec "$@"', "sh")
"""Has a program ignore INT, as a shell does that starts it beside itself."""


@pytest.mark.parametrize(
    ("signum", "before"),
    [(signal.SIGKILL, ()), (signal.SIGTERM, ()), (signal.SIGINT, ()), (signal.SIGKILL, _BESIDE)],
    ids=["KILL", "TERM", "INT", "KILL beside a shell"],
)
def test_no_worker_outlives_who_asks(worker: Worker, signum: signal.Signals, before: tuple[str, ...]) -> None:
    """A signal that only that one gets ends all, in the middle of their tasks."""
    _ended_with(signum, [*before, sys.executable, "-c", _ASKS, str(worker.folder), "told gate"])
    assert len([*worker.folder.glob("left-*")]) == 2


@pytest.mark.parametrize("word", ["hasty", "stay"])
def test_a_worker_that_ignores_the_interrupt_outlives_nobody(worker: Worker, word: str) -> None:
    """No process is left that could kill it, whether its work continues or only a thread of it."""
    _ended_with(signal.SIGKILL, [sys.executable, "-c", _ASKS, str(worker.folder), f"{word} gate"])


def _ended_with(signum: signal.Signals, command: Sequence[str]) -> None:
    """See that two workers end when who has started them gets a signal."""
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
