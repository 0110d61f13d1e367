"""The wire format of a claude that is talked to (`--input-format stream-json`), as the real CLI prints it.

A prompt is queued as it comes, and its turn begins when the script takes it in hand. A prompt that comes while a tool
runs is swallowed by that turn, and has no result of its own; so is the end of a task, if the script says so.
"""

from __future__ import annotations

from pytest_agentproc.fake_agents.dialects.claude.control import (
    MODELS_BY_ALIAS,
    TOOL_DECISION_FIELDS,
    encode_failure_response,
    encode_initialize_response,
    encode_question_request,
    encode_question_withdrawal,
    encode_success_response,
    find_asked_tool,
    find_fixed_answer,
    read_question_answer,
)
from pytest_agentproc.fake_agents.dialects.claude.print_mode import format_timestamp
from pytest_agentproc.fake_agents.dialects.claude.refusals import (
    describe_failed_tool,
    explain_tool_rejection,
)
from pytest_agentproc.fake_agents.dialects.claude.servers import UNANSWERED_CALL_ERROR
from pytest_agentproc.fake_agents.dialects.claude.servers import read_server_answer as called
from pytest_agentproc.fake_agents.dialects.claude.turns import TurnEncoder
from pytest_agentproc.fake_agents.objects import encode_json_line
from pytest_agentproc.fake_agents.questions import (
    ANSWER_CANCELLED,
    ANSWER_DENY,
    ANSWER_GIVEN,
    ANSWER_REFUSED,
    ClientQuestions,
)
from pytest_agentproc.fake_agents.requests import parse_json_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from pytest_agentproc.fake_agents.program import Program
    from pytest_agentproc.fake_agents.questions import ClientQuestion


_PERMISSION_MODES = ("acceptEdits", "auto", "bypassPermissions", "default", "dontAsk", "plan")
_NO_BYPASS = {
    "error": "Cannot set permission mode to bypassPermissions because the session was not launched with "
    "--dangerously-skip-permissions",
    "error_code": "bypass_not_launched",
}
_DISABLED_MODES = {
    "auto": {
        "error": "Cannot set permission mode to auto: auto mode disabled by settings",
        "error_code": "auto_mode_settings",
    },
    "bypassPermissions": {
        "error": "Cannot set permission mode to bypassPermissions because it is disabled by settings or configuration",
        "error_code": "bypass_disabled",
    },
}
"""What the real CLI says of a mode that its settings forbid; they can forbid no other one."""
_UNKNOWN_MODEL = {
    "error": 'Model "(unrecognized model name)" is not a recognized model id. Run /model to see available models.',
    "error_code": "catalog_unknown",
}


