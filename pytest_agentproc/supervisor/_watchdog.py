"""The one watchdog: every deadline of a run. Pure; knows instants and limits, and nobody who acts on them.

Armed from the spawn until the outcome. Activity is any byte on stdout or stderr (A1); at one instant the gentler
deadline wins, among equals inactivity before max_runtime (A3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_agentproc.vocabulary import Outcome

if TYPE_CHECKING:
    from pytest_agentproc.vocabulary import Policy

__all__ = ["Watchdog"]

_ENDINGS = {"inactivity_timeout": Outcome.INACTIVE, "max_runtime": Outcome.OVERRAN}


class Watchdog:
    """Hold the deadlines of a run.

    Args:
        policy: the limits.
    """

    def __init__(self, policy: Policy) -> None:
        limits = policy.nanoseconds()
        self.limits = {name: limits[name] for name in _ENDINGS}
        self.deadlines: dict[str, int] = {}
        self.started = 0
        self.last_activity = 0
        self.count = 0

    def start(self, now: int) -> None:
        """Arm every limit that is on."""
        self.started = self.last_activity = now
        self.arm(now)

    def arm(self, now: int) -> None:
        """Arm (again) from the last activity and from the start."""
        since = {"inactivity_timeout": self.last_activity, "max_runtime": self.started}
        self.deadlines = {name: since[name] + limit for name, limit in self.limits.items() if limit is not None}

    def activity(self, now: int, stream: str, size: int) -> None:
        """Take note of bytes."""
        self.count += size
        self.last_activity = now
        if "inactivity_timeout" in self.deadlines:
            limit = self.limits["inactivity_timeout"]
            assert limit is not None
            self.deadlines["inactivity_timeout"] = now + limit

    def rest(self) -> None:
        """Disarm everything."""
        self.deadlines = {}

    @property
    def deadline(self) -> int | None:
        """The earliest deadline."""
        return min(self.deadlines.values()) if self.deadlines else None

    def due(self, now: int) -> tuple[str, Outcome] | None:
        """Say which limit has run out, by (instant, rank), and what the run ends as."""
        for name, deadline in sorted(self.deadlines.items(), key=lambda item: item[1]):
            if deadline <= now:
                return name, _ENDINGS[name]
        return None

    def explain(self, name: str, now: int) -> str:
        """Say in a sentence how long the agent was silent, or ran, and after how many bytes."""
        if name == "inactivity_timeout":
            silent = (now - self.last_activity) / 1e9
            return f"no output for {silent:g} s, after {self.count} bytes"
        return f"still running after {(now - self.started) / 1e9:g} s, with {self.count} bytes of output"
