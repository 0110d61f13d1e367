"""Owns the checks of the files that a supervisor kept, as they were found after the run; refuses to ask the subject."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pytest_agentproc.plays import PlayResult
from pytest_agentproc.record import format_instant
from pytest_agentproc.verdict._rows import Finding, Verdict, is_duration_as_wanted
from pytest_agentproc.verdict._value_text import (
    is_text_matching,
    join_names,
    judge_text,
    quote,
    show_matcher,
    show_usage,
)
from pytest_agentproc.vocabulary import NANOSECONDS_PER_SECOND

_RESULT_FILE_NAME = "result.json"
_RESULT_FIELDS_IN_SECONDS = ("elapsed", "returned")

JudgeTime = Callable[[PlayResult, int, int], Finding]


def build_artifacts_check(path: str, time_finding: JudgeTime) -> Callable[[PlayResult, Any], Finding]:
    """Give the check under `artifacts`.

    Args:
        path: what follows: nothing, a file's name, or `result.json.FIELD`.
        time_finding: compares a wanted time with one that was seen.
    """

    def check_artifact(played: PlayResult, wanted: Any) -> Finding:
        files = played.artifacts
        if files is None:
            return Finding(Verdict.NOT_APPLICABLE, "the subject keeps no artifacts")
        if not path:
            return Finding.from_comparison(fits=not files, seen=join_names(sorted(files)))
        field = path.removeprefix(f"{_RESULT_FILE_NAME}.")
        if field == path:
            return _check_artifact_text(files.get(path), wanted)
        fields = _read_result_fields(files.get(_RESULT_FILE_NAME))
        if not isinstance(fields, Mapping) or field not in fields:
            return Finding(Verdict.FAILED, fields if isinstance(fields, str) else f"{_RESULT_FILE_NAME} has no {field}")
        if field in _RESULT_FIELDS_IN_SECONDS and isinstance(fields[field], int | float):
            return _check_artifact_time(played, wanted, fields[field], time_finding)
        return Finding.from_comparison(
            fits=_is_field_as_wanted(field, fields[field], wanted), seen=_show_field(field, fields[field])
        )

    return check_artifact


def show_artifact(path: str, wanted: Any) -> str:
    """Write what is expected under `artifacts`."""
    if wanted is None:
        return "none"
    field = path.removeprefix(f"{_RESULT_FILE_NAME}.")
    if field in _RESULT_FIELDS_IN_SECONDS:
        return format_instant(wanted)
    is_matcher = isinstance(wanted, Mapping) and field not in ("usage", "unwritten")
    return _show_matcher(wanted) if is_matcher else _show_field(field, wanted)


def _check_artifact_time(played: PlayResult, wanted: int, seconds: float, time_finding: JudgeTime) -> Finding:
    """Compare a time with one in a file: the run's clock is meant, and who keeps time by itself wrote its own.

    It counts from when the start was through.
    """
    scale = played.record.header.get("scale", 1)
    seen = [round(seconds * unit * NANOSECONDS_PER_SECOND) for unit in dict.fromkeys((1, scale))]
    near = min(seen, key=lambda item: abs(item - wanted))
    if is_duration_as_wanted(played, wanted, near):
        return Finding(Verdict.PASSED, format_instant(near))
    return time_finding(played, wanted, near)


def _check_artifact_text(data: bytes | None, wanted: Mapping[str, str] | None) -> Finding:
    if data is None:
        return Finding.from_comparison(fits=wanted is None, seen="no such file")
    if wanted is not None and "hex" in wanted:
        return Finding.from_comparison(fits=data.hex() == wanted["hex"], seen=quote(data.hex()))
    text = data.decode(errors="replace")
    return Finding(Verdict.FAILED, quote(text)) if wanted is None else judge_text(wanted, text)


def _read_result_fields(data: bytes | None) -> Mapping[str, Any] | str:
    """Read result.json, or say why it cannot be read."""
    if data is None:
        return "no such file"
    try:
        fields = json.loads(data)
    except (ValueError, RecursionError):
        return f"{_RESULT_FILE_NAME} is no JSON: {quote(data.decode(errors='replace'))}"
    return fields if isinstance(fields, dict) else f"{_RESULT_FILE_NAME} is no object"


def _is_field_as_wanted(field: str, observed: Any, wanted: Any) -> bool:
    if wanted is None or observed is None:
        return observed is wanted
    if field == "argv":
        return isinstance(observed, Sequence) and list(observed[1:]) == wanted
    if field == "usage":
        return isinstance(observed, Mapping) and all(
            name in observed and observed[name] == wanted[name] for name in wanted
        )
    if isinstance(wanted, Mapping) and field != "unwritten":
        return isinstance(observed, str) and is_text_matching(observed, wanted)
    return type(observed) is type(wanted) and bool(observed == wanted)


def _show_field(field: str, value: Any) -> str:
    if field == "usage" and isinstance(value, Mapping):
        return show_usage(value)
    return json.dumps(value, ensure_ascii=False) if value is not None else "none"


def _show_matcher(matcher: Mapping[str, str]) -> str:
    return show_matcher(matcher) if "hex" not in matcher else f"hex {quote(matcher['hex'])}"
