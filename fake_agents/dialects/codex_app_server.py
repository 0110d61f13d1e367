"""The wire format of `codex app-server`, as the real CLI prints it: JSON-RPC without its header.

The handshake is the dialect's own: `initialize`, and threads that are started or resumed. A prompt is a `turn/start`.
It is answered when the script takes it in hand. A prompt in the same thread before that turn's end joins the turn, as a
`turn/steer` does; if the turn has not begun, its answer comes after the first one's. Each thread has its own turn, and
the events go to the turn that was taken last. An interrupt is answered as the turn ends. A compaction that the client
asks for is a whole turn at once.

A tool named `command_execution` runs a command, every other one is a tool of an MCP server.
"""

from __future__ import annotations

import sys

from pytest_agentproc.fake_agents.dialects.json_rpc import INVALID_REQUEST_CODE, JsonRpcEncoder
from pytest_agentproc.fake_agents.objects import encode_json_line
from pytest_agentproc.fake_agents.questions import ANSWER_ALLOW, ANSWER_DENY
from pytest_agentproc.fake_agents.requests import join_prompt_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pytest_agentproc.fake_agents.contracts import EventEncoders
    from pytest_agentproc.fake_agents.program import Program
    from pytest_agentproc.fake_agents.questions import ClientQuestion

SESSION_ID = "01a20072-e39f-7280-8216-1a538c0445ff"
_START_UNIX_MS = 1_795_303_873_000
_WORKING_DIRECTORY = "/"
_COMMAND_TOOL_NAME = "command_execution"
_INITIALIZE_RESULT = {
    "userAgent": "fake/0.171.0 (Linux; x86_64) unknown (fake; 1)",
    "codexHome": "/",
    "platformFamily": "unix",
    "platformOs": "linux",
}
_ANSWER_TOKEN_USAGE = {
    "totalTokens": 15,
    "inputTokens": 10,
    "cachedInputTokens": 0,
    "cacheWriteInputTokens": 0,
    "outputTokens": 5,
    "reasoningOutputTokens": 0,
}
_SETTINGS_METHOD = "thread/settings/update"
_TURN_METHODS = ("turn/start", "turn/steer", "turn/interrupt", "thread/compact/start", _SETTINGS_METHOD)
_METHODS_IN_THREAD = ("thread/resume", *_TURN_METHODS)
_FIRST_COMPACTION_TURN_NUMBER = 1_000_000
"""The number of the first turn that no prompt began."""
_EMPTY_LIST: dict[str, Any] = {"data": [], "nextCursor": None}
_ANSWERS: dict[str, dict[str, Any]] = {
    "account/read": {"account": None, "userId": None, "requiresOpenaiAuth": False, "workspaceRouting": None},
    "getAuthStatus": {"authMethod": None, "authToken": None, "requiresOpenaiAuth": False},
    "thread/list": {"data": [], "readStates": {}, "nextCursor": None, "backwardsCursor": None},
    "skills/list": {"data": []},
    "thread/loaded/list": _EMPTY_LIST,
    "mcpServerStatus/list": _EMPTY_LIST,
    "app/list": _EMPTY_LIST,
    "permissionProfile/list": {
        "data": [
            {"id": name, "description": None, "allowed": True}
            for name in (":read-only", ":workspace", ":danger-full-access")
        ],
        "nextCursor": None,
    },
}
"""What a CLI answers whose provider needs no login; it has no servers and no skills."""
_ANSWERS_WITHOUT_CHATGPT = {
    "account/rateLimits/read": "chatgpt authentication required to read rate limits",
    "account/usage/read": "chatgpt authentication required to read token usage",
}
_DECISION_BY_OPTION_KIND = {
    "allow_once": "accept",
    "allow_always": "acceptForSession",
    "reject_once": "decline",
    "reject_always": "cancel",
}
_COLLABORATION_MODES = ("plan", "code", "custom", "default", "execute", "pair_programming")
_ACCEPTING_DECISIONS = ("accept", "acceptForSession")


