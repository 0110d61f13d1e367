"""Owns the times of a play as its expectations may state them, and expectations with other times. Judges nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_agentproc.verdict import _facts
from pytest_agentproc.verdict._agent_checks import list_agent_questions
from pytest_agentproc.verdict._facts import select_session_play
from pytest_agentproc.vocabulary import NANOSECONDS_PER_SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_agentproc.plays import PlayResult
    from pytest_agentproc.record import Record
    from pytest_agentproc.vocabulary import RunReport


InstantsInNanoseconds = list[int | None]


def find_instants(played: PlayResult, key: str) -> InstantsInNanoseconds | None:
    """Give the times that were seen of an expect key, one for each item that it may state.

    Returns:
        whole nanoseconds, None where an item had no time; None for a key that states no times, or none that are seen
        (`alive_at` is a claim about a stretch of time), and for a subject that does not tell.
    """
    played, key = select_session_play(played, key)
    head, _, leaf = key.rpartition(".")
    if head.startswith("processes."):
        return _find_process_instants(played.record, head.removeprefix("processes."), leaf)
    if head == "artifacts.result.json":
        return _find_result_instants(played, leaf)
    if leaf == "elapsed":
        return _list_elapsed_times(played.answer, head)
    if key == "called":
        called = None if played.answer is None else played.answer.called
        return None if called is None else [at for _, at in called]
    return _FINDERS_BY_EXPECT_KEY[key](played.record) if key in _FINDERS_BY_EXPECT_KEY else None


_FINDERS_BY_EXPECT_KEY: dict[str, Callable[[Record], InstantsInNanoseconds]] = {
    "returned": lambda record: [_facts.find_returned_at(record)],
    "signals": lambda record: [at for _, at in _facts.list_signals(record)],
    "spawns": lambda record: [at for _, at in _facts.list_agent_starts(record)],
    "asked": lambda record: [question["after"] for question in list_agent_questions(record)],
}


def _find_process_instants(record: Record, process: str, leaf: str) -> InstantsInNanoseconds | None:
    if leaf == "signals":
        return [at for _, at in _facts.list_signals(record, process)]
    return [_facts.find_gone_at(record, process)] if leaf == "gone_at" else None


def _list_elapsed_times(answer: RunReport | None, head: str) -> InstantsInNanoseconds | None:
    """Give how long a run took, or one of a session's turns."""
    if answer is None:
        return None
    if not head:
        return [answer.elapsed]
    kind, _, number = head.partition(".")
    turns = (answer.turns if kind == "turns" else answer.background) or ()
    return [turns[int(number) - 1].elapsed] if int(number) <= len(turns) else None


def _find_result_instants(played: PlayResult, field: str) -> InstantsInNanoseconds | None:
    data = (played.artifacts or {}).get("result.json")
    if data is None or field not in ("elapsed", "returned"):
        return None
    value = json.loads(data).get(field)
    return None if value is None else [round(value * NANOSECONDS_PER_SECOND)]


def replace_instants(wanted: Any, times: Sequence[int | None]) -> Any:
    """Give the normal form of what a key wants with other times; unchanged if it is about another number of items.

    Args:
        wanted: as `Expectation.wanted`.
        times: what `find_instants` gives.
    """
    items = wanted if isinstance(wanted, list) else [wanted]
    if len(items) != len(times):
        return wanted
    replaced = [_replace_instant(item, at) for item, at in zip(items, times, strict=True)]
    return replaced if isinstance(wanted, list) else replaced[0]


def _replace_instant(item: Any, at: int | None) -> Any:
    if at is None or (isinstance(item, dict) and item["after"] is None):
        return item
    if isinstance(item, dict):
        return {**item, "after": at}
    return (item[0], at) if isinstance(item, tuple) else at
