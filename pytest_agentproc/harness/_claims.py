"""What a supervisor under test claims, against what a scenario needs. Binds a scenario to a subject; plays nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_agentproc.errors import NotApplicable
from pytest_agentproc.harness._stated import as_stated
from pytest_agentproc.harness._supervise import needs_keeper, real_time_only
from pytest_agentproc.vocabulary import required

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_agentproc.scenario import Bound, Scenario
    from pytest_agentproc.vocabulary import Deed, Subject

__all__ = ["bind_to", "parts_of"]


def bind_to(scenario: Scenario, subject: Subject) -> Bound:
    """Bind a scenario to the limits that a subject states.

    Raises:
        NotApplicable: the scenario needs something that the subject says it does not have.
    """
    if scenario.is_session and not subject.holds_sessions:
        raise NotApplicable("sessions", 1)
    if not (scenario.is_session or scenario.parts or getattr(subject, "takes_runs", True)):
        raise NotApplicable("agents that get one prompt and end", 1)
    for part in scenario.parts.values() or (scenario,):
        variant = f"{part.dialect} {part.mode}"
        if not {part.dialect, variant} & set(getattr(subject, "dialects", None) or (variant,)):
            raise NotApplicable(f"agents of {variant}", 1)
    bound = scenario.bind(scenario.terms(subject))
    for one in parts_of(bound):
        if not set(one.scenario.policy.get("host_tools", ())) <= set(one.policy.host_tools):
            raise NotApplicable("host_tools", one.scenario.told_lines["host_tools"])
    bound = as_stated(bound, subject)
    if bound.abandoned is not None:
        bound = _cancelled(bound, subject, bound.abandoned.line)
    _require_abilities(bound, getattr(subject, "cannot", ()))
    if scenario.is_session or scenario.parts:
        _require_deeds(bound, getattr(subject, "deeds", None))
    return bound


def parts_of(bound: Bound) -> list[Bound]:
    """Give what there is a fake for: each of several sessions, or the one agent."""
    return [*bound.parts.values()] or [bound]


def _cancelled(bound: Bound, subject: Subject, line: int) -> Bound:
    """Have a cancelled run count for a subject that says it can be cancelled so, and inform where it says nothing."""
    can = getattr(subject, "cancellable", None)
    if can is False or needs_keeper(subject) or real_time_only(subject):
        raise NotApplicable("a supervisor that is async, and can be cancelled", line)
    if can == "task" and bound.abandoned is not None and bound.abandoned.value == "scope":
        raise NotApplicable("a supervisor that a cancel scope of anyio's may cancel", line)
    if can:
        return bound
    expect = tuple(replace(one, level="info") for one in bound.expect)
    return replace(bound, expect=expect, scenario=replace(bound.scenario, level="info"))


def _require_deeds(bound: Bound, deeds: tuple[str, ...] | None) -> None:
    needed = required(bound.drive)
    for part in (bound, *bound.parts.values()):
        needed |= ({"permission": 1} if part.handler else {}) | ({"hook": 1} if part.hooks else {})
    needed |= {"several": 1} if bound.parts else {}
    for deed, line in needed.items():
        if deeds is not None and deed not in deeds:
            raise NotApplicable(f"sessions with {deed}", line)


def _require_abilities(bound: Bound, cannot: Sequence[str]) -> None:
    needed = dict(_needed(bound)) if cannot else {}
    for ability in cannot:
        if ability in needed:
            line, what = needed[ability]
            raise NotApplicable(what, line)


def _needed(bound: Bound) -> Iterator[tuple[str, tuple[int, str]]]:
    """Give the `ABILITIES` that a scenario needs, each with a line and what it is called there."""
    for part in parts_of(bound):
        if part.scenario.prompt_by == "stdin" and not part.scenario.is_session:
            yield "stdin", (1, "a prompt on stdin")
        if _needs_denial(part):
            yield "deny", (1, "a caller that denies, or that takes time to answer")
    sessions = dict.fromkeys(deed.session for deed in bound.drive)
    for line in (_pause([deed for deed in bound.drive if deed.session == name]) for name in sessions):
        if line is not None:
            yield "pause", (line, "a pause between two prompts")


def _pause(drive: Sequence[Deed]) -> int | None:
    """Give the line where the caller of a session waits, between two prompts, for more than the turn before."""
    prompts = [place for place, deed in enumerate(drive) if deed.kind == "prompt"]
    between = drive[prompts[0] + 1 : prompts[-1] + 1] if prompts else []
    waits = ("wait", "status", "background")
    return next((one.line for one in between if one.kind in waits or one.at or one.after), None)


def _needs_denial(bound: Bound) -> bool:
    """Say whether a question of the agent is not allowed at once: by its caller, or because nobody answers it."""
    if bound.handler is not None:
        return bound.handler.allowed is not True or bound.handler.after > 0
    return _asks([bound.program.get("steps", ()), bound.program.get("then", ())])


def _asks(steps: Any) -> bool:
    """Say whether an agent asks for a permission in lists of steps, however deep."""
    match steps:
        case (int(), "ask", ({"kind": "permission"}, *_)):
            return True
        case [*deeper]:
            return any(_asks(step) for step in deeper)
        case {"steps": deeper}:
            return _asks(deeper)
    return False
