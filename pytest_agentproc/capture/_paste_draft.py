"""From a pasted log to the text of a draft: `parse_pasted_log` -> `parse_agent_log` -> steps, and comments."""

from __future__ import annotations

import re
from pathlib import PurePath
from textwrap import shorten
from typing import Any

from pytest_agentproc.capture._meaning import DraftStep
from pytest_agentproc.capture._paste import (
    PastedLogItem,
    ReportedRunEnd,
    find_reported_run_end,
    measure_time_between,
    parse_pasted_log,
)
from pytest_agentproc.capture._paste_content import (
    EVENT_READER_BY_DIALECT,
    MIN_SILENCE_NS,
    DraftScriptLine,
    ParsedAgentLog,
    parse_agent_log,
)
from pytest_agentproc.capture._wording import (
    format_comment_text,
    format_inline_yaml,
    format_step,
    format_time,
    format_yaml_text,
    round_to_two_digits,
)
from pytest_agentproc.errors import ScenarioError, ScenarioProblem

LOG_DIALECTS = (*EVENT_READER_BY_DIALECT, "raw")
"""The dialects of logs that can be read."""

_MAX_LOG_CHARACTERS = 4 * 1024**2
_MAX_QUOTED_LINES = 40
_MAX_SCENARIO_NAME_CHARACTERS = 100
_MIN_LONG_RUN_SILENCE_NS = 100_000_000_000
_MIN_LONG_TURN_SILENCE_NS = 3_500_000_000_000
"""Nanoseconds of silence in a run or in a turn from which on a supervisor's own limit would end what the log shows
alive.
"""
_EXTRA_WORK_TIME_NS = 60_000_000_000
"""Nanoseconds that an agent at work needs beyond the time for which its supervisor waited."""
_SAFE_SHARE_OF_SILENCE_LIMIT = 0.9
"""This part of a limit on silence is no silence that breaks it."""
_COMMAND_LINE_PATTERN = re.compile(
    r"(?:[$%] |\S+[$%#] |(?:[A-Z_]+=\S* )*"
    r"(?:claude|codex|gemini|opencode|pi|goose|npx|node|timeout|python3?|sh|bash|cat|env)"
    r"(?: [\w./-]+)* --?[A-Za-z])"
)
"""A line for a shell: with its prompt, or a known program with an option."""
_QUOTED_WORDS_PATTERN = re.compile(r"\"[^\"]*\"|'[^']*'")
_PROSE_AFTER_OPTION_PATTERN = re.compile(r" --?[A-Za-z].*(?: [a-z']{2,}){3}")
_PART_OF_EVENT_PATTERN = re.compile(r'^[\[{}\]"]|"\w+"\s*:|[{\[,]$')
"""A piece of an event that could not be read."""
_URL_PATTERN = re.compile(r"https?://[^\s<>()\[\]\"'`]+")


def draft_scenario_from_log(log: str, dialect: str, name: str) -> str:
    """Turn a pasted log into the text of a scenario, which loads and runs.

    Args:
        log: the log, with whatever stands around it.
        dialect: one of `LOG_DIALECTS`.
        name: what messages and the draft call the log.

    Raises:
        ScenarioError: the log is too long or empty, or has no event of the dialect; with file, line and column.
    """
    if len(log) > _MAX_LOG_CHARACTERS:
        raise _make_log_error(
            name,
            1,
            f"the log has {len(log)} characters: at most {_MAX_LOG_CHARACTERS} are read, cut it to what matters",
        )
    items = parse_pasted_log(log)
    if not items:
        raise _make_log_error(
            name, 1, "the log is empty: paste what the agent printed, with or without words around it"
        )
    reported = find_reported_run_end(items)
    if dialect == "raw":
        parsed = parse_raw_agent_log(items, reported.line if reported is not None else 0)
        items = [item for item in items if not item.is_fenced]
    else:
        parsed = parse_agent_log(items, dialect)
    parsed.longest = max(parsed.longest, _measure_last_silence(parsed, reported))
    is_missing = reported is not None and reported.kind == "missing"
    if not parsed.read and not is_missing:
        raise _make_unreadable_log_error(items, dialect, name)
    return "\n".join(_format_draft_lines(items, parsed, dialect, reported, name)) + "\n"


