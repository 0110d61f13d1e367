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

from pytest_agentproc.vocabulary import SIGNAL_NUMBER_BY_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


_SECOND_NS = 1_000_000_000
LONGEST_DURATION_NS = 3_000_000_000 * _SECOND_NS
"""A longer time is none that a log is about; the language reads times up to a century."""
_DAY_NS = 24 * 3600 * _SECOND_NS
_MAX_TIMESTAMP_SEARCH_CHARACTERS = 200
"""An instant stands in so many characters, and a number has no more digits."""

_NANOSECONDS_BY_UNIT = {"ms": 1_000_000, "s": _SECOND_NS, "m": 60 * _SECOND_NS, "min": 60 * _SECOND_NS, "": _SECOND_NS}

_DATE_AND_TIME_PATTERN = re.compile(
    r"(\d{4})[-/](\d\d)[-/](\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?\s*(Z|[+-]\d\d:?\d\d)?", re.ASCII
)
_TIME_OF_DAY_PATTERN = re.compile(r"(?<![\d:.+])(\d\d?):(\d\d):(\d\d)(?:[.,](\d{1,9}))?(?![\d:])", re.ASCII)
_ELAPSED_TIME_PATTERN = re.compile(
    r"\+(?:(\d{1,9}):)?(\d{1,9}):(\d\d)(?:\.(\d{1,9}))?(?![\d:])"
    r"|(?<![\d:.+])(\d{1,3}):(\d\d)\.(\d{1,9})(?![\d:])",
    re.ASCII,
)
_UNIX_TIME_PATTERN = re.compile(r"(?<![\d.])(1\d{9})(?:\.(\d{1,9})|(\d{3}))?(?![\d.])", re.ASCII)
_RELATIVE_TIME_PATTERN = re.compile(
    r"(?:(?<=^)|(?<=[\[(\s]))(?:[Tt]?\+)?(\d{1,15}(?:\.\d{1,30})?)\s*(ms|s|min|m)(?=[\])\s:|]|$)"
    r"|(?:(?<=^)|(?<=[\[(\s]))[Tt]?\+(\d{1,15}(?:\.\d{1,30})?)(?=[\])\s:|]|$)"
    r"|\[\s*(\d{1,15}\.\d{1,30})\]",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class LoggedInstant:
    """When something was printed: nanoseconds from the beginning that `base` names (date, clock or start)."""

    base: str
    ns: int


def find_logged_instant(head: str) -> LoggedInstant | None:
    """Find the instant in what stands before a line; None without one."""
    head = head[:_MAX_TIMESTAMP_SEARCH_CHARACTERS]
    if found := _DATE_AND_TIME_PATTERN.search(head):
        return _read_date_and_time(found)
    if found := _ELAPSED_TIME_PATTERN.search(head):
        hours, minutes, whole = (int(part or 0) for part in (found[1], found[2] or found[5], found[3] or found[6]))
        return LoggedInstant("start", _convert_time_of_day_to_ns(hours, minutes, whole, found[4] or found[7]))
    if found := _TIME_OF_DAY_PATTERN.search(head):
        hours, minutes, whole = (int(part) for part in found.groups()[:3])
        return LoggedInstant("clock", _convert_time_of_day_to_ns(hours, minutes, whole, found[4]))
    if found := _UNIX_TIME_PATTERN.search(head):
        return LoggedInstant("date", int(found[1]) * _SECOND_NS + _parse_second_fraction_to_ns(found[2] or found[3]))
    if found := _RELATIVE_TIME_PATTERN.search(head):
        number, unit = found[1] or found[3] or found[4], found[2] or ""
        return LoggedInstant("start", round(float(number) * _NANOSECONDS_BY_UNIT[unit]))
    return None


def measure_time_between(earlier: LoggedInstant, later: LoggedInstant) -> int | None:
    """Give the time between two instants in nanoseconds.

    Returns:
        None where they do not count from the same beginning, the log goes backwards, or the time between them is too
        long for a wait; a clock passes midnight.
    """
    if earlier.base != later.base:
        return None
    passed = later.ns - earlier.ns
    if passed < -_DAY_NS // 2 and later.base == "clock":
        passed += _DAY_NS
    return passed if 0 <= passed <= LONGEST_DURATION_NS else None


def _read_date_and_time(found: re.Match[str]) -> LoggedInstant | None:
    year, month, day, hours, minutes, whole = (int(part) for part in found.groups()[:6])
    try:
        moment = datetime(year, month, day, hours, minutes, whole, tzinfo=UTC)
    except ValueError:
        return None
    zone = found[8] or "Z"
    shift = 0 if zone == "Z" else int(zone[1:3]) * 3600 + int(zone[-2:]) * 60
    passed = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1)
    passed += shift if zone[0] == "-" else -shift
    return LoggedInstant("date", passed * _SECOND_NS + _parse_second_fraction_to_ns(found[7]))


