"""From a pasted log to the text of a draft: its events, its steps, its comments.

    read_paste -> a reader of the dialect (what an event means) -> the shadow (whether the fake would say it) -> steps

What the shadow does not confirm stands in the draft as it stood in the log, as an `event`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from textwrap import shorten
from typing import TYPE_CHECKING, Any

from pytest_agentproc.capture._app_server import is_app_server, read_app_server, without_ids
from pytest_agentproc.capture._meaning import (
    Later,
    Meaning,
    Reader,
    Told,
    answer_of,
    inner,
    is_rpc,
    is_session,
    read_acp,
    read_claude,
    read_codex,
    read_gemini,
    read_pi,
)
from pytest_agentproc.capture._paste import (
    LONGEST,
    Instant,
    Pasted,
    Reported,
    instant_in,
    read_paste,
    reported_in,
    since,
)
from pytest_agentproc.capture._replay import EncoderCheck
from pytest_agentproc.capture._wording import comment, flow, is_taken, seconds, step_text, text
from pytest_agentproc.errors import Problem, ScenarioError
from pytest_agentproc.vocabulary import DIALECTS as RECORDS

if TYPE_CHECKING:
    from collections.abc import Callable


READERS: dict[str, Reader] = {
    "claude": read_claude,
    "codex": read_codex,
    "gemini": read_gemini,
    "pi": read_pi,
    "acp": read_acp,
}
_SMALLEST_GAP = 50_000_000
"""Nanoseconds; less is how fast a machine is."""
_BEGIN = Told("begin", "turn")
"""What was printed before the first word, where the time between the two is known."""
_SAYING = ("say", "turn_said")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a draft's script: a step, or else a comment."""

    step: Told | None = None
    comment: str = ""


@dataclass
class Content:
    """The facts of a conversation that a log reports.

    Args:
        mode: the dialect's mode.
        is_session: whether the log is of a session.
        partials: whether claude streams.
        lines: the script.
        drive: what the caller does, item by item.
        turns: how each turn ended; "" for one that did not.
        final: the last good end's text, where one is told.
        tools: those that were started; `running`: and did not end.
        asked: whether a question was asked; `answer`: what the log answers, "" for nothing.
        cancelled: the number of the turn that the caller took back last; 0: none.
        longest: the longest silence in nanoseconds.
        read: how many events were read; `unread`: how many lines could not be.
    """

    mode: str
    partials: bool = True
    is_session: bool = False
    lines: list[Line] = field(default_factory=list)
    drive: list[str] = field(default_factory=list)
    turns: list[str] = field(default_factory=list)
    final: str | None = None
    tools: set[str] = field(default_factory=set)
    running: set[str] = field(default_factory=set)
    asked: bool = False
    answer: str = ""
    cancelled: int = 0
    longest: int = 0
    read: int = 0
    unread: int = 0


_TELLS_SESSION: dict[str, Callable[[list[Any]], bool]] = {
    "claude": is_session,
    "codex": is_app_server,
    "pi": is_rpc,
}
"""What tells a session's log from that of a run, where a dialect has both."""


def mode_of(dialect: str, events: list[Any]) -> str:
    """Say in which mode an agent printed these events."""
    record = RECORDS[dialect]
    if dialect in _TELLS_SESSION and _TELLS_SESSION[dialect](events):
        return next(iter(record.talks))
    return next(mode for mode in record.modes if record.steps.get(mode))


def content_of(things: list[Pasted], dialect: str) -> Content:
    """Turn what was read into the content of a draft."""
    events = [thing.event for thing in things if thing.kind == "event"]
    return _Author(dialect, events).write(things)


