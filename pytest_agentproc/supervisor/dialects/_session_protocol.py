"""The part of a dialect that a session needs: lines to meanings, intents to bytes. Knows no dialect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pytest_agentproc.supervisor.dialects._meanings import Hook, Meaning, Question
    from pytest_agentproc.vocabulary import ContinuedSession


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

    def decode(self, line: bytes) -> list[Meaning]:
        """Say what a line means."""


class SessionDefaults:
    """The part of a conversation that is the same in most dialects.

    Args:
        setting: what it begins with.
    """

    def __init__(self, setting: Setting) -> None:
        super().__init__()
        self.setting = setting

    def encode_hook_answer(self, hook: Hook, refusal: str = "") -> bytes:
        """Answer nothing: most dialects have no hooks."""
        return b""

    def encode_switch(self, what: str, name: str) -> bytes:
        """Give nothing: most dialects switch neither."""
        return b""
