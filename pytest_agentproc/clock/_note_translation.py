"""From a fake's notes to events of the record: one translation for hub and model. Values only."""

from __future__ import annotations

from typing import Any

from pytest_agentproc.vocabulary import format_signal_name


def convert_note_to_event(about: dict[str, Any], code: str, data: Any) -> tuple[str, dict[str, Any]]:
    """Turn a participant's note into an event of the record."""
    if code in "oe" or (code == "i" and data):
        return code, about | {"bytes": data}
    if code == "i":
        return "i", about | {"eof": True}
    if code == "s":
        return "s", about | {"signal": format_signal_name(data)}
    if code == "c":
        return _EVENT_CODE_BY_STREAM[data], about | {"closed": True}
    if code == "b":
        return _EVENT_CODE_BY_STREAM[data], about | {"broken": True}
    assert code in "gq"
    return "m", about | ({"given": data} if code == "g" else data)


_EVENT_CODE_BY_STREAM = {"stdin": "i", "stdout": "o", "stderr": "e"}
