"""Supervisors of plain text with one fault each: the careful one, but for a line or two. Knows no scenario."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import psutil

from tests.plugin.examples.careful import LADDER, SILENCE, Run, lives, signalled

if TYPE_CHECKING:
    from pytest_agentproc.vocabulary import RunRequest


KEPT: list[Any] = []


class StderrIsNoActivity(Run):
    def saw(self, pipe: Any, data: bytes) -> None:
        if pipe is self.agent.stdout:
            super().saw(pipe, data)


class NothingIsActivity(Run):
    def saw(self, pipe: Any, data: bytes) -> None:
        pass


class OnlyWholeLinesAreActivity(Run):
    def saw(self, pipe: Any, data: bytes) -> None:
        if b"\n" in data:
            super().saw(pipe, data)


class ClosedOutputIsTheEnd(Run):
    closed = False

    def read(self, pipe: Any) -> bool:
        got = super().read(pipe)
        if not got and pipe is self.agent.stdout and not self.loop.remove_reader(pipe.fileno()):
            self.closed = True
            self.news.set()
        return got

    def has_ended(self) -> bool:
        return self.closed or super().has_ended()

    def reap(self) -> int:
        return 0 if self.closed else super().reap()


class WaitsForTheEndOfOutput(Run):
    ended = 0

    def read(self, pipe: Any) -> bool:
        got = super().read(pipe)
        try:
            self.ended += not got and not os.read(pipe.fileno(), 1)
        except BlockingIOError:
            return got
        self.news.set()
        return got

    def has_ended(self) -> bool:
        return self.ended >= len(self.kept) and super().has_ended()


class PollsNowAndThen(Run):
    async def end(self) -> str | None:
        while True:
            await asyncio.sleep(0.7)
            if self.has_ended():
                return await super().end()
            if self.loop.time() >= self.last + SILENCE:
                return "inactive"


class TimerBeatsExit(Run):
    async def end(self) -> str | None:
        while True:
            self.news.clear()
            if self.loop.time() >= self.last + SILENCE:
                return "inactive"
            if self.has_ended():
                return await super().end()
            with suppress(TimeoutError):
                async with asyncio.timeout_at(self.last + SILENCE):
                    await self.news.wait()


class KillsTheAgentAlone(Run):
    def tree(self) -> list[psutil.Process]:
        return [] if self.has_ended() else [psutil.Process(self.agent.pid)]


class KillsTheGroupAlone(Run):
    def tree(self) -> list[psutil.Process]:
        found = []
        for pid in psutil.pids():
            with suppress(ProcessLookupError):
                if os.getpgid(pid) == self.agent.pid:
                    found.append(psutil.Process(pid))
        return [*filter(lives, found)]


class NeverKills(Run):
    async def end_tree(self) -> None:
        self.loop.remove_reader(self.pidfd)
        members = self.tree()
        for process in members:
            signalled(process, signal.SIGTERM, signal.SIGCONT)
        await self.gone(members, LADDER)

    def reap(self) -> int:
        return int(self.agent.poll() or 0)


class KillsAtOnce(Run):
    async def end_tree(self) -> None:
        self.loop.remove_reader(self.pidfd)
        while members := self.tree():
            for process in members:
                signalled(process, signal.SIGKILL)
            await self.gone(members, None)


class DoesNotContinue(Run):
    async def end_tree(self) -> None:
        self.loop.remove_reader(self.pidfd)
        members = self.tree()
        for process in members:
            signalled(process, signal.SIGTERM)
        await self.gone(members, LADDER)
        await super().end_tree() if self.tree() else None


class DoesNotReap(Run):
    def reap(self) -> int:
        info = os.waitid(os.P_PID, self.agent.pid, os.WEXITED | os.WNOWAIT)
        assert info is not None
        KEPT.append(self.agent)  # or the garbage collector would reap it
        return info.si_status if info.si_code == os.CLD_EXITED else -info.si_status


class ReturnsBeforeTheTreeIsGone(Run):
    async def end_tree(self) -> None:
        self.loop.remove_reader(self.pidfd)
        for process in self.tree():
            signalled(process, signal.SIGTERM, signal.SIGCONT)

    def reap(self) -> int:
        return int(self.agent.poll() or 0)


class LeavesLeftovers(Run):
    async def end_tree(self) -> None:
        if self.has_ended():
            self.loop.remove_reader(self.pidfd)
        else:
            await super().end_tree()


class DoesNotReadStderr(Run):
    def __init__(self, order: RunRequest) -> None:
        super().__init__(order)
        self.loop.remove_reader(self.agent.stderr.fileno())
        del self.kept[self.agent.stderr]


class StderrIsText(Run):
    def start(self, argv: Any, **how: Any) -> Any:
        agent = super().start(argv, **how, stderr=subprocess.STDOUT)
        reading, writing = os.pipe()
        os.close(writing)
        agent.stderr = os.fdopen(reading, "rb", buffering=0)
        return agent


class ReadsAfterItWrote(Run):
    def __init__(self, order: RunRequest) -> None:
        super().__init__(order)
        for pipe in self.kept:
            self.loop.remove_reader(pipe.fileno())

    async def end(self) -> str | None:
        while not self.agent.stdin.closed and not self.has_ended():
            self.news.clear()
            await self.news.wait()
        for pipe in self.kept:
            self.loop.add_reader(pipe.fileno(), self.read, pipe)
        return await super().end()

    def write(self) -> None:
        super().write()
        self.news.set()


class LeavesStdinOpen(Run):
    def write(self) -> None:
        closing, self.agent.stdin.close = self.agent.stdin.close, lambda: None
        super().write()
        self.agent.stdin.close = closing


class LosesLastWords(Run):
    def read(self, pipe: Any) -> bool:
        return not super().has_ended() and super().read(pipe)


class DecodesEachChunk(Run):
    def __init__(self, order: RunRequest) -> None:
        self.words: list[str] = []
        super().__init__(order)

    def saw(self, pipe: Any, data: bytes) -> None:
        super().saw(pipe, data)
        if pipe is self.agent.stdout:
            self.words.append(data.decode(errors="replace"))

    def text(self) -> str:
        return "".join(self.words).strip()


class ReadsLinesAsAShellDoes(Run):
    """Lose what `read` without -r and IFS loses."""

    def text(self) -> str:
        return "\n".join(line.strip().replace("\\", "") for line in super().text().splitlines())


class SwallowsTheExitCode(Run):
    def told(self, outcome: str | None, status: int) -> dict[str, Any]:
        return super().told(outcome, min(status, 0))


class AnyExitIsCode1(Run):
    def told(self, outcome: str | None, status: int) -> dict[str, Any]:
        return super().told(outcome, min(status, 1))


class SignalIsSuccess(Run):
    def told(self, outcome: str | None, status: int) -> dict[str, Any]:
        return super().told(outcome, max(status, 0))


class TimeoutIsTheAgentsStatus(Run):
    def told(self, outcome: str | None, status: int) -> dict[str, Any]:
        return super().told(None, status)


class SpawnFailureRaises(Run):
    def start(self, argv: Any, **how: Any) -> Any:
        try:
            return super().start(argv, **how)
        except OSError as error:
            raise RuntimeError("no agent") from error


class SpawnFailureIsNotFound(Run):
    def start(self, argv: Any, **how: Any) -> Any:
        try:
            return super().start(argv, **how)
        except OSError as error:
            raise FileNotFoundError from error


class OwnEnvironment(Run):
    def start(self, argv: Any, **how: Any) -> Any:
        return super().start(argv, **{**how, "env": {**os.environ, **how["env"]}})


class OwnFolder(Run):
    def start(self, argv: Any, **how: Any) -> Any:
        return super().start(argv, **{**how, "cwd": "/"})


class PromptGetsANewline(Run):
    def __init__(self, order: RunRequest) -> None:
        super().__init__(order)
        self.unsent += b"\n" if self.unsent else b""
