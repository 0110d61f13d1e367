"""The session files of Claude Code: `projects/FOLDER/ID.jsonl` below its configuration. Knows no other CLI.

The file begins with the first prompt. A text, a tool and its result are lines of their own, each with the one before it
as its parent, and have the ids of the events that are printed. No file of the fake has the words of a sub-agent.
"""

from __future__ import annotations

from pytest_agentproc.fake_agents.dialects.claude.forms import MORE_TOKEN_USAGE
from pytest_agentproc.fake_agents.dialects.claude.print_mode import START_UNIX_MS, format_timestamp
from pytest_agentproc.fake_agents.session_files.disk import list_files, read_objects

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from pytest_agentproc.fake_agents.session_files.disk import SessionFacts

_LONGEST_FOLDER_NAME = 200
_BASE_36 = "0123456789abcdefghijklmnopqrstuvwxyz"
_ZERO_COSTS = {
    "totalAPIDuration": 0,
    "totalAPIDurationWithoutRetries": 0,
    "totalToolDuration": 0,
    "totalLinesAdded": 0,
    "totalLinesRemoved": 0,
}
_DECISION_KEYS = {"reason_type": "reasonType"}
_UNKEPT_MODEL_KEYS = ("contextWindow", "maxOutputTokens", "canonicalModel", "provider", "costBasis")
_ERROR_KEYS = {
    "error": "error",
    "is_api_error_message": "isApiErrorMessage",
    "api_error_status": "apiErrorStatus",
    "api_error_type": "apiErrorType",
}
"""The keys of an error of the API as they are printed, and in the file."""


def find_folder(read_variable: Callable[[str], str]) -> str:
    """Give the folder of all projects."""
    home = read_variable("HOME")
    own = read_variable("CLAUDE_CONFIG_DIR") or (home and f"{home}/.claude")
    return own and f"{own}/projects"


class SessionFolder:
    """The sessions of all projects."""

    def __init__(self, path: str, cwd: str) -> None:
        self._path, self._project = path, f"{path}/{_name_project(cwd)}"

    def list_sessions(self) -> dict[str, str]:
        """Give the files of all projects."""
        return {path.rpartition("/")[2].removesuffix(".jsonl"): path for path in list_files(self._path, 1)}

    def may_be_latest(self, path: str) -> bool:
        """Say whether a file is of this project."""
        return path.rpartition("/")[0] == self._project

    def build_path(self, session: str) -> str:
        """Give the file of a session."""
        return f"{self._project}/{session}.jsonl"


def _name_project(cwd: str) -> str:
    """Give the name of a project's folder: a long one ends with a hash of the whole path."""
    name = "".join(sign if sign.isascii() and sign.isalnum() else "-" for sign in cwd)
    if len(name) <= _LONGEST_FOLDER_NAME:
        return name
    number = 0
    for sign in cwd:
        number = (number * 31 + ord(sign)) & 0xFFFFFFFF
    number, digits = abs(number - (1 << 32) if number >> 31 else number), ""
    while number:
        number, digit = divmod(number, len(_BASE_36))
        digits = _BASE_36[digit] + digits
    return f"{name[:_LONGEST_FOLDER_NAME]}-{digits}"


