"""The session files of codex: `sessions/YEAR/MONTH/DAY/rollout-TIME-ID.jsonl` below its home. Knows no other CLI.

The file begins with the first turn. A message, a call and its output are lines for the model (`response_item`), and
most of them are lines for people, too (`event_msg`). All lines are numbered.
"""

from __future__ import annotations

from pytest_agentproc.fake_agents.objects import encode_spaced_json, encode_timestamp
from pytest_agentproc.fake_agents.session_files.disk import list_files, read_objects

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from pytest_agentproc.fake_agents.session_files.disk import SessionFacts

_START_UNIX_MS = 1_795_303_873_000
_ID_LENGTH, _DEPTH = 36, 3
_MILLISECONDS = 1000
_MODEL = "m1"
_PROVIDER = "fake"
_READS_ALL: dict[str, Any] = {"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"}
_READ_ONLY: dict[str, Any] = {
    "approval_policy": "never",
    "approvals_reviewer": "user",
    "permission_profile": {
        "type": "managed",
        "file_system": {"type": "restricted", "entries": [_READS_ALL]},
        "network": "restricted",
    },
    "active_permission_profile": {"id": ":read-only"},
}
_COLLABORATION: dict[str, Any] = {
    "mode": "default",
    "settings": {"model": _MODEL, "reasoning_effort": None, "developer_instructions": None},
}
_MODEL_CONTEXT_WINDOW = 258_400
_RATE_LIMITS = {
    "limit_id": "codex",
    **dict.fromkeys(("limit_name", "primary", "secondary", "credits", "individual_limit", "spend_control_reached")),
    "plan_type": None,
    "rate_limit_reached_type": None,
}


def find_folder(read_variable: Callable[[str], str]) -> str:
    """Give the folder of all sessions."""
    home = read_variable("HOME")
    own = read_variable("CODEX_HOME") or (home and f"{home}/.codex")
    return own and f"{own}/sessions"


class SessionFolder:
    """The sessions of all projects, by day."""

    def __init__(self, path: str, cwd: str) -> None:
        self._path, self._cwd = path, cwd

    def list_sessions(self) -> dict[str, str]:
        """Give the files of all days."""
        return {path.removesuffix(".jsonl")[-_ID_LENGTH:]: path for path in list_files(self._path, _DEPTH)}

    def may_be_latest(self, path: str) -> bool:
        """Say whether a session was begun in this folder."""
        return any(line.get("payload", {}).get("cwd") == self._cwd for line in read_objects(path)[:1])

    def build_path(self, session: str) -> str:
        """Give the file of a session that begins at the start of the fake."""
        instant = encode_timestamp(_START_UNIX_MS).partition(".")[0]
        day = instant.partition("T")[0].replace("-", "/")
        return f"{self._path}/{day}/rollout-{instant.replace(':', '-')}-{session}.jsonl"


def build_path(facts: SessionFacts, session: str) -> str:
    """Give the file of a session beside that of the facts."""
    return SessionFolder(facts["folder"], facts["cwd"]).build_path(session)