def _convert_time_of_day_to_ns(hours: int, minutes: int, whole: int, part: str | None) -> int:
    return (hours * 3600 + minutes * 60 + whole) * _SECOND_NS + _parse_second_fraction_to_ns(part)


def _parse_second_fraction_to_ns(digits: str | None) -> int:
    return int((digits or "0").ljust(9, "0"))


_NANOSECONDS_BY_REPORTED_UNIT = {"ms": 1_000_000, "s": _SECOND_NS, "m": 60 * _SECOND_NS, "h": 3600 * _SECOND_NS}
_SIGNAL_EXIT_CODE_BASE = 128
_MAX_EXIT_CODE = 255


@dataclass(frozen=True, slots=True)
class ReportedRunEnd:
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
    at: LoggedInstant | None = None
    why: str = ""


def _read_reported_exit(found: re.Match[str]) -> ReportedRunEnd | None:
    code = int(found["code"])
    number = -code if code < -1 else code - _SIGNAL_EXIT_CODE_BASE  # Python prints the number of a signal with a minus
    name = next((name for name, known in SIGNAL_NUMBER_BY_NAME.items() if known == number), "")
    # Nobody can catch KILL, so nobody exits with its code: this is a shell's or a container's word.
    if name and (code < 0 or name == "KILL"):
        return ReportedRunEnd("dies", 0, "", signal=name)
    return ReportedRunEnd("exits", 0, "", code=code) if 0 <= code <= _MAX_EXIT_CODE else None


def _read_reported_death(found: re.Match[str]) -> ReportedRunEnd | None:
    name = found["signal"].upper().removeprefix("SIG")
    return ReportedRunEnd("dies", 0, "", signal=name) if name in SIGNAL_NUMBER_BY_NAME else None


def _read_reported_kill(found: re.Match[str]) -> ReportedRunEnd | None:
    unit = found["unit"].lower()
    size = _NANOSECONDS_BY_REPORTED_UNIT["ms" if unit.startswith(("ms", "milli")) else unit[0]]
    after = float(re.sub(r"[ ,_]", "", found["time"])) * size
    return ReportedRunEnd("killed", 0, "", after=round(after)) if after <= LONGEST_DURATION_NS else None


def _read_reported_hang(found: re.Match[str]) -> ReportedRunEnd | None:
    """Take the time for which a hang was watched for the limit of the caller."""
    killed = _read_reported_kill(found)
    return None if killed is None else replace(killed, kind="hangs")


_SPAWN_FAILURE_BY_ERRNO_NAME = {
    "ENOENT": "not_found",
    "EACCES": "not_executable",
    "ENOEXEC": "wrong_format",
    "ENOMEM": "no_memory",
    "EMFILE": "no_descriptors",
}


def _read_reported_spawn_failure(found: re.Match[str]) -> ReportedRunEnd:
    return ReportedRunEnd("missing", 0, "", why=_SPAWN_FAILURE_BY_ERRNO_NAME[found["error"] or "ENOENT"])


