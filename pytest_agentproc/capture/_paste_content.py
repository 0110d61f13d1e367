"""The content of a draft: what a pasted log says of a conversation, event by event.

    a reader of the dialect (what an event means) -> the encoder check (whether the fake would print it) -> steps

What the check does not confirm stands in the draft as it stood in the log, as an `event`.
"""

from __future__ import annotations

import contextlib
import json
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pytest_agentproc.capture._app_server import is_app_server, read_app_server, strip_ids
from pytest_agentproc.capture._meaning import (
    COMPACTION,
    DraftStep,
    LaterEvents,
    Meaning,
    Reader,
    get_nested,
    is_claude_session,
    is_pi_rpc,
    read_acp,
    read_claude,
    read_codex,
    read_compaction,
    read_gemini,
    read_permission_answer,
    read_pi,
)
from pytest_agentproc.capture._opencode import read_opencode
from pytest_agentproc.capture._paste import (
    LONGEST,
    Instant,
    PastedItem,
    find_instant,
    measure_gap,
)
from pytest_agentproc.capture._replay import EncoderCheck
from pytest_agentproc.capture._wording import is_loadable
from pytest_agentproc.vocabulary import DIALECTS as RECORDS

if TYPE_CHECKING:
    from collections.abc import Callable


READERS: dict[str, Reader] = {
    "claude": read_claude,
    "codex": read_codex,
    "gemini": read_gemini,
    "pi": read_pi,
    "acp": read_acp,
    "opencode": read_opencode,
}
SMALLEST_GAP = 50_000_000
"""Nanoseconds; less is how fast a machine is."""
_BEGIN = DraftStep("begin", "turn")
"""It prints what the step after it would print first; it is left out if no time passes between the two."""
_SAYING = ("say", "turn_said")
_CONTINUES = {"session/load": "load", "session/resume": "resume"}
_PAST = {"user_message_chunk": "prompt", "agent_thought_chunk": "think", "agent_message_chunk": "answer"}
"""The replayed updates of a loaded session of ACP, in the words of the language."""


@dataclass(frozen=True, slots=True)
class ScriptLine:
    """One line of a draft's script: a step, or else a comment."""

    step: DraftStep | None = None
    comment: str = ""


@dataclass
class DraftContent:
    """The facts of a conversation that a log reports.

    Args:
        mode: the dialect's mode.
        is_session: whether the log is of a session.
        partials: whether claude streams.
        lines: the script.
        continues: how the session continues an earlier one, in the words of the language; empty if it does not.
        drive: what the caller does, item by item.
        turns: how each turn ended; "" for one that did not.
        final: the last message of the run, or of the turn in hand; None if the log does not say it.
        texts: the last message of each turn that completed.
        tools: those that were started; `running`: and did not end.
        asked: what the questions are about, in order; `answers`: what the log answers to them.
        cancelled: the number of the turn that the caller took back last; 0: none.
        longest: the longest silence in nanoseconds.
        last_at: when the last event was printed, if the log says so.
        is_working: whether the agent works silently at its end: it runs a tool, or compacts its context.
        read: how many events were read; `unread`: how many lines could not be.
    """

    mode: str
    partials: bool = True
    is_session: bool = False
    lines: list[ScriptLine] = field(default_factory=list)
    continues: dict[str, str] = field(default_factory=dict)
    drive: list[str] = field(default_factory=list)
    turns: list[str] = field(default_factory=list)
    final: str | None = None
    texts: dict[int, str] = field(default_factory=dict)
    tools: set[str] = field(default_factory=set)
    running: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    cancelled: int = 0
    longest: int = 0
    last_at: Instant | None = None
    is_working: bool = False
    read: int = 0
    unread: int = 0


_TELLS_SESSION: dict[str, Callable[[list[Any]], bool]] = {
    "claude": is_claude_session,
    "codex": is_app_server,
    "pi": is_pi_rpc,
}
"""What tells a session's log from that of a run, where a dialect has both."""


_NAMES_SESSION = {
    "claude": re.compile(r"--input-format[ =]stream-json"),
    "pi": re.compile(r"(?<![\w-])rpc(?![\w-])"),
}
"""The words around a log that name a session, where the events do not show it."""


