"""The Agent Client Protocol, version 1: JSON-RPC over lines. Knows no other dialect.

The handshake is the dialect's own: `initialize`, sessions that are new, loaded with their history, or resumed, and
modes. A prompt is a request that the end of its turn answers; all words before that are updates of the session. A
second prompt waits for its turn.
"""

from __future__ import annotations

from pytest_agentproc.fake_agents.dialects.json_rpc import INTERNAL, METHOD, PARAMS, Host
from pytest_agentproc.fake_agents.questions import ALLOW, DENY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pytest_agentproc.fake_agents.contracts import Events
    from pytest_agentproc.fake_agents.program import Program
    from pytest_agentproc.fake_agents.questions import Question

_INITIALIZED = {
    "authMethods": [],
    "agentInfo": {"name": "fake", "version": "1.0.0"},
    "agentCapabilities": {
        "loadSession": True,
        "promptCapabilities": {},
        "mcpCapabilities": {},
        "sessionCapabilities": {"resume": {}, "close": {}},
    },
}
_OPTIONS = [
    {"optionId": "allow-once", "name": "Allow", "kind": "allow_once"},
    {"optionId": "reject-once", "name": "Reject", "kind": "reject_once"},
]
_CHUNKS = {"prompt": "user_message_chunk", "think": "agent_thought_chunk", "answer": "agent_message_chunk"}
_KNOWN = ("session/load", "session/resume")
_EMPTY = ("authenticate", "logout", "session/set_mode", "session/set_model", "session/close")