class _Author:
    """Writes the content, event by event."""

    def __init__(self, dialect: str, events: list[Any]) -> None:
        self._dialect, self._later, self._read = dialect, Later(events), READERS[dialect]
        streams = any(inner(event, "type") == "stream_event" for event in events)
        self._content = Content(mode_of(dialect, events), partials=not RECORDS[dialect].partials or streams)
        self._is_session = self._content.is_session = self._content.mode in RECORDS[dialect].talks
        self._is_app_server = self._content.mode == "app-server"
        if self._is_app_server:
            self._read = read_app_server
        self._shadow = EncoderCheck(dialect, self._content.mode, partials=streams)
        self._can_begin = "begin" in RECORDS[dialect].steps[self._content.mode]
        self._at: Instant | None = None
        self._since_prompt = 0
        self._is_open = False
        self._hand = 0
        """The number of the turn that the agent works on, or worked on last."""
        self._queue: list[tuple[int, str]] = []
        """The prompts that were sent while another was in flight."""
        self._numbers: dict[str, int] = {}
        """The turns by the ids of their requests."""
        self._own: set[str] = set()
        """The ids of the agent's own requests."""
        self._early: dict[int, tuple[Pasted, Meaning]] = {}
        """The answers to prompts that still wait."""

    def write(self, things: list[Pasted]) -> Content:
        """Go through the log."""
        number = 0
        for thing in things:
            if thing.kind == "broken":
                self._unread(thing, thing.why)
            if thing.kind != "event":
                continue
            number += 1
            self._later.start = number
            meaning = self._meaning(thing.event)
            if meaning.kind == "foreign":
                self._unread(thing, f"no event of {self._dialect}")
                continue
            self._content.read += 1
            self._take(thing, meaning)
        return self._content

    def _meaning(self, event: Any) -> Meaning:
        """Ask the reader; it takes the parts of an event for what the dialect has there."""
        if not isinstance(inner(event, "type"), str | None):
            return Meaning("foreign")
        try:
            return self._read(event, self._later, self._content.mode)
        except (AttributeError, TypeError):
            return Meaning("other")

    def _unread(self, thing: Pasted, why: str) -> None:
        self._content.unread += 1
        self._content.lines.append(Line(comment=f"line {thing.line}, {why}: {thing.text}"))

    def _take(self, thing: Pasted, meaning: Meaning) -> None:
        self._content.answer = answer_of(thing.event) or self._content.answer
        if self._is_about_another(thing, meaning):
            return
        if meaning.kind == "prompt":
            self._pass_time(thing, is_callers=not self._queues(thing))
            self._prompt(meaning.text, _key(thing.event))
        elif meaning.kind == "cancel":
            self._pass_time(thing)
            self._cancel()
        elif self._shadow.is_said(thing.event):
            self._pass_time(thing)
            self._glue(thing)
            is_over = bool(self._content.turns and self._content.turns[self._hand - 1])
            meaning = replace(meaning, ends="") if is_over else meaning
        elif meaning.kind != "repeated":
            if self._is_session and not self._is_open and (meaning.kind == "steps" or not self._content.turns):
                self._prompt("hi")
            self._pass_time(thing)
            self._tell(thing, meaning)
        else:
            self._pass_time(thing)
            self._glue(thing)
        if meaning.ends:
            self._end(meaning.ends)
        if meaning.final is not None:
            self._content.final = meaning.final

    def _queues(self, thing: Pasted) -> bool:
        """Say whether a prompt waits for the one in flight: only a dialect that names its requests can answer it."""
        return self._is_open and _key(thing.event) is not None

    def _is_about_another(self, thing: Pasted, meaning: Meaning) -> bool:
        """Give an answer of JSON-RPC to its request; say whether that is another than the prompt in hand."""
        key = _key(thing.event)
        if key is None or "method" in thing.event:
            self._own |= {key} if key is not None and meaning.kind == "steps" else set()
            return False
        if not meaning.ends:
            return False
        if "error" in thing.event and key in self._own:
            self._own.remove(key)
            return True
        number = self._numbers.get(key)
        if number is None or (number == self._hand and self._is_open):
            return False
        self._pass_time(thing)
        if number in dict(self._queue):
            self._early[number] = thing, meaning
        else:
            self._as_it_stands(thing, number)
        return True

    def _tell(self, thing: Pasted, meaning: Meaning) -> None:
        steps = meaning.steps
        sound = bool(steps) and self._is_sound(steps)
        if sound and (self._shadow.says(steps, thing.event) if not meaning.is_sure else True) and not thing.glued:
            if meaning.is_sure:
                self._follow(steps, thing.event)
            self._put(steps)
            return
        self._glue(thing)
        self._as_it_stands(thing, self._hand)

    def _glue(self, thing: Pasted) -> None:
        """Print the escape sequences that stand before an event on its line."""
        if thing.glued:
            self._content.lines.append(Line(Told("raw", thing.glued)))

    def _as_it_stands(self, thing: Pasted, number: int) -> None:
        value = thing.event
        if self._dialect == "acp" and isinstance(inner(value, "params", "update"), dict):
            value = value["params"]["update"]
        elif self._dialect == "acp" and "method" not in value:
            value = {**value, "id": f"prompt {number}"}
        elif self._is_app_server:
            value = without_ids(value)
        told = Told("event", value)
        if is_taken((told,), self._dialect, self._content.mode):
            self._content.lines.append(Line(told))
        else:
            self._content.lines.append(Line(Told("raw", thing.text + "\n")))

    def _follow(self, steps: tuple[Told, ...], event: Any) -> None:
        """Keep the shadow abreast of what needs no proof."""
        if all(step.name in ("tool", "tool_done", "result", "turn_said") for step in steps):
            self._shadow.says(steps, event)

    def _is_sound(self, steps: tuple[Told, ...]) -> bool:
        """Say whether the language takes them: a tool's id is given once, its end and children come after it."""
        for step in steps:
            number, parent = inner(step.value, "id"), inner(step.value, "parent")
            is_known = isinstance(number, str) and number in self._content.tools
            if step.name == "tool" and is_known:
                return False
            if step.name == "tool_done" and not (is_known and number in self._content.running):
                return False
            if parent is not None and not (isinstance(parent, str) and parent in self._content.tools):
                return False
        return is_taken(steps, self._dialect, self._content.mode)

    def _put(self, steps: tuple[Told, ...]) -> None:
        lines = self._content.lines
        for step in steps:
            if step.name == "tool":
                self._content.tools.add(step.value["id"])
                self._content.running.add(step.value["id"])
            elif step.name == "tool_done":
                self._content.running.discard(step.value["id"])
            self._content.asked = self._content.asked or step.name == "ask"
            last = lines[-1].step if lines else None
            if step.name == "result" and last is not None and _is_answer(last, step.value):
                text = last.value if isinstance(last.value, str) else last.value["text"]
                lines[-1] = Line(Told("answer", text))
            else:
                lines.append(Line(step))

    def _prompt(self, text: str, key: str | None = None) -> None:
        content = self._content
        if not self._is_session:
            return
        content.turns.append("")
        number = len(content.turns)
        if key is not None:
            self._numbers[key] = number
        if self._is_open and key is not None:
            content.drive.append(f"prompt after {self._since_prompt}: {text}")
            self._since_prompt = 0
            self._queue.append((number, text))
            return
        if number > 1:
            content.drive.append(f"wait_for: turn {number - 1}")
        content.drive.append(f"prompt: {text}")
        self._since_prompt = 0
        self._take_up(number, text)

    def _take_up(self, number: int, text: str) -> None:
        self._content.lines.append(Line(Told("wait_for", f"prompt {number}")))
        self._shadow.take_prompt(text)
        self._is_open, self._hand = True, number

    def _cancel(self) -> None:
        if not self._is_open:
            return
        self._content.cancelled = self._hand
        self._content.drive.append(f"cancel: {max(self._since_prompt, 1_000_000_000)}")
        self._content.lines.append(Line(Told("wait_for", "cancel")))

    def _end(self, how: str) -> None:
        if not self._is_session:
            self._content.turns[:] = [how]
        elif self._hand:
            self._content.turns[self._hand - 1] = how
        self._is_open = False
        if self._queue:
            number, text = self._queue.pop(0)
            self._take_up(number, text)
            if number in self._early:
                thing, meaning = self._early[number]
                self._tell(thing, meaning)
                self._end(meaning.ends)

    def _pass_time(self, thing: Pasted, *, is_callers: bool = False) -> None:
        """Give the time since the event before; the caller's time between two turns is not the agent's."""
        before, now = self._at, thing.at or _own_instant(thing.event)
        self._at = now or before
        gap = since(before, now) if before is not None and now is not None else None
        if gap is None or gap < _SMALLEST_GAP or is_callers or (self._is_session and not self._is_open):
            return
        self._since_prompt = min(self._since_prompt + gap, LONGEST)
        lines = self._content.lines
        if self._can_begin and not any(line.step for line in lines):
            self._shadow.says((_BEGIN,), {})
            lines.append(Line(_BEGIN))
        last = lines[-1].step if lines else None
        if last is not None and last.name == "silence":
            gap = min(gap + last.value, LONGEST)
            lines.pop()
        self._content.longest = max(self._content.longest, gap)
        lines.append(Line(Told("silence", gap)))


