"""Owns the check on signals that were not meant for the run: whom they hit, who sent them, and why that is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_agentproc.record import stray_target
from pytest_agentproc.verdict._rows import Finding, Played, Verdict

if TYPE_CHECKING:
    from pytest_agentproc.record import Event

__all__ = ["check_bystanders", "strays"]

_SHOWN = 3
_WHY = {
    "everything": "kill(-1), or a group of number 1, reaches every process that this user may signal; nobody got it",
    "own group": "pytest is in it and so are other tests, and nobody got it: start the agent in a session of its own",
    "itself": "it has no handler of the supervisor's for that, and did not get it",
    "process": "it is no part of this run, and did not get it: signal what was started, not what is named alike",
    "reused": "it is no part of this run, and did not get it: a pid is anybody's once its process is reaped",
    "group": "nobody in it is a part of this run, and nobody got it: a group's number is free once all in it are gone",
    "canary": "a process beside the run, which nobody has a reason to signal",
}


def strays(played: Played) -> list[Event]:
    """List the signals that were not meant for the run, in order; those for a pid that was free are among them."""
    return [event for event in played.record.events if event.code == "m" and "stray" in event.data]


def check_bystanders(played: Played, _wanted: str) -> Finding:
    """Say whether every process beside the run was left alone. A signal for a pid that is free harms nobody."""
    found = strays(played)
    harms = [event for event in found if event.data["to"] != "freed"]
    if not harms:
        return Finding(Verdict.PASSED, "; ".join(["unharmed", *_shown(found)]))
    whys = dict.fromkeys(_why(event) for event in harms)
    return Finding(Verdict.FAILED, "; ".join(_shown(harms)), "; ".join(whys))


def _shown(events: list[Event]) -> list[str]:
    words = [_words(event) for event in events[:_SHOWN]]
    return [*words, f"{len(events) - _SHOWN} more"] if len(events) > _SHOWN else words


def _words(event: Event) -> str:
    place = event.data.get("place")
    words = f"{event.data['stray']} to {stray_target(event.data)}"
    return f"{words}, sent by {place}" if place else words


def _why(event: Event) -> str:
    return _WHY[event.data["to"]] + (", and nobody knows who did" if event.data.get("origin") == "unknown" else "")
