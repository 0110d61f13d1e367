"""The rows of the page's diagram and what stands between the lanes: life-lines, bars, arrows, marks.

A strip is as high as its row, whatever that is: lines run from edge to edge, so that strips below each other join.
Its class names are those of the style: `l` life-line, `t` timer, `a` arrow, `d` mark; `b` begins and `e` ends here.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, NamedTuple

from pytest_agentproc import events
from pytest_agentproc.events import Payload
from pytest_agentproc.record._cells import format_duration, format_instant
from pytest_agentproc.record._frames import EventWithSupervisorView, InstantFrame, RepeatedFrames, SilentInterval
from pytest_agentproc.record._page_lanes import CALLER, SUPERVISOR, TimerSlots, get_timer_name
from pytest_agentproc.record._page_marks import ExpectedInstant, find_failure_notes, insert_expected_instants

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence

    from pytest_agentproc.events import Event
    from pytest_agentproc.record._page_lanes import LifeLine, LifeLines
    from pytest_agentproc.record._page_marks import FailureMark


_UNESCAPED_CONTROL_CHARACTERS = "\n\t"


class SizeBudget:
    """The size that a page may still spend on text that is not needed to follow it.

    Args:
        size: a number of bytes of HTML.
    """

    __slots__ = ("left",)

    def __init__(self, size: int) -> None:
        self.left = size

    def take_bytes_if_left(self, html: str) -> bool:
        """Spend the size of a text, if there is room for it; say whether there was."""
        size = len(html.encode())
        if size > self.left:
            return False
        self.left -= size
        return True


def escape_html(text: object) -> str:
    """Make HTML of a text: markup is shown, and so is what cannot be printed or would turn the line around."""
    words = str(text)
    if not words.isprintable():
        words = "".join(
            letter if letter.isprintable() or letter in _UNESCAPED_CONTROL_CHARACTERS else _escape_character(letter)
            for letter in words
        )
    return escape(words)


def clip_text(text: str, width: int) -> str:
    """Cut a text to a width, with an ellipsis where something is missing."""
    return text if len(text) <= width else text[: width - 1] + "\N{HORIZONTAL ELLIPSIS}"


def format_payload(payload: bytes | Payload, width: int) -> str:
    """Give the beginning of what was written or read, and how much is missing, as text."""
    known = payload.head if isinstance(payload, Payload) else payload
    # Four bytes are at most one character, so this many are enough for the width.
    start = known[: 4 * width].decode(errors="backslashreplace")[:width]
    missing = len(payload) - len(start.encode(errors="replace"))
    return start if missing <= 0 else f"{start}\n\N{HORIZONTAL ELLIPSIS} {len(payload)} bytes in all"


def _escape_character(character: str) -> str:
    return character.encode("unicode_escape").decode() if character <= "\uffff" else "\N{REPLACEMENT CHARACTER}"


_ARROW_GAP_PX = 5
"""So many pixels before a life-line an arrow ends."""

_MAX_TOOLTIP_CHARS = 48
_ARROW_CLASS_BY_STREAM = {"stdout": "out", "stderr": "err"}


class DiagramDrawing:
    """Draws a run from its beginning to its end, row by row."""

    def __init__(self, lanes: LifeLines) -> None:
        self._lanes = lanes
        self._slots = TimerSlots()
        self._living = [name for name in (CALLER, SUPERVISOR) if name in lanes.homes]
        self._zombies: set[int] = set()

    def draw_row(self, pair: EventWithSupervisorView | None = None) -> str:
        """Draw the next row as HTML.

        Args:
            pair: what happened; None: a row in which time passes and nothing happens.
        """
        born_name = ended = ""
        names = {place: timer for timer, place in self._slots.taken.items()}
        bars = {place: ["t"] for place in names}
        if pair is not None:
            born_name, ended = self._update_living_processes(pair.cell.event)
            self._update_timer_slot(pair.cell.event, bars)
        names.update((place, timer) for timer, place in self._slots.taken.items())
        drawn = [*self._draw_life_lines(born_name, ended)]
        for place, kinds in sorted(bars.items()):
            drawn += [
                _draw_mark(kind, self._lanes.get_timer_slot_center(place), " ".join(filter(None, names[place])))
                for kind in kinds
            ]
        if pair is not None:
            drawn += self._draw_arrow_or_mark(pair)
        if ended:
            self._living.remove(ended)
        return "".join(drawn)

    def _update_living_processes(self, event: Event) -> tuple[str, str]:
        """Keep account of the living processes; name the one that begins and the one that ends here, if any."""
        name = event.process
        if name not in self._lanes.homes or isinstance(event, events.SupervisorView):
            return "", ""
        is_there = name in self._living
        if isinstance(event, events.ProcessEnded | events.ProcessGone):
            return "", name if is_there else ""
        if is_there or isinstance(event, events.Leaked):
            return "", ""
        self._living.append(name)
        return name, ""

    def _update_timer_slot(self, event: Event, bars: dict[int, list[str]]) -> None:
        if not isinstance(event, events.TimerEvent):
            return
        timer = get_timer_name(event)
        if isinstance(event, events.TimerArmed):
            is_again = timer in self._slots.taken
            bars[self._slots.assign_slot(timer)] = ["t e", "t b"] if is_again else ["t b"]
        elif (place := self._slots.release_slot(timer)) is not None:
            bars[place] = ["t e fired", "d fired"] if isinstance(event, events.TimerFired) else ["t e"]

    def _draw_life_lines(self, born_name: str, ended: str) -> Iterator[str]:
        """Draw the life-lines; several processes may share one."""
        homes = self._lanes.homes
        before = {homes[name].x for name in self._living if name != born_name}
        after = {homes[name].x for name in self._living if name != ended}
        for lane in self._lanes.all:
            kind = f"l {lane.left}".rstrip()
            if lane.x in before and lane.x in after:
                yield _draw_mark(kind, lane.x)
            elif lane.x in before:
                yield _draw_mark(f"{kind} e", lane.x)
                if lane.left == "zombie":
                    self._zombies.add(lane.x)
                    yield _draw_mark("l dead b", lane.x)
            elif lane.x in after:
                yield _draw_mark(f"{kind} b", lane.x)
            elif lane.x in self._zombies:
                yield _draw_mark("l dead", lane.x)

    def _draw_arrow_or_mark(self, pair: EventWithSupervisorView) -> list[str]:
        """Draw what the row is about: an arrow from one to the other, or a mark where it happened."""
        event = pair.cell.event
        if isinstance(event, events.TimerEvent | events.FaultFound):
            return []
        host, is_seen = self._lanes.homes[SUPERVISOR], isinstance(event, events.SupervisorView)
        home = self._lanes.homes.get(self._find_living_name(event) if is_seen else event.process, host)
        arrow = self._find_arrow(pair, home, host)
        mark = _MARKER_CLASSES.get(type(event), "")
        drawn = [] if arrow is None or (arrow[0] == "born" and arrow[1].x == home.x) else [_draw_arrow(*arrow)]
        return (
            drawn if arrow and not mark else [*drawn, _draw_mark(f"d {mark}".rstrip(), host.x if is_seen else home.x)]
        )

    def _find_arrow(
        self, pair: EventWithSupervisorView, home: LifeLine, host: LifeLine
    ) -> tuple[str, LifeLine, LifeLine] | None:
        """Say which arrow shows an event, and from whom to whom it goes."""
        event, caller = pair.cell.event, self._lanes.homes.get(CALLER)
        arrow: tuple[str, LifeLine, LifeLine] | None = None
        match event:
            case events.OutputWritten():
                arrow = _ARROW_CLASS_BY_STREAM[event.stream], home, host
            case events.InputWritten():
                arrow = "in", host, home
            case events.InputClosed():
                arrow = "faint", host, home
            case events.ProcessStarted():
                arrow = "born", self._lanes.homes.get(event.parent, host), home
            case events.ProcessEnded() | events.ProcessGone() if pair.seen is not None:
                arrow = "faint", home, host
            case events.SignalSent():
                arrow = "sig", host, self._find_signal_target(event)
            case events.SessionReport() if caller is not None:
                arrow = "say", host, caller
            case events.CallerActed() | events.CallerWaits() if caller is not None:
                arrow = "say", caller, host
        return arrow

    def _find_living_name(self, event: Event) -> str:
        """Name the process that an event of the supervisor is about: of a replaced agent, the living one."""
        name = event.process
        heirs = [row for row in self._living if row.partition(" ")[0] == name]
        return name if name in self._living or not heirs else heirs[-1]

    def _find_signal_target(self, event: events.SignalSent) -> LifeLine:
        """Say how far the arrow of a signal goes: to its process, across a tree, or to the first of a group.

        The record does not list the other members of a group.
        """
        homes, session = self._lanes.homes, event.session
        if (name := self._find_living_name(event)) in homes:
            return homes[name]
        family = [
            homes[name]
            for name in self._living
            if name in self._lanes.roots and (not session or self._lanes.roots[name].partition(" ")[0] == session)
        ]
        others = [homes[name] for name in self._lanes.roots]
        farthest = max if event.process == "tree" else min
        return farthest(family or others or [homes[SUPERVISOR]], key=lambda lane: lane.x)


_MARKER_CLASSES: dict[type[Event], str] = {
    events.ProcessStarted: "born",
    events.ProcessEnded: "over",
    events.ProcessGone: "over",
    events.SignalCaught: "sig",
    events.Leaked: "leaked",
    events.OutcomeReached: "outcome",
    events.Returned: "returned",
    events.SignalStrayed: "stray",
    events.StepBegun: "step",
}


def _draw_mark(kind: str, x: int, name: str = "") -> str:
    title = f' title="{escape_html(clip_text(name, _MAX_TOOLTIP_CHARS))}"' if name else ""
    return f'<i class="{kind}" style="left:{x}px"{title}></i>'


def _draw_arrow(kind: str, start: LifeLine, end: LifeLine) -> str:
    if start.x == end.x:
        return _draw_mark("d", start.x)
    way = "r" if start.x < end.x else "w"
    left, right = sorted((start.x, end.x))
    first, last = (left, right - _ARROW_GAP_PX) if way == "r" else (left + _ARROW_GAP_PX, right)
    return f'<i class="a {way} {kind}" style="left:{first}px;width:{last - first}px"></i>'


_MAX_DIAGRAM_ROWS = 300
_MAX_ROW_TEXT_CHARS = 120
_MAX_UNFOLDED_TEXT_CHARS = 2000
_MAX_PAYLOAD_PREVIEW_CHARS = 40
_MAX_ROW_NAME_CHARS = 32
_BAD_EVENTS = events.Leaked | events.SignalStrayed | events.FaultFound
_STRONG_EVENTS = (
    events.OutcomeReached
    | events.Returned
    | events.TurnEnded
    | events.TimerFired
    | events.SignalCaught
    | events.SignalSent
    | events.ProcessEnded
)
_QUIET_EVENTS = (
    events.InputEnded
    | events.OutputEndRead
    | events.StreamSize
    | events.StreamClosed
    | events.InputClosed
    | events.TimerStopped
    | events.ProcessGone
    | events.StepBegun
)


class DiagramRow(NamedTuple):
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
    pair: EventWithSupervisorView | None = None
    band: str = ""
    note: str = ""


def draw_rows(
    shown: Iterable[InstantFrame | SilentInterval | RepeatedFrames],
    drawing: DiagramDrawing,
    clock: str,
    marks: Sequence[FailureMark] = (),
) -> Iterator[DiagramRow]:
    """Draw what is shown, in its order.

    Args:
        shown: the groups of the record.
        drawing: draws the strips; it has drawn none yet.
        clock: whose time passes: virtual or real.
        marks: what failed checks are about; what they expected is drawn at its instant.
    """
    number = 0
    for item in insert_expected_instants(shown, marks):
        number += 1
        if isinstance(item, ExpectedInstant):
            yield DiagramRow(number, drawing.draw_row(), item.at, band=item.words, note="expected")
        elif isinstance(item, SilentInterval):
            yield DiagramRow(number, drawing.draw_row(), band=f"~ {format_duration(item.length)} pass ({clock})")
        elif isinstance(item, RepeatedFrames):
            yield DiagramRow(
                number,
                drawing.draw_row(),
                band=f"\N{MULTIPLICATION SIGN} {item.times + 1}: {item.words}",
            )
        else:
            for place, pair in enumerate(item.pairs):
                note = find_failure_notes(marks, item.at, pair)
                yield DiagramRow(number + place, drawing.draw_row(pair), None if place else item.at, pair, note=note)
            number += len(item.pairs) - 1


def shorten_long_diagram(rows: Sequence[DiagramRow]) -> list[DiagramRow]:
    """Leave out the middle of a very long run, and say how much that is."""
    if len(rows) <= _MAX_DIAGRAM_ROWS:
        return list(rows)
    half = _MAX_DIAGRAM_ROWS // 2
    gap = rows[half]
    return [
        *rows[:half],
        DiagramRow(gap.number, "", band=f"{len(rows) - 2 * half} rows are left out here"),
        *rows[-half:],
    ]


def render_diagram_table(rows: Sequence[DiagramRow], lanes: LifeLines, lines: Container[int], room: SizeBudget) -> str:
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
        f' title="{escape_html(clip_text(lane.name, _MAX_ROW_TEXT_CHARS))}">'
        f"<span>{escape_html(clip_text(lane.name, _MAX_ROW_NAME_CHARS))}</span></span>"
        for lane in lanes.all
    )
    head = (
        '<thead><tr><th scope="col" class="time">time</th>'
        f'<th scope="col" class="g{" tall" if is_tall else ""}"><div style="width:{width}px">{names}</div></th>'
        '<th scope="col">what happened</th><th scope="col" class="n">line</th></tr></thead>'
    )
    body = "\n".join(_render_row(row, width, lines, room) for row in rows)
    return f'<table class="run">{head}\n<tbody>\n{body}\n</tbody></table>'


def _render_row(row: DiagramRow, width: int, lines: Container[int], room: SizeBudget) -> str:
    time = "" if row.at is None else format_instant(row.at)
    strip = f'<td class="g" aria-hidden="true"><div style="width:{width}px">{row.strip}</div></td>'
    begin = f'<tr id="r{row.number}" tabindex="-1" class="{_get_row_class(row)}">'
    begin += f'<th scope="row" class="time">{time}</th>{strip}'
    if row.pair is None:
        return f'{begin}<td class="band" colspan="2">{escape_html(row.band)}</td></tr>'
    line = row.pair.cell.line
    link = f'<a href="#L{line}">line {line}</a>' if line in lines else f"line {line}" if line else ""
    note = f'<span class="note bad">{escape_html(row.note)}</span>' if row.note else ""
    return f'{begin}<td class="words">{_render_event_words(row.pair, room)}{note}</td><td class="n">{link}</td></tr>'


def _get_row_class(row: DiagramRow) -> str:
    if row.pair is None:
        return "expected" if row.note else "pass"
    kind = _get_row_emphasis(row.pair.cell.event)
    return " ".join(filter(None, ("" if row.at is None else "first", kind, "wrong" if row.note else "")))


def _get_row_emphasis(event: Event) -> str:
    """Say what weight a row has: bad, strong, quiet, or none of these."""
    if isinstance(event, _BAD_EVENTS):
        return "bad"
    if isinstance(event, _STRONG_EVENTS):
        return "strong"
    return "quiet" if isinstance(event, _QUIET_EVENTS) else ""


def _render_event_words(pair: EventWithSupervisorView, room: SizeBudget) -> str:
    cell = pair.cell
    side = cell.side if cell.side in ("supervisor", "agent") else "everybody"
    whose = (
        f"<b>{escape_html(clip_text(cell.whose, _MAX_ROW_NAME_CHARS))}</b> "
        if cell.whose
        else f'<span class="aside">{side}: </span>'
    )
    words = cell.words.replace(" ==> ", " \N{RIGHTWARDS ARROW} ")
    if isinstance(cell.event, events.StreamBytes):
        whole = format_payload(cell.event.bytes, _MAX_UNFOLDED_TEXT_CHARS)
        start = clip_text(whole.replace("\n", "\N{DOWNWARDS ARROW WITH CORNER LEFTWARDS}"), _MAX_PAYLOAD_PREVIEW_CHARS)
        lead, *_ = words.partition(' "')
        shown = f"{whose}{escape_html(lead)} <code>{escape_html(start)}</code>"
        return _render_foldable_details(shown, whole, room) if len(whole) > _MAX_PAYLOAD_PREVIEW_CHARS else shown
    if len(words) <= _MAX_ROW_TEXT_CHARS:
        return f"{whose}{escape_html(words)}"
    return _render_foldable_details(
        f"{whose}{escape_html(clip_text(words, _MAX_ROW_TEXT_CHARS))}", clip_text(words, _MAX_UNFOLDED_TEXT_CHARS), room
    )


def _render_foldable_details(shown: str, whole: str, room: SizeBudget) -> str:
    more = escape_html(whole)
    return f"<details><summary>{shown}</summary><pre>{more}</pre></details>" if room.take_bytes_if_left(more) else shown
