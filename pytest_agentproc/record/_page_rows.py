"""The rows of the page's diagram and what stands between the lanes: life-lines, bars, arrows, marks.

A strip is as high as its row, whatever that is: lines run from edge to edge, so that strips below each other join.
Its class names are those of the style: `l` life-line, `t` timer, `a` arrow, `d` mark; `b` begins and `e` ends here.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_agentproc.record._cells import duration, instant
from pytest_agentproc.record._frames import Again, Frame, Pair, Silence
from pytest_agentproc.record._page_lanes import CALLER, SUPERVISOR, Slots, timer_of
from pytest_agentproc.record._page_marks import Expected, note_of, with_expected
from pytest_agentproc.record._payload import Payload

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

    from pytest_agentproc.record._page_lanes import Lane, Lanes
    from pytest_agentproc.record._page_marks import Mark


_KEPT = "\n\t"


class Room:
    """The size that a page may still spend on text that is not needed to follow it.

    Args:
        size: a number of bytes of HTML.
    """

    __slots__ = ("left",)

    def __init__(self, size: int) -> None:
        self.left = size

    def takes(self, html: str) -> bool:
        """Spend the size of a text, if there is room for it; say whether there was."""
        size = len(html.encode())
        if size > self.left:
            return False
        self.left -= size
        return True


def safe(text: object) -> str:
    """Make HTML of a text: markup is shown, and so is what cannot be printed or would turn the line around."""
    words = str(text)
    if not words.isprintable():
        words = "".join(letter if letter.isprintable() or letter in _KEPT else _named(letter) for letter in words)
    return escape(words)


def clipped(text: str, width: int) -> str:
    """Cut a text to a width, with an ellipsis where something is missing."""
    return text if len(text) <= width else text[: width - 1] + "\N{HORIZONTAL ELLIPSIS}"


def payload_text(payload: bytes | Payload, width: int) -> str:
    """Give the beginning of what was written or read, and how much is missing, as text."""
    known = payload.head if isinstance(payload, Payload) else payload
    # Four bytes are at most one character, so this many are enough for the width.
    start = known[: 4 * width].decode(errors="backslashreplace")[:width]
    missing = len(payload) - len(start.encode(errors="replace"))
    return start if missing <= 0 else f"{start}\n\N{HORIZONTAL ELLIPSIS} {len(payload)} bytes in all"


def _named(character: str) -> str:
    return character.encode("unicode_escape").decode() if character <= "\uffff" else "\N{REPLACEMENT CHARACTER}"


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
        """Name the processes that begin and end here, if any."""
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
            return [_draw_bytes(code, data, home, host)]
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
        heirs = [row for row in self._living if row.partition(" ")[0] == name]
        return name if name in self._living or not heirs else heirs[-1]

    def _target(self, data: Mapping[str, Any]) -> Lane:
        """Say how far the arrow of a signal goes: to its process, across a tree, or to the first of a group.

        The record does not list the other members of a group.
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


def _draw_bytes(code: str, data: Mapping[str, Any], home: Lane, host: Lane) -> str:
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


_MAX_ROWS = 300
_WORDS_CHARS = 120
_MORE_CHARS = 2000
_PREVIEW_CHARS = 40
_ROW_NAME_CHARS = 32
_QUIET = frozenset({"eof", "size", "closed", "off", "gone", "step"})


class Row(NamedTuple):
    """One row.

    Args:
        number: its number on the page.
        strip: the drawing between its lanes, as HTML.
        at: its instant, if it is the first of one.
        pair: the events.
        band: the words across the row, where it shows no event.
        note: the words for a failed check that is about this row.
    """

    number: int
    strip: str
    at: int | None = None
    pair: Pair | None = None
    band: str = ""
    note: str = ""


def drawn(
    shown: Iterable[Frame | Silence | Again], drawing: Drawing, clock: str, marks: Sequence[Mark] = ()
) -> Iterator[Row]:
    """Draw what is shown, in its order.

    Args:
        shown: the groups of the record.
        drawing: draws the strips; it has drawn none yet.
        clock: whose time passes: virtual or real.
        marks: what failed checks are about; what they expected is drawn at its instant.
    """
    number = 0
    for item in with_expected(shown, marks):
        number += 1
        if isinstance(item, Expected):
            yield Row(number, drawing.strip(), item.at, band=item.words, note="expected")
        elif isinstance(item, Silence):
            yield Row(number, drawing.strip(), band=f"~ {duration(item.length)} pass ({clock})")
        elif isinstance(item, Again):
            yield Row(
                number,
                drawing.strip(),
                band=f"\N{MULTIPLICATION SIGN} {item.times + 1}: {item.words}",
            )
        else:
            for place, pair in enumerate(item.pairs):
                note = note_of(marks, item.at, pair)
                yield Row(number + place, drawing.strip(pair), None if place else item.at, pair, note=note)
            number += len(item.pairs) - 1


