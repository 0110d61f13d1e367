"""An end in a pasted log is as good as the supervisor judges it, so that a draft does not fail at once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_agentproc.capture._paste import PastedLogItem
from pytest_agentproc.capture._paste_content import parse_agent_log
from pytest_agentproc.supervisor.dialects import Finished, make_decoder, make_session_protocol

MODES = {"gemini": "stream"}
ENDS: list[tuple[str, dict[str, Any]]] = [
    ("claude", {"type": "result", "subtype": "success", "result": "a"}),
    ("claude", {"type": "result", "subtype": "success", "is_error": True, "result": "a"}),
    ("claude", {"type": "result", "subtype": "success", "is_error": 1, "result": "a"}),
    ("claude", {"type": "result", "subtype": "error_max_turns", "is_error": True, "errors": ["a", "b"]}),
    ("claude", {"type": "result", "result": "a"}),
    ("codex", {"type": "turn.completed", "usage": {}}),
    ("codex", {"type": "turn.failed", "error": {"message": "a"}}),
    ("gemini", {"type": "result", "status": "success", "stats": {}}),
    ("gemini", {"type": "result", "status": "error", "error": {"message": "a"}}),
    ("gemini", {"type": "result", "status": "cancelled"}),
    ("gemini", {"type": "result"}),
    ("opencode", {"type": "step_finish", "part": {"reason": "stop"}}),
    ("opencode", {"type": "step_finish", "part": {"reason": "length"}}),
    ("pi", {"type": "message_end", "message": {"role": "assistant", "stopReason": "error", "errorMessage": "a"}}),
    ("pi", {"type": "message_end", "message": {"role": "assistant", "stopReason": "aborted"}}),
]


@pytest.mark.parametrize(("dialect", "event"), ENDS)
def test_a_pasted_end_is_as_good_as_the_supervisor_judges_it(dialect: str, event: dict[str, Any]) -> None:
    """Two readers of one line must not come to two verdicts."""
    text = json.dumps(event)
    [finished] = [
        meaning
        for meaning in make_decoder(dialect, MODES.get(dialect, "")).decode(text.encode())
        if isinstance(meaning, Finished)
    ]
    parsed = parse_agent_log([PastedLogItem(1, "event", text, event=event)], dialect)
    assert parsed.turns == ["completed" if finished.ok else "failed"]


@pytest.mark.parametrize("status", ["completed", "failed", "later"])
def test_a_pasted_end_of_app_server_is_as_good_as_the_supervisor_judges_it(status: str) -> None:
    """A status that a later version invents is no success."""
    asked = {"id": 3, "method": "turn/start", "params": {"input": [{"type": "text", "text": "hi"}]}}
    ended = {"method": "turn/completed", "params": {"turn": {"status": status}}}
    [finished] = make_session_protocol("codex").decode(json.dumps(ended).encode())
    assert isinstance(finished, Finished)
    items = [PastedLogItem(1, "event", json.dumps(event), event=event) for event in (asked, ended)]
    assert parse_agent_log(items, "codex").turns == ["completed" if finished.ok else "failed"]
