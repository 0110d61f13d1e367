"""The parts of a line that are never the same twice, or are the machine's: the one table of omissions in a comparison.

An ID is compared by its other places: the first ID is #1 wherever it comes again. For the other kinds, only three facts
are compared: the field is there, whether it is empty, and its place. CUT are the keys that the recorder left out, and
those of a newer release. The
length of a text that pi had got when it printed an update is a time, too. Two recordings of the same two pieces differ
in it.
"""

from __future__ import annotations

import json
import re
from itertools import zip_longest
from typing import Any

__all__ = ["IdNames", "cut_like_recorder", "keep_until_cut", "normalize_line"]

ID, TIME, COST, HOST, COUNT, CUT = "id", "time", "cost", "host", "count", "cut"

_PATH = re.compile(r"/home/u/[^\s<>\"]*")
_HOST = f"<{HOST}>"
_WORD = re.compile(r"[\w-]+")
_CUT_TEXT = re.compile(r"\.\.\.\[\+\d+\]$")

_CUT = ("commands", "agents", "available_output_styles", "models", "account")
"""These come from the answer to claude's `initialize`."""

VARIES: dict[str, dict[str, str]] = {
    "claude": {
        **dict.fromkeys(("uuid", "session_id", "id", "tool_use_id", "parent_tool_use_id", "api_message_id"), ID),
        **dict.fromkeys(("task_id", "run_id", "runId", "agent_id", "prompt_id", "request_id", "command_uuid"), ID),
        **dict.fromkeys(("begun_message_ids", "user_message_uuid", "user_message_uuids", "still_queued"), ID),
        **dict.fromkeys(("timestamp", "duration_ms", "duration_api_ms", "end_time", "request_sent_wall_ms"), TIME),
        **dict.fromkeys(("ttft_ms", "ttft_stream_ms", "time_to_request_ms", "first_content_frame_ms"), TIME),
        **dict.fromkeys(("usage", "modelUsage", "model_usage_since_last_result"), COUNT),
        **dict.fromkeys(("total_cost_usd",), COST),
        **dict.fromkeys(("cwd", "original_cwd", "memory_paths", "messaging_socket_path", "transcript_path"), HOST),
        **dict.fromkeys(("init/tools", "slash_commands", "terminal_slash_commands", "init/agents", "skills"), HOST),
        **dict.fromkeys(("plugins", "capabilities", "output_file", "pid", "user_output_styles_dir"), HOST),
        **dict.fromkeys(("first_request_input_tokens", "first_request_cache_read_input_tokens"), COUNT),
        **dict.fromkeys(("response/response/" + key for key in _CUT), CUT),
        "sandbox_enabled": CUT,
        "claude_code_version": HOST,  # a newer release than that of the recordings
    },
    "acp": {
        **dict.fromkeys(("sessionId", "toolCallId"), ID),
    },
    "codex": {
        "thread_id": ID,
        **dict.fromkeys(("item/startedAtMs", "item/completedAtMs", "items/startedAtMs", "items/completedAtMs"), CUT),
        **dict.fromkeys(("contentTokenCount", "moderation", "attachedToThreadId"), CUT),
        **dict.fromkeys(("cliVersion", "userAgent"), HOST),
        **dict.fromkeys(("input_tokens", "cached_input_tokens", "cache_write_input_tokens"), COUNT),
        **dict.fromkeys(("output_tokens", "reasoning_output_tokens"), COUNT),
    },
    "gemini": {
        **dict.fromkeys(("session_id", "tool_id"), ID),
        **dict.fromkeys(("timestamp", "duration_ms", "totalLatencyMs"), TIME),
        **dict.fromkeys(("total_tokens", "input_tokens", "output_tokens", "cached", "input"), COUNT),
        **dict.fromkeys((f"tokens/{part}" for part in ("prompt", "candidates", "total", "thoughts", "tool")), COUNT),
    },
    "pi": {
        **dict.fromkeys(("session/id", "toolCallId", "toolCall/id", "content/id"), ID),
        **dict.fromkeys(("timestamp", "partial/content/text", "message_update/message/content/text"), TIME),
        **dict.fromkeys(("input", "output", "cacheRead", "cacheWrite", "totalTokens"), COUNT),
        **dict.fromkeys(("cost/total",), COST),
        **dict.fromkeys(("cwd",), HOST),
    },
}
"""Each dialect's fields: a key, or a key with those above it (`init/tools`), and why it varies."""