class Translator:
    """Give the lines of the file for what is printed."""

    def __init__(self, facts: SessionFacts) -> None:
        self._facts, self.path = facts, facts["path"]
        self.read_prompt: Callable[[], str] = str
        self._count = 0
        self._prompt = ""
        self._prompt_id = ""
        self._mode = "default"
        self._tools: dict[str, str] = {}
        self._waiting: list[Any] = []
        self._message, self._blocks = None, 0
        old = read_objects(facts["source"] or facts["path"]) if facts["is_old"] else []
        self._parent = next((line["uuid"] for line in reversed(old) if "uuid" in line), None)
        self._turns = sum("turnPosition" in line for line in old)
        self._copied = [{**line, "sessionId": facts["id"]} for line in old if "uuid" in line and facts["source"]]
        """The lines of the session that this one forks, until the file has them."""

    def note_request(self, request: dict[str, Any], now: int) -> None:
        """Keep a prompt until its turn begins."""
        if request.get("type") == "user" and isinstance(request.get("message"), dict):
            self._waiting.append(request["message"].get("content", ""))

    def translate(self, event: dict[str, Any], later: Sequence[dict[str, Any]], now: int) -> list[dict[str, Any]]:
        """Give the lines for an event; `later` are the events that are printed with it."""
        kind = event.get("type")
        if kind == "system" and event.get("subtype") == "init":
            return self._begin_turn(event, now)
        if kind in ("assistant", "user") and not event.get("parent_tool_use_id") and isinstance(event.get("uuid"), str):
            return [self._keep_answer(event, later, now) if kind == "assistant" else self._keep_result(event, now)]
        return self._end_turn(event, now) if kind == "result" else []

    def _begin_turn(self, event: dict[str, Any], now: int) -> list[dict[str, Any]]:
        self._mode = event.get("permissionMode", "default")
        if not self._facts["serves"] and not self._waiting and not self._prompt_id:
            self._waiting.append(self.read_prompt())
        if not self._waiting:
            return []  # a turn of its own
        content = self._waiting.pop(0)
        self._turns += 1
        self._prompt, self._prompt_id = _join_text(content), self._make_uuid()
        queue = {"type": "queue-operation", "timestamp": format_timestamp(now), "sessionId": self._facts["id"]}
        line = {
            "promptId": self._prompt_id,
            "type": "user",
            "message": {"role": "user", "content": content},
            "uuid": self._make_uuid(),
            "timestamp": format_timestamp(now),
            "permissionMode": self._mode,
            "promptSource": "sdk",
            "sentAtMs": START_UNIX_MS + now // 1_000_000,
            "rowSource": "local",
            "turnOrigin": "sdk",
            "turnPosition": {"promptIndex": 0, "turnIndex": self._turns},
        }
        copied, self._copied = self._copied, []
        return [
            *([self._name_mode()] if copied else []),
            {**queue, "operation": "enqueue", "content": self._prompt},
            {**queue, "operation": "dequeue"},
            *copied,
            self._append_to_chain(line),
            self._name_leaf(),
        ]

    def _keep_answer(self, event: dict[str, Any], later: Sequence[dict[str, Any]], now: int) -> dict[str, Any]:
        message = {key: value for key, value in event["message"].items() if key != "context_management"}
        failed = {own: event[key] for key, own in _ERROR_KEYS.items() if key in event}
        about = {"type": "assistant", "uuid": event["uuid"], "timestamp": format_timestamp(now)}
        if failed:
            more = {**failed, "perTurnEffort": "medium", "failedResponseHadNoToolCall": True, "madeBy": "model"}
            return self._append_to_chain({**about, "message": event["message"], **more})
        block = message["content"][0]
        self._blocks = self._blocks + 1 if message.get("id") == self._message else 0
        self._message = message.get("id")
        stop, timing = _find_stop_reason(event, later), {}
        if block["type"] == "tool_use":
            self._tools[block["id"]], timing = event["uuid"], {"toolInputStreamMs": 0}
        usage = {**message.get("usage", {}), **MORE_TOKEN_USAGE}
        message = {**message, "stop_reason": stop, "usage": usage, "stop_details": None}
        made = {"effort": "medium", "perTurnEffort": "medium", "madeBy": "model"}
        asked = {"apiBlockIndex": self._blocks, "requestedModel": message.get("model"), "promptCacheRequested": "5m"}
        return self._append_to_chain({"message": message, **timing, **asked, **about, **made})

    def _keep_result(self, event: dict[str, Any], now: int) -> dict[str, Any]:
        """Give the line of a tool's result, or of words that claude writes in the user's name."""
        line = {"promptId": self._prompt_id, "type": "user", "message": event["message"], "uuid": event["uuid"]}
        line["timestamp"] = format_timestamp(now)
        if event.get("isSynthetic"):
            line["isMeta"] = True
        content = event["message"].get("content")
        block = content[0] if isinstance(content, list) and content and isinstance(content[0], dict) else {}
        if block.get("type") != "tool_result":
            return self._append_to_chain(line)
        line["message"] = {**event["message"], "content": [{**block, "is_error": bool(block.get("is_error"))}]}
        line["toolUseResult"] = event.get("tool_use_result")
        line["sourceToolAssistantUUID"] = self._tools.get(block.get("tool_use_id", ""))
        decided = next((meta.get("permission_decision") for meta in event.get("tool_result_meta", ())), None)
        if decided:
            line["permissionDecision"] = {_DECISION_KEYS.get(key, key): value for key, value in decided.items()}
        return self._append_to_chain(line)

    def _end_turn(self, event: dict[str, Any], now: int) -> list[dict[str, Any]]:
        """Give the lines at the end of a turn. A run ends with it, and says what it cost."""
        costs = {
            "totalCostUSD": event.get("total_cost_usd", 0),
            **_ZERO_COSTS,
            "totalDuration": now // 1_000_000,
            "startTime": START_UNIX_MS,
            "modelUsage": {
                name: {key: value for key, value in used.items() if key not in _UNKEPT_MODEL_KEYS}
                for name, used in event.get("modelUsage", {}).items()
            },
            "hasUnknownModelCost": False,
        }
        end = [] if self._facts["serves"] else [{"type": "cost-state", "sessionId": self._facts["id"], **costs}]
        return [self._name_leaf(), *([self._name_mode()] if self._facts["is_old"] else []), *end]

    def _name_mode(self) -> dict[str, Any]:
        return {"type": "mode", "mode": "normal", "sessionId": self._facts["id"]}

    def _name_leaf(self) -> dict[str, Any]:
        names = {"type": "last-prompt", "lastPrompt": self._prompt, "leafUuid": self._parent}
        return {**names, "sessionId": self._facts["id"]}

    def _append_to_chain(self, line: dict[str, Any]) -> dict[str, Any]:
        parent, self._parent = self._parent, line["uuid"]
        facts = {"userType": "external", "entrypoint": "sdk-cli", "cwd": self._facts["cwd"]}
        names = {"sessionId": self._facts["id"], "version": self._facts["version"], "gitBranch": "HEAD"}
        return {"parentUuid": parent, "isSidechain": False, **line, **facts, **names}

    def _make_uuid(self) -> str:
        """Make an id that no line of the file has, and no event that is printed."""
        self._count += 1
        return f"{self._facts['objects']:08}-0000-4000-a000-{self._count:012}"


def _find_stop_reason(event: dict[str, Any], later: Sequence[dict[str, Any]]) -> Any:
    """Give the stop reason of the message, which the model's server sends at its end: None if that is still to come."""
    if event["message"]["content"][0]["type"] == "tool_use":
        return "tool_use"
    for other in later:
        if other.get("type") == "assistant" and other["message"].get("id") == event["message"].get("id"):
            return _find_stop_reason(other, ())
        if other.get("type") == "result":
            return other.get("stop_reason")
    return None


def _join_text(content: Any) -> str:
    blocks = content if isinstance(content, list) else [{"text": content}]
    return "\n".join(str(block.get("text", "")) for block in blocks if isinstance(block, dict))
