"""Reads a pasted log: its lines, their times, and the end that its reporter saw.

It knows what people and programs put around a line (quotes, fences, numbers, times, arrows), and no dialect.

An instant counts from an unknown beginning: only differences between instants of one log mean something. `base` keeps
absolute and relative instants apart, since a difference between these two means nothing.

Denied or requested ends (`does not hang`, `should exit 1`) are ignored. If the table does not know the words, the end
is the log's own.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from pytest_agentproc.vocabulary import SIGNALS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


_SECOND = 1_000_000_000
LONGEST = 3_000_000_000 * _SECOND
"""A longer time is none that a log is about; the language reads times up to a century."""
_DAY = 24 * 3600 * _SECOND
_LONGEST_HEAD = 200
"""An instant stands in so many characters, and a number has no more digits."""

_UNITS = {"ms": 1_000_000, "s": _SECOND, "m": 60 * _SECOND, "min": 60 * _SECOND, "": _SECOND}

_DATED = re.compile(
    r"(\d{4})[-/](\d\d)[-/](\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?\s*(Z|[+-]\d\d:?\d\d)?", re.ASCII
)
_CLOCK = re.compile(r"(?<![\d:.+])(\d\d?):(\d\d):(\d\d)(?:[.,](\d{1,9}))?(?![\d:])", re.ASCII)
_ELAPSED = re.compile(
    r"\+(?:(\d{1,9}):)?(\d{1,9}):(\d\d)(?:\.(\d{1,9}))?(?![\d:])"
    r"|(?<![\d:.+])(\d{1,3}):(\d\d)\.(\d{1,9})(?![\d:])",
    re.ASCII,
)
_EPOCH = re.compile(r"(?<![\d.])(1\d{9})(?:\.(\d{1,9})|(\d{3}))?(?![\d.])", re.ASCII)
_RELATIVE = re.compile(
    r"(?:(?<=^)|(?<=[\[(\s]))(?:[Tt]?\+)?(\d{1,15}(?:\.\d{1,30})?)\s*(ms|s|min|m)(?=[\])\s:|]|$)"
    r"|(?:(?<=^)|(?<=[\[(\s]))[Tt]?\+(\d{1,15}(?:\.\d{1,30})?)(?=[\])\s:|]|$)"
    r"|\[\s*(\d{1,15}\.\d{1,30})\]",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Instant:
    """When something was printed: nanoseconds from the beginning that `base` names (date, clock or start)."""

    base: str
    ns: int


def find_instant(head: str) -> Instant | None:
    """Find the instant in what stands before a line; None without one."""
    head = head[:_LONGEST_HEAD]
    if found := _DATED.search(head):
        return _read_date_and_time(found)
    if found := _ELAPSED.search(head):
        hours, minutes, whole = (int(part or 0) for part in (found[1], found[2] or found[5], found[3] or found[6]))
        return Instant("start", _sum_time_of_day(hours, minutes, whole, found[4] or found[7]))
    if found := _CLOCK.search(head):
        hours, minutes, whole = (int(part) for part in found.groups()[:3])
        return Instant("clock", _sum_time_of_day(hours, minutes, whole, found[4]))
    if found := _EPOCH.search(head):
        return Instant("date", int(found[1]) * _SECOND + _parse_fraction(found[2] or found[3]))
    if found := _RELATIVE.search(head):
        number, unit = found[1] or found[3] or found[4], found[2] or ""
        return Instant("start", round(float(number) * _UNITS[unit]))
    return None


def measure_gap(earlier: Instant, later: Instant) -> int | None:
    """Give the time between two instants in nanoseconds.

    Returns:
        None where they do not count from the same beginning, the log goes backwards, or the time between them is too
        long for a wait; a clock passes midnight.
    """
    if earlier.base != later.base:
        return None
    passed = later.ns - earlier.ns
    if passed < -_DAY // 2 and later.base == "clock":
        passed += _DAY
    return passed if 0 <= passed <= LONGEST else None


def _read_date_and_time(found: re.Match[str]) -> Instant | None:
    year, month, day, hours, minutes, whole = (int(part) for part in found.groups()[:6])
    try:
        moment = datetime(year, month, day, hours, minutes, whole, tzinfo=UTC)
    except ValueError:
        return None
    zone = found[8] or "Z"
    shift = 0 if zone == "Z" else int(zone[1:3]) * 3600 + int(zone[-2:]) * 60
    passed = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1)
    passed += shift if zone[0] == "-" else -shift
    return Instant("date", passed * _SECOND + _parse_fraction(found[7]))


def _sum_time_of_day(hours: int, minutes: int, whole: int, part: str | None) -> int:
    return (hours * 3600 + minutes * 60 + whole) * _SECOND + _parse_fraction(part)


def _parse_fraction(digits: str | None) -> int:
    return int((digits or "0").ljust(9, "0"))


_REPORTED_UNITS = {"ms": 1_000_000, "s": _SECOND, "m": 60 * _SECOND, "h": 3600 * _SECOND}
_SIGNALLED = 128
_LARGEST_CODE = 255


@dataclass(frozen=True, slots=True)
class ReportedEnd:
    """The end of the run as the reporter saw it.

    Args:
        kind: `hangs`, `killed` (by its supervisor, for no fault of its own), `exits`, `dies` or `missing`.
        line: the line of the log that says so; `words` are what it says.
        code: with which code it exits; `signal` of which signal it dies.
        after: how long until it was killed, or its hang was over, in nanoseconds.
        at: when that line was printed.
        why: why it could not be started, in the words of `cannot_spawn`.
    """

    kind: str
    line: int
    words: str
    code: int = 0
    signal: str = ""
    after: int | None = None
    at: Instant | None = None
    why: str = ""


def _read_reported_exit(found: re.Match[str]) -> ReportedEnd | None:
    code = int(found["code"])
    number = -code if code < -1 else code - _SIGNALLED  # Python prints the number of a signal with a minus
    name = next((name for name, known in SIGNALS.items() if known == number), "")
    # Nobody can catch KILL, so nobody exits with its code: this is a shell's or a container's word.
    if name and (code < 0 or name == "KILL"):
        return ReportedEnd("dies", 0, "", signal=name)
    return ReportedEnd("exits", 0, "", code=code) if 0 <= code <= _LARGEST_CODE else None


def _read_reported_death(found: re.Match[str]) -> ReportedEnd | None:
    name = found["signal"].upper().removeprefix("SIG")
    return ReportedEnd("dies", 0, "", signal=name) if name in SIGNALS else None


def _read_reported_kill(found: re.Match[str]) -> ReportedEnd | None:
    unit = found["unit"].lower()
    size = _REPORTED_UNITS["ms" if unit.startswith(("ms", "milli")) else unit[0]]
    after = float(re.sub(r"[ ,_]", "", found["time"])) * size
    return ReportedEnd("killed", 0, "", after=round(after)) if after <= LONGEST else None


_REFUSED = {
    "ENOENT": "not_found",
    "EACCES": "not_executable",
    "ENOEXEC": "wrong_format",
    "ENOMEM": "no_memory",
    "EMFILE": "no_descriptors",
}


def _read_refused_start(found: re.Match[str]) -> ReportedEnd:
    return ReportedEnd("missing", 0, "", why=_REFUSED[found["error"] or "ENOENT"])


_TIME = r"(?P<time>\d[\d ,_]*(?:\.\d+)?)\s*-?(?P<unit>ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hours?)\b"
_CODE = r"[\s:=`*(\"']*(?P<code>-?\d{1,3})\b"
_ENDS = "killed|kills|terminated|terminates|timed out|times out|timeout"
_SILENT = r"no (?:\w+ )?(?:output|stdout|activity|events?)|silent|idle|inactive"
_HANGS = (
    r"\b(?:hangs?|hung|hanging|gets? stuck|is stuck|stuck (?:for ?ever|here|there)|nothing happens"
    r"|never (?:exits?|returns?|finishes|ends|completes|terminates)"
    r"|(?:does not|doesn't|did not|didn't|won't|will not) (?:exit|return|terminate|finish|end)"
    r"|(?:blocks?|waits?) (?:for ?ever|indefinitely))\b"
)
_PHRASES: tuple[tuple[str, Callable[[re.Match[str]], ReportedEnd | None]], ...] = (
    (rf"\bspawn\b.*\b(?P<error>{'|'.join(_REFUSED)})\b|\bcommand not found\b", _read_refused_start),
    (rf"\b(?:{_ENDS})\b.{{0,40}}?\b(?:after|at)\s.{{0,12}}?{_TIME}", _read_reported_kill),
    (
        rf"\b(?:{_SILENT})\s(?:for|after)\s.{{0,6}}?{_TIME}.{{0,60}}?\b(?:kill|terminat|SIGTERM|SIGKILL)",
        _read_reported_kill,
    ),
    (r"(?<!-)\bsignal\b[\s=:\"'`]+(?P<signal>(?:SIG)?[A-Z]{3,6}[12]?)\b", _read_reported_death),
    (
        r"\b(?:killed|died|dies|crashed|crashes|terminated)\b.{0,20}?\b(?P<signal>SIG[A-Z]{3,6}[12]?)\b",
        _read_reported_death,
    ),
    (r"\b(?P<signal>SIGSEGV|SIGABRT|SIGBUS|SIGILL)\b", _read_reported_death),
    (r"\bsegmentation fault\b", lambda _: ReportedEnd("dies", 0, "", signal="SEGV")),
    (rf"\bexit(?:s|ed|ing)?(?:[\s,:(]+(?:code|status|with|value))*{_CODE}", _read_reported_exit),
    (
        rf"\b(?:exit[ _-]?code|return ?code|exit[ _-]?status|rc)\b[\"'`*]*(?:\s+(?:is|was|of))?{_CODE}",
        _read_reported_exit,
    ),
    (_HANGS, lambda _: ReportedEnd("hangs", 0, "")),
)
_TIMEOUT = re.compile(r"\btimeout\s+(?:(?:-[ks]\s+\S+|-\S+)\s+)*(?P<time>\d+(?:\.\d+)?)(?P<unit>[smh]?)\s+\S")
"""A command line of the shell that ends its command after a limit."""
_ECHO = re.compile(r"\becho \"?\$\?\"?$")
_TIMED_OUT = 124
"""The code of a shell's `timeout` that has ended its command."""
_KILLING = ("INT", "KILL", "TERM", *(SIGNALS[name] for name in ("INT", "KILL", "TERM")))
"""The signals with which a supervisor kills, by name and by number."""
_DENIED = re.compile(
    r"\b(?:no longer|not|never|without|should(?: not)?|expect(?:ed)?|would|could|instead of|if it|used to|fixed)"
    r"[^\w,.;:]+(?:\w+[^\w,.;:]+){0,2}$",
    re.IGNORECASE,
)
_ORDER = ("missing", "dies", "exits", "killed", "hangs")
"""Which of several is taken: what happened to the process, before what somebody felt."""


