"""Supervisors that are played in a process of their own, which finds them by their names here."""

from __future__ import annotations

import queue
import subprocess
import threading
from typing import IO, TYPE_CHECKING

from pytest_agentproc.vocabulary import RunReport

if TYPE_CHECKING:
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
