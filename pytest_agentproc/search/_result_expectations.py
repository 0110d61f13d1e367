"""Owns the results of a play, as the expectations of a scenario: the reference's results must be true."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_agentproc.events import ProcessStarted
from pytest_agentproc.scenario import quote_yaml_text
from pytest_agentproc.search._draws import format_exact_time
from pytest_agentproc.verdict import find_returned_at, list_signals
from pytest_agentproc.vocabulary import Outcome

if TYPE_CHECKING:
    from pytest_agentproc.plays import PlayResult
    from pytest_agentproc.record import Record
    from pytest_agentproc.vocabulary import RunReport


_EXPECT_KEYS_OF_TURNS = ("outcome", "exit_code", "text", "transcript", "elapsed")
_EXPECT_KEYS_OF_BACKGROUND_TURNS = ("outcome", "exit_code", "elapsed")
"""The values that a verdict on an ordinary scenario asks of every supervisor; the text only where it is an answer."""
_OUTCOMES_WITH_AN_ANSWER = (Outcome.COMPLETED, Outcome.TOOL_USE)


def collect_expect_keys(played: PlayResult, *, of_others: bool = False) -> dict[str, Any] | None:
    """Give what came of a play as expect keys, with their values in the language's words.

    Args:
        played: a run, or a session; it says nothing of several sessions.
        of_others: whether it is only facts that must be true of every supervisor: how each turn ended, with which code,
            when, and with which answer. How the reference signals, warns and shows it is its own style.

    Returns:
        the keys; None if the play came to no answer.
    """
    answer, record = played.answer, played.record
    if answer is None or played.bound.parts:
        return None
    if of_others:
        return _collect_common_keys(answer)
    if answer.turns is None:
        keys: dict[str, Any] = _collect_turn_keys(answer)
    else:
        keys = {"turns": [_collect_turn_keys(turn) for turn in answer.turns]}
        keys["background"] = [_collect_turn_keys(turn) for turn in answer.background or ()]
        keys["status"] = list(answer.statuses or ())
        keys["spawns"] = [format_exact_time(at) for at in _list_spawn_times(record)]
        if answer.viewers:
            views = answer.viewers.items()
            keys["viewers"] = {name: {"status": view.status, "transcript": view.transcript} for name, view in views}
        if answer.called:
            keys["called"] = [{name: format_exact_time(at)} for name, at in answer.called]
    keys["signals"] = [{name: format_exact_time(at)} for name, at in list_signals(record)]
    if answer.warnings is not None:
        keys["warnings"] = list(answer.warnings)
    at = find_returned_at(record)
    if at is not None:
        keys["returned"] = format_exact_time(at)
    return keys


def _collect_common_keys(answer: RunReport) -> dict[str, Any]:
    if answer.turns is None:
        return _collect_common_turn_keys(answer)
    keys: dict[str, Any] = {"turns": [_collect_common_turn_keys(turn) for turn in answer.turns]}
    keys["background"] = [{"text": turn.text} for turn in answer.background or ()]
    return keys


def _collect_common_turn_keys(answer: RunReport) -> dict[str, Any]:
    return _collect_turn_keys(
        answer,
        (*_EXPECT_KEYS_OF_BACKGROUND_TURNS, "text")
        if answer.outcome in _OUTCOMES_WITH_AN_ANSWER
        else _EXPECT_KEYS_OF_BACKGROUND_TURNS,
    )


def _collect_turn_keys(answer: RunReport, names: tuple[str, ...] = _EXPECT_KEYS_OF_TURNS) -> dict[str, Any]:
    found = {name: getattr(answer, name) for name in names}
    values = {name: value for name, value in found.items() if value is not None}
    if "elapsed" in values:
        values["elapsed"] = format_exact_time(values["elapsed"])
    if "outcome" in values:
        values["outcome"] = str(values["outcome"])
    return values


def _list_spawn_times(record: Record) -> list[int]:
    return [event.at for event in record.events if isinstance(event, ProcessStarted) and event.is_agent]


def format_expect_lines(keys: dict[str, Any]) -> list[str]:
    """Write expect keys as lines of YAML."""
    lines = ["expect:"]
    for name, value in keys.items():
        if name in ("turns", "background") and value:
            lines += [f"  {name}:", *(f"    - {_format_inline(item)}" for item in value)]
        else:
            lines.append(f"  {name}: {_format_inline(value)}")
    return lines


def _format_inline(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {_format_inline(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_format_inline, value)) + "]"
    if isinstance(value, str) and value.replace("_", "").isalnum() and value.isascii():
        return value if value not in ("true", "false", "null") else json.dumps(value)
    return quote_yaml_text(value) if isinstance(value, str) else json.dumps(value)
