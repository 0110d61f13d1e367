"""A supervisor of agents that print plain text, with numbers and a style of its own, that does it right.

A minute of silence ends a run, TERM comes five seconds before KILL, and whoever is in the agent's session goes with it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import psutil

from pytest_agentproc.subjects import Function

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_agentproc.vocabulary import RunRequest

__all__ = ["LADDER", "LONGEST_LINE", "SILENCE", "Run", "lives", "of_plain", "signalled", "subject", "supervise"]

SILENCE, LADDER, LONGEST_LINE = 60, 5, 16 * 1024**2
EXIT_CODES = {"inactive": 124, "overran": 124, "protocol_error": 76, "input_failed": 74}


async def supervise(order: RunRequest, make: type[Run]) -> dict[str, Any]:
    """Run the agent until it ends, or is silent for too long."""
    begun = asyncio.get_running_loop().time()
    try:
        run = make(order)
    except OSError as error:
        return {"outcome": "spawn_failed", "exit_code": 126 if isinstance(error, PermissionError) else 127}
    try:
        outcome = await run.end()
        elapsed = asyncio.get_running_loop().time() - begun
        await run.end_tree()
    except asyncio.CancelledError:
        await run.kill_tree()
        raise
    finally:
        status = run.reap()
        run.close()
    fields = {"text": run.text(), "stderr_tail": bytes(run.err[-65536:]), "elapsed": elapsed}
    return {**fields, **run.told(outcome, status)}


class Run:
    """One agent: what it printed, and since when it has printed nothing."""

    def __init__(self, order: RunRequest) -> None:
        self.loop = asyncio.get_running_loop()
        self.order = order
        self.agent: Any = self.start(order.argv, env=order.env, cwd=order.cwd, start_new_session=True)
        self.news, self.last = asyncio.Event(), self.loop.time()
        self.out, self.err, self.line, self.refused = bytearray(), bytearray(), 0, False
        self.unsent = order.prompt.encode() if order.prompt_by == "stdin" else b""
        self.pidfd = os.pidfd_open(self.agent.pid)
        self.kept: dict[Any, bytearray] = {self.agent.stdout: self.out, self.agent.stderr: self.err}
        self.loop.add_reader(self.pidfd, self.news.set)
        for pipe in self.kept:
            os.set_blocking(pipe.fileno(), False)
            self.loop.add_reader(pipe.fileno(), self.read, pipe)
        os.set_blocking(self.agent.stdin.fileno(), False)
        self.loop.add_writer(self.agent.stdin.fileno(), self.write)

    def start(self, argv: Any, **how: Any) -> Any:
        """Start the agent with a pipe for each of its streams."""
        pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        return subprocess.Popen(argv, bufsize=0, **{**pipes, **how})

    def read(self, pipe: Any) -> bool:
        """Take what is there; say whether it was anything."""
        try:
            data = os.read(pipe.fileno(), 65536)
        except BlockingIOError:
            return False
        if not data:
            self.loop.remove_reader(pipe.fileno())
            return False
        self.kept[pipe] += data
        if pipe is self.agent.stdout:
            first, *others = map(len, data.split(b"\n"))
            self.line = max([self.line + first, *others[:-1]]) if others else self.line + first
            self.line = self.line if self.line > LONGEST_LINE or not others else others[-1]
        self.saw(pipe, data)
        self.news.set()
        return True

    def saw(self, pipe: Any, data: bytes) -> None:
        """Begin the silence anew: this is the one place that does."""
        self.last = self.loop.time()

    def write(self) -> None:
        """Send the input, and then its end."""
        with suppress(BlockingIOError):
            try:
                self.unsent = self.unsent[os.write(self.agent.stdin.fileno(), self.unsent) :]
            except BrokenPipeError:
                self.unsent, self.refused = b"", True
        if not self.unsent:
            self.loop.remove_writer(self.agent.stdin.fileno())
            self.agent.stdin.close()

    def has_ended(self) -> bool:
        """Say whether the agent has, and leave it to be reaped."""
        return os.waitid(os.P_PID, self.agent.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    async def end(self) -> str | None:
        """Wait for the agent's end; give an outcome if it is not its own."""
        while True:
            self.news.clear()
            if self.has_ended():
                while any(self.read(pipe) for pipe in self.kept):
                    pass
                return None
            if self.line > LONGEST_LINE:
                return "protocol_error"
            try:
                async with asyncio.timeout_at(self.last + SILENCE):
                    await self.news.wait()
            except TimeoutError:
                if not self.news.is_set():
                    return "input_failed" if self.refused else "inactive"

    def tree(self) -> list[psutil.Process]:
        """Find who lives of the agent and its descendants, by descent and by session."""
        found = {process.pid: process for process in psutil.Process(self.agent.pid).children(recursive=True)}
        for pid in psutil.pids():
            with suppress(ProcessLookupError, psutil.NoSuchProcess):
                if os.getsid(pid) == self.agent.pid:
                    found[pid] = psutil.Process(pid)
        return [process for process in found.values() if lives(process)]

    async def end_tree(self) -> None:
        """TERM, five seconds, KILL, for all of them."""
        self.loop.remove_reader(self.pidfd)
        members = self.tree()
        for process in members:
            signalled(process, signal.SIGTERM, signal.SIGCONT)
        await self.gone(members, LADDER)
        await self.kill_tree(members)

    async def kill_tree(self, members: Iterable[psutil.Process] = ()) -> None:
        """KILL the known members until none of them lives."""
        while members := [*filter(lives, {*members, *self.tree()})]:
            for process in members:
                signalled(process, signal.SIGKILL)
            await self.gone(members, None)

    async def gone(self, processes: Iterable[psutil.Process], longest: float | None) -> None:
        """Wait for their ends, as long as may be."""
        with suppress(TimeoutError):
            async with asyncio.timeout(longest):
                for process in processes:
                    with suppress(ProcessLookupError):
                        await self._gone(os.pidfd_open(process.pid))

    async def _gone(self, pidfd: int) -> None:
        end = asyncio.Event()
        self.loop.add_reader(pidfd, end.set)
        try:
            await end.wait()
        finally:
            self.loop.remove_reader(pidfd)
            os.close(pidfd)

    def reap(self) -> int:
        """Take the status of the agent, which has ended."""
        return int(self.agent.wait())

    def text(self) -> str:
        """Give what the agent said."""
        return self.out.decode(errors="replace").strip()

    def told(self, outcome: str | None, status: int) -> dict[str, Any]:
        """Say how the run ended, and the code for it."""
        if outcome is not None:
            return {"outcome": outcome, "exit_code": EXIT_CODES[outcome]}
        own = "incomplete" if status < 0 else "failed" if status else "completed"
        return {"outcome": own, "exit_code": 128 - status if status < 0 else status}

    def close(self) -> None:
        """Give every descriptor back."""
        for pipe in (self.agent.stdin, *self.kept):
            if not pipe.closed:
                self.loop.remove_reader(pipe.fileno())
                self.loop.remove_writer(pipe.fileno())
                pipe.close()
        os.close(self.pidfd)


def lives(process: psutil.Process) -> bool:
    """Say whether a process does; a zombie does not."""
    with suppress(psutil.NoSuchProcess):
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    return False


def signalled(process: psutil.Process, *signals: signal.Signals) -> None:
    """Signal a process, if it is there."""
    with suppress(psutil.NoSuchProcess):
        for number in signals:
            process.send_signal(number)


def of_plain(make: type[Run], **others: float) -> Function:
    """Make a subject of a way to run an agent, with the limits that it has besides."""

    async def run(order: RunRequest) -> dict[str, Any]:
        return await supervise(order, make)

    graces = dict.fromkeys(("kill_grace", "linger_kill_grace", "leftover_kill_grace"), LADDER)
    limits = {"inactivity_timeout": SILENCE, **graces, **others}
    name = "careful" if make is Run else make.__name__
    return Function(run, name=name, limits=limits, dialects=["raw"], cancellable=True)


subject = of_plain(Run)
