"""Owns the scenario's text on the page: numbered, marked where a check failed or an agent stopped. Judges nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_agentproc.record._page_words import Room, clipped, safe

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["listing", "shown_lines"]

_MAX_LINES = 400
_LINE_CHARS = 240
_SHORT_CHARS = 20
_NOTE_CHARS = 60
_ROOM_BYTES = 160_000


def shown_lines(text: str, marked: Sequence[int]) -> list[int]:
    """List the lines that are on the page: from the first that says something on, and those that are marked."""
    lines = text.splitlines()
    said = [number for number, line in enumerate(lines, 1) if line.strip()]
    if not said:
        return []
    begin, end = said[0], said[-1]
    far = {number for number in marked if begin + _MAX_LINES <= number <= end}
    return [*range(begin, min(end, begin + _MAX_LINES - 1) + 1), *sorted(far)]


def listing(
    text: str,
    shown: Sequence[int],
    rows: Mapping[int, int],
    failed: Mapping[int, Sequence[str]],
    steps: Mapping[int, Sequence[str]],
) -> str:
    """Write the source as HTML.

    Args:
        text: the file's.
        shown: the numbers of its lines that are wanted.
        rows: the first row of the diagram that is about a line.
        failed: the checks that did not pass, by their lines.
        steps: whose last step a line is.
    """
    lines, room = text.splitlines(), Room(_ROOM_BYTES)
    written = []
    before = shown[0] - 1 if shown else 0
    for number in shown:
        if number != before + 1:
            written.append('<tr class="gap"><td colspan="2">\N{HORIZONTAL ELLIPSIS}</td></tr>')
        before = number
        notes = [f'<span class="note bad">{safe(clipped(key, _NOTE_CHARS))}</span>' for key in failed.get(number, ())]
        notes += [f'<span class="note">{safe(clipped(whose, _NOTE_CHARS))}</span>' for whose in steps.get(number, ())]
        kind = "bad" if number in failed else "at" if number in steps else ""
        place = f'<a href="#r{rows[number]}">{number}</a>' if number in rows else str(number)
        line = safe(clipped(lines[number - 1], _LINE_CHARS))
        words = line if room.takes(line) else safe(clipped(lines[number - 1], _SHORT_CHARS))
        written.append(
            f'<tr id="L{number}" tabindex="-1" class="{kind}"><td class="no">{place}</td>'
            f"<td><code>{words}</code>{''.join(note for note in notes if room.takes(note))}</td></tr>"
        )
    return f'<table class="source"><tbody>\n{chr(10).join(written)}\n</tbody></table>'
