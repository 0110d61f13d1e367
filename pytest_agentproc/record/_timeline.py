"""Owns the words by which a test asks a record what happened when, in which order, and the text of a wrong answer.

    word                          what it names
    ----------------------------  ----------------------------------------------------------------------------------
    start, exit                   a process of the agent's side starts; ends, be it by itself or of a signal
    TERM, KILL, INT, ...          that signal reaches a process: it is caught, or the process dies of it
    stdout, stderr, stdin         a process writes there, or reads from there
    completed, inactive, ...      the supervisor has that outcome, of a run or of a turn
    returned                      the supervisor is done with the tree
    prompt, cancel, stop, close   the caller of a session does that
    status ready, ...             the session says that it stands there
    inactivity_timeout, ...       that limit of the supervisor runs out
    leak                          a process is found to have been left
    line 7                        something happens that is the doing of the step in that line

`NAME: word` is about one process (`child1: exit`, `agent 2: start`), session or turn (`turn 2: completed`) alone.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from pytest_agentproc import events
from pytest_agentproc.errors import UsageError, suggest_known_word
from pytest_agentproc.record._cells import describe_events, format_instant
from pytest_agentproc.record._frames import group_described_events
from pytest_agentproc.record._normal_form import add_step_lines, join_chunks_of_instant
from pytest_agentproc.record._text import render_timeline
from pytest_agentproc.vocabulary import ALL_LIMIT_NAMES, NANOSECONDS_PER_SECOND, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pytest_agentproc.record._cells import DescribedEvent
    from pytest_agentproc.record._frames import ScenarioText
    from pytest_agentproc.record._record import Record


__tracebackhide__ = True  # a failure shows the line of the test, and none of this file

_CALLER_ACTION_WORDS = ("prompt", "cancel", "stop", "close")
_SESSION_STATUS_WORDS = ("starting", "ready", "prompting", "restarting", "failed", "closed")
_WORDS_ABOUT_AGENTS = ("start", "exit", *events.LETTER_BY_STREAM)
"""The words of which a fake by itself knows."""

_KNOWN_TIMELINE_WORDS = (
    "start",
    "exit",
    *events.LETTER_BY_STREAM,
    "returned",
    *_CALLER_ACTION_WORDS,
    "leak",
    *(f"status {status}" for status in _SESSION_STATUS_WORDS),
)
_SIGNAL_NAME_PATTERN = re.compile(r"[A-Z][A-Z0-9]*")
_SCRIPT_LINE_PATTERN = re.compile(r"line [1-9][0-9]*")


class _TimelineRow(NamedTuple):
    """One thing that has words: where it is shown, and what may name it."""

    cell: DescribedEvent
    words: tuple[str, ...]
    whose: tuple[str, ...]


class Timeline:
    """The events of one run, both sides in order; times are seconds of its clock.

    Args:
        record: what happened.
        source: the scenario, which shows each step as it is written.
        is_supervised: whether the record has the side of the supervisor, too. If not, words about it are refused: an
            event without a record may still have happened.
    """

    def __init__(self, record: Record, source: ScenarioText | None = None, *, is_supervised: bool = True) -> None:
        self._is_supervised = is_supervised
        lines = source.text.splitlines() if source is not None else ()
        self._cells = describe_events(join_chunks_of_instant(add_step_lines(record.events)), lines)
        self._rows = [
            _TimelineRow(cell, (*_list_cell_words(cell),), (*_list_cell_owners(cell),)) for cell in self._cells
        ]

    def __str__(self) -> str:
        return self._draw_with_marks({})

    def times(self, word: str) -> tuple[float, ...]:
        """Give every instant of a word, in order; none if it never came."""
        return tuple(row.cell.at / NANOSECONDS_PER_SECOND for row in self._find_rows(word))

    def at(self, word: str) -> float:
        """Give the first instant of a word.

        Raises:
            AssertionError: it never came.
        """
        return self._find_first_row(word).cell.at / NANOSECONDS_PER_SECOND

    def order(self, *words: str) -> None:
        """Require that these came one after the other, whatever came between; at one instant their order counts too.

        A row of the timeline may be two of them: a process that dies of TERM is `TERM` and then `exit`.

        Raises:
            AssertionError: one did not come after the one before; the text shows how far it went.
        """
        marks: dict[int, str] = {}
        begin = (0, 0)
        for number, word in enumerate(words, 1):
            wanted = self._parse_word(word)
            places = [(index, row.words.index(wanted.word)) for index, row in enumerate(self._rows) if wanted(row)]
            found = next((place for place in places if place >= begin), None)
            if found is None:
                earlier = self._rows[places[-1][0]] if places else None
                self._fail_with_timeline(_explain_wrong_order(word, words[number - 2], earlier), marks, earlier)
            cell = self._rows[found[0]].cell
            marks[id(cell)] = f"{marks.get(id(cell), '')} {number}".strip()
            begin = found[0], found[1] + 1

    def not_before(self, word: str, bound: float | str) -> None:
        """Require that a word came, first at or after an instant, or at or after the first time of another word.

        Raises:
            AssertionError: it came earlier, or one of them never came.
        """
        row = self._find_first_row(word)
        if isinstance(bound, str):
            other = self._find_first_row(bound)
            if row.cell.at < other.cell.at:
                earlier = (
                    f"{word} came at {format_instant(row.cell.at)}, before {bound} at {format_instant(other.cell.at)}"
                )
                self._fail_with_timeline(earlier, {id(other.cell): "1"}, row)
        elif row.cell.at < round(bound * NANOSECONDS_PER_SECOND):
            due = format_instant(round(bound * NANOSECONDS_PER_SECOND))
            self._fail_with_timeline(f"{word} came at {format_instant(row.cell.at)}, before {due}", {}, row)

    def never(self, word: str) -> None:
        """Require that a word did not come.

        Raises:
            AssertionError: it did.
        """
        row = next(self._find_rows(word), None)
        if row is not None:
            self._fail_with_timeline(f"{word} came at {format_instant(row.cell.at)}", {}, row)

    def _find_first_row(self, word: str) -> _TimelineRow:
        row = next(self._find_rows(word), None)
        if row is None:
            self._fail_with_timeline(f"{word} never came", {}, None)
        return row

    def _find_rows(self, word: str) -> Iterator[_TimelineRow]:
        wanted = self._parse_word(word)
        return (row for row in self._rows if wanted(row))

    def _parse_word(self, word: str) -> _WordFilter:
        """Read a word.

        Raises:
            UsageError: there is no such word.
        """
        owner, colon, plain = word.rpartition(": ")
        known = {*_KNOWN_TIMELINE_WORDS, *Outcome, *ALL_LIMIT_NAMES}
        if (
            plain not in known
            and not _SIGNAL_NAME_PATTERN.fullmatch(plain)
            and not _SCRIPT_LINE_PATTERN.fullmatch(plain)
        ):
            raise UsageError(
                f"a timeline has no word {plain!r}{suggest_known_word(plain, known, '', ', ')}",
                f"words are {', '.join(_KNOWN_TIMELINE_WORDS)}, signals, outcomes, limits, line N; "
                "or NAME: and one of these",
            )
        if not self._is_supervised and plain in known.difference(_WORDS_ABOUT_AGENTS):
            raise UsageError(
                f"{plain!r} is about the supervisor, which nobody recorded: the test started the fake by its own code",
                f"ask for {', '.join(_WORDS_ABOUT_AGENTS)}, a signal or line N; or let agent_run run the scenario",
            )
        return _WordFilter(owner if colon else None, plain)

    def _fail_with_timeline(self, trouble: str, marks: Mapping[int, str], wrong: _TimelineRow | None) -> NoReturn:
        shown = {**marks}
        if wrong is not None:
            shown[id(wrong.cell)] = f"{marks.get(id(wrong.cell), '')}!"
        raise AssertionError(f"{trouble}\n\n{self._draw_with_marks(shown)}")

    def _draw_with_marks(self, marks: Mapping[int, str]) -> str:
        return render_timeline(group_described_events(self._cells, marks), marks)


class _WordFilter(NamedTuple):
    """Which rows a word is about."""

    owner: str | None
    word: str

    def __call__(self, row: _TimelineRow) -> bool:
        return self.word in row.words and (self.owner is None or self.owner in row.whose)


def _explain_wrong_order(word: str, before: str, earlier: _TimelineRow | None) -> str:
    if earlier is None:
        return f"{word} never came"
    return f"{word} did not come after {before}: it came at {format_instant(earlier.cell.at)}"


def _list_cell_words(cell: DescribedEvent) -> Iterator[str]:
    """Name the content of a cell. An event of the agent has its word; the supervisor's sight of it has none."""
    if cell.line:
        yield f"line {cell.line}"
    yield from _WORDS_BY_TYPE.get(type(cell.event), lambda _: ())(cell.event)


_WORDS_BY_TYPE: dict[type[events.Event], Callable[[Any], tuple[str, ...]]] = {
    events.OutputWritten: lambda event: (event.stream,),
    events.InputRead: lambda _: ("stdin",),
    events.SignalCaught: lambda event: (event.signal,),
    events.ProcessStarted: lambda _: ("start",),
    events.ProcessEnded: lambda event: (event.signal, "exit") if event.signal else ("exit",),
    events.ProcessGone: lambda _: ("exit",),
    events.TimerFired: lambda event: (event.timer,),
    events.StatusReported: lambda event: (f"status {event.text}",),
    events.TurnEnded: lambda event: (event.text,),
    events.OutcomeReached: lambda event: (event.outcome,),
    events.Returned: lambda _: ("returned",),
    events.Leaked: lambda _: ("leak",),
    events.CallerActed: lambda event: (event.does.partition(" ")[0],),
}


def _list_cell_owners(cell: DescribedEvent) -> Iterator[str]:
    """Name whose a cell is."""
    event = cell.event
    yield event.process
    if event.session:
        yield event.session
    if isinstance(event, events.SessionReport) and event.turn:
        yield f"turn {event.turn}"
