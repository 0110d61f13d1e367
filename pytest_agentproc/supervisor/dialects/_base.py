"""The events that a dialect's lines mean. Every decoder gives them. Values and a protocol; knows no dialect.

Nobody changes one. Those that come with every line are not frozen all the same: making a frozen one costs three times
as much.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

MAX_TOOLS_IN_FLIGHT = 10_000
"""So many tools are followed at one time; memory is bounded whatever the agent prints (F6)."""

MAX_ID_CHARS = 1000
"""So many characters tell one tool from another; its id may be as long as a line."""


@dataclass(slots=True)
class Message:
    """An assistant message is complete.

    Args:
        text: what it says; None if it says nothing, but only thinks or asks for tools.
        stop_reason: why it ended, in the dialect's words.
        model: who answered.
        usage: what was used.
        is_torn: whether only the end of its text was kept.
    """

    text: str | None
    stop_reason: str | None = None
    model: str | None = None
    usage: dict[str, Any] | None = None
    is_torn: bool = False


@dataclass(slots=True)
class Line:
    """Plain text, in a dialect that has no messages: a line, or several that came together, with LF between them."""

    text: str


@dataclass(frozen=True, slots=True)
class Finished:
    """The dialect says that the work is done.

    Args:
        ok: whether the result is good; None: as the last one said.
        final: False if the agent may yet take it back.
        error: its own words about a bad result.
        model: the model that answered, where the result says so.
        usage: what was used, where the result says so.
        text: the final text, where the result says so.
        stop_reason: why the model stopped, where the result says so.
    """

    ok: bool | None
    final: bool
    error: str = ""
    model: str | None = None
    usage: dict[str, Any] | None = None
    text: str | None = None
    stop_reason: str | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """The agent's own words about an error that the exit decides about; none: it has got over it."""

    error: str


@dataclass(frozen=True, slots=True)
class Resumed:
    """The agent continues: a completion that was not final is taken back."""


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A tool is in flight from here until its end: the agent's own, or a background agent that it waits for."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class ToolEnded:
    """A tool is no longer in flight."""

    id: str


@dataclass(frozen=True, slots=True)
class Compaction:
    """The agent begins to compact its context, or has done it: work of its own, as a tool is, and often silent."""

    is_over: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """A message that asks for these tools, by name, is complete."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TaskBegun:
    """The agent has begun work that continues beside its turns.

    Args:
        id: its name.
        kind: what it is, in the dialect's words.
        title: what it does, in the agent's words.
    """

    id: str
    kind: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class TaskOver:
    """Work beside the turns is over, well or not.

    `was_stopped` says that it was stopped, and that the agent itself had not asked for that.
    """

    id: str
    was_stopped: bool = False


@dataclass(frozen=True, slots=True)
class Nested:
    """A sub-agent's meaning: it shows that work continues, and has no other effect on the turn (A6)."""

    meaning: Meaning


@dataclass(frozen=True, slots=True)
class Noise:
    """A line that means nothing in the dialect, or this number of such lines."""

    line: bytes
    lines: int = 1


@dataclass(slots=True)
class Other:
    """An event of the dialect that changes nothing here; a sign of life or a status is no progress either (P2)."""

    kind: str
    is_progress: bool = True


Meaning = (
    Message
    | Line
    | Finished
    | Failure
    | Resumed
    | ToolStarted
    | ToolEnded
    | Compaction
    | Asked
    | TaskBegun
    | TaskOver
    | Nested
    | Noise
    | Other
)

MEANINGS_OF_WORK = frozenset({Asked, Compaction, Nested, TaskBegun, TaskOver, ToolEnded, ToolStarted})
"""The agent's words about its tools, its tasks and its context; nothing else changes who works."""


class Decoder(Protocol):
    """Lines of one stream in, meanings out.

    `has_completion` is False where the exit is the only completion. `limit` is how many bytes, the last ones, are kept
    of a message that comes in pieces (F6); None: all.
    """

    has_completion: bool
    limit: int | None

    def decode(self, line: bytes) -> list[Meaning]:
        """Say what a line means.

        One that can say so of many lines at once, in less time, has `decode_all(lines)` as well.
        """

    def end(self, stderr: bytes) -> list[Meaning]:
        """Name the unfinished work, after the agent's end; `stderr` is the tail of its stderr."""
