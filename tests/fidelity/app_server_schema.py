"""The schema of `codex app-server`: as the pinned release gives it, reduced to the messages that the fake prints.

`python -m tests.fidelity.app_server_schema` writes the file again.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.clients.packages import install_from_npm

__all__ = ["SCHEMA", "format_schema", "generate_release_schema"]

SCHEMA = Path(__file__).parents[1] / "data" / "codex-app-server.schema.json"
_NOTIFICATIONS = frozenset(
    {
        *("error", "serverRequest/resolved", "thread/started", "thread/status/changed", "thread/tokenUsage/updated"),
        "thread/settings/updated",
        *("turn/started", "turn/completed", "turn/plan/updated", "item/started", "item/completed"),
        *("item/agentMessage/delta", "item/reasoning/summaryTextDelta"),
    }
)
_REQUESTS = frozenset({"item/commandExecution/requestApproval"})
_RESPONSES = {
    "initialize": "v1/InitializeResponse",
    "thread/start": "v2/ThreadStartResponse",
    "thread/resume": "v2/ThreadResumeResponse",
    "turn/start": "v2/TurnStartResponse",
    "turn/steer": "v2/TurnSteerResponse",
    "turn/interrupt": "v2/TurnInterruptResponse",
    "thread/compact/start": "v2/ThreadCompactStartResponse",
    "model/list": "v2/ModelListResponse",
    "thread/list": "v2/ThreadListResponse",
    "skills/list": "v2/SkillsListResponse",
    "account/read": "v2/GetAccountResponse",
    "error": "JSONRPCError",
}
_WORDS = ("description", "title", "default", "$schema")
_LIMIT = 60
"""Real seconds for the one command."""


def generate_release_schema() -> dict[str, Any]:
    """Have the pinned release write its schema, and reduce it."""
    codex = install_from_npm("codex") / "node_modules" / ".bin" / "codex"
    with tempfile.TemporaryDirectory() as folder:
        command = [str(codex), "app-server", "generate-json-schema", "--out", folder]
        subprocess.run(command, check=True, timeout=_LIMIT, env={"PATH": "/usr/bin:/bin", "HOME": folder})
        return _reduce_schema(Path(folder))


def format_schema(schema: dict[str, Any]) -> str:
    """Write it with one line for each message and each definition."""
    parts = []
    for part, entries in schema.items():
        lines = [f"{json.dumps(name)}: {json.dumps(entry, sort_keys=True)}" for name, entry in sorted(entries.items())]
        parts.append(f"{json.dumps(part)}: {{\n" + ",\n".join(lines) + "\n}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _reduce_schema(folder: Path) -> dict[str, Any]:
    known: dict[str, Any] = {}

    def load(name: str) -> dict[str, Any]:
        found: dict[str, Any] = _strip_descriptions(json.loads((folder / f"{name}.json").read_text("utf-8")))
        known.update(found.pop("definitions", {}))
        return found

    kinds = {"notifications": ("ServerNotification", _NOTIFICATIONS), "requests": ("ServerRequest", _REQUESTS)}
    parts: dict[str, Any] = {}
    for kind, (name, methods) in kinds.items():
        messages = load(name)["oneOf"]
        named = {message["properties"]["method"]["enum"][0]: message for message in messages}
        parts[kind] = {method: named[method] for method in sorted(methods)}
    parts["responses"] = {method: load(name) for method, name in _RESPONSES.items()}
    used: dict[str, Any] = {}
    waiting = _list_references(parts)
    while waiting:
        name = waiting.pop()
        if name not in used:
            used[name] = known[name]
            waiting += _list_references(known[name])
    return {**parts, "definitions": used}


def _strip_descriptions(value: Any, *, is_named: bool = False) -> Any:
    """Leave out the words for people; a property may be called like one of them."""
    if isinstance(value, list):
        return [_strip_descriptions(part) for part in value]
    if not isinstance(value, dict):
        return value
    kept = value.items() if is_named else [(key, part) for key, part in value.items() if key not in _WORDS]
    return {key: _strip_descriptions(part, is_named=key in ("properties", "definitions")) for key, part in kept}


def _list_references(value: Any) -> list[str]:
    if isinstance(value, list):
        return [name for part in value for name in _list_references(part)]
    if not isinstance(value, dict):
        return []
    own = [value["$ref"].rpartition("/")[2]] if isinstance(value.get("$ref"), str) else []
    return [*own, *(name for part in value.values() for name in _list_references(part))]


if __name__ == "__main__":
    SCHEMA.write_text(format_schema(generate_release_schema()), encoding="utf-8")
    sys.exit(0)
