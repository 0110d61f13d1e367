"""Plays a scenario's fake in memory and compares it with what a log or a recording says.

A log's event is reproduced if all that it has stands in what the encoder says, but for what differs from run to run:
ids, times, counts, names of models. A report may leave keys out; the keys that it has must be right.

The fake of a recording gets each input on stdin when it has printed as much as the recording had, or when all sides
wait.

An encoder keeps what it printed, and a deep copy for each line of a long log takes the square of its length. But an
encoder never changes a dict or a tuple that it keeps: it puts another in its place. So these are shared, and only
objects and the lists, dicts and sets that they own are copied.
"""

from __future__ import annotations

import contextlib
import copy
import json
from collections import deque
from types import MethodType
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_agentproc.events import Event, InputEnded, InputRead, OutputWritten, ProcessEnded, SignalCaught
from pytest_agentproc.fake_agents.dialects import make_encoder
from pytest_agentproc.fake_agents.player import ScriptPlayer
from pytest_agentproc.vocabulary import DIALECTS, format_signal_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_agentproc.capture._meaning import DraftStep
    from pytest_agentproc.scenario import BoundScenario


_FAKE_AGENTS_MODULE_PREFIX = "pytest_agentproc.fake_agents."


def copy_encoder(encoder: Any) -> Any:
    """Give an encoder in the same state: steps that are played on either of the two leave the other as it is."""
    if not type(encoder).__module__.startswith(_FAKE_AGENTS_MODULE_PREFIX):
        return copy.deepcopy(encoder)  # an encoder of a plugin may change whatever it keeps
    return _copy_value(encoder, {})


def _copy_value(value: Any, copies: dict[int, Any]) -> Any:
    if isinstance(value, MethodType):
        return MethodType(value.__func__, _copy_value(value.__self__, copies))
    if isinstance(value, dict):
        return (
            {key: _copy_value(member, copies) for key, member in value.items()}
            if _has_mutable_members(value.values())
            else value.copy()
        )
    if isinstance(value, list):
        return [_copy_value(member, copies) for member in value] if _has_mutable_members(value) else value.copy()
    if isinstance(value, set):
        return value.copy()
    if not type(value).__module__.startswith(_FAKE_AGENTS_MODULE_PREFIX):
        return value
    if id(value) not in copies:
        copies[id(value)] = twin = object.__new__(type(value))
        for name in getattr(value, "__dict__", None) or value.__slots__:
            setattr(twin, name, _copy_value(getattr(value, name), copies))
    return copies[id(value)]


def _has_mutable_members(members: Any) -> bool:
    """Say whether the members can change; all members of a collection are of one kind, so the first decides."""
    first = next(iter(members), None)
    return isinstance(first, MethodType | list) or type(first).__module__.startswith(_FAKE_AGENTS_MODULE_PREFIX)


_MAX_REPLAY_GRANTS = 1_000_000


class AgentInput(NamedTuple):
    """One thing that the agent was given.

    Args:
        data: bytes of stdin; empty: its end; a number: a signal.
        behind: how many lines it had printed before.
        at: when, in nanoseconds since the start, if that is known.
    """

    data: bytes | int
    behind: int
    at: int = 0


class _ReplayEnded(BaseException):
    """The agent has exited or died: its player stops."""