_DURATION_PATTERN = (
    r"(?P<time>\d[\d ,_]*(?:\.\d+)?)\s*-?(?P<unit>ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hours?)\b"
)
_EXIT_CODE_PATTERN = r"[\s:=`*(\"']*(?P<code>-?\d{1,3})\b"
_KILL_WORDS_PATTERN = "killed|kills|terminated|terminates|timed out|times out|timeout"
_SILENCE_WORDS_PATTERN = r"no (?:\w+ )?(?:output|stdout|activity|events?)|silent|idle|inactive"
_HANG_WORDS_PATTERN = (
    r"\b(?:hangs?|hung|hanging|gets? stuck|is stuck|stuck (?:for ?ever|here|there)|nothing happens"
    r"|never (?:exits?|returns?|finishes|ends|completes|terminates)"
    r"|(?:does not|doesn't|did not|didn't|won't|will not) (?:exit|return|terminate|finish|end)"
    r"|(?:blocks?|waits?|lives? on|stays|remains alive|runs on) (?:for ?ever|indefinitely)"
    r"|(?:remains?|remained|stays|stayed|still) (?:alive|running)"
    r"|(?:had|has|have) to (?:be )?(?:kill(?:ed)?|reclaim(?:ed)?))\b"
)
_RUN_END_PHRASES: tuple[tuple[str, Callable[[re.Match[str]], ReportedRunEnd | None]], ...] = (
    (
        rf"\bspawn\b.*\b(?P<error>{'|'.join(_SPAWN_FAILURE_BY_ERRNO_NAME)})\b|\bcommand not found\b",
        _read_reported_spawn_failure,
    ),
    (rf"\b(?:{_KILL_WORDS_PATTERN})\b.{{0,40}}?\b(?:after|at)\s.{{0,12}}?{_DURATION_PATTERN}", _read_reported_kill),
    (
        rf"\b(?:{_SILENCE_WORDS_PATTERN})\s(?:for|after)\s.{{0,6}}?{_DURATION_PATTERN}.{{0,60}}?\b(?:kill|terminat|SIGTERM|SIGKILL)",
        _read_reported_kill,
    ),
    (r"(?<!-)\bsignal\b[\s=:\"'`]+(?P<signal>(?:SIG)?[A-Z]{3,6}[12]?)\b", _read_reported_death),
    (
        r"\b(?:killed|died|dies|crashed|crashes|terminated)\b.{0,20}?\b(?P<signal>SIG[A-Z]{3,6}[12]?)\b",
        _read_reported_death,
    ),
    (r"\b(?P<signal>SIGSEGV|SIGABRT|SIGBUS|SIGILL)\b", _read_reported_death),
    (r"\bsegmentation fault\b", lambda _: ReportedRunEnd("dies", 0, "", signal="SEGV")),
    (rf"\bexit(?:s|ed|ing)?(?:[\s,:(]+(?:code|status|with|value))*{_EXIT_CODE_PATTERN}", _read_reported_exit),
    (
        rf"\b(?:exit[ _-]?code|return ?code|exit[ _-]?status|rc)\b[\"'`*]*(?:\s+(?:is|was|of))?{_EXIT_CODE_PATTERN}",
        _read_reported_exit,
    ),
    (
        rf"\b(?:(?:still|been|is|was) running|remains? alive) (?:for|after) .{{0,12}}?{_DURATION_PATTERN}",
        _read_reported_hang,
    ),
    (_HANG_WORDS_PATTERN, lambda _: ReportedRunEnd("hangs", 0, "")),
)
_SHELL_TIMEOUT_PATTERN = re.compile(
    r"\btimeout\s+(?:(?:-[ks]\s+\S+|-\S+)\s+)*(?P<time>\d+(?:\.\d+)?)(?P<unit>[smh]?)\s+\S"
)
"""A command line of the shell that ends its command after a limit."""
_ECHO_EXIT_CODE_PATTERN = re.compile(r"\becho \"?\$\?\"?$")
_SHELL_TIMEOUT_EXIT_CODE = 124
"""The code of a shell's `timeout` that has ended its command."""
_KILL_SIGNAL_NAMES_AND_NUMBERS = (
    "INT",
    "KILL",
    "TERM",
    *(SIGNAL_NUMBER_BY_NAME[name] for name in ("INT", "KILL", "TERM")),
)
"""The signals with which a supervisor kills, by name and by number."""
_NEGATION_BEFORE_PHRASE_PATTERN = re.compile(
    r"\b(?:no longer|not|never|without|should(?: not)?|expect(?:ed)?|would|could|instead of|if it|used to|fixed)"
    r"[^\w,.;:]+(?:\w+[^\w,.;:]+){0,2}$",
    re.IGNORECASE,
)
_END_KINDS_BY_PRIORITY = ("missing", "dies", "exits", "killed", "hangs")
"""Which of several is taken: what happened to the process, before what somebody felt."""


