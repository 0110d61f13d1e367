"""Two outputs of one conversation: in which events, keys and types they differ. Starts nothing, and judges nothing.

An event is a line of JSON, or a whole output that is one object. Values are not compared, but those that say which kind
of event it is. Keys that are names of models, tools or tasks count as one key, `*`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.fidelity.running import CliRun

__all__ = ["Difference", "compare_runs", "list_differences", "list_kinds", "parse_events"]

_NAMED = ("modelUsage", "model_usage_since_last_result", "models", "byName", "by_type")
"""Objects whose keys are names."""
_FREE = ("input", "args", "arguments", "parameters")
"""Objects that hold what the model wrote."""
_KINDS = ("method", "type", "subtype", "role", "status", "state")


@dataclass(frozen=True)
class Difference:
    """How a second output differs from a first.

    Args:
        change: "new" is only in the second, "gone" only in the first, and "different" is in both.
        what: "exit code", "first line of stderr", "text", "line", or "key", which includes the type of its value.
        kind: the kind of the event.
        place: the event before a line, or the path of a key.
        first: what the first has.
        second: what the second has.
        index: the number of the event in the output that has it; of the first if both have it.
    """

    change: str
    what: str
    kind: str = ""
    place: str = ""
    first: str = ""
    second: str = ""
    index: int = field(default=0, compare=False)


def compare_runs(first: CliRun, second: CliRun) -> list[Difference]:
    """List each difference once, in the order of the output."""
    found = []
    if first.code != second.code:
        found.append(Difference("different", "exit code", first=str(first.code), second=str(second.code)))
    ours, theirs = (ran.stderr.partition("\n")[0] for ran in (first, second))
    if ours != theirs:
        found.append(Difference("different", "first line of stderr", first=repr(ours), second=repr(theirs)))
    events, others = parse_events(first.stdout), parse_events(second.stdout)
    if events is not None and others is not None:
        found += _iterate_event_differences(events, others)
    elif first.stdout != second.stdout:
        found.append(Difference("different", "text", first=repr(first.stdout), second=repr(second.stdout)))
    return list(dict.fromkeys(found))


def _iterate_event_differences(events: list[dict[str, Any]], others: list[dict[str, Any]]) -> Iterator[Difference]:
    matcher = SequenceMatcher(None, [*map(find_kind, events)], [*map(find_kind, others)], autojunk=False)
    for what, start, end, low, high in matcher.get_opcodes():
        if what == "equal":
            for index, event, other in zip(range(start, end), events[start:end], others[low:high], strict=True):
                yield from _iterate_key_differences(find_kind(event), event, other, index)
            continue
        after = find_kind(events[start - 1]) if start else "the start"
        for index in range(start, end):
            yield Difference("gone", "line", find_kind(events[index]), after, index=index)
        for index in range(low, high):
            yield Difference("new", "line", find_kind(others[index]), after, index=index)


def _iterate_key_differences(
    kind: str, event: dict[str, Any], other: dict[str, Any], index: int
) -> Iterator[Difference]:
    real, fake = dict(_iterate_shape(event)), dict(_iterate_shape(other))
    for path in sorted(real.keys() - fake.keys()):
        if _is_first(path, real, fake):
            yield Difference("gone", "key", kind, path, first=real[path], index=index)
    for path in sorted(fake.keys() - real.keys()):
        if _is_first(path, fake, real):
            yield Difference("new", "key", kind, path, second=fake[path], index=index)
    for path in sorted(real.keys() & fake.keys()):
        if real[path] != fake[path]:
            yield Difference("different", "key", kind, path, real[path], fake[path], index)


def list_differences(real: CliRun, fake: CliRun) -> list[str]:
    """List in words how the fake's output differs from the real CLI's."""
    return [_describe(difference) for difference in compare_runs(real, fake)]


def _describe(found: Difference) -> str:
    who = {"gone": "the fake lacks", "new": "only the fake has", "different": "the fake has"}[found.change]
    if found.what == "line":
        return f"after {found.place}: {who} {found.kind}"
    if found.what != "key":
        return f"{found.what}: {found.first}, {who} {found.second}"
    if found.change == "different":
        return f"{found.kind}: {found.place} is {found.first}, in the fake {found.second}"
    return f"{found.kind}: {who} {found.place} ({found.first or found.second})"


def list_kinds(stdout: str) -> list[str]:
    """List the kinds of the events."""
    return [find_kind(event) for event in parse_events(stdout) or []]


def find_kind(event: dict[str, Any]) -> str:
    """Say which kind of event it is."""
    if "jsonrpc" in event:
        return _find_kind_of_message(event)
    inner = [event.get(name) for name in ("event", "item", "assistantMessageEvent", "message", "response", "request")]
    inner += [event.get(name) for name in ("attachment", "payload")]  # of a line in a session file
    for outer in (event.get("params"), event.get("result")):
        inner += [outer.get(name) for name in ("item", "turn", "status")] if isinstance(outer, dict) else []
    parts = [event, *(part for part in inner if isinstance(part, dict))]
    words = [str(part[name]) for part in parts for name in _KINDS if isinstance(part.get(name), str)]
    words += [str(event.get("command"))] if event.get("type") == "response" else []  # of pi
    content = (event.get("message") or {}).get("content", ()) if isinstance(event.get("message"), dict) else ()
    blocks = [block["type"] for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    return ".".join([*dict.fromkeys(words), *blocks]) or f"object {event.get('id', '')}".strip()


def _find_kind_of_message(message: dict[str, Any]) -> str:
    """Say which update, request or response of JSON-RPC it is."""
    if "method" not in message:
        return f"{'error' if 'error' in message else 'response'} {message.get('id')}"
    update = message.get("params", {}).get("update", {})
    return ".".join(
        str(word) for word in (message["method"], update.get("sessionUpdate"), update.get("status")) if word
    )


def parse_events(stdout: str) -> list[dict[str, Any]] | None:
    """Give the events of an output; None: it is text."""
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
