"""Owns the rows of the page's diagram: time, strip, words, line. Decides neither what is grouped nor how it looks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_agentproc.record._frames import Again, Frame, Pair, Silence
from pytest_agentproc.record._page_words import clipped, payload_text, safe
from pytest_agentproc.record._times import duration, instant

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

    from pytest_agentproc.record._page_drawing import Drawing
    from pytest_agentproc.record._page_lanes import Lanes
    from pytest_agentproc.record._page_words import Room

__all__ = ["Row", "drawn", "shortened", "table"]

_MAX_ROWS = 300
_WORDS_CHARS = 120
_MORE_CHARS = 2000
_PREVIEW_CHARS = 40
_NAME_CHARS = 32
_QUIET = frozenset({"eof", "size", "closed", "off", "gone", "step"})


class Row(NamedTuple):
    """One row.

    Args:
        number: what it is called on the page.
        strip: the drawing between its lanes, as HTML.
        at: its instant, if it is the first of one.
        pair: what happened.
        band: what is said across the row, where nothing happened that is shown.
    """

    number: int
    strip: str
    at: int | None = None
    pair: Pair | None = None
    band: str = ""


def drawn(shown: Iterable[Frame | Silence | Again], drawing: Drawing, clock: str) -> Iterator[Row]:
    """Draw what is shown, in its order.

    Args:
        shown: the groups of the record.
        drawing: draws the strips; it has drawn none yet.
        clock: whose time passes: virtual or real.
    """
    number = 0
    for one in shown:
        number += 1
        if isinstance(one, Silence):
            yield Row(number, drawing.strip(), band=f"~ {duration(one.length)} pass ({clock})")
        elif isinstance(one, Again):
            yield Row(number, drawing.strip(), band=f"\N{MULTIPLICATION SIGN} {one.times + 1}: {one.words}")
        else:
            for place, pair in enumerate(one.pairs):
                yield Row(number + place, drawing.strip(pair), None if place else one.at, pair)
            number += len(one.pairs) - 1


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
        f' title="{safe(clipped(lane.name, _WORDS_CHARS))}"><span>{safe(clipped(lane.name, _NAME_CHARS))}</span></span>'
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
    return f'{begin}<td class="words">{_words(row.pair, room)}</td><td class="n">{link}</td></tr>'


def _class(row: Row) -> str:
    if row.pair is None:
        return "pass"
    kind = _kind(row.pair.cell.subject[1], row.pair.cell.data)
    return f"{'' if row.at is None else 'first '}{kind}".strip()


def _kind(code: str, data: Mapping[str, Any]) -> str:
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
        f"<b>{safe(clipped(cell.whose, _NAME_CHARS))}</b> " if cell.whose else f'<span class="aside">{side}: </span>'
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