def find_reported_end(things: Iterable[PastedItem]) -> ReportedEnd | None:
    """Find what the words of a log say of the end.

    Returns:
        the strongest of what is said; of several the last. None: nothing in the table's words.
    """
    words = [thing for thing in things if thing.kind == "words"]
    found = [reported for thing in words for reported in _find_ends_in_line(thing)] + _find_echoed_exits(words)
    last = {reported.kind: reported for reported in found}
    best = next((last[kind] for kind in _ORDER if kind in last), None)
    if best is None:
        return None
    if best.code == _TIMED_OUT:
        return _read_exit_of_timeout(best, words)
    if "killed" in last and (best.signal or best.code - _SIGNALLED) in _KILLING:
        best = last["killed"]  # the agent died of it
    return replace(best, kind="hangs") if best.kind == "killed" and "hangs" in last else best


def _find_echoed_exits(words: list[PastedItem]) -> list[ReportedEnd]:
    """Find the code that a shell has printed for `echo $?`, alone on a line."""
    is_asked = False
    for thing in words:
        if is_asked and (found := re.fullmatch(_CODE, thing.text)):
            meant = _read_reported_exit(found)
            return [replace(meant, line=thing.line, words=thing.text, at=thing.at)] if meant else []
        is_asked = is_asked or bool(_ECHO.search(thing.text))
    return []