def _key(event: dict[str, Any]) -> str | None:
    """Give the id of a message of JSON-RPC; None if it has none, or is no such message."""
    return json.dumps(event["id"]) if "jsonrpc" in event and "id" in event else None


def _is_answer(last: Told, result: dict[str, Any]) -> bool:
    """Say whether a text and a completion are one answer."""
    if last.name not in _SAYING or set(result) - {"text"}:
        return False
    if isinstance(last.value, dict):
        return bool(last.value["stop"] == "stop")
    return bool(result.get("text", last.value) == last.value)


def _own_instant(event: Any) -> Instant | None:
    """Find the instant that an event has in itself."""
    for key in ("timestamp", "ts", "time"):
        value = inner(event, key)
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            return instant_in(str(value))
    return None


def raw_content(things: list[Pasted]) -> Content:
    """Take what stands in blocks of code for output; where there is no block, every line."""
    fenced = [thing for thing in things if thing.is_fenced]
    printed = fenced or things
    lines = [Line(Told("raw", f"{thing.glued}{thing.text}\n")) for thing in printed]
    return Content("text", lines=lines, read=len(printed))


DIALECTS = (*READERS, "raw")
"""The dialects of logs that can be read."""

_LARGEST = 4 * 1024**2
_MOST_WORDS = 40
_LONGEST_CLAIM = 100
_LONG_SILENCE = 100_000_000_000
"""Nanoseconds of silence from which on a supervisor's own limit would end what the log shows alive."""
_URL = re.compile(r"https?://[^\s<>()\[\]\"'`]+")


