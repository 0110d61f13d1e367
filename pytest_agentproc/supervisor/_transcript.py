"""What viewers of a session see: every event in order, as long as that is no endless flood (P4, F6). Pure."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_agentproc.supervisor._intents import SessionEvent
    from pytest_agentproc.supervisor._turn import TurnResult

__all__ = ["LONGEST", "Transcript", "size_of_result"]

LONGEST = 16 * 1024**2
"""So many characters are kept of what a session told, and of its background turns' results; then the oldest go."""

_EVENT = 200
"""So many characters an event counts beside its words."""


class Transcript:
    """Keep the events of one session, and let viewers read them, each from its own place.

    `events` are those that are kept, `total` is how many there were.
    """

    def __init__(self) -> None:
        self.events: deque[SessionEvent] = deque()
        self.total = 0
        self._size = 0

    def add(self, event: SessionEvent) -> None:
        """Keep one more; of all but the last the oldest go when there is too much."""
        self.events.append(event)
        self.total += 1
        self._size += _size_of(event)
        while self._size > LONGEST and len(self.events) > 1:
            self._size -= _size_of(self.events.popleft())

    def begin(self) -> int:
        """Give the place at which a viewer begins that attaches now: the beginning (P4)."""
        return 0

    def read(self, place: int) -> tuple[SessionEvent, int] | None:
        """Give the event at a place, or the oldest that is kept behind it, and the next place; None: not yet there."""
        if place >= self.total:
            return None
        gone = self.total - len(self.events)
        place = max(place, gone)
        return self.events[place - gone], place + 1


def _size_of(event: SessionEvent) -> int:
    size = _EVENT + len(event.text)
    if event.result is not None:
        size += size_of_result(event.result)
    if event.question is not None:
        size += _length(event.question.detail)
    if event.hook is not None:
        size += _length(event.hook.detail)
    return size


def size_of_result(result: TurnResult) -> int:
    """Say how many characters a turn's result counts."""
    return _EVENT + len(result.text or "") + len(result.transcript) + len(result.error) + _length(result.usage)


def _length(value: Mapping[str, object] | None) -> int:
    try:
        return len(repr(value))
    except RecursionError:
        return LONGEST
