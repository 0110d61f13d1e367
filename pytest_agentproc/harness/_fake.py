"""One executable fake in the hands of its user: its command, its record, its end. Makes none itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_agentproc.clock import VirtualClock
    from pytest_agentproc.record import Record

__all__ = ["FakeAgent", "note_leaks"]


class FakeAgent:
    """An executable fake agent.

    Args:
        path: the executable, alone in a folder that can be a PATH.
        arguments: what a real supervisor would write after it.
        record: what the fake and its descendants do.
        clock: the virtual clock that it obeys; None: real time.
        token: what it shows to the clock.
    """

    def __init__(
        self, path: str, arguments: tuple[str, ...], record: Record, clock: VirtualClock | None, token: bytes
    ) -> None:
        self.path = self.launcher = path
        self.argv = [path, *arguments]
        self.name = Path(path).name
        self.folder = str(Path(path).parent)
        self.record = record
        self.token = token
        self._clock = clock

    def finish(self) -> Record:
        """End it and its descendants, and give the record, with a note for each that was left."""
        if self._clock is not None:
            self._clock.hub.settle()
            note_leaks(self.record, self._clock, self.token)
            self._clock.hub.roll.mute(self.token)
            for one in self._clock.hub.roll.in_order(self.token):
                if one.lives:
                    one.kill()
            self._clock.hub.settle()
        return self.record


def note_leaks(record: Record, clock: VirtualClock, token: bytes) -> None:
    """Record who is left of one fake once its supervisor has returned and everyone is inert."""
    for one in clock.hub.roll.in_order(token):
        is_own_child = len(one.path) == 1
        state = "alive" if one.lives else "zombie" if is_own_child and one.is_zombie() else None
        if state is not None:
            record.add(clock.instant(), "m", {"process": one.name, "leaked": state, "line": one.line})
