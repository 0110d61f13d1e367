"""The events of `opencode run --format json`. Knows no other dialect; shares no code with the fake that writes them.

A `step_finish` with stop or length completes, until a later step_start takes it back: opencode may compact its context
then, and continue. An `error` completes nothing: opencode 2.0 prints one also before it tries the step again. If it is
the last word, the run has failed when opencode exits. A tool is printed when it has ended, so a tool that runs is
silent. Opencode executes all its tools itself and asks no host for any, so no run of its ends as `tool_use`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_agentproc.supervisor.dialects._json import ObjectDecoder, as_dict
from pytest_agentproc.supervisor.dialects._meanings import (
    Failure,
    Finished,
    Message,
    Other,
    Resumed,
    ToolEnded,
    ToolStarted,
)

if TYPE_CHECKING:
    from pytest_agentproc.supervisor.dialects._meanings import Meaning


_GOOD_STOP_REASONS = frozenset({"stop", "length"})
"""The reasons after which opencode asks its model no more, and the answer stands."""


class OpencodeDecoder(ObjectDecoder):
    """Read the JSON events of opencode."""

    has_completion = True
    limit: int | None = None

    def __init__(self) -> None:
        self._last_error = ""

    def end(self, stderr: bytes) -> list[Meaning]:
        """Fail the run if an error was the last word."""
        return [Finished(False, final=False, error=self._last_error)] if self._last_error else []

    def _read_event(self, kind: str, event: dict[str, Any]) -> list[Meaning]:
        if kind == "error":
            self._last_error = _read_error_message(event.get("error"))
            return [Failure(self._last_error)]
        recovered: list[Meaning] = [Failure("")] if self._last_error else []
        self._last_error = ""
        return [*recovered, *_read_part(kind, as_dict(event.get("part")))]


def _read_part(kind: str, part: dict[str, Any]) -> list[Meaning]:
    if kind == "step_start":
        return [Resumed()]
    if kind == "text":
        return [Message(str(part.get("text", "")))]
    if kind == "tool_use":
        number = str(part.get("callID"))
        return [ToolStarted(number, str(part.get("tool"))), ToolEnded(number)]
    if kind == "step_finish" and part.get("reason") in _GOOD_STOP_REASONS:
        tokens = part.get("tokens")
        return [Finished(True, final=False, usage=tokens if isinstance(tokens, dict) else None)]
    return [Other(kind)]


def _read_error_message(error: object) -> str:
    if not isinstance(error, dict):
        return "error"
    return str(as_dict(error.get("data")).get("message") or error.get("name") or "error")
