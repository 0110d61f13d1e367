"""Owns the checks of how often the agent was started, as the agents' side tells it; refuses to ask the subject."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_agentproc.record import instant
from pytest_agentproc.verdict._facts import gone_at, invocations
from pytest_agentproc.verdict._rows import Finding, Played, Verdict, fits_time
from pytest_agentproc.verdict._words import listed, show_instants

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["INVOCATION_CHECKS"]


def _spawns(played: Played, wanted: Sequence[int]) -> Finding:
    seen = [at for _, at in invocations(played.record)]
    if len(seen) == len(wanted) and all(fits_time(played, *pair) for pair in zip(wanted, seen, strict=True)):
        return Finding(Verdict.PASSED, show_instants(seen))
    more = [f"{name}, started at {instant(at)}, was not expected" for name, at in invocations(played.record)]
    return Finding(Verdict.FAILED, show_instants(seen), "; ".join(more[len(wanted) :]))


def _alive_at_once(played: Played, wanted: int) -> Finding:
    """Count at each start; who ended at that very instant is not counted, so that no order within one decides.

    In real time an end may be heard of late.
    """
    late = played.tolerance
    lives = [(name, at, gone_at(played.record, name)) for name, at in invocations(played.record)]
    most: list[str] = []
    for newest, at, _ in lives:
        beside = [name for name, start, end in lives if start <= at and (end is None or end > at + late)]
        most = max(most, beside if newest in beside else [*beside, newest], key=len)
    verdict = Verdict.PASSED if len(most) == wanted else Verdict.FAILED
    return Finding(verdict, str(len(most)), listed(most) if verdict is Verdict.FAILED else "")


INVOCATION_CHECKS: dict[str, Callable[[Played, Any], Finding]] = {"spawns": _spawns, "alive_at_once": _alive_at_once}
