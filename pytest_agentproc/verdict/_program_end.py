"""Owns how the end of a program is read that supervised, or that was to. Asks for no expectation, and judges none.

Both readings explain a failure that is there already. A program may print what it likes, and exit with any code: that
alone is no failure.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_agentproc.events import FieldMissing, ProgramEnded
from pytest_agentproc.verdict._facts import was_any_agent_started
from pytest_agentproc.verdict._rows import CheckRow, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_agentproc.plays import PlayResult
    from pytest_agentproc.record import Record


_VERDICTS_TO_EXPLAIN = (Verdict.FAILED, Verdict.UNDECIDED, Verdict.NOT_EXERCISED)
_CHECKS_OF_RECORD_ONLY = ("leaks", "unrelated_processes")
_HOW_TO_START_THE_AGENT = (
    "have it start {agent}; an order that it cannot take is stated by declines = {exit_code = ...}"
)
_TOO_LONG_COMMAND_PATTERN = re.compile(r"\bE2BIG\b|[Aa]rgument list too long|\(os error 7\)")
"""What programs print as an `execve` fails so: Node and Go, then shells and Python, then Rust. It is a start that was
tried, and no driver that starts none."""
_HOW_TO_GIVE_A_LONG_PROMPT = "one argument holds 128 KiB at most: give a long prompt on stdin"
_CRASH_SIGNAL_PATTERN = re.compile(r"dies of (ILL|TRAP|ABRT|BUS|FPE|SEGV|SYS)")
_PYTHON_FRAME_START = '  File "'
_PYTHON_ERROR_PATTERN = re.compile(
    r' +File "[^"\n]+", line \d+, in .+\n(?: +.*\n)*(?P<error>[A-Za-z_][\w.]*(?:: .*)?)\s*\Z'
)
_UNCAUGHT_ERROR_PATTERNS = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        r"^(?P<error>\w*Error\b.*)\n(?: +at .*\n)+[\s\S]*^Node\.js v\S+\s*\Z",
        r"^(?P<error>panic: .*)$(?=[\s\S]*^goroutine )",
        r"^(?P<error>thread '.*' (?:\(\d+\) )?panicked at .*)$",
        r"^[^\s:]+:\d+:in [`'].+?': (?P<error>.*\([A-Z]\w*(?:::\w+)*\))$",  # Ruby
        r"^(?:PHP )?Fatal error: +Uncaught (?P<error>.*?)(?: in \S+:\d+)?$(?=[\s\S]*^Stack trace:$)",
        r"^Exception in thread \".*\" (?P<error>[\w.$]+.*)$(?=\n\s+at )",  # Java
    )
)


def find_program_end(record: Record) -> ProgramEnded | None:
    """Give how the program ended; None: it has not, or the supervisor is none."""
    return next((event for event in record.events if isinstance(event, ProgramEnded)), None)


def explain_program_failure(played: PlayResult, rows: list[CheckRow]) -> list[CheckRow]:
    """Say what kept a program from an answer, if it failed: it never came to start an agent, or it crashed."""
    end = find_program_end(played.record)
    level = played.bound.scenario.level
    if end is None or not end.status or all(row.verdict not in _VERDICTS_TO_EXPLAIN for row in rows):
        return rows
    is_unstarted = not was_any_agent_started(played) and played.bound.scenario.cannot_spawn is None
    if is_unstarted and _TOO_LONG_COMMAND_PATTERN.search(end.stderr):
        text = f"it {end.program}: the kernel refused its start, as the command line is too long"
        text += f"{_find_error_line(end.stderr)}\n{_HOW_TO_GIVE_A_LONG_PROMPT}"
        return [
            CheckRow("answer", 0, "a started agent", text, Verdict.FAILED, level=level),
            *_mark_not_exercised(rows, _VERDICTS_TO_EXPLAIN),
        ]
    if is_unstarted:
        text = f"it {end.program} before it starts an agent{_find_error_line(end.stderr)}\n{_HOW_TO_START_THE_AGENT}"
        return [
            CheckRow("answer", 0, "a started agent", text, Verdict.ADAPTER_ERROR, level=level),
            *_mark_not_exercised(rows, _VERDICTS_TO_EXPLAIN),
        ]
    crash = _describe_crash(end)
    open_verdicts = (Verdict.FAILED, Verdict.UNDECIDED) if _lacks_outcome(played.record) else (Verdict.FAILED,)
    if crash and any(row.verdict in open_verdicts and row.key not in _CHECKS_OF_RECORD_ONLY for row in rows):
        return [
            CheckRow("answer", 0, "an answer", crash, Verdict.CRASHED, level=level),
            *_mark_not_exercised(rows, open_verdicts),
        ]
    return rows


def _lacks_outcome(record: Record) -> bool:
    """Say whether the program was to report an outcome, and ended without a report."""
    return any(isinstance(event, FieldMissing) and event.unsaid == "outcome" for event in record.events)


def _mark_not_exercised(rows: Sequence[CheckRow], verdicts: Sequence[Verdict]) -> list[CheckRow]:
    return [
        replace(row, verdict=Verdict.NOT_EXERCISED, hint="")
        if row.verdict in verdicts and row.key not in _CHECKS_OF_RECORD_ONLY
        else row
        for row in rows
    ]


def _find_error_line(stderr: str) -> str:
    """Give the line of stderr that speaks of an error, else its last one."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    found = next((line for line in lines if re.match(r"\w*[Ee]rror\b", line)), lines[-1] if lines else "")
    return f": {found}" if found else ""


def _describe_crash(end: ProgramEnded) -> str:
    text = end.stderr
    # From the last frame on: a log with many tracebacks is long, and each of its frames would be tried.
    found = _PYTHON_ERROR_PATTERN.match(text, max(text.rfind(_PYTHON_FRAME_START), 0))
    found = found or next((found for pattern in _UNCAUGHT_ERROR_PATTERNS if (found := pattern.search(text))), None)
    if found is not None:
        return f"it {end.program}: {found['error']}"
    return f"it {end.program}" if _CRASH_SIGNAL_PATTERN.fullmatch(end.program) else ""
