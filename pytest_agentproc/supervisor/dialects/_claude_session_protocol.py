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

from pytest_agentproc.supervisor.dialects._claude import ClaudeReader
from pytest_agentproc.supervisor.dialects._json import as_dict, as_text, encode_line
from pytest_agentproc.supervisor.dialects._meanings import (
    BACKGROUND_TURN_MARK,
    HandshakeDone,
    HandshakeRefused,
    Hook,
    ImmediateReply,
    Other,
    PromptNamed,
    Question,
    QuestionWithdrawn,
    SwitchRefused,
    TurnBegun,
)
from pytest_agentproc.supervisor.dialects._session_protocol import SessionDefaults

if TYPE_CHECKING:
    from pytest_agentproc.supervisor.dialects._meanings import Meaning
    from pytest_agentproc.supervisor.dialects._session_protocol import Setting


_KINDS_OF_TURN_LINES = ("stream_event", "assistant", "user", "result")
_SUBTYPE_BY_SWITCH = {"mode": "set_permission_mode", "model": "set_model"}
"""The request for each switch. Nobody waits for its response, so all have the same id, the word of the switch."""
_UUID_NAMESPACE_OF_PROMPTS = uuid.UUID("6ee23b1c-53d0-4c12-9e0a-0c8f2f8f5f0e")


class ClaudeSessionProtocol(SessionDefaults, ClaudeReader):
    """Talk to `claude --input-format stream-json --output-format stream-json`."""

    is_marked = False
    answers_cancel = False

    def __init__(self, setting: Setting) -> None:
        ClaudeReader.__init__(self, by_block=True)
        self.setting = setting
        self.begins_at_once = False
        """Whether an init came before any prompt, and nothing after it: it is the first prompt's."""
        self._numbers: dict[str, int] = {}

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

    def _read_event(self, kind: str, event: dict[str, Any]) -> list[Meaning]:
        if kind in _KINDS_OF_TURN_LINES:
            return [*self._begin_unprompted_turn(), *super()._read_event(kind, event)]
        if kind == "control_response":
            return [_read_response(as_dict(event.get("response")))]
        if kind == "control_request":
            return self._read_request(event)
        if kind == "control_cancel_request":
            return [QuestionWithdrawn(str(event.get("request_id")))]
        return self._read_command_lifecycle(event) if kind == "command_lifecycle" else super()._read_event(kind, event)

    def _find_turns(self, event: dict[str, Any]) -> tuple[int, ...]:
        """Say which turns a line names; a prompt that is none of ours is the agent's own business."""
        named = event.get("user_message_uuids") or event.get("user_message_uuid")
        if not named:
            return ()
        names = named if isinstance(named, list) else [named]
        ours = tuple(self._numbers[name] for name in names if isinstance(name, str) and name in self._numbers)
        return ours or (BACKGROUND_TURN_MARK,)

    # Control.

    def _read_request(self, value: dict[str, Any]) -> list[Meaning]:
        name, request = str(value.get("request_id")), as_dict(value.get("request"))
        kind = request.get("subtype")
        if kind == "can_use_tool":
            return [*self._begin_unprompted_turn(), Question(name, str(request.get("tool_name", "")), request)]
        if kind == "hook_callback":
            return [self._read_hook(name, request)]
        refused = {"subtype": "error", "request_id": name, "error": f"unsupported request: {kind}"}
        return [ImmediateReply(encode_line({"type": "control_response", "response": refused}))]

    def _read_hook(self, name: str, request: dict[str, Any]) -> Hook:
        callback, hook_input = str(request.get("callback_id")), as_dict(request.get("input"))
        event = hook_input.get("hook_event_name") or dict(self.setting.hooks).get(callback, "")
        return Hook(name, callback, str(event), str(hook_input.get("tool_name") or ""), hook_input)

    def encode_hook_answer(self, hook: Hook, refusal: str = "") -> bytes:
        """Say nothing to a hook, or that its tool may not run."""
        if not refusal:
            return _encode_control_response(hook.id, {})
        denied = {"permissionDecision": "deny", "permissionDecisionReason": refusal}
        return _encode_control_response(hook.id, {"hookSpecificOutput": {"hookEventName": hook.event, **denied}})

    # A turn.

    def _read_command_lifecycle(self, value: dict[str, Any]) -> list[Meaning]:
        """Learn before the first turn begins that this CLI echoes uuids: it tells each one's way through its queue."""
        number = self._numbers.get(str(value.get("command_uuid")))
        return [Other("command_lifecycle")] if number is None else [PromptNamed((number,))]

    def _read_system(self, event: dict[str, Any]) -> list[Meaning]:
        meanings = super()._read_system(event)
        if event.get("subtype") != "init":
            return meanings
        self._messages.forget_messages()
        welcome, marks = HandshakeDone(as_text(event.get("session_id"))), self._find_turns(event)
        if not marks and not self._numbers:
            self.begins_at_once = True
            return [welcome]
        return [welcome, TurnBegun(marks)]

    def _begin_unprompted_turn(self) -> list[Meaning]:
        """Say that a background turn began with an init before the first prompt: words follow, and no prompt has."""
        meanings: list[Meaning] = [TurnBegun()] if self.begins_at_once else []
        self.begins_at_once = False
        return meanings


def _read_response(response: dict[str, Any]) -> Meaning:
    name = str(response.get("request_id"))
    if name in _SUBTYPE_BY_SWITCH and response.get("subtype") == "error":
        return SwitchRefused(name, str(response.get("error") or "no reason is given"))
    if name != "greet-0":
        return Other("control_response")
    if response.get("subtype") == "success":
        return HandshakeDone()
    return HandshakeRefused(str(response.get("error") or "the handshake was refused"))


def _encode_control_request(name: str, request: dict[str, Any]) -> bytes:
    return encode_line({"type": "control_request", "request_id": name, "request": request})


def _encode_control_response(name: str, response: dict[str, Any]) -> bytes:
    fields = {"subtype": "success", "request_id": name, "response": response}
    return encode_line({"type": "control_response", "response": fields})