def draft_pasted(log: str, dialect: str, name: str) -> str:
    """Turn a pasted log into the text of a scenario, which loads and runs.

    Args:
        log: the log, with whatever stands around it.
        dialect: one of `DIALECTS`.
        name: what messages and the draft call the log.

    Raises:
        ScenarioError: the log is too long or empty, or has no event of the dialect; with file, line and column.
    """
    if len(log) > _LARGEST:
        raise _wrong(name, 1, f"the log has {len(log)} characters: at most {_LARGEST} are read, cut it to what matters")
    things = read_paste(log)
    if not things:
        raise _wrong(name, 1, "the log is empty: paste what the agent printed, with or without words around it")
    reported = reported_in(things)
    if dialect == "raw":
        content = raw_content(things)
        things = [thing for thing in things if not thing.is_fenced]
    else:
        content = content_of(things, dialect)
    is_missing = reported is not None and reported.kind == "missing"
    if not content.read and not is_missing:
        raise _unreadable(things, dialect, name)
    return "\n".join(_text(things, content, dialect, reported, name)) + "\n"


def _wrong(name: str, line: int, message: str) -> ScenarioError:
    return ScenarioError([Problem(name, line, 1, message)])


def _unreadable(things: list[Pasted], dialect: str, name: str) -> ScenarioError:
    """Say why nothing could be read, and which dialect it is if it is another."""
    events = [thing for thing in things if thing.kind == "event"]
    broken = [thing for thing in things if thing.kind == "broken"]
    if not events and broken:
        return _wrong(name, broken[0].line, f"no line is a whole event: {broken[0].why}: {comment(broken[0].text)}")
    if not events:
        return _wrong(name, things[0].line, f"no line is an event of {dialect}: an event is an object of JSON, {{...}}")
    others = [other for other in READERS if other != dialect and content_of(things, other).read]
    remedy = f"it looks like {others[0]}, write --dialect {others[0]}" if others else "it is no dialect's that is known"
    return _wrong(name, events[0].line, f"no line is an event of {dialect}: {remedy}")


