"""What the lines of an agent mean: one vocabulary for runs and for sessions. Values and a protocol; knows no dialect.

A turn has a number, from 1; `BACKGROUND_TURN_MARK` stands for a turn that the agent began by itself. `marks` are the
turns that a line names itself, as far as the dialect marks anything; whose turn it is where nothing is said, the
router decides. A run has one turn, and its lines name none.

Nobody changes a meaning. Those that come with every line are not frozen all the same: making a frozen one costs three
times as much.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, get_args

MAX_TOOLS_IN_FLIGHT = 10_000
"""So many tools are followed at one time; memory is bounded whatever the agent prints (F6)."""

MAX_ID_CHARS = 1000
"""So many characters tell one tool from another; its id may be as long as a line."""

BACKGROUND_TURN_MARK = 0


# The progress of a turn.


@dataclass(slots=True, kw_only=True)
class TurnProgress:
    """Progress within a turn. `kind` is what viewers of a session see of it, and `shown_text` are its words for them.

    Args:
        marks: the turns that the line names.
        ends_message: whether it ends a message that comes in pieces only. A whole message with it is an answer, even if
            it has no words.
    """

    kind: ClassVar[str] = "tool"
    marks: tuple[int, ...] = ()
    ends_message: bool = False

    @property
    def shown_text(self) -> str:
        """Give nothing: most progress has words of its own."""
        return ""


@dataclass(slots=True)
class Message(TurnProgress):
    """An assistant message is complete, or a block of one.

    Args:
        text: what it says; None if it says nothing, but only thinks or asks for tools.
        stop_reason: why it ended, in the dialect's words.
        model: who answered.
        usage: what was used.
        is_torn: whether only the end of its text was kept.
        id: the message's name, where it comes block by block: all blocks of one name are one message.
    """

    kind: ClassVar[str] = "message"
    text: str | None
    stop_reason: str | None = None
    model: str | None = None
    usage: dict[str, Any] | None = None
    is_torn: bool = False
    id: str = ""

    @property
    def shown_text(self) -> str:
        """Give the words."""
        return self.text or ""


@dataclass(slots=True)
class Piece(TurnProgress):
    """A piece of a message, or a sign that one continues."""

    kind: ClassVar[str] = "delta"
    text: str = ""

    @property
    def shown_text(self) -> str:
        """Give the words."""
        return self.text


@dataclass(slots=True)
class ToolProgress(TurnProgress):
    """A tool, or a hook, gets further."""

    id: str = ""
    name: str = ""

    @property
    def shown_text(self) -> str:
        """Name it."""
        return self.name


@dataclass(slots=True)
class ToolStarted(ToolProgress):
    """A tool is in flight from here until its end."""


@dataclass(slots=True)
class ToolEnded(ToolProgress):
    """A tool is no longer in flight."""


@dataclass(slots=True)
class Compaction(TurnProgress):
    """The agent begins to compact its context, or has done it: work of its own, as a tool is, and often silent."""

    is_over: bool = False

    @property
    def shown_text(self) -> str:
        """Name the work."""
        return "compaction"


@dataclass(slots=True)
class Nested(TurnProgress):
    """A sub-agent's meaning: it shows that work continues, and has no other effect on the turn (A6)."""

    meaning: Meaning

    @property
    def shown_text(self) -> str:
        """Name the worker."""
        return "sub-agent"


# The other meanings of a turn.


@dataclass(frozen=True, slots=True)
class Finished:
    """The dialect says that the work of a turn is done.

    Args:
        ok: whether the result is good; None: as the last one said.
        final: False if the agent may yet take it back.
        error: its own words about a bad result.
        model: the model that answered, where the result says so.
        usage: what was used, where the result says so.
        text: the final text, where the result says so.
        stop_reason: why the model stopped, where the result says so.
        marks: the turns that the line names.
    """

    ok: bool | None
    final: bool = True
    error: str = ""
    model: str | None = None
    usage: dict[str, Any] | None = None
    text: str | None = None
    stop_reason: str | None = None
    marks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Failure:
    """The agent's own words about an error that the exit decides about; none: it has got over it."""

    error: str


