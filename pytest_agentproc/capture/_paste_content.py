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

from pytest_agentproc.capture._app_server_log import is_app_server_log, read_app_server_event, strip_log_specific_params
from pytest_agentproc.capture._meaning import (
    COMPACTION_WORK_ID,
    DraftStep,
    EventMeaning,
    EventReader,
    LaterEvents,
    get_nested,
    is_claude_session_log,
    is_clients_message,
    is_gemini_json_object,
    is_json_rpc_answer,
    is_pi_rpc_log,
    read_acp_event,
    read_claude_event,
    read_codex_event,
    read_compaction_change,
    read_gemini_event,
    read_permission_answer,
    read_pi_event,
)
from pytest_agentproc.capture._opencode_log import read_opencode_event
from pytest_agentproc.capture._paste import (
    LONGEST_DURATION_NS,
    LoggedInstant,
    PastedLogItem,
    find_logged_instant,
    measure_time_between,
)
from pytest_agentproc.capture._replay import EncoderCheck
from pytest_agentproc.capture._wording import are_steps_loadable
from pytest_agentproc.vocabulary import DIALECTS as RECORDS

if TYPE_CHECKING:
    from collections.abc import Callable


EVENT_READER_BY_DIALECT: dict[str, EventReader] = {
    "claude": read_claude_event,
    "codex": read_codex_event,
    "gemini": read_gemini_event,
    "pi": read_pi_event,
    "acp": read_acp_event,
    "opencode": read_opencode_event,
}
MIN_SILENCE_NS = 50_000_000
"""Nanoseconds; less is how fast a machine is."""
_TURN_BEGIN_STEP = DraftStep("begin", "turn")
"""It prints what the step after it would print first. It is left out at the start of a script if no time passes between
the two."""
_MESSAGE_STEP_NAMES = ("say", "turn_said")
_CONTINUES_WORD_BY_METHOD = {"session/load": "load", "session/resume": "resume"}
_HISTORY_WORD_BY_UPDATE = {
    "user_message_chunk": "prompt",
    "agent_thought_chunk": "think",
    "agent_message_chunk": "answer",
}
"""The replayed updates of a loaded session of ACP, in the words of the language."""


@dataclass(frozen=True, slots=True)
class DraftScriptLine:
    """One line of a draft's script: a step, or else a comment."""

    step: DraftStep | None = None
    comment: str = ""


@dataclass
class ParsedAgentLog:
    """The facts of a conversation that a log reports.

    Args:
        mode: the dialect's mode.
        version: the older version of the CLI that printed it; "" for the newest that is known.
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
    version: str = ""
    partials: bool = True
    is_session: bool = False
    lines: list[DraftScriptLine] = field(default_factory=list)
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
    last_at: LoggedInstant | None = None
    is_working: bool = False
    read: int = 0
    unread: int = 0


_SESSION_LOG_TEST_BY_DIALECT: dict[str, Callable[[list[Any]], bool]] = {
    "claude": is_claude_session_log,
    "codex": is_app_server_log,
    "pi": is_pi_rpc_log,
}
"""What tells a session's log from that of a run, where a dialect has both."""


_SESSION_OPTION_PATTERN_BY_DIALECT = {
    "claude": re.compile(r"--input-format[ =]stream-json"),
    "pi": re.compile(r"(?<![\w-])rpc(?![\w-])"),
}
"""The words around a log that name a session, where the events do not show it."""


def detect_dialect_mode(dialect: str, events: list[Any], words: str = "") -> str:
    """Say in which mode an agent printed these events."""
    record = RECORDS[dialect]
    if dialect in _SESSION_LOG_TEST_BY_DIALECT and _SESSION_LOG_TEST_BY_DIALECT[dialect](events):
        return next(iter(record.session_protocols))
    if dialect in _SESSION_OPTION_PATTERN_BY_DIALECT and _SESSION_OPTION_PATTERN_BY_DIALECT[dialect].search(words):
        return next(iter(record.session_protocols))
    if dialect == "gemini" and any(map(is_gemini_json_object, events)):
        return "json"
    return next(mode for mode in record.modes if record.steps.get(mode))


def parse_agent_log(items: list[PastedLogItem], dialect: str) -> ParsedAgentLog:
    """Turn what was read into the content of a draft."""
    items = [_unwrap_event_from_logger(item, dialect) if item.kind == "event" else item for item in items]
    events = [item.event for item in items if item.kind == "event"]
    words = "\n".join(item.text for item in items if item.kind == "words")
    return _AgentLogParser(dialect, events, detect_dialect_mode(dialect, events, words)).parse_log_items(items)


