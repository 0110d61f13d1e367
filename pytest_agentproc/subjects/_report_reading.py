"""Owns how the answer of a foreign supervisor is read. Pure: values in, a `RunReport` or the mistake in them out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from itertools import groupby
from typing import Any

from pytest_agentproc.errors import AdapterError, suggest_known_word
from pytest_agentproc.foreign import format_foreign_value
from pytest_agentproc.vocabulary import NANOSECONDS_PER_SECOND, VIEWED_KINDS, Outcome, RunReport, View, find_remedy

_FIELDS_OF_RUN_REPORTS = tuple(field.name for field in fields(RunReport))
_OUTCOME_WORDS = tuple(outcome.value for outcome in Outcome)
_MAX_QUOTED_VALUE_CHARS = 80


def read_answer(given: Any, scale: float = 1) -> RunReport:
    """Make a `RunReport` of what a supervisor gave.

    Args:
        given: a `RunReport`, a mapping of its fields (times in seconds, as the supervisor's own clock measured them),
            the
            name of an outcome, or None.
        scale: the factor by which the play's clock was faster than that clock.

    Raises:
        AdapterError: it is none of these, or a field is unknown or of a wrong type; the text says which.
    """
    return RunReport() if given is None else _read_report_fields(given, "", scale)


def _read_report_fields(given: Any, place: str, scale: float) -> RunReport:
    if isinstance(given, str):
        return RunReport(outcome=_read_outcome(given, place or "the outcome", None))
    unit: float | None = scale * NANOSECONDS_PER_SECOND
    if isinstance(given, RunReport):
        pairs, unit = {name: getattr(given, name) for name in _FIELDS_OF_RUN_REPORTS}, None
    elif isinstance(given, Mapping):
        pairs = dict(given)
    else:
        hint = "its function is no `async def`, or lacks an await: " if hasattr(given, "__await__") else ""
        allowed = "a RunReport, a mapping of its fields, the name of an outcome" + ("" if place else ", or None")
        raise AdapterError(f"it returned {_format_given_value(given, place)}\n{hint}give {allowed}")
    before = f"{place}: " if place else ""
    for name in pairs:
        if name not in _FIELDS_OF_RUN_REPORTS:
            raise AdapterError(
                f"it returned {before}the field {name!r}, which no answer has\n"
                f"{suggest_known_word(name, _FIELDS_OF_RUN_REPORTS, remedy=find_remedy('report field', name))}"
            )
    read = {
        name: _READERS_BY_FIELD[name](value, before + name, scale if name in _FIELDS_WITH_NESTED_REPORTS else unit)
        for name, value in pairs.items()
        if value is not None
    }
    return RunReport(**read)


FieldReader = Callable[[Any, str, Any], Any]


def _read_outcome(given: Any, place: str, _unit: object) -> str:
    if isinstance(given, str) and given in _OUTCOME_WORDS:
        return str(given)
    hint = suggest_known_word(given, _OUTCOME_WORDS, remedy=find_remedy("outcome", given))
    raise AdapterError(f"it returned {_format_given_value(given, place)}, which is no outcome\n{hint}")


def _make_type_reader(kind: type, allowed: str) -> FieldReader:
    def read(given: Any, place: str, _unit: object) -> Any:
        if isinstance(given, kind) and (kind is bool or not isinstance(given, bool)):
            return given
        raise _make_error(given, place, allowed)

    return read


def _read_time(given: Any, place: str, unit: float | None) -> int:
    most = _MAX_REPORTED_SECONDS * (1 if unit is not None else NANOSECONDS_PER_SECOND)
    is_number = isinstance(given, int | float) and not isinstance(given, bool) and 0 <= given <= most
    if unit is not None and is_number:
        return round(float(given) * unit)
    if is_number and isinstance(given, int):
        return int(given)
    if unit is not None:
        raise _make_error(given, place, f"seconds (a number from 0 to {_MAX_REPORTED_SECONDS})")
    raise _make_error(given, place, "whole nanoseconds in a RunReport; in a mapping it is seconds")


def _read_bytes(given: Any, place: str, _unit: object) -> bytes:
    if isinstance(given, str):
        return given.encode(errors="surrogateescape")
    if isinstance(given, bytes | bytearray):
        return bytes(given)
    raise _make_error(given, place, "bytes or text")


def _read_list_of_texts(given: Any, place: str, _unit: object) -> tuple[str, ...]:
    if isinstance(given, list | tuple) and all(isinstance(word, str) for word in given):
        return tuple(given)
    raise _make_error(given, place, "a list of texts")


def _read_turn_reports(given: Any, place: str, scale: float) -> tuple[RunReport, ...]:
    if not isinstance(given, list | tuple):
        raise _make_error(given, place, "a list with one answer each")
    return tuple(_read_report_fields(answer, f"{place} {number}", scale) for number, answer in enumerate(given, 1))


def _read_sessions(given: Any, place: str, scale: float) -> dict[str, RunReport]:
    if not isinstance(given, Mapping):
        raise _make_error(given, place, "a mapping of names to answers")
    return {str(name): _read_report_fields(answer, f"{place}.{name}", scale) for name, answer in given.items()}


def _read_viewers(given: Any, place: str, _unit: object) -> dict[str, View]:
    allowed = "a mapping of names to {status: ..., transcript: ...}"
    if not isinstance(given, Mapping):
        raise _make_error(given, place, allowed)
    views = {}
    for name, shown in given.items():
        view = (
            shown
            if isinstance(shown, View)
            or not isinstance(shown, Mapping)
            or not _FIELDS_OF_VIEWS - {"saw"} <= set(shown) <= _FIELDS_OF_VIEWS
            else View(**shown)
        )
        if not isinstance(view, View) or not isinstance(view.status, str) or not isinstance(view.transcript, str):
            raise _make_error(shown, f"{place}.{name}", "{status: ..., transcript: ...}, two texts")
        if view.saw is not None:
            if not isinstance(view.saw, list | tuple) or not set(map(str, view.saw)) <= set(VIEWED_KINDS):
                raise _make_error(view.saw, f"{place}.{name}.saw", f"a list of {', '.join(VIEWED_KINDS)}")
            view = replace(view, saw=tuple(kind for kind, _ in groupby(view.saw)))
        views[str(name)] = view
    return views


def _read_hook_calls(given: Any, place: str, unit: float | None) -> tuple[tuple[str, int], ...]:
    pairs = []
    for pair in given if isinstance(given, list | tuple) else (None,):
        if not isinstance(pair, list | tuple) or len(pair) != _ITEMS_PER_HOOK_CALL or not isinstance(pair[0], str):
            raise _make_error(given, place, "a list of (hook, instant)")
        pairs.append((pair[0], _read_time(pair[1], f"{place} {pair[0]}", unit)))
    return tuple(pairs)


_ITEMS_PER_HOOK_CALL = 2
_MAX_REPORTED_SECONDS = 3_000_000_000
"""No run takes longer than a life."""
_FIELDS_OF_VIEWS = {field.name for field in fields(View)}
_FIELDS_WITH_NESTED_REPORTS = ("turns", "background", "sessions")
_read_text = _make_type_reader(str, "text")
_READERS_BY_FIELD: dict[str, FieldReader] = {
    "outcome": _read_outcome,
    "exit_code": _make_type_reader(int, "a whole number"),
    "text": _read_text,
    "transcript": _read_text,
    "stop_reason": _read_text,
    "model": _read_text,
    "usage": _make_type_reader(Mapping, "a mapping"),
    "elapsed": _read_time,
    "agent_status": _make_type_reader(int, "a whole number: an exit code, or minus the number of a signal"),
    "forced": _make_type_reader(bool, "True or False"),
    "error": _read_text,
    "warnings": _read_list_of_texts,
    "noise": _make_type_reader(int, "a whole number"),
    "stderr_tail": _read_bytes,
    "turns": _read_turn_reports,
    "background": _read_turn_reports,
    "statuses": _read_list_of_texts,
    "viewers": _read_viewers,
    "called": _read_hook_calls,
    "sessions": _read_sessions,
}


def _make_error(given: Any, place: str, allowed: str) -> AdapterError:
    return AdapterError(
        f"it returned {_format_given_value(given, place)}\n{place} must be {allowed}, or None for: it does not say"
    )


def describe_type(thing: Any) -> str:
    """Name the type of an object, with its article."""
    name = type(thing).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def _format_given_value(given: Any, place: str) -> str:
    text = format_foreign_value(given)
    try:
        text = repr(given)
    except Exception as error:  # noqa: BLE001  # a foreign class may do what it likes
        text = f"{describe_type(given)} whose repr raised {type(error).__name__}"
    text = text if len(text) <= _MAX_QUOTED_VALUE_CHARS else f"{text[: _MAX_QUOTED_VALUE_CHARS - 3]}..."
    return f"{place} {text}" if place else text