class Translator:
    """Give the lines of the file for what is printed."""

    def __init__(self, facts: SessionFacts) -> None:
        self._facts, self.path = facts, facts["path"]
        self._threads: dict[str, Translator] = {}
        """By its id, the translator of each thread of an app-server."""
        self.read_prompt: Callable[[], str] = str
        self._ordinal = facts["objects"]
        self._sequence = self._answers = 0
        self._turn = ""
        self._began = 0
        self._last_message: str | None = None

    def note_request(self, request: dict[str, Any], now: int) -> None:
        """Take nothing: the app-server prints each prompt."""

    def translate(self, event: dict[str, Any], later: Sequence[dict[str, Any]], now: int) -> list[dict[str, Any]]:
        """Give the lines for an event."""
        if "method" in event:
            return self._translate_notification(event["method"], event.get("params") or {}, now)
        kind, item = event.get("type"), event.get("item")
        if kind == "turn.started":
            return [*self._begin_turn(now), *self._keep_prompt(self.read_prompt(), now)]
        if isinstance(item, dict) and self._turn:
            return self._keep_item(str(kind), item, now)
        if kind == "turn.completed":
            end = {"last_agent_message": self._last_message}
            return [*self._count_tokens(event.get("usage", {}), now), self._end_turn(end, now)]
        if kind == "turn.failed":
            error = {"message": event.get("error", {}).get("message", ""), "codex_error_info": "other"}
            return [self._end_turn({"last_agent_message": None, "error": error}, now)]
        return []

    def _translate_notification(self, method: str, params: dict[str, Any], now: int) -> list[dict[str, Any]]:
        """Give the lines for a notification of the app-server, which is about one of its threads."""
        thread = params.get("threadId", "")
        if thread not in self._facts["paths"]:
            return []
        self.path = self._facts["paths"][thread]
        if thread not in self._threads:
            objects = read_objects(self.path)
            own = {"id": thread, "path": self.path, "is_old": bool(objects), "objects": len(objects)}
            self._threads[thread] = Translator({**self._facts, **own})
        return self._threads[thread].keep_notification(method, params, now)

    def keep_notification(self, method: str, params: dict[str, Any], now: int) -> list[dict[str, Any]]:
        """Give the lines for a notification of this thread."""
        if method == "turn/started":
            return self._begin_turn(now, params["turn"]["id"])
        if method == "thread/tokenUsage/updated":
            last = params["tokenUsage"]["last"]
            return self._count_tokens({_spell_with_underscores(name): count for name, count in last.items()}, now)
        if method == "turn/completed":
            return self._end_notified_turn(params["turn"], now)
        item = params.get("item") or {}
        if method not in ("item/started", "item/completed") or not self._turn:
            return []
        if item.get("type") == "userMessage" and method == "item/completed":
            return self._keep_prompt("".join(str(part.get("text", "")) for part in item["content"]), now)
        named = {_spell_with_underscores(name): value for name, value in item.items()}
        named["type"] = _spell_with_underscores(item.get("type", ""))
        return self._keep_item(method.replace("/", "."), named, now)

    def _end_notified_turn(self, turn: dict[str, Any], now: int) -> list[dict[str, Any]]:
        if turn["status"] == "interrupted":
            times = {"started_at": turn["startedAt"], "completed_at": turn["completedAt"]}
            names = {"root_turn_id": self._turn, "turn_id": self._turn, "reason": "interrupted"}
            aborted = {"type": "turn_aborted", **names, **times, "duration_ms": turn["durationMs"]}
            words = {"type": "input_text", "text": "<turn_aborted>"}
            item = {"type": "message", "id": f"msg_{self._make_id()}", "role": "user", "content": [words]}
            own = {"create_time": _count_ms(now) / _MILLISECONDS, "content_item_kinds": ["turn_aborted"]}
            own["content_item_metadata"] = [{"provenance": {"type": "harness", "hook": False}}]
            return [self._build_item(item, now, own, {}), self._build_line("event_msg", aborted, now)]
        error = {"message": turn["error"]["message"], "codex_error_info": "other"} if turn["error"] else None
        end = {"last_agent_message": None, "error": error} if error else {"last_agent_message": self._last_message}
        return [self._end_turn(end, now)]

    def _begin_turn(self, now: int, turn: str = "") -> list[dict[str, Any]]:
        is_old, self._facts["is_old"] = self._facts["is_old"], True
        self._last_message = None
        begun = []
        if not is_old:
            begun = [self._build_line("session_meta", self._describe_session(now), now)]
        elif not turn:
            begun = [self._build_line("event_msg", self._describe_settings(), now)]
        self._turn, self._began = turn or self._make_id(), now
        turns = {"turn_id": self._turn, "root_turn_id": self._turn}
        more = {"parent_turn_id": None, "initiating_agent_path": None, "root_turn_id": self._turn}
        started = {
            "type": "task_started",
            "turn_attribution": {"turn_id": self._turn, "turn_trigger": None if turn else "exec", **more},
            **turns,
            "started_at": _count_ms(now) // _MILLISECONDS,
            "model_context_window": _MODEL_CONTEXT_WINDOW,
            "collaboration_mode_kind": "default",
        }
        context = {
            **turns,
            "disabled_plugin_ids": [],
            "cwd": self._facts["cwd"],
            **_READ_ONLY,
            "model": _MODEL,
            "collaboration_mode": _COLLABORATION,
            "multi_agent_version": "v1",
            "realtime_active": False,
            "summary": "none",
            "sandbox_policy": {"type": "read-only"},
        }
        begun.append(self._build_line("event_msg", started, now))
        begun.append(self._build_line("turn_context", context, now))
        if not is_old:
            begun.append(self._build_line("event_msg", self._describe_settings(), now))
        return begun

    def _keep_prompt(self, prompt: str, now: int) -> list[dict[str, Any]]:
        shown = {"type": "UserMessage", "content": [{"type": "text", "text": prompt, "text_elements": []}]}
        message = self._build_message("user", {"type": "input_text", "text": prompt}, now)
        return [message, self._show_item(shown, now)]

    def _describe_settings(self) -> dict[str, Any]:
        settings = {
            "model": _MODEL,
            "model_provider_id": _PROVIDER,
            **_READ_ONLY,
            "requested_approvals_reviewer": "user",
            "cwd": self._facts["cwd"],
            "runtime_workspace_roots": [self._facts["cwd"]],
            "collaboration_mode": _COLLABORATION,
            "disabled_plugin_ids": [],
        }
        return {"type": "thread_settings_applied", "thread_id": self._facts["id"], "thread_settings": settings}

    def _describe_session(self, now: int) -> dict[str, Any]:
        session, cwd = self._facts["id"], self._facts["cwd"]
        return {
            "account_scoped": True,
            "session_id": session,
            "id": session,
            "timestamp": encode_timestamp(_count_ms(now)),
            "cwd": cwd,
            "runtime_workspace_roots": [cwd],
            "originator": "fake" if self._facts["serves"] else "codex_exec",
            "cli_version": self._facts["version"],
            **({"source": "vscode"} if self._facts["serves"] else {"source": "exec", "thread_source": "user"}),
            "model_provider": _PROVIDER,
            "base_instructions": {
                "text": "You are codex.",
                "provenance": {"type": "model", "model": _MODEL},
            },
            "history_mode": "paginated",
            "context_window": {"window_id": self._make_id()},
        }

    def _keep_item(self, kind: str, item: dict[str, Any], now: int) -> list[dict[str, Any]]:
        """Give the lines for an item. Thoughts, plans and notices are in no file of the fake."""
        if item.get("type") == "agent_message" and kind == "item.completed":
            text = self._last_message = item["text"]
            shown = {"type": "AgentMessage", "id": item["id"], "content": [{"type": "Text", "text": text}]}
            return [
                self._show_item(shown, now),
                self._build_message("assistant", {"type": "output_text", "text": text}, now),
            ]
        if item.get("type") not in ("command_execution", "mcp_tool_call"):
            return []
        is_command, call = item["type"] == "command_execution", {"call_id": f"call_{item['id']}"}
        if kind == "item.started":
            given = {"cmd": item["command"]} if is_command else item["arguments"]
            about = {"id": item["id"], "name": "exec_command" if is_command else item["tool"]}
            item = {"type": "function_call", **about, "arguments": encode_spaced_json(given), **call}
            return [self._build_item(item, now, {}, {"user_input_order": self._sequence})]
        if is_command:
            return [
                self._show_command(item, call["call_id"], now),
                self._build_output(item["aggregated_output"] or "", call, now),
            ]
        found = item["error"]["message"] if item["error"] else item["result"]["content"][0]["text"]
        return [self._build_output(found, call, now)]

    def _show_command(self, item: dict[str, Any], call: str, now: int) -> dict[str, Any]:
        return self._show_item(
            {
                "type": "CommandExecution",
                "id": call,
                "process_id": "1",
                "command": ["/bin/bash", "-lc", item["command"]],
                "cwd": f"file://{self._facts['cwd']}",
                "parsed_cmd": [{"type": "unknown", "cmd": item["command"]}],
                "source": "unified_exec_startup",
                "status": item["status"],
                "aggregated_output": item["aggregated_output"] or "",
                "exit_code": item["exit_code"],
                "duration": {"secs": 0, "nanos": 0},
            },
            now,
        )

    def _build_output(self, text: str, call: dict[str, Any], now: int) -> dict[str, Any]:
        item = {"type": "function_call_output", "id": f"fco_{self._make_id()}", **call, "output": text}
        times = {"create_time": _count_ms(now) / _MILLISECONDS}
        return self._build_item(item, now, times, {"fallback_token_limit_override": 3000})

    def _count_tokens(self, usage: dict[str, Any], now: int) -> list[dict[str, Any]]:
        spent = {**usage, "total_tokens": usage.get("input_tokens", 0) + usage.get("output_tokens", 0)}
        names = {"thread_id": self._facts["id"], "turn_id": self._turn, "session_id": self._facts["id"]}
        record = {
            **names,
            "root_turn_id": self._turn,
            "response_id": "resp_1",
            **dict.fromkeys(("usage", "turn_token_usage", "thread_token_usage"), spent),
        }
        info = {
            **dict.fromkeys(("total_token_usage", "last_token_usage"), spent),
            "last_usage_includes_reasoning": False,
            "model_context_window": _MODEL_CONTEXT_WINDOW,
        }
        count = {"type": "token_count", "info": info, "rate_limits": _RATE_LIMITS}
        return [self._build_line("token_usage_record", record, now), self._build_line("event_msg", count, now)]

    def _end_turn(self, end: dict[str, Any], now: int) -> dict[str, Any]:
        times = {
            "started_at": _count_ms(self._began) // _MILLISECONDS,
            "completed_at": _count_ms(now) // _MILLISECONDS,
            "duration_ms": _count_ms(now) - _count_ms(self._began),
            **({} if "error" in end else {"time_to_first_token_ms": 0}),
        }
        turns = {"root_turn_id": self._turn, "turn_id": self._turn}
        return self._build_line("event_msg", {"type": "task_complete", **turns, **end, **times}, now)

    def _show_item(self, item: dict[str, Any], now: int) -> dict[str, Any]:
        """Give the line for people."""
        names = {"thread_id": self._facts["id"], "turn_id": self._turn}
        own = {"id": self._make_id(), **item} if "id" not in item else item
        times = dict.fromkeys(("started_at_ms", "completed_at_ms"), _count_ms(now))
        return self._build_line("event_msg", {"type": "item_completed", **names, "item": own, **times}, now)

    def _build_message(self, role: str, content: dict[str, Any], now: int) -> dict[str, Any]:
        number = f"msg_{self._make_id()}"
        source = {
            "id": {"message_id": number, "turn_id": self._turn, "role": role},
            "revision": f"retained_{self._make_id()}",
            "complete": True,
        }
        own: dict[str, Any] = {"content_item_kinds": ["unknown"]}
        metadata: dict[str, Any] = {"retained_source": source, "user_input_order": self._sequence}
        if role == "user":
            own = {"create_time": _count_ms(now) / _MILLISECONDS, "content_item_kinds": ["user.text"]}
            own["content_item_metadata"] = [{"provenance": {"type": "user"}}]
            metadata["mcp_attribution"] = {"status": "none"}
        item = {"type": "message", "id": number, "role": role, "content": [content]}
        return self._build_item(item, now, own, metadata)

    def _build_item(
        self, item: dict[str, Any], now: int, own: dict[str, Any], metadata: dict[str, Any]
    ) -> dict[str, Any]:
        """Give the line for the model."""
        self._sequence += 1
        about = {"history_sequence": self._sequence, "sampled_through_sequence": 0, **metadata}
        passed = {**item, "internal_chat_message_metadata_passthrough": {"turn_id": self._turn, **own}}
        line = self._build_line("response_item", passed, now)
        return {**line, "metadata": {**about, "client_authored": False, "model_search_state": "unused"}}

    def _build_line(self, kind: str, payload: dict[str, Any], now: int) -> dict[str, Any]:
        ordinal, self._ordinal = self._ordinal, self._ordinal + 1
        head = {"timestamp": encode_timestamp(_count_ms(now)), "ordinal": ordinal}
        return {**head, "type": kind, "payload": payload}

    def _make_id(self) -> str:
        """Make an id that no line of the file has."""
        self._answers += 1
        return f"01a20072-{self._facts['objects'] & 0xFFFF:04x}-7000-8000-{self._answers:012x}"


