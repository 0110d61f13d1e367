"""The wire format of `claude -p --output-format stream-json`, as the real CLI prints it. Knows no other dialect.

With `--include-partial-messages` among its arguments it streams each message beside the whole lines. `init` comes with
the first event, or with a step of its own. A text or a thought leaves its message open, and the following blocks
are part of it: a tool (unless more are to come), a stop reason and the result close it. Without partial messages
nothing on the wire shows that. An error result makes the exit code 1.
"""

from __future__ import annotations

from pytest_agentproc.fake_agents.dialects.claude.forms import (
    ABANDONED_MESSAGE_USAGE,
    ABORTED_TURN_ERROR_PREFIX,
    EMPTY_STOP_FIELDS,
    FAILED_MESSAGE_FIELDS,
    INIT_LINE_FIELDS,
    KILLED_TOOL_TEXT,
    MESSAGE_TOKEN_USAGE,
    MODEL_TOKEN_USAGE,
    REJECTED_TOOL_TEXT,
    RESULT_TOKEN_USAGE,
    TERMINAL_REASONS_BY_SUBTYPE,
    UNFINISHED_MESSAGE_FIELDS,
    ZERO_SUBAGENT_COUNTS,
    build_tool_result_block,
    describe_unasked_permission,
)
from pytest_agentproc.fake_agents.dialects.claude.hooks import (
    BLOCK_LIMIT_LINES,
    HOOK_DENIAL_FIELDS,
    MAX_STOP_HOOK_BLOCKS,
    STOP_HOOK_NOTICE_LINE,
    ShellHooks,
)
from pytest_agentproc.fake_agents.dialects.claude.servers import McpServers, ServerToolCall
from pytest_agentproc.fake_agents.lines import Lines
from pytest_agentproc.fake_agents.objects import encode_json_line, encode_spaced_json, encode_timestamp
from pytest_agentproc.fake_agents.program import find_option_value
from pytest_agentproc.fake_agents.requests import parse_json_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pytest_agentproc.fake_agents.contracts import EventEncoders
    from pytest_agentproc.fake_agents.program import Program

START_UNIX_MS = 1_795_303_786_000
SESSION_ID = "7399a635-bc22-4a28-86d3-700ddd9547d5"
_FORKED_SESSION_ID = "7399a635-bc22-4a28-86d3-700ddd9547d6"


