"""The first difference of two plays, as text. Values in, text out; knows no process."""

from __future__ import annotations

import hashlib
from dataclasses import fields
from itertools import zip_longest
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.benchmarks._cases import ObservedPlay

__all__ = ["describe_difference"]

_BEFORE = 6
_AFTER = 3
_SHOWN = 160


def describe_difference(foretold: ObservedPlay, real: ObservedPlay) -> str:
    """Give the first difference in full, with the lines around it; nothing if both are equal."""
    if foretold == real:
        return ""
    pairs = zip_longest(foretold.timeline, real.timeline)
    place = next((index for index, (foretold_event, other) in enumerate(pairs) if foretold_event != other), None)
    if place is not None:
        return _describe_timelines(foretold, real, place)
    if foretold.fault != real.fault:
        return f"  the model ends in {foretold.fault or 'no fault'}, the run in {real.fault or 'no fault'}"
    return "\n".join(_describe_answers(foretold, real))


def _describe_timelines(foretold: ObservedPlay, real: ObservedPlay, place: int) -> str:
    lines = [f"  first difference at event {place} (model: {len(foretold.timeline)} events, run: {len(real.timeline)})"]
    lines += [f"    both   {_describe_event(event)}" for event in foretold.timeline[max(0, place - _BEFORE) : place]]
    for name, seen in (("model", foretold), ("run", real)):
        for number, event in enumerate(seen.timeline[place : place + 1 + _AFTER]):
            lines.append(f"  {'>' if number == 0 else ' '} {name:6} {_describe_event(event)}")
        if len(seen.timeline) <= place:
            lines.append(f"  > {name:6} nothing more")
    if real.fault:
        lines.append(f"  the run ended in a {real.fault}")
    return "\n".join(lines)


def _describe_answers(foretold: ObservedPlay, real: ObservedPlay) -> list[str]:
    lines = ["  the timelines are equal, the answers are not"]
    for number, (foretold_answer, other) in enumerate(zip(foretold.answers, real.answers, strict=True), 1):
        if foretold_answer is None or other is None:
            if foretold_answer is not other:
                lines.append(f"  answer {number}: model {foretold_answer!r}, run {other!r}")
            continue
        for field in fields(foretold_answer):
            wanted, seen = getattr(foretold_answer, field.name), getattr(other, field.name)
            if wanted != seen:
                lines.append(
                    f"  answer {number}, {field.name}: model {_shorten_value(wanted)}, run {_shorten_value(seen)}"
                )
    return lines


def _describe_event(event: tuple[object, ...]) -> str:
    at, code, process, by, rest = event
    assert isinstance(at, int)
    assert isinstance(rest, tuple)
    seconds, nanoseconds = divmod(at, 1_000_000_000)
    words = " ".join(f"{name}={_shorten_value(value)}" for name, value in rest)
    return f"{seconds}.{nanoseconds:09d} {code} {process}{f' (by {by})' if by else ''} {words}"


def _shorten_value(value: object) -> str:
    """Write a value in full; of a long text its size, its hash and its ends."""
    text = repr(value)
    if len(text) <= _SHOWN or not isinstance(value, (bytes, str)):
        return text
    data = value.encode() if isinstance(value, str) else value
    head, tail = data[: _SHOWN // 4], data[-_SHOWN // 4 :]
    return f"{head!r}...{tail!r} ({len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()[:12]})"
