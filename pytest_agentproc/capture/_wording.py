"""Owns a step's words: how it is written, and whether the language takes it as it is written. Knows no log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_agentproc.capture._quoting import flow, is_faithful, seconds, text
from pytest_agentproc.errors import ScenarioError
from pytest_agentproc.scenario import loads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_agentproc.capture._meaning import Told

__all__ = ["is_taken", "step_text"]

_NAMES = {"turn_said": "say", "nested": "say"}
"""Steps that a draft tells apart and the language does not."""


def step_text(step: Told) -> str:
    """Write a step as it stands in a script."""
    name, value = _NAMES.get(step.name, step.name), step.value
    if name == "silence":
        return f"silence: {seconds(value)}"
    if name == "tool_done" and set(value) == {"id"}:
        return f"tool_done: {text(value['id'])}"
    return f"{name}: {text(value) if isinstance(value, str) else flow(value)}"


def is_taken(steps: Sequence[Told], dialect: str, mode: str) -> bool:
    """Say whether the loader takes these steps; tools that they name began before."""
    if not all(is_faithful(step.value) for step in steps):
        return False
    begun = {str(step.value["id"]) for step in steps if step.name == "tool"}
    named = {value for step in steps for value in _named(step.value) if value not in begun}
    lines = [f"tool: {{id: {flow(name)}, name: t}}" for name in sorted(named)]
    try:
        lines += [step_text(step) for step in steps]
        loads(
            f"scenario: a\nagent: {{dialect: {dialect}, mode: {mode}}}\nscript:\n"
            + "".join(f"  - {it}\n" for it in lines)
        )
    except (ScenarioError, TypeError):  # a value of another type than the step's
        return False
    return True


def _named(value: Any) -> list[str]:
    found = [value.get(key) for key in ("id", "parent")] if isinstance(value, dict) else []
    return [name for name in found if isinstance(name, str) and name]
