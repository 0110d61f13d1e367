"""The page of a run: its claim, what failed, the diagram, the source. Reads no file, judges nothing.

A page is one file without a script: whoever opens it needs no network, and whoever wrote its bytes runs nothing in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from pytest_agentproc.record._cells import format_duration
from pytest_agentproc.record._frames import InstantFrame, group_events_by_instant
from pytest_agentproc.record._page_lanes import build_life_lines
from pytest_agentproc.record._page_rows import (
    DiagramDrawing,
    SizeBudget,
    clip_text,
    draw_rows,
    escape_html,
    render_diagram_table,
    shorten_long_diagram,
)
from pytest_agentproc.record._page_style import PAGE_CSS
from pytest_agentproc.vocabulary import LEVELS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_agentproc.record._page_marks import FailureMark
    from pytest_agentproc.record._page_rows import DiagramRow
    from pytest_agentproc.record._record import Record


_MAX_SOURCE_LINES = 400
_MAX_SOURCE_LINE_CHARS = 240
_MAX_SHORTENED_LINE_CHARS = 20
_MAX_NOTE_CHARS = 60
_MAX_SOURCE_HTML_BYTES = 160_000


def select_shown_lines(text: str, marked: Sequence[int]) -> list[int]:
    """List the lines that are on the page: all from the first line with content, and the marked ones."""
    lines = text.splitlines()
    numbers = [number for number, line in enumerate(lines, 1) if line.strip()]
    if not numbers:
        return []
    begin, end = numbers[0], numbers[-1]
    far = {number for number in marked if begin + _MAX_SOURCE_LINES <= number <= end}
    return [*range(begin, min(end, begin + _MAX_SOURCE_LINES - 1) + 1), *sorted(far)]


def render_source(
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
    lines, room = text.splitlines(), SizeBudget(_MAX_SOURCE_HTML_BYTES)
    written = []
    before = shown[0] - 1 if shown else 0
    for number in shown:
        if number != before + 1:
            written.append('<tr class="gap"><td colspan="2">\N{HORIZONTAL ELLIPSIS}</td></tr>')
        before = number
        notes = [
            f'<span class="note bad">{escape_html(clip_text(key, _MAX_NOTE_CHARS))}</span>'
            for key in failed.get(number, ())
        ]
        notes += [
            f'<span class="note">{escape_html(clip_text(whose, _MAX_NOTE_CHARS))}</span>'
            for whose in steps.get(number, ())
        ]
        kind = "bad" if number in failed else "at" if number in steps else ""
        place = f'<a href="#r{rows[number]}">{number}</a>' if number in rows else str(number)
        line = escape_html(clip_text(lines[number - 1], _MAX_SOURCE_LINE_CHARS))
        words = (
            line
            if room.take_bytes_if_left(line)
            else escape_html(clip_text(lines[number - 1], _MAX_SHORTENED_LINE_CHARS))
        )
        written.append(
            f'<tr id="L{number}" tabindex="-1" class="{kind}"><td class="no">{place}</td>'
            f"<td><code>{words}</code>{''.join(note for note in notes if room.take_bytes_if_left(note))}</td></tr>"
        )
    return f'<table class="source"><tbody>\n{chr(10).join(written)}\n</tbody></table>'


_MAX_DIAGRAM_HTML_BYTES = 160_000
_MAX_CHECK_TEXT_CHARS = 600
_MAX_DIFF_CHARS = 4000
_MAX_PHONE_LANES_WIDTH_PX = 300
"""Wider lanes scroll in a box of their own on a phone."""

_MAX_FAILURE_BANNERS = 16
_CONTENT_SECURITY_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


class _PageScenario(Protocol):
    """The scenario, as far as a page shows it."""

    @property
    def path(self) -> object: ...
    @property
    def claim(self) -> str: ...
    @property
    def text(self) -> str: ...


class _PageCheck(Protocol):
    """One check of a scenario, in words."""

    @property
    def key(self) -> str: ...
    @property
    def line(self) -> int: ...
    @property
    def wanted(self) -> str: ...
    @property
    def seen(self) -> str: ...
    @property
    def verdict(self) -> str: ...
    @property
    def hint(self) -> str: ...
    @property
    def diff(self) -> str: ...
    @property
    def level(self) -> str: ...


class PageVerdict(NamedTuple):
    """The page's words about a run.

    Args:
        verdict: over the whole of it, in words.
        failed: the checks that did not pass, the gravest first.
        others: all other checks.
        steps: the line of the last step of each agent.
        real: its duration in real time, in nanoseconds; None: not measured.
        marks: what failed checks are about, for the diagram.
        rerun: the command that runs it again by hand; "": there is none to show.
    """

    verdict: str
    failed: Sequence[_PageCheck] = ()
    others: Sequence[_PageCheck] = ()
    steps: Mapping[str, int] = {}
    real: int | None = None
    marks: Sequence[FailureMark] = ()
    rerun: str = ""


def render_page(record: Record, scenario: _PageScenario, judged: PageVerdict) -> str:
    """Draw a run as an HTML page: what failed, a diagram of who did what and when, the scenario beside it.

    Silences and repetitions are folded as in the text, the middle of a very long run is left out, and a page is
    smaller than 1 MiB whatever was printed. Equal arguments give equal bytes.

    Args:
        record: what happened.
        scenario: what was asked for; its lines and those of the diagram lead to each other.
        judged: what follows from both.
    """
    shown = list(group_events_by_instant(record, scenario))
    cells = [pair.cell for frame in shown if isinstance(frame, InstantFrame) for pair in frame.pairs]
    lanes = build_life_lines(record.events, cells)
    clock = str(record.header.get("clock", "virtual"))
    rows = shorten_long_diagram(list(draw_rows(shown, DiagramDrawing(lanes), clock, judged.marks)))
    failed = _group_words_by_line((row.line, f"{row.verdict}: {row.key}") for row in judged.failed)
    steps = _group_words_by_line(
        (line, f"last step of {_describe_process(process)}") for process, line in judged.steps.items()
    )
    lines = select_shown_lines(scenario.text, [*failed, *steps])
    known = frozenset(lines)
    diagram = render_diagram_table(rows, lanes, known, SizeBudget(_MAX_DIAGRAM_HTML_BYTES))
    source = render_source(scenario.text, lines, _find_first_row_of_line(rows), failed, steps)
    end = record.events[-1].at if record.events else 0
    parts = [
        '<a class="skip" href="#run">Skip to the diagram</a>',
        f"<header>{_render_page_head(scenario, judged, _list_run_facts(record.header, end, judged.real))}</header>",
        _render_failure_banners(scenario, judged, known),
        f'<p class="rerun">run it again: <code>{escape_html(judged.rerun)}</code></p>' if judged.rerun else "",
        '<main><section id="run" tabindex="-1" aria-label="what happened">',
        f'<div class="scroll{" wide" if lanes.width > _MAX_PHONE_LANES_WIDTH_PX else ""}">{diagram}</div></section>',
        f'<section class="beside" aria-label="the scenario"><h2>{escape_html(clip_text(str(scenario.path), 200))}</h2>',
        f'<div class="scroll" tabindex="0" role="region" aria-label="source">{source}</div></section></main>',
        f"<footer>record <code>{record.digest()}</code></footer>",
    ]
    return render_document(f"{judged.verdict}: {scenario.claim}", "\n".join(parts))


def render_document(title: str, body: str) -> str:
    """Wrap the body of a page: nothing in it may load or run anything.

    Args:
        title: as text.
        body: as HTML.
    """
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_CONTENT_SECURITY_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape_html(clip_text(title, 200))}</title>\n<style>\n{PAGE_CSS}</style></head>\n"
        f"<body>\n{body}\n</body></html>\n"
    )


def _render_page_head(scenario: _PageScenario, judged: PageVerdict, facts: Iterable[tuple[str, str]]) -> str:
    text = "".join(f"<div><dt>{name}</dt><dd>{escape_html(value)}</dd></div>" for name, value in facts)
    kind = "bad" if judged.failed else "good"
    return (
        f'<h1>{escape_html(clip_text(scenario.claim, 400))}</h1>\n<dl class="facts">'
        f'<div><dt>verdict</dt><dd><b class="verdict {kind}">{escape_html(judged.verdict)}</b></dd></div>{text}</dl>'
    )


def _list_run_facts(header: Mapping[str, Any], end: int, real: int | None) -> Iterable[tuple[str, str]]:
    if header.get("subject"):
        yield "subject", clip_text(str(header["subject"]), 100)
    clock = str(header.get("clock", "virtual"))
    yield "clock", f"{clock}, by {header['arm']}" if "arm" in header else clock
    if "out_of_reach" in header:
        yield "not in virtual time", clip_text(str(header["out_of_reach"]), 300)
    yield f"{clock} time" if clock != "real" else "the scenario's time", format_duration(end)
    if real is not None:
        yield "took", format_duration(real)


def _render_failure_banners(scenario: _PageScenario, judged: PageVerdict, lines: frozenset[int]) -> str:
    """Say what failed, each check by itself, then what did not."""
    written = [_render_failure_banner(scenario, row, lines) for row in judged.failed[:_MAX_FAILURE_BANNERS]]
    if len(judged.failed) > _MAX_FAILURE_BANNERS:
        written.append(f"<p>{len(judged.failed) - _MAX_FAILURE_BANNERS} more are marked in the source.</p>")
    kinds = dict.fromkeys(str(row.verdict) for row in judged.others)
    counts = [f"{sum(row.verdict == kind for row in judged.others)} {kind}" for kind in kinds]
    if counts:
        keys = ", ".join(f"{row.key} ({row.verdict})" for row in judged.others)
        names = escape_html(clip_text(keys, 4 * _MAX_CHECK_TEXT_CHARS))
        written.append(
            f'<details class="others"><summary>checks: {", ".join(counts)}</summary><p>{names}</p></details>'
        )
    return f'<section class="checks" aria-label="checks">{"".join(written)}</section>'


def _render_failure_banner(scenario: _PageScenario, row: _PageCheck, lines: frozenset[int]) -> str:
    place = f"{escape_html(clip_text(str(scenario.path), 160))}:{row.line}" if row.line else ""
    level = "" if row.level == LEVELS[0] else f'<span class="level">level {escape_html(row.level)}</span> '
    where = f'<a href="#L{row.line}">{place}</a>' if row.line in lines else place
    pairs = [("expected", row.wanted), ("seen", row.seen), *([("", f"({row.hint})")] if row.hint else [])]
    words = "".join(
        f"<dt>{name}</dt><dd>{escape_html(clip_text(text, _MAX_CHECK_TEXT_CHARS))}</dd>" for name, text in pairs
    )
    words += f"<dd><pre>{escape_html(clip_text(row.diff, _MAX_DIFF_CHARS))}</pre></dd>" if row.diff else ""
    return (
        f'<article class="banner"><h2><b>{escape_html(row.verdict)}</b> '
        f"<code>{escape_html(clip_text(row.key, 160))}</code> {level}"
        f'<span class="where">{where}</span></h2><dl>{words}</dl></article>'
    )


def _group_words_by_line(pairs: Iterable[tuple[int, str]]) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for line, words in pairs:
        if line:
            found.setdefault(line, []).append(words)
    return found


def _find_first_row_of_line(rows: Sequence[DiagramRow]) -> dict[int, int]:
    first: dict[int, int] = {}
    for row in rows:
        if row.pair is not None and row.pair.cell.line:
            first.setdefault(row.pair.cell.line, row.number)
    return first


def _describe_process(process: str) -> str:
    return "the agent" if process == "agent" else process
