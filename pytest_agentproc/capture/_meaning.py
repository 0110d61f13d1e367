"""Owns what an event of a log can mean: steps, what the caller did, nothing of its own. Knows no dialect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Later", "Meaning", "Reader", "Told", "block", "inner", "words_of"]


@dataclass(frozen=True, slots=True)
class Told:
    """A step of a draft: its name and its value, as the language has them."""

    name: str
    value: Any


@dataclass(frozen=True, slots=True)
class Meaning:
    """What an event means.

    Args:
        kind: `steps`, `prompt` or `cancel` (the caller's), `folded` (other events say the same), `other` (an event as
            it stands), `foreign` (no event of the dialect).
        steps: of `steps`: what the agent does.
        text: of a prompt its words.
        is_sure: whether the steps need no proof, because what they say hangs on the conversation.
        ends: how it ends a turn: `completed`, `failed`, `cancelled`; "" if it does not.
        final: of a good end the final text, where the event itself has it.
    """

    kind: str
    steps: tuple[Told, ...] = ()
    text: str = ""
    is_sure: bool = False
    ends: str = ""
    final: str | None = None


class Later:
    """The events after one of a log, which a reader asks for what they have; each kind of question reads the log once.

    Args:
        events: the whole log's.
    """

    def __init__(self, events: Sequence[Any]) -> None:
        self._events = events
        self._last: dict[Callable[[Any], Any], dict[Any, int]] = {}
        self.start = 0
        """The number of the first later event."""

    def have(self, trait: Callable[[Any], Any], value: str | None = None) -> bool:
        """Say whether a later event has a trait, or a value of it, which can be compared by its hash."""
        if trait not in self._last:
            self._last[trait] = {trait(event): number for number, event in enumerate(self._events)}
        return self._last[trait].get(True if value is None else value, -1) >= self.start


Reader = Callable[[Any, Later, str], Meaning]
"""What reads an event of a dialect, with the events behind it and the mode."""


def inner(event: Any, *keys: str) -> Any:
    """Give a value deep in an event; None where it has none."""
    for key in keys:
        event = event.get(key) if isinstance(event, dict) else None
    return event


def words_of(content: Any) -> str:
    """Give the text of a message's content: a text, or a list of blocks with some."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else [content]
    return "".join(
        text for one in blocks if isinstance(text := inner(one, "text") or inner(one, "content", "text"), str)
    )


def block(value: Any, *keys: str) -> list[Any]:
    """Give a list of mappings deep in an event; empty where it has none."""
    found = inner(value, *keys)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
