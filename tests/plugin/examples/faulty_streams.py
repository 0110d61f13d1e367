"""Supervisors of pi with one fault each: the correct one with a line or two changed. Knows no scenario."""

from __future__ import annotations

import json
from typing import Any

from tests.plugin.examples.careful import SILENCE, Run
from tests.plugin.examples.streaming import TOOL, PiRun


class DecodesEachChunk(PiRun):
    def saw(self, pipe: Any, data: bytes) -> None:
        super().saw(pipe, data.decode(errors="ignore").encode() if pipe is self.agent.stdout else data)


class ParsesEachChunk(PiRun):
    def saw(self, pipe: Any, data: bytes) -> None:
        Run.saw(self, pipe, data)
        if pipe is self.agent.stdout:
            for line in data.splitlines():
                self.take(line)


class DoesNotCountNoise(PiRun):
    def take(self, line: bytes) -> None:
        super().take(line)
        self.noise = 0


class OneObjectALine(PiRun):
    def take(self, line: bytes) -> None:
        try:
            self.hear(json.loads(line.decode().strip().removeprefix("\ufeff")))
        except ValueError:
            self.noise += 1


class BomIsNoise(PiRun):
    def take(self, line: bytes) -> None:
        if line.startswith(b"\xef\xbb\xbf"):
            self.noise += 1
        else:
            super().take(line)


class DropsTheLastLine(PiRun):
    def has_ended(self) -> bool:
        ended = super().has_ended()
        if ended:
            while any(self.read(pipe) for pipe in self.kept):
                pass
            self.rest = bytearray()
        return ended


class AnyStopEnds(PiRun):
    def hear(self, event: dict[str, Any]) -> None:
        super().hear(event)
        if event.get("type") == "message_end" and self.message and not self.done:
            self.done, self.done_at = "completed", self.loop.time()


class NothingTakesBack(PiRun):
    def hear(self, event: dict[str, Any]) -> None:
        if not self.done:
            super().hear(event)


class FirstWordsStay(PiRun):
    def hear(self, event: dict[str, Any]) -> None:
        before = self.message
        super().hear(event)
        self.message = before or self.message


class ErrorIsAnAnswer(PiRun):
    def told(self, outcome: str | None, status: int) -> dict[str, Any]:
        self.done = self.done and "completed"
        return super().told(outcome and (self.done or outcome), status)


class ExitOverrules(PiRun):
    def told(self, outcome: str | None, status: int) -> dict[str, Any]:
        told = super().told(outcome, status)
        if self.done == "completed" and status:
            told |= {"outcome": "failed", "exit_code": abs(status)}
        return told


class Exit0IsSuccess(PiRun):
    def told(self, outcome: str | None, status: int) -> dict[str, Any]:
        told = super().told(outcome, status)
        return {**told, "outcome": "completed", "exit_code": 0} if outcome is None and status == 0 else told


class ExitCodeIsTheAgents(PiRun):
    def told(self, outcome: str | None, status: int) -> dict[str, Any]:
        return {**super().told(outcome, status), "exit_code": 128 - status if status < 0 else status}


class CrashIsFailure(PiRun):
    def told(self, outcome: str | None, status: int) -> dict[str, Any]:
        told = super().told(outcome, status)
        return {**told, "outcome": "failed"} if told["outcome"] == "incomplete" else told


class CrashIsSuccess(PiRun):
    def told(self, outcome: str | None, status: int) -> dict[str, Any]:
        told = super().told(outcome, status)
        return {**told, "outcome": "completed"} if told["outcome"] == "incomplete" else told


class WaitsForTheExit(PiRun):
    def limit(self) -> float:
        return self.last + (TOOL if self.tools else SILENCE)


class NoTimeAfterTheAnswer(PiRun):
    def limit(self) -> float:
        return self.loop.time() if self.done else super().limit()


class ToolsHaveNoTime(PiRun):
    def limit(self) -> float:
        self.tools.clear()
        return super().limit()