class Encoder(Host):
    """Encode a conversation: the updates of a turn, and the response to its prompt."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self._sessions: list[str] = []
        self._open: list[int] = []
        self._hand = ""
        self._tools: dict[str, str] = {}
        self._kinds: dict[str, str] = {}
        self.events: Events = {
            "delta": self.delta,
            "think": self.think,
            "plan": self.plan,
            "tool": self.tool,
            "tool_done": self.tool_done,
            "event": self.event,
        }

    def _noted(self, method: str, params: dict[str, Any]) -> str:
        is_cancel = method == "session/cancel" and self._is_open(params.get("sessionId"))
        return self._cancel() if is_cancel else ""

    def _requested(self, number: Any, method: str, params: dict[str, Any], now: int) -> tuple[list[bytes], str]:
        """Answer a request; a prompt is answered by the end of its turn, and a cancel of one by the script."""
        if method == "session/prompt" and params.get("sessionId") in self._sessions:
            self._open.append(len(self.prompts))
            self.prompts.append((number, params["sessionId"]))
            return [], ""
        return self._answered(number, method, params), "handshake" if method == "initialize" else ""

    def take(self, number: int, now: int) -> bytes:
        """Have the updates go to the prompt's session; its turn begins without a word."""
        self._hand = self.prompts[number - 1][1]
        if number - 1 in self._open:
            self._open.remove(number - 1)
            self._open.insert(0, number - 1)
        return b""

    def acknowledge(self, now: int) -> bytes:
        """Give the failure of every tool that runs, and the response: cancelled."""
        if not self._is_cancelled:
            return b""
        events = [self._tool_update(number, "failed", "") for number in list(self._tools)]
        return self._join([*events, *self._ended("cancelled")])

    def ask(self, fields: dict[str, Any], now: int) -> tuple[Question, bytes]:
        """Open a question; give the request of a permission, once or not, or any other."""
        own = len(self.questions.asked)
        key = own if fields["id"] is None else fields["id"]
        session = {"sessionId": self._session()}
        if fields["kind"] == "request":
            question = self.questions.ask(key, fields)
            return question, self._join([self._request(key, fields["name"], {**session, **fields["params"]})])
        tool = next((number for number, name in self._tools.items() if name == fields["name"]), f"call_{own}")
        call = {"toolCallId": tool, "title": fields["name"], "kind": self._kinds.get(tool, "other")}
        call = {**call, "status": "pending", "rawInput": {}}
        asked = self._request(key, "session/request_permission", {**session, "toolCall": call, "options": _OPTIONS})
        return self.questions.ask(key, fields, tool), self._join([asked])

    def say(self, text: str, stop: str | None, now: int) -> bytes:
        """Give a chunk of the agent's message; a stop reason ends the turn."""
        return self._join([self._chunk("agent_message_chunk", text), *(self._ended(stop) if stop else [])])

    def answer(self, text: str, now: int) -> bytes:
        """Give a chunk and the response."""
        return self._join([self._chunk("agent_message_chunk", text), *self._ended("end_turn")])

    def result(self, fields: dict[str, Any], now: int) -> bytes:
        """Give the response, after a chunk if there is a text; an error is a JSON-RPC error that has it."""
        if fields["is_error"]:
            return self._join(self._ended("", error=fields["text"] or "Internal error"))
        text = fields["text"]
        chunks = [] if text is None else [self._chunk("agent_message_chunk", text)]
        more = {"_meta": fields["usage"]} if fields.get("usage") else {}
        return self._join([*chunks, *self._ended("end_turn", more)])

    def delta(self, text: str, now: int) -> bytes:
        """Give a chunk of the agent's message: a text in pieces is several of them."""
        return self._join([self._chunk("agent_message_chunk", text)])

    def think(self, text: str, now: int) -> bytes:
        """Give a chunk of a thought."""
        return self._join([self._chunk("agent_thought_chunk", text)])

    def plan(self, entries: list[str | dict[str, Any]], now: int) -> bytes:
        """Give the whole plan, yet to be done where it does not say; it replaces an earlier one."""
        known = [entry if isinstance(entry, dict) else {"content": entry} for entry in entries]
        told = [{"content": "", "priority": "medium", "status": "pending", **entry} for entry in known]
        return self._join([self._update({"sessionUpdate": "plan", "entries": told})])

    def tool(self, fields: dict[str, Any], now: int) -> bytes:
        """Give a tool call in progress."""
        number = fields["id"]
        self._tools[number] = fields["name"]
        kind = self._kinds[number] = fields.get("kind", "other")
        call = {"sessionUpdate": "tool_call", "toolCallId": number, "title": fields["name"], "kind": kind}
        more = {"status": "in_progress", "rawInput": fields["input"]}
        about = {"locations": fields.get("locations", []), "content": []}
        return self._join([self._update({**call, **more, **about})])

    def tool_done(self, fields: dict[str, Any], now: int) -> bytes:
        """Give the end of a tool call."""
        failed = fields["error"] is not None
        told = fields["error"] if failed else fields["output"]
        return self._join([self._tool_update(fields["id"], "failed" if failed else "completed", told)])

    def event(self, value: dict[str, Any], now: int) -> bytes:
        """Give an update of the session, or else a message as it stands, but for the id of a prompt."""
        if "sessionUpdate" in value:
            return self._join([self._update(value)])
        return self._join([self._as_it_stands(value)])

    def _answered(self, number: Any, method: str, params: dict[str, Any]) -> list[bytes]:
        if method == "initialize":
            return [self._respond(number, {"protocolVersion": self.version, **_INITIALIZED})]
        if method == "session/new":
            self._sessions.append(f"sess_{len(self._sessions) + 1}")
            return [self._respond(number, {"sessionId": self._sessions[-1]})]
        if method in _KNOWN and "sessionId" in params:
            session = str(params["sessionId"])
            self._sessions.append(session)
            past = self.history if method == "session/load" else ()
            return [
                *(self._update(_said(_CHUNKS[who], text), session) for who, text in past),
                self._respond(number, {}),
            ]
        if method in ("session/prompt", *_KNOWN):
            return [self._fail(number, PARAMS, "Invalid params")]
        if method in _EMPTY:
            return [self._respond(number, {})]
        return [self._fail(number, METHOD, "Method not found", {"method": method})]

    def _decided(self, question: Question, result: dict[str, Any]) -> None:
        """Take an answer; an error, or an option that was not offered, is none of allowing."""
        outcome = result.get("outcome")
        told = outcome if isinstance(outcome, dict) else {}
        if told.get("outcome") == "cancelled":
            self._dismiss(question)
        else:
            is_allowed = told.get("outcome") == "selected" and told.get("optionId") == _OPTIONS[0]["optionId"]
            self.questions.settle(question, ALLOW if is_allowed else DENY)

    def _is_open(self, session: Any) -> bool:
        return any(self.prompts[index][1] == session for index in self._open)

    def _ended(self, stop: str, more: dict[str, Any] | None = None, error: str = "") -> list[bytes]:
        """End the turn in hand, if there is one."""
        self._is_cancelled = False
        if not self._open:
            return []
        number, _ = self.prompts[self._open.pop(0)]
        if error:
            return [self._fail(number, INTERNAL, error)]
        return [self._respond(number, {"stopReason": stop, **(more or {})})]

    def _chunk(self, kind: str, text: str) -> bytes:
        return self._update(_said(kind, text))

    def _tool_update(self, number: str, status: str, text: str) -> bytes:
        content = [{"type": "content", "content": {"type": "text", "text": text}}] if text else []
        update = {"sessionUpdate": "tool_call_update", "toolCallId": number, "status": status}
        about = {"title": self._tools.pop(number, number), "content": content, "kind": self._kinds.get(number, "other")}
        return self._update({**update, **about})

    def _update(self, update: dict[str, Any], session: str = "") -> bytes:
        return self._notify("session/update", {"sessionId": session or self._session(), "update": update})

    def _session(self) -> str:
        return self._hand or (self._sessions[-1] if self._sessions else "")


def _said(kind: str, text: str) -> dict[str, Any]:
    return {"sessionUpdate": kind, "content": {"type": "text", "text": text}}