def detect_mode(dialect: str, events: list[Any], words: str = "") -> str:
    """Say in which mode an agent printed these events."""
    record = RECORDS[dialect]
    if dialect in _TELLS_SESSION and _TELLS_SESSION[dialect](events):
        return next(iter(record.talks))
    if dialect in _NAMES_SESSION and _NAMES_SESSION[dialect].search(words):
        return next(iter(record.talks))
    return next(mode for mode in record.modes if record.steps.get(mode))


def build_content(things: list[PastedItem], dialect: str) -> DraftContent:
    """Turn what was read into the content of a draft."""
    things = [_unwrap_event(thing, dialect) if thing.kind == "event" else thing for thing in things]
    events = [thing.event for thing in things if thing.kind == "event"]
    words = "\n".join(thing.text for thing in things if thing.kind == "words")
    return _ContentBuilder(dialect, events, detect_mode(dialect, events, words)).build(things)


def _unwrap_event(thing: PastedItem, dialect: str) -> PastedItem:
    """Take the dialect's event out of the object that a logger has put around it, which may know the time."""
    readers = (READERS[dialect], read_app_server) if dialect == "codex" else (READERS[dialect],)

    def is_foreign(event: Any) -> bool:
        return all(_read_event_with(reader, event, LaterEvents([]), "").kind == "foreign" for reader in readers)

    if not isinstance(thing.event, dict) or not is_foreign(thing.event):
        return thing
    for value in thing.event.values():
        inner = value
        if isinstance(value, str) and value.lstrip().startswith("{"):
            with contextlib.suppress(ValueError, RecursionError):
                inner = json.loads(value)
        if isinstance(inner, dict) and inner and not is_foreign(inner):
            at = _read_event_instant(thing.event) or thing.at
            return replace(thing, event=inner, text=json.dumps(inner, ensure_ascii=False), at=at)
    return thing


def _read_event_with(reader: Reader, event: Any, later: LaterEvents, mode: str) -> Meaning:
    """Ask the reader; it takes the parts of an event for what the dialect has there."""
    if not isinstance(get_nested(event, "type"), str | None):
        return Meaning("foreign")
    try:
        return reader(event, later, mode)
    except (AttributeError, TypeError):
        return Meaning("other")


