"""The wire format of `pi --mode rpc` 0.73: requests on stdin, the events of `json` and the answers on stdout.

Its own words are the answers to requests; a prompt is accepted at once, and refused while the agent is busy with one. A
prompt that steers or follows up is queued. It is taken where the real CLI takes it, within the same run of the agent.
Requests after an abort are answered only after the abort.
"""

from __future__ import annotations

from pytest_agentproc.fake_agents.dialects import pi
from pytest_agentproc.fake_agents.objects import encode_json_line
from pytest_agentproc.fake_agents.questions import ANSWER_ALLOW, ANSWER_DENY, ClientQuestions
from pytest_agentproc.fake_agents.requests import parse_json_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pytest_agentproc.fake_agents.program import Program
    from pytest_agentproc.fake_agents.questions import ClientQuestion

_BUSY_ERROR = "Agent is already processing. Specify streamingBehavior ('steer' or 'followUp') to queue the message."
_SETTINGS_BY_COMMAND = {
    "set_steering_mode": ("steeringMode", "mode"),
    "set_follow_up_mode": ("followUpMode", "mode"),
    "set_auto_compaction": ("autoCompactionEnabled", "enabled"),
    "set_session_name": ("sessionName", "name"),
}
"""What a command sets in the state, and its field that says how."""
_ANSWERS: dict[str, dict[str, Any]] = {
    "set_thinking_level": {},
    "set_auto_retry": {},
    "abort_retry": {},
    "abort_bash": {},
    "cycle_model": {"data": None},
    "cycle_thinking_level": {"data": None},
    "get_commands": {"data": {"commands": []}},
    "get_available_thinking_levels": {"data": {"levels": ["off"]}},
}
"""The answers that are always the same: there is one model, and it does not think."""
_QUEUE_NAMES = {"steer": "steering", "follow_up": "followUp", "followUp": "followUp"}