def list_agent_events(items: list[PastedLogItem], dialect: str) -> list[PastedLogItem]:
    """Give the events that the agent printed itself, whole: no piece of a message, no answer to a request."""
    items = [_unwrap_event_from_logger(item, dialect) for item in items if item.kind == "event"]
    events = [item.event for item in items]
    mode = detect_dialect_mode(dialect, events)
    is_app_server = dialect == "codex" and is_app_server_log(events)
    reader = read_app_server_event if is_app_server else EVENT_READER_BY_DIALECT[dialect]
    later, found = LaterEvents(events), []
    prompts: set[str | None] = set()
    for number, item in enumerate(items, 1):
        later.start = number
        meaning = _read_event_safely(reader, item.event, later, mode)
        is_callers = meaning.kind in ("prompt", "cancel") or is_clients_message(item.event)
        if meaning.kind == "prompt":
            prompts.add(_read_request_id(item.event))
        is_answer = is_json_rpc_answer(item.event) and _read_request_id(item.event) not in prompts
        if not (is_callers or is_answer or meaning.kind in ("foreign", "piece")):
            found.append(item)
    return found


def _unwrap_event_from_logger(item: PastedLogItem, dialect: str) -> PastedLogItem:
    """Take the dialect's event out of the object that a logger has put around it, which may know the time."""
    readers = (
        (EVENT_READER_BY_DIALECT[dialect], read_app_server_event)
        if dialect == "codex"
        else (EVENT_READER_BY_DIALECT[dialect],)
    )

    def is_foreign(event: Any) -> bool:
        return all(_read_event_safely(reader, event, LaterEvents([]), "").kind == "foreign" for reader in readers)

    if not isinstance(item.event, dict) or not is_foreign(item.event):
        return item
    for value in item.event.values():
        inner = value
        if isinstance(value, str) and value.lstrip().startswith("{"):
            with contextlib.suppress(ValueError, RecursionError):
                inner = json.loads(value)
        if isinstance(inner, dict) and inner and not is_foreign(inner):
            at = _read_event_timestamp(item.event) or item.at
            return replace(item, event=inner, text=json.dumps(inner, ensure_ascii=False), at=at)
    return item


def _read_event_safely(reader: EventReader, event: Any, later: LaterEvents, mode: str) -> EventMeaning:
    """Ask the reader; it takes the parts of an event for what the dialect has there."""
    if not isinstance(get_nested(event, "type"), str | None):
        return EventMeaning("foreign")
    try:
        return reader(event, later, mode)
    except (AttributeError, TypeError):
        return EventMeaning("other")


