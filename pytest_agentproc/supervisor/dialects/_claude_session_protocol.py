"""claude in sessions: stream-json both ways. Knows no other dialect and no fake's code.

Every prompt carries a uuid of ours. The init, the first assistant line and the result of its turn carry it back; those
of a background turn carry none, and its result has the origin `task-notification`. If a CLI echoes no uuid, its lines
are read by the origin, else by the order of inits. Words before the result may then be shown as a prompt's; the result
gives them to the background turn. The CLI prints no init before the first prompt (all recordings agree). One that does
may print it just before or just after that prompt is written: either way it stands for that prompt's turn, unless words
follow before the prompt does. An interrupt is acknowledged by the turn's result, not by its control_response, which
only says that it was heard. A hook is announced for every tool and without a timeout: with one the CLI gives up itself,
and runs what a late PostToolUse was to see, while without it waits for our own limit.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from pytest_agentproc.supervisor.dialects._base import (
    MAX_ID_CHARS,
    Asked,
    Compaction,
    Nested,
    Other,
    ToolEnded,
    ToolStarted,
)
from pytest_agentproc.supervisor.dialects._claude_messages import MessageReaders
from pytest_agentproc.supervisor.dialects._claude_tasks import SYSTEM_EVENTS_OF_HOOKS, SystemLines
from pytest_agentproc.supervisor.dialects._json import encode_line
from pytest_agentproc.supervisor.dialects._session_protocol import (
    BACKGROUND_TURN_MARK,
    HandshakeDone,
    HandshakeRefused,
    Hook,
    ImmediateReply,
    JsonSessionProtocol,
    PromptNamed,
    Question,
    QuestionWithdrawn,
    SwitchRefused,
    TurnBegun,
    TurnEnded,
    TurnProgress,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_agentproc.supervisor.dialects._base import Meaning
    from pytest_agentproc.supervisor.dialects._session_protocol import SessionMeaning, Setting


_MEANINGS_OF_TOOLS = (Asked, Nested, ToolEnded, ToolStarted)
_SUBTYPE_BY_SWITCH = {"mode": "set_permission_mode", "model": "set_model"}
"""The request for each switch. Nobody waits for its response, so all have the same id, the word of the switch."""
_UUID_NAMESPACE_OF_PROMPTS = uuid.UUID("6ee23b1c-53d0-4c12-9e0a-0c8f2f8f5f0e")


class ClaudeSessionProtocol(JsonSessionProtocol):
    """Talk to `claude --input-format stream-json --output-format stream-json`."""

    is_marked = False
    answers_cancel = False

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self.begins_at_once = False
        """Whether an init came before any prompt, and nothing after it: it is the first prompt's."""
        self._numbers: dict[str, int] = {}
        self._readers = MessageReaders(1)
        self._system_lines = SystemLines()
        self.readers = {
            "control_response": self._read_response,
            "control_request": self._read_request,
            "control_cancel_request": lambda value: [QuestionWithdrawn(str(value.get("request_id")))],
            "command_lifecycle": self._read_command_lifecycle,
            "system": self._read_system,
            "stream_event": lambda value: [*self._read_tools("stream_event", value), *self._read_stream_event(value)],
            "assistant": lambda value: [*self._read_tools("assistant", value), *self._read_assistant(value)],
            "user": lambda value: [*self._read_tools("user", value), *self._read_user(value)],
            "tool_progress": lambda value: [Other("heartbeat") if value.get("heartbeat") else TurnProgress("tool")],
            "result": self._read_result,
        }

    def encode_greeting(self) -> bytes:
        """Begin the handshake."""
        events: dict[str, list[dict[str, Any]]] = {}
        for name, event in self.setting.hooks:
            events.setdefault(event, []).append({"matcher": None, "hookCallbackIds": [name]})
        return _encode_control_request("greet-0", {"subtype": "initialize", "hooks": events or None})

    def encode_prompt(self, number: int, text: str) -> bytes:
        """Give the prompt of a turn, with the uuid that its turn will name."""
        self.begins_at_once = False
        mark = str(uuid.uuid5(_UUID_NAMESPACE_OF_PROMPTS, f"{self.setting.key}/{number}"))
        self._numbers[mark] = number
        message = {"role": "user", "content": text}
        return encode_line(
            {"type": "user", "session_id": "", "message": message, "parent_tool_use_id": None, "uuid": mark}
        )

    def encode_cancel(self, number: int) -> bytes:
        """Interrupt what runs."""
        return _encode_control_request(f"cancel-{number}", {"subtype": "interrupt"})

    def encode_switch(self, what: str, name: str) -> bytes:
        """Switch the permission mode or the model."""
        return _encode_control_request(what, {"subtype": _SUBTYPE_BY_SWITCH[what], what: name})

    def encode_answer(self, question: Question, *, allowed: bool | None) -> bytes:
        """Allow a tool with its input as it is, or deny it."""
        if allowed:
            return _encode_control_response(
                question.id, {"behavior": "allow", "updatedInput": question.detail.get("input")}
            )
        return _encode_control_response(
            question.id, {"behavior": "deny", "message": "denied by the supervising program"}
        )

    def _find_turns(self, value: dict[str, Any]) -> tuple[int, ...]:
        """Say which turns a line names; a prompt that is none of ours is the agent's own business."""
        named = value.get("user_message_uuids") or value.get("user_message_uuid")
        if not named:
            return ()
        names = named if isinstance(named, list) else [named]
        ours = tuple(self._numbers[name] for name in names if isinstance(name, str) and name in self._numbers)
        return ours or (BACKGROUND_TURN_MARK,)

    # Control.

    def _read_response(self, value: dict[str, Any]) -> list[SessionMeaning]:
        response = _as_dict(value.get("response"))
        name = str(response.get("request_id"))
        if name in _SUBTYPE_BY_SWITCH and response.get("subtype") == "error":
            return [SwitchRefused(name, str(response.get("error") or "no reason is given"))]
        if name != "greet-0":
            return [Other("control_response")]
        if response.get("subtype") == "success":
            return [HandshakeDone()]
        return [HandshakeRefused(str(response.get("error") or "the handshake was refused"))]

    def _read_request(self, value: dict[str, Any]) -> list[SessionMeaning]:
        name, request = str(value.get("request_id")), _as_dict(value.get("request"))
        kind = request.get("subtype")
        if kind == "can_use_tool":
            return [*self._begin_unprompted_turn(), Question(name, str(request.get("tool_name", "")), request)]
        if kind == "hook_callback":
            return [self._read_hook(name, request)]
        refused = {"subtype": "error", "request_id": name, "error": f"unsupported request: {kind}"}
        return [ImmediateReply(encode_line({"type": "control_response", "response": refused}))]

    def _read_hook(self, name: str, request: dict[str, Any]) -> Hook:
        callback, hook_input = str(request.get("callback_id")), _as_dict(request.get("input"))
        event = hook_input.get("hook_event_name") or dict(self.setting.hooks).get(callback, "")
        return Hook(name, callback, str(event), str(hook_input.get("tool_name") or ""), hook_input)

    def encode_hook_answer(self, hook: Hook, refusal: str = "") -> bytes:
        """Say nothing to a hook, or that its tool may not run."""
        if not refusal:
            return _encode_control_response(hook.id, {})
        denied = {"permissionDecision": "deny", "permissionDecisionReason": refusal}
        return _encode_control_response(hook.id, {"hookSpecificOutput": {"hookEventName": hook.event, **denied}})

    # A turn.

    def _read_command_lifecycle(self, value: dict[str, Any]) -> list[SessionMeaning]:
        """Learn before the first turn begins that this CLI echoes uuids: it tells each one's way through its queue."""
        number = self._numbers.get(str(value.get("command_uuid")))
        return [Other("command_lifecycle")] if number is None else [PromptNamed((number,))]

    def _read_system(self, value: dict[str, Any]) -> list[SessionMeaning]:
        if value.get("subtype") != "init":
            return self._add_work_progress(str(value.get("subtype")), self._system_lines.read_line(value))
        self._readers.forget_messages()
        session, marks = value.get("session_id"), self._find_turns(value)
        welcome = HandshakeDone(session if isinstance(session, str) else None)
        if not marks and not self._numbers:
            self.begins_at_once = True
            return [welcome]
        return [welcome, TurnBegun(marks)]

    def _begin_unprompted_turn(self) -> list[SessionMeaning]:
        """Say that a background turn began with an init before the first prompt: words follow, and no prompt has."""
        meanings: list[SessionMeaning] = [TurnBegun()] if self.begins_at_once else []
        self.begins_at_once = False
        return meanings

    def _add_work_progress(self, subtype: str, meanings: Sequence[SessionMeaning]) -> list[SessionMeaning]:
        """Say of a compaction, and of a hook of the user's settings, that it is progress, too."""
        if any(isinstance(meaning, Compaction) for meaning in meanings):
            return [TurnProgress("tool", "compaction"), *meanings]
        return [TurnProgress("tool", "hook"), *meanings] if subtype in SYSTEM_EVENTS_OF_HOOKS else [*meanings]

    def _read_tools(self, kind: str, value: dict[str, Any]) -> list[SessionMeaning]:
        """Say what a line does with tools; a message that it ends comes before what it says itself."""
        return [*self._begin_unprompted_turn(), *_select_tool_meanings(self._readers.read_line(kind, value))]

    def _read_stream_event(self, value: dict[str, Any]) -> list[SessionMeaning]:
        if value.get("parent_tool_use_id"):
            return [TurnProgress("tool")]
        event = _as_dict(value.get("event"))
        delta = _as_dict(event.get("delta"))
        text = str(delta.get("text", "")) if delta.get("type") == "text_delta" else ""
        return [TurnProgress("delta", text, self._find_turns(value), is_end=event.get("type") == "message_start")]

    def _read_assistant(self, value: dict[str, Any]) -> list[SessionMeaning]:
        self._system_lines.note_stop_requests(value)
        if value.get("parent_tool_use_id"):
            return [TurnProgress("tool")]
        message, marks = _as_dict(value.get("message")), self._find_turns(value)
        model = message.get("model")
        blocks = _list_content_blocks(message)
        text = "".join(str(block.get("text", "")) for block in blocks if block.get("type") == "text")
        name = str(message.get("id") or "")[:MAX_ID_CHARS]
        whole = TurnProgress("message", text, marks, model=model if isinstance(model, str) else None, id=name)
        tools = [
            TurnProgress("tool", str(block.get("name", "")), marks)
            for block in blocks
            if block.get("type") == "tool_use"
        ]
        return [whole, *tools] if text or not tools else [*tools]

    def _read_user(self, value: dict[str, Any]) -> list[SessionMeaning]:
        is_tool = any(
            block.get("type") == "tool_result" for block in _list_content_blocks(_as_dict(value.get("message")))
        )
        return [TurnProgress("tool")] if is_tool else [Other("user")]

    def _read_result(self, value: dict[str, Any]) -> list[SessionMeaning]:
        self._system_lines.note_turn_end()
        is_own = _as_dict(value.get("origin")).get("kind") == "task-notification"
        marks = (BACKGROUND_TURN_MARK,) if is_own else self._find_turns(value)
        ok = value.get("subtype") == "success" and not value.get("is_error")
        text, stop, usage = value.get("result"), value.get("stop_reason"), value.get("usage")
        ended = TurnEnded(
            ok,
            marks,
            text if isinstance(text, str) else None,
            stop if isinstance(stop, str) else None,
            "" if ok else _read_error_message(value),
            usage=usage if isinstance(usage, dict) else None,
        )
        return [*self._begin_unprompted_turn(), *_select_tool_meanings(self._readers.end_messages()), ended]


def _select_tool_meanings(meanings: list[Meaning]) -> list[SessionMeaning]:
    return [meaning for meaning in meanings if isinstance(meaning, _MEANINGS_OF_TOOLS)]


def _read_error_message(value: dict[str, Any]) -> str:
    errors = value.get("errors")
    if isinstance(errors, list) and errors:
        return "; ".join(str(error) for error in errors)
    return str(value.get("result") or value.get("subtype") or "an error")


def _list_content_blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _as_dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _encode_control_request(name: str, request: dict[str, Any]) -> bytes:
    return encode_line({"type": "control_request", "request_id": name, "request": request})


def _encode_control_response(name: str, response: dict[str, Any]) -> bytes:
    fields = {"subtype": "success", "request_id": name, "response": response}
    return encode_line({"type": "control_response", "response": fields})
