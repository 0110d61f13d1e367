"""The limits that a supervisor under test states, and those that it leaves out. Owns the difference; judges nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_agentproc.vocabulary._policy import ALL_LIMIT_NAMES, LIMITS_IN_SECONDS, LIMITS_OFF_IF_UNSTATED, Policy

if TYPE_CHECKING:
    from collections.abc import Iterable


_LIMITS_TO_BE_STATED = (*LIMITS_IN_SECONDS, "max_line_bytes")
_MAX_LINE_BYTES_IF_UNSTATED = 2 * 1024**2
"""The longest line of a supervisor that states none: longer than the buffers of readers that break, 64 KiB and 1 MiB.
A program that reads byte by byte, such as bash, needs seconds for each MiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartlyStatedPolicy(Policy):
    """The limits of a supervisor that does not state all of them; the others have values with which it is tried.

    Args:
        left_out: the names of those that it keeps in some way, and does not state.
    """

    left_out: frozenset[str]

    @property
    def unstated(self) -> frozenset[str]:
        """Name the limits of unknown value."""
        return self.left_out


def mark_unstated_limits(policy: Policy, names: Iterable[str]) -> Policy:
    """Give the same limits, with the names of those that a supervisor leaves out.

    Args:
        policy: its limits, and the defaults of the limits that it does not state.
        names: the limits that it states.
    """
    left_out = frozenset(_LIMITS_TO_BE_STATED) - LIMITS_OFF_IF_UNSTATED - frozenset(names)
    if not left_out:
        return policy
    limits: dict[str, Any] = {name: getattr(policy, name) for name in ALL_LIMIT_NAMES}
    if "max_line_bytes" in left_out:
        limits["max_line_bytes"] = _MAX_LINE_BYTES_IF_UNSTATED
    return PartlyStatedPolicy(**limits, left_out=left_out)