class _ContentBuilder:
    """Writes the content, event by event."""

    def __init__(self, dialect: str, events: list[Any], mode: str) -> None:
        self._dialect, self._later, self._read = dialect, LaterEvents(events), READERS[dialect]
        streams = any(get_nested(event, "type") == "stream_event" for event in events)
        self._content = DraftContent(mode, partials=not RECORDS[dialect].partials or streams)
        self._is_session = self._content.is_session = self._content.mode in RECORDS[dialect].talks
        self._is_app_server = self._content.mode == "app-server"
        if self._is_app_server:
            self._read = read_app_server
        self._check = EncoderCheck(dialect, self._content.mode, partials=streams)
        self._work: set[str] = set()
        """The silent work of the agent: its tools, by their ids, and a compaction."""
        self._at: Instant | None = None
        self._since_item = 0
        self._said = self._unsaid = ""
        """The printed pieces of the message in hand, and the pieces that are not printed yet."""
        self._is_open = False
        self._hand = 0
        """The number of the turn that the agent works on, or worked on last."""
        self._refused = 0
        """The number of the turn that the agent refused last."""
        self._queue: list[tuple[int, str]] = []
        """The prompts that were sent while another was in flight."""
        self._numbers: dict[str, int] = {}
        """The turns by the ids of their requests."""
        self._own: set[str] = set()
        """The ids of the agent's own requests."""
        self._loading: str | None = None
        """The id of the request that loads an earlier session, until it is answered."""
        self._past: list[dict[str, Any]] = []
        """The replayed events of that session so far."""
        self._early: dict[int, tuple[PastedItem, Meaning]] = {}
        """The answers to prompts that still wait."""

    def build(self, things: list[PastedItem]) -> DraftContent:
        """Go through the log."""
        number = 0
        for thing in things:
            if thing.kind == "broken":
                self._add_unread_line_comment(thing, thing.why)
            if thing.kind != "event":
                continue
            number += 1
            self._later.start = number
            meaning = _read_event_with(self._read, thing.event, self._later, self._content.mode)
            if meaning.kind == "foreign":
                self._add_unread_line_comment(thing, f"no event of {self._dialect}")
                continue
            self._content.read += 1
            self._handle_event(thing, meaning)
            self._track_silent_work(thing.event, meaning.steps)
        self._content.last_at, self._content.is_working = self._at, bool(self._work)
        if self._is_session and not self._content.turns and any(line.step for line in self._content.lines):
            self._content.lines.append(ScriptLine(comment="no prompt is in the log: this one waits for the handshake"))
            self._add_prompt("hi")
            self._content.lines.append(ScriptLine(DraftStep("answer", "hello")))
            self._end_turn("completed")
        return self._content

    def _track_silent_work(self, event: Any, steps: tuple[DraftStep, ...]) -> None:
        """Take note of what begins or ends silent work, also if the event stands in the draft as it is."""
        begun = {step.value["id"] for step in steps if step.name == "tool"}
        ended = {step.value["id"] for step in steps if step.name == "tool_done"}
        is_begun = read_compaction(event)
        if is_begun is not None:
            (begun if is_begun else ended).add(COMPACTION)
        self._work = (self._work | begun) - ended
        self._content.running -= ended

    def _add_unread_line_comment(self, thing: PastedItem, why: str) -> None:
        self._content.unread += 1
        self._content.lines.append(ScriptLine(comment=f"line {thing.line}, {why}: {thing.text}"))

    def _handle_event(self, thing: PastedItem, meaning: Meaning) -> None:
        if answer := read_permission_answer(thing.event):
            self._content.answers.append(answer)
        if self._route_answer_to_other_prompt(thing, meaning) or (
            self._dialect == "acp" and self._take_replayed_history(thing.event)
        ):
            return
        if meaning.is_cut and self._is_open and self._content.cancelled == self._hand:
            meaning = Meaning("steps", (DraftStep("acknowledge", "cancel"),), is_sure=True, ends="cancelled")
        if meaning.kind == "prompt":
            self._add_silence(thing, is_callers=not self._is_queued_prompt(thing))
            self._add_prompt(meaning.text, _read_request_id(thing.event))
        elif meaning.kind == "cancel":
            self._add_silence(thing)
            self._add_cancel()
        elif self._check.match_pending_event(thing.event):
            self._add_time_before_event(thing)
            is_over = bool(self._content.turns and self._content.turns[self._hand - 1])
            meaning = replace(meaning, ends="") if is_over else meaning
        else:
            self._add_agent_event(thing, meaning)
        if meaning.final is not None:
            self._content.final = meaning.final
        if meaning.ends:
            self._end_turn(meaning.ends)

    def _add_agent_event(self, thing: PastedItem, meaning: Meaning) -> None:
        """Print an event of the agent that the steps so far do not print."""
        if meaning.kind == "begin":
            self._add_turn_begin(thing)
        elif meaning.kind == "piece":
            self._add_piece(thing, meaning.text)
        elif meaning.kind == "repeated":
            self._add_time_before_event(thing)
        else:
            if self._is_session and not self._is_open and (meaning.kind == "steps" or not self._content.turns):
                self._add_prompt("hi")
            self._add_silence(thing)
            self._add_event_or_steps(thing, meaning)

    def _add_time_before_event(self, thing: PastedItem) -> None:
        """Let the time before an event pass that another step prints."""
        self._add_silence(thing)
        self._add_escapes_before_event(thing)

    def _take_replayed_history(self, event: Any) -> bool:
        """Take what an agent replays of a session that it loads; say whether the event is a part of that."""
        method, key = get_nested(event, "method"), _read_request_id(event)
        if method in _CONTINUES:
            self._content.continues = {_CONTINUES[method]: str(get_nested(event, "params", "sessionId") or "s")}
            self._loading, self._past = key, []
            return True
        update = get_nested(event, "params", "update")
        if self._loading is None or not (isinstance(update, dict) or (method is None and key == self._loading)):
            return False
        if isinstance(update, dict):
            name, text = _PAST.get(str(update.get("sessionUpdate"))), get_nested(update, "content", "text")
            past = DraftStep(name, text) if name and isinstance(text, str) else DraftStep("event", update)
            if name == "prompt" or is_loadable((past,), self._dialect, self._content.mode):
                self._past.append({past.name: past.value})
            return True
        if self._past and "load" in self._content.continues:
            self._content.lines.append(ScriptLine(DraftStep("handshake", {"history": self._past})))
        self._loading = None
        return True

    def _add_turn_begin(self, thing: PastedItem) -> None:
        """Begin a turn. If a run begins again after its end, it has taken the end back."""
        self._add_time_before_event(thing)
        if not self._is_session:
            self._content.turns.clear()
        elif not self._is_open:
            self._add_prompt("hi")
        if self._is_session and self._check.match_pending_event(thing.event):
            return
        if self._is_session:
            self._add_verbatim_event(thing, self._hand)
        elif self._check.play_steps((_BEGIN,), thing.event) or not any(line.step for line in self._content.lines):
            self._content.lines.append(ScriptLine(_BEGIN))
        else:
            self._add_verbatim_event(thing, self._hand)

    def _add_piece(self, thing: PastedItem, text: str) -> None:
        """Print a piece where time has passed before it; else it is printed together with the next one."""
        lines = self._content.lines
        self._unsaid += text
        self._add_time_before_event(thing)
        last = lines[-1].step if lines else None
        if last is None or last.name != "silence":
            return
        if not self._unsaid:
            self._add_verbatim_event(thing, self._hand)
            return
        step = DraftStep("delta", self._unsaid)
        self._check.play_steps((step,), thing.event)
        lines.append(ScriptLine(step))
        self._said, self._unsaid = self._said + self._unsaid, ""

    def _strip_printed_pieces(self, steps: tuple[DraftStep, ...]) -> tuple[DraftStep, ...]:
        """Leave out of a message what its pieces have printed."""
        if not self._said:
            return steps
        rest = []
        for step in steps:
            text = step.value if isinstance(step.value, str) else get_nested(step.value, "text")
            if step.name not in (*_SAYING, "delta") or not isinstance(text, str) or not text.startswith(self._said):
                rest.append(step)
            elif step.name != "delta" or text != self._said:
                left = text.removeprefix(self._said)
                rest.append(replace(step, value={**step.value, "text": left} if step.name == "turn_said" else left))
        return tuple(rest)

    def _is_queued_prompt(self, thing: PastedItem) -> bool:
        """Say whether a prompt waits for the one in flight: only a dialect that names its requests can answer it."""
        return self._is_open and _read_request_id(thing.event) is not None

    def _route_answer_to_other_prompt(self, thing: PastedItem, meaning: Meaning) -> bool:
        """Give an answer of JSON-RPC to its request; say whether that is another than the prompt in hand."""
        key = _read_request_id(thing.event)
        if key is None or "method" in thing.event:
            self._own |= {key} if key is not None and meaning.kind == "steps" else set()
            return False
        if not meaning.ends:
            return False
        if "error" in thing.event and key in self._own:
            self._own.remove(key)
            return True
        number = self._numbers.get(key)
        if number is None and self._is_app_server:
            return True  # an error to another request than a prompt ends no turn
        if number is None or (number == self._hand and self._is_open):
            return False
        self._add_silence(thing)
        if number in dict(self._queue):
            self._early[number] = thing, meaning
        else:
            self._add_verbatim_event(thing, number)
        return True

    def _add_event_or_steps(self, thing: PastedItem, meaning: Meaning) -> None:
        steps = self._strip_printed_pieces(meaning.steps)
        sound = bool(steps) and self._can_write_steps(steps)
        if sound and (self._check.try_steps(steps, thing.event) if not meaning.is_sure else True) and not thing.glued:
            if meaning.is_sure:
                self._check.play_steps(steps, thing.event)
            self._append_steps(steps)
            if any(step.name in (*_SAYING, "tool") for step in steps):
                self._said = self._unsaid = ""
            return
        if self._is_app_server and "error" in thing.event:
            self._refuse_prompt_in_hand()
        self._add_escapes_before_event(thing)
        self._add_verbatim_event(thing, self._hand)

    def _add_escapes_before_event(self, thing: PastedItem) -> None:
        """Print the escape sequences that stand before an event on its line."""
        if thing.glued:
            self._content.lines.append(ScriptLine(DraftStep("raw", thing.glued)))

    def _add_verbatim_event(self, thing: PastedItem, number: int) -> None:
        value = thing.event
        if self._dialect == "acp" and isinstance(get_nested(value, "params", "update"), dict):
            value = value["params"]["update"]
            text = get_nested(value, "content", "text")
            if value.get("sessionUpdate") == "agent_message_chunk" and isinstance(text, str):
                self._content.final = (self._content.final or "") + text
            elif str(value.get("sessionUpdate")).startswith("tool_call"):
                self._content.final = None
        elif (self._dialect == "acp" or self._is_app_server) and "method" not in value:
            value = {**value, "id": f"prompt {number}"}
        elif self._is_app_server:
            value = strip_ids(value)
        told = DraftStep("event", value)
        if is_loadable((told,), self._dialect, self._content.mode):
            self._content.lines.append(ScriptLine(told))
        else:
            self._content.lines.append(ScriptLine(DraftStep("raw", thing.text + "\n")))

    def _can_write_steps(self, steps: tuple[DraftStep, ...]) -> bool:
        """Say whether the language takes them: a tool's id is given once, its end and children come after it."""
        begun: set[str] = set()
        for step in steps:
            number, parent = get_nested(step.value, "id"), get_nested(step.value, "parent")
            is_known = isinstance(number, str) and number in self._content.tools
            if step.name == "tool":
                if is_known or number in begun:
                    return False
                begun.add(number)
            if step.name == "tool_done" and number not in begun and not (is_known and number in self._content.running):
                return False
            if parent is not None and not (isinstance(parent, str) and parent in self._content.tools):
                return False
        return is_loadable(steps, self._dialect, self._content.mode)

    def _append_steps(self, steps: tuple[DraftStep, ...]) -> None:
        lines = self._content.lines
        place = next((number for number in reversed(range(len(lines))) if lines[number].step), 0)
        if lines and lines[place].step == _BEGIN:
            del lines[place]
        for step in steps:
            if step.name == "tool":
                self._content.tools.add(step.value["id"])
                self._content.running.add(step.value["id"])
            elif step.name == "tool_done":
                self._content.running.discard(step.value["id"])
            self._content.asked += [step.value["permission"]] if step.name == "ask" else []
            if self._dialect == "acp" and step.name in ("say", "tool", "tool_done"):  # a tool ends the message
                self._content.final = (self._content.final or "") + step.value if step.name == "say" else None
            last = lines[-1].step if lines else None
            if step.name == "result" and last is not None and _is_same_answer(last, step.value):
                text = last.value if isinstance(last.value, str) else last.value["text"]
                lines[-1] = ScriptLine(DraftStep("answer", text))
            elif step.name == "say" and last is not None and last.name == "delta":
                lines[-1] = ScriptLine(replace(step, value=last.value + step.value))
            else:
                lines.append(ScriptLine(step))

    def _add_prompt(self, text: str, key: str | None = None) -> None:
        content = self._content
        if not self._is_session:
            return
        content.turns.append("")
        number = len(content.turns)
        if key is not None:
            self._numbers[key] = number
        if self._is_open and key is not None:
            content.drive.append(f"prompt after {self._since_item}: {text}")
            self._since_item = 0
            self._queue.append((number, text))
            return
        if number > 1:
            content.drive.append(f"wait_for: turn {number - 1}")
        content.drive.append(f"prompt: {text}")
        self._since_item = 0
        self._start_turn(number, text)

    def _start_turn(self, number: int, text: str) -> None:
        self._content.lines.append(ScriptLine(DraftStep("wait_for", f"prompt {number}")))
        self._check.feed_prompt(text)
        self._is_open, self._hand = True, number
        self._content.final = None

    def _refuse_prompt_in_hand(self) -> None:
        """Have the agent answer the prompt in hand without a turn: a step that takes it up would accept it."""
        taken, arrival = DraftStep("wait_for", f"prompt {self._hand}"), DraftStep("wait_for", {"stdin": "*turn/start*"})
        place = self._content.lines.index(ScriptLine(taken))
        # Each of these steps waits for one more prompt, counted from the last that was refused.
        self._content.lines[place : place + 1] = [ScriptLine(arrival)] * (self._hand - self._refused)
        self._refused = self._hand

    def _add_cancel(self) -> None:
        if not self._is_open:
            return
        self._content.cancelled = self._hand
        self._check.feed_cancel()
        self._content.drive.append(f"cancel: {max(self._since_item, 1_000_000_000)}")
        self._since_item = 0
        self._content.lines.append(ScriptLine(DraftStep("wait_for", "cancel")))

    def _end_turn(self, how: str) -> None:
        if not self._is_session:
            self._content.turns[:] = [how]
        elif self._hand:
            self._content.turns[self._hand - 1] = how
            if how == "completed" and self._content.final:
                self._content.texts[self._hand] = self._content.final
        self._is_open = False
        if self._queue:
            number, text = self._queue.pop(0)
            self._start_turn(number, text)
            if number in self._early:
                thing, meaning = self._early[number]
                self._add_event_or_steps(thing, meaning)
                self._end_turn(meaning.ends)

    def _add_silence(self, thing: PastedItem, *, is_callers: bool = False) -> None:
        """Give the time since the event before; the caller's time between two turns is not the agent's."""
        before, now = self._at, thing.at or _read_event_instant(thing.event)
        self._at = now or before
        gap = measure_gap(before, now) if before is not None and now is not None else None
        if gap is None or gap < SMALLEST_GAP or is_callers or (self._is_session and not self._is_open):
            return
        self._since_item = min(self._since_item + gap, LONGEST)
        lines = self._content.lines
        last = lines[-1].step if lines else None
        if last is not None and last.name == "silence":
            gap = min(gap + last.value, LONGEST)
            lines.pop()
        self._content.longest = max(self._content.longest, gap)
        lines.append(ScriptLine(DraftStep("silence", gap)))


