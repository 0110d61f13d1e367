"""The messages of claude's lines, of the agent and of its sub-agents, each read by itself. Knows no turn and no result.

A message ends at `message_stop`; without partial messages nothing marks its end but a line with another message id. A
tool is in flight from its block until its result. A line with a parent_tool_use_id is a sub-agent's, given as `Nested`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_agentproc.supervisor._streams import OutputTail
from pytest_agentproc.supervisor.dialects._json import as_dict, as_text
from pytest_agentproc.supervisor.dialects._meanings import (
    MAX_ID_CHARS,
    MAX_TOOLS_IN_FLIGHT,
    Asked,
    Message,
    Nested,
    Other,
    Piece,
    ToolEnded,
    ToolStarted,
)

if TYPE_CHECKING:
    from pytest_agentproc.supervisor.dialects._meanings import Meaning


_MAX_FOLLOWED_MESSAGES = 1000
_MAX_SUBAGENT_MESSAGE_BYTES = 16 * 1024
"""So many bytes of what a sub-agent says at a time are kept, the last ones: there may be many of them."""
_MODEL_NAME_OF_CLI_MESSAGES = "<synthetic>"
"""The model that claude names in a message that it wrote by itself, such as an API error."""


class MessageReaders:
    """Read the messages of the agent and of its sub-agents. `model` is the last that answered for the agent itself.

    Args:
        by_block: whether each block of the agent's own messages is given as soon as it comes, for viewers who wait for
            it; else each message is given whole, at its end.
    """

    def __init__(self, *, by_block: bool) -> None:
        self.limit: int | None = None
        """So many bytes of a message are kept, the last ones; None: all."""
        self.model: str | None = None
        self._by_block = by_block
        self._readers: dict[str | None, _MessageReader] = {}

    def read_line(self, kind: str, event: dict[str, Any], marks: tuple[int, ...]) -> list[Meaning]:
        """Take a line, which names these turns."""
        parent = event.get("parent_tool_use_id")
        if parent:
            meanings = self._find_reader(str(parent)).read_line(kind, event, ())
            return [Nested(meaning) for meaning in meanings if not isinstance(meaning, Piece)] or [Nested(Other(kind))]
        reader = self._find_reader(None)
        meanings = reader.read_line(kind, event, marks)
        self.model = reader.model or self.model
        return meanings or [Other(kind)]

    def end_messages(self) -> list[Meaning]:
        """End every message, the agent's own last."""
        own = self._readers.pop(None, None)
        meanings: list[Meaning] = [
            Nested(meaning) for reader in self._readers.values() for meaning in reader.end_message()
        ]
        self.forget_messages()
        return [*meanings, *([] if own is None else own.end_message())]

    def forget_messages(self) -> None:
        """Forget every message that has not ended."""
        self._readers = {}

    def _find_reader(self, parent: str | None) -> _MessageReader:
        """Give the agent itself, or the sub-agent of a tool. If there are too many, forget the oldest ones."""
        parent = None if parent is None else parent[:MAX_ID_CHARS]
        if parent not in self._readers:
            if len(self._readers) >= _MAX_FOLLOWED_MESSAGES:
                self._readers.pop(next(parent_id for parent_id in self._readers if parent_id is not None))
            nested = min(_MAX_SUBAGENT_MESSAGE_BYTES, self.limit or _MAX_SUBAGENT_MESSAGE_BYTES)
            is_own = parent is None
            self._readers[parent] = _MessageReader(self.limit if is_own else nested, by_block=is_own and self._by_block)
        return self._readers[parent]


