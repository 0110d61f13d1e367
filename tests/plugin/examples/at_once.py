"""A supervisor on trio that knows no TERM: a watchdog in a nursery, and KILL for whoever is left, at once.

It tells outcomes and texts, no exit codes and no times.
"""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import psutil
import trio

from pytest_agentproc.subjects import Function

if TYPE_CHECKING:
    from pytest_agentproc.vocabulary import RunRequest

__all__ = ["subject"]

SILENCE = 90


class Run:
    """One agent: what it printed, and since when it has printed nothing."""

    def __init__(self, order: RunRequest) -> None:
        pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        agent: Any = subprocess.Popen(order.argv, env=order.env, cwd=order.cwd, start_new_session=True, **pipes)
        self.agent = agent
        self.last, self.is_silent = trio.current_time(), False
        self.kept = {self.agent.stdout.fileno(): bytearray(), self.agent.stderr.fileno(): bytearray()}
        for pipe in self.kept:
            os.set_blocking(pipe, False)

    def take(self, pipe: int) -> bool:
        """Take what is there; say whether the pipe may have more."""
        with suppress(BlockingIOError):
            data = os.read(pipe, 65536)
            self.kept[pipe] += data
            self.last = trio.current_time() if data else self.last
            return bool(data)
        return True

    async def read(self, pipe: int) -> None:
        """Take what comes."""
        await trio.lowlevel.wait_readable(pipe)
        while self.take(pipe):
            await trio.lowlevel.wait_readable(pipe)

    def has_ended(self) -> bool:
        """Say whether the agent has, and leave it to be reaped."""
        return os.waitid(os.P_PID, self.agent.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    async def watch(self, scope: trio.CancelScope) -> None:
        """End the wait when nothing has come for too long."""
        while trio.current_time() < self.last + SILENCE:
            await trio.sleep_until(self.last + SILENCE)
            for pipe in self.kept:
                self.take(pipe)
        self.is_silent = not self.has_ended()
        scope.cancel()

    def left(self) -> list[psutil.Process]:
        """Find who lives of the agent and its descendants, by descent and by session."""
        found = {process.pid: process for process in psutil.Process(self.agent.pid).children(recursive=True)}
        for pid in [self.agent.pid, *psutil.pids()]:
            with suppress(ProcessLookupError, psutil.NoSuchProcess):
                if os.getsid(pid) == self.agent.pid:
                    found[pid] = psutil.Process(pid)
        return [process for process in found.values() if process.status() != psutil.STATUS_ZOMBIE]


async def gone(pid: int) -> None:
    """Wait for the end of a process."""
    with suppress(ProcessLookupError):
        pidfd = os.pidfd_open(pid)
        try:
            await trio.lowlevel.wait_readable(pidfd)
        finally:
            os.close(pidfd)


async def supervise(order: RunRequest) -> dict[str, Any]:
    """Run the agent until it ends, or is silent for too long."""
    run = Run(order)
    async with trio.open_nursery() as nursery:
        for pipe in run.kept:
            nursery.start_soon(run.read, pipe)
        nursery.start_soon(run.watch, nursery.cancel_scope)
        await gone(run.agent.pid)
        nursery.cancel_scope.cancel()
    for pipe in run.kept:
        run.take(pipe)
    text = run.kept[run.agent.stdout.fileno()]
    while left := run.left():
        for process in left:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        for process in left:
            await gone(process.pid)
    status = run.agent.wait()
    run.agent.stdout.close()
    run.agent.stderr.close()
    own = "incomplete" if status < 0 else "failed" if status else "completed"
    return {"outcome": "inactive" if run.is_silent else own, "text": text.decode(errors="replace").strip()}


subject = Function(
    supervise,
    name="at-once",
    limits={"inactivity_timeout": SILENCE, "kill_grace": 0, "linger_kill_grace": 0, "leftover_kill_grace": 0},
    dialects=["raw"],
)