def _read_exit_of_timeout(exit_: ReportedEnd, words: list[PastedItem]) -> ReportedEnd:
    """Take the code 124 for the end of a limit where a command line of the log sets one with `timeout`."""
    for thing in words:
        if limit := _TIMEOUT.search(thing.text):
            after = float(limit["time"]) * _REPORTED_UNITS[limit["unit"] or "s"]
            return replace(exit_, kind="hangs", code=0, after=round(min(after, LONGEST)))
    return exit_


def _find_ends_in_line(thing: PastedItem) -> list[ReportedEnd]:
    said: list[ReportedEnd] = []
    for pattern, meaning in _PHRASES:
        for found in re.finditer(pattern, thing.text, re.IGNORECASE):
            meant = None if _DENIED.search(thing.text[: found.start()]) else meaning(found)
            if meant is not None:
                said.append(replace(meant, line=thing.line, words=thing.text, at=thing.at))
    return said


_ESC = r"(?:\x1b|\u241b|\^\[|\\x1[bB]|\\u001[bB]|\\033|\\e)"
_BEL = r"(?:\x07|\u2407|\^G|\\x07|\\u0007|\\007|\\a)"
_TITLE = r"\][0-9]{1,4};"
_CLEAR = r"\[(?:\?[0-9]+[hl]|[0-9]*[JKH])"
"""How a title, a notification or a cleared screen begins: enough to know it in a log that has lost its ESC."""
_GLUED = re.compile(rf"(?:{_ESC}\[[0-?]*[ -/]*[@-~]|{_CLEAR}|{_ESC}?{_TITLE}[^{{]*+)++$")
_COLOURS = re.compile(r"(?:\x1b\[[0-9;]*m)+")