class Encoder(JsonRpcEncoder):
    """Encode a conversation: the items of a turn, and its end."""

    header: dict[str, str] = {}  # noqa: RUF012  # a constant; `typing` is not loaded in a fake

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self._model = program.get("model") or "m1"
        self._known = program.get("knows")
        self._lacked = program.get("lacks")
        self._threads: list[str] = []
        self._kept: dict[str, Any] = program.get("session") or {}
        self._paths: dict[str, str] = self._kept.get("paths", {})
        """The session file of each thread that is kept on disk."""
        self._earlier_turns = 0
        """The turns of the first thread before this start: no new turn has the id of one."""
        self._is_greeted = self._is_experimental = False
        self._settings: dict[str, dict[str, str]] = {}
        """The model and the collaboration mode of each thread that has other ones than a new thread."""
        self._open: dict[str, str] = {}
        """The turn of each thread that has one: it is under way, or waits for the script."""
        self._waiting: dict[str, list[tuple[Any, str, str]]] = {}
        """The prompts that join each turn which waits for the script: request, method and text."""
        self._where: list[str] = []
        """The thread of each prompt."""
        self._hand = SESSION_ID
        self._turn = _format_turn_id(0)
        self._begun = self._requests = self._count = 0
        self._is_due = False
        """Whether the model has answered since the last report of its usage."""
        self._final: dict[str, Any] | None = None
        self._said: dict[str, Any] | None = None
        """The message that comes in pieces."""
        self._tools: dict[str, dict[str, Any]] = {}
        self._declined: set[str] = set()
        self._interrupts: list[tuple[str, Any]] = []
        """The turns that are to be interrupted, each with the id of the request."""
        self._items_began: dict[str, int] = {}
        self.events: EventEncoders = {
            "delta": self.encode_text_delta,
            "think": self.encode_thought,
            "plan": self.encode_plan,
            "tool": self.encode_tool_start,
            "tool_done": self.encode_tool_end,
            "event": self.encode_raw_event,
        }

    # Requests of the client.

    def _encode_parse_error(self) -> list[bytes]:
        return []

    def _handle_method_request(
        self, number: Any, method: str, params: dict[str, Any], now: int
    ) -> tuple[list[bytes], str]:
        if method == "initialize" and not self._is_greeted:
            self._is_greeted = True
            abilities = params.get("capabilities")
            self._is_experimental = isinstance(abilities, dict) and abilities.get("experimentalApi") is True
            return [self._encode_response(number, _INITIALIZE_RESULT)], "handshake"
        if method == "initialize" or not self._is_greeted:
            return [
                self._encode_error_response(
                    number, INVALID_REQUEST_CODE, "Already initialized" if self._is_greeted else "Not initialized"
                )
            ], ""
        thread = params.get("threadId")
        if method not in _TURN_METHODS or thread not in self._threads:
            return self._answer_client_request(number, method, params, now), ""
        if method == "turn/interrupt":
            return self._handle_interrupt(number, self._open.get(thread), str(params.get("turnId")))
        return self._handle_thread_request(number, method, params, now), ""

    def _handle_thread_request(self, number: Any, method: str, params: dict[str, Any], now: int) -> list[bytes]:
        if method == "thread/compact/start":
            return self._handle_compaction(number, params["threadId"], now)
        refusal = "" if method == "turn/steer" else self._find_refused_setting(method, params)
        if refusal:
            return [self._encode_error_response(number, INVALID_REQUEST_CODE, refusal)]
        if method == _SETTINGS_METHOD:
            return [self._encode_response(number, {}), *self._change_settings(params, now)]
        return self._handle_prompt(number, method, params, now)

    def _handle_interrupt(self, number: Any, turn: str | None, expected: str) -> tuple[list[bytes], str]:
        """Keep an interrupt until the turn ends; an empty id stands for the thread's turn, or for none."""
        if turn is None and not expected:
            return [self._encode_response(number, {})], ""
        if expected not in ("", turn):
            text = f"expected active turn id {expected} but found {turn}" if turn else "no active turn to interrupt"
            return [self._encode_error_response(number, INVALID_REQUEST_CODE, text)], ""
        self._interrupts.append((str(turn), number))
        return [], self._note_turn_cancel()

    def _handle_prompt(self, number: Any, method: str, params: dict[str, Any], now: int) -> list[bytes]:
        """Keep a prompt for the script; while a turn is under way the real CLI takes it into that turn."""
        thread, text = params["threadId"], join_prompt_text(params.get("input"))
        changed = self._change_settings(params, now) if method == "turn/start" else []
        turn, expected = self._open.get(thread), params.get("expectedTurnId")
        if method == "turn/steer" and turn != expected:
            message = f"expected active turn id `{expected}` but found `{turn}`" if turn else "no active turn to steer"
            return [self._encode_error_response(number, INVALID_REQUEST_CODE, message)]
        if turn is None:
            turn = _format_turn_id(self._earlier_turns + len(self.prompts) + 1)
            if not self._open:
                self._hand, self._turn = thread, turn
            self._open[thread] = turn
            self._where.append(thread)
            self.prompts.append((number, text))
            self._waiting[turn] = []
            return changed
        if turn in self._waiting:
            self._waiting[turn].append((number, method, text))
            return changed
        hand, self._hand, self._turn = (self._hand, self._turn), thread, turn
        told_now = [*changed, self._encode_prompt_acceptance(number, method), *self._encode_prompt_item(text, now)]
        self._hand, self._turn = hand
        return told_now

    def _find_refused_setting(self, method: str, params: dict[str, Any]) -> str:
        """Say why the real CLI refuses a model or a collaboration mode; "" if it takes them."""
        model, mode = params.get("model"), params.get("collaborationMode")
        if model is not None and not isinstance(model, str):
            shown = f"integer `{model}`" if isinstance(model, int) else type(model).__name__
            return f"Invalid request: invalid type: {shown}, expected a string"
        if mode is not None:
            name = mode.get("mode") if isinstance(mode, dict) else mode
            if name not in _COLLABORATION_MODES:
                known = ", ".join(f"`{word}`" for word in _COLLABORATION_MODES)
                return f"Invalid request: unknown variant `{name}`, expected one of {known}"
        if self._is_experimental or (method == "turn/start" and mode is None):
            return ""
        what = method if method == _SETTINGS_METHOD else f"{method}.collaborationMode"
        return f"{what} requires experimentalApi capability"

    def _change_settings(self, params: dict[str, Any], now: int) -> list[bytes]:
        """Take the model and the mode of a request. A client with the experimental part reads what has changed."""
        thread, mode = params["threadId"], params.get("collaborationMode")
        before = self._settings.get(thread, {"model": self._model, "mode": "default"})
        changed = dict(before)
        if isinstance(mode, dict):
            settings = mode.get("settings")
            model = settings.get("model") if isinstance(settings, dict) else None
            changed = {"model": str(model or before["model"]), "mode": str(mode["mode"])}
        elif isinstance(params.get("model"), str):
            changed["model"] = params["model"]
        self._settings[thread] = changed
        if changed == before or not self._is_experimental:
            return []
        return [
            self._encode_dated_notification(
                "thread/settings/updated", {"threadId": thread, "threadSettings": _describe_new_settings(changed)}, now
            )
        ]

    def _encode_prompt_acceptance(self, number: Any, method: str) -> bytes:
        """Give the answer to a prompt, or to a steer, of the turn in hand."""
        is_steer = method == "turn/steer"
        answer = {"turnId": self._turn} if is_steer else {"turn": self._describe_turn("inProgress")}
        return self._encode_response(number, answer)

    def _handle_compaction(self, number: Any, thread: str, now: int) -> list[bytes]:
        """Give the answer, and the turn in which the thread is compacted; it interrupts the thread's turn in hand."""
        ended = self._end_turn("interrupted", now) if self._open.get(thread) == self._turn else []
        item = {"type": "contextCompaction", "id": self._make_item_id("compaction")}
        hand = self._hand, self._turn, self._begun, self._final
        self._hand, self._turn, self._begun, self._final = (
            thread,
            _format_turn_id(_FIRST_COMPACTION_TURN_NUMBER + self._count),
            now,
            None,
        )
        events = [self._encode_item_event(kind, item, now) for kind in ("started", "completed")]
        lines = [
            self._encode_response(number, {}),
            *ended,
            *self._encode_turn_start(now),
            *events,
            *self._encode_turn_end("completed", now),
        ]
        self._hand, self._turn, self._begun, self._final = hand
        return lines

    def _answer_client_request(self, number: Any, method: str, params: dict[str, Any], now: int) -> list[bytes]:
        name = params.get("threadId")
        if method == "thread/start" or (method == "thread/resume" and self._is_known_thread(name)):
            thread = str(name) if name else self._make_thread_id()
            if self._kept and params.get("ephemeral") is not True and thread not in self._paths:
                self._paths[thread] = self._find_module_of_files().build_path(self._kept, thread)
            self._threads.append(thread)
            self._hand = self._hand if self._open else thread
            thread_fields = self._describe_thread(thread, now)
            if not self.prompts:
                self._earlier_turns = max(self._earlier_turns, len(thread_fields["turns"]))
            started = (
                [self._encode_dated_notification("thread/started", {"thread": thread_fields}, now)]
                if method == "thread/start"
                else []
            )
            return [
                self._encode_response(number, {"thread": thread_fields, **self._describe_thread_settings()}),
                *started,
            ]
        if name is not None and name not in self._threads:
            what = "no rollout found for thread id" if method == "thread/resume" else "thread not found:"
            return [self._encode_error_response(number, INVALID_REQUEST_CODE, f"{what} {name}")]
        if name is None and method in _METHODS_IN_THREAD:
            return [
                self._encode_error_response(number, INVALID_REQUEST_CODE, "Invalid request: missing field `threadId`")
            ]
        answer = self._describe_models() if method == "model/list" else _ANSWERS.get(method)
        if answer is not None:
            return [self._encode_response(number, answer)]
        error = _ANSWERS_WITHOUT_CHATGPT.get(method, f"Invalid request: unknown variant `{method}`")
        return [self._encode_error_response(number, INVALID_REQUEST_CODE, error)]

    def _is_known_thread(self, name: Any) -> bool:
        own = () if self._kept else (SESSION_ID,)
        return name != self._lacked and name in (*own, self._known, *self._threads, *self._paths)

    def _make_thread_id(self) -> str:
        """Give the first id that no thread has."""
        count = len(self._threads)
        while (thread := f"{SESSION_ID[:-12]}{count:012}" if count else SESSION_ID) in self._paths:
            count += 1
        return thread

    def _find_module_of_files(self) -> Any:
        return sys.modules[self._kept["module"]]

    def _describe_models(self) -> dict[str, Any]:
        """Give the one model that there is."""
        none = ("upgrade", "upgradeInfo", "availabilityNux", "modelSpecialty", "defaultServiceTier")
        efforts = [{"reasoningEffort": effort, "description": effort} for effort in ("low", "medium", "high")]
        model = {
            **dict.fromkeys(("id", "model", "displayName", "description"), self._model),
            **dict.fromkeys((*none, "availableAccessPrograms")),
            "hidden": False,
            "supportedReasoningEfforts": efforts,
            "defaultReasoningEffort": "medium",
            "inputModalities": ["text", "image"],
            "supportsPersonality": False,
            "multiAgentVersion": "v2",
            "additionalSpeedTiers": ["fast"],
            "serviceTiers": [{"id": "priority", "name": "Fast", "description": "2x speed, increased usage"}],
            "isDefault": True,
        }
        return {"data": [model], "nextCursor": None}

    def _describe_thread_settings(self) -> dict[str, Any]:
        return {
            "model": self._model,
            "modelProvider": "fake",
            "serviceTier": None,
            "disabledPluginIds": [],
            "cwd": _WORKING_DIRECTORY,
            "runtimeWorkspaceRoots": [_WORKING_DIRECTORY],
            "instructionSources": [],
            "approvalPolicy": "on-request",
            "approvalsReviewer": "user",
            "sandbox": {"type": "readOnly", "networkAccess": False},
            "activePermissionProfile": {"id": ":read-only", "extends": None},
            "reasoningEffort": None,
            "multiAgentMode": "explicitRequestOnly",
        }

    def _describe_thread(self, thread: str, now: int) -> dict[str, Any]:
        place = {"environmentId": "local", "cwd": _WORKING_DIRECTORY, "runtimeWorkspaceRoots": [_WORKING_DIRECTORY]}
        none = ("section", "sectionEnteredAt", "projectId")
        last = ("threadSource", "agentNickname", "agentRole", "gitInfo", "name", "daybreakEnabled")
        return {
            "id": thread,
            "environments": [place],
            "extra": None,
            "sessionId": thread,
            "forkedFromId": None,
            "attachedToThreadId": None,
            "parentThreadId": None,
            "preview": "",
            "ephemeral": False,
            **dict.fromkeys(none),
            "historyMode": "paginated",
            "modelProvider": "fake",
            "model": self._model,
            "reasoningEffort": None,
            **dict.fromkeys(("createdAt", "updatedAt", "recencyAt"), _convert_to_unix_seconds(now)),
            "status": {"type": "idle"},
            "path": self._paths.get(thread, f"/rollout-{thread}.jsonl"),
            "cwd": _WORKING_DIRECTORY,
            "cliVersion": "0.171.0",
            "originator": "fake",
            "source": "vscode",
            "canAcceptDirectInput": True,
            **dict.fromkeys(last),
            "turns": self._find_module_of_files().read_turns(self._paths[thread]) if thread in self._paths else [],
        }

    # Turns.

    def begin_prompt_turn(self, number: int, now: int) -> bytes:
        """Answer the prompt with its turn, and begin the turn."""
        request, text = self.prompts[number - 1]
        self._hand, self._begun, self._final = self._where[number - 1], now, None
        self._turn = _format_turn_id(self._earlier_turns + number)
        self._open[self._hand] = self._turn
        joined = [(request, "turn/start", text), *self._waiting.pop(self._turn, ())]
        accepted = [self._encode_prompt_acceptance(request, method) for request, method, _ in joined]
        items = [item for _, _, text in joined for item in self._encode_prompt_item(text, now)]
        return self._join_lines([*accepted, *self._encode_turn_start(now), *items])

    def _encode_turn_start(self, now: int) -> list[bytes]:
        started = self._add_thread_id({"turn": self._describe_turn("inProgress", now)})
        return [
            self._encode_thread_status("active", now),
            self._encode_dated_notification("turn/started", started, now),
        ]

    def end_cancelled_turn(self, now: int) -> bytes:
        """Answer the interrupt, and end the turn; a tool that runs gets no end."""
        if not self._is_cancelled:
            return b""
        self._tools.clear()
        return self._join_lines([*self._encode_token_usage(now), *self._end_turn("interrupted", now)])

    def encode_text(self, text: str, stop: str | None, now: int) -> bytes:
        """Give a message, or the rest of the one that comes in pieces."""
        return self._join_lines(self._encode_agent_message(text, now))

    def encode_answer(self, text: str, now: int) -> bytes:
        """Give the last message and the turn's end."""
        return self.encode_result({"text": text, "is_error": False, "usage": None}, now)

    def encode_result(self, fields: dict[str, Any], now: int) -> bytes:
        """Give the turn's end, after a message if there is a text; an error's text comes before the end, and in it."""
        text, usage = fields["text"], fields["usage"]
        if fields["is_error"]:
            error = {"message": text or "error", "codexErrorInfo": "other"}
            error = {**error, "additionalDetails": None, "misalignment": None}
            details = self._add_turn_id({"error": error, "willRetry": False})
            events = [
                self._encode_thread_status("systemError", now),
                self._encode_dated_notification("error", details, now),
            ]
            return self._join_lines([*events, *self._end_turn("failed", now, error)])
        lines = [] if text is None and self._said is None else self._encode_agent_message(text or "", now)
        self._is_due = self._is_due or bool(usage)
        return self._join_lines([*lines, *self._encode_token_usage(now, usage), *self._end_turn("completed", now)])

    def _end_turn(self, status: str, now: int, error: dict[str, Any] | None = None) -> list[bytes]:
        answers = [self._encode_response(number, {}) for turn, number in self._interrupts if turn == self._turn]
        self._interrupts = [(turn, number) for turn, number in self._interrupts if turn != self._turn]
        self._is_cancelled, self._said = bool(self._interrupts), None
        self._open.pop(self._hand, None)
        return [*answers, *self._encode_turn_end(status, now, error)]

    def _encode_turn_end(self, status: str, now: int, error: dict[str, Any] | None = None) -> list[bytes]:
        fields = self._add_thread_id({"turn": self._describe_turn(status, now, error)})
        idle = [] if error else [self._encode_thread_status("idle", now)]
        return [*idle, self._encode_dated_notification("turn/completed", fields, now)]

    def _describe_turn(
        self, status: str, now: int | None = None, error: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        is_over, final = status != "inProgress", self._final if status == "completed" else None
        return {
            "id": self._turn,
            "rootTurnId": self._turn,
            "items": [final] if final else [],
            "itemsView": "summary" if final else "notLoaded",
            "status": status,
            "error": error,
            "startedAt": None if now is None else _convert_to_unix_seconds(self._begun),
            "completedAt": _convert_to_unix_seconds(now) if is_over and now is not None else None,
            "durationMs": (now - self._begun) // 1_000_000 if is_over and now is not None else None,
        }

    def _encode_token_usage(self, now: int, usage: dict[str, Any] | None = None) -> list[bytes]:
        """Tell what the model used, once for each of its answers."""
        if not self._is_due:
            return []
        self._is_due = False
        self._requests += 1
        total = {name: count * self._requests for name, count in _ANSWER_TOKEN_USAGE.items()} | (usage or {})
        fields = {"tokenUsage": {"total": total, "last": _ANSWER_TOKEN_USAGE, "modelContextWindow": 258400}}
        return [self._encode_dated_notification("thread/tokenUsage/updated", self._add_turn_id(fields), now)]

    # Items.

    def encode_text_delta(self, text: str, now: int) -> bytes:
        """Give a piece of the message that the next text ends."""
        return self._join_lines(self._encode_text_piece(text, now))

    def _encode_text_piece(self, text: str, now: int) -> list[bytes]:
        start_lines = []
        if self._said is None:
            self._said = self._build_message_item("")
            start_lines = [self._encode_item_event("started", self._said, now)]
        self._said = {**self._said, "text": self._said["text"] + text}
        fields = self._add_turn_id({"itemId": self._said["id"], "delta": text})
        return [*start_lines, self._encode_dated_notification("item/agentMessage/delta", fields, now)]

    def _encode_agent_message(self, text: str, now: int) -> list[bytes]:
        self._is_due = True
        if self._said is None:
            item = self._build_message_item(text)
            events = [self._encode_item_event("started", item, now)]
        else:
            events = self._encode_text_piece(text, now) if text else []
            item, self._said = self._said, None
        self._final = self._date_item(item, now, is_over=True)
        return [*events, self._encode_item_event("completed", item, now)]

    def _build_message_item(self, text: str) -> dict[str, Any]:
        item = {"type": "agentMessage", "moderation": None, "id": self._make_item_id("msg"), "text": text}
        return item | dict.fromkeys(("phase", "memoryCitation", "delivery", "questions"))

    def encode_thought(self, text: str, now: int) -> bytes:
        """Give a summary of what the model thinks."""
        item = {"type": "reasoning", "id": self._make_item_id("rs"), "summary": [], "content": []}
        delta = self._add_turn_id({"itemId": item["id"], "delta": text, "summaryIndex": 0})
        notification = self._encode_dated_notification("item/reasoning/summaryTextDelta", delta, now)
        end = self._encode_item_event("completed", {**item, "summary": [text]}, now)
        return self._join_lines([self._encode_item_event("started", item, now), notification, end])

    def encode_plan(self, entries: list[str], now: int) -> bytes:
        """Give the whole list of what is to be done."""
        steps = [{"step": entry, "status": "pending"} for entry in entries]
        return self._join_lines(
            [
                self._encode_dated_notification(
                    "turn/plan/updated", self._add_turn_id({"explanation": None, "plan": steps}), now
                )
            ]
        )

    def encode_tool_start(self, fields: dict[str, Any], now: int) -> bytes:
        """Give the start of a tool."""
        self._is_due = True
        item: dict[str, Any]
        if fields["name"] == _COMMAND_TOOL_NAME:
            command = str(fields["input"].get("command", ""))
            item = {"type": "commandExecution", "id": fields["id"], "pluginId": None, "scriptPath": None}
            item |= {"command": command, "cwd": _WORKING_DIRECTORY, "processId": "1", "source": "unifiedExecStartup"}
            item |= {"status": "inProgress", "commandActions": [{"type": "unknown", "command": command}]}
            item |= dict.fromkeys(("aggregatedOutput", "exitCode", "durationMs"))
        else:
            item = {"type": "mcpToolCall", "id": fields["id"], "server": "fake", "tool": fields["name"]}
            item |= {"status": "inProgress", "arguments": fields["input"]}
            item |= dict.fromkeys(("result", "error", "durationMs"))
        self._tools[fields["id"]] = item
        return self._join_lines([self._encode_item_event("started", item, now)])

    def encode_tool_end(self, fields: dict[str, Any], now: int) -> bytes:
        """Give the end of a tool; a command that was denied is declined."""
        item, error = self._tools.pop(fields["id"]), fields["error"]
        status = "failed" if error is not None else "completed"
        if fields["id"] in self._declined and error is not None and item["type"] == "commandExecution":
            end: dict[str, Any] = {"status": "declined", "processId": None}
        elif item["type"] == "commandExecution":
            output = fields["output"] if error is None else error
            end = {"status": status, "aggregatedOutput": output or None, "exitCode": int(error is not None)}
            end["durationMs"] = 0
        elif error is None:
            content = [{"type": "text", "text": fields["output"]}]
            end = {"status": status, "durationMs": 0, "result": {"content": content, "structuredContent": None}}
        else:
            end = {"status": status, "durationMs": 0, "error": {"message": error}}
        usage = [] if self._tools else self._encode_token_usage(now)
        return self._join_lines([self._encode_item_event("completed", {**item, **end}, now), *usage])

    def encode_raw_event(self, value: dict[str, Any], now: int) -> bytes:
        """Give a message as it stands, but for the id of a prompt; an item and an error get the ids of their turn.

        An error that is not tried again is the end of its turn, so a later prompt joins that turn no more.
        """
        if str(value.get("id")).startswith("prompt "):
            self._open.pop(self._hand, None)
        kind = str(value.get("method"))
        if kind.startswith(("item/", "error")):
            at = {f"{kind[5:]}AtMs": _convert_to_unix_ms(now)} if kind in ("item/started", "item/completed") else {}
            value = {**value, "params": self._add_turn_id({**at, **(value.get("params") or {})})}
        if kind == "error" and value["params"].get("willRetry") is False:
            self._open.pop(self._hand, None)
        return self._join_lines([self._encode_script_message(value)])

    # Requests of the agent.

    def ask_client(self, fields: dict[str, Any], now: int) -> tuple[ClientQuestion, bytes]:
        """Open a question; give the request for an approval of a command, or any other."""
        own, name = len(self.questions.asked), fields["name"]
        key = own if fields["id"] is None else fields["id"]
        if fields["kind"] == "request":
            question = self.questions.open_question(key, fields)
            return question, self._join_lines([self._encode_request(key, name, self._add_turn_id(fields["params"]))])
        called = (number for number, item in self._tools.items() if name in (item.get("command"), item.get("tool")))
        tool = next(called, f"call_{own}")
        about = {
            "itemId": tool,
            "startedAtMs": _convert_to_unix_ms(now),
            "environmentId": "local",
            "command": name,
            "cwd": _WORKING_DIRECTORY,
        }
        rule = name.split()
        about |= {"commandActions": [{"type": "unknown", "command": name}], "proposedExecpolicyAmendment": rule}
        about["availableDecisions"] = [_DECISION_BY_OPTION_KIND[kind] for kind in fields.get("offers", ())] or [
            "accept",
            {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": rule}},
            "cancel",
        ]
        asked = self._encode_request(
            key, "item/commandExecution/requestApproval", {"kind": "command", **self._add_turn_id(about)}
        )
        waiting = self._encode_thread_status("active", now, "waitingOnApproval")
        return self.questions.open_question(key, fields, tool), self._join_lines([waiting, asked])

    def _handle_client_answer(self, answer: dict[str, Any], now: int) -> list[bytes]:
        question = self.questions.find_open_question(answer.get("id"))
        super()._handle_client_answer(answer, now)
        if question is None or not question.answer:
            return []
        notification = self._encode_dated_notification(
            "serverRequest/resolved", self._add_thread_id({"requestId": question.key}), now
        )
        return (
            [notification]
            if question.fields["kind"] == "request"
            else [notification, self._encode_thread_status("active", now)]
        )

    def _settle_permission_question(self, question: ClientQuestion, result: dict[str, Any]) -> None:
        decision = result.get("decision")
        if decision == "cancel":
            self._dismiss_question(question)
        else:
            is_allowed = decision in _ACCEPTING_DECISIONS or isinstance(decision, dict)
            self.questions.settle_question(question, ANSWER_ALLOW if is_allowed else ANSWER_DENY)
        if question.answer != ANSWER_ALLOW:
            self._declined.add(question.tool)

    # Parts of messages.

    def _encode_prompt_item(self, text: str, now: int) -> list[bytes]:
        """Give the item of a prompt."""
        content = [{"type": "text", "text": text, "text_elements": []}]
        item = {"type": "userMessage", "id": self._make_item_id("user"), "clientId": None, "content": content}
        return [self._encode_item_event(kind, item, now) for kind in ("started", "completed")]

    def _encode_item_event(self, kind: str, item: dict[str, Any], now: int) -> bytes:
        is_over = kind == "completed"
        counted = {"contentTokenCount": None} if is_over else {}
        at = {**counted, f"{kind}AtMs": _convert_to_unix_ms(now)}
        dated = self._date_item(item, now, is_over=is_over)
        return self._encode_dated_notification(f"item/{kind}", {"item": dated, **self._add_turn_id({}), **at}, now)

    def _date_item(self, item: dict[str, Any], now: int, *, is_over: bool) -> dict[str, Any]:
        """Say when an item began and ended."""
        began = self._items_began.setdefault(item["id"], now)
        ended = _convert_to_unix_ms(now) if is_over else None
        return {**item, "startedAtMs": _convert_to_unix_ms(began), "completedAtMs": ended}

    def _encode_thread_status(self, kind: str, now: int, *flags: str) -> bytes:
        status = {"type": kind, **({"activeFlags": list(flags)} if kind == "active" else {})}
        return self._encode_dated_notification("thread/status/changed", self._add_thread_id({"status": status}), now)

    def _encode_dated_notification(self, method: str, params: dict[str, Any], now: int) -> bytes:
        return encode_json_line({"method": method, "params": params, "emittedAtMs": _convert_to_unix_ms(now)})

    def _add_thread_id(self, fields: dict[str, Any]) -> dict[str, Any]:
        return {"threadId": self._hand, **fields}

    def _add_turn_id(self, fields: dict[str, Any]) -> dict[str, Any]:
        return {**self._add_thread_id({}), "turnId": self._turn, **fields}

    def _make_item_id(self, kind: str) -> str:
        self._count += 1
        return f"{kind}_{self._count}"


def _describe_new_settings(changed: dict[str, str]) -> dict[str, Any]:
    model, mode = changed["model"], changed["mode"]
    text = "# Plan Mode" if mode == "plan" else None
    place = {"environmentId": "local", "cwd": _WORKING_DIRECTORY, "runtimeWorkspaceRoots": [_WORKING_DIRECTORY]}
    return {
        "disabledPluginIds": [],
        "cwd": _WORKING_DIRECTORY,
        "environments": [place],
        "approvalPolicy": "on-request",
        "approvalsReviewer": "user",
        "sandboxPolicy": {"type": "readOnly", "networkAccess": False},
        "activePermissionProfile": {"id": ":read-only", "extends": None},
        "model": model,
        "modelProvider": "fake",
        **dict.fromkeys(("serviceTier", "effort", "summary")),
        "collaborationMode": {
            "mode": mode,
            "settings": {"model": model, "reasoning_effort": None, "developer_instructions": text},
        },
        "multiAgentMode": "explicitRequestOnly",
        "personality": None,
    }


def _format_turn_id(number: int) -> str:
    return f"01a20072-0000-7000-8000-{number:012}"


def _convert_to_unix_ms(now: int) -> int:
    return _START_UNIX_MS + now // 1_000_000


def _convert_to_unix_seconds(now: int) -> int:
    return _convert_to_unix_ms(now) // 1000
