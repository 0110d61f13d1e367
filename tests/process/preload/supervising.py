"""Supervisors that are played in a process of their own, which finds them by their names here."""

from __future__ import annotations

import os
import queue
import select
import subprocess
import threading
import time
from typing import IO, TYPE_CHECKING

from pytest_agentproc.vocabulary import RunReport

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_agentproc.vocabulary import RunRequest


def supervise_with_thread(order: RunRequest) -> RunReport:
    """Read in a thread, wait for a line for 180 s, and for 5 s after TERM."""
    words, env = list(order.argv), dict(order.env)
    with subprocess.Popen(words, env=env, cwd=order.cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as agent:
        lines: queue.Queue[bytes] = queue.Queue()
        threading.Thread(target=_read_into_queue, args=(agent.stdout, lines), daemon=True).start()
        try:
            while lines.get(timeout=180):
                pass
        except queue.Empty:
            agent.terminate()
            try:
                agent.wait(timeout=5)
            except subprocess.TimeoutExpired:
                agent.kill()
            return RunReport(outcome="inactive")
    return RunReport(outcome="completed" if agent.returncode == 0 else "failed", exit_code=agent.returncode)


def _read_into_queue(stream: IO[bytes], lines: queue.Queue[bytes]) -> None:
    for line in stream:
        lines.put(line)
    lines.put(b"")


def supervise_by_wall_clock(order: RunRequest) -> RunReport:
    """Count the silence and the runtime by the clock of dates."""
    return _supervise_by_clock(time.time, order)


def supervise_by_monotonic_clock(order: RunRequest) -> RunReport:
    """Count the silence and the runtime by the clock of durations."""
    return _supervise_by_clock(time.monotonic, order)


def _supervise_by_clock(read_clock: Callable[[], float], order: RunRequest) -> RunReport:
    words, env, text = list(order.argv), dict(order.env), b""
    with subprocess.Popen(words, env=env, cwd=order.cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as agent:
        assert agent.stdout is not None
        start = last = read_clock()
        while True:
            if select.select([agent.stdout], [], [], 1)[0]:
                data = os.read(agent.stdout.fileno(), 65536)
                text, last = text + data, read_clock()
                if not data:
                    break
            if read_clock() - last > 180 or read_clock() - start > 600:
                agent.kill()
                return RunReport(outcome="inactive")
    return RunReport(outcome="failed" if agent.returncode else "completed", text=text.decode())