def find_glued_escapes(head: str) -> str:
    """Find the escape sequences that stand directly before an event, and give them as a program prints them.

    A log may have ESC and BEL as they are, as letters (such as `^[`), or not at all. Colours are the log's own.
    """
    found = _GLUED.search(head)
    if found is None:
        return ""
    text = re.sub(_BEL, "\x07", re.sub(_ESC, "\x1b", found[0]))
    text = re.sub(rf"(?<!\x1b)(?={_TITLE}|{_CLEAR})", "\x1b", text)
    text = re.sub(r"(\x1b\][^\x07\x1b]*)(?=\x1b[^\\]|$)", "\\1\x07", text)
    return "" if _COLOURS.fullmatch(text) or found[0][-1].isspace() else text


_QUOTE = re.compile(r"^(?:\s{0,3}>\s?)+")
_FENCE = re.compile(r"^\s{0,3}(?:```|~~~)")
_CUT = re.compile(
    r"(?:…|\.\.\.|\[(?:truncated|\.\.\.|snip)|<truncated|\(truncated|chars? (?:more|omitted))", re.IGNORECASE
)
_BEGINNING = re.compile(r'\{\s*(?:\\?"|\.\.\.|…|$)')
_LEADING = re.compile(r"(?:[A-Z]{4,8}\s+)?[\[(]?\s*[\dT:.,+/Z-]+(?:\s[\d:.,]+Z?)?(?:ms|s)?\b[\])]?", re.ASCII)
"""The time of a logger begins the line. A time within the words is about something else."""
_LONGEST_LINE_HEAD = 120
_MOST_LINES = 400
"""Lines of one event that is printed over many."""
_MOST_ROWS = 60
"""Rows of a terminal over which one line was broken."""
_DECODER = json.JSONDecoder(strict=False)


@dataclass(frozen=True, slots=True)
class PastedItem:
    """One thing in a log.

    Args:
        line: the line of the log on which it begins, from 1.
        kind: `event`; `broken`, an event that cannot be read; `words`, everything else.
        text: the line without what the paste put around it.
        event: the event.
        at: when it was printed.
        is_fenced: whether it stands in a block of code.
        why: why it cannot be read.
        glued: the escape sequences that were printed before it on its line.
    """

    line: int
    kind: str
    text: str
    event: Any = None
    at: Instant | None = None
    is_fenced: bool = False
    why: str = ""
    glued: str = ""


