"""When the work is done: what the dialect's events say about the result. Pure; knows no process and no time limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_agentproc.supervisor._tail import Transcript
from pytest_agentproc.supervisor.dialects import Failure, Finished, Line, Message, Noise, Other, Resumed

if TYPE_CHECKING:
    from pytest_agentproc.supervisor.dialects import Meaning

__all__ = ["Completion"]


class Completion:
    """Follow a run's events to its result.

    `at` is the instant of the completion, None while there is none; `ok` says whether its result is good.
    """

    def __init__(self) -> None:
        self.at: int | None = None
        self.ok: bool | None = None
        self.final = False
        self.error = ""
        self.messages = Transcript(None)
        self.result: str | None = None
        self.has_lines = False
        self.stop_reason: str | None = None
        self.model: str | None = None
        self.usage: dict[str, Any] | None = None
        self.noise = 0
        self._is_torn = False

    def limit_to(self, size: int | None) -> None:
        """Keep so many bytes of the transcript from now on, the last ones; None: all of them (F6)."""
        self.messages = Transcript(size)

    def feed(self, meaning: Meaning, now: int) -> None:
        """Take one event."""
        if isinstance(meaning, Other):
            return
        if isinstance(meaning, Message):
            self._keep(meaning)
        elif isinstance(meaning, Line):
            self.has_lines = True
            self.messages.add_lines(meaning.text)
        elif isinstance(meaning, Finished):
            self.finish(meaning, now)
        elif isinstance(meaning, Resumed):
            self.resume()
        elif isinstance(meaning, Noise):
            self.noise += meaning.lines
        elif isinstance(meaning, Failure):
            self.error = meaning.error

    @property
    def text(self) -> str | None:
        """The final message, or the transcript of a dialect without messages; None if there was none."""
        if self.result is not None:
            return self.result
        return self.transcript if self.has_lines else self.messages.last

    @property
    def transcript(self) -> str:
        """All messages or lines, as far back as the limit allows."""
        return str(self.messages)

    @property
    def warnings(self) -> list[str]:
        """Warn of a transcript that is not whole."""
        return ["transcript_truncated"] if self.messages.is_cut or self._is_torn else []

    def finish(self, meaning: Finished, now: int) -> None:
        """Complete; a second completion changes the result, not the instant, and none does behind one that is final."""
        if self.final:
            return
        if self.at is None:
            self.at = now
        self.model = meaning.model or self.model
        self.usage = meaning.usage or self.usage
        self.result = meaning.text if meaning.text is not None else self.result
        self.stop_reason = meaning.stop_reason or self.stop_reason
        if meaning.ok is not None:
            self.ok = meaning.ok
            self.error = meaning.error
        elif self.ok is None:
            self.ok = True
        self.final = self.final or meaning.final

    def resume(self) -> None:
        """Take a completion back that was not final."""
        if not self.final:
            self.at = self.ok = None
            self.error = ""

    def _keep(self, message: Message) -> None:
        if message.text is not None:
            self.messages.add(message.text)
            self._is_torn = self._is_torn or message.is_torn
        self.stop_reason = message.stop_reason or self.stop_reason
        self.model = message.model or self.model
        self.usage = message.usage or self.usage