def find_reported_run_end(items: Iterable[PastedLogItem]) -> ReportedRunEnd | None:
    """Find what the words of a log say of the end.

    Returns:
        the strongest of what is said; of several the last. None: nothing in the table's words.
    """
    words = [item for item in items if item.kind == "words"]
    found = [reported for item in words for reported in _find_reported_ends_in_line(item)] + _find_echoed_exit_code(
        words
    )
    last = {reported.kind: reported for reported in found}
    best = next((last[kind] for kind in _END_KINDS_BY_PRIORITY if kind in last), None)
    if best is None:
        return None
    if best.code == _SHELL_TIMEOUT_EXIT_CODE:
        return _read_shell_timeout_end(best, words)
    if "killed" in last and (best.signal or best.code - _SIGNAL_EXIT_CODE_BASE) in _KILL_SIGNAL_NAMES_AND_NUMBERS:
        best = last["killed"]  # the agent died of it
    return replace(best, kind="hangs") if best.kind == "killed" and "hangs" in last else best


def _find_echoed_exit_code(words: list[PastedLogItem]) -> list[ReportedRunEnd]:
    """Find the code that a shell has printed for `echo $?`, alone on a line."""
    is_asked = False
    for item in words:
        if is_asked and (found := re.fullmatch(_EXIT_CODE_PATTERN, item.text)):
            meant = _read_reported_exit(found)
            return [replace(meant, line=item.line, words=item.text, at=item.at)] if meant else []
        is_asked = is_asked or bool(_ECHO_EXIT_CODE_PATTERN.search(item.text))
    return []


def _read_shell_timeout_end(exit_: ReportedRunEnd, words: list[PastedLogItem]) -> ReportedRunEnd:
    """Take the code 124 for the end of a limit where a command line of the log sets one with `timeout`."""
    for item in words:
        if limit := _SHELL_TIMEOUT_PATTERN.search(item.text):
            after = float(limit["time"]) * _NANOSECONDS_BY_REPORTED_UNIT[limit["unit"] or "s"]
            return replace(exit_, kind="hangs", code=0, after=round(min(after, LONGEST_DURATION_NS)))
    return exit_


def _find_reported_ends_in_line(item: PastedLogItem) -> list[ReportedRunEnd]:
    ends: list[ReportedRunEnd] = []
    for pattern, meaning in _RUN_END_PHRASES:
        for found in re.finditer(pattern, item.text, re.IGNORECASE):
            meant = None if _NEGATION_BEFORE_PHRASE_PATTERN.search(item.text[: found.start()]) else meaning(found)
            if meant is not None:
                ends.append(replace(meant, line=item.line, words=item.text, at=item.at))
    return ends


_ESC_CHARACTER_PATTERN = r"(?:\x1b|\u241b|\^\[|\\x1[bB]|\\u001[bB]|\\033|\\e)"
_BEL_CHARACTER_PATTERN = r"(?:\x07|\u2407|\^G|\\x07|\\u0007|\\007|\\a)"
_TITLE_SEQUENCE_PATTERN = r"\][0-9]{1,4};"
_CLEAR_SCREEN_SEQUENCE_PATTERN = r"\[(?:\?[0-9]+[hl]|[0-9]*[JKH])"
"""How a title, a notification or a cleared screen begins: enough to know it in a log that has lost its ESC."""
_ESCAPES_AT_LINE_END_PATTERN = re.compile(
    rf"(?:{_ESC_CHARACTER_PATTERN}\[[0-?]*[ -/]*[@-~]|{_CLEAR_SCREEN_SEQUENCE_PATTERN}"
    rf"|{_ESC_CHARACTER_PATTERN}?{_TITLE_SEQUENCE_PATTERN}[^{{]*+)++$"
)
_COLOUR_SEQUENCES_PATTERN = re.compile(r"(?:\x1b\[[0-9;]*m)+")


