"""A step that is tried on a copy of an encoder leaves the encoder as it is, and the copy prints what it would print."""

from __future__ import annotations

import json
import random
from types import MethodType
from typing import Any

import pytest

from pytest_agentproc.capture._replay import copy_encoder
from tests.unit.encoders import make_encoder

_MODES = [
    *(
        ("raw", "text"),
        ("codex", "exec"),
        ("gemini", "text"),
        ("gemini", "json"),
        ("gemini", "stream"),
        ("opencode", "run"),
    ),
    *(("claude", "print"), ("claude", "session"), ("pi", "json"), ("pi", "rpc"), ("acp", "session")),
]
_HEARD = [
    {"type": "user", "message": {"role": "user", "content": "hi"}, "uuid": "u"},
    {"type": "control_request", "request_id": "r", "request": {"subtype": "interrupt"}},
    {"id": "1", "type": "prompt", "message": "hi"},
    {"id": "2", "type": "prompt", "message": "hi", "streamingBehavior": "steer"},
    {"id": "3", "type": "abort"},
    {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}},
    {"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": "/", "mcpServers": []}},
    {"jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": {"sessionId": "sess_1", "prompt": []}},
    {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "sess_1"}},
]


def freeze_state(value: Any) -> Any:
    """Give the whole state of an encoder."""
    if isinstance(value, MethodType):
        return value.__name__
    if isinstance(value, dict):
        return {key: freeze_state(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [freeze_state(inner) for inner in value]
    if type(value).__module__.startswith("pytest_agentproc.fake_agents."):
        names = getattr(value, "__dict__", None) or value.__slots__
        return {name: freeze_state(getattr(value, name)) for name in names}
    return set(value) if isinstance(value, set) else value


def play_random_action(agent: Any, rnd: random.Random) -> str:
    """Have an encoder do something; give what it prints, or what is wrong with that."""
    number = f"t{rnd.randrange(4)}"
    fields = {
        "tool": {"id": number, "name": rnd.choice(["bash", "read"]), "input": {"a": 1}},
        "tool_done": {"id": number, "output": "o", "error": rnd.choice([None, "e"])},
        "task": {"id": number, "kind": rnd.choice(["local_bash", "local_agent"]), "behind": True},
        "task_done": {"id": number, "status": "completed", "in_same_turn": rnd.random() < 0.5},
        "nested": {"parent": number, "text": "n"},
        "plan": [{"step": "a", "status": "pending"}],
        "event": {"type": "x"},
    }
    result = {"text": "r", "is_error": rnd.random() < 0.5, "usage": None}
    does = {
        "say": lambda: agent.encode_text("a", rnd.choice([None, "stop"]), 0),
        "answer": lambda: agent.encode_answer("a", 0),
        "result": lambda: agent.encode_result(result, 0),
        "hear": lambda: agent.handle_request(json.dumps(rnd.choice(_HEARD)).encode(), 0),
        "take": lambda: agent.begin_prompt_turn(rnd.randrange(1, 5), 0),
        "late": getattr(agent, "take_late_answers", bytes),
        "acknowledge": lambda: agent.end_cancelled_turn(0),
        "ask": lambda: ask_permission(agent, number, rnd.choice(["allow", "deny"])),
    }
    name = rnd.choice([*agent.events, *does])
    try:
        return repr(does[name]() if name in does else agent.events[name](fields.get(name, "text"), 0))
    except (AttributeError, KeyError, TypeError, IndexError, AssertionError) as error:
        return repr(error)


def ask_permission(agent: Any, tool: str, answer: str) -> bytes:
    """Have an encoder ask for a permission, which is answered."""
    question, data = agent.ask_client({"kind": "permission", "name": "bash", "id": tool, "event": "PreToolUse"}, 0)
    agent.questions.settle_question(question, answer)
    return bytes(data)


@pytest.mark.parametrize(("dialect", "mode"), _MODES)
def test_steps_on_a_copy_leave_the_original_as_it_is(dialect: str, mode: str) -> None:
    """A step that turns out wrong must not have happened, however deep what it changes lies."""
    program: Any = {"dialect": dialect, "mode": mode, "argv": ["--include-partial-messages"], "serves": True}
    rnd = random.Random(f"{dialect} {mode}")  # noqa: S311  # no secret
    agent: Any = make_encoder({**program, "prompt": "hi"})
    for _ in range(100):
        before, copy, chance = freeze_state(agent), copy_encoder(agent), rnd.getstate()
        printed = play_random_action(copy, rnd)
        assert freeze_state(agent) == before
        rnd.setstate(chance)
        assert play_random_action(agent, rnd) == printed
        assert freeze_state(agent) == freeze_state(copy)


class _PluginEncoder:
    """An encoder of a plugin: it changes a dict that it keeps."""

    def __init__(self) -> None:
        self.kept = [{"count": 0}]


def test_an_encoder_of_a_plugin_is_copied_as_deep_as_it_goes() -> None:
    """Its possible effects are unknown."""
    agent = _PluginEncoder()
    copy_encoder(agent).kept[0]["count"] = 1
    assert agent.kept == [{"count": 0}]