class Encoder(TurnEncoder):
    """Encode a conversation: answers and questions to the client, its interrupts, the tasks after it."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.questions = ClientQuestions()
        self.modes: Sequence[str] = ()
        self._mode = ""
        self._may_bypass = "bypassPermissions" in self._asked_mode or (
            "--allow-dangerously-skip-permissions" in program.get("argv", ())
        )
        self._calls: dict[str, dict[str, Any]] = {}
        self._interrupts: list[dict[str, Any]] = []
        self._receipts = self._cut = 0
        self._reports: dict[str, str] = {}
        self._folded: list[dict[str, Any]] = []
        more = {
            "task": self.encode_task_start,
            "task_done": self.encode_task_end,
            "background_turn": self.begin_background_turn,
        }
        self.events = {**self.events, **more}

    def handle_request(self, request: bytes, now: int) -> tuple[bytes, str]:
        """Queue a prompt, answer a control request; an interrupt of a turn is the script's to answer."""
        line = parse_json_object(request)
        if line is None:
            text = f"Error parsing streaming input line (type=unknown, {len(request)} chars): SyntaxError\n"
            return text.encode(), "fault"
        started = self._lines.join_reply(self._run_session_start_hooks())
        reply, event = self._handle_client_line(line, now)
        return started + reply, event

    def _handle_client_line(self, line: dict[str, Any], now: int) -> tuple[bytes, str]:
        if line.get("type") in ("user", "control_response"):
            is_prompt = line["type"] == "user"
            return self._lines.join_reply(
                self._queue_prompt(line, now) if is_prompt else self._handle_control_response(line.get("response"))
            ), ""
        asked = line.get("request")
        if line.get("type") != "control_request" or not isinstance(asked, dict):
            return b"", ""  # a sign of life
        if asked.get("subtype") == "interrupt" and (self._is_in_turn or self._prompts.waiting):
            self._interrupts.append(line)
            self._cut = self._ends
            return self._lines.join_reply(self._withdraw_turn_questions()), "cancel"
        if asked.get("subtype") != "initialize":
            return self._lines.join_reply(self._answer_control_request(line, asked, now)), ""
        events = [
            *self._servers.begin_client_handshakes(asked),
            encode_initialize_response(line, asked, self.permission_mode),
        ]
        return self._lines.join_reply(events), "connect" if self._servers.has_pending_servers else "handshake"

    def has_received_prompt(self, number: int) -> bool:
        """Say whether the prompt was received; the first one waits for the servers of the client."""
        return not self._servers.has_pending_servers and super().has_received_prompt(number)

    def stop_awaiting_servers(self) -> bytes:
        """Wait no longer for the servers of the client."""
        self._servers.fail_pending_servers()
        return b""

    def note_stdin_end(self) -> None:
        """Note that stdin has ended: an agent that stays for its tasks is not idle."""
        self._is_ended = True
        self._servers.fail_pending_servers()
        for question in self.questions.list_open_questions():
            if question.fields["kind"] == "request" and question.call is None:
                self._settle_server_call(question, None, UNANSWERED_CALL_ERROR)

    def take_late_answers(self) -> bytes:
        """Give nothing: all is answered at once."""
        return b""

    def encode_handshake_refusal(self, request: bytes, error: str) -> bytes:
        """Give the control response that refuses `initialize`."""
        return self._lines.join_reply([encode_failure_response(parse_json_object(request) or {}, {"error": error})])

    def encode_cancel_receipt(self) -> bytes:
        """Give the control response alone: it is received, and the interrupted turn runs to its end."""
        return self._join_lines(self._encode_owed_interrupt_responses())

    def end_cancelled_turn(self, now: int) -> bytes:
        """Give the control response, what the interrupt leaves of the turn, and its error result."""
        if not self._interrupts:
            return b""
        waiting = self._prompts.waiting
        opening = b"" if self._is_in_turn or not waiting else self.begin_prompt_turn(waiting[0] + 1, now)
        events = self._encode_owed_interrupt_responses()
        self._interrupts, self._receipts = [], 0
        if self._cut == self._ends and self._is_in_turn:  # else the turn ended before, by itself
            rejections = {number: explain_tool_rejection(number, self.questions) for number in self._running}
            events += [*self._replay_new_prompts(), *self._abort_turn(now, rejections), *self._end_turn()]
        return opening + self._join_lines(events)

    def encode_result(self, fields: dict[str, Any], now: int) -> bytes:
        """Give the result; an interrupt that the prompt's own result crosses is answered after it, as claude does."""
        is_own = not self._run
        encoded = super().encode_result(fields, now)
        return encoded + (self.encode_cancel_receipt() if is_own else b"")

    def end_interrupted_turn(self, now: int) -> bytes:
        """Give the rest of the turn after a signal, and its error result; after that claude exits silently."""
        if not self._is_in_turn:
            return b""
        events = [*self._replay_new_prompts(), *self._abort_turn(now)]
        self._end_turn()
        return self._join_lines(events)

    def ask_client(self, fields: dict[str, Any], now: int) -> tuple[ClientQuestion, bytes]:
        """Open a question about the running tool, or about an unseen one; give the control request."""
        if fields["kind"] == "request":
            return self._call_server_tool(fields)
        call = find_asked_tool(fields, self._calls, self.questions)
        if fields["event"] == "Stop":
            call = {"id": self._make_uuid()}
        key = self._make_uuid() if fields["id"] is None else str(fields["id"])
        question = self.questions.open_question(key, fields, call["id"], in_turn=self._is_in_turn)
        state = self._encode_session_state("requires_action") if fields["kind"] == "permission" else []
        started = self._tasks.find_task_started_by(call["id"])
        about: dict[str, Any] = {
            "session_id": self._session,
            "transcript_path": self._hooks.transcript_path,
            "cwd": self._folder,
            "prompt_id": f"00000000-0000-4000-9000-{self._taken:012}",
            "mode": self.permission_mode,
            "said": self._said,
        }
        about |= {
            "tasks": self._tasks.describe_running_tasks(),
            "response": {"backgroundTaskId": started} if started else {},
        }
        return question, self._join_lines([*state, encode_question_request(question, call, about)])

    def _call_server_tool(self, fields: dict[str, Any]) -> tuple[ClientQuestion, bytes]:
        """Call the tool of a server that a tool of the script names."""
        call, key = self._calls[fields["tool"]], str(fields["id"]) if fields["id"] is not None else self._make_uuid()
        server_call = None if fields["tool"] in self._blocked else self._servers.encode_tool_call(key, call)
        about = {"name": call["name"], "event": "", "message": server_call[0] if server_call else 0}
        question = self.questions.open_question(key, {**fields, **about}, call["id"], in_turn=self._is_in_turn)
        if server_call is None:
            question.call = self.begin_tool_call(question.tool)
        return question, self._join_lines([server_call[1]] if server_call else [])

    def poll_tool_call(self, question: ClientQuestion) -> None:
        """Take the answer of a server that this agent has started, if it has come."""
        if question.call.poll_answer():
            is_result = self.keep_tool_answer(question.tool, question.call)
            self.questions.settle_question(question, ANSWER_GIVEN if is_result else ANSWER_REFUSED)

    def _settle_server_call(self, question: ClientQuestion, result: dict[str, Any] | None, error: str) -> None:
        """Keep the answer of a server of the client for the end of the tool."""
        is_result = self._keep_tool_result(question.tool, result, error)
        self.questions.settle_question(question, ANSWER_GIVEN if is_result else ANSWER_REFUSED)

    def withdraw_question(self, question: ClientQuestion) -> bytes:
        """Take an unanswered question back; give the lines that say so."""
        question.given_up = True
        self.questions.settle_question(question, ANSWER_CANCELLED)
        return self._join_lines([encode_question_withdrawal(question)])

    def encode_tool_start(self, fields: dict[str, Any], now: int) -> bytes:
        """Give the block that asks for a tool."""
        self._calls[fields["id"]] = fields
        return super().encode_tool_start(fields, now)

    def encode_tool_end(self, fields: dict[str, Any], now: int) -> bytes:
        """Give the result of a tool; it carries the prompts that came meanwhile, unless the turn has no owner.

        The ends of tasks that were folded into the turn are carried, too.
        """
        started = self._tasks.find_task_started_by(fields["id"])
        if started and not fields["output"]:
            fields = {**fields, "output": self._tasks.describe_launch_output(started)}
        is_own = fields["id"] in self._running
        encoded = super().encode_tool_end(fields, now)
        self._calls.pop(fields["id"], None)
        if not is_own:
            return encoded
        carried, self._folded = self._folded, []
        encoded += self._join_lines([event for line in carried for event in self._encode_prompt_replay(line)])
        if not self._prompts.hand or self._run:
            return encoded + self._join_lines(self._announce_early_model_request())
        swallowed = [] if self._is_aborting else self._prompts.swallow_waiting_prompts()
        events = [event for index in swallowed for event in self._encode_prompt_lifecycle(index, "started")]
        return encoded + self._join_lines([*events, *self._announce_early_model_request()])

    def encode_task_start(self, fields: dict[str, Any], now: int) -> bytes:
        """Give the task's start; around it the start and the end of its tool, unless the end is a step of its own."""
        if "tool" in fields:
            call = self._calls.get(fields["tool"], {"id": fields["tool"], "input": {}})
            return self._encode_task_change(self._tasks.start_task(fields, call))
        number, is_agent = fields["id"], fields["kind"] == "local_agent"
        about = {"prompt": number} if is_agent else {"command": number}
        call = {"id": f"toolu_{number}", "name": "Task" if is_agent else "Bash"}
        call["input"] = {**about, "description": number, "run_in_background": True}
        encoded = self.encode_tool_start(call, now) + self._encode_task_change(self._tasks.start_task(fields, call))
        return encoded + self.encode_tool_end({"id": call["id"], "output": "", "error": None}, now)

    def encode_subagent_text(self, fields: dict[str, Any], now: int) -> bytes:
        """Give a text of a sub-agent's: its last one is its report."""
        self._reports[fields["parent"]] = fields["text"]
        return super().encode_subagent_text(fields, now)

    def encode_task_end(self, fields: dict[str, Any], now: int) -> bytes:
        """Give the end of a background task; the model hears about a folded one with the next tool's result."""
        fields = {**fields, "report": self._reports.get(self._tasks.find_starting_tool_call(fields["id"]))}
        if fields["in_same_turn"]:
            self._folded.append({**self._tasks.build_task_end_prompt(fields), "at": now})
        return self._encode_task_change(self._tasks.end_task(fields, now))

    def begin_background_turn(self, fields: dict[str, Any], now: int) -> bytes:
        """Begin a turn that no prompt asked for, after an empty turn if there is one."""
        events, number = self._leave_idle_state(), fields["task"]
        if fields["empty_result_first"]:
            self._begin_turn(self._prompts.hand, self._tasks.begin_other_task_turn(number))
            events += [*self._encode_opening_events(), self._encode_empty_result()]
        self._begin_turn(self._prompts.hand, self._tasks.begin_task_turn(number))
        return self._join_lines([*events, *self._encode_opening_events(), *self._announce_early_model_request()])

    def _handle_control_response(self, response: Any) -> list[bytes]:
        """Take the answer to a question; ignore an answer to none."""
        fields = response if isinstance(response, dict) else {}
        question = self.questions.find_open_question(fields.get("request_id"))
        if question is None:
            return self._servers.handle_handshake_answer(fields.get("request_id"), fields)
        if question.fields["kind"] == "request":
            self._settle_server_call(question, *called(fields))
            return []
        answer, kind = read_question_answer(question, fields), question.fields["kind"]
        self.questions.settle_question(question, answer)
        is_before, call = question.fields["event"] == "PreToolUse", self._calls.get(question.tool)
        if is_before and (kind, answer) in TOOL_DECISION_FIELDS:
            self._decisions[question.tool] = TOOL_DECISION_FIELDS[kind, answer]
        if is_before and answer == ANSWER_DENY and call is not None:
            about = {"tool_name": call["name"], "tool_use_id": call["id"], "tool_input": call["input"]}
            self._denials.append(about)
        return self._encode_session_state("idle" if self._is_idle else "running") if kind == "permission" else []

    def _withdraw_turn_questions(self) -> list[bytes]:
        """Take back what was asked within the turn that is interrupted."""
        asked = [question for question in self.questions.list_open_questions() if question.in_turn]
        for question in asked:
            self.questions.settle_question(question, ANSWER_CANCELLED)
            if question.call is not None:
                question.call.cancel_if_unanswered()
        return [
            self._servers.encode_call_cancel(question.fields["name"], question.fields["message"])
            if question.fields["kind"] == "request"
            else encode_question_withdrawal(question)
            for question in asked
            if question.call is None
        ]

    def _encode_task_change(self, events: list[tuple[str, dict[str, Any]]]) -> bytes:
        """Tell of a task, and have the results know of the sub-agents."""
        self._subagents = self._tasks.count_subagents()
        return self._encode_task_lines(events)

    def _encode_task_lines(self, events: list[tuple[str, dict[str, Any]]]) -> bytes:
        return self._join_lines([self._encode_system_line(subtype, fields) for subtype, fields in events])

    def _answer_control_request(self, line: dict[str, Any], asked: dict[str, Any], now: int) -> list[bytes]:
        kind = asked.get("subtype")
        if kind == "interrupt":
            return [encode_success_response(line, {"still_queued": []})]
        if kind == "stop_task":
            number = str(asked.get("task_id"))
            if not self._tasks.is_task_running(number):
                return [encode_success_response(line, {})]
            ended = self._tasks.end_task({"id": number, "status": "stopped"}, now)
            lines = [self._encode_system_line(subtype, fields) for subtype, fields in ended]
            return [
                *lines,
                encode_success_response(line, {}),
                *(self._encode_session_state("idle") if self._is_idle else []),
            ]
        if kind == "set_permission_mode":
            return self._set_permission_mode(line, asked.get("mode"))
        if kind == "set_model":
            return self._set_model(line, asked.get("model"), now)
        return [self._answer_question(line, asked, kind)]

    def _answer_question(self, line: dict[str, Any], asked: dict[str, Any], kind: Any) -> bytes:
        """Answer a question about the CLI or its servers; other requests are unknown."""
        answer = find_fixed_answer(kind, self._model)
        if answer is not None:
            return encode_success_response(line, answer)
        servers = self._servers.describe_status()
        if kind == "mcp_status":
            return encode_success_response(line, {"mcpServers": servers})
        if kind not in ("mcp_toggle", "mcp_reconnect"):
            error = {"error": f"Unsupported control request subtype: {kind}", "error_code": "unsupported_request"}
            return encode_failure_response(line, error)
        name = asked.get("serverName")
        if any(server["name"] == name for server in servers):
            return encode_success_response(line, {})
        return encode_failure_response(line, {"error": f"Server not found: {name}"})

    @property
    def permission_mode(self) -> str:
        """The mode that the client set, or else the first one of the script."""
        return self._mode or next(iter(self.modes), super().permission_mode)

    def _set_permission_mode(self, line: dict[str, Any], mode: Any) -> list[bytes]:
        """Set the mode if the real CLI would; a line says so if it is another one than before."""
        before = self.permission_mode
        if mode not in _PERMISSION_MODES:
            known = ", ".join(_PERMISSION_MODES)
            error = {"error": f"Cannot set permission mode: must be one of {known}", "error_code": "invalid_mode"}
            return [encode_failure_response(line, error)]
        if mode == "bypassPermissions" and not self.modes and not self._may_bypass:
            return [encode_failure_response(line, _NO_BYPASS)]
        if self.modes and mode not in self.modes and mode in _DISABLED_MODES:
            return [encode_failure_response(line, _DISABLED_MODES[mode])]
        self._mode = mode
        changed = [self._encode_system_line("status", {"status": None, "permissionMode": mode})]
        return [encode_success_response(line, {"mode": mode}), *(changed if mode != before else [])]

    def _set_model(self, line: dict[str, Any], model: Any, now: int) -> list[bytes]:
        """Set the model; an alias stands for the newest of its kind, and no name for the CLI's own choice.

        Once the session has begun, a line that a user would see says so if it is another model than before.
        """
        wanted = "default" if model is None else model
        if not isinstance(wanted, str):
            error = {"error": "set_model: model must be a string", "error_code": "invalid_request"}
            return [encode_failure_response(line, {**error, "model": self._model})]
        if not wanted:
            return [encode_failure_response(line, {**_UNKNOWN_MODEL, "model": self._model})]
        alias = wanted.strip().lower().removesuffix("[1m]")
        before, self._model = self._model, MODELS_BY_ALIAS.get(alias, wanted)
        response = encode_success_response(line, {"model": self._model})
        if not self._taken or self._model == before:
            return [response]
        shown = f"{alias} ({self._model})" if alias in MODELS_BY_ALIAS and alias != "default" else self._model
        return [self._encode_replayed_line(f"Set model to `{shown}`", now), response]

    def _encode_replayed_line(self, text: str, now: int) -> bytes:
        """Give what a command of the terminal would print, as a message of the user."""
        content = f"<local-command-stdout>{text}</local-command-stdout>"
        message = {"role": "user", "content": content}
        fields: dict[str, Any] = {"type": "user", "message": message, "session_id": self._session}
        fields |= {"parent_tool_use_id": None, "uuid": self._make_uuid(), "timestamp": format_timestamp(now)}
        return encode_json_line({**fields, "isReplay": True})

    def _encode_owed_interrupt_responses(self) -> list[bytes]:
        """Give the control responses that are still owed."""
        owed, self._receipts = self._interrupts[self._receipts :], len(self._interrupts)
        queued = self._prompts.list_queued_uuids()
        return [encode_success_response(request, {"still_queued": queued}) for request in owed]

    def _is_turn_open(self) -> bool:
        return self._is_in_turn

    def encode_last_words(self, what: str, now: int) -> bytes:
        """Give what is still printed when a signal ends the process: the ends of background commands, too."""
        stopped = {"status": "stopped", "signalled": True, "in_same_turn": False}
        ended = [{"id": number, **stopped} for number in self._tasks.list_running_tasks()] if what == "tools" else []
        return super().encode_last_words(what, now) + b"".join(self.encode_task_end(task, now) for task in ended)

    def _find_subagent_id(self, parent: str) -> str:
        return self._tasks.find_task_started_by(parent) or super()._find_subagent_id(parent)

    def _describe_tool_outcome(self, number: str, output: Any, *, failed: bool) -> dict[str, Any]:
        is_refused = failed and not self._is_aborting
        more = describe_failed_tool(number, output, self.questions) if is_refused else None
        if more is not None:
            return more
        encoded = super()._describe_tool_outcome(number, output, failed=failed)
        started = self._tasks.find_task_started_by(number)
        if started and not failed:
            launched = self._tasks.describe_subagent_launch(started, self._model)
            encoded["tool_use_result"] = launched or {
                **encoded["tool_use_result"],
                "stdout": "",
                "backgroundTaskId": started,
            }
        return encoded