def _text(things: list[Pasted], content: Content, dialect: str, reported: Reported | None, name: str) -> list[str]:
    words = [thing for thing in things if thing.kind == "words"]
    source = next((found[0].rstrip(".,;:") for thing in words if (found := _URL.search(thing.text))), "")
    lines = [
        f"# A draft, imported from {comment(PurePath(name).name)}: {_counted(content)}. Read it before you trust it."
    ]
    lines += [f"# {thing.line}: {comment(thing.text)}" for thing in words[:_MOST_WORDS]]
    if len(words) > _MOST_WORDS:
        lines.append(f"# ... and {len(words) - _MOST_WORDS} more lines of words")
    lines += [f"scenario: {text(_claim(words, name))}", *([f"source: {text(source)}"] if source else [])]
    is_missing = reported is not None and reported.kind == "missing" and not content.read
    lines.append(_agent(content, dialect, is_missing=is_missing))
    lines += _policy(content, reported)
    if content.asked:
        lines.append(f"handler: {{permission: {content.answer or 'never'}}}")
    lines += _drive(content)
    if not is_missing:
        lines += _script(content, reported)
    return [*lines, *_expect(content, dialect, reported)]


def _counted(content: Content) -> str:
    unread = f", {content.unread} {'line' if content.unread == 1 else 'lines'} not" if content.unread else ""
    return f"{content.read} {'event' if content.read == 1 else 'events'} read{unread}"


def _claim(words: list[Pasted], name: str) -> str:
    for thing in words:
        said = re.sub(r"^[#*\s>-]+|[*\s]+$", "", thing.text)
        if re.search(r"[A-Za-z]{3}", said) and not (_URL.match(said) or said.startswith("$ ")):
            return shorten(comment(said), _LONGEST_CLAIM, placeholder="...")
    return f"what {comment(PurePath(name).name)} reports"


def _agent(content: Content, dialect: str, *, is_missing: bool) -> str:
    if is_missing:
        return f"agent: {{dialect: {dialect}, cannot_spawn: not_found}}"
    partials = "" if content.partials else ", partials: false"
    return f"agent: {{dialect: {dialect}, mode: {content.mode}{partials}}}"


def _is_over(content: Content) -> bool:
    return bool(content.turns) and bool(content.turns[-1])


def _policy(content: Content, reported: Reported | None) -> list[str]:
    """Give the limits under which the log can be as it is, and those that the reporter names."""
    limits: dict[str, str] = {}
    silence = "inactivity_timeout"
    if reported is not None and reported.kind == "killed" and not _is_over(content) and reported.after:
        if reported.after > content.longest:
            limits["prompt_timeout" if content.is_session else silence] = seconds(reported.after)
            if content.running and not content.is_session:
                limits["internal_tool_timeout"] = seconds(reported.after)
    elif content.longest >= _LONG_SILENCE:
        limits[silence] = f"{content.longest // 1_000_000_000 + 60}s"
        limits["internal_tool_timeout"] = limits[silence]
        if content.is_session:
            limits = {"prompt_timeout": f"{content.longest // 1_000_000_000 + 3600}s"}
    return [f"policy: {{{', '.join(f'{name}: {limit}' for name, limit in limits.items())}}}"] if limits else []


