"""Owns the processes that share a command's work: their tasks, the order of the results, and the end of each process.

Each is a new interpreter: a fork would share its parent's threads and sockets with it, and multiprocessing would run
the user's main module in each, and leave a helper behind.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import subprocess
import sys
from collections import deque
from multiprocessing.connection import Connection, Pipe, wait
from multiprocessing.spawn import get_command_line
from threading import Event, Thread
from time import monotonic, sleep
from traceback import format_exception
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_agentproc.errors import AgentprocError, KitError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager


_PROGRAM = (
    "import sys; sys.path[:] = sys.argv[2:]; from pytest_agentproc.cli._workers import serve_tasks; serve_tasks()"
)
_PATIENCE = 1.0
"""Real seconds that a worker may work after its other end has closed, until it interrupts itself."""
_LAST = 5.0
"""Real seconds after which a worker that has not ended then is killed."""

Task = TypeVar("Task")
Result = TypeVar("Result")
TaskResult = tuple[Any, BaseException | None]
"""The result of a task, or the exception that it raised."""


def run_tasks(
    worker: AbstractContextManager[Callable[[Task], Result]], tasks: Sequence[Task], jobs: int
) -> Iterator[Result]:
    """Do tasks, several at a time, and yield their results in the order of the tasks.

    Args:
        worker: gives the function that does a task. It is entered once in each process that does any, and pickled for
            other processes.
        tasks: the work; pickled, as are the results.
        jobs: the most tasks at a time; one: in this process.

    Raises:
        KitError: a process ended before it had to.
        AgentprocError: whatever a task raises of this kind.
        SystemExit: a task has asked for it.
        KeyboardInterrupt: this process was interrupted, or a task was; results that exist by then are yielded before.
        RuntimeError: a task raised something else; the text has its traceback.
    """
    if min(jobs, len(tasks)) <= 1:
        with worker as work:
            yield from map(work, tasks)
        return
    with _WorkerPool(worker, min(jobs, len(tasks))) as pool:
        for result, error in pool.yield_results(tasks):
            if error is not None:
                raise error
            yield result


class _WorkerPool:
    """Processes that do tasks, each one at a time, until the block ends."""

    def __init__(self, worker: AbstractContextManager[Callable[[Any], Any]], size: int) -> None:
        self._worker = worker
        self._size = size
        self._members: dict[Connection, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> _WorkerPool:  # noqa: PYI034  # nobody derives from it
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # they take it once they can
        try:
            for _ in range(self._size):
                self._start_worker()
        except BaseException:
            self.__exit__()
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return self

    def _start_worker(self) -> None:
        ours, theirs = Pipe()
        with theirs:
            command = [sys.executable, *_read_interpreter_flags(), "-c", _PROGRAM, str(theirs.fileno()), *sys.path]
            self._members[ours] = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()])
        self._send(ours, self._worker)

    def _send(self, line: Connection, what: Any) -> None:
        with contextlib.suppress(BrokenPipeError):  # that it has ended is seen where it is listened to
            line.send(what)

    def yield_results(self, tasks: Sequence[Any]) -> Iterator[TaskResult]:
        """Yield the result of each task, in order; no further task begins after one has raised."""
        left = deque(enumerate(tasks))
        idle = deque(self._members)
        doing: dict[Connection, int] = {}
        done: dict[int, TaskResult] = {}
        try:
            for number in range(len(tasks)):
                while number not in done:
                    while idle and left:
                        line = idle.popleft()
                        doing[line], task = left.popleft()
                        self._send(line, task)
                    ready = wait(list(doing))
                    for line in [line for line in doing if line in ready]:
                        which = doing.pop(line)
                        done[which] = self._receive_result(line)
                        error = done[which][1]
                        if isinstance(error, KeyboardInterrupt):
                            raise error
                        if error is None:
                            idle.append(line)
                        else:
                            left.clear()
                yield done.pop(number)
        except KeyboardInterrupt:
            yield from [came for _, came in sorted(done.items()) if came[1] is None]
            raise

    def _receive_result(self, line: Connection) -> TaskResult:
        try:
            heard: TaskResult = line.recv()
        except (EOFError, OSError):  # it may have ended in the middle of a word
            process = self._members[line]
            with contextlib.suppress(subprocess.TimeoutExpired):  # threads of a supervisor's may go on
                process.wait(_LAST)
            how = "and lives on" if process.returncode is None else f"with {process.returncode}"
            return None, KitError(f"a worker ended by itself, {how}; -j 1 does without any")
        return heard

    def __exit__(self, *error: object) -> None:
        for line in self._members:
            line.close()
        until = monotonic() + _PATIENCE + _LAST
        for process in self._members.values():
            try:
                process.wait(max(0.0, until - monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _read_interpreter_flags() -> list[str]:
    """Give the flags of this interpreter: with -O or -W error the code may take another path."""
    return get_command_line()[1:-3]  # the interpreter, its flags, and -c with a program and what that is told


def serve_tasks() -> None:
    """Be a worker: do the tasks until none is left, or until a task raises, and report the exception."""
    line, over = Connection(int(sys.argv[1])), Event()
    os.set_inheritable(line.fileno(), False)
    Thread(target=_exit_after_parent, args=(line.fileno(), over), daemon=True).start()
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has what it starts beside it ignore that
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
        for worker in _receive_tasks(line):
            with worker as work:
                try:
                    for task in _receive_tasks(line):
                        _send_result(line, (work(task), None))
                finally:
                    over.set()
    except BaseException as error:  # noqa: BLE001  # it is raised where the command is
        _send_result(line, (None, _make_sendable(error)))
    finally:
        line.close()


def _make_sendable(error: BaseException) -> BaseException:
    """Give an error that can be pickled: a kit error as it is, any other as a RuntimeError with its traceback."""
    if isinstance(error, BaseExceptionGroup) and error.split(KeyboardInterrupt)[1] is None:
        return KeyboardInterrupt()  # as a trio program raises it
    if isinstance(error, (AgentprocError, KeyboardInterrupt, SystemExit)):
        with contextlib.suppress(Exception):
            pickle.loads(pickle.dumps(error))  # noqa: S301  # it was made here
            return error
    return RuntimeError("".join(format_exception(error)))


def _receive_tasks(line: Connection) -> Iterator[Any]:
    """Yield the tasks, until the other end has closed."""
    while True:
        try:
            asked = line.recv_bytes()
        except (EOFError, OSError):
            return
        yield pickle.loads(asked)  # noqa: S301  # from the process that has started this one


def _send_result(line: Connection, came: TaskResult) -> None:
    """Send the result of a task; a parent that has left is ignored."""
    with contextlib.suppress(OSError):  # nobody listens any more
        line.send(came)


def _exit_after_parent(line: int, over: Event) -> None:
    """Interrupt this process if it works on after the other end has closed; end it if it lives on then."""
    broken = select.poll()
    broken.register(line, 0)
    broken.poll()
    if not over.wait(_PATIENCE):
        os.kill(os.getpid(), signal.SIGINT)
    sleep(_LAST)
    os._exit(1)