class IdNames:
    """The names that ids get in the order in which they come."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def name_value(self, value: Any) -> str:
        """Name one."""
        return self._names.setdefault(str(value), f"#{len(self._names) + 1}")

    def replace_ids(self, text: str) -> str:
        """Give a text with the ids that stand in it, and the paths of the host, taken out."""
        return _WORD.sub(lambda found: self._names.get(found[0], found[0]), _PATH.sub(_HOST, text))


def cut_like_recorder(made: Any, real: Any) -> Any:
    """Cut each long text of the fake as the recorder cut the real one: a beginning, then the length of the rest.

    One recorder kept only some keys of claude's answer to `initialize`, and put empty lists after them.
    """
    if isinstance(made, dict) and isinstance(real, dict):
        is_short = real.get("commands") == real.get("agents") == real.get("models") == []
        kept = {key: inner for key, inner in made.items() if key in real} if is_short else made
        return {key: cut_like_recorder(inner, real.get(key)) for key, inner in kept.items()}
    if isinstance(made, list) and isinstance(real, list):
        return [cut_like_recorder(*pair) for pair in zip_longest(made, real)][: len(made)]
    if not isinstance(made, str) or not isinstance(real, str):
        return made
    made, found = _PATH.sub(_HOST, made), _CUT_TEXT.search(_PATH.sub(_HOST, real))
    if found is None or len(made) < found.start():
        return made
    return f"{made[: found.start()]}...[+{len(made) - found.start()}]"


def keep_until_cut(line: str) -> str:
    """Give the kept part of a line of JSON that the recorder cut: all before the list, or the text, with the cut."""
    kept = line.removesuffix("...")
    lists: list[int] = []
    text = None
    for place, sign in enumerate(kept):
        if sign == '"':
            text = place if text is None else None
        elif text is None and sign == "[":
            lists.append(place)
        elif text is None and sign == "]":
            lists.pop()
    return kept[: min([*lists, len(kept) if text is None else text])]


def normalize_line(dialect: str, line: Any, names: IdNames) -> Any:
    """Give a line with its keys in their order, and what varies taken out; a `system` line is known by its subtype.

    An object over many lines differs from an object in another layout.
    """
    if isinstance(line, str) and line.startswith("{\n"):
        value = json.loads(line)
        return line == json.dumps(value, indent=2, ensure_ascii=False), normalize_line(dialect, value, names)
    kind = line.get("subtype", line.get("type")) if isinstance(line, dict) else None
    return _normalize_value(VARIES[dialect], (str(kind),), line, names)


def _normalize_value(table: dict[str, str], path: tuple[str, ...], value: Any, names: IdNames) -> Any:
    why = _find_reason(table, path)
    if why == ID and isinstance(value, list):
        return [names.name_value(inner) for inner in value]
    if why is not None and value not in (None, ""):
        return names.name_value(value) if why == ID and not isinstance(value, dict) else f"<{why}>"
    if isinstance(value, dict):
        inners = [(key, inner) for key, inner in value.items() if _find_reason(table, (*path, key)) != CUT]
        return [(key, _normalize_value(table, (*path, key), inner, names)) for key, inner in inners]
    if isinstance(value, list):
        return [_normalize_value(table, path, inner, names) for inner in value]
    return names.replace_ids(value) if isinstance(value, str) else value


def _find_reason(table: dict[str, str], path: tuple[str, ...]) -> str | None:
    for length in range(1, len(path) + 1):
        found = table.get("/".join(path[-length:]))
        if found is not None:
            return found
    return None