@dataclass(frozen=True, slots=True)
class Resumed:
    """The agent continues: a completion that was not final is taken back."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A message that asks for these tools, by name, is complete."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PromptNamed:
    """The agent names a prompt and says nothing more of it: it is one that marks its turns."""

    marks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TurnBegun:
    """A turn begins."""

    marks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class PromptDeclined:
    """A prompt was not taken, in the agent's own words."""

    number: int
    error: str


@dataclass(frozen=True, slots=True)
class CancelAnswered:
    """The cancel of a turn was answered, in a dialect that answers one."""

    number: int


@dataclass(frozen=True, slots=True)
class Question:
    """The agent asks for a permission; `detail` is the dialect's own description of what it wants to do."""

    id: str
    title: str
    detail: dict[str, Any] = field(default_factory=dict)
    marks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class QuestionWithdrawn:
    """The agent wants no answer to a question any more."""

    id: str


# Beside the turns.


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
class TaskReported:
    """The agent hears of a task. A background agent is in flight, as a tool is, from its beginning until here."""

    id: str


@dataclass(frozen=True, slots=True)
class HandshakeDone:
    """The handshake is done."""

    session_id: str | None = None


@dataclass(frozen=True, slots=True)
class HandshakeRefused:
    """The agent refuses the handshake, in its own words."""

    error: str


@dataclass(frozen=True, slots=True)
class HistoryReplayed:
    """Words of a session's past, which the agent repeats while it loads the session; a prompt or its own."""

    text: str
    is_prompt: bool = False


@dataclass(frozen=True, slots=True)
class SwitchRefused:
    """The agent does not switch its mode or its model (`what`), in its own words."""

    what: str
    error: str


@dataclass(frozen=True, slots=True)
class MalformedLine:
    """A line whose envelope has the wrong shape, in a dialect that has one (F3)."""

    error: str


@dataclass(frozen=True, slots=True)
class ImmediateReply:
    """Bytes that the dialect wants to be written now, whatever the session does."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Hook:
    """A hook fires in the agent.

    Args:
        id: the request's.
        callback: the name under which the hook was announced.
        event: what happened, in the agent's words, such as `PreToolUse`.
        title: what is about to run, or ran.
        detail: the agent's own description.
    """

    id: str
    callback: str
    event: str
    title: str = ""
    detail: dict[str, Any] = field(default_factory=dict)

    @property
    def is_question(self) -> bool:
        """Whether it may forbid what is about to run."""
        return self.event == "PreToolUse"


@dataclass(slots=True)
class Line:
    """Plain text, in a dialect that has no messages: a line, or several that came together, with LF between them."""

    text: str


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


TurnMeaning = (
    PromptNamed | TurnBegun | TurnProgress | Finished | PromptDeclined | CancelAnswered | Question | QuestionWithdrawn
)
"""The meanings that belong to a turn."""

WorkMeaning = Asked | Compaction | Nested | TaskBegun | TaskOver | TaskReported | ToolEnded | ToolStarted
"""The agent's words about its tools, its tasks and its context; nothing else changes who works."""

Meaning = (
    Asked
    | CancelAnswered
    | Compaction
    | Failure
    | Finished
    | HandshakeDone
    | HandshakeRefused
    | HistoryReplayed
    | Hook
    | ImmediateReply
    | Line
    | MalformedLine
    | Message
    | Nested
    | Noise
    | Other
    | Piece
    | PromptDeclined
    | PromptNamed
    | Question
    | QuestionWithdrawn
    | Resumed
    | SwitchRefused
    | TaskBegun
    | TaskOver
    | TaskReported
    | ToolEnded
    | ToolProgress
    | ToolStarted
    | TurnBegun
)

MEANINGS_OF_WORK = frozenset(get_args(WorkMeaning))


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
