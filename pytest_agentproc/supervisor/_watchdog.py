"""The one watchdog: every deadline of a run. Pure; knows instants and limits, and nobody who acts on them.

Armed from the spawn until the outcome. Activity is any byte on stdout or stderr (A1), progress an event of the dialect
(A8); while tools run, or the agent compacts its context, the limit on silence is a longer one (A6); at one instant the
gentler deadline wins, among equals progress, then silence, then max_runtime (A3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_agentproc.supervisor.dialects import Noise, Other
from pytest_agentproc.vocabulary import Outcome

if TYPE_CHECKING:
    from pytest_agentproc.supervisor.dialects import Meaning
    from pytest_agentproc.vocabulary import Policy

__all__ = ["Watchdog"]

_ENDINGS = {
    "progress_timeout": Outcome.STALLED,
    "inactivity_timeout": Outcome.INACTIVE,
    "internal_tool_timeout": Outcome.INACTIVE,
    "max_runtime": Outcome.OVERRAN,
}


class Watchdog:
    """Hold the deadlines of a run.

    Args:
        policy: the limits.
    """

    def __init__(self, policy: Policy) -> None:
        limits = policy.nanoseconds()
        self.limits = {name: limits[name] for name in _ENDINGS}
        self.deadlines: dict[str, int] = {}
        self.is_armed = False
        self.is_busy = False
        self.doing = ""
        self.started = 0
        self.last_activity = 0
        self.last_progress = 0
        self.count = 0
        self.closed: list[str] = []

    def start(self, now: int) -> None:
        """Arm every limit that is on."""
        self.started = self.last_activity = self.last_progress = now
        self.arm(now)

    def arm(self, now: int) -> None:
        """Arm (again) from the last progress, the last activity and the start."""
        since = {
            "progress_timeout": self.last_progress,
            self.silence: self.last_activity,
            "max_runtime": self.started,
        }
        limits = {name: self.limits[name] for name in since}
        self.deadlines = {name: since[name] + limit for name, limit in limits.items() if limit is not None}
        self.is_armed = True

    def is_activity(self, stream: str, data: bytes) -> bool:
        """Say whether output shows that the agent works: any byte does, of either stream (A1)."""
        return bool(data)

    def activity(self, now: int, stream: str, size: int) -> None:
        """Take note of bytes."""
        self.count += size
        self.last_activity = now
        self._wind(self.silence, now)

    def wrote(self, now: int) -> None:
        """Take note of what the supervisor wrote itself: that says nothing of the agent (A1)."""

    @property
    def silence(self) -> str:
        """The name of the limit on silence that holds now: while tools run, the longer of the two (A6)."""
        short, long = self.limits["inactivity_timeout"], self.limits["internal_tool_timeout"]
        is_longer = short is not None and (long is None or long > short)
        return "internal_tool_timeout" if self.is_busy and is_longer else "inactivity_timeout"

    def work(self, now: int, *, busy: bool, doing: str = "a tool ran") -> None:
        """Take note of whether the agent works in silence, and at what, in a clause."""
        self.doing = doing
        if busy is not self.is_busy:
            self.is_busy = busy
            if self.is_armed:
                self.arm(now)

    def is_progress(self, meaning: Meaning) -> bool:
        """Say whether a line shows that the work goes on: an event of it does, and text; noise does not (A8)."""
        return meaning.is_progress if isinstance(meaning, Other) else not isinstance(meaning, Noise)

    def progress(self, now: int) -> None:
        """Take note of an event."""
        self.last_progress = now
        self._wind("progress_timeout", now)

    def _wind(self, name: str, now: int) -> None:
        limit = self.limits[name]
        if name in self.deadlines and limit is not None:
            self.deadlines[name] = now + limit

    def ended(self, now: int, stream: str) -> None:
        """Take note of a closed stream, which is neither activity nor exit: the deadlines stand (A5)."""
        self.closed.append(stream)

    def rest(self) -> None:
        """Disarm everything."""
        self.deadlines = {}
        self.is_armed = False

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
        if name == "progress_timeout":
            return f"no progress for {(now - self.last_progress) / 1e9:g} s, with {self.count} bytes of output"
        if name != "max_runtime":
            silent = (now - self.last_activity) / 1e9
            running = f" while {self.doing}" if name == "internal_tool_timeout" else ""
            closed = f", and {' and '.join(self.closed)} closed" if self.closed else ""
            return f"no output for {silent:g} s{running}, after {self.count} bytes{closed}"
        return f"still running after {(now - self.started) / 1e9:g} s, with {self.count} bytes of output"