def find_escapes_before_event(head: str) -> str:
    """Find the escape sequences that stand directly before an event, and give them as a program prints them.

    A log may have ESC and BEL as they are, as letters (such as `^[`), or not at all. Colours are the log's own.
    """
    found = _ESCAPES_AT_LINE_END_PATTERN.search(head)
    if found is None:
        return ""
    text = re.sub(_BEL_CHARACTER_PATTERN, "\x07", re.sub(_ESC_CHARACTER_PATTERN, "\x1b", found[0]))
    text = re.sub(rf"(?<!\x1b)(?={_TITLE_SEQUENCE_PATTERN}|{_CLEAR_SCREEN_SEQUENCE_PATTERN})", "\x1b", text)
    text = re.sub(r"(\x1b\][^\x07\x1b]*)(?=\x1b[^\\]|$)", "\\1\x07", text)
    return "" if _COLOUR_SEQUENCES_PATTERN.fullmatch(text) or found[0][-1].isspace() else text


_QUOTED_LINE_PREFIX = re.compile(r"^(?:\s{0,3}>\s?)+")
_CODE_FENCE_PATTERN = re.compile(r"^\s{0,3}(?:```|~~~)")
_TRUNCATION_MARK_PATTERN = re.compile(
    r"(?:…|\.\.\.|\[(?:truncated|\.\.\.|snip)|<truncated|\(truncated|chars? (?:more|omitted))", re.IGNORECASE
)
_JSON_OBJECT_START_PATTERN = re.compile(r'\{\s*(?:\\?"|\.\.\.|…|$)')
_LEADING_TIMESTAMP_PATTERN = re.compile(
    r"(?:[A-Z]{4,8}\s+)?[\[(]?\s*[\dT:.,+/Z-]+(?:\s[\d:.,]+Z?)?(?:ms|s)?\b[\])]?", re.ASCII
)
"""The time of a logger begins the line. A time within the words is about something else."""
_MAX_CHARACTERS_BEFORE_EVENT = 120
_MAX_LINES_PER_EVENT = 400
"""Lines of one event that is printed over many."""
_MAX_TERMINAL_ROWS_PER_LINE = 60
"""Rows of a terminal over which one line was broken."""
_LENIENT_JSON_DECODER = json.JSONDecoder(strict=False)