def parse_raw_agent_log(items: list[PastedLogItem], ending_line: int) -> ParsedAgentLog:
    """Take what stands in blocks of code for output; without a block, the lines from the first one with a time on.

    Args:
        items: what was read.
        ending_line: the line that says how the run ended, which the agent has not printed.
    """
    parsed = ParsedAgentLog("text")
    timed = next((item.line for item in items if item.at is not None), 0)
    is_fenced = any(item.is_fenced for item in items)
    for item in items:
        is_output = item.is_fenced if is_fenced else item.line >= timed
        if not is_output or item.line == ending_line or item.text.startswith("$ "):
            continue
        before, parsed.last_at = parsed.last_at, item.at or parsed.last_at
        gap = measure_time_between(before, item.at) if before is not None and item.at is not None else None
        if gap is not None and gap >= MIN_SILENCE_NS:
            parsed.longest = max(parsed.longest, gap)
            parsed.lines.append(DraftScriptLine(DraftStep("silence", gap)))
        parsed.lines.append(DraftScriptLine(DraftStep("raw", f"{item.glued}{item.text}\n")))
        parsed.read += 1
    return parsed


def _make_log_error(name: str, line: int, message: str) -> ScenarioError:
    return ScenarioError([ScenarioProblem(name, line, 1, message)])


def _make_unreadable_log_error(items: list[PastedLogItem], dialect: str, name: str) -> ScenarioError:
    """Say why nothing could be read, and which dialect it is if it is another."""
    events = [item for item in items if item.kind == "event"]
    broken = [item for item in items if item.kind == "broken"]
    if not events and broken:
        return _make_log_error(
            name, broken[0].line, f"no line is a whole event: {broken[0].why}: {format_comment_text(broken[0].text)}"
        )
    if not events:
        return _make_log_error(
            name, items[0].line, f"no line is an event of {dialect}: an event is an object of JSON, {{...}}"
        )
    others = [other for other in EVENT_READER_BY_DIALECT if other != dialect and parse_agent_log(items, other).read]
    remedy = f"it looks like {others[0]}, write --dialect {others[0]}" if others else "it is no dialect's that is known"
    return _make_log_error(name, events[0].line, f"no line is an event of {dialect}: {remedy}")


def _format_draft_lines(
    items: list[PastedLogItem], parsed: ParsedAgentLog, dialect: str, reported: ReportedRunEnd | None, name: str
) -> list[str]:
    words = [item for item in items if item.kind == "words"]
    source = next((found[0].rstrip(".,;:") for item in words if (found := _URL_PATTERN.search(item.text))), "")
    origin = format_comment_text(PurePath(name).name)
    lines = [f"# A draft, imported from {origin}: {_describe_read_counts(parsed)}. Read it before you trust it."]
    lines += [f"# {item.line}: {format_comment_text(item.text)}" for item in words[:_MAX_QUOTED_LINES]]
    if len(words) > _MAX_QUOTED_LINES:
        lines.append(f"# ... and {len(words) - _MAX_QUOTED_LINES} more lines of words")
    lines += [
        f"scenario: {format_yaml_text(_choose_scenario_name(words, reported, name))}",
        *([f"source: {format_yaml_text(source)}"] if source else []),
    ]
    is_missing = reported is not None and reported.kind == "missing" and not parsed.read
    lines.append(_format_agent_key(parsed, dialect, reported.why if reported is not None and is_missing else ""))
    lines += [f"continues: {format_inline_yaml(parsed.continues)}"] if parsed.continues else []
    lines += _format_policy_key(parsed, reported)
    if parsed.asked:
        lines.append(f"handler: {{permission: {(parsed.answers or ['never'])[-1]}}}")
    lines += _format_drive_section(parsed)
    if not is_missing:
        lines += _format_script_section(parsed, reported)
    return [*lines, *_format_expect_section(parsed, dialect, reported)]


def _describe_read_counts(parsed: ParsedAgentLog) -> str:
    unread = f", {parsed.unread} {'line' if parsed.unread == 1 else 'lines'} not" if parsed.unread else ""
    return f"{parsed.read} {'event' if parsed.read == 1 else 'events'} read{unread}"


def _choose_scenario_name(words: list[PastedLogItem], reported: ReportedRunEnd | None, name: str) -> str:
    """Take the first line of words that is a sentence of a person, or the one that says how the run ended."""
    for item in words:
        text = re.sub(r"^[#*\s>-]+|[*\s]+$", "", item.text)
        is_end = reported is not None and item.line == reported.line
        if not is_end and (_is_command_line(text) or _PART_OF_EVENT_PATTERN.search(text)):
            continue
        if re.search(r"[A-Za-z]{3}", text) and not (_URL_PATTERN.match(text) or text.startswith("$ ")):
            return shorten(format_comment_text(text), _MAX_SCENARIO_NAME_CHARACTERS, placeholder="...")
    return f"what {format_comment_text(PurePath(name).name)} reports"