def _read_request_id(event: dict[str, Any]) -> str | None:
    """Give the id of a message of JSON-RPC; None if it has none, or is no such message."""
    return json.dumps(event["id"]) if "type" not in event and "id" in event else None


def _is_same_answer(last: DraftStep, result: dict[str, Any]) -> bool:
    """Say whether a text and a completion are one answer."""
    if last.name not in _SAYING or set(result) - {"text"}:
        return False
    if isinstance(last.value, dict):
        return bool(last.value["stop"] == "stop")
    return bool(result.get("text", last.value) == last.value)


def _read_event_instant(event: Any) -> Instant | None:
    """Find the instant that an event has in itself."""
    for key in ("timestamp", "ts", "time"):
        value = get_nested(event, key)
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            return find_instant(str(value))
    return None


def build_raw_content(things: list[PastedItem], ending_line: int) -> DraftContent:
    """Take what stands in blocks of code for output; without a block, the lines from the first one with a time on.

    Args:
        things: what was read.
        ending_line: the line that says how the run ended, which the agent has not printed.
    """
    content = DraftContent("text")
    timed = next((thing.line for thing in things if thing.at is not None), 0)
    is_fenced = any(thing.is_fenced for thing in things)
    for thing in things:
        is_output = thing.is_fenced if is_fenced else thing.line >= timed
        if not is_output or thing.line == ending_line or thing.text.startswith("$ "):
            continue
        before, content.last_at = content.last_at, thing.at or content.last_at
        gap = measure_gap(before, thing.at) if before is not None and thing.at is not None else None
        if gap is not None and gap >= SMALLEST_GAP:
            content.longest = max(content.longest, gap)
            content.lines.append(ScriptLine(DraftStep("silence", gap)))
        content.lines.append(ScriptLine(DraftStep("raw", f"{thing.glued}{thing.text}\n")))
        content.read += 1
    return content
