"""From a pasted log to the text of a draft: `read_paste` -> the content of the conversation -> steps, and comments."""

from __future__ import annotations

import re
from pathlib import PurePath
from textwrap import shorten
from typing import Any

from pytest_agentproc.capture._paste import (
    PastedItem,
    ReportedEnd,
    find_reported_end,
    measure_gap,
    read_paste,
)
from pytest_agentproc.capture._paste_content import (
    READERS,
    SMALLEST_GAP,
    DraftContent,
    build_content,
    build_raw_content,
)
from pytest_agentproc.capture._wording import format_comment, format_inline, format_step, format_text, format_time
from pytest_agentproc.errors import ScenarioError, ScenarioProblem

DIALECTS = (*READERS, "raw")
"""The dialects of logs that can be read."""

_LARGEST = 4 * 1024**2
_MOST_WORDS = 40
_LONGEST_CLAIM = 100
_LONG_SILENCE = 100_000_000_000
_LONG_TURN = 3_500_000_000_000
"""Nanoseconds of silence in a run or in a turn from which on a supervisor's own limit would end what the log shows
alive.
"""
_LONGER = 60_000_000_000
"""Nanoseconds that an agent at work needs beyond the time for which its supervisor waited."""
_MOST_OF_IT = 0.9
"""This part of a limit on silence is no silence that breaks it."""
_URL = re.compile(r"https?://[^\s<>()\[\]\"'`]+")


def draft_pasted_log(log: str, dialect: str, name: str) -> str:
    """Turn a pasted log into the text of a scenario, which loads and runs.

    Args:
        log: the log, with whatever stands around it.
        dialect: one of `DIALECTS`.
        name: what messages and the draft call the log.

    Raises:
        ScenarioError: the log is too long or empty, or has no event of the dialect; with file, line and column.
    """
    if len(log) > _LARGEST:
        raise _make_error(
            name, 1, f"the log has {len(log)} characters: at most {_LARGEST} are read, cut it to what matters"
        )
    things = read_paste(log)
    if not things:
        raise _make_error(name, 1, "the log is empty: paste what the agent printed, with or without words around it")
    reported = find_reported_end(things)
    if dialect == "raw":
        content = build_raw_content(things, reported.line if reported is not None else 0)
        things = [thing for thing in things if not thing.is_fenced]
    else:
        content = build_content(things, dialect)
    content.longest = max(content.longest, _measure_last_silence(content, reported))
    is_missing = reported is not None and reported.kind == "missing"
    if not content.read and not is_missing:
        raise _explain_unreadable(things, dialect, name)
    return "\n".join(_format_draft(things, content, dialect, reported, name)) + "\n"


def _make_error(name: str, line: int, message: str) -> ScenarioError:
    return ScenarioError([ScenarioProblem(name, line, 1, message)])


def _explain_unreadable(things: list[PastedItem], dialect: str, name: str) -> ScenarioError:
    """Say why nothing could be read, and which dialect it is if it is another."""
    events = [thing for thing in things if thing.kind == "event"]
    broken = [thing for thing in things if thing.kind == "broken"]
    if not events and broken:
        return _make_error(
            name, broken[0].line, f"no line is a whole event: {broken[0].why}: {format_comment(broken[0].text)}"
        )
    if not events:
        return _make_error(
            name, things[0].line, f"no line is an event of {dialect}: an event is an object of JSON, {{...}}"
        )
    others = [other for other in READERS if other != dialect and build_content(things, other).read]
    remedy = f"it looks like {others[0]}, write --dialect {others[0]}" if others else "it is no dialect's that is known"
    return _make_error(name, events[0].line, f"no line is an event of {dialect}: {remedy}")


def _format_draft(
    things: list[PastedItem], content: DraftContent, dialect: str, reported: ReportedEnd | None, name: str
) -> list[str]:
    words = [thing for thing in things if thing.kind == "words"]
    source = next((found[0].rstrip(".,;:") for thing in words if (found := _URL.search(thing.text))), "")
    origin = format_comment(PurePath(name).name)
    lines = [f"# A draft, imported from {origin}: {_describe_read_counts(content)}. Read it before you trust it."]
    lines += [f"# {thing.line}: {format_comment(thing.text)}" for thing in words[:_MOST_WORDS]]
    if len(words) > _MOST_WORDS:
        lines.append(f"# ... and {len(words) - _MOST_WORDS} more lines of words")
    lines += [
        f"scenario: {format_text(_find_claim_in_words(words, name))}",
        *([f"source: {format_text(source)}"] if source else []),
    ]
    is_missing = reported is not None and reported.kind == "missing" and not content.read
    lines.append(_format_agent(content, dialect, reported.why if reported is not None and is_missing else ""))
    lines += [f"continues: {format_inline(content.continues)}"] if content.continues else []
    lines += _format_policy(content, reported)
    if content.asked:
        lines.append(f"handler: {{permission: {(content.answers or ['never'])[-1]}}}")
    lines += _format_drive(content)
    if not is_missing:
        lines += _format_script(content, reported)
    return [*lines, *_format_expect(content, dialect, reported)]


