"""The speakers of claude's lines (the agent and its sub-agents) and their messages. Knows no turn and no result.

A message ends at `message_stop`; without partial messages nothing marks its end but a line with another message id. A
tool is in flight from its block until its result. A line with a parent_tool_use_id is a sub-agent's, given as `Nested`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_agentproc.supervisor._streams import Tail
from pytest_agentproc.supervisor.dialects._base import (
    LONGEST_ID,
    MOST_TOOLS,
    Asked,
    Message,
    Nested,
    Other,
    ToolEnded,
    ToolStarted,
)

if TYPE_CHECKING:
    from pytest_agentproc.supervisor.dialects._base import Meaning


_MOST_SPEAKERS = 1000
_MOST_NESTED = 16 * 1024
"""So many bytes of what a sub-agent says at a time are kept, the last ones: there may be many of them."""
_NO_MODEL = "<synthetic>"
"""The model that claude names in a message that it wrote by itself, such as an API error."""


class Speakers:
    """Follow everybody's messages.

    Args:
        limit: how many bytes of a message are kept, the last ones; None: all.
    """

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit
        self._speakers: dict[str | None, _Speaker] = {}

    def hear(self, kind: str, event: dict[str, Any]) -> list[Meaning]:
        """Take a line. A line of the agent's own gives nothing if it means only that the agent continues."""
        parent = event.get("parent_tool_use_id")
        if parent is None:
            return self._speaker(None).hear(kind, event)
        return [Nested(meaning) for meaning in self._speaker(str(parent)).hear(kind, event) or [Other(kind)]]

    def end(self) -> list[Meaning]:
        """End every speaker's message, the agent's own last."""
        own = self._speakers.pop(None, _Speaker(self.limit))
        told: list[Meaning] = [Nested(meaning) for speaker in self._speakers.values() for meaning in speaker.end()]
        self.forget()
        return [*told, *own.end()]

    def forget(self) -> None:
        """Forget every message that has not ended."""
        self._speakers = {}

    def _speaker(self, parent: str | None) -> _Speaker:
        """Give the agent itself, or the sub-agent of a tool. If there are too many, forget the oldest ones."""
        parent = None if parent is None else parent[:LONGEST_ID]
        if parent not in self._speakers:
            if len(self._speakers) >= _MOST_SPEAKERS:
                self._speakers.pop(next(speaker for speaker in self._speakers if speaker is not None))
            nested = min(_MOST_NESTED, self.limit or _MOST_NESTED)
            self._speakers[parent] = _Speaker(self.limit if parent is None else nested)
        return self._speakers[parent]


class _Speaker:
    """A speaker, the agent itself or a sub-agent, and its unfinished message.

    Args:
        limit: how many bytes of its text are kept, the last ones; None: all.
    """

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self._clear()

    def hear(self, kind: str, event: dict[str, Any]) -> list[Meaning]:
        """Take a line of its own; return what it means beside going on."""
        if kind == "stream_event":
            inner = event.get("event")
            return self._hear_part(inner) if isinstance(inner, dict) else []
        message = event.get("message")
        if not isinstance(message, dict):
            return []
        if kind == "assistant":
            return self._hear_blocks(message)
        results = _blocks(message, "tool_result") if kind == "user" else []
        return [ToolEnded(str(block.get("tool_use_id"))) for block in results]

    def end(self) -> list[Meaning]:
        """End the message under way, if there is one."""
        if not self._is_begun:
            return []
        if self._deltas is not None:
            self._say(bytes(self._deltas))
        text = None if self._text is None else str(self._text)
        is_torn = self._text is not None and self._text.is_cut
        told: list[Meaning] = [Message(text, self._stop, self._model, self._usage, is_torn)]
        if self._tools:
            told.append(Asked(tuple(self._tools.values())))
        self._clear()
        return told

    def _clear(self) -> None:
        self._is_begun = False
        self._id: object = None
        self._text: Tail | None = None
        self._deltas: Tail | None = None
        self._tools: dict[str, str] = {}
        self._stop: str | None = None
        self._model: str | None = None
        self._usage: dict[str, Any] | None = None

    def _begin(self, message: dict[str, Any]) -> list[Meaning]:
        told = self.end()
        self._is_begun, self._id = True, message.get("id")
        self._learn(message)
        return told

    def _learn(self, message: dict[str, Any]) -> None:
        model, usage = word(message.get("model")), message.get("usage")
        self._model = self._model if model in (None, _NO_MODEL) else model
        self._usage = usage if isinstance(usage, dict) else self._usage
        self._stop = word(message.get("stop_reason")) or self._stop

    def _hear_part(self, part: dict[str, Any]) -> list[Meaning]:
        kind = part.get("type")
        if kind == "message_start":
            return self._begin(_object(part.get("message")))
        if kind == "message_stop":
            return self.end()
        if kind == "content_block_start":
            block = _object(part.get("content_block"))
            return [self._ask(block)] if block.get("type") == "tool_use" else []
        delta = _object(part.get("delta"))
        if kind == "content_block_delta" and delta.get("type") == "text_delta":
            self._deltas = self._deltas or Tail(self._limit)
            self._deltas.add(_bytes(delta.get("text", "")))
        elif kind == "message_delta":
            self._learn({**part, **delta})
        return []

    def _hear_blocks(self, message: dict[str, Any]) -> list[Meaning]:
        is_same = self._is_begun and message.get("id") == self._id
        told = [] if is_same else self._begin(message)
        self._learn(message)
        self._deltas = None
        for block in _blocks(message, "text"):
            self._say(_bytes(block.get("text", "")))
        return [*told, *(self._ask(block) for block in _blocks(message, "tool_use"))]

    def _say(self, text: bytes) -> None:
        self._text = self._text or Tail(self._limit)
        self._text.add(text)

    def _ask(self, block: dict[str, Any]) -> Meaning:
        number, name = str(block.get("id")), str(block.get("name"))
        if len(self._tools) < MOST_TOOLS:
            self._tools[number[:LONGEST_ID]] = name[:LONGEST_ID]
        return ToolStarted(number, name)


def _blocks(message: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    return [block for block in blocks if isinstance(block, dict) and block.get("type") == kind]


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _bytes(text: object) -> bytes:
    return str(text).encode(errors="surrogatepass")


def word(value: object) -> str | None:
    """Give a text, or None for anything else."""
    return value if isinstance(value, str) else None