def shortened(rows: Sequence[Row]) -> list[Row]:
    """Leave out the middle of a very long run, and say how much that is."""
    if len(rows) <= _MAX_ROWS:
        return list(rows)
    half = _MAX_ROWS // 2
    gap = rows[half]
    return [*rows[:half], Row(gap.number, "", band=f"{len(rows) - 2 * half} rows are left out here"), *rows[-half:]]


def table(rows: Sequence[Row], lanes: Lanes, lines: Container[int], room: Room) -> str:
    """Write the diagram as HTML.

    Args:
        rows: what is shown.
        lanes: who has a life-line.
        lines: those of the source that are on the page.
        room: is spent on bytes and words that a row has no place for.
    """
    width = lanes.width
    is_tall = any(6.4 * len(lane.name) > lane.width for lane in lanes.all)  # pixels that a letter of the heading takes
    names = "".join(
        f'<span class="h{" left" if lane.left else ""}" style="left:{lane.x - lane.width // 2}px;width:{lane.width}px"'
        f' title="{safe(clipped(lane.name, _WORDS_CHARS))}">'
        f"<span>{safe(clipped(lane.name, _ROW_NAME_CHARS))}</span></span>"
        for lane in lanes.all
    )
    head = (
        '<thead><tr><th scope="col" class="time">time</th>'
        f'<th scope="col" class="g{" tall" if is_tall else ""}"><div style="width:{width}px">{names}</div></th>'
        '<th scope="col">what happened</th><th scope="col" class="n">line</th></tr></thead>'
    )
    body = "\n".join(_row(row, width, lines, room) for row in rows)
    return f'<table class="run">{head}\n<tbody>\n{body}\n</tbody></table>'


def _row(row: Row, width: int, lines: Container[int], room: Room) -> str:
    time = "" if row.at is None else instant(row.at)
    strip = f'<td class="g" aria-hidden="true"><div style="width:{width}px">{row.strip}</div></td>'
    begin = f'<tr id="r{row.number}" tabindex="-1" class="{_class(row)}">'
    begin += f'<th scope="row" class="time">{time}</th>{strip}'
    if row.pair is None:
        return f'{begin}<td class="band" colspan="2">{safe(row.band)}</td></tr>'
    line = row.pair.cell.line
    link = f'<a href="#L{line}">line {line}</a>' if line in lines else f"line {line}" if line else ""
    note = f'<span class="note bad">{safe(row.note)}</span>' if row.note else ""
    return f'{begin}<td class="words">{_words(row.pair, room)}{note}</td><td class="n">{link}</td></tr>'


def _class(row: Row) -> str:
    if row.pair is None:
        return "expected" if row.note else "pass"
    kind = _row_kind(row.pair.cell.subject[1], row.pair.cell.data)
    return " ".join(filter(None, ("" if row.at is None else "first", kind, "wrong" if row.note else "")))


def _row_kind(code: str, data: Mapping[str, Any]) -> str:
    """Say what weight a row has: bad, strong, quiet, or none of these."""
    if "leaked" in data or "stray" in data or "fault" in data:
        return "bad"
    is_end = "outcome" in data or "returned" in data or data.get("event") == "outcome"
    if is_end or "fired" in data or code == "s" or (code == "x" and "by" not in data):
        return "strong"
    return "quiet" if not _QUIET.isdisjoint(data) else ""


def _words(pair: Pair, room: Room) -> str:
    cell = pair.cell
    side = cell.side if cell.side in ("supervisor", "agent") else "everybody"
    whose = (
        f"<b>{safe(clipped(cell.whose, _ROW_NAME_CHARS))}</b> "
        if cell.whose
        else f'<span class="aside">{side}: </span>'
    )
    words = cell.words.replace(" ==> ", " \N{RIGHTWARDS ARROW} ")
    payload = cell.data.get("bytes")
    if payload is not None:
        whole = payload_text(payload, _MORE_CHARS)
        start = clipped(whole.replace("\n", "\N{DOWNWARDS ARROW WITH CORNER LEFTWARDS}"), _PREVIEW_CHARS)
        lead, *_ = words.partition(' "')
        shown = f"{whose}{safe(lead)} <code>{safe(start)}</code>"
        return _with_more(shown, whole, room) if len(whole) > _PREVIEW_CHARS else shown
    if len(words) <= _WORDS_CHARS:
        return f"{whose}{safe(words)}"
    return _with_more(f"{whose}{safe(clipped(words, _WORDS_CHARS))}", clipped(words, _MORE_CHARS), room)


def _with_more(shown: str, whole: str, room: Room) -> str:
    more = safe(whole)
    return f"<details><summary>{shown}</summary><pre>{more}</pre></details>" if room.takes(more) else shown