class ReplayStage:
    """The actions of the fake, and the stage for them.

    `out` and `err` are the bytes that it wrote, `events` all that happened, `ended` its exit code, or minus the
    number of a signal; None: it lives.
    """

    def __init__(self) -> None:
        self.out = bytearray()
        self.err = bytearray()
        self.lines = 0
        self.now = 0
        self.events: list[Event] = []
        self.ended: int | None = None
        self.children: list[dict[str, Any]] = []
        self.caught: set[int] = set()
        self.input: deque[bytes] = deque()
        self._gone: set[str] = set()

    def add_note(self, code: str, data: Any) -> None:
        """Keep nothing."""

    def read_start_facts(self, names: Sequence[str] | None) -> dict[str, Any]:
        """Tell nothing."""
        return {"argv": [], "env": dict.fromkeys(names or ()), "cwd": "/", "longest": 0}

    def has_terminal(self) -> bool:
        return False

    def can_write_chunk(self, stream: str) -> bool:
        """There is always room."""
        return True

    def write_file(self, path: str, data: bytes) -> None:
        """Write nothing."""

    def write_message_file(self, path: str, data: bytes | None) -> None:
        """Write nothing."""

    def append_session_file(self, path: str, data: bytes) -> None:
        """Write nothing."""

    def write_chunk(self, stream: str, data: bytes) -> bool:
        """Keep the bytes."""
        (self.out if stream == "stdout" else self.err).extend(data)
        self.lines += data.count(b"\n") if stream == "stdout" else 0
        self.events.append(OutputWritten(self.now, "agent", data, stream))
        return True

    def read_stdin(self, size: int) -> bytes | None:
        """Give what stdin has."""
        return self.input.popleft() if self.input else None

    def close_stream(self, stream: str) -> None:
        """No other process is there to see it."""

    def catch_signal(self, signum: int, exit_code: int | None = None) -> None:
        """Hear a signal."""
        self.caught.add(signum)

    def stop_catching_signal(self, signum: int) -> None:
        """Die of it again."""
        self.caught.discard(signum)

    def spawn_descendant(self, index: int, fields: dict[str, Any], program: dict[str, Any]) -> None:
        """Note the descendant; it does nothing here."""
        self.children.append(fields)

    def watch_process_end(self, name: str) -> None:
        """It is not there."""

    def has_process_ended(self, name: str) -> bool:
        """All processes have ended at once."""
        return True

    def signal_process(self, name: str, signum: int) -> None:
        """Nobody is there."""

    def exit_process(self, code: int) -> None:
        """Exit."""
        self.ended = code
        self.events.append(ProcessEnded(self.now, "agent", code))
        raise _ReplayEnded

    def die_of_signal(self, signum: int) -> None:
        """Die of a signal."""
        self.ended = -signum
        self.events.append(ProcessEnded(self.now, "agent", signal=format_signal_name(signum)))
        raise _ReplayEnded


def replay_agent(bound: BoundScenario, argv: Sequence[str], prompt: str, given: Sequence[AgentInput]) -> ReplayStage:
    """Play the agent of a scenario to its end, or until it waits for ever.

    Args:
        bound: the scenario under a policy.
        argv: the arguments with which the agent was called.
        prompt: the prompt that is in them.
        given: what it was given, in order.
    """
    stage = ReplayStage()
    steps = [step for step in bound.program["steps"] if step[1] != "read_stdin"]  # an agent that spoke has read it
    program = {**bound.program, "steps": steps, "argv": list(argv), "environ": {}, "prompt": prompt}
    player = ScriptPlayer(program, stage, make_encoder(program))
    coming = deque(given)
    with contextlib.suppress(_ReplayEnded):
        _run_player_to_end(player, stage, coming)
    return stage


def _run_player_to_end(player: ScriptPlayer, stage: ReplayStage, coming: deque[AgentInput]) -> None:
    now = 0
    for _ in range(_MAX_REPLAY_GRANTS):
        signals: list[int] = []
        if _is_input_due(coming, stage, now) and _is_player_waiting(player, now):
            stage.now = now
            signals = _deliver_agent_input(coming.popleft(), stage)
        stage.now = now
        player.run_until_parked(now, signals, readable=bool(stage.input))
        if not _is_player_waiting(player, now) or _is_input_due(coming, stage, now):
            continue
        waits = [coming[0].at] if coming and stage.lines >= coming[0].behind else []
        waits += [] if player.earliest_wake_instant is None else [player.earliest_wake_instant]
        if waits:
            now = min(waits)
        elif coming:
            coming[0] = coming[0]._replace(behind=0)
        else:
            return


def _is_input_due(coming: deque[AgentInput], stage: ReplayStage, now: int) -> bool:
    return bool(coming) and stage.lines >= coming[0].behind and now >= coming[0].at