class _MessageReader:
    """Reads the lines of the agent itself or of a sub-agent, and keeps its unfinished message.

    Args:
        limit: how many bytes of its text are kept, the last ones; None: all.
        by_block: whether each block is given as soon as it comes.
    """

    def __init__(self, limit: int | None, *, by_block: bool) -> None:
        self._limit = limit
        self._by_block = by_block
        self._clear_message()

    def read_line(self, kind: str, event: dict[str, Any], marks: tuple[int, ...]) -> list[Meaning]:
        """Take a line of its own."""
        if kind == "stream_event":
            return self._read_part(as_dict(event.get("event")), marks)
        message = event.get("message")
        if not isinstance(message, dict):
            return []
        if kind == "assistant":
            return self._read_content_blocks(message, marks)
        results = _list_content_blocks(message, "tool_result") if kind == "user" else []
        return [ToolEnded(str(block.get("tool_use_id")), marks=marks) for block in results]

    def end_message(self) -> list[Meaning]:
        """End the message under way, if there is one."""
        if not self._is_begun:
            return []
        meanings: list[Meaning] = []
        if not self._by_block:
            if self._deltas is not None:
                self._add_text(bytes(self._deltas))
            text = None if self._text is None else str(self._text)
            is_torn = self._text is not None and self._text.is_cut
            meanings.append(Message(text, self._stop, self.model, self._usage, is_torn))
        if self._tools:
            meanings.append(Asked(tuple(self._tools.values())))
        self._clear_message()
        return meanings

    def _clear_message(self) -> None:
        self._is_begun = False
        self._id: object = None
        self._text: OutputTail | None = None
        self._deltas: OutputTail | None = None
        self._tools: dict[str, str] = {}
        self._stop: str | None = None
        self.model: str | None = None
        self._usage: dict[str, Any] | None = None

    def _begin_message(self, message: dict[str, Any]) -> list[Meaning]:
        meanings = self.end_message()
        self._is_begun, self._id = True, message.get("id")
        self._keep_message_metadata(message)
        return meanings

    def _keep_message_metadata(self, message: dict[str, Any]) -> None:
        model, usage = as_text(message.get("model")), message.get("usage")
        self.model = self.model if model in (None, _MODEL_NAME_OF_CLI_MESSAGES) else model
        self._usage = usage if isinstance(usage, dict) else self._usage
        self._stop = as_text(message.get("stop_reason")) or self._stop

    def _read_part(self, part: dict[str, Any], marks: tuple[int, ...]) -> list[Meaning]:
        kind, delta, text = part.get("type"), as_dict(part.get("delta")), ""
        if kind == "message_start":
            return [*self._begin_message(as_dict(part.get("message"))), Piece(marks=marks, ends_message=True)]
        if kind == "message_stop":
            ended = self.end_message()
            return ended if ended and not self._by_block else [Piece(marks=marks), *ended]
        if kind == "content_block_start":
            block = as_dict(part.get("content_block"))
            return self._add_tool(block, marks) if block.get("type") == "tool_use" else [Piece(marks=marks)]
        if kind == "content_block_delta" and delta.get("type") == "text_delta":
            text = str(delta.get("text", ""))
            if not self._by_block:
                self._deltas = self._deltas or OutputTail(self._limit)
                self._deltas.add(_encode_text(text))
        elif kind == "message_delta":
            self._keep_message_metadata({**part, **delta})
        return [Piece(text, marks=marks)]

    def _read_content_blocks(self, message: dict[str, Any], marks: tuple[int, ...]) -> list[Meaning]:
        is_same = self._is_begun and message.get("id") == self._id
        meanings = [] if is_same else self._begin_message(message)
        self._keep_message_metadata(message)
        self._deltas = None
        texts, calls = (_list_content_blocks(message, kind) for kind in ("text", "tool_use"))
        if not self._by_block:
            for block in texts:
                self._add_text(_encode_text(block.get("text", "")))
        elif (text := "".join(str(block.get("text", "")) for block in texts)) or not calls:
            name = str(message.get("id") or "")[:MAX_ID_CHARS]
            meanings.append(Message(text, self._stop, self.model, self._usage, id=name, marks=marks))
        return [*meanings, *(meaning for block in calls for meaning in self._add_tool(block, marks))]

    def _add_text(self, text: bytes) -> None:
        self._text = self._text or OutputTail(self._limit)
        self._text.add(text)

    def _add_tool(self, block: dict[str, Any], marks: tuple[int, ...]) -> list[Meaning]:
        """Begin a tool, once: where a message comes in pieces, its call comes twice."""
        number, name = str(block.get("id")), str(block.get("name"))
        key = number[:MAX_ID_CHARS]
        if key in self._tools:
            return []
        if len(self._tools) < MAX_TOOLS_IN_FLIGHT:
            self._tools[key] = name[:MAX_ID_CHARS]
        return [ToolStarted(number, name, marks=marks)]


def _list_content_blocks(message: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    return [block for block in blocks if isinstance(block, dict) and block.get("type") == kind]


def _encode_text(text: object) -> bytes:
    return str(text).encode(errors="surrogatepass")
