"""Owns the joining of one instant's events while they come, for a flood; hides nothing from those who join again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_agentproc.record._event import Event, new_event
from pytest_agentproc.record._payload import Gathered, limit_of

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Joiner"]

_STREAMS = frozenset("oei")


class Joiner:
    """Joins the events of one instant as the renderers would, so that they need not be held until then.

    A step that begins parts what comes after it from what came before, if that names no line: the place of a chunk
    among the steps may be all that tells who wrote it.

    Args:
        events: where they go.
    """

    __slots__ = ("_armed", "_events", "_owns", "_sizes", "_streams", "_wholes")

    def __init__(self, events: list[Event]) -> None:
        self._events = events
        self._armed: dict[tuple[Any, ...], int | None] = {}
        self._sizes: dict[tuple[Any, ...], list[int]] = {}
        self._streams: dict[tuple[Any, ...], Gathered] = {}
        self._wholes: dict[tuple[Any, ...], Gathered] = {}
        self._owns: list[Gathered] = []

    def add(self, event: Event) -> None:
        """Append an event, or join it with one of those before it."""
        _, code, data = event
        if code in _STREAMS:
            if "bytes" in data:
                if self._gather(code, data):
                    return
            elif "size" in data and self._sum_up(code, data):
                return
        elif code == "t":
            timer, due = (data.get("session"), data["process"], data["timer"]), data.get("armed")
            if due is not None and self._armed.get(timer) == due:
                return
            self._armed[timer] = due
        elif "step" in data:
            self._streams = {key: own for key, own in self._streams.items() if key[-1]}
        self._events.append(event)

    def settle(self) -> None:
        """Write what was joined so far into its events."""
        for own in self._owns:
            self._amend(own.place, "bytes", own.value())
        for place, size in self._sizes.values():
            self._amend(place, "size", size)

    def _gather(self, code: str, data: Mapping[str, Any]) -> bool:
        """Take bytes in; say whether they need no event of their own."""
        about = data["process"], code, data.get("by")
        key = *about, data.get("line")
        own = self._streams.get(key)
        is_joined = own is not None
        if own is None:
            own = self._streams[key] = Gathered(limit_of(code), len(self._events))
            self._owns.append(own)
            whole = self._wholes.setdefault(about, own)
            if whole is not own:
                if whole.place >= 0:
                    whole.whole = self._wholes[about] = whole.fork()
                own.whole = self._wholes[about]
        own.add(data["bytes"])
        if own.whole is not None:
            own.whole.add(data["bytes"])
        return is_joined

    def _sum_up(self, code: str, data: Mapping[str, Any]) -> bool:
        key = data["process"], code, data.get("by"), data.get("line")
        if key in self._sizes:
            self._sizes[key][1] += data["size"]
            return True
        self._sizes[key] = [len(self._events), data["size"]]
        return False

    def _amend(self, place: int, key: str, value: object) -> None:
        at, code, data = self._events[place]
        self._events[place] = new_event((at, code, {**data, key: value}))
