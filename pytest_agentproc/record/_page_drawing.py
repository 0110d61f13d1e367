"""Owns what stands between the lanes: life-lines, bars, arrows, marks, one strip for each row. Knows no words.

A strip is as high as its row, whatever that is: lines run from edge to edge, so that strips below each other join.
Its class names are those of the style: `l` life-line, `t` timer, `a` arrow, `d` mark; `b` begins and `e` ends here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_agentproc.record._page_lanes import CALLER, SUPERVISOR, Slots, timer_of
from pytest_agentproc.record._page_words import clipped, safe

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_agentproc.record._frames import Pair
    from pytest_agentproc.record._page_lanes import Lane, Lanes

__all__ = ["Drawing"]

_NEAR = 5
"""So many pixels before a life-line an arrow ends."""

_NAME_CHARS = 48
_SENT = {"o": "out", "e": "err", "i": "in"}


class Drawing:
    """Draws a run from its beginning to its end, row by row.

    Args:
        lanes: who has a life-line, and where.
    """

    def __init__(self, lanes: Lanes) -> None:
        self._lanes = lanes
        self._slots = Slots()
        self._living = [name for name in (CALLER, SUPERVISOR) if name in lanes.homes]
        self._zombies: set[int] = set()

    def strip(self, pair: Pair | None = None) -> str:
        """Draw the next row as HTML.

        Args:
            pair: what happened; None: a row in which time passes and nothing happens.
        """
        begun = ended = ""
        names = {place: timer for timer, place in self._slots.taken.items()}
        bars = {place: ["t"] for place in names}
        if pair is not None:
            begun, ended = self._note(pair.cell.subject[1], pair.cell.data)
            self._move_timer(pair.cell.data, bars)
        names.update((place, timer) for timer, place in self._slots.taken.items())
        drawn = [*self._lines(begun, ended)]
        for place, kinds in sorted(bars.items()):
            drawn += [_at(kind, self._lanes.slot(place), " ".join(filter(None, names[place]))) for kind in kinds]
        if pair is not None:
            drawn += self._marks(pair)
        if ended:
            self._living.remove(ended)
        return "".join(drawn)

    def _note(self, code: str, data: Mapping[str, Any]) -> tuple[str, str]:
        """Name who begins and who ends here, if anybody does."""
        name = str(data["process"])
        if name not in self._lanes.homes or "by" in data:
            return "", ""
        is_there = name in self._living
        if code == "x" or "gone" in data:
            return "", name if is_there else ""
        if is_there or "leaked" in data:
            return "", ""
        self._living.append(name)
        return name, ""

    def _move_timer(self, data: Mapping[str, Any], bars: dict[int, list[str]]) -> None:
        if "timer" not in data:
            return
        timer = timer_of(data)
        if "armed" in data:
            is_again = timer in self._slots.taken
            bars[self._slots.arm(timer)] = ["t e", "t b"] if is_again else ["t b"]
        elif (place := self._slots.free(timer)) is not None:
            bars[place] = ["t e fired", "d fired"] if "fired" in data else ["t e"]

    def _lines(self, begun: str, ended: str) -> Iterator[str]:
        """Draw the life-lines; several processes may share one."""
        homes = self._lanes.homes
        before = {homes[name].x for name in self._living if name != begun}
        after = {homes[name].x for name in self._living if name != ended}
        for lane in self._lanes.all:
            kind = f"l {lane.left}".rstrip()
            if lane.x in before and lane.x in after:
                yield _at(kind, lane.x)
            elif lane.x in before:
                yield _at(f"{kind} e", lane.x)
                if lane.left == "zombie":
                    self._zombies.add(lane.x)
                    yield _at("l dead b", lane.x)
            elif lane.x in after:
                yield _at(f"{kind} b", lane.x)
            elif lane.x in self._zombies:
                yield _at("l dead", lane.x)

    def _marks(self, pair: Pair) -> list[str]:
        """Draw what the row is about: an arrow from one to the other, or a mark where it happened."""
        code, data = pair.cell.subject[1], pair.cell.data
        if "timer" in data or "fault" in data:
            return []
        host, is_seen = self._lanes.homes[SUPERVISOR], "by" in data
        home = self._lanes.homes.get(self._now(data) if is_seen else str(data["process"]), host)
        if code in _SENT:
            return [_sent(code, data, home, host)]
        if not is_seen and code in "px":
            return self._of_life(pair, home, host)
        if code == "s":
            return [_arrow("sig", host, self._target(data)) if is_seen else _at("d sig", home.x)]
        caller = self._lanes.homes.get(CALLER)
        if caller is not None and ("event" in data or "does" in data):
            return [_arrow("say", *((host, caller) if "event" in data else (caller, host)))]
        return [_at(f"d {_kind(data)}".rstrip(), host.x if is_seen else home.x)]

    def _of_life(self, pair: Pair, home: Lane, host: Lane) -> list[str]:
        """Draw a birth, from whom it came, or an end, to whom it was news."""
        data = pair.cell.data
        if "seen" in data:
            above = self._lanes.homes.get(str(data.get("parent")), host)
            return [*([_arrow("born", above, home)] if above.x != home.x else []), _at("d born", home.x)]
        return [*([_arrow("faint", home, host)] if pair.seen is not None else []), _at("d over", home.x)]

    def _now(self, data: Mapping[str, Any]) -> str:
        """Name whom a supervisor has to do with: of an agent that was replaced, the one that lives."""
        name = str(data["process"])
        heirs = [one for one in self._living if one.partition(" ")[0] == name]
        return name if name in self._living or not heirs else heirs[-1]

    def _target(self, data: Mapping[str, Any]) -> Lane:
        """Say how far the arrow of a signal goes: to its process, across a tree, or to the first of a group.

        Who else is in a group is not in the record.
        """
        homes, session = self._lanes.homes, str(data.get("session", ""))
        if (name := self._now(data)) in homes:
            return homes[name]
        family = [
            homes[name]
            for name in self._living
            if name in self._lanes.roots and (not session or self._lanes.roots[name].partition(" ")[0] == session)
        ]
        others = [homes[name] for name in self._lanes.roots]
        farthest = max if data["process"] == "tree" else min
        return farthest(family or others or [homes[SUPERVISOR]], key=lambda lane: lane.x)


def _sent(code: str, data: Mapping[str, Any], home: Lane, host: Lane) -> str:
    """Draw bytes as an arrow where they are written, and as a mark where they are read."""
    is_seen = "by" in data
    if ("size" if is_seen else "bytes") in data and (code == "i") == is_seen:
        return _arrow(_SENT[code], *((host, home) if is_seen else (home, host)))
    if code == "i" and is_seen and "closed" in data:
        return _arrow("faint", host, home)
    return _at("d", host.x if is_seen else home.x)


def _kind(data: Mapping[str, Any]) -> str:
    for key in ("leaked", "outcome", "returned", "stray"):
        if key in data:
            return key
    return "step" if "step" in data else ""


def _at(kind: str, x: int, name: str = "") -> str:
    title = f' title="{safe(clipped(name, _NAME_CHARS))}"' if name else ""
    return f'<i class="{kind}" style="left:{x}px"{title}></i>'


def _arrow(kind: str, start: Lane, end: Lane) -> str:
    if start.x == end.x:
        return _at("d", start.x)
    way = "r" if start.x < end.x else "w"
    left, right = sorted((start.x, end.x))
    first, last = (left, right - _NEAR) if way == "r" else (left + _NEAR, right)
    return f'<i class="a {way} {kind}" style="left:{first}px;width:{last - first}px"></i>'
