"""Two outputs of one conversation: in which events, keys and types they differ. Starts nothing.

An event is a line of JSON, or a whole output that is one object. Values are not compared, but those that say which kind
of event it is. Keys that are names of models, tools or tasks count as one key, `*`.
"""

from __future__ import annotations

import json
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.fidelity.running import CliRun

__all__ = ["list_differences", "list_kinds"]

_NAMED = ("modelUsage", "model_usage_since_last_result", "models", "byName", "by_type")
"""Objects whose keys are names."""
_FREE = ("input", "args", "arguments", "parameters")
"""Objects that hold what the model wrote."""
_KINDS = ("method", "type", "subtype", "role", "status", "state")


def list_differences(real: CliRun, fake: CliRun) -> list[str]:
    """List how the fake's output differs from the real CLI's."""
    found = [] if real.code == fake.code else [f"exit code: {real.code}, the fake has {fake.code}"]
    ours, theirs = (ran.stderr.partition("\n")[0] for ran in (fake, real))
    found += [] if ours == theirs else [f"first line of stderr: {theirs!r}, the fake has {ours!r}"]
    events, others = _parse_events(real.stdout), _parse_events(fake.stdout)
    if events is None or others is None:
        return [
            *found,
            *([] if real.stdout == fake.stdout else [f"text: {real.stdout!r}, the fake has {fake.stdout!r}"]),
        ]
    matcher = SequenceMatcher(None, [*map(find_kind, events)], [*map(find_kind, others)], autojunk=False)
    for what, start, end, low, high in matcher.get_opcodes():
        if what == "equal":
            for event, other in zip(events[start:end], others[low:high], strict=True):
                found += _iterate_differences(find_kind(event), event, other)
            continue
        after = find_kind(events[start - 1]) if start else "the start"
        found += [f"after {after}: the fake lacks {find_kind(event)}" for event in events[start:end]]
        found += [f"after {after}: only the fake has {find_kind(event)}" for event in others[low:high]]
    return list(dict.fromkeys(found))


def list_kinds(stdout: str) -> list[str]:
    """List the kinds of the events."""
    return [find_kind(event) for event in _parse_events(stdout) or []]


def find_kind(event: dict[str, Any]) -> str:
    """Say which kind of event it is."""
    if "jsonrpc" in event:
        return _find_kind_of_message(event)
    inner = [event.get(name) for name in ("event", "item", "assistantMessageEvent", "message", "response", "request")]
    for outer in (event.get("params"), event.get("result")):
        inner += [outer.get(name) for name in ("item", "turn", "status")] if isinstance(outer, dict) else []
    parts = [event, *(part for part in inner if isinstance(part, dict))]
    words = [str(part[name]) for part in parts for name in _KINDS if isinstance(part.get(name), str)]
    content = (event.get("message") or {}).get("content", ()) if isinstance(event.get("message"), dict) else ()
    blocks = [block["type"] for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    return ".".join([*dict.fromkeys(words), *blocks]) or "object"


def _find_kind_of_message(message: dict[str, Any]) -> str:
    """Say which update, request or response of JSON-RPC it is."""
    if "method" not in message:
        return f"{'error' if 'error' in message else 'response'} {message.get('id')}"
    update = message.get("params", {}).get("update", {})
    return ".".join(
        str(word) for word in (message["method"], update.get("sessionUpdate"), update.get("status")) if word
    )


def _parse_events(stdout: str) -> list[dict[str, Any]] | None:
    try:
        whole = json.loads(stdout)
    except ValueError:
        pass
    else:
        return [whole] if isinstance(whole, dict) else None
    try:
        found = [json.loads(line) for line in stdout.splitlines()]
    except ValueError:
        return None
    return found if all(isinstance(event, dict) for event in found) else None


def _iterate_differences(kind: str, event: dict[str, Any], other: dict[str, Any]) -> Iterator[str]:
    real, fake = dict(_iterate_shape(event)), dict(_iterate_shape(other))
    for path in sorted(real.keys() - fake.keys()):
        if _is_first(path, real, fake):
            yield f"{kind}: the fake lacks {path} ({real[path]})"
    for path in sorted(fake.keys() - real.keys()):
        if _is_first(path, fake, real):
            yield f"{kind}: only the fake has {path} ({fake[path]})"
    for path in sorted(real.keys() & fake.keys()):
        if real[path] != fake[path]:
            yield f"{kind}: {path} is {real[path]}, in the fake {fake[path]}"


def _is_first(path: str, shape: dict[str, str], other: dict[str, str]) -> bool:
    """Say whether the object or list that holds a path is the same in both: else that is the difference."""
    above = path.removesuffix("[]") if path.endswith("[]") else path.rpartition(".")[0]
    return not above or shape.get(above) == other.get(above)


def _iterate_shape(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Give each path in an event with the type that is there; numbers are of one type."""
    kind = "null" if value is None else "number" if type(value) in (int, float) else type(value).__name__
    if path:
        yield path, kind
    name = path.rpartition(".")[2]
    if isinstance(value, dict) and name not in _FREE:
        for key, part in value.items():
            yield from _iterate_shape(part, f"{path}.{'*' if name in _NAMED else key}".lstrip("."))
    if isinstance(value, list):
        for part in value:
            yield from _iterate_shape(part, f"{path}[]")
