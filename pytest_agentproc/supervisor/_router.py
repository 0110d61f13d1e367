"""To which turn a line belongs, and what viewers of a session see (P4, F6). Pure; knows no dialect.

    nothing runs --a turn begins--> turns run, or a background turn --it ends--> nothing runs

A line that names its turns is believed (P5). One that names none belongs to what runs. A turn that begins without a
name is a background turn (B1). If the agent has never named any, the turn is the oldest delivered prompt that has not
begun.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from pytest_agentproc.supervisor.dialects import BACKGROUND_TURN_MARK, Finished, PromptNamed, TurnBegun

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_agentproc.supervisor._events import SessionEvent, TurnResult
    from pytest_agentproc.supervisor.dialects import Question, TurnProgress


_ONLY_THE_BACKGROUND_TURN = (BACKGROUND_TURN_MARK,)


class TurnRouter:
    """Follow who runs in one agent process.

    `running` are the turns that run now: more than one where an agent folds prompts into one turn. `retracted` are the
    turns whose words the last line showed to be a background turn's.

    Args:
        is_marked: whether whatever begins a turn of ours names it.
    """

    def __init__(self, *, is_marked: bool) -> None:
        self.running: tuple[int, ...] = ()
        self.retracted: tuple[int, ...] = ()
        self.waiting: list[int] = []
        self.is_marked = is_marked

    def note_delivered(self, number: int, *, begins: bool) -> None:
        """Take note of a prompt that went out; `begins` says that its turn begins with that."""
        self.waiting.append(number)
        if begins:
            self.find_turns(TurnBegun((number,)))

    def forget_unstarted_turn(self, number: int) -> None:
        """Forget a turn that will not run."""
        if number in self.waiting:
            self.waiting.remove(number)
        self.running = tuple(other for other in self.running if other != number)

    def find_turns(self, meaning: TurnBegun | TurnProgress | Finished | Question | PromptNamed) -> tuple[int, ...]:
        """Say which turns an event belongs to; it may be none."""
        marks = meaning.marks
        self.retracted = ()
        self.is_marked = self.is_marked or (bool(marks) and marks != _ONLY_THE_BACKGROUND_TURN)
        if isinstance(meaning, PromptNamed):
            return ()
        if isinstance(meaning, TurnBegun):
            return self._begin_marked_turns(marks)
        if isinstance(meaning, Finished):
            return self._end_turns(marks)
        if marks and marks != self.running:
            self._begin_marked_turns(marks)
        return marks or self.running

    def _begin_marked_turns(self, marks: tuple[int, ...]) -> tuple[int, ...]:
        if not marks:
            return self._begin_unnamed_turn()
        if marks == _ONLY_THE_BACKGROUND_TURN:
            self.running = _ONLY_THE_BACKGROUND_TURN
            return _ONLY_THE_BACKGROUND_TURN
        new = tuple(mark for mark in marks if mark in self.waiting)
        if not new:
            return tuple(mark for mark in marks if mark in self.running)
        self.waiting = [number for number in self.waiting if number not in new]
        self.running = new if self.running == _ONLY_THE_BACKGROUND_TURN else self.running + new
        return new

    def _begin_unnamed_turn(self) -> tuple[int, ...]:
        if not self.running:
            if self.is_marked or not self.waiting:
                self.running = _ONLY_THE_BACKGROUND_TURN
            else:
                self.running = (self.waiting.pop(0),)
        return self.running

    def _end_turns(self, marks: tuple[int, ...]) -> tuple[int, ...]:
        if marks == _ONLY_THE_BACKGROUND_TURN:
            return self._end_background_turn()
        if marks:
            if any(mark in self.waiting for mark in marks) or any(mark in self.running for mark in marks):
                self.waiting = [number for number in self.waiting if number not in marks]
                kept = () if self.running == _ONLY_THE_BACKGROUND_TURN else self.running
                self.running = tuple(number for number in kept if number not in marks)
            return marks
        who, self.running = self.running, ()
        if not who and not self.is_marked and self.waiting:
            return (self.waiting.pop(0),)
        return who

    def _end_background_turn(self) -> tuple[int, ...]:
        """End a background turn; what was taken for a prompt's turn till now has yet to begin."""
        if self.running not in ((), _ONLY_THE_BACKGROUND_TURN):
            self.retracted = self.running
            self.waiting = [*self.running, *self.waiting]
        self.running = ()
        return _ONLY_THE_BACKGROUND_TURN


MAX_KEPT_EVENT_CHARS = 16 * 1024**2
"""So many characters are kept of what a session told, and of its background turns' results; then the oldest go."""

_CHARS_COUNTED_PER_EVENT = 200
"""So many characters an event counts beside its words."""


class Transcript:
    """Keep the events of one session, and let viewers read them, each from its own place.

    `events` are the kept events, `total` is how many there were.
    """

    def __init__(self) -> None:
        self.events: deque[SessionEvent] = deque()
        self.total = 0
        self._size = 0

    def add(self, event: SessionEvent) -> None:
        """Keep one more; of all but the last the oldest go when there is too much."""
        self.events.append(event)
        self.total += 1
        self._size += _measure_event(event)
        while self._size > MAX_KEPT_EVENT_CHARS and len(self.events) > 1:
            self._size -= _measure_event(self.events.popleft())

    def find_first_place(self) -> int:
        """Give the place at which a viewer begins that attaches now: the beginning (P4)."""
        return 0

    def read_event(self, place: int) -> tuple[SessionEvent, int] | None:
        """Give the event at a place, or the oldest kept event after it, and the next place; None: not yet there."""
        if place >= self.total:
            return None
        gone = self.total - len(self.events)
        place = max(place, gone)
        return self.events[place - gone], place + 1


def _measure_event(event: SessionEvent) -> int:
    size = _CHARS_COUNTED_PER_EVENT + len(event.text)
    if event.result is not None:
        size += count_result_characters(event.result)
    if event.question is not None:
        size += _measure_repr(event.question.detail)
    if event.hook is not None:
        size += _measure_repr(event.hook.detail)
    return size


def count_result_characters(result: TurnResult) -> int:
    """Say how many characters a turn's result counts."""
    return (
        _CHARS_COUNTED_PER_EVENT
        + len(result.text or "")
        + len(result.transcript)
        + len(result.error)
        + _measure_repr(result.usage)
    )


def _measure_repr(value: Mapping[str, object] | None) -> int:
    try:
        return len(repr(value))
    except RecursionError:
        return MAX_KEPT_EVENT_CHARS
