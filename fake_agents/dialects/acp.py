"""The Agent Client Protocol, version 1: JSON-RPC over lines. Knows no other dialect.

The handshake is the dialect's own: `initialize`, sessions that are new, loaded with their history, or resumed, with
their modes and options. A prompt is a request that the end of its turn answers; all words before that are updates of
the session. A second prompt waits for its turn.
"""

from __future__ import annotations

from pytest_agentproc.fake_agents.dialects.json_rpc import (
    INTERNAL_ERROR_CODE,
    INVALID_PARAMS_CODE,
    UNKNOWN_METHOD_CODE,
    JsonRpcEncoder,
)
from pytest_agentproc.fake_agents.questions import ANSWER_ALLOW, ANSWER_DENY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pytest_agentproc.fake_agents.contracts import EventEncoders
    from pytest_agentproc.fake_agents.program import Program
    from pytest_agentproc.fake_agents.questions import ClientQuestion

_INITIALIZE_RESULT = {
    "authMethods": [],
    "agentInfo": {"name": "fake", "version": "1.0.0"},
    "agentCapabilities": {
        "loadSession": True,
        "promptCapabilities": {},
        "mcpCapabilities": {},
        "sessionCapabilities": {"resume": {}, "close": {}},
    },
}
_OPTION_NAMES = {
    "allow_once": "Allow",
    "allow_always": "Always allow",
    "reject_once": "Reject",
    "reject_always": "Always reject",
}
_HISTORY_CHUNK_KINDS = {"prompt": "user_message_chunk", "think": "agent_thought_chunk", "answer": "agent_message_chunk"}
_RESOURCE_NOT_FOUND_CODE = -32002
_SESSION_LOADING_METHODS = ("session/load", "session/resume")
_METHODS_WITH_EMPTY_RESULT = ("authenticate", "logout", "session/set_model", "session/close")
_SETTING_METHODS = ("session/set_mode", "session/set_config_option")