@dataclass(frozen=True, slots=True)
class PastedLogItem:
    """One item in a log.

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
    at: LoggedInstant | None = None
    is_fenced: bool = False
    why: str = ""
    glued: str = ""


def parse_pasted_log(log: str) -> list[PastedLogItem]:
    """Read a log, line by line; blank lines, fences and quotation marks are left out."""
    lines = [_QUOTED_LINE_PREFIX.sub("", line.rstrip()) for line in log.replace("\r\n", "\n").split("\n")]
    found: list[PastedLogItem] = []
    number, is_fenced = 0, False
    while number < len(lines):
        line = lines[number]
        if _CODE_FENCE_PATTERN.match(line):
            is_fenced = not is_fenced
            number += 1
            continue
        taken, items = _read_items_at_line(lines, number, is_fenced=is_fenced)
        if found and found[-1].kind == "words" and found[-1].line == number and items and items[0].at is None:
            items = [replace(item, at=found[-1].at) if item.kind == "event" else item for item in items]
        found += items
        number += taken
    return found


def _read_items_at_line(lines: list[str], index: int, *, is_fenced: bool) -> tuple[int, list[PastedLogItem]]:
    """Read what begins on a line; give how many lines it takes, too."""
    line = lines[index]
    start = line.find("{")
    if start < 0 or start > _MAX_CHARACTERS_BEFORE_EVENT or not _JSON_OBJECT_START_PATTERN.match(line, start):
        words = line.strip()
        first = _LEADING_TIMESTAMP_PATTERN.match(words)
        at = find_logged_instant(first[0]) if first else None
        return 1, [PastedLogItem(index + 1, "words", words, at=at, is_fenced=is_fenced)] if words else []
    head = line[:start]
    about: dict[str, Any] = {"at": find_logged_instant(head), "is_fenced": is_fenced}
    events, rest = _parse_json_objects(_unescape_quoted_json_object(line[start:]))
    if events:
        items = [PastedLogItem(index + 1, "event", line[start:], event, **about) for event in events]
        items[0] = replace(items[0], glued=find_escapes_before_event(head))
        if _JSON_OBJECT_START_PATTERN.match(rest):
            items.append(PastedLogItem(index + 1, "broken", rest, why=_explain_broken_json(rest), **about))
        return 1, items
    taken, whole = _parse_multiline_json_object(lines, index, start)
    if whole is not None:
        text = json.dumps(whole, ensure_ascii=False)
        return taken, [PastedLogItem(index + 1, "event", text, whole, glued=find_escapes_before_event(head), **about)]
    return 1, [PastedLogItem(index + 1, "broken", line[start:], why=_explain_broken_json(line[start:]), **about)]


def _unescape_quoted_json_object(text: str) -> str:
    """Give an object that a logger has printed within quotes, with a backslash before each quote of its own."""
    if not text.startswith('{\\"'):
        return text
    try:
        return str(_LENIENT_JSON_DECODER.decode(f'"{text[: text.rindex("}") + 1]}"'))
    except ValueError:
        return text


def _parse_json_objects(text: str) -> tuple[list[Any], str]:
    """Read all objects of a line, one after the other; give the rest of the line, too."""
    events: list[Any] = []
    rest = text
    while rest.startswith("{"):
        try:
            event, end = _LENIENT_JSON_DECODER.raw_decode(rest)
        except (ValueError, RecursionError):
            break
        events.append(event)
        rest = rest[end:].lstrip(" ,`")
    return events, rest


def _parse_multiline_json_object(lines: list[str], index: int, start: int) -> tuple[int, Any]:
    """Read an object over several lines: printed so, or broken by a terminal that is narrower than the line."""
    text = lines[index][start:]
    is_printed_so = text.rstrip() == "{" or text.rstrip().endswith((",", "{", "["))
    parts = [text]
    for taken, line in enumerate(
        lines[index + 1 : index + (_MAX_LINES_PER_EVENT if is_printed_so else _MAX_TERMINAL_ROWS_PER_LINE)], 2
    ):
        if _CODE_FENCE_PATTERN.match(line) or line.startswith("{") or _has_event_after_text(line):
            break
        parts.append(line)
        if line.strip(" ,`").endswith("}"):
            events, rest = _parse_json_objects("".join(parts))
            if events and not rest.strip():
                return taken, events[0]
    return 1, None


def _has_event_after_text(line: str) -> bool:
    """Say whether a line has an event of its own, with other text before it."""
    start = line.find('{"')
    return (
        0 <= start <= _MAX_CHARACTERS_BEFORE_EVENT
        and bool(line[:start].strip())
        and not line[:start].rstrip().endswith('":')  # a value of the object that began above
        and bool(_parse_json_objects(line[start:])[0])
    )


def _explain_broken_json(text: str) -> str:
    try:
        _LENIENT_JSON_DECODER.raw_decode(text)
    except RecursionError:
        return "it is nested too deeply"
    except ValueError as error:
        if _TRUNCATION_MARK_PATTERN.search(text):
            return "it was shortened"
        position = getattr(error, "pos", 0)
        is_cut = position >= len(text.rstrip()) - 1 or str(error).startswith("Unterminated")
        return "it ends too early" if is_cut else f"no JSON from column {position + 1} on"
    return "it is no event"