def _count_ms(now: int) -> int:
    return _START_UNIX_MS + now // 1_000_000


def _spell_with_underscores(name: str) -> str:
    """Spell a name of the app-server as the file does."""
    return "".join(f"_{sign.lower()}" if sign.isupper() else sign for sign in name)


def read_turns(path: str) -> list[dict[str, Any]]:
    """Give the turns of a thread as the app-server does when it is resumed."""
    turns: list[dict[str, Any]] = []
    for line in read_objects(path):
        payload = line.get("payload", {})
        if payload.get("type") == "task_started":
            names = {"id": payload["turn_id"], "rootTurnId": payload["turn_id"], "items": [], "itemsView": "full"}
            times = {"startedAt": payload["started_at"], "completedAt": None, "durationMs": None}
            turns.append({**names, "status": "interrupted", "error": None, **times})
        elif turns and payload.get("type") == "item_completed":
            turns[-1]["items"] += _describe_kept_item(payload)
        elif turns and payload.get("type") == "task_complete":
            error = payload.get("error")
            turns[-1] |= {"status": "failed" if error else "completed", "completedAt": payload["completed_at"]}
            turns[-1]["durationMs"] = payload["duration_ms"]
            turns[-1]["error"] = error and {"message": error["message"], "codexErrorInfo": "other"}
    return turns


def _describe_kept_item(payload: dict[str, Any]) -> list[dict[str, Any]]:
    """Give a message as an item of a turn."""
    item = payload["item"]
    times = {"startedAtMs": payload["started_at_ms"], "completedAtMs": payload["completed_at_ms"]}
    if item["type"] == "UserMessage":
        return [{"type": "userMessage", "id": item["id"], "clientId": None, "content": item["content"], **times}]
    if item["type"] != "AgentMessage":
        return []
    none = dict.fromkeys(("phase", "memoryCitation", "delivery", "questions"))
    text = "".join(part["text"] for part in item["content"])
    return [{"type": "agentMessage", "moderation": None, "id": item["id"], "text": text, **none, **times}]
