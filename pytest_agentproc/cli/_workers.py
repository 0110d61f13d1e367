"""Runs a command once for each of several scenarios, some at a time, each in a process of its own. Knows no search.

A process is a new interpreter: a fork would share its parent's threads and sockets. It ends with the process that
started it, however that ends, because the kernel kills it then.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor, wait
from multiprocessing.spawn import get_command_line
from threading import Lock
from typing import TYPE_CHECKING

from pytest_agentproc.cli._calls import get_output_encoding
from pytest_agentproc.errors import KitError
from pytest_agentproc.originals import Popen, monotonic
from pytest_agentproc.tree import die_with_parent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


_WORKER_PYTHON_CODE = (
    "import sys; parent, count = map(int, sys.argv[1:3]); sys.path[:] = sys.argv[3 : 3 + count]; "
    "from pytest_agentproc.cli._workers import run_as_worker_process; "
    "sys.exit(run_as_worker_process(parent, sys.argv[3 + count :]))"
)
_SECONDS_FROM_INTERRUPT_TO_KILL = 5.0
"""Real seconds after an interrupt, in which a process ends what it has started, until it is killed."""

_SECONDS_BETWEEN_REPORTS = 1.0
_RESULT_EXIT_CODES, _INTERRUPTED_EXIT_CODE = range(4), 130


def run_command_for_each_scenario(
    words: Sequence[str], scenarios: Sequence[str], jobs: int, report: Callable[[int], object] = str
) -> Iterator[tuple[int, str]]:
    """Run a command with each of the scenarios as its last word; yield the exit code and the output of each, in order.

    `report` is told every second how many have ended.

    Lines on stderr appear at once. If the caller stops, or is interrupted, all processes are interrupted.

    Raises:
        KitError: a process ended before it had to.
        KeyboardInterrupt: this process was interrupted, or one of the others was.
    """
    processes = _WorkerProcesses(words)
    with ThreadPoolExecutor(jobs) as pool:
        try:
            futures = [pool.submit(processes.run, scenario) for scenario in scenarios]
            for scenario, future in zip(scenarios, futures, strict=True):
                while wait([future], _SECONDS_BETWEEN_REPORTS).not_done:
                    report(sum(each.done() for each in futures))
                code, output = future.result()
                if code == _INTERRUPTED_EXIT_CODE:
                    raise KeyboardInterrupt
                if code not in _RESULT_EXIT_CODES:
                    how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
                    raise KitError(
                        f"the process for {scenario} ended {how}, without a result; -j 1 needs no such process"
                    )
                yield code, output
        finally:
            processes.interrupt_all_workers()


class _WorkerProcesses:
    """The processes that run now."""

    def __init__(self, words: Sequence[str]) -> None:
        flags = get_command_line()[1:-3]  # with -O or -W error the code may take another path
        place = [str(os.getpid()), str(len(sys.path)), *sys.path]
        self._command = [sys.executable, *flags, "-c", _WORKER_PYTHON_CODE, *place, *words]
        self._lock = Lock()
        self._running: set[Popen[bytes]] = set()
        self._is_over = False

    def run(self, scenario: str) -> tuple[int, str]:
        """Run one process to its end, unless all of them were interrupted."""
        # A pipe has no end as long as a process that the command has left holds it. A file can be read at once.
        with tempfile.TemporaryFile() as output:
            with self._lock:  # a process that starts while the others are interrupted would be missed
                if self._is_over:
                    return _INTERRUPTED_EXIT_CODE, ""
                process = Popen([*self._command, scenario], stdin=subprocess.DEVNULL, stdout=output)
                self._running.add(process)
            code = process.wait()
            with self._lock:
                self._running.discard(process)
            printed = os.pread(output.fileno(), os.fstat(output.fileno()).st_size, 0)
        return code, printed.decode(get_output_encoding(), "backslashreplace")

    def interrupt_all_workers(self) -> None:
        """Interrupt the processes that run, start no more, and kill those that ignore that."""
        with self._lock:
            self._is_over = True
            running = tuple(self._running)
        for process in running:
            process.send_signal(signal.SIGINT)
        until = monotonic() + _SECONDS_FROM_INTERRUPT_TO_KILL
        for process in running:
            try:
                process.wait(max(0.0, until - monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()


def run_as_worker_process(parent: int, words: list[str]) -> int:
    """Be such a process: run the command, and give its exit code."""
    from pytest_agentproc.cli._door import main

    die_with_parent(parent)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has what it starts beside it ignore that
    return main(words)
