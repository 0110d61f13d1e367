"""Owns what a bound scenario asks of a supervisor that states its own outcomes, first signal, or command line. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_agentproc.vocabulary import FIRST_SIGNALS, SIGNALS, outcomes_for

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_agentproc.scenario import Bound, Expectation
    from pytest_agentproc.vocabulary import Subject

__all__ = ["as_stated"]

_TERM = "TERM"
_OWN = {
    "argv": (("saw.argv", "saw.stdin"), "command line of the order: it makes its own"),
    "env": (("saw.env", "saw.cwd"), "environment and folder of the order: it has its own"),
}
"""The checks of what the agent was given, where the supervisor does not hand on what the order gives."""


def as_stated(bound: Bound, subject: Subject) -> Bound:
    """Ask a supervisor for nothing but what it can report and do by its own statement.

    Args:
        bound: the scenario under its limits.
        subject: it may state `outcomes`, `first_signal`, and `cannot`.
    """
    cannot: tuple[str, ...] = tuple(getattr(subject, "cannot", ()))
    outcomes: tuple[str, ...] = tuple(getattr(subject, "outcomes", ()))
    first: str = getattr(subject, "first_signal", _TERM)
    expect: Iterable[Expectation] = bound.expect
    for word in set(cannot) & _OWN.keys():
        expect = [_unasked(one, *_OWN[word], is_session=bound.scenario.is_session) for one in expect]
    if outcomes:
        expect = [_by_outcome(one, outcomes) for one in expect]
    if first != _TERM:
        expect = [_by_signal(one, first) for one in expect]
        parts = {name: _trapped(part, first) for name, part in bound.parts.items()}
        bound = replace(_trapped(bound, first), parts=parts)
    return replace(bound, expect=tuple(expect))


def _unasked(one: Expectation, keys: tuple[str, ...], what: str, *, is_session: bool) -> Expectation:
    """Make a check not applicable; the stdin of a session is its protocol, and no part of the command line."""
    if one.key not in keys or (is_session and one.key == "saw.stdin"):
        return one
    return replace(one, wanted=None, not_applicable=what)


def _by_outcome(one: Expectation, known: tuple[str, ...]) -> Expectation:
    """Have an outcome that a supervisor does not know be met by those that it reports in its place."""
    if one.key.rpartition(".")[2] != "outcome" or one.key.startswith("artifacts") or one.wanted is None:
        return one
    wanted = one.wanted
    if isinstance(wanted, str):
        wanted = {"any_of": (wanted,)}
    if "any_of" not in wanted or {*wanted["any_of"]} <= {*known}:
        return one
    met = [word for each in wanted["any_of"] for word in outcomes_for(each, known)]
    return replace(one, wanted={"any_of": tuple(dict.fromkeys([*wanted["any_of"], *met]))})


def _by_signal(one: Expectation, first: str) -> Expectation:
    """Expect the first signal of a supervisor where a scenario says TERM."""
    leaf = one.key.rpartition(".")[2]
    if leaf == "signals" and one.wanted is not None:
        return replace(one, wanted=[(first if name == _TERM else name, at) for name, at in one.wanted])
    if leaf in ("agent_status", "status") and isinstance(one.wanted, dict) and one.wanted.get("signal") == _TERM:
        return replace(one, wanted={**one.wanted, "signal": first})
    return one


def _trapped(bound: Bound, first: str) -> Bound:
    return replace(bound, program=_with_trap(bound.program, first), first_signal=first)


def _with_trap(program: Any, first: str) -> Any:
    """Have each process do at the first signal what its script does at TERM, and ignore the polite ones after it."""
    if isinstance(program, dict):
        return {key: _with_trap(value, first) for key, value in program.items()}
    if not isinstance(program, list | tuple):
        return program
    steps: list[Any] = []
    for step in program:
        match step:
            case (int() as line, "when", ("signal", number, reaction)) if number == SIGNALS[_TERM]:
                then = _with_trap(reaction, first)
                steps += [
                    (line, "when", ("signal", SIGNALS[name], then if name == first else [])) for name in FIRST_SIGNALS
                ]
            case _:
                steps.append(_with_trap(step, first))
    return type(program)(steps)