def _describe_read_counts(content: DraftContent) -> str:
    unread = f", {content.unread} {'line' if content.unread == 1 else 'lines'} not" if content.unread else ""
    return f"{content.read} {'event' if content.read == 1 else 'events'} read{unread}"


def _find_claim_in_words(words: list[PastedItem], name: str) -> str:
    for thing in words:
        said = re.sub(r"^[#*\s>-]+|[*\s]+$", "", thing.text)
        if re.search(r"[A-Za-z]{3}", said) and not (_URL.match(said) or said.startswith("$ ")):
            return shorten(format_comment(said), _LONGEST_CLAIM, placeholder="...")
    return f"what {format_comment(PurePath(name).name)} reports"


def _format_agent(content: DraftContent, dialect: str, why: str) -> str:
    if why:
        return f"agent: {{dialect: {dialect}, cannot_spawn: {why}}}"
    partials = "" if content.partials else ", partials: false"
    return f"agent: {{dialect: {dialect}, mode: {content.mode}{partials}}}"


def _has_last_turn_ended(content: DraftContent) -> bool:
    return bool(content.turns) and bool(content.turns[-1])


def _is_killed_too_early(content: DraftContent, reported: ReportedEnd | None) -> bool:
    """Say whether the supervisor killed an agent that worked silently, or was silent for less than the limit."""
    if reported is None or reported.kind != "killed" or not reported.after or _has_last_turn_ended(content):
        return False
    before, now = content.last_at, reported.at
    gap = measure_gap(before, now) if before is not None and now is not None else None
    return content.is_working or (gap is not None and gap < reported.after * _MOST_OF_IT)


def _is_question_unanswered(content: DraftContent, reported: ReportedEnd | None) -> bool:
    """Say whether an agent hangs because its only question has no answer."""
    last = next((line.step.name for line in reversed(content.lines) if line.step is not None), "")
    is_only = len(content.asked) == 1 and not content.answers
    return is_only and last == "ask" and reported is not None and reported.kind in ("hangs", "killed")


def _format_steps_after_kill(content: DraftContent, after: int) -> list[str]:
    """Continue where a supervisor has killed an agent at work: it works for longer than the supervisor waited."""
    silence = after + _LONGER if content.is_working else round(after * _MOST_OF_IT)
    ends = [f"tool_done: {format_text(number)}" for number in sorted(content.running)]
    return [f"silence: {format_time(silence)}", *ends, *(["answer: done"] if content.mode != "text" else [])]


def _format_policy(content: DraftContent, reported: ReportedEnd | None) -> list[str]:
    """Give the limits under which the log can be as it is, and those that the reporter names."""
    limits: dict[str, str] = {}
    silence = "inactivity_timeout"
    is_early = _is_killed_too_early(content, reported)
    if reported is not None and (reported.after or 0) > content.longest and not _has_last_turn_ended(content):
        after = reported.after or 0
        if content.is_session:
            limits = (
                {} if is_early or _is_question_unanswered(content, reported) else {"prompt_timeout": format_time(after)}
            )
        else:
            limits[silence] = format_time(after)
            if content.is_working:
                limits["internal_tool_timeout"] = format_time(after + is_early * 2 * _LONGER)
    elif content.longest >= (_LONG_TURN if content.is_session else _LONG_SILENCE):
        limit = f"{content.longest // 1_000_000_000 + 60}s"
        names = ("prompt_timeout",) if content.is_session else (silence, "internal_tool_timeout")
        limits = dict.fromkeys(names, limit)
    return [f"policy: {{{', '.join(f'{name}: {limit}' for name, limit in limits.items())}}}"] if limits else []


def _format_drive(content: DraftContent) -> list[str]:
    lines = []
    for item in content.drive:
        name, _, value = item.partition(": ")
        prompt, _, after = name.partition(" after ")
        if name == "cancel":
            lines.append(f"  - {{cancel: {{}}, after: {format_time(int(value))}}}")
        elif after:
            lines.append(f"  - {{{prompt}: {format_inline(value)}, after: {format_time(int(after))}}}")
        else:
            lines.append(f"  - {name}: {value if name == 'wait_for' else format_text(value)}")
    return ["drive:", *lines] if lines else []