def _drive(content: Content) -> list[str]:
    lines = []
    for item in content.drive:
        name, _, value = item.partition(": ")
        prompt, _, after = name.partition(" after ")
        if name == "cancel":
            lines.append(f"  - {{cancel: {{}}, after: {seconds(int(value))}}}")
        elif after:
            lines.append(f"  - {{{prompt}: {flow(value)}, after: {seconds(int(after))}}}")
        else:
            lines.append(f"  - {name}: {value if name == 'wait_for' else text(value)}")
    return ["drive:", *lines] if lines else []


def _script(content: Content, reported: Reported | None) -> list[str]:
    lines = [
        f"  # {comment(line.comment)}" if line.step is None else f"  - {step_text(line.step)}" for line in content.lines
    ]
    ending = _ending(content, reported)
    if ending and reported is not None:
        lines += [f"  # reported in line {reported.line}: {comment(reported.words)}", f"  - {ending}"]
    has_steps = any(line.startswith("  - ") for line in lines)
    return ["script:", *lines] if has_steps else ["script: []", *lines]


def _ending(content: Content, reported: Reported | None) -> str:
    if reported is None or reported.kind == "missing":
        return ""
    if reported.kind == "exits":
        return f"exit: {reported.code}"
    if reported.kind == "dies":
        return f"die: {reported.signal}"
    return "linger: for ever" if _is_over(content) else "silence: for ever"


def _expect(content: Content, dialect: str, reported: Reported | None) -> list[str]:
    expected = _of_session(content, reported) if content.is_session else _of_run(content, dialect, reported)
    return ["expect:", *(f"  {line}" for line in expected or ["leaks: []  # nothing else is known of the end"])]


def _of_run(content: Content, dialect: str, reported: Reported | None) -> list[str]:
    kind = reported.kind if reported is not None else ""
    if kind == "missing" and not content.read:
        return ["outcome: spawn_failed"]
    status = []
    if reported is not None and kind == "exits":
        status = [f"agent_status: {reported.code}"]
    elif reported is not None and kind == "dies":
        status = [f"agent_status: {{signal: {reported.signal}}}"]
    if _is_over(content):
        end = content.turns[-1]
        has_text = end == "completed" and content.final is not None and dialect in ("claude", "codex", "pi")
        return [f"outcome: {end}", *([f"text: {text(content.final or '')}"] if has_text else []), *status]
    if kind in ("hangs", "killed"):
        return ["outcome: inactive"]
    if kind == "exits" and dialect == "raw":
        return [f"outcome: {'failed' if reported is not None and reported.code else 'completed'}", *status]
    return ["outcome: incomplete", *status] if status else []


def _of_session(content: Content, reported: Reported | None) -> list[str]:
    """Tell how each turn ended; the last one as it was reported, if it did not end."""
    kind = reported.kind if reported is not None else ""
    ends = {"hangs": "timed_out", "killed": "timed_out", "exits": "agent_lost", "dies": "agent_lost"}
    turns: list[Any] = []
    for number, end in enumerate(content.turns, 1):
        is_last = number == len(content.turns)
        is_cancelled = number == content.cancelled and (is_last or not end)
        ended = "cancelled" if is_cancelled else end
        outcome = ended or (ends.get(kind, "") if is_last else "")
        turns.append({"outcome": outcome} if outcome else {})
    known = [f"{{outcome: {turn['outcome']}}}" if turn else "{}" for turn in turns]
    while known and known[-1] == "{}":
        known.pop()
    return [f"turns: [{', '.join(known)}]"] if known else []