def _is_command_line(text: str) -> bool:
    """Say whether a line was typed into a shell; `claude -p hangs after the result` is a sentence."""
    bare = _QUOTED_WORDS_PATTERN.sub("", text)
    return bool(_COMMAND_LINE_PATTERN.match(bare)) and not _PROSE_AFTER_OPTION_PATTERN.search(bare)


def _format_agent_key(parsed: ParsedAgentLog, dialect: str, why: str) -> str:
    if why:
        return f"agent: {{dialect: {dialect}, cannot_spawn: {why}}}"
    partials = "" if parsed.partials else ", partials: false"
    version = f", version: {parsed.version}" if parsed.version else ""
    return f"agent: {{dialect: {dialect}, mode: {parsed.mode}{version}{partials}}}"


def _has_last_turn_ended(parsed: ParsedAgentLog) -> bool:
    return bool(parsed.turns) and bool(parsed.turns[-1])


def _is_killed_too_early(parsed: ParsedAgentLog, reported: ReportedRunEnd | None) -> bool:
    """Say whether the supervisor killed an agent that worked silently, or was silent for less than the limit."""
    if reported is None or reported.kind != "killed" or not reported.after or _has_last_turn_ended(parsed):
        return False
    before, now = parsed.last_at, reported.at
    gap = measure_time_between(before, now) if before is not None and now is not None else None
    return parsed.is_working or (gap is not None and gap < reported.after * _SAFE_SHARE_OF_SILENCE_LIMIT)


def _is_question_unanswered(parsed: ParsedAgentLog, reported: ReportedRunEnd | None) -> bool:
    """Say whether an agent hangs because its only question has no answer."""
    last = next((line.step.name for line in reversed(parsed.lines) if line.step is not None), "")
    is_only = len(parsed.asked) == 1 and not parsed.answers
    return is_only and last == "ask" and reported is not None and reported.kind in ("hangs", "killed")


def _format_steps_after_kill(parsed: ParsedAgentLog, after: int) -> list[str]:
    """Continue where a supervisor has killed an agent at work: it works for longer than the supervisor waited."""
    silence = after + _EXTRA_WORK_TIME_NS if parsed.is_working else round(after * _SAFE_SHARE_OF_SILENCE_LIMIT)
    ends = [f"tool_done: {format_yaml_text(number)}" for number in sorted(parsed.running)]
    return [f"silence: {format_time(silence)}", *ends, *(["answer: done"] if parsed.mode != "text" else [])]


def _format_policy_key(parsed: ParsedAgentLog, reported: ReportedRunEnd | None) -> list[str]:
    """Give the limits under which the log can be as it is, and those that the reporter names."""
    limits: dict[str, str] = {}
    silence = "inactivity_timeout"
    is_early = _is_killed_too_early(parsed, reported)
    if reported is not None and (reported.after or 0) > parsed.longest and not _has_last_turn_ended(parsed):
        after = reported.after or 0
        if parsed.is_session:
            limits = (
                {} if is_early or _is_question_unanswered(parsed, reported) else {"prompt_timeout": format_time(after)}
            )
        else:
            limits[silence] = format_time(after)
            if parsed.is_working:
                limits["internal_tool_timeout"] = format_time(after + is_early * 2 * _EXTRA_WORK_TIME_NS)
    elif parsed.longest >= (_MIN_LONG_TURN_SILENCE_NS if parsed.is_session else _MIN_LONG_RUN_SILENCE_NS):
        longest = max(parsed.longest, round_to_two_digits(parsed.longest))  # the step has the rounded time
        limit = f"{longest // 1_000_000_000 + 60}s"
        names = ("prompt_timeout",) if parsed.is_session else (silence, "internal_tool_timeout")
        limits = dict.fromkeys(names, limit)
    return [f"policy: {{{', '.join(f'{name}: {limit}' for name, limit in limits.items())}}}"] if limits else []


def _format_drive_section(parsed: ParsedAgentLog) -> list[str]:
    lines = []
    for item in parsed.drive:
        name, _, value = item.partition(": ")
        prompt, _, after = name.partition(" after ")
        if name == "cancel":
            lines.append(f"  - {{cancel: {{}}, after: {format_time(int(value))}}}")
        elif after:
            lines.append(f"  - {{{prompt}: {format_inline_yaml(value)}, after: {format_time(int(after))}}}")
        else:
            lines.append(f"  - {name}: {value if name == 'wait_for' else format_yaml_text(value)}")
    return ["drive:", *lines] if lines else []


