"""From a fake's notes to events of the record: one translation for hub and model. Values only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_agentproc import events
from pytest_agentproc.vocabulary import format_signal_name

if TYPE_CHECKING:
    from collections.abc import Callable


def convert_note_to_event(at: int, process: str, code: str, data: Any) -> events.Event:
    """Turn a participant's note into an event of the record."""
    return _MAKER_BY_CODE[code](at, process, data)


def _make_input_event(at: int, process: str, data: bytes) -> events.Event:
    return events.InputRead(at, process, data) if data else events.InputEnded(at, process)


_MAKER_BY_CODE: dict[str, Callable[[int, str, Any], events.Event]] = {
    "o": lambda at, process, data: events.OutputWritten(at, process, data, "stdout"),
    "e": lambda at, process, data: events.OutputWritten(at, process, data, "stderr"),
    "i": _make_input_event,
    "m": lambda at, process, data: events.StepBegun(at, process, data[1], line=data[0]),
    "s": lambda at, process, data: events.SignalCaught(at, process, format_signal_name(data)),
    "c": events.StreamClosed,
    "b": events.StreamBroken,
    "g": events.StartReported,
    "q": lambda at, process, data: events.decode_event(at, "m", {"process": process, **data}),
}
