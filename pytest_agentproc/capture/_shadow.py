"""Owns whether the fake would say what a log says: it plays steps on the dialect's own encoder, and compares.

A log's event is reproduced if all that it has stands in what the encoder says, but for what differs from run to run:
ids, times, counts, names of models. A report may leave keys out; what it has must be right.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from fake_agents.dialects import encoder
from pytest_agentproc.capture._duplicates import duplicate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_agentproc.capture._meaning import Told

__all__ = ["Shadow"]

_OF_RUNS = """
    uuid session_id sessionId timestamp ts time thread_id threadId usage modelUsage stats cost duration_ms ttft_ms
    duration_api_ms total_cost_usd num_turns request_id responseId user_message_uuid user_message_uuids signature
    details errors tool_use_result tool_result_meta aggregated_output exit_code structured_content messages toolResults
    api_error_status api_error_type stop_reason stop_sequence stop_details terminal_reason permission_denials
    context_management begun_message_ids ttft_stream_ms time_to_request_ms first_content_frame_ms
    model_usage_since_last_result
"""
_OF_MACHINES = """
    model responseModel provider api cwd tools mcp_servers apiKeySource slash_commands agents skills plugins level _meta
    output_style permissionMode claude_code_version version fast_mode_state
"""
_VARIES = frozenset((_OF_RUNS + _OF_MACHINES).split())
"""Keys whose values are a run's own, a machine's or a version's."""

_DEFAULTS: dict[str, dict[str, Any]] = {"tool": {"input": {}}, "tool_done": {"output": "", "error": None}}
_PROMPTS: dict[str, Callable[[str], list[dict[str, Any]]]] = {
    "claude": lambda text: [{"type": "user", "message": {"role": "user", "content": text}}],
    "pi": lambda text: [{"id": "1", "type": "prompt", "message": text}],
    "acp": lambda text: [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}},
        {"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": "/", "mcpServers": []}},
        _asked(text),
    ],
}


def _asked(text: str) -> dict[str, Any]:
    params = {"sessionId": "sess_1", "prompt": [{"type": "text", "text": text}]}
    return {"jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": params}


class Shadow:
    """The dialect's encoder, in the state in which the draft so far leaves it.

    Args:
        dialect: the dialect.
        mode: its mode.
        partials: whether claude streams.
    """

    def __init__(self, dialect: str, mode: str, *, partials: bool) -> None:
        argv = ["--include-partial-messages"] if partials else []
        self._dialect = dialect
        program: Any = {"dialect": dialect, "mode": mode, "argv": argv, "prompt": "hi"}
        self._encoder: Any = encoder(program)
        self._prompts = 0
        self._pending: list[Any] = []

    def is_said(self, event: Any) -> bool:
        """Say whether the steps so far say this event; what stands before it counts as said, too."""
        for index, said in enumerate(self._pending):
            if _has(said, event):
                del self._pending[: index + 1]
                return True
        return False

    def take_prompt(self, text: str) -> None:
        """Have the caller ask, and the agent take it up."""
        requests = _PROMPTS[self._dialect](text)
        for request in requests[-1:] if self._prompts else requests:
            self._encoder.hear(json.dumps(request).encode(), 0)
        self._prompts += 1
        self._pending = _events(self._encoder.take(self._prompts, 0))

    def says(self, steps: Sequence[Told], event: Any) -> bool:
        """Play steps, and say whether they say the event; if not, nothing has happened."""
        before, pending = duplicate(self._encoder), self._pending
        try:
            self._pending = [said for step in steps for said in _events(self._play(step.name, step.value))]
        except (AttributeError, KeyError, TypeError):  # of other types than the encoder's, or about what it did not see
            self._pending = []
        if self.is_said(event):
            return True
        self._encoder, self._pending = before, pending
        return False

    def _play(self, name: str, value: Any) -> bytes:
        told: bytes
        if name in ("say", "answer"):
            told = self._encoder.say(value, None, 0) if name == "say" else self._encoder.answer(value, 0)
        elif name == "result":
            told = self._encoder.result({"text": None, "is_error": False, "usage": None, **value}, 0)
        elif name == "turn_said":  # pi: a message with its stop reason
            told = self._encoder.say(value["text"], value["stop"], 0)
        else:
            told = self._encoder.events[name]({**_DEFAULTS[name], **value} if name in _DEFAULTS else value, 0)
        return told


def _events(data: bytes) -> list[Any]:
    return [json.loads(line) for line in data.splitlines() if line.startswith(b"{")]


def _has(said: Any, wanted: Any) -> bool:
    """Say whether all that is wanted is there; a list of one text is the text."""
    if isinstance(wanted, dict):
        return isinstance(said, dict) and all(
            _has(said.get(key), value) for key, value in wanted.items() if not _is_own(key, wanted)
        )
    if isinstance(wanted, list):
        if isinstance(said, str) and len(wanted) == 1 and isinstance(wanted[0], dict):
            return bool(wanted[0].get("text") == said)
        return isinstance(said, list) and len(said) == len(wanted) and all(map(_has, said, wanted))
    return bool(said == wanted)


def _is_own(key: str, within: dict[str, Any]) -> bool:
    """Say whether a value is the run's own: also the id of a message, an item or a request, but not of a tool."""
    return key in _VARIES or within[key] is None or (key == "id" and within.get("type") not in ("tool_use", "toolCall"))