def _format_script_section(parsed: ParsedAgentLog, reported: ReportedRunEnd | None) -> list[str]:
    lines = [
        f"  # {format_comment_text(line.comment)}" if line.step is None else f"  - {format_step(line.step)}"
        for line in parsed.lines
    ]
    if reported is not None and (ending := _format_agent_end_steps(parsed, reported)):
        lines.append(f"  # reported in line {reported.line}: {format_comment_text(reported.words)}")
        lines += [f"  - {step}" for step in ending]
    has_steps = any(line.startswith("  - ") for line in lines)
    return ["script:", *lines] if has_steps else ["script: []", *lines]


def _format_agent_end_steps(parsed: ParsedAgentLog, reported: ReportedRunEnd) -> list[str]:
    if reported.kind == "missing":
        return []
    if _is_question_unanswered(parsed, reported):
        return ["answer: done"]
    if reported.after and _is_killed_too_early(parsed, reported):
        return _format_steps_after_kill(parsed, reported.after)
    if reported.kind in ("exits", "dies"):
        last = f"exit: {reported.code}" if reported.kind == "exits" else f"die: {reported.signal}"
        gap = _measure_last_silence(parsed, reported)
        return [*([f"silence: {format_time(gap)}"] if gap else []), last]
    return ["silence: for ever"]


def _measure_last_silence(parsed: ParsedAgentLog, reported: ReportedRunEnd | None) -> int:
    """Give the time from the last event to the end of the agent; after the end of its work it is the supervisor's."""
    if reported is None or reported.kind not in ("exits", "dies") or _has_last_turn_ended(parsed):
        return 0
    before, now = parsed.last_at, reported.at
    gap = measure_time_between(before, now) if before is not None and now is not None else None
    return gap if gap is not None and gap >= MIN_SILENCE_NS else 0


def _format_expect_section(parsed: ParsedAgentLog, dialect: str, reported: ReportedRunEnd | None) -> list[str]:
    expected = (
        _format_session_expectations(parsed, reported)
        if parsed.is_session
        else _format_run_expectations(parsed, dialect, reported)
    )
    return ["expect:", *(f"  {line}" for line in expected or ["leaks: []  # nothing else is known of the end"])]


def _format_run_expectations(parsed: ParsedAgentLog, dialect: str, reported: ReportedRunEnd | None) -> list[str]:
    kind = reported.kind if reported is not None else ""
    if kind == "missing" and not parsed.read:
        return ["outcome: spawn_failed"]
    status = []
    if reported is not None and kind == "exits":
        status = [f"agent_status: {reported.code}"]
    elif reported is not None and kind == "dies":
        status = [f"agent_status: {{signal: {reported.signal}}}"]
    if _has_last_turn_ended(parsed):
        end = parsed.turns[-1]
        has_text = end == "completed" and parsed.final is not None and dialect != "gemini"
        return [f"outcome: {end}", *([f"text: {format_yaml_text(parsed.final or '')}"] if has_text else []), *status]
    if _is_killed_too_early(parsed, reported):
        return ["outcome: completed"]
    if kind in ("hangs", "killed"):
        return ["outcome: inactive"]
    if kind == "exits" and dialect == "raw":
        return [f"outcome: {'failed' if reported is not None and reported.code else 'completed'}", *status]
    return ["outcome: incomplete", *status] if status else []


def _format_session_expectations(parsed: ParsedAgentLog, reported: ReportedRunEnd | None) -> list[str]:
    """Tell how each turn ended; the last one as it was reported, if it did not end."""
    kind = reported.kind if reported is not None else ""
    ends = {"hangs": "timed_out", "killed": "timed_out", "exits": "agent_lost", "dies": "agent_lost"}
    turns: list[Any] = []
    for number, end in enumerate(parsed.turns, 1):
        is_last = number == len(parsed.turns)
        is_cancelled = number == parsed.cancelled and (is_last or not end)
        ended = "cancelled" if is_cancelled else end
        outcome = ended or (ends.get(kind, "") if is_last else "")
        if is_last and (_is_killed_too_early(parsed, reported) or _is_question_unanswered(parsed, reported)):
            outcome = "completed"
        text = {"text": parsed.texts[number]} if outcome == "completed" and number in parsed.texts else {}
        turns.append({"outcome": outcome, **text} if outcome else {})
    known = list(map(format_inline_yaml, turns))
    while known and known[-1] == "{}":
        known.pop()
    answers = ["deny"] if _is_question_unanswered(parsed, reported) else parsed.answers
    pairs = [{"permission": name, "answer": answer} for name, answer in zip(parsed.asked, answers, strict=False)]
    is_whole = len(set(answers)) == 1 and len(answers) == len(parsed.asked)
    return [
        *([f"turns: [{', '.join(known)}]"] if known else []),
        *([f"asked: {format_inline_yaml(pairs)}"] if is_whole else []),
    ]