def _is_player_waiting(player: ScriptPlayer, now: int) -> bool:
    return not any(player.wanted_streams[1:]) and (
        player.earliest_wake_instant is None or player.earliest_wake_instant > now
    )


def _deliver_agent_input(given: AgentInput, stage: ReplayStage) -> list[int]:
    if isinstance(given.data, bytes):
        stage.input.append(given.data)
        now, data = stage.now, given.data
        stage.events.append(InputRead(now, "agent", data) if data else InputEnded(now, "agent"))
        return []
    met = "caught" if given.data in stage.caught else "default"
    stage.events.append(SignalCaught(stage.now, "agent", format_signal_name(given.data), met))
    if given.data not in stage.caught:
        stage.die_of_signal(given.data)
    return [given.data]


_KEYS_VARYING_BY_RUN = """
    uuid session_id sessionId sessionID messageID snapshot timestamp ts time thread_id threadId usage modelUsage stats
    tokens cost duration_ms ttft_ms willRetry
    duration_api_ms total_cost_usd num_turns request_id responseId user_message_uuid user_message_uuids signature
    details errors tool_use_result tool_result_meta aggregated_output exit_code structured_content messages toolResults
    api_error_status api_error_type stop_reason stop_sequence stop_details terminal_reason permission_denials
    context_management begun_message_ids ttft_stream_ms time_to_request_ms first_content_frame_ms
    model_usage_since_last_result
"""
_KEYS_VARYING_BY_MACHINE = """
    model responseModel provider api cwd tools mcp_servers apiKeySource slash_commands agents skills plugins level _meta
    output_style permissionMode claude_code_version version fast_mode_state
"""
_VARYING_KEYS = frozenset((_KEYS_VARYING_BY_RUN + _KEYS_VARYING_BY_MACHINE).split())
"""Keys whose values are a run's own, a machine's or a version's."""

_DEFAULT_FIELDS_BY_STEP: dict[str, dict[str, Any]] = {"tool": {"input": {}}, "tool_done": {"output": "", "error": None}}
_FAKE_THREAD_ID = "01a20072-e39f-7280-8216-1a538c0445ff"
"""The thread of the fake."""

_PROMPT_REQUESTS_BY_DIALECT: dict[str, Callable[[str], list[dict[str, Any]]]] = {
    "claude": lambda text: [{"type": "user", "message": {"role": "user", "content": text}}],
    "pi": lambda text: [{"id": "1", "type": "prompt", "message": text}],
    "acp": lambda text: [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}},
        {"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": "/", "mcpServers": []}},
        _make_acp_prompt_request(text),
    ],
    "codex": lambda text: [
        {"id": 0, "method": "initialize", "params": {}},
        {"id": 1, "method": "thread/start", "params": {}},
        {
            "id": 2,
            "method": "turn/start",
            "params": {"threadId": _FAKE_THREAD_ID, "input": [{"type": "text", "text": text}]},
        },
    ],
}
_CANCEL_REQUEST_BY_DIALECT: dict[str, dict[str, Any]] = {
    "claude": {"type": "control_request", "request_id": "1", "request": {"subtype": "interrupt"}},
    "pi": {"id": "2", "type": "abort"},
}


def _make_acp_prompt_request(text: str) -> dict[str, Any]:
    params = {"sessionId": "sess_1", "prompt": [{"type": "text", "text": text}]}
    return {"jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": params}