class _AgentLogParser:
    """Writes the content, event by event."""

    def __init__(self, dialect: str, events: list[Any], mode: str) -> None:
        self._dialect, self._later, self._read = dialect, LaterEvents(events), EVENT_READER_BY_DIALECT[dialect]
        streams = any(get_nested(event, "type") == "stream_event" for event in events)
        text = "\n".join(json.dumps(event, separators=(",", ":")) for event in events)
        version = RECORDS[dialect].find_older_version(text)
        self._parsed = ParsedAgentLog(mode, version, partials=not RECORDS[dialect].partials or streams)
        self._is_session = self._parsed.is_session = self._parsed.mode in RECORDS[dialect].session_protocols
        self._is_app_server = self._parsed.mode == "app-server"
        if self._is_app_server:
            self._read = read_app_server_event
        self._check = EncoderCheck(dialect, self._parsed.mode, version, partials=streams)
        self._work: set[str] = set()
        """The silent work of the agent: its tools, by their ids, and a compaction."""
        self._at: LoggedInstant | None = None
        self._since_item = 0
        self._said = self._unsaid = ""
        """The printed pieces of the message in hand, and the pieces that are not printed yet."""
        self._is_open = False
        self._current_turn = 0
        """The number of the turn that the agent works on, or worked on last."""
        self._last_refused_turn = 0
        """The number of the turn that the agent refused last."""
        self._queue: list[tuple[int, str]] = []
        """The prompts that were sent while another was in flight."""
        self._numbers: dict[str, int] = {}
        """The turns by the ids of their requests."""
        self._agent_request_ids: set[str] = set()
        """The ids of the agent's own requests."""
        self._loading: str | None = None
        """The id of the request that loads an earlier session, until it is answered."""
        self._replayed_history: list[dict[str, Any]] = []
        """The replayed events of that session so far."""
        self._early_answers: dict[int, tuple[PastedLogItem, EventMeaning]] = {}
        """The answers to prompts that still wait."""

    def parse_log_items(self, items: list[PastedLogItem]) -> ParsedAgentLog:
        """Go through the log."""
        number = 0
        for item in items:
            if item.kind == "broken":
                self._add_unread_line_comment(item, item.why)
            if item.kind != "event":
                continue
            number += 1
            self._later.start = number
            meaning = _read_event_safely(self._read, item.event, self._later, self._parsed.mode)
            if meaning.kind == "foreign":
                self._add_unread_line_comment(item, f"no event of {self._dialect}")
                continue
            self._parsed.read += 1
            self._handle_log_event(item, meaning)
            self._track_silent_work(item.event, meaning.steps)
        self._parsed.last_at, self._parsed.is_working = self._at, bool(self._work)
        if self._is_session and not self._parsed.turns and any(line.step for line in self._parsed.lines):
            self._parsed.lines.append(
                DraftScriptLine(comment="no prompt is in the log: this one waits for the handshake")
            )
            self._add_caller_prompt("hi")
            self._parsed.lines.append(DraftScriptLine(DraftStep("answer", "hello")))
            self._note_turn_end("completed")
        return self._parsed

    def _track_silent_work(self, event: Any, steps: tuple[DraftStep, ...]) -> None:
        """Take note of what begins or ends silent work, also if the event stands in the draft as it is."""
        started_ids = {step.value["id"] for step in steps if step.name == "tool"}
        ended = {step.value["id"] for step in steps if step.name == "tool_done"}
        is_begun = read_compaction_change(event)
        if is_begun is not None:
            (started_ids if is_begun else ended).add(COMPACTION_WORK_ID)
        self._work = (self._work | started_ids) - ended
        self._parsed.running -= ended

    def _add_unread_line_comment(self, item: PastedLogItem, why: str) -> None:
        self._parsed.unread += 1
        self._parsed.lines.append(DraftScriptLine(comment=f"line {item.line}, {why}: {item.text}"))

    def _handle_log_event(self, item: PastedLogItem, meaning: EventMeaning) -> None:
        if answer := read_permission_answer(item.event):
            self._parsed.answers.append(answer)
        if self._route_answer_to_other_prompt(item, meaning) or (
            self._dialect == "acp" and self._collect_replayed_history(item.event)
        ):
            return
        if meaning.is_cut and self._is_open and self._parsed.cancelled == self._current_turn:
            meaning = EventMeaning("steps", (DraftStep("acknowledge", "cancel"),), is_sure=True, ends="cancelled")
        if meaning.kind == "prompt":
            self._add_silence_before_event(item, is_callers=not self._is_queued_prompt(item))
            self._add_caller_prompt(meaning.text, _read_request_id(item.event))
        elif meaning.kind == "cancel":
            self._add_silence_before_event(item)
            self._add_caller_cancel()
        elif self._check.match_pending_event(item.event):
            self._add_silence_and_escapes(item)
            is_over = bool(self._parsed.turns and self._parsed.turns[self._current_turn - 1])
            meaning = replace(meaning, ends="") if is_over else meaning
        else:
            self._add_agent_event(item, meaning)
        if meaning.final is not None:
            self._parsed.final = meaning.final
        if meaning.ends:
            self._note_turn_end(meaning.ends)

    def _add_agent_event(self, item: PastedLogItem, meaning: EventMeaning) -> None:
        """Print an event of the agent that the steps so far do not print."""
        if meaning.kind == "begin":
            self._add_turn_begin(item)
        elif meaning.kind == "piece":
            self._add_message_piece(item, meaning.text)
        elif meaning.kind == "repeated":
            self._add_silence_and_escapes(item)
        else:
            if self._is_session and not self._is_open and (meaning.kind == "steps" or not self._parsed.turns):
                self._add_caller_prompt("hi")
            self._add_silence_before_event(item)
            self._add_event_or_steps(item, meaning)

    def _add_silence_and_escapes(self, item: PastedLogItem) -> None:
        """Let the time before an event pass that another step prints."""
        self._add_silence_before_event(item)
        self._add_escapes_before_event(item)

    def _collect_replayed_history(self, event: Any) -> bool:
        """Take what an agent replays of a session that it loads; say whether the event is a part of that."""
        method, key = get_nested(event, "method"), _read_request_id(event)
        if method in _CONTINUES_WORD_BY_METHOD:
            self._parsed.continues = {
                _CONTINUES_WORD_BY_METHOD[method]: str(get_nested(event, "params", "sessionId") or "s")
            }
            self._loading, self._replayed_history = key, []
            return True
        update = get_nested(event, "params", "update")
        if self._loading is None or not (isinstance(update, dict) or (method is None and key == self._loading)):
            return False
        if isinstance(update, dict):
            name, text = (
                _HISTORY_WORD_BY_UPDATE.get(str(update.get("sessionUpdate"))),
                get_nested(update, "content", "text"),
            )
            past = DraftStep(name, text) if name and isinstance(text, str) else DraftStep("event", update)
            if name == "prompt" or are_steps_loadable((past,), self._dialect, self._parsed.mode):
                self._replayed_history.append({past.name: past.value})
            return True
        if self._replayed_history and "load" in self._parsed.continues:
            self._parsed.lines.append(DraftScriptLine(DraftStep("handshake", {"history": self._replayed_history})))
        self._loading = None
        return True

    def _add_turn_begin(self, item: PastedLogItem) -> None:
        """Begin a turn. If a run begins again after its end, it has taken the end back."""
        self._add_silence_and_escapes(item)
        if not self._is_session:
            self._parsed.turns.clear()
        elif not self._is_open:
            self._add_caller_prompt("hi")
        if self._is_session and self._check.match_pending_event(item.event):
            return
        if self._is_session:
            self._add_verbatim_event(item, self._current_turn)
        elif self._check.play_steps((_TURN_BEGIN_STEP,), item.event) or not any(
            line.step for line in self._parsed.lines
        ):
            self._parsed.lines.append(DraftScriptLine(_TURN_BEGIN_STEP))
        else:
            self._add_verbatim_event(item, self._current_turn)

    def _add_message_piece(self, item: PastedLogItem, text: str) -> None:
        """Print a piece where time has passed before it; else it is printed together with the next one."""
        lines = self._parsed.lines
        self._unsaid += text
        self._add_silence_and_escapes(item)
        last = lines[-1].step if lines else None
        if last is None or last.name != "silence":
            return
        if not self._unsaid:
            self._add_verbatim_event(item, self._current_turn)
            return
        step = DraftStep("delta", self._unsaid)
        self._check.play_steps((step,), item.event)
        lines.append(DraftScriptLine(step))
        self._said, self._unsaid = self._said + self._unsaid, ""

    def _strip_printed_pieces(self, steps: tuple[DraftStep, ...]) -> tuple[DraftStep, ...]:
        """Leave out of a message what its pieces have printed."""
        if not self._said:
            return steps
        rest = []
        for step in steps:
            text = step.value if isinstance(step.value, str) else get_nested(step.value, "text")
            if (
                step.name not in (*_MESSAGE_STEP_NAMES, "delta")
                or not isinstance(text, str)
                or not text.startswith(self._said)
            ):
                rest.append(step)
            elif step.name != "delta" or text != self._said:
                left = text.removeprefix(self._said)
                rest.append(replace(step, value={**step.value, "text": left} if step.name == "turn_said" else left))
        return tuple(rest)

    def _strip_known_input(self, step: DraftStep) -> DraftStep:
        """Leave the input out of a question about the only tool that runs: the fake takes it from there."""
        fields = get_nested(step.value, "request_fields")
        if step.name != "ask" or fields is None or not self._parsed.running:
            return step
        kept = {key: value for key, value in fields.items() if key != "input"}
        rest = {key: value for key, value in step.value.items() if key != "request_fields"}
        return replace(step, value={**rest, **({"request_fields": kept} if kept else {})})

    def _is_queued_prompt(self, item: PastedLogItem) -> bool:
        """Say whether a prompt waits for the one in flight: only a dialect that names its requests can answer it."""
        return self._is_open and _read_request_id(item.event) is not None

    def _route_answer_to_other_prompt(self, item: PastedLogItem, meaning: EventMeaning) -> bool:
        """Give an answer of JSON-RPC to its request; say whether that is another than the prompt in hand."""
        key = _read_request_id(item.event)
        if key is None or "method" in item.event:
            self._agent_request_ids |= {key} if key is not None and meaning.kind == "steps" else set()
            return False
        if not meaning.ends:
            return False
        if "error" in item.event and key in self._agent_request_ids:
            self._agent_request_ids.remove(key)
            return True
        number = self._numbers.get(key)
        if number is None and self._is_app_server:
            return True  # an error to another request than a prompt ends no turn
        if number is None or (number == self._current_turn and self._is_open):
            return False
        self._add_silence_before_event(item)
        if number in dict(self._queue):
            self._early_answers[number] = item, meaning
        else:
            self._add_verbatim_event(item, number)
        return True

    def _add_event_or_steps(self, item: PastedLogItem, meaning: EventMeaning) -> None:
        steps = tuple(map(self._strip_known_input, self._strip_printed_pieces(meaning.steps)))
        sound = bool(steps) and self._can_write_steps(steps)
        if sound and (self._check.try_steps(steps, item.event) if not meaning.is_sure else True) and not item.glued:
            if meaning.is_sure:
                self._check.play_steps(steps, item.event)
            self._append_steps(steps)
            if any(step.name in (*_MESSAGE_STEP_NAMES, "tool") for step in steps):
                self._said = self._unsaid = ""
            return
        if self._is_app_server and "error" in item.event:
            self._write_steps_refusing_prompt()
        self._add_escapes_before_event(item)
        self._add_verbatim_event(item, self._current_turn)

    def _add_escapes_before_event(self, item: PastedLogItem) -> None:
        """Print the escape sequences that stand before an event on its line."""
        if item.glued:
            self._parsed.lines.append(DraftScriptLine(DraftStep("raw", item.glued)))

    def _add_verbatim_event(self, item: PastedLogItem, number: int) -> None:
        value = item.event
        if self._dialect == "acp" and isinstance(get_nested(value, "params", "update"), dict):
            value = value["params"]["update"]
            text = get_nested(value, "content", "text")
            if value.get("sessionUpdate") == "agent_message_chunk" and isinstance(text, str):
                self._parsed.final = (self._parsed.final or "") + text
            elif str(value.get("sessionUpdate")).startswith("tool_call"):
                self._parsed.final = None
        elif (self._dialect == "acp" or self._is_app_server) and "method" not in value:
            value = {**value, "id": f"prompt {number}"}
        elif self._is_app_server:
            value = strip_log_specific_params(value)
        step = DraftStep("event", value)
        if are_steps_loadable((step,), self._dialect, self._parsed.mode):
            self._parsed.lines.append(DraftScriptLine(step))
        else:
            self._parsed.lines.append(DraftScriptLine(DraftStep("raw", item.text + "\n")))

    def _can_write_steps(self, steps: tuple[DraftStep, ...]) -> bool:
        """Say whether the language takes them: a tool's id is given once, its end and children come after it."""
        started_ids: set[str] = set()
        for step in steps:
            number, parent = get_nested(step.value, "id"), get_nested(step.value, "parent")
            is_known = isinstance(number, str) and number in self._parsed.tools
            if step.name == "tool":
                if is_known or number in started_ids:
                    return False
                started_ids.add(number)
            if (
                step.name == "tool_done"
                and number not in started_ids
                and not (is_known and number in self._parsed.running)
            ):
                return False
            if parent is not None and not (isinstance(parent, str) and parent in self._parsed.tools):
                return False
        return are_steps_loadable(steps, self._dialect, self._parsed.mode)

    def _append_steps(self, steps: tuple[DraftStep, ...]) -> None:
        lines = self._parsed.lines
        place = next((number for number in reversed(range(len(lines))) if lines[number].step), 0)
        waited = any(line.step is not None and line.step.name == "silence" for line in lines[:place])
        if lines and lines[place].step == _TURN_BEGIN_STEP and not waited:
            del lines[place]
        for step in steps:
            if step.name == "tool":
                self._parsed.tools.add(step.value["id"])
                self._parsed.running.add(step.value["id"])
            elif step.name == "tool_done":
                self._parsed.running.discard(step.value["id"])
            self._parsed.asked += [step.value["permission"]] if step.name == "ask" else []
            if self._dialect == "acp" and step.name in ("say", "tool", "tool_done"):  # a tool ends the message
                self._parsed.final = (self._parsed.final or "") + step.value if step.name == "say" else None
            last = lines[-1].step if lines else None
            if step.name == "result" and last is not None and _is_result_of_message(last, step.value):
                text = last.value if isinstance(last.value, str) else last.value["text"]
                lines[-1] = DraftScriptLine(DraftStep("answer", text))
            elif step.name == "say" and last is not None and last.name == "delta":
                lines[-1] = DraftScriptLine(replace(step, value=last.value + step.value))
            else:
                lines.append(DraftScriptLine(step))

    def _add_caller_prompt(self, text: str, key: str | None = None) -> None:
        parsed = self._parsed
        if not self._is_session:
            return
        parsed.turns.append("")
        number = len(parsed.turns)
        if key is not None:
            self._numbers[key] = number
        if self._is_open and key is not None:
            parsed.drive.append(f"prompt after {self._since_item}: {text}")
            self._since_item = 0
            self._queue.append((number, text))
            return
        if number > 1:
            parsed.drive.append(f"wait_for: turn {number - 1}")
        parsed.drive.append(f"prompt: {text}")
        self._since_item = 0
        self._add_turn_start(number, text)

    def _add_turn_start(self, number: int, text: str) -> None:
        self._parsed.lines.append(DraftScriptLine(DraftStep("wait_for", f"prompt {number}")))
        self._check.feed_prompt(text)
        self._is_open, self._current_turn = True, number
        self._parsed.final = None

    def _write_steps_refusing_prompt(self) -> None:
        """Have the agent answer the prompt in hand without a turn: a step that takes it up would accept it."""
        taken, arrival = (
            DraftStep("wait_for", f"prompt {self._current_turn}"),
            DraftStep("wait_for", {"stdin": "*turn/start*"}),
        )
        place = self._parsed.lines.index(DraftScriptLine(taken))
        # Each of these steps waits for one more prompt, counted from the last that was refused.
        self._parsed.lines[place : place + 1] = [DraftScriptLine(arrival)] * (
            self._current_turn - self._last_refused_turn
        )
        self._last_refused_turn = self._current_turn

    def _add_caller_cancel(self) -> None:
        if not self._is_open:
            return
        self._parsed.cancelled = self._current_turn
        self._check.feed_cancel()
        self._parsed.drive.append(f"cancel: {max(self._since_item, 1_000_000_000)}")
        self._since_item = 0
        self._parsed.lines.append(DraftScriptLine(DraftStep("wait_for", "cancel")))

    def _note_turn_end(self, how: str) -> None:
        if not self._is_session:
            self._parsed.turns[:] = [how]
        elif self._current_turn:
            self._parsed.turns[self._current_turn - 1] = how
            if how == "completed" and self._parsed.final:
                self._parsed.texts[self._current_turn] = self._parsed.final
        self._is_open = False
        if self._queue:
            number, text = self._queue.pop(0)
            self._add_turn_start(number, text)
            if number in self._early_answers:
                item, meaning = self._early_answers[number]
                self._add_event_or_steps(item, meaning)
                self._note_turn_end(meaning.ends)

    def _add_silence_before_event(self, item: PastedLogItem, *, is_callers: bool = False) -> None:
        """Give the time since the event before; the caller's time between two turns is not the agent's."""
        before, now = self._at, item.at or _read_event_timestamp(item.event)
        self._at = now or before
        gap = measure_time_between(before, now) if before is not None and now is not None else None
        if gap is None or gap < MIN_SILENCE_NS or is_callers or (self._is_session and not self._is_open):
            return
        self._since_item = min(self._since_item + gap, LONGEST_DURATION_NS)
        lines = self._parsed.lines
        last = lines[-1].step if lines else None
        if last is not None and last.name == "silence":
            gap = min(gap + last.value, LONGEST_DURATION_NS)
            lines.pop()
        self._parsed.longest = max(self._parsed.longest, gap)
        lines.append(DraftScriptLine(DraftStep("silence", gap)))


def _read_request_id(event: dict[str, Any]) -> str | None:
    """Give the id of a message of JSON-RPC; None if it has none, or is no such message."""
    return json.dumps(event["id"]) if "type" not in event and "id" in event else None


def _is_result_of_message(last: DraftStep, result: dict[str, Any]) -> bool:
    """Say whether a text and a completion are one answer."""
    if last.name not in _MESSAGE_STEP_NAMES or set(result) - {"text"}:
        return False
    if isinstance(last.value, dict):
        return bool(last.value["stop"] == "stop")
    return bool(result.get("text", last.value) == last.value)


def _read_event_timestamp(event: Any) -> LoggedInstant | None:
    """Find the instant that an event has in itself."""
    for key in ("timestamp", "ts", "time"):
        value = get_nested(event, key)
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            return find_logged_instant(str(value))
    return None
