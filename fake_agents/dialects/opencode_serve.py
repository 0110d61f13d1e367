"""The HTTP API and the events of `opencode serve`, as the real CLI has them. Knows no socket.

The words of a program become events, one JSON object a line. The player sends each to all who read `/event`. A prompt
begins its turn at once, or after the turn of its session that runs. `POST /session/ID/message` is answered when the
session is idle, with the last message. An abort is the script's to answer. A permission that is rejected ends the turn.

The fake leaves out the titles and the diffs of sessions, and the news of what the real CLI has loaded.
"""

from __future__ import annotations

import posix

from pytest_agentproc.fake_agents.dialects.opencode import (
    SESSION_ID,
    STEP_TOKEN_COUNTS,
    build_time_span,
    build_tool_state,
    convert_to_unix_ms,
)
from pytest_agentproc.fake_agents.objects import encode_json_line
from pytest_agentproc.fake_agents.program import find_option_value
from pytest_agentproc.fake_agents.questions import ANSWER_ALLOW, ANSWER_CANCELLED, ANSWER_DENY, ClientQuestions
from pytest_agentproc.fake_agents.requests import join_prompt_text, parse_json_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pytest_agentproc.fake_agents.contracts import EventEncoders
    from pytest_agentproc.fake_agents.program import Program
    from pytest_agentproc.fake_agents.questions import ClientQuestion
    from pytest_agentproc.fake_agents.serving.http_server import HttpRequest

_VERSION = "1.18.33"
_DEFAULT_PORTS = (4096, 0)
"""Without a port, or with 0, opencode takes this one, or else any that is free."""

_NO_TOKENS = {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}
_ABORTED = {"name": "MessageAbortedError", "data": {"message": "Aborted"}}
_ABORTED_COMMAND = "(no output)\n\n<shell_metadata>\nUser aborted the command\n</shell_metadata>"
_ALLOWING_REPLIES = ("once", "always")


class _Session:
    """One session: what it says of itself, its messages, and what waits for the end of its turn."""

    def __init__(self, about: dict[str, Any]) -> None:
        self.about = about
        self.messages: list[dict[str, Any]] = []
        self.message: dict[str, Any] = {}
        """The last message of the agent."""
        self.queue: list[dict[str, Any]] = []
        """The prompts that come after the turn which runs."""
        self.waiting: list[HttpRequest] = []
        """The requests that are answered with the last message."""
        self.is_busy = False
        self.has_step = False
        """Whether the last message has begun its step."""
        self.open_text: dict[str, Any] | None = None
        """The part of a text that comes in pieces."""
        self.tools: dict[str, tuple[dict[str, Any], int, dict[str, Any]]] = {}
        """The tools that run, by id: the call, the instant of its start, and its part."""

    @property
    def name(self) -> str:
        """Its id."""
        return str(self.about["id"])