def _format_script(content: DraftContent, reported: ReportedEnd | None) -> list[str]:
    lines = [
        f"  # {format_comment(line.comment)}" if line.step is None else f"  - {format_step(line.step)}"
        for line in content.lines
    ]
    if reported is not None and (ending := _format_agent_end(content, reported)):
        lines.append(f"  # reported in line {reported.line}: {format_comment(reported.words)}")
        lines += [f"  - {step}" for step in ending]
    has_steps = any(line.startswith("  - ") for line in lines)
    return ["script:", *lines] if has_steps else ["script: []", *lines]


def _format_agent_end(content: DraftContent, reported: ReportedEnd) -> list[str]:
    if reported.kind == "missing":
        return []
    if _is_question_unanswered(content, reported):
        return ["answer: done"]
    if reported.after and _is_killed_too_early(content, reported):
        return _format_steps_after_kill(content, reported.after)
    if reported.kind in ("exits", "dies"):
        last = f"exit: {reported.code}" if reported.kind == "exits" else f"die: {reported.signal}"
        gap = _measure_last_silence(content, reported)
        return [*([f"silence: {format_time(gap)}"] if gap else []), last]
    return ["linger: for ever" if _has_last_turn_ended(content) else "silence: for ever"]


def _measure_last_silence(content: DraftContent, reported: ReportedEnd | None) -> int:
    """Give the time from the last event to the end of the agent; after the end of its work it is the supervisor's."""
    if reported is None or reported.kind not in ("exits", "dies") or _has_last_turn_ended(content):
        return 0
    before, now = content.last_at, reported.at
    gap = measure_gap(before, now) if before is not None and now is not None else None
    return gap if gap is not None and gap >= SMALLEST_GAP else 0


def _format_expect(content: DraftContent, dialect: str, reported: ReportedEnd | None) -> list[str]:
    expected = (
        _format_session_expect(content, reported)
        if content.is_session
        else _format_run_expect(content, dialect, reported)
    )
    return ["expect:", *(f"  {line}" for line in expected or ["leaks: []  # nothing else is known of the end"])]


def _format_run_expect(content: DraftContent, dialect: str, reported: ReportedEnd | None) -> list[str]:
    kind = reported.kind if reported is not None else ""
    if kind == "missing" and not content.read:
        return ["outcome: spawn_failed"]
    status = []
    if reported is not None and kind == "exits":
        status = [f"agent_status: {reported.code}"]
    elif reported is not None and kind == "dies":
        status = [f"agent_status: {{signal: {reported.signal}}}"]
    if _has_last_turn_ended(content):
        end = content.turns[-1]
        has_text = end == "completed" and content.final is not None and dialect != "gemini"
        return [f"outcome: {end}", *([f"text: {format_text(content.final or '')}"] if has_text else []), *status]
    if _is_killed_too_early(content, reported):
        return ["outcome: completed"]
    if kind in ("hangs", "killed"):
        return ["outcome: inactive"]
    if kind == "exits" and dialect == "raw":
        return [f"outcome: {'failed' if reported is not None and reported.code else 'completed'}", *status]
    return ["outcome: incomplete", *status] if status else []


def _format_session_expect(content: DraftContent, reported: ReportedEnd | None) -> list[str]:
    """Tell how each turn ended; the last one as it was reported, if it did not end."""
    kind = reported.kind if reported is not None else ""
    ends = {"hangs": "timed_out", "killed": "timed_out", "exits": "agent_lost", "dies": "agent_lost"}
    turns: list[Any] = []
    for number, end in enumerate(content.turns, 1):
        is_last = number == len(content.turns)
        is_cancelled = number == content.cancelled and (is_last or not end)
        ended = "cancelled" if is_cancelled else end
        outcome = ended or (ends.get(kind, "") if is_last else "")
        if is_last and (_is_killed_too_early(content, reported) or _is_question_unanswered(content, reported)):
            outcome = "completed"
        text = {"text": content.texts[number]} if outcome == "completed" and number in content.texts else {}
        turns.append({"outcome": outcome, **text} if outcome else {})
    known = list(map(format_inline, turns))
    while known and known[-1] == "{}":
        known.pop()
    answers = ["deny"] if _is_question_unanswered(content, reported) else content.answers
    pairs = [{"permission": name, "answer": answer} for name, answer in zip(content.asked, answers, strict=False)]
    is_whole = len(set(answers)) == 1 and len(answers) == len(content.asked)
    return [
        *([f"turns: [{', '.join(known)}]"] if known else []),
        *([f"asked: {format_inline(pairs)}"] if is_whole else []),
    ]
