"""A supervisor of `pi --mode json` that does it right: the careful one, and what the lines mean. Knows no scenario."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from pytest_agentproc.subjects import Function
from tests.plugin.examples.careful import LADDER, LONGEST_LINE, SILENCE, Run, supervise

if TYPE_CHECKING:
    from pytest_agentproc.vocabulary import RunRequest

__all__ = ["TOOL", "PiRun", "of_pi", "subject"]

TOOL, LINGER = 300, 1
ENDS = {"stop": "completed", "length": "completed", "error": "failed", "aborted": "failed"}
GOES_ON = ("turn_start", "message_start", "auto_retry_start")


class PiRun(Run):
    """One pi: its last message, the tools that it runs, and whether it is through."""

    def __init__(self, order: RunRequest) -> None:
        self.rest, self.noise = bytearray(), 0
        self.tools: set[str] = set()
        self.message: dict[str, Any] = {}
        self.done: str | None = None
        self.is_final = False
        self.begun = self.done_at = asyncio.get_running_loop().time()
        super().__init__(order)

    def saw(self, pipe: Any, data: bytes) -> None:
        """Take the lines that are whole."""
        super().saw(pipe, data)
        if pipe is self.agent.stdout:
            self.rest += data
            if b"\n" in data:
                *lines, self.rest = self.rest.split(b"\n")
                for line in lines:
                    self.take(bytes(line))

    def take(self, line: bytes) -> None:
        """Read the events of a line; all other text is noise."""
        try:
            text = line.decode().strip()
            events = objects(text.removeprefix("\ufeff"))
        except ValueError:
            self.noise += 1
            return
        for event in events:
            self.hear(event)

    def hear(self, event: dict[str, Any]) -> None:
        """Take an event."""
        kind, message = event.get("type"), event.get("message") or {}
        if kind == "tool_execution_start":
            self.tools.add(event["toolCallId"])
        elif kind == "tool_execution_end":
            self.tools.discard(event["toolCallId"])
        elif kind == "compaction_start":
            self.tools.add(kind)
        elif kind == "compaction_end":
            self.tools.discard("compaction_start")
        elif kind in GOES_ON and not self.is_final:
            self.done = None
        elif kind == "agent_end" and not event.get("willRetry"):
            self.is_final = True
            if not self.done:
                self.done, self.done_at = "completed", self.loop.time()
        elif kind == "message_end" and message.get("role") == "assistant":
            self.message = message
            self.done = ENDS.get(str(message.get("stopReason")))
            self.done_at = self.loop.time()

    def limit(self) -> float:
        """Say when the supervisor has to act."""
        if self.done:
            return self.done_at + LINGER
        return self.last + (TOOL if self.tools else SILENCE)

    async def end(self) -> str | None:
        """Wait for the exit, or the answer and the time after it, or too long a silence."""
        while True:
            self.news.clear()
            if self.has_ended():
                while any(self.read(pipe) for pipe in self.kept):
                    pass
                if self.rest:
                    self.take(bytes(self.rest))
                return None
            if self.line > LONGEST_LINE and not self.done:
                return "protocol_error"
            try:
                async with asyncio.timeout_at(self.limit()):
                    await self.news.wait()
            except TimeoutError:
                if not self.news.is_set():
                    return self.done or ("input_failed" if self.refused else "inactive")

    def text(self) -> str:
        """Give the text of the last message."""
        return "".join(block.get("text", "") for block in self.message.get("content") or [])

    def told(self, outcome: str | None, status: int) -> dict[str, Any]:
        """Let the answer decide, and the exit where there is none."""
        known = {
            name: self.message[key]
            for name, key in (("stop_reason", "stopReason"), ("model", "model"))
            if self.message.get(key)
        }
        more = {**known, "noise": self.noise}
        if not self.done:
            if outcome is None:
                return {**more, "outcome": "incomplete", "exit_code": 128 - status if status < 0 else status or 1}
            return {**more, **super().told(outcome, status)}
        more["elapsed"] = self.done_at - self.begun
        if self.done == "completed":
            return {**more, "outcome": "completed", "exit_code": 0}
        forced = outcome is not None or status <= 0
        error = self.message.get("errorMessage") or self.message.get("stopReason")
        return {**more, "outcome": "failed", "exit_code": 1 if forced else status, "error": error}


def objects(text: str) -> list[dict[str, Any]]:
    """Give the objects of a line.

    Raises:
        ValueError: there is something else in it.
    """
    found = []
    while text:
        message, end = json.JSONDecoder().raw_decode(text)
        if not isinstance(message, dict) or not isinstance(message.get("type"), str):
            raise ValueError(text)  # noqa: TRY004 - so is what is no JSON at all
        found.append(message)
        text = text[end:].lstrip()
    return found


def of_pi(make: type[PiRun]) -> Function:
    """Make a subject of a way to run pi."""

    async def run(order: RunRequest) -> dict[str, Any]:
        return await supervise(order, make)

    return Function(
        run,
        name=make.__name__,
        limits={
            "inactivity_timeout": SILENCE,
            "internal_tool_timeout": TOOL,
            "linger_grace": LINGER,
            "kill_grace": LADDER,
            "linger_kill_grace": LADDER,
            "leftover_kill_grace": LADDER,
        },
        dialects=["pi"],
        cancellable=True,
    )


subject = of_pi(PiRun)
