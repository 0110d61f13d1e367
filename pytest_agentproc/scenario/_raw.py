"""Owns the forms of `raw`: which bytes a step means, and where they are cut. Refuses to know who writes them."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_agentproc.files import read_inside
from pytest_agentproc.scenario._expressions import NotApplicable
from pytest_agentproc.scenario._fields import Either, Fields, Key
from pytest_agentproc.scenario._kinds import Choice, ListOf, Size, Text, Time, Whole
from pytest_agentproc.scenario._words import shorten

if TYPE_CHECKING:
    from pytest_agentproc.scenario._check import Check
    from pytest_agentproc.scenario._nodes import Node
    from pytest_agentproc.scenario._script import ProgramStep, Scope, Step

__all__ = ["RAW", "build_raw"]

_LARGEST = 64 * 1024**2
_MOST = 2 * _LARGEST
"""So many bytes a script may hold where a subject's limits say how many there are."""
_SOURCES = ("text", "hex", "file", "base64")


@dataclass(frozen=True)
class _Pieces:
    """What a raw step writes: pieces with a gap between them, on one stream; or one piece, whole, up to a size."""

    stream: str
    pieces: tuple[bytes, ...]
    gap: Any
    size: Any = None


def build_raw(step: Step, scope: Scope) -> list[ProgramStep]:
    """Compile to `bytes`, with a `sleep` between the pieces if there is a gap."""
    value: _Pieces = step.value
    if value.size is not None:
        [piece] = value.pieces
        times = -(-scope.size(value.size) // len(piece))
        if not scope.takes(len(piece) * times, _MOST):
            raise NotApplicable(f"smaller limits (the raw steps would have more than {_MOST} bytes)", step.line)
        return [(step.line, "bytes", (value.stream, piece * times))]
    gap = scope.ns(value.gap)
    steps: list[ProgramStep] = []
    for piece in value.pieces:
        if steps and gap is not None:
            steps.append((step.line, "sleep", (gap,)))
        steps.append((step.line, "bytes", (value.stream, piece)))
    return steps


def _finish(values: dict[str, Any], node: Node, what: str, check: Check) -> _Pieces | None:
    data = _data(values, node, what, check)
    if data is None:
        return None
    if "size" in values:
        return _sized(data, values, node, what, check)
    repeat = values.get("repeat", 1)
    if len(data) * repeat > _LARGEST:
        check.at(
            node, f"{what} would be {len(data) * repeat} bytes: at most {_LARGEST} are possible, use flood for more"
        )
        return None
    if not _counted(len(data) * repeat, node, check):
        return None
    data *= repeat
    cuts: list[int] = values.get("cut", [])
    if cuts != sorted(set(cuts)) or (cuts and cuts[-1] >= len(data)):
        check.at(
            node, f"{what}.cut must rise and end before the last byte: {what} has {len(data)} bytes, cut is {cuts}"
        )
    if "gap" in values and not cuts:
        check.at(node, f"{what}.gap is the time between pieces: say with cut where they begin")
    edges = [0, *cuts, len(data)]
    pieces = tuple(data[start:end] for start, end in pairwise(edges))
    return _Pieces(values.get("to", "stdout"), pieces, values.get("gap"))


def _sized(data: bytes, values: dict[str, Any], node: Node, what: str, check: Check) -> _Pieces:
    for other in ("repeat", "cut", "gap"):
        if other in values:
            check.at(node, f"{what} has both size and {other}: a size repeats the bytes until there are as many")
    if not data:
        check.at(node, f"{what}.size repeats the bytes, and there are none")
    if isinstance(values["size"], int):
        _counted(values["size"], node, check)
    return _Pieces(values.get("to", "stdout"), (data,), None, values["size"])


def _counted(size: int, node: Node, check: Check) -> bool:
    """Count what the raw steps of a file have together; return whether that is possible."""
    check.raw_bytes += size
    if check.raw_bytes > _LARGEST:
        check.at(node, f"the raw steps of this file have more than {_LARGEST} bytes together: use flood for more")
    return check.raw_bytes <= _LARGEST


def _data(values: dict[str, Any], node: Node, what: str, check: Check) -> bytes | None:
    source = next(name for name in _SOURCES if name in values)
    text: str = values[source]
    try:
        if source == "hex":
            return bytes.fromhex(text)
        if source == "base64":
            return base64.b64decode("".join(text.split()), validate=True)
    except (ValueError, binascii.Error):
        sample = "e2 82 ac" if source == "hex" else "4oKs"
        check.at(node, f"{what}.{source} cannot be decoded: it looks like {sample}")
        return None
    return text.encode() if source == "text" else _file(text, node, what, check)


def _file(name: str, node: Node, what: str, check: Check) -> bytes | None:
    if check.folder is None:
        check.at(node, f"{what}.file needs a scenario that is a file itself: its folder is where the named file stands")
        return None
    try:
        folder = Path(check.folder).resolve()
        path = Path(folder, name).resolve()
        if not path.is_relative_to(folder):
            check.at(node, f'{what}.file "{shorten(name)}" leaves the folder of the scenario: copy the file into it')
            return None
        if not path.is_file():
            check.at(node, f'{what}.file "{shorten(name)}" is no file in the folder of the scenario')
            return None
        if path.stat().st_size > _LARGEST:
            check.at(
                node, f'{what}.file "{shorten(name)}" has {path.stat().st_size} bytes: at most {_LARGEST} are possible'
            )
            return None
        return read_inside(folder, path, _LARGEST)
    except (OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        check.at(node, f'{what}.file "{shorten(name)}" cannot be read: {reason}')
        return None


_FORMS = Fields(
    (
        Key("text", Text(), "the bytes, as text in UTF-8"),
        Key("hex", Text("HEX"), "the bytes, as pairs of hexadecimal digits; blanks do not count"),
        Key("file", Text("FILE", may_be_empty=False), "the bytes are a file's, which stays in the scenario's folder"),
        Key("base64", Text("BASE64"), "the bytes, in base64"),
        Key("repeat", Whole(1, _LARGEST), "so many times"),
        Key("size", Size(1, _LARGEST, bindable=True), "repeated, whole, until there are at least so many"),
        Key("cut", ListOf(Whole(1, _LARGEST)), "offsets in bytes at which one write ends and the next begins"),
        Key("gap", Time(), "the time between the pieces"),
        Key("to", Choice(("stdout", "stderr")), "the stream; stdout if absent"),
    ),
    one_of=_SOURCES,
    finish=_finish,
)


RAW = Either(Text(), _FORMS, key="text")