class Encoder(pi.Encoder):
    """Encode a conversation: one run of the agent for each prompt."""

    code = version = 0
    abort_errors = ("Request was aborted", "Request was aborted.")
    """What an aborted message says of a model, and of a tool."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.questions = ClientQuestions()
        self.events = {name: reported for name, reported in self.events.items() if name != "begin"}
        self._begun = True  # what is told before the first prompt belongs to none
        self._past: list[dict[str, Any]] = []
        self._prompts = 0
        self._is_busy = False
        self._aborts: list[dict[str, Any]] = []
        self._behind: list[dict[str, Any]] = []
        self._responses: list[bytes] = []
        self._news: list[bytes] = []
        self._settings: dict[str, Any] = {
            **dict.fromkeys(("steeringMode", "followUpMode"), "one-at-a-time"),
            "autoCompactionEnabled": True,
        }
        self._queued: dict[str, list[str]] = {"steering": [], "followUp": []}

    def handle_request(self, request: bytes, now: int) -> tuple[bytes, str]:
        """Answer a command; an abort of a run is the script's to answer."""
        command = parse_json_object(request)
        if command is None:
            return self._lines.join_reply([encode_command_response({}, "parse", error="Failed to parse command")]), ""
        if command.get("type") == "abort" and self._is_busy:
            self._aborts.append(command)
            return b"", "cancel"
        if command.get("type") == "extension_ui_response":
            self._handle_extension_answer(command)
            return b"", ""
        if self._aborts:
            self._behind.append(command)
            return b"", ""
        was_busy, events = self._is_busy, self._answer_command(command, now)
        if was_busy or self._responses:
            self._responses += events
            events = self._take_queue_updates()
        return self._lines.join_reply(events), ""

    def take_late_answers(self) -> bytes:
        """Give the responses of a busy agent: what it queued meanwhile comes before all of them."""
        responses, self._responses = self._responses, []
        return self._lines.join(responses) if responses else b""

    def note_stdin_end(self) -> None:
        """Take note that stdin has ended, which changes no line."""

    def encode_handshake_refusal(self, request: bytes, error: str) -> bytes:
        """Give nothing: there is no handshake."""
        return b""

    def has_received_prompt(self, number: int) -> bool:
        """Say whether the prompt was accepted."""
        return self._prompts >= number

    def begin_prompt_turn(self, number: int, now: int) -> bytes:
        """Give nothing: a run begins as its prompt is accepted."""
        return b""

    def end_cancelled_turn(self, now: int) -> bytes:
        """Give what an abort leaves of the run, its response, and those of the commands after it."""
        if not self._aborts:
            return b""
        events, self._queued = self._encode_opening_events(now), {"steering": [], "followUp": []}
        error = self.abort_errors[bool(self._tools)]
        if self._tools:
            ends = [
                self._end_running_tool({"id": number, "error": "Command aborted"}, now) for number in list(self._tools)
            ]
            events += [event for reported in ends for event in reported]
        events += self._encode_assistant_message("", "aborted", now, {"errorMessage": error})
        return self._lines.join([*events, *self._end_agent_run(now)])

    def ask_client(self, fields: dict[str, Any], now: int) -> tuple[ClientQuestion, bytes]:
        """Open a question; give what an extension sends that wants a yes or a no."""
        name, own = fields["name"], f"00000000-0000-4000-8000-{len(self.questions.asked) + 1:012}"
        question = self.questions.open_question(own if fields["id"] is None else str(fields["id"]), fields)
        details = {"type": "extension_ui_request", "id": question.key, "method": "confirm"}
        return question, self._lines.join([encode_json_line({**details, "title": name, "message": f"Allow {name}?"})])

    def _handle_extension_answer(self, command: dict[str, Any]) -> None:
        question = self.questions.find_open_question(command.get("id"))
        if question is None:
            return
        is_allowed = command.get("confirmed") is True and command.get("cancelled") is not True
        self.questions.settle_question(
            question, ANSWER_ALLOW if is_allowed else ANSWER_DENY
        )  # to an extension cancelled is a no

    def _answer_command(self, command: dict[str, Any], now: int) -> list[bytes]:
        kind = str(command.get("type"))
        if kind in ("prompt", "steer", "follow_up"):
            return self._accept_prompt(command, kind, now)
        if kind == "abort":
            return [encode_command_response(command, kind)]
        if kind in _SETTINGS_BY_COMMAND:
            return self._change_setting(command, kind)
        if kind == "set_model":
            named = [command.get(field) or "undefined" for field in ("provider", "modelId")]
            if "undefined" in named:
                return [encode_command_response(command, kind, error=f"Model not found: {'/'.join(map(str, named))}")]
            self._provider, self._model = map(str, named)
        data = self._find_requested_data(kind)
        more = _ANSWERS.get(kind) if data is None else {"data": data}
        return [
            encode_command_response(command, kind, error=f"Unknown command: {kind}" if more is None else "", more=more)
        ]

    def _change_setting(self, command: dict[str, Any], kind: str) -> list[bytes]:
        """Change what the state says; a line says so of a name."""
        setting, field = _SETTINGS_BY_COMMAND[kind]
        value = command.get(field)
        if kind == "set_session_name" and not value:
            return [encode_command_response(command, kind, error="Session name cannot be empty")]
        self._settings[setting] = value
        named = {"type": "session_info_changed", "name": value}
        changed = [encode_json_line(named)] if kind == "set_session_name" else []
        return [*changed, encode_command_response(command, kind)]

    def _find_requested_data(self, kind: str) -> dict[str, Any] | None:
        messages = [*self._past, *self._messages]
        texts = [(message["role"], _join_text(message)) for message in messages]
        asked = [text for role, text in texts if role == "user"]
        answered = [text for role, text in texts if role == "assistant"]
        found: dict[str, dict[str, Any]] = {
            "get_state": self._describe_agent_state(),
            "get_session_stats": self._count_session(messages),
            "get_messages": {"messages": messages},
            "get_available_models": {"models": [self._describe_model()]},
            "set_model": self._describe_model(),
            "get_last_assistant_text": {"text": answered[-1]} if answered else {},
            "get_fork_messages": {
                "messages": [{"entryId": f"{number:08x}", "text": text} for number, text in enumerate(asked, 1)]
            },
        }
        return found.get(kind)

    def _count_session(self, messages: list[dict[str, Any]]) -> dict[str, Any]:
        """Give the statistics of the session."""
        roles = [message["role"] for message in messages]
        answers = [message for message in messages if message["role"] == "assistant"]
        calls = [block for message in answers for block in message["content"] if block["type"] == "toolCall"]
        kinds = ("input", "output", "cacheRead", "cacheWrite")
        tokens = {kind: sum(message["usage"][kind] for message in answers) for kind in kinds}
        total, window = sum(tokens.values()), self._describe_model()["contextWindow"]
        return {
            **self._name_session(),
            "userMessages": roles.count("user"),
            "assistantMessages": len(answers),
            "toolCalls": len(calls),
            "toolResults": roles.count("toolResult"),
            "totalMessages": len(messages),
            "tokens": {**tokens, "total": total},
            "cost": 0,
            "contextUsage": {"tokens": total, "contextWindow": window, "percent": 100 * total / window},
        }

    def _name_session(self) -> dict[str, Any]:
        session = self._kept.get("id", pi.SESSION_ID)
        return {"sessionFile": self._session_file or f"/{session}.jsonl", "sessionId": session}

    def _describe_model(self) -> dict[str, Any]:
        """Give the one model that there is; a pi without one is not logged in."""
        return {
            "id": self._model,
            "name": self._model,
            "api": "openai-completions",
            "provider": self._provider,
            "baseUrl": "http://127.0.0.1",
            "reasoning": False,
            "input": ["text"],
            "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
            "contextWindow": 200_000,
            "maxTokens": 32_000,
        }

    def _accept_prompt(self, command: dict[str, Any], kind: str, now: int) -> list[bytes]:
        message = str(command.get("message", ""))
        queue = _QUEUE_NAMES.get(str(command.get("streamingBehavior")) if kind == "prompt" and self._is_busy else kind)
        if queue is None and self._is_busy:
            return [encode_command_response(command, kind, error=_BUSY_ERROR)]
        self._prompts += 1
        if queue is not None:
            self._queued[queue].append(message)
            self._news.append(self._encode_queue_update())
            return [self._encode_receipt(command, kind, "queued")]
        self._past += self._messages
        self._prompt, self._messages = message, []
        self._is_busy, self._begun = True, False
        return [self._encode_receipt(command, kind, "started"), *self._encode_opening_events(now)]

    def _encode_receipt(self, command: dict[str, Any], kind: str, disposition: str) -> bytes:
        """Accept a prompt, which is started or queued."""
        return encode_command_response(command, kind)

    def _describe_agent_state(self) -> dict[str, Any]:
        pending = sum(len(queue) for queue in self._queued.values())
        return {
            "model": self._describe_model(),
            "thinkingLevel": "off",
            "isStreaming": self._is_busy,
            "isCompacting": False,
            **self._name_session(),
            **self._settings,
            "messageCount": len(self._past) + len(self._messages),
            "pendingMessageCount": pending,
        }

    def _take_queue_updates(self) -> list[bytes]:
        news, self._news = self._news, []
        return news

    def _encode_queue_update(self) -> bytes:
        return encode_json_line({"type": "queue_update", **self._queued})

    def _encode_session_header(self) -> list[bytes]:
        return []  # no header in this mode

    def _end_running_tool(self, fields: dict[str, Any], now: int) -> list[bytes]:
        """Steer, once the last tool has ended."""
        events = super()._end_running_tool(fields, now)
        return events if self._tools else [*events, *self._begin_queued_prompt("steering", now)]

    def _end_agent_run(self, now: int) -> list[bytes]:
        """Go on with what is queued, or end."""
        for queue in ("steering", "followUp"):
            if self._queued[queue]:
                return [
                    self._encode_turn_end(),
                    encode_json_line({"type": "turn_start"}),
                    *self._begin_queued_prompt(queue, now),
                ]
        self._is_busy = False
        return [*super()._end_agent_run(now), *self._answer_waiting_commands(now)]

    def _answer_waiting_commands(self, now: int) -> list[bytes]:
        """Answer the aborts of a run that is over, whatever ended it, and the requests after them."""
        behind, self._behind = self._behind, []
        events = [encode_command_response(abort, "abort") for abort in self._aborts]
        self._aborts = []
        for command in behind:
            responses = self._answer_command(command, now)
            events += [*self._take_queue_updates(), *responses]
        return events

    def _begin_queued_prompt(self, queue: str, now: int) -> list[bytes]:
        if not self._queued[queue]:
            return []
        self._prompt = self._queued[queue].pop(0)
        return [self._encode_queue_update(), *self._encode_prompt_message(now)]


def encode_command_response(
    command: dict[str, Any], kind: str, *, error: str = "", more: dict[str, Any] | None = None
) -> bytes:
    """Give the response to a command; `more` is what a good one has beside."""
    number = {"id": command["id"]} if "id" in command else {}
    rest = {"error": error} if error else more or {}
    return encode_json_line({**number, "type": "response", "command": kind, "success": not error, **rest})


def _join_text(message: dict[str, Any]) -> str:
    return "".join(block["text"] for block in message["content"] if block["type"] == "text")
