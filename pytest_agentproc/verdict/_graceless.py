"""Owns what the end of a process looks like where its supervisor states that it gives no grace.

With no time between TERM and KILL nobody can tell whether TERM came: it may be left out, or be overtaken by KILL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_agentproc.verdict import _facts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_agentproc.verdict._facts import Status
    from pytest_agentproc.verdict._rows import Played

__all__ = ["as_one_end", "gives_no_grace", "is_killed_at_once"]

_AFTER_AN_END = ("completed", "failed", "incomplete")
"""Outcomes after which `linger_kill_grace` is the grace of an agent that lives on."""


def gives_no_grace(played: Played, process: str | None = None, at: int | None = None) -> bool:
    """Say whether the grace between TERM and KILL is 0 for a process; where several may count, whether all are.

    Args:
        played: what was played, with the limits that its supervisor states.
        process: the process, as the record calls it; None: any agent.
        at: the instant at which it was to get TERM; None: not known.
    """
    limits = played.bound.policy.nanoseconds()
    return all(limits.get(name) == 0 for name in _graces(played, process, at))


def _graces(played: Played, process: str | None, at: int | None) -> list[str]:
    """Name the graces that may count: of a descendant whose agent had ended by itself it is that of leftovers."""
    is_agent = process is None or process.partition(" ")[0] == "agent"
    if not is_agent and at is not None and _facts.had_ended_alone(played.record, at + played.tolerance):
        return ["leftover_kill_grace"]
    if played.bound.scenario.is_session:
        return ["kill_grace"]
    wanted = next((one.wanted for one in played.bound.expect if one.key == "outcome"), None)
    outcome = wanted if isinstance(wanted, str) else None
    if outcome is None and wanted is not None and played.answer is not None:
        outcome = played.answer.outcome  # it may be one of several
    names = ["kill_grace"] * (outcome not in _AFTER_AN_END)
    return names + ["linger_kill_grace"] * (outcome is None or outcome in _AFTER_AN_END)


def as_one_end(signals: Sequence[tuple[str, int]], tolerance: int, ladder: tuple[str, str]) -> list[tuple[str, int]]:
    """Take the first signal, KILL, and both at the same instant for one and the same."""
    ends: list[tuple[str, int]] = []
    for name, at in signals:
        is_behind_term = name == "KILL" and ends and ends[-1][0] == ladder[0] and at - ends[-1][1] <= tolerance
        if not is_behind_term:
            ends.append((name, at))
    return [("KILL" if name in ladder else name, at) for name, at in ends]


def is_killed_at_once(wanted: Mapping[str, Any], seen: Status, first: str) -> bool:
    """Say whether an agent was to be ended by the first signal, in whatever way it took that, and was killed."""
    by_term = wanted.get("signal") == first or wanted.get("code") is not None
    return bool(wanted.get("forced")) and by_term and seen.forced and seen.signal == "KILL"
