"""Says whether two lines are the same but for what is never the same twice. Owns which fields and values vary.

Ids, times, durations, costs and folders: their place counts, and that they are there, and not what they say.
"""

from __future__ import annotations

import json
import re
from typing import Any

__all__ = ["alike", "likeness"]

_VARYING = re.compile(
    r"(?i)(?:.*_ms|.*_at|.*duration|.*latency.*|timestamp|.*time|.*cost.*|uuid|.*session_?id|thread_id|cwd|.*latencyMs)"
)
_ID = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[\d.]*(?:Z|[+-]\d\d:?\d\d)"
)
_REDACTED = re.compile(r"redacted\d+x*")


def likeness(line: bytes) -> Any:
    """Give what counts of a line: of JSON its keys in their order and what does not vary; of other text all of it."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return line
    return _likeness("", value) if isinstance(value, dict) else line


def alike(one: bytes, other: bytes) -> bool:
    """Say whether two lines are the same but for what varies."""
    return one == other or likeness(one) == likeness(other)


def _likeness(key: str, value: Any) -> Any:
    if isinstance(value, dict):
        return [(name, _likeness(name, inner)) for name, inner in value.items()]
    if isinstance(value, list):
        return [_likeness(key, inner) for inner in value]
    if isinstance(value, str | int | float) and not isinstance(value, bool) and _VARYING.fullmatch(key) and value != "":
        return "<varies>"
    return _REDACTED.sub("<redacted>", _ID.sub("<varies>", value)) if isinstance(value, str) else value