class Encoder:
    """Encode text as the events of one prompt."""

    error_is_exit = True
    error_stream = "stdout"

    def __init__(self, program: Program) -> None:
        self._lines = Lines(program)
        self._model = program.get("model") or find_option_value(program, "--model") or "claude-sonnet-4-5"
        kept = program.get("session") or {}
        named = find_option_value(program, "--session-id", "--resume", "-r") or SESSION_ID
        is_fork = "--fork-session" in program.get("argv", ()) and not find_option_value(program, "--session-id")
        self._session = kept.get("id") or (_FORKED_SESSION_ID if is_fork else named)
        self._resumes = bool(kept.get("is_old") or find_option_value(program, "--resume", "-r"))
        self._folder = kept.get("cwd", "/")
        self._first_number = kept.get("objects", 0)
        is_free = "--dangerously-skip-permissions" in program.get("argv", ())
        self._asked_mode = find_option_value(program, "--permission-mode") or ("bypassPermissions" if is_free else "")
        self._streams = "--include-partial-messages" in program.get("argv", ())
        self._is_alone = "final" in program
        self._obeys = program.get("obeys", False)
        self._wants_structure = bool(find_option_value(program, "--json-schema"))
        self.most_turns = 0 if program.get("serves") else _read_turn_limit(program)
        self._begun = False
        self._count = self._number = self._index = self._taken = 0
        self._messages: list[str] = []
        self._open: dict[str | None, tuple[str, int]] = {}
        self._tools: dict[str, dict[str, Any]] = {}
        self._servers = McpServers(program, self._make_uuid)
        self._hooks = ShellHooks(program, self._session, self._make_uuid)
        self._has_started = False
        self._results: dict[str, dict[str, Any]] = {}
        self._decisions: dict[str, dict[str, Any]] = {}
        self._blocked: dict[str, str] = {}
        self._denials: list[dict[str, Any]] = []
        self._subagents: dict[str, Any] = {}
        self._stop: str | None = None
        self._pieces: str | None = None
        self._running: list[str] = []
        self._is_aborting = self._has_result = False
        self._said = ""
        self._turns = 1
        self.final_text = ""
        """What is printed in place of the last text where the events are not; "": that text."""
        self.events: EventEncoders = {
            "begin": self.encode_run_opening,
            "nested": self.encode_subagent_text,
            "delta": self.encode_text_delta,
            "think": self.encode_thought,
            "tool": self.encode_tool_start,
            "tool_done": self.encode_tool_end,
            "event": self.encode_raw_event,
            "line": self.encode_line_beside_turns,
        }

    def encode_text(self, text: str, stop: str | None, now: int) -> bytes:
        """Give a block of text, or the rest of the one of which pieces were told; a stop reason closes its message."""
        events = self._encode_opening_events()
        if text or self._pieces is None:
            events += self._encode_text_piece(text, now)
        events += self._end_open_text(now)
        return self._lines.join([*events, *(self._encode_message_end(None, stop) if stop else [])])

    def encode_answer(self, text: str, now: int) -> bytes:
        """Give the last message and the result."""
        if self._wants_structure and parse_json_object(text.encode()) is not None:
            return self.encode_result({"text": text, "is_error": False, "usage": None}, now)
        events = self.encode_text(text, "end_turn", now)
        return events + self.encode_result({"text": None, "is_error": False, "usage": None}, now)

    def encode_result(self, fields: dict[str, Any], now: int) -> bytes:
        """Give the result; its text is the last one said if it has none of its own."""
        events = [
            *self._encode_opening_events(),
            *self._end_open_text(now),
            *self._encode_message_end(None, "end_turn"),
        ]
        self._has_result = True
        subtype, text = fields.get("subtype", "success"), fields["text"]
        if subtype != "success":
            details: dict[str, Any] = {"errors": [text or subtype]}
            reason = TERMINAL_REASONS_BY_SUBTYPE.get(subtype, subtype.removeprefix("error_"))
        elif fields["is_error"]:
            text, reason, self._stop = text or "API Error", "api_error", "stop_sequence"
            status = fields.get("http_status", 400)
            error, kind = _API_ERRORS_BY_STATUS.get(status, ("unknown", "invalid_request_error"))
            failure = {"api_error_status": status, "api_error_type": kind}
            events.append(self._encode_api_failure(text, now, {"error": error, **failure}))
            details = {**failure, "result": text}
        else:
            reason = "completed"
            structure, lines = self._give_structure(self._said if text is None else text, now)
            events += [*lines, *self._run_turn_end_hooks(now)]
            text = structure.pop("result", self._said if text is None else text)
            details = {"api_error_status": None, "result": text, **structure, "ttft_ms": 1}
        events.append(self._encode_result_line(details, reason, {**fields, "subtype": subtype}, now))
        return self._lines.join(events)

    def _give_structure(self, text: str, now: int) -> tuple[dict[str, Any], list[bytes]]:
        """Call the tool for the structure that the arguments ask for, or ask once more for it, as claude does.

        Give what the result has of it, and the lines about it.
        """
        if not self._wants_structure:
            return {}, []
        found = parse_json_object(text.encode())
        if found is None:
            request = {"role": "user", "content": [{"type": "text", "text": _STRUCTURE_REQUEST}]}
            asked = self._encode_message_line("user", request, None, now, {"isSynthetic": True})
            again = [*self._encode_text_piece(text, now), *self._end_open_text(now)]
            self._turns += 1
            return {}, [asked, *again, *self._encode_message_end(None, "end_turn")]
        number = f"toolu_{self._number + 1:02}0"
        self.final_text = encode_json_line(found).decode()
        block = {"type": "tool_use", "id": number, "name": "StructuredOutput", "input": found}
        deltas = [{"type": "input_json_delta", "partial_json": encode_spaced_json(found)}]
        calls = self._encode_whole_block(None, block, {"input": {}}, deltas, now)
        calls += self._encode_message_end(None, "tool_use")
        message = {
            "role": "user",
            "content": [{"tool_use_id": number, "type": "tool_result", "content": _STRUCTURE_OK}],
        }
        meta = {"id": number, "permission_decision": {"decision": "accept", "source": "config"}}
        more: dict[str, Any] = {"tool_use_result": _STRUCTURE_OK, "tool_result_meta": [meta]}
        self._turns += 1
        fields: dict[str, Any] = {"result": self.final_text, "structured_output": found}
        return fields, [*calls, self._encode_message_line("user", message, None, now, more)]

    @property
    def has_reached_turn_limit(self) -> bool:
        """Whether the model would have to be asked more often than the arguments allow."""
        return 0 < self.most_turns <= len(self._messages) and not self._running and self._stop == "tool_use"

    def encode_turn_limit(self, now: int) -> bytes:
        """Give the result of a run that would ask its model too often."""
        text = f"Reached maximum number of turns ({self.most_turns})"
        fields = {"text": text, "is_error": True, "usage": None, "subtype": "error_max_turns"}
        return self.encode_result(fields, now)

    def encode_run_opening(self, what: str, now: int) -> bytes:
        """Give init, if it is still to come."""
        events = self._encode_opening_events()
        return self._lines.join(events) if events else b""

    def encode_text_delta(self, text: str, now: int) -> bytes:
        """Give a piece of a text that the next text ends, or whatever else does."""
        return self._lines.join([*self._encode_opening_events(), *self._encode_text_piece(text, now)])

    def encode_subagent_text(self, fields: dict[str, Any], now: int) -> bytes:
        """Give a text of a sub-agent's; a stop reason closes its message."""
        parent, text, stop = fields["parent"], fields["text"], fields.get("stop")
        deltas = [{"type": "text_delta", "text": text}]
        events = [
            *self._encode_opening_events(),
            *self._encode_whole_block(parent, {**_EMPTY_TEXT_BLOCK, "text": text}, {"text": ""}, deltas, now),
        ]
        return self._lines.join([*events, *(self._encode_message_end(parent, stop) if stop else [])])

    def encode_thought(self, thought: str | dict[str, Any], now: int) -> bytes:
        """Give a thought, or a sub-agent's."""
        parent = None if isinstance(thought, str) else thought["parent"]
        text = thought if isinstance(thought, str) else thought["text"]
        block = {"type": "thinking", "thinking": text, "signature": "c2ln"}
        deltas = [{"type": "thinking_delta", "thinking": text}, {"type": "signature_delta", "signature": "c2ln"}]
        events = self._encode_whole_block(parent, block, {"thinking": "", "signature": ""}, deltas, now)
        return self._lines.join([*self._encode_opening_events(), *events])

    def encode_tool_start(self, fields: dict[str, Any], now: int) -> bytes:
        """Give the block that asks for a tool; it closes its message unless more are to come."""
        parent, number = fields.get("parent"), fields["id"]
        self._tools[number] = fields
        if parent is None:
            self._running.append(number)
        block = {"type": "tool_use", "id": number, "name": fields["name"], "input": fields["input"]}
        deltas = [{"type": "input_json_delta", "partial_json": encode_spaced_json(fields["input"])}]
        events = [*self._encode_opening_events(), *self._encode_whole_block(parent, block, {"input": {}}, deltas, now)]
        about = {"tool_name": fields["name"], "tool_input": fields["input"], "tool_use_id": number}
        lines, reason = self._run_event_hooks("PreToolUse", fields["name"], about)
        if reason is not None:
            self._blocked[number] = f"PreToolUse:{fields['name']} hook error: {reason}"
            self._decisions[number] = HOOK_DENIAL_FIELDS
            self._denials.append(about)
        events += [] if fields.get("more") else self._encode_message_end(parent, "tool_use")
        return self._lines.join([*events, *lines])

    def encode_tool_end(self, fields: dict[str, Any], now: int) -> bytes:
        """Give the result of a tool: that of a hook which denied it, the script's, or else its server's."""
        if fields["id"] in self._blocked:
            fields = {**fields, "output": "", "error": self._blocked[fields["id"]], "refused": False}
        elif not fields["output"] and fields["error"] is None:
            fields = {**fields, **self._results.get(fields["id"], {})}
        number, failed = fields["id"], fields["error"] is not None
        output = fields["error"] if failed else fields["output"]
        tool = self._tools.get(number, {})
        if number in self._running:
            self._running.remove(number)
        self._turns += tool.get("parent") is None
        more = self._describe_tool_outcome(number, output, failed=failed)
        if fields.get("refused"):
            more = {"tool_use_result": f"Error: {output}"}
        message = {"role": "user", "content": [build_tool_result_block(fields, tool.get("name", ""))]}
        hooks = [] if number in self._blocked else self._run_tool_end_hooks(fields, tool, more["tool_use_result"])
        line = self._encode_message_line("user", message, tool.get("parent"), now, more)
        return self._lines.join([*self._encode_opening_events(), *hooks, line])

    def _run_tool_end_hooks(self, fields: dict[str, Any], tool: dict[str, Any], response: Any) -> list[bytes]:
        """Run the hooks of a tool's end; their answers are for the model alone."""
        event = "PostToolUse" if fields["error"] is None else "PostToolUseFailure"
        end = (
            {"tool_response": response}
            if fields["error"] is None
            else {"error": fields["error"], "is_interrupt": False}
        )
        about = {"tool_name": tool.get("name", ""), "tool_input": tool.get("input", {}), "tool_use_id": fields["id"]}
        return self._run_event_hooks(event, tool.get("name", ""), {**about, **end, "duration_ms": 0})[0]

    def _run_turn_end_hooks(self, now: int) -> list[bytes]:
        """Run the hooks of the turn's end. As long as one blocks, claude says its last words again."""
        events: list[bytes] = []
        for blocks in range(MAX_STOP_HOOK_BLOCKS):
            fields = {"stop_hook_active": blocks > 0, "last_assistant_message": self._said}
            lines, reason = self._run_event_hooks("Stop", "", {**fields, "background_tasks": [], "session_crons": []})
            events += lines
            if reason is None:
                return events
            block = {"type": "text", "text": f"Stop hook feedback:\n{reason}"}
            more = {"isSynthetic": True}
            events.append(self._encode_message_line("user", {"role": "user", "content": [block]}, None, now, more))
            events += [] if blocks else [self._encode_line_with_ids(STOP_HOOK_NOTICE_LINE)]
            self._turns += 1
            if blocks + 1 < MAX_STOP_HOOK_BLOCKS:
                events += [*self._encode_text_piece(self._said, now), *self._end_open_text(now)]
                events += self._encode_message_end(None, "end_turn")
        self._said = ""
        return [*events, *map(self._encode_line_with_ids, BLOCK_LIMIT_LINES)]

    def _run_event_hooks(self, event: str, subject: str, facts: dict[str, Any]) -> tuple[list[bytes], str | None]:
        """Run the hooks of an event; give the lines about them, and the reason if one blocks."""
        about: dict[str, Any] = {"permission_mode": "default", "effort": {"level": "medium"}}
        about["prompt_id"] = f"00000000-0000-4000-9000-{self._taken:012}"
        lines, reason = self._hooks.run_event_hooks(event, subject, {**about, **facts})
        return [*map(self._encode_line_with_ids, lines)], reason

    def _run_session_start_hooks(self) -> list[bytes]:
        """Run the hooks of the session's start, once."""
        if self._has_started:
            return []
        self._has_started = True
        source = "resume" if self._resumes else "startup"
        lines, _ = self._hooks.run_event_hooks("SessionStart", source, {"source": source})
        return [*map(self._encode_line_with_ids, lines)]

    def begin_tool_call(self, number: str) -> ServerToolCall:
        """Call the tool of a server that this agent has started, unless a hook has denied it."""
        if number in self._blocked:
            return ServerToolCall(self._tools[number], None, 0)
        return self._servers.begin_tool_call(self._tools[number])

    def keep_tool_answer(self, number: str, call: ServerToolCall) -> bool:
        """Keep the answer of a server for the end of the tool; say whether it is a result."""
        assert call.answer is not None
        return self._keep_tool_result(number, *call.answer, is_refused=call.is_refused)

    def _keep_tool_result(
        self, number: str, result: dict[str, Any] | None, error: str, *, is_refused: bool = False
    ) -> bool:
        result_fields = (
            {"error": error, "refused": is_refused} if result is None else {"output": result.get("content") or []}
        )
        self._results[number] = result_fields
        return result is not None

    def _describe_tool_outcome(self, number: str, output: Any, *, failed: bool) -> dict[str, Any]:
        """Give what the end of a tool has beside its message."""
        if self._is_aborting:
            meta = {"id": number, "non_execution_kind": "user-rejected"}
            return {"tool_use_result": "User rejected tool use", "tool_result_meta": [meta]}
        fields = {
            "stdout": output,
            "stderr": "",
            "interrupted": False,
            "isImage": False,
            "noOutputExpected": not output,
        }
        shown = output if isinstance(output, list) else fields
        return {
            "tool_use_result": f"Error: {output}" if failed else shown,
            "tool_result_meta": [{"id": number, **self._describe_tool_permission(number)}],
        }

    def _describe_tool_permission(self, number: str) -> dict[str, Any]:
        """Say why a tool may run: the client allowed it, or was not asked."""
        tool = self._tools.get(number, {})
        return self._decisions.get(number) or describe_unasked_permission(tool.get("name", ""), tool.get("allowed_by"))

    def encode_raw_event(self, value: dict[str, Any], now: int) -> bytes:
        """Give an event as it stands; a part of a message only if the arguments ask for parts."""
        self._begun = self._begun or value.get("subtype") == "init"
        is_unwanted = self._obeys and not self._streams and value.get("type") == "stream_event"
        return b"" if is_unwanted else self._lines.join([encode_json_line(value)])

    def encode_line_beside_turns(self, value: dict[str, Any], now: int) -> bytes:
        """Give a line beside the turns; all but a sign of life name the session."""
        is_anonymous = value["type"] == "keep_alive"
        if value.get("subtype") == "permission_denied":
            value = self._deny_tool(value)
        return self._lines.join([encode_json_line(value) if is_anonymous else self._encode_line_with_ids(value)])

    def _deny_tool(self, value: dict[str, Any]) -> dict[str, Any]:
        """Count a tool that nobody can allow, the last one if none is named; give the line about it."""
        number = value.get("tool_use_id") or next(reversed(self._running), "")
        tool = self._tools.get(number, {"name": value["tool_name"], "input": {}})
        self._denials.append({"tool_name": tool["name"], "tool_use_id": number, "tool_input": tool["input"]})
        self._decisions[number] = _UNASKED_DENIAL
        return {**value, "tool_name": tool["name"], "tool_use_id": number}

    def _encode_line_with_ids(self, value: dict[str, Any]) -> bytes:
        """Give a line with the ids that it has from the session."""
        return encode_json_line({**value, "uuid": self._make_uuid(), "session_id": self._session})

    def encode_last_words(self, what: str, now: int) -> bytes:
        """Give what is still printed when a signal ends the process.

        The tools that run are killed. INT interrupts the turn, too. While the model is asked, the turn has no result.
        """
        if not self._is_turn_open() or not (self._running or what == "turn"):
            return b""
        if what == "turn":
            has_result = bool(self._running) or self._pieces is not None or None in self._open
            return self._lines.join(self._abort_turn(now, has_result=has_result))
        killed = {"output": "", "error": KILLED_TOOL_TEXT}
        return b"".join(self.encode_tool_end({"id": number, **killed}, now) for number in self._running[:])

    def _is_turn_open(self) -> bool:
        return not self._has_result

    def _abort_turn(
        self, now: int, rejections: dict[str, str] | None = None, *, has_result: bool = True
    ) -> list[bytes]:
        """End the tools that run, with these words, the open message and the turn."""
        tools, (before, behind) = self._running[:], self._abandon_open_message(now)
        events = [*self._encode_opening_events(), *before]
        self._is_aborting = True  # an interrupt leaves in the queue what is there
        for number in tools:
            ended = {"id": number, "output": "", "error": (rejections or {}).get(number, REJECTED_TOOL_TEXT)}
            events.append(self.encode_tool_end(ended, now).rstrip(b"\r\n"))
        self._is_aborting = False
        text = "[Request interrupted by user" + (" for tool use]" if tools else "]")
        block = {"type": "text", "text": text}
        events.append(self._encode_message_line("user", {"role": "user", "content": [block]}, None, now, {}))
        events += behind
        if not tools:
            self._stop = None
        self.code, self._turns = 1, self._turns + 1
        details = {"errors": [ABORTED_TURN_ERROR_PREFIX + ("tool_use" if tools else "null")]}
        fields = {"is_error": True, "subtype": "error_during_execution", "usage": None}
        reason = "aborted_tools" if tools else "aborted_streaming"
        return [*events, *([self._encode_result_line(details, reason, fields, now)] if has_result else [])]

    @property
    def permission_mode(self) -> str:
        """The mode that each line of a beginning names: that of the arguments."""
        return self._asked_mode or "default"

    def _encode_opening_events(self) -> list[bytes]:
        if self._begun:
            return []
        self._begun = True
        head = {"type": "system", "subtype": "init", "cwd": self._folder, "session_id": self._session}
        servers = self._servers.describe_servers(INIT_LINE_FIELDS["tools"])  # type: ignore[arg-type]  # a list of names
        started = self._run_session_start_hooks()
        own = {"model": self._model, "uuid": self._make_uuid(), "permissionMode": self.permission_mode, **servers}
        return [*started, encode_json_line({**head, **INIT_LINE_FIELDS, **own, **self._build_line_marks("init")})]

    def _build_line_marks(self, kind: str) -> dict[str, Any]:
        """Give what a line of that kind has beside its own: nothing where there is but one prompt."""
        return {}

    def _encode_text_piece(self, text: str, now: int) -> list[bytes]:
        events = (
            self._encode_block_start(None, _EMPTY_TEXT_BLOCK, now) if self._streams and self._pieces is None else []
        )
        self._pieces = (self._pieces or "") + text
        return [*events, *self._encode_block_deltas(None, [{"type": "text_delta", "text": text}])]

    def _end_open_text(self, now: int, more: dict[str, Any] | None = None) -> list[bytes]:
        """Give the whole line of the text of which pieces were told, and the end of its block if there are parts."""
        if self._pieces is None:
            return []
        events = [] if self._streams else self._encode_block_start(None, _EMPTY_TEXT_BLOCK, now)
        self._said, self._pieces = self._pieces, None
        return [*events, *self._encode_block_end(None, {**_EMPTY_TEXT_BLOCK, "text": self._said}, now, more)]

    def _abandon_open_message(self, now: int) -> tuple[list[bytes], list[bytes]]:
        """End the open message as an interrupt does; give the lines before and after the line about that."""
        text = self._end_open_text(now, {"aborted": True})
        if None not in self._open or not self._streams:
            self._open.pop(None, None)
            return text, []
        number, index = self._open.pop(None)
        delta = {
            "type": "message_delta",
            "context_management": None,
            "delta": EMPTY_STOP_FIELDS,
            "usage": ABANDONED_MESSAGE_USAGE,
        }
        left = {"abandoned_blocks": {"api_message_id": number, "from_block_index": index}}
        ends = [
            self._encode_stream_event(None, number, delta),
            self._encode_stream_event(None, number, {"type": "message_stop"}, {}, left),
        ]
        return text[:1], [*text[1:], *ends]

    def _encode_whole_block(
        self, parent: str | None, block: dict[str, Any], empty: dict[str, Any], deltas: list[dict[str, Any]], now: int
    ) -> list[bytes]:
        """Give one block, after a text that is not ended yet."""
        events = [] if parent else self._end_open_text(now)
        events += self._encode_block_start(parent, {**block, **empty}, now)
        return [*events, *self._encode_block_deltas(parent, deltas), *self._encode_block_end(parent, block, now)]

    def _encode_block_start(self, parent: str | None, block: dict[str, Any], now: int) -> list[bytes]:
        """Begin a block, and a message if none is open."""
        events = [] if parent in self._open else self._encode_message_start(parent)
        number, index = self._open[parent]
        begin = {"type": "content_block_start", "index": index, "content_block": block}
        return [*events, self._encode_stream_event(parent, number, begin)] if self._streams else events

    def _encode_block_deltas(self, parent: str | None, deltas: list[dict[str, Any]]) -> list[bytes]:
        if not self._streams:
            return []
        number, index = self._open[parent]
        parts = [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        return [self._encode_stream_event(parent, number, part) for part in parts]

    def _encode_block_end(
        self, parent: str | None, block: dict[str, Any], now: int, more: dict[str, Any] | None = None
    ) -> list[bytes]:
        """Give the whole line of a block, which comes before its end."""
        number, index = self._open[parent]
        self._open[parent] = (number, index + 1)
        message = {
            **self._build_message_head(number),
            "content": [block],
            **UNFINISHED_MESSAGE_FIELDS,
            "context_management": None,
        }
        about = self._servers.describe_server_tool(block) if block["type"] == "tool_use" else {}
        whole = self._encode_message_line("assistant", message, parent, now, {**(more or {}), **about})
        end = {"type": "content_block_stop", "index": index}
        return [whole, self._encode_stream_event(parent, number, end)] if self._streams else [whole]

    def _encode_message_start(self, parent: str | None) -> list[bytes]:
        self._number += 1
        number = f"msg_{self._number:02}"
        self._messages.append(number)
        self._open[parent] = (number, 0)
        events = self._announce_model_request() if parent is None else []
        if not self._streams:
            return events
        message = {**self._build_message_head(number), "content": [], **UNFINISHED_MESSAGE_FIELDS}
        start = {"type": "message_start", "message": message}
        return [
            *events,
            self._encode_stream_event(parent, number, start, {"ttft_ms": 1, "thinking_display": "updates"}),
        ]

    def _announce_model_request(self) -> list[bytes]:
        """Say that the model is asked for a message."""
        if not self._streams:
            return []
        asks = {"type": "system", "subtype": "status", "status": "requesting", "session_id": self._session}
        return [encode_json_line({**asks, "uuid": self._make_uuid(), **self._build_line_marks("status")})]

    def _encode_message_end(self, parent: str | None, stop: str | None) -> list[bytes]:
        if parent not in self._open:
            return []
        number, _ = self._open.pop(parent)
        self._stop = stop if parent is None else self._stop
        if not self._streams:
            return []
        delta = {"stop_reason": stop, "stop_sequence": None}
        parts = ({"type": "message_delta", "delta": delta, "usage": MESSAGE_TOKEN_USAGE}, {"type": "message_stop"})
        return [self._encode_stream_event(parent, number, part) for part in parts]

    def _build_message_head(self, number: str) -> dict[str, Any]:
        return {"id": number, "type": "message", "role": "assistant", "model": self._model}

    def _encode_stream_event(
        self,
        parent: str | None,
        number: str,
        part: dict[str, Any],
        more: dict[str, Any] | None = None,
        last: dict[str, Any] | None = None,
    ) -> bytes:
        head = {"type": "stream_event", "event": part, "session_id": self._session, "parent_tool_use_id": parent}
        mark = self._build_line_marks(part["type"])
        return encode_json_line(
            {**head, "uuid": self._make_uuid(), **(more or {}), "api_message_id": number, **mark, **(last or {})}
        )

    def _encode_message_line(
        self, kind: str, message: dict[str, Any], parent: str | None, now: int, more: dict[str, Any]
    ) -> bytes:
        head: dict[str, Any] = {"type": kind, "message": message, "parent_tool_use_id": parent}
        tail: dict[str, Any] = {}
        if parent is not None:
            asked = self._tools.get(parent, {}).get("input", {})
            head["agent_id"] = self._find_subagent_id(parent)
            tail = {"subagent_type": asked.get("subagent_type", "general-purpose")}
            tail["task_description"] = asked.get("description", parent)
        when = {"session_id": self._session, "uuid": self._make_uuid(), "timestamp": format_timestamp(now)}
        return encode_json_line({**head, **when, **tail, **more, **self._build_line_marks(kind)})

    def _find_subagent_id(self, parent: str) -> str:
        """Name the sub-agent that a tool has started."""
        return "a1c38911bda2f6eeb"

    def _encode_api_failure(self, text: str, now: int, failure: dict[str, Any]) -> bytes:
        """Give the message that claude writes itself when its model cannot be reached."""
        own = {"content": [{"type": "text", "text": text}], "context_management": None}
        message = {"diagnostics": None, "id": self._make_uuid(), **FAILED_MESSAGE_FIELDS, **own}
        more = {"error": failure["error"], "is_api_error_message": True}
        return self._encode_message_line("assistant", message, None, now, {**more, **failure})

    def _encode_result_line(self, details: dict[str, Any], reason: str, fields: dict[str, Any], now: int) -> bytes:
        count, milliseconds = len(self._messages), now // 1_000_000
        order = RESULT_TOKEN_USAGE if count else {"output_tokens_details": None, **RESULT_TOKEN_USAGE}
        usage = {**order, "input_tokens": 10 * count, "output_tokens": 5 * count, **(fields["usage"] or {})}
        used = {
            **MODEL_TOKEN_USAGE,
            "inputTokens": 10 * count,
            "outputTokens": 5 * count,
            "canonicalModel": self._model,
        }
        models = {self._model: used} if count else {}
        begun_messages = {"begun_message_ids": self._messages} if self._streams else {}
        times = {"ttft_stream_ms": 1, "time_to_request_ms": 1, "first_content_frame_ms": 1}
        return encode_json_line(
            {
                "duration_api_ms": milliseconds,
                "stop_reason": self._stop,
                "session_id": self._session,
                "total_cost_usd": 0,
                "usage": usage,
                "modelUsage": models,
                "permission_denials": self._denials,
                **({"terminal_reason": reason} if reason else {}),
                "fast_mode_state": "off",
                "fast_mode_disabled_reason": "sdk_opt_in_required",
                **self._build_line_marks("origin"),
                "subagent_stats": {**ZERO_SUBAGENT_COUNTS, **self._subagents},
                "safety_stops": 0,
                "is_error": fields["is_error"],
                "num_turns": self._turns,
                "subtype": fields["subtype"],
                **details,
                "type": "result",
                "duration_ms": milliseconds,
                "uuid": self._make_uuid(),
                **(begun_messages if "api_error_type" not in details else {}),
                **(times if "ttft_ms" in details else {}),
                **self._build_line_marks("result"),
                "queued_turn_count": 0,
                "result_index": self._index,
                **({} if self._is_alone else {"model_usage_since_last_result": models}),
            }
        )

    def _make_uuid(self) -> str:
        self._count += 1
        return f"{self._first_number:08}-0000-4000-8000-{self._count:012}"


_UNASKED_DENIAL: dict[str, Any] = {
    "non_execution_kind": "user-rejected",
    "permission_decision": {"decision": "reject", "source": "config"},
}
_API_ERRORS_BY_STATUS = {
    401: ("authentication_failed", "authentication_error"),
    429: ("rate_limit", "rate_limit_error"),
    500: ("server_error", "api_error"),
    529: ("server_error", "overloaded_error"),
}
"""What the message about an error calls it, and its type in the API."""
_EMPTY_TEXT_BLOCK = {"type": "text", "text": ""}
_STRUCTURE_OK = "Structured output provided successfully"
_STRUCTURE_REQUEST = (
    "[structured-output-enforce] You MUST call the StructuredOutput tool to complete this request. Call this tool now."
)


def _read_turn_limit(program: Program) -> int:
    """Give how often the arguments allow that the model is asked; 0: as often as it likes."""
    try:
        return int(float(find_option_value(program, "--max-turns")))
    except (ValueError, OverflowError):
        return 0


def format_timestamp(now: int) -> str:
    """Give the time of day at an instant."""
    return encode_timestamp(START_UNIX_MS + now // 1_000_000)