class EncoderCheck:
    """The dialect's encoder, in the state in which the draft so far leaves it.

    Args:
        dialect: the dialect.
        mode: its mode.
        version: the version of its CLI; "" for the newest.
        partials: whether claude streams.
    """

    def __init__(self, dialect: str, mode: str, version: str, *, partials: bool) -> None:
        record = DIALECTS[dialect].find_version(version) or DIALECTS[dialect]
        self._dialect = dialect
        program: Any = {"dialect": dialect, "mode": mode, "prompt": "hi", "encoder": record.list_encoder_modules(mode)}
        program["argv"] = list(record.partials) if partials else []
        self._encoder: Any = make_encoder(program)
        self._prompts = 0
        self._pending: list[Any] = []

    def match_pending_event(self, event: Any) -> bool:
        """Say whether the steps so far say this event; the events before it then count as said, too."""
        for index, said in enumerate(self._pending):
            if contains_wanted_value(said, event):
                del self._pending[: index + 1]
                return True
        return False

    def feed_prompt(self, text: str) -> None:
        """Have the caller ask, and the agent take it up."""
        requests = _PROMPT_REQUESTS_BY_DIALECT[self._dialect](text)
        reply = b""
        for request in requests[-1:] if self._prompts else requests:
            reply, _ = self._encoder.handle_request(json.dumps(request).encode(), 0)
        if self._encoder.has_received_prompt(self._prompts + 1):  # else the prompt joined the turn that runs
            self._prompts += 1
            self._pending = _parse_json_lines(reply + self._encoder.begin_prompt_turn(self._prompts, 0))

    def feed_cancel(self) -> None:
        """Have the caller cancel the turn, where the acknowledgement depends on it."""
        if self._dialect in _CANCEL_REQUEST_BY_DIALECT:
            self._encoder.handle_request(json.dumps(_CANCEL_REQUEST_BY_DIALECT[self._dialect]).encode(), 0)

    def try_steps(self, steps: Sequence[DraftStep], event: Any) -> bool:
        """Play steps, and say whether they say the event; if not, nothing has happened."""
        before, pending = copy_encoder(self._encoder), self._pending
        if self.play_steps(steps, event):
            return True
        self._encoder, self._pending = before, pending
        return False

    def play_steps(self, steps: Sequence[DraftStep], event: Any) -> bool:
        """Play steps that need no proof; say whether they say the event."""
        try:
            self._pending = [
                said for step in steps for said in _parse_json_lines(self._encode_step(step.name, step.value))
            ]
        except (AttributeError, KeyError, TypeError):  # of other types than the encoder's, or about what it did not see
            self._pending = []
        return self.match_pending_event(event)

    def _encode_step(self, name: str, value: Any) -> bytes:
        encoded: bytes
        if name in ("say", "answer"):
            encoded = (
                self._encoder.encode_text(value, None, 0) if name == "say" else self._encoder.encode_answer(value, 0)
            )
        elif name == "result":
            encoded = self._encoder.encode_result({"text": None, "is_error": False, "usage": None, **value}, 0)
        elif name == "acknowledge":
            encoded = self._encoder.end_cancelled_turn(0)
        elif name == "turn_said":  # pi: a message with its stop reason
            encoded = self._encoder.encode_text(value["text"], value["stop"], 0)
        else:
            encoded = self._encoder.events[name](
                {**_DEFAULT_FIELDS_BY_STEP[name], **value} if name in _DEFAULT_FIELDS_BY_STEP else value, 0
            )
        return encoded


def _parse_json_lines(data: bytes) -> list[Any]:
    if data.startswith(b"{\n"):  # one object over many lines
        return [json.loads(data)]
    return [json.loads(line) for line in data.splitlines() if line.startswith(b"{")]


def contains_wanted_value(said: Any, wanted: Any) -> bool:
    """Say whether all that is wanted is there, but for what differs from run to run; a list of one text is the text."""
    if isinstance(wanted, dict):
        return isinstance(said, dict) and all(
            contains_wanted_value(said.get(key), value)
            for key, value in wanted.items()
            if not _is_varying_key(key, wanted)
        )
    if isinstance(wanted, list):
        if isinstance(said, str) and len(wanted) == 1 and isinstance(wanted[0], dict):
            return bool(wanted[0].get("text") == said)
        return isinstance(said, list) and len(said) == len(wanted) and all(map(contains_wanted_value, said, wanted))
    return bool(said == wanted)


def _is_varying_key(key: str, within: dict[str, Any]) -> bool:
    """Say whether a value is the run's own: also the id of a message, an item or a request, but not of a tool."""
    return (
        key in _VARYING_KEYS
        or within[key] is None
        or (key == "id" and within.get("type") not in ("tool_use", "toolCall"))
    )
