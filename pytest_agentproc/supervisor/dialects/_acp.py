"""ACP version 1: JSON-RPC 2.0, one object a line. Knows no other dialect and no fake's code.

The handshake is `initialize` and `session/new`, or `session/load` or `session/resume` of a session that the agent
knows. Updates before the response to `session/load` are that session's past. The response to `session/prompt` ends the
turn and, after a `session/cancel`, acknowledges it. Updates name no turn: what comes before the response belongs to it.
A tool has no name here but its title, by which `Policy.host_tools` knows it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_agentproc.supervisor.dialects._json import as_dict
from pytest_agentproc.supervisor.dialects._json_rpc import JsonRpcSessionProtocol
from pytest_agentproc.supervisor.dialects._meanings import (
    Asked,
    Finished,
    HandshakeDone,
    HandshakeRefused,
    HistoryReplayed,
    ImmediateReply,
    Other,
    Piece,
    Question,
    SwitchRefused,
    ToolEnded,
    ToolProgress,
    ToolStarted,
)

if TYPE_CHECKING:
    from pytest_agentproc.supervisor.dialects._meanings import Meaning
    from pytest_agentproc.supervisor.dialects._session_protocol import Setting


_INITIALIZE_REQUEST_ID, _OPEN_SESSION_REQUEST_ID = 0, 1
_REQUEST_ID_OF_FIRST_PROMPT = 2
_REQUEST_ID_BEFORE_FIRST_MODE = 10**9
"""No session has so many prompts."""
_STATUSES_OF_ENDED_TOOLS = ("completed", "failed")
_BAD_STOP_REASONS = frozenset({"cancelled", "refusal"})
_OPTION_KINDS_THAT_ALLOW = ("allow_once", "allow_always")
_OPTION_KINDS_THAT_REJECT = ("reject_once", "reject_always")
_CLIENT_CAPABILITIES = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}


class AcpSessionProtocol(JsonRpcSessionProtocol):
    """Talk to an ACP agent over its stdin and stdout."""

    is_marked = True
    begins_at_once = True
    answers_cancel = False

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self.session = ""
        self._awaited = _INITIALIZE_REQUEST_ID
        self._modes = 0
        self.readers |= {
            "notification session/update": self._read_update_line,
            "request session/request_permission": self._read_question,
        }

    def encode_greeting(self) -> bytes:
        """Begin the handshake."""
        return self.encode_request(
            _INITIALIZE_REQUEST_ID, "initialize", {"protocolVersion": 1, "clientCapabilities": _CLIENT_CAPABILITIES}
        )

    def encode_prompt(self, number: int, text: str) -> bytes:
        """Give the prompt of a turn; its number is in the request's id."""
        words = {"sessionId": self.session, "prompt": [{"type": "text", "text": text}]}
        return self.encode_request(number - 1 + _REQUEST_ID_OF_FIRST_PROMPT, "session/prompt", words)

    def encode_cancel(self, number: int) -> bytes:
        """Cancel what runs; there is no answer but the turn's end."""
        return self.encode_notification("session/cancel", sessionId=self.session)

    def encode_switch(self, what: str, name: str) -> bytes:
        """Set the mode of the session."""
        self._modes += 1
        request = {"sessionId": self.session, "modeId": name}
        return self.encode_request(_REQUEST_ID_BEFORE_FIRST_MODE + self._modes, "session/set_mode", request)

    def encode_answer(self, question: Question, *, allowed: bool | None) -> bytes:
        """Choose the option that allows or rejects once, or for ever if there is no other."""
        options = _list_dicts(question.detail.get("options"))
        wanted = {True: _OPTION_KINDS_THAT_ALLOW, False: _OPTION_KINDS_THAT_REJECT, None: ()}[allowed]
        chosen = [option for kind in wanted for option in options if option.get("kind") == kind]
        outcome: dict[str, Any] = {"outcome": "cancelled"}
        if chosen:
            outcome = {"outcome": "selected", "optionId": chosen[0].get("optionId")}
        return self.encode_response(question, {"outcome": outcome})

    # Responses.

    def _read_own_response(self, number: int, response: dict[str, Any], error: str) -> list[Meaning]:
        if number < 0:
            return [Other("response")]
        if number > _REQUEST_ID_BEFORE_FIRST_MODE:
            return [SwitchRefused("mode", error) if error else Other("response")]
        if number in (_INITIALIZE_REQUEST_ID, _OPEN_SESSION_REQUEST_ID):
            return self._read_handshake(number, response, error) if number == self._awaited else [Other("response")]
        return [_read_turn_end(number - _REQUEST_ID_OF_FIRST_PROMPT + 1, response, error)]

    def _read_handshake(self, number: int, response: dict[str, Any], error: str) -> list[Meaning]:
        self._awaited += 1
        if error:
            return [HandshakeRefused(error)]
        if number == _INITIALIZE_REQUEST_ID:
            return [self._request_session(response)]
        self.session = self.session or str(response.get("sessionId", ""))
        return [HandshakeDone(self.session)] if self.session else [HandshakeRefused("session/new gave no sessionId")]

    def _request_session(self, response: dict[str, Any]) -> Meaning:
        """Ask for a new session, or for the one that the caller continues, if the agent can open that."""
        where = {"cwd": self.setting.cwd, "mcpServers": []}
        known = self.setting.continues
        if known is None:
            return ImmediateReply(self.encode_request(_OPEN_SESSION_REQUEST_ID, "session/new", where))
        able = as_dict(response.get("agentCapabilities"))
        more = as_dict(able.get("sessionCapabilities"))
        if not (able.get("loadSession") if known.how == "load" else more.get("resume") is not None):
            return HandshakeRefused(f"it has no session/{known.how}")
        self.session = known.id
        return ImmediateReply(
            self.encode_request(_OPEN_SESSION_REQUEST_ID, f"session/{known.how}", {"sessionId": known.id, **where})
        )

    # Requests and notifications.

    def _read_update_line(self, value: dict[str, Any]) -> list[Meaning]:
        params = value.get("params")
        update = params.get("update") if isinstance(params, dict) else None
        if not isinstance(params, dict) or not isinstance(update, dict):
            return [Other("session/update")]
        if params.get("sessionId", self.session) != self.session:
            return [Other("session/update of another session")]
        return self._read_update(update)

    def _read_update(self, update: dict[str, Any]) -> list[Meaning]:
        kind = update.get("sessionUpdate")
        text = str(as_dict(update.get("content")).get("text", ""))
        if self._awaited == _OPEN_SESSION_REQUEST_ID:
            is_said = kind in ("user_message_chunk", "agent_message_chunk")
            return [
                HistoryReplayed(text, is_prompt=kind == "user_message_chunk") if is_said else Other("session/update")
            ]
        if kind == "agent_message_chunk":
            return [Piece(text)]
        if kind == "agent_thought_chunk":
            return [Piece()]
        if kind in ("tool_call", "tool_call_update"):
            return _read_tool(update)
        return [Other(f"session/update {kind}")]

    def _read_question(self, value: dict[str, Any]) -> list[Meaning]:
        params = value.get("params")
        detail = as_dict(params)
        call = as_dict(detail.get("toolCall"))
        title = str(call.get("title") or call.get("toolCallId") or "")
        return [Question(json.dumps(value.get("id")), title, detail)]


def _read_turn_end(number: int, response: dict[str, Any], error: str) -> Finished:
    stop = response.get("stopReason")
    if error or not isinstance(stop, str):
        return Finished(False, error=error or "the response has no stopReason", marks=(number,))
    is_bad = stop in _BAD_STOP_REASONS
    return Finished(not is_bad, error=stop if is_bad else "", stop_reason=stop, marks=(number,))


def _read_tool(update: dict[str, Any]) -> list[Meaning]:
    """Follow a tool; it is asked for, and in flight, from its announcement."""
    number, name = str(update.get("toolCallId") or ""), str(update.get("title") or "")
    shown = name or number
    if update.get("status") in _STATUSES_OF_ENDED_TOOLS:
        return [ToolEnded(number, shown, ends_message=True)]
    if update.get("sessionUpdate") != "tool_call":
        return [ToolProgress(number, shown, ends_message=True)]
    return [ToolStarted(number, shown, ends_message=True), Asked((name,))]


def _list_dicts(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
