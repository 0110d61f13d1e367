"""The limits that a supervisor keeps: names, units, defaults. Knows nobody who keeps them."""

from __future__ import annotations

from dataclasses import dataclass, fields

from pytest_agentproc.errors import UsageError

__all__ = ["NANOSECONDS", "OPTIONAL_NAMES", "POLICY_NAMES", "Policy", "to_nanoseconds"]

NANOSECONDS = 1_000_000_000


def to_nanoseconds(seconds: float) -> int:
    """Turn seconds into whole nanoseconds, the unit in which all clocks of the kit count."""
    return round(seconds * NANOSECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What a supervisor promises about time. Durations are seconds; None switches a limit off.

    Args:
        inactivity_timeout: silence (no byte on stdout or stderr) after which a run ends as `inactive` (A1).
        max_runtime: the longest a run may take, whatever its activity; it then ends as `overran` (A2).
        linger_grace: how long a one-shot agent may live on after its completion (C1).
        linger_kill_grace: from TERM to KILL for an agent, or its leftovers, after a good end (C1, T6).
        kill_grace: from TERM to KILL otherwise (T1).

    Raises:
        UsageError: a duration is negative or not a number.
    """

    inactivity_timeout: float | None = 120.0
    max_runtime: float | None = None
    linger_grace: float = 0.25
    linger_kill_grace: float = 0.25
    kill_grace: float = 2.0

    def __post_init__(self) -> None:
        for name, value in self.items():
            optional = name in OPTIONAL_NAMES
            if value is None and optional:
                continue
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < float("inf"):
                allowed = "seconds (0 or more) or None" if optional else "seconds (0 or more)"
                raise UsageError(f"policy {name} is {value!r}, but must be {allowed}", f"write {name}=2.0, for example")

    def items(self) -> list[tuple[str, float | None]]:
        """List every name with its value, in the order of declaration."""
        return [(field.name, getattr(self, field.name)) for field in fields(self)]

    def nanoseconds(self) -> dict[str, int | None]:
        """Give every limit in whole nanoseconds."""
        return {name: None if value is None else to_nanoseconds(value) for name, value in self.items()}


OPTIONAL_NAMES = frozenset({"inactivity_timeout", "max_runtime"})
POLICY_NAMES = tuple(field.name for field in fields(Policy))