class Encoder:
    """Encode conversations: the answers to requests, and the events of all sessions."""

    error_is_exit = False
    error_stream = "stdout"
    is_server = True
    code = 0
    streams = ("/event", "/global/event")
    notice = b"Warning: OPENCODE_SERVER_PASSWORD is not set; server is unsecured.\n"

    def __init__(self, program: Program) -> None:
        self.host = find_option_value(program, "--hostname") or "127.0.0.1"
        port = find_option_value(program, "--port")
        self.ports = (int(port),) if port.isdecimal() and int(port) else _DEFAULT_PORTS
        self.questions = ClientQuestions()
        environ = program.get("environ", {})
        self._config = parse_json_object(environ.get(b"OPENCODE_CONFIG_CONTENT", b"")) or {}
        provider, _, model = str(self._config.get("model", "")).partition("/")
        self._model = {"providerID": provider or "fake", "modelID": model or "m1"}
        self._sessions: dict[str, _Session] = {}
        self._made = self._messages = self._parts = self._events = 0
        self._prompts: list[_Session] = []
        self._hand: _Session | None = None
        self._aborts: list[tuple[_Session, HttpRequest]] = []
        self.events: EventEncoders = {
            "delta": self.encode_text_delta,
            "think": self.encode_thought,
            "tool": self.encode_tool_start,
            "tool_done": self.encode_tool_end,
            "event": self.encode_raw_event,
        }

    # The door.

    def encode_listening(self, port: int) -> bytes:
        """Give the line of stdout that a client waits for."""
        return f"opencode server listening on http://{self.host}:{port}\n".encode()

    def encode_handshake_refusal(self, request: bytes, error: str) -> bytes:
        """Give what stderr says if it cannot listen."""
        return f"\x1b[91m\x1b[1mError: \x1b[0mUnexpected error\n\n{error}\n".encode()

    def encode_stream_event(self, kind: str) -> bytes:
        """Give an event of the server itself: `connected` as a stream begins, `heartbeat` every ten seconds."""
        return self._encode_event(f"server.{kind}")

    def frame_event(self, line: bytes, path: str) -> bytes:
        """Give an event as a stream has it: that of all folders says in which folder it was."""
        if path == "/event":
            return line
        return b'{"directory":%s,"project":"global","payload":%s}' % (encode_json_line(posix.getcwd()), line)

    # Requests.

    def handle_request(self, request: HttpRequest, now: int) -> tuple[bytes, str]:
        """Answer a request, at once or later; give the events, and a word."""
        body = parse_json_object(request.body) if request.body else {}
        words = request.path.strip("/").split("/")
        if body is None:
            request.answer(400, encode_json_line({"_tag": "BadRequest"}))
            return b"", ""
        if words[0] == "session" and words[2:] == ["abort"] and request.method == "POST":
            return self._abort_session(request, words[1])
        if words[0] == "session" and words[1:] and words[1] != "status":
            session = self._sessions.get(words[1])
            if session is None:
                return self._refuse(request, f"Session not found: {words[1]}"), ""
            return self._handle_session_request(request, session, words[2:], body, now), ""
        return self._handle_server_request(request, words, body, now), ""

    def _handle_server_request(self, request: HttpRequest, words: list[str], body: dict[str, Any], now: int) -> bytes:
        match request.method, *words:
            case ("POST", "session"):
                return self._create_session(request, body, now)
            case ("POST", "permission", key, "reply"):
                return self._settle_permission(request, key, body.get("reply"))
            case ("GET", *_) if (found := self._find_facts("/".join(words))) is not None:
                request.answer(200, encode_json_line(found))
                return b""
        return self._refuse(request)

    def _handle_session_request(
        self, request: HttpRequest, session: _Session, words: list[str], body: dict[str, Any], now: int
    ) -> bytes:
        match request.method, *words:
            case ("DELETE",):
                request.answer(200, b"true")
                return self._delete_session(session)
            case ("POST", "permissions", key):
                return self._settle_permission(request, key, body.get("response"))
            case ("POST", "message" | "prompt_async" as way):
                return self._take_prompt(request, session, body, now, waits=way == "message")
            case ("PATCH",):
                session.about |= {"title": body.get("title", session.about["title"])}
                request.answer(200, encode_json_line(session.about))
                return self._encode_event("session.updated", sessionID=session.name, info=session.about)
            case ("GET", *which) if which in ([], ["message"]):
                request.answer(200, encode_json_line(session.messages if which else session.about))
                return b""
        return self._refuse(request)

    def _refuse(self, request: HttpRequest, words: str = "") -> bytes:
        words = words or f"the fake of opencode serve has no {request.method} {request.path}"
        request.answer(404, encode_json_line({"name": "NotFoundError", "data": {"message": words}}))
        return b""

    def _create_session(self, request: HttpRequest, body: dict[str, Any], now: int) -> bytes:
        self._made += 1
        name = SESSION_ID if self._made == 1 else f"{SESSION_ID[:-3]}{self._made:03}"
        folder, made = posix.getcwd(), convert_to_unix_ms(now)
        about: dict[str, Any] = {
            "id": name,
            "slug": f"session-{self._made}",
            "projectID": "global",
            "directory": folder,
        }
        about |= {"path": folder.strip("/"), "cost": 0, "tokens": _NO_TOKENS, "title": body.get("title", "New session")}
        about |= {"version": _VERSION, "time": {"created": made, "updated": made}}
        about |= {"parentID": body["parentID"]} if "parentID" in body else {}
        self._sessions[name] = _Session(about)
        request.answer(200, encode_json_line(about))
        return self._encode_event("session.created", sessionID=name, info=about)

    def _delete_session(self, session: _Session) -> bytes:
        """Forget a session and those below it; its turn is not ended."""
        below = [other for other in self._sessions.values() if other.about.get("parentID") == session.name]
        events = [self._delete_session(other) for other in below]
        self._sessions.pop(session.name, None)
        return b"".join([*events, self._encode_event("session.deleted", sessionID=session.name, info=session.about)])

    def _abort_session(self, request: HttpRequest, name: str) -> tuple[bytes, str]:
        """Have the script end the turn; without a turn there is nothing to end."""
        session = self._sessions.get(name)
        if session is not None and session.is_busy:
            self._aborts.append((session, request))
            return b"", "cancel"
        request.answer(200, b"true")
        return self._encode_idle(name), ""

    def _take_prompt(
        self, request: HttpRequest, session: _Session, body: dict[str, Any], now: int, *, waits: bool
    ) -> bytes:
        """Take a prompt; with `noReply` it has no turn."""
        if "parts" not in body:
            error = {"message": 'Missing key\n  at ["parts"]', "kind": "Payload"}
            request.answer(400, encode_json_line({"name": "BadRequest", "data": error}))
            return b""
        model = body["model"] if isinstance(body.get("model"), dict) else self._model
        agent = str(body.get("agent", "build"))
        about = {"role": "user", "time": {"created": convert_to_unix_ms(now)}, "agent": agent, "model": model}
        prompt = self._add_message(session, about)
        events = self._encode_message(prompt)
        part = self._add_part(session, prompt, {"type": "text", "text": join_prompt_text(body["parts"])})
        events += self._encode_part(session, part, now)
        session.about |= {"agent": agent, "time": {**session.about["time"], "updated": convert_to_unix_ms(now)}}
        events += self._encode_event("session.updated", sessionID=session.name, info=session.about)
        prompt["info"]["summary"] = {"diffs": []}
        if body.get("noReply") is True:
            request.answer(200, encode_json_line(prompt))
            return events
        if waits:
            session.waiting.append(request)
        else:
            request.answer(204, b"")
        self._prompts.append(session)
        if session.is_busy:
            session.queue.append(prompt)
            return events
        return events + self._begin_turn(session, prompt, now)

    def _settle_permission(self, request: HttpRequest, key: str, reply: Any) -> bytes:
        question = self.questions.find_open_question(key)
        if question is None:
            error = {"_tag": "PermissionNotFoundError", "requestID": key}
            request.answer(404, encode_json_line({**error, "message": f"Permission request not found: {key}"}))
            return b""
        request.answer(200, b"true")
        self.questions.settle_question(question, ANSWER_ALLOW if reply in _ALLOWING_REPLIES else ANSWER_DENY)
        session = question.fields["asked_in"]
        return self._encode_event("permission.replied", sessionID=session, requestID=key, reply=reply)

    def _find_facts(self, path: str) -> Any:
        """Find what a request without a session asks for; None: the fake does not know it."""
        folder, name = posix.getcwd(), self._model["providerID"]
        model: dict[str, Any] = {"id": self._model["modelID"], "providerID": name, "name": self._model["modelID"]}
        agent: dict[str, Any] = {"name": "build", "mode": "primary", "native": True, "permission": [], "options": {}}
        provider: dict[str, Any] = {
            "id": name,
            "name": name,
            "source": "config",
            "env": [],
            "options": {},
            "models": {},
        }
        provider["models"] = {model["id"]: model}
        facts: dict[str, Any] = {
            "session": [session.about for session in reversed(self._sessions.values())],
            "session/status": {one.name: {"type": "busy"} for one in self._sessions.values() if one.is_busy},
            "permission": [self._describe_question(question) for question in self.questions.list_open_questions()],
            "question": [],
            "command": [],
            "global/health": {"healthy": True, "version": _VERSION},
            "config": {"mode": {}, "agent": {}, "command": {}, "plugin": [], **self._config},
            "config/providers": {"providers": [provider], "default": {name: model["id"]}},
            "agent": [agent],
            "path": {"home": posix.environ.get(b"HOME", b"").decode(), "worktree": "/", "directory": folder},
            "project/current": {"id": "global", "worktree": "/", "sandboxes": []},
        }
        return facts.get(path)

    # The questions of a session's player.

    def take_late_answers(self) -> bytes:
        """Give nothing: requests are answered one by one."""
        return b""

    def note_stdin_end(self) -> None:
        """Take note of nothing: stdin is not read."""

    def has_received_prompt(self, number: int) -> bool:
        """Say whether that prompt, of whichever session, was taken."""
        return len(self._prompts) >= number

    def begin_prompt_turn(self, number: int, now: int) -> bytes:
        """Have words belong to that prompt's session from now on; the turn has begun."""
        self._hand = self._prompts[number - 1]
        return b""

    def end_cancelled_turn(self, now: int) -> bytes:
        """Give what an abort leaves of the turn, and answer the abort."""
        events = b""
        aborts, self._aborts = self._aborts, []
        for session, request in aborts:
            if session.is_busy:
                events += self._fail_turn(session, _ABORTED, now)
            request.answer(200, b"true")
        return events

    def ask_client(self, fields: dict[str, Any], now: int) -> tuple[ClientQuestion, bytes]:
        """Open a question; give the event that asks for a permission."""
        session = self._hand
        name = session.name if session is not None else ""
        calls = {} if session is None else {call["name"]: number for number, (call, _, _) in session.tools.items()}
        own = f"per_{len(self.questions.asked) + 1:026}" if fields["id"] is None else str(fields["id"])
        about = {**fields, "asked_in": name, "message": self._messages}
        question = self.questions.open_question(own, about, calls.get(fields["name"], ""))
        return question, self._encode_event("permission.asked", **self._describe_question(question))

    def _describe_question(self, question: ClientQuestion) -> dict[str, Any]:
        """Say what a question asks."""
        name, session = question.fields["name"], self._sessions.get(question.fields["asked_in"])
        given = {} if session is None or not question.tool else session.tools[question.tool][0]["input"]
        words = str(given.get("command", "*"))
        asked = {"id": question.key, "sessionID": question.fields["asked_in"], "permission": name, "patterns": [words]}
        asked |= {
            "metadata": {"command": words} if "command" in given else given,
            "always": [f"{words.partition(' ')[0]} *" if "command" in given else "*"],
        }
        if question.tool:
            message = f"msg_{question.fields['message']:026}"
            asked["tool"] = {"messageID": message, "callID": question.tool}
        return asked

    # The words of a script.

    def encode_text(self, text: str, stop: str | None, now: int) -> bytes:
        """Give a text, or the rest of one that came in pieces."""
        session = self._hand
        if session is None:
            return b""
        return self.encode_text_delta(text, now) + self._close_text(session, now)

    def encode_answer(self, text: str, now: int) -> bytes:
        """Give the last text and the end of the turn."""
        return self.encode_result({"text": text, "is_error": False, "usage": None}, now)

    def encode_result(self, fields: dict[str, Any], now: int) -> bytes:
        """Give the end of the turn, after a text if there is one; or an error."""
        session, text = self._hand, fields["text"]
        if session is None:
            return b""
        if fields["is_error"]:
            error = {"name": "APIError", "data": {"message": text or "error", "isRetryable": False}}
            return self._fail_turn(session, error, now)
        events = self._begin_step(session, now) if text is None else self.encode_text(text, None, now)
        events += self._close_text(session, now) + self._end_step(session, "stop", now, fields["usage"])
        busy = b"" if session.queue else self._encode_status(session, "busy")  # it asks for more work, and finds none
        return events + busy + self._end_turn(session, now)

    def encode_text_delta(self, text: str, now: int) -> bytes:
        """Give a piece of a text."""
        session = self._hand
        if session is None:
            return b""
        events = self._begin_step(session, now)
        if session.open_text is None:
            session.open_text = self._add_part(session, session.message, _begin_text("text", now))
            events += self._encode_part(session, session.open_text, now)
        session.open_text["text"] += text
        return events + self._encode_piece(session, session.open_text, text)

    def encode_thought(self, text: str, now: int) -> bytes:
        """Give a thought."""
        session = self._hand
        if session is None:
            return b""
        events = self._begin_step(session, now) + self._close_text(session, now)
        part = self._add_part(session, session.message, _begin_text("reasoning", now))
        events += self._encode_part(session, part, now) + self._encode_piece(session, part, text)
        part |= {"text": text, "time": build_time_span(now, now)}
        return events + self._encode_part(session, part, now)

    def encode_tool_start(self, fields: dict[str, Any], now: int) -> bytes:
        """Give a tool that is called, and runs."""
        session = self._hand
        if session is None:
            return b""
        events = self._begin_step(session, now)
        call = {"type": "tool", "tool": fields["name"], "callID": fields["id"]}
        state: dict[str, Any] = {"status": "pending", "input": {}, "raw": ""}
        part = self._add_part(session, session.message, {**call, "state": state})
        session.tools[fields["id"]] = (fields, now, part)
        events += self._encode_part(session, part, now)
        part["state"] = {"status": "running", "input": fields["input"], "time": {"start": convert_to_unix_ms(now)}}
        return events + self._encode_part(session, part, now) + self._close_text(session, now)

    def encode_tool_end(self, fields: dict[str, Any], now: int) -> bytes:
        """Give a tool that has ended. The last one ends the step, and a rejected one the turn."""
        session = self._hand
        if session is None or fields["id"] not in session.tools:
            return b""
        call, start, part = session.tools.pop(fields["id"])
        part["state"] = build_tool_state(call, start, fields, now)
        events = self._encode_part(session, part, now)
        if session.tools:
            return events
        events += self._end_step(session, "tool-calls", now, None)
        if any(asked.answer == ANSWER_DENY and asked.tool == fields["id"] for asked in self.questions.asked):
            return events + self._end_turn(session, now)
        return events + self._begin_message(session, session.message["info"]["parentID"], now)

    def encode_raw_event(self, value: dict[str, Any], now: int) -> bytes:
        """Give an event as it stands."""
        return encode_json_line(value) + b"\n"

    # Turns, messages and parts.

    def _begin_turn(self, session: _Session, prompt: dict[str, Any], now: int) -> bytes:
        session.is_busy = True
        return self._begin_message(session, prompt["info"]["id"], now)

    def _begin_message(self, session: _Session, prompt: str, now: int) -> bytes:
        """Begin a message of the agent, for which its model is asked."""
        path = {"cwd": posix.getcwd(), "root": "/"}
        about: dict[str, Any] = {"parentID": prompt, "role": "assistant", "mode": "build", "agent": "build"}
        about |= {"path": path, "cost": 0, "tokens": _NO_TOKENS, **self._model}
        session.message = self._add_message(session, {**about, "time": {"created": convert_to_unix_ms(now)}})
        session.has_step = False
        busy = self._encode_status(session, "busy")
        return busy + self._encode_message(session.message) + self._encode_status(session, "busy")

    def _begin_step(self, session: _Session, now: int) -> bytes:
        if session.has_step:
            return b""
        session.has_step = True
        return self._encode_part(session, self._add_part(session, session.message, {"type": "step-start"}), now)

    def _close_text(self, session: _Session, now: int) -> bytes:
        """End the text that came in pieces, if there is one."""
        part, session.open_text = session.open_text, None
        if part is None:
            return b""
        part["time"] = {**part["time"], "end": convert_to_unix_ms(now)}
        return self._encode_part(session, part, now)

    def _end_step(self, session: _Session, reason: str, now: int, usage: dict[str, Any] | None) -> bytes:
        """End the step, and the message with it, which opencode tells twice."""
        tokens, message = {**STEP_TOKEN_COUNTS, **(usage or {})}, session.message
        end = self._add_part(session, message, {"reason": reason, "type": "step-finish", "tokens": tokens, "cost": 0})
        session.has_step = False
        message["info"] |= {"tokens": tokens, "finish": reason}
        message["info"]["time"] = {**message["info"]["time"], "completed": convert_to_unix_ms(now)}
        return self._encode_part(session, end, now) + self._encode_message(message) + self._encode_message(message)

    def _end_turn(self, session: _Session, now: int) -> bytes:
        """Go on with the next prompt of the session, or be idle."""
        if session.queue:
            return self._begin_turn(session, session.queue.pop(0), now)
        session.is_busy = False
        waiting, session.waiting = session.waiting, []
        for request in waiting:
            request.answer(200, encode_json_line(session.message))
        return self._encode_idle(session.name)

    def _fail_turn(self, session: _Session, error: dict[str, Any], now: int) -> bytes:
        """End the turn by an error, which comes before the ends of what runs."""
        events = self._encode_event("session.error", sessionID=session.name, error=error)
        events += self._encode_idle(session.name) + self._close_text(session, now)
        for number, (call, start, part) in session.tools.items():
            questions = [asked for asked in self.questions.list_open_questions() if asked.tool == number]
            for asked in questions:
                self.questions.settle_question(asked, ANSWER_CANCELLED)
            part["state"] = _build_aborted_state(call, start, now, is_asked=bool(questions))
            events += self._encode_part(session, part, now)
        session.tools.clear()
        about = session.message["info"]
        about |= {"error": error, "time": {**about["time"], "completed": convert_to_unix_ms(now)}}
        return events + self._encode_message(session.message) + self._end_turn(session, now)

    def _add_message(self, session: _Session, about: dict[str, Any]) -> dict[str, Any]:
        self._messages += 1
        info = {"id": f"msg_{self._messages:026}", **about, "sessionID": session.name}
        message: dict[str, Any] = {"info": info, "parts": []}
        session.messages.append(message)
        return message

    def _add_part(self, session: _Session, message: dict[str, Any], fields: dict[str, Any]) -> dict[str, Any]:
        self._parts += 1
        ids = {"id": f"prt_{self._parts:026}", "messageID": message["info"]["id"], "sessionID": session.name}
        part = {**ids, **fields}
        message["parts"].append(part)
        return part

    def _encode_message(self, message: dict[str, Any]) -> bytes:
        return self._encode_event("message.updated", sessionID=message["info"]["sessionID"], info=message["info"])

    def _encode_part(self, session: _Session, part: dict[str, Any], now: int) -> bytes:
        at = convert_to_unix_ms(now)
        return self._encode_event("message.part.updated", sessionID=session.name, part=part, time=at)

    def _encode_piece(self, session: _Session, part: dict[str, Any], text: str) -> bytes:
        about = {"messageID": part["messageID"], "partID": part["id"], "field": "text", "delta": text}
        return self._encode_event("message.part.delta", sessionID=session.name, **about)

    def _encode_status(self, session: _Session, kind: str) -> bytes:
        return self._encode_event("session.status", sessionID=session.name, status={"type": kind})

    def _encode_idle(self, name: str) -> bytes:
        status = self._encode_event("session.status", sessionID=name, status={"type": "idle"})
        return status + self._encode_event("session.idle", sessionID=name)

    def _encode_event(self, kind: str, **about: Any) -> bytes:
        self._events += 1
        return encode_json_line({"id": f"evt_{self._events:026}", "type": kind, "properties": about}) + b"\n"


def _begin_text(kind: str, now: int) -> dict[str, Any]:
    return {"type": kind, "text": "", "time": {"start": convert_to_unix_ms(now)}}


def _build_aborted_state(call: dict[str, Any], start: int, now: int, *, is_asked: bool) -> dict[str, Any]:
    """Give the state of a tool whose turn has ended: a command that ran counts as completed."""
    if call["name"] == "bash" and not is_asked:
        state = build_tool_state(call, start, {"error": None, "output": _ABORTED_COMMAND}, now)
        state["metadata"] |= {"exit": None}
        return state
    state = build_tool_state(call, start, {"error": "Tool execution aborted", "output": ""}, now)
    return {**state, "metadata": {"interrupted": True}}
