"""The part of a dialect that a session needs: lines to meanings, intents to bytes. Knows no dialect.

A turn has a number, from 1; `BACKGROUND_TURN_MARK` stands for a turn that the agent began by itself. `marks` are the
turns that a line names itself, as far as the dialect marks anything; whose turn it is where nothing is said, the
router decides.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from pytest_agentproc.supervisor.dialects._base import (
    Asked,
    Compaction,
    Failure,
    Nested,
    Noise,
    Other,
    TaskBegun,
    TaskOver,
    ToolEnded,
    ToolStarted,
)
from pytest_agentproc.supervisor.dialects._json import parse_objects

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_agentproc.vocabulary import ContinuedSession


BACKGROUND_TURN_MARK = 0


@dataclass(frozen=True, slots=True)
class Setting:
    """The bytes that begin a conversation.

    Args:
        cwd: where the agent works, absolute.
        key: what makes this conversation's own marks unlike any other's.
        hooks: the hooks to announce: the name of a callback, and the event that it hears of.
        session: the agent's own name for the conversation, if an earlier agent began it; "" if none did.
        continues: the session to open in place of a new one, in a dialect whose handshake names one.
    """

    cwd: str = "/"
    key: str = ""
    hooks: tuple[tuple[str, str], ...] = ()
    session: str = ""
    continues: ContinuedSession | None = None


@dataclass(frozen=True, slots=True)
class HandshakeDone:
    """The handshake is done."""

    session_id: str | None = None


@dataclass(frozen=True, slots=True)
class HistoryReplayed:
    """Words of a session's past, which the agent repeats while it loads the session; a prompt or its own."""

    text: str
    is_prompt: bool = False


@dataclass(frozen=True, slots=True)
class HandshakeRefused:
    """The agent refuses the handshake, in its own words."""

    error: str


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
class PromptNamed:
    """The agent names a prompt and says nothing more of it: it is one that marks its turns."""

    marks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TurnBegun:
    """A turn begins."""

    marks: tuple[int, ...] = ()


@dataclass(slots=True)
class TurnProgress:
    """Progress within a turn: a `message` that is whole, a `delta` of one, or news of a `tool`.

    Args:
        kind: which.
        text: the words, or what the tool is called.
        marks: the turns that the line names.
        stop_reason: why the message ended.
        model: who says it.
        usage: what was used.
        id: the message's name, where it comes block by block: all blocks of one name are one message.
        is_end: whether it ends a message that comes in pieces only.
    """

    kind: str
    text: str = ""
    marks: tuple[int, ...] = ()
    stop_reason: str | None = None
    model: str | None = None
    usage: dict[str, Any] | None = None
    id: str = ""
    is_end: bool = False


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """A turn is over.

    Args:
        ok: whether its result is good.
        marks: the turns that the line names.
        text: the final text, where the result holds it.
        stop_reason: as the agent says it.
        error: its own words about a bad result.
        model: the model that answered, where the result says so.
        usage: what was used, where the result says so.
    """

    ok: bool
    marks: tuple[int, ...] = ()
    text: str | None = None
    stop_reason: str | None = None
    error: str = ""
    model: str | None = None
    usage: dict[str, Any] | None = None


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


@dataclass(frozen=True, slots=True)
class QuestionWithdrawn:
    """The agent wants no answer to a question any more."""

    id: str


TurnMeaning = (
    PromptNamed | TurnBegun | TurnProgress | TurnEnded | PromptDeclined | CancelAnswered | Question | QuestionWithdrawn
)
"""The meanings that belong to a turn."""

WorkMeaning = Asked | Compaction | Nested | ToolEnded | ToolStarted
"""The agent's work with tools and with its context, in the words of a run: it belongs to the turn that runs."""

TaskMeaning = TaskBegun | TaskOver
"""The meanings that belong to work beside the turns."""

SessionMeaning = (
    TurnMeaning
    | WorkMeaning
    | TaskMeaning
    | Hook
    | Failure
    | HistoryReplayed
    | HandshakeDone
    | HandshakeRefused
    | ImmediateReply
    | MalformedLine
    | SwitchRefused
    | Noise
    | Other
)


class SessionProtocol(Protocol):
    """One agent process's side of a conversation, from its start to its exit.

    `is_marked`: every beginning of a turn names it. `begins_at_once`: a turn begins when its prompt is delivered,
    without a word. `answers_cancel`: the agent acknowledges a cancel by an answer and the turn's end, not by the end
    alone.
    """

    is_marked: bool
    begins_at_once: bool
    answers_cancel: bool

    def encode_greeting(self) -> bytes:
        """Give what begins the handshake."""

    def encode_prompt(self, number: int, text: str) -> bytes:
        """Give the prompt of a turn."""

    def encode_cancel(self, number: int) -> bytes:
        """Give what cancels a turn."""

    def encode_switch(self, what: str, name: str) -> bytes:
        """Give what switches the agent to a mode or a model; called only if the dialect has the key, as `set_mode`."""

    def encode_answer(self, question: Question, *, allowed: bool | None) -> bytes:
        """Give the answer to a question; None: its turn was cancelled."""

    def encode_hook_answer(self, hook: Hook, refusal: str = "") -> bytes:
        """Give the answer to a hook; a refusal is the reason for which what is about to run may not."""

    def decode(self, line: bytes) -> list[SessionMeaning]:
        """Say what a line means."""


class JsonSessionProtocol:
    """The part of a conversation in JSON lines that is the same in every dialect: a reader for each kind of object.

    Args:
        setting: what it begins with.
    """

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.readers: dict[str, Callable[[dict[str, Any]], list[SessionMeaning]]] = {}

    def find_kind(self, value: dict[str, Any]) -> object:
        """Say what kind of object this is."""
        return value.get("type")

    def encode_hook_answer(self, hook: Hook, refusal: str = "") -> bytes:
        """Answer nothing: most dialects have no hooks."""
        return b""

    def encode_switch(self, what: str, name: str) -> bytes:
        """Give nothing: most dialects switch neither."""
        return b""

    def decode(self, line: bytes) -> list[SessionMeaning]:
        """Say what a line means."""
        found = parse_objects(line)
        if found is None:
            return [Noise(line)]
        try:
            if len(found) == 1:
                return self._read_object(found[0], line)
            return [meaning for value in found for meaning in self._read_object(value, line)]
        except RecursionError:  # nested so deeply that it can be read, but not be written
            return [Noise(line)]

    def _read_object(self, value: dict[str, Any], line: bytes) -> list[SessionMeaning]:
        kind = self.find_kind(value)
        if not isinstance(kind, str):
            return [Noise(line)]
        reader = self.readers.get(kind)
        return [Other(kind)] if reader is None else reader(value)