def read_paste(log: str) -> list[PastedItem]:
    """Read a log, line by line; blank lines, fences and quotation marks are left out."""
    lines = [_QUOTE.sub("", line.rstrip()) for line in log.replace("\r\n", "\n").split("\n")]
    found: list[PastedItem] = []
    number, is_fenced = 0, False
    while number < len(lines):
        line = lines[number]
        if _FENCE.match(line):
            is_fenced = not is_fenced
            number += 1
            continue
        taken, things = _read_items_at_line(lines, number, is_fenced=is_fenced)
        if found and found[-1].kind == "words" and found[-1].line == number and things and things[0].at is None:
            things = [replace(thing, at=found[-1].at) if thing.kind == "event" else thing for thing in things]
        found += things
        number += taken
    return found


def _read_items_at_line(lines: list[str], index: int, *, is_fenced: bool) -> tuple[int, list[PastedItem]]:
    """Read what begins on a line; give how many lines it takes, too."""
    line = lines[index]
    start = line.find("{")
    if start < 0 or start > _LONGEST_LINE_HEAD or not _BEGINNING.match(line, start):
        words = line.strip()
        first = _LEADING.match(words)
        at = find_instant(first[0]) if first else None
        return 1, [PastedItem(index + 1, "words", words, at=at, is_fenced=is_fenced)] if words else []
    head = line[:start]
    about: dict[str, Any] = {"at": find_instant(head), "is_fenced": is_fenced}
    events, rest = _parse_objects(_unescape_object(line[start:]))
    if events:
        things = [PastedItem(index + 1, "event", line[start:], event, **about) for event in events]
        things[0] = replace(things[0], glued=find_glued_escapes(head))
        if _BEGINNING.match(rest):
            things.append(PastedItem(index + 1, "broken", rest, why=_explain_broken_json(rest), **about))
        return 1, things
    taken, whole = _parse_multiline_object(lines, index, start)
    if whole is not None:
        text = json.dumps(whole, ensure_ascii=False)
        return taken, [PastedItem(index + 1, "event", text, whole, glued=find_glued_escapes(head), **about)]
    return 1, [PastedItem(index + 1, "broken", line[start:], why=_explain_broken_json(line[start:]), **about)]


def _unescape_object(text: str) -> str:
    """Give an object that a logger has printed within quotes, with a backslash before each quote of its own."""
    if not text.startswith('{\\"'):
        return text
    try:
        return str(_DECODER.decode(f'"{text[: text.rindex("}") + 1]}"'))
    except ValueError:
        return text


def _parse_objects(text: str) -> tuple[list[Any], str]:
    """Read all objects of a line, one after the other; give the rest of the line, too."""
    events: list[Any] = []
    rest = text
    while rest.startswith("{"):
        try:
            event, end = _DECODER.raw_decode(rest)
        except (ValueError, RecursionError):
            break
        events.append(event)
        rest = rest[end:].lstrip(" ,`")
    return events, rest


def _parse_multiline_object(lines: list[str], index: int, start: int) -> tuple[int, Any]:
    """Read an object over several lines: printed so, or broken by a terminal that is narrower than the line."""
    text = lines[index][start:]
    is_printed_so = text.rstrip() == "{" or text.rstrip().endswith((",", "{", "["))
    parts = [text]
    for taken, line in enumerate(lines[index + 1 : index + (_MOST_LINES if is_printed_so else _MOST_ROWS)], 2):
        if _FENCE.match(line) or line.startswith("{") or _has_event_after_text(line):
            break
        parts.append(line)
        if line.strip(" ,`").endswith("}"):
            events, rest = _parse_objects("".join(parts))
            if events and not rest.strip():
                return taken, events[0]
    return 1, None


def _has_event_after_text(line: str) -> bool:
    """Say whether a line has an event of its own, with other text before it."""
    start = line.find('{"')
    return 0 <= start <= _LONGEST_LINE_HEAD and bool(line[:start].strip()) and bool(_parse_objects(line[start:])[0])


def _explain_broken_json(text: str) -> str:
    try:
        _DECODER.raw_decode(text)
    except RecursionError:
        return "it is nested too deeply"
    except ValueError as error:
        if _CUT.search(text):
            return "it was shortened"
        position = getattr(error, "pos", 0)
        is_cut = position >= len(text.rstrip()) - 1 or str(error).startswith("Unterminated")
        return "it ends too early" if is_cut else f"no JSON from column {position + 1} on"
    return "it is no event"
