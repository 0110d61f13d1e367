"""Lines with values of wrong types: no session breaks on them (F2, F3)."""

from __future__ import annotations

import json
from bisect import bisect_left
from typing import Any

import pytest

from pytest_agentproc.supervisor import _events as machine_events
from pytest_agentproc.supervisor.dialects import Setting, make_session_protocol
from tests.unit.session_stage import Stage

ODD: list[Any] = [None, True, 7, 1.5, "²", "9" * 5000, [], ["x"], {}, {"x": []}, "\ud800"]
LINES: dict[str, list[dict[str, Any]]] = {
    "pi": [
        {"type": "response", "id": "prompt-1", "success": True, "error": "e", "data": {"sessionId": "s"}},
        {"type": "response", "id": "greet-0", "success": True, "data": {"sessionId": "s"}},
        {"type": "message_end", "message": {"role": "assistant", "content": [{"type": "text", "text": "x"}]}},
        {"type": "message_end", "message": {"role": "assistant", "stopReason": "error", "errorMessage": "e"}},
        {"type": "message_end", "message": {"role": "assistant", "content": "x", "usage": {}, "model": "m"}},
        {
            "type": "message_end",
            "message": {"role": "assistant", "stopReason": "toolUse", "content": [{"type": "toolCall", "name": "x"}]},
        },
        {"type": "message_update", "assistantMessageEvent": {"type": "text_delta", "delta": "d"}},
        {"type": "extension_ui_request", "id": "1", "method": "select"},
        {"type": "tool_execution_start", "toolName": "bash"},
    ],
    "acp": [
        {"jsonrpc": "2.0", "id": 2, "result": {"stopReason": "end_turn"}, "error": {"message": "m"}},
        {"jsonrpc": "2.0", "id": 1, "result": {"sessionId": "s"}},
        {"method": "session/update", "params": {"update": {"sessionUpdate": "agent_message_chunk", "content": {}}}},
        {"method": "session/update", "params": {"update": {"sessionUpdate": "tool_call", "title": "t"}}},
        {
            "method": "session/update",
            "params": {"update": {"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed"}},
        },
        {"id": 1, "method": "session/request_permission", "params": {"toolCall": {"title": "t"}, "options": [{}]}},
        {"id": 1, "method": "session/request_permission", "params": {"options": [{"kind": "reject_once"}]}},
        {"id": 1, "method": "fs/read_text_file", "params": {}},
    ],
    "claude": [
        {"type": "system", "subtype": "init", "session_id": "s", "user_message_uuid": "u", "user_message_uuids": ["u"]},
        {"type": "control_response", "response": {"request_id": "greet-0", "subtype": "success", "error": "e"}},
        {"type": "control_request", "request_id": "q", "request": {"subtype": "can_use_tool", "tool_name": "t"}},
        {"type": "control_request", "request_id": "q", "request": {"subtype": "hook_callback", "input": {}}},
        {
            "type": "control_request",
            "request_id": "q",
            "request": {
                "subtype": "hook_callback",
                "callback_id": "c",
                "input": {"hook_event_name": "PreToolUse", "tool_name": "t"},
            },
        },
        {"type": "control_cancel_request", "request_id": "q"},
        {"type": "system", "subtype": "task_started", "task_id": "b", "task_type": "local_bash", "description": "d"},
        {"type": "system", "subtype": "task_started", "task_id": "a", "task_type": "local_agent"},
        {"type": "system", "subtype": "task_notification", "task_id": "b", "status": "completed"},
        {"type": "system", "subtype": "task_updated", "task_id": "b", "patch": {"status": "killed"}},
        {"type": "stream_event", "event": {"type": "message_start", "message": {"id": "m"}}},
        {"type": "assistant", "message": {"id": "m", "content": [{"type": "tool_use", "id": "t", "name": "x"}]}},
        {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "t"}]}},
        {"type": "stream_event", "event": {"delta": {"type": "text_delta", "text": "x"}}, "parent_tool_use_id": None},
        {"type": "assistant", "message": {"model": "m", "content": [{"type": "text", "text": "x"}]}},
        {"type": "assistant", "message": {"content": [{"type": "tool_use", "name": "x"}]}},
        {"type": "user", "message": {"content": [{"type": "tool_result"}]}},
        {"type": "tool_progress", "heartbeat": True},
        {"type": "result", "subtype": "success", "is_error": False, "result": "r", "errors": ["e"], "usage": {}},
        {"type": "result", "origin": {"kind": "task-notification"}, "stop_reason": "s"},
    ],
}


def list_spoilt_values(value: Any) -> list[Any]:
    """Give a value with each place of it taken by each odd thing, or missing."""
    if isinstance(value, list):
        return [*ODD, *([bad, *value[1:]] for first in value[:1] for bad in list_spoilt_values(first))]
    if not isinstance(value, dict):
        return ODD
    without = [{name: kept for name, kept in value.items() if name != gone} for gone in value]
    return [*ODD, *without, *({**value, name: bad} for name, old in value.items() for bad in list_spoilt_values(old))]


@pytest.mark.parametrize("dialect", LINES)
def test_no_value_of_a_wrong_type_breaks_a_session(dialect: str) -> None:
    """Every value anywhere in a line is read, or counted, or a protocol error: never an exception."""
    for line in LINES[dialect]:
        for bad in list_spoilt_values(line):
            if isinstance(bad, dict):
                stage = Stage(dialect)
                stage.prompt()
                stage.print_lines(bad)
                stage.send_intents(machine_events.CancelTurn())


@pytest.mark.parametrize("name", ["response", "request", "malformed"])
def test_a_method_that_is_called_like_one_of_our_words_is_a_method(name: str) -> None:
    """A notification is passed over, a request is refused: nothing is taken for an answer."""
    stage = Stage("acp")
    stage.print_lines({"jsonrpc": "2.0", "method": name})
    stage.take_sent()
    stage.print_lines({"jsonrpc": "2.0", "id": 2, "method": name, "result": {"stopReason": "end_turn"}})
    [refusal] = stage.take_sent()
    assert refusal["error"]["code"] == -32601
    assert not stage.agent.signals


@pytest.mark.parametrize("dialect", LINES)
def test_no_nesting_is_too_deep(dialect: str) -> None:
    """A value that can be read but not be written again is noise (F2)."""
    spoken = make_session_protocol(dialect, "", Setting())
    for line in LINES[dialect]:
        for name in line:
            hole = json.dumps({**line, name: 0}).replace(f'"{name}": 0', f'"{name}": %s')
            deepest = _find_greatest_depth(hole)
            for depth in range(max(deepest - 60, 1), deepest + 6, 6):
                spoken.decode(_nest_brackets(hole, depth).encode())


def _nest_brackets(hole: str, depth: int) -> str:
    return hole % ("[" * depth + "]" * depth)


def _find_greatest_depth(hole: str) -> int:
    """Find how deep a line may be that this Python can read here."""

    def is_read(depth: int) -> bool:
        try:
            json.loads(_nest_brackets(hole, depth))
        except RecursionError:
            return False
        return True

    return bisect_left(range(1, 20_000), x=True, key=lambda depth: not is_read(depth))
