"""Owns the check of what agents asked and were told, as their side tells it; refuses to ask the subject."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from pytest_agentproc.record import duration
from pytest_agentproc.verdict._rows import Finding, Played, Verdict, fits_duration
from pytest_agentproc.verdict._words import show_asked

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pytest_agentproc.record import Record

__all__ = ["ASKED_CHECKS", "questions"]

Question = dict[str, Any]


def questions(record: Record) -> list[Question]:
    """List every question, in the order in which they were asked, with its answer and the time that took."""
    asked: dict[tuple[str, int], Question] = {}
    begun: dict[tuple[str, int], int] = {}
    for at, code, data in record.events:
        if code != "m" or "by" in data or ("asked" not in data and "answered" not in data):
            continue
        key = data["process"], data["number"]
        if "asked" in data:
            asked[key] = {"kind": data["kind"], "name": data["asked"], "answer": "none", "after": None}
            begun[key] = at
        elif key in asked:
            asked[key] |= {"answer": data["answer"], "after": at - begun[key]}
    return list(asked.values())


def _asked(played: Played, wanted: Sequence[Mapping[str, Any]]) -> Finding:
    seen = questions(played.record)
    for number, (due, came) in enumerate(zip_longest(wanted, seen), 1):
        hint = _difference(played, due, came)
        if hint:
            return Finding(Verdict.FAILED, show_asked(seen), f"question {number}: {hint}")
    return Finding(Verdict.PASSED, show_asked(seen))


def _difference(played: Played, due: Mapping[str, Any] | None, came: Question | None) -> str:
    """Tell in what a question differs from the one that was expected; nothing if in nothing that is checked."""
    if due is None or came is None:
        return "it was not expected" if due is None else "it was not asked"
    if (due["kind"], due["name"]) != (came["kind"], came["name"]):
        return "another one was asked"
    if due["answer"] not in (None, came["answer"]):
        return "it was never answered" if came["answer"] == "none" else f"it was told {came['answer']}"
    wanted, after = due["after"], came["after"]
    if wanted is None or (after is not None and fits_duration(played, wanted, after)):
        return ""
    if after is None:
        return "it was never answered"
    return f"the answer came {duration(abs(after - wanted))} {'later' if after > wanted else 'earlier'}"


ASKED_CHECKS: dict[str, Callable[[Played, Any], Finding]] = {"asked": _asked}