class Encoder(JsonRpcEncoder):
    """Encode a conversation: the updates of a turn, and the response to its prompt."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        number = program.get("number", 1)
        # Real agents never use the name of a session twice. So the second agent of `scripts` uses other names than the
        # first one, and a client that still uses the old name gets an error.
        self._prefix = "sess_" if number == 1 else f"sess_{number}_"
        self._lacked = program.get("lacks")
        self._sessions: list[str] = []
        self._open: list[int] = []
        self._hand = ""
        self._tools: dict[str, str] = {}
        self._kinds: dict[str, str] = {}
        self._set: dict[tuple[str, str], str] = {}
        self.events: EventEncoders = {
            "delta": self.encode_text_delta,
            "think": self.encode_thought,
            "plan": self.encode_plan,
            "tool": self.encode_tool_start,
            "tool_done": self.encode_tool_end,
            "event": self.encode_raw_event,
        }

    def _handle_notification(self, method: str, params: dict[str, Any]) -> str:
        is_cancel = method == "session/cancel" and self._has_open_prompt(params.get("sessionId"))
        return self._note_turn_cancel() if is_cancel else ""

    def _handle_method_request(
        self, number: Any, method: str, params: dict[str, Any], now: int
    ) -> tuple[list[bytes], str]:
        """Answer a request; a prompt is answered by the end of its turn, and a cancel of one by the script."""
        if method == "session/prompt" and params.get("sessionId") in self._sessions:
            self._open.append(len(self.prompts))
            self.prompts.append((number, params["sessionId"]))
            return [], ""
        return self._answer_client_request(number, method, params), "handshake" if method == "initialize" else ""

    def begin_prompt_turn(self, number: int, now: int) -> bytes:
        """Have the updates go to the prompt's session; its turn begins without a word."""
        self._hand = self.prompts[number - 1][1]
        if number - 1 in self._open:
            self._open.remove(number - 1)
            self._open.insert(0, number - 1)
        return b""

    def end_cancelled_turn(self, now: int) -> bytes:
        """Give the failure of every tool that runs, and the response: cancelled."""
        if not self._is_cancelled:
            return b""
        events = [self._encode_tool_update(number, "failed", "") for number in list(self._tools)]
        return self._join_lines([*events, *self._end_turn("cancelled")])

    def ask_client(self, fields: dict[str, Any], now: int) -> tuple[ClientQuestion, bytes]:
        """Open a question; give the request of a permission, once or not, or any other."""
        own = len(self.questions.asked)
        key = own if fields["id"] is None else fields["id"]
        session = {"sessionId": self._find_current_session()}
        if fields["kind"] == "request":
            question = self.questions.open_question(key, fields)
            return question, self._join_lines(
                [self._encode_request(key, fields["name"], {**session, **fields["params"]})]
            )
        tool = next((number for number, name in self._tools.items() if name == fields["name"]), f"call_{own}")
        call = {"toolCallId": tool, "title": fields["name"], "kind": self._kinds.get(tool, "other")}
        call = {**call, "status": "pending", "rawInput": {}}
        asked = self._encode_request(
            key, "session/request_permission", {**session, "toolCall": call, "options": _list_options(fields)}
        )
        return self.questions.open_question(key, fields, tool), self._join_lines([asked])

    def encode_text(self, text: str, stop: str | None, now: int) -> bytes:
        """Give a chunk of the agent's message; a stop reason ends the turn."""
        return self._join_lines(
            [self._encode_text_chunk("agent_message_chunk", text), *(self._end_turn(stop) if stop else [])]
        )

    def encode_answer(self, text: str, now: int) -> bytes:
        """Give a chunk and the response."""
        return self._join_lines([self._encode_text_chunk("agent_message_chunk", text), *self._end_turn("end_turn")])

    def encode_result(self, fields: dict[str, Any], now: int) -> bytes:
        """Give the response, after a chunk if there is a text; an error is a JSON-RPC error that has it."""
        if fields["is_error"]:
            return self._join_lines(self._end_turn("", error=fields["text"] or "Internal error"))
        text = fields["text"]
        chunks = [] if text is None else [self._encode_text_chunk("agent_message_chunk", text)]
        more = {"_meta": fields["usage"]} if fields.get("usage") else {}
        return self._join_lines([*chunks, *self._end_turn("end_turn", more)])

    def encode_text_delta(self, text: str, now: int) -> bytes:
        """Give a chunk of the agent's message: a text in pieces is several of them."""
        return self._join_lines([self._encode_text_chunk("agent_message_chunk", text)])

    def encode_thought(self, text: str, now: int) -> bytes:
        """Give a chunk of a thought."""
        return self._join_lines([self._encode_text_chunk("agent_thought_chunk", text)])

    def encode_plan(self, entries: list[str | dict[str, Any]], now: int) -> bytes:
        """Give the whole plan, yet to be done where it does not say; it replaces an earlier one."""
        known = [entry if isinstance(entry, dict) else {"content": entry} for entry in entries]
        lines = [{"content": "", "priority": "medium", "status": "pending", **entry} for entry in known]
        return self._join_lines([self._encode_session_update({"sessionUpdate": "plan", "entries": lines})])

    def encode_tool_start(self, fields: dict[str, Any], now: int) -> bytes:
        """Give a tool call in progress."""
        number = fields["id"]
        self._tools[number] = fields["name"]
        kind = self._kinds[number] = fields.get("kind", "other")
        call = {"sessionUpdate": "tool_call", "toolCallId": number, "title": fields["name"], "kind": kind}
        more = {"status": "in_progress", "rawInput": fields["input"]}
        about = {"locations": fields.get("locations", []), "content": []}
        return self._join_lines([self._encode_session_update({**call, **more, **about})])

    def encode_tool_end(self, fields: dict[str, Any], now: int) -> bytes:
        """Give the end of a tool call."""
        failed = fields["error"] is not None
        text = fields["error"] if failed else fields["output"]
        return self._join_lines([self._encode_tool_update(fields["id"], "failed" if failed else "completed", text)])

    def encode_raw_event(self, value: dict[str, Any], now: int) -> bytes:
        """Give an update of the session, or else a message as it stands, but for the id of a prompt."""
        if "sessionUpdate" in value:
            return self._join_lines([self._encode_session_update(value)])
        return self._join_lines([self._encode_script_message(value)])

    def _answer_client_request(self, number: Any, method: str, params: dict[str, Any]) -> list[bytes]:
        if method == "initialize":
            return [self._encode_response(number, {"protocolVersion": self.version, **_INITIALIZE_RESULT})]
        if method == "session/new" or (method in _SESSION_LOADING_METHODS and "sessionId" in params):
            return self._open_session(number, method, params)
        if method in _SETTING_METHODS:
            return [self._set_session_option(number, method, params)]
        if method in ("session/prompt", *_SESSION_LOADING_METHODS):
            return [self._encode_error_response(number, INVALID_PARAMS_CODE, "Invalid params")]
        if method in _METHODS_WITH_EMPTY_RESULT:
            return [self._encode_response(number, {})]
        return [self._encode_error_response(number, UNKNOWN_METHOD_CODE, "Method not found", {"method": method})]

    def _open_session(self, number: Any, method: str, params: dict[str, Any]) -> list[bytes]:
        """Give the response with a session, after its past if it is loaded."""
        if self._lacked is not None and params.get("sessionId") == self._lacked:
            words = f"Resource not found: {self._lacked}"
            return [self._encode_error_response(number, _RESOURCE_NOT_FOUND_CODE, words, {"uri": self._lacked})]
        is_new = method == "session/new"
        session = f"{self._prefix}{len(self._sessions) + 1}" if is_new else str(params["sessionId"])
        self._sessions.append(session)
        past = self.history if method == "session/load" else ()
        updates = (said if who == "event" else _build_text_chunk(_HISTORY_CHUNK_KINDS[who], said) for who, said in past)
        own = {"sessionId": session} if is_new else {}
        return [
            *(self._encode_session_update(update, session) for update in updates),
            self._encode_response(number, {**own, **self._describe_session_settings(session)}),
        ]

    def _describe_session_settings(self, session: str) -> dict[str, Any]:
        """Give the modes and the options of a session, as far as the script has some."""
        fields: dict[str, Any] = {}
        if self.modes:
            modes = [{"id": mode, "name": mode} for mode in self.modes]
            fields["modes"] = {
                "currentModeId": self._set.get((session, "mode"), self.modes[0]),
                "availableModes": modes,
            }
        if self.options:
            fields["configOptions"] = [
                {
                    "id": name,
                    "name": name,
                    "type": "select",
                    "currentValue": self._set.get((session, f"option {name}"), values[0]),
                    "options": [{"value": value, "name": value} for value in values],
                }
                for name, values in self.options.items()
            ]
        return fields

    def _set_session_option(self, number: Any, method: str, params: dict[str, Any]) -> bytes:
        """Set a mode or an option, if the session, the option and the value are known."""
        session, is_mode = str(params.get("sessionId")), method == "session/set_mode"
        name = str(params.get("configId"))
        value: Any = params.get("modeId" if is_mode else "value")
        if session not in self._sessions or value not in (self.modes if is_mode else self.options.get(name, ())):
            return self._encode_error_response(number, INVALID_PARAMS_CODE, "Invalid params")
        self._set[session, "mode" if is_mode else f"option {name}"] = value
        fields = {} if is_mode else {"configOptions": self._describe_session_settings(session)["configOptions"]}
        return self._encode_response(number, fields)

    def _settle_permission_question(self, question: ClientQuestion, result: dict[str, Any]) -> None:
        """Take an answer; an error, or an option that was not offered, is none of allowing."""
        outcome = result.get("outcome")
        choice = outcome if isinstance(outcome, dict) else {}
        if choice.get("outcome") == "cancelled":
            self._dismiss_question(question)
        else:
            allowing = [option["optionId"] for option in _list_options(question.fields) if "allow" in option["kind"]]
            is_allowed = choice.get("outcome") == "selected" and choice.get("optionId") in allowing
            self.questions.settle_question(question, ANSWER_ALLOW if is_allowed else ANSWER_DENY)

    def _has_open_prompt(self, session: Any) -> bool:
        return any(self.prompts[index][1] == session for index in self._open)

    def _end_turn(self, stop: str, more: dict[str, Any] | None = None, error: str = "") -> list[bytes]:
        """End the turn in hand, if there is one."""
        self._is_cancelled = False
        if not self._open:
            return []
        number, _ = self.prompts[self._open.pop(0)]
        if error:
            return [self._encode_error_response(number, INTERNAL_ERROR_CODE, error)]
        return [self._encode_response(number, {"stopReason": stop, **(more or {})})]

    def _encode_text_chunk(self, kind: str, text: str) -> bytes:
        return self._encode_session_update(_build_text_chunk(kind, text))

    def _encode_tool_update(self, number: str, status: str, text: str) -> bytes:
        content = [{"type": "content", "content": {"type": "text", "text": text}}] if text else []
        update = {"sessionUpdate": "tool_call_update", "toolCallId": number, "status": status}
        about = {"title": self._tools.pop(number, number), "content": content, "kind": self._kinds.get(number, "other")}
        return self._encode_session_update({**update, **about})

    def _encode_session_update(self, update: dict[str, Any], session: str = "") -> bytes:
        return self._encode_notification(
            "session/update", {"sessionId": session or self._find_current_session(), "update": update}
        )

    def _find_current_session(self) -> str:
        return self._hand or (self._sessions[-1] if self._sessions else "")


def _build_text_chunk(kind: str, text: str) -> dict[str, Any]:
    return {"sessionUpdate": kind, "content": {"type": "text", "text": text}}


def _list_options(fields: dict[str, Any]) -> list[dict[str, str]]:
    """Give the options of a question. The ids of options that the script lists say nothing: only their kinds do."""
    kinds = fields.get("offers")
    numbered = {kind: f"option-{place}" for place, kind in enumerate(kinds or (), 1)}
    return [
        {"optionId": numbered.get(kind, kind.replace("_", "-")), "name": _OPTION_NAMES[kind], "kind": kind}
        for kind in kinds or ("allow_once", "reject_once")
    ]
