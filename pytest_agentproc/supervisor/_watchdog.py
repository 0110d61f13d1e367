"""The one watchdog: every deadline of a run, or of a session's turn. Pure; knows instants and limits.

Armed from the spawn of a run, or the delivery of a prompt, until the outcome. Activity is any byte on stdout or stderr
(A1), progress an event of the dialect (A8). While tools run, or the agent compacts its context, the limit on silence is
a longer one (A6). At one instant the gentler deadline wins (A3): the order of `LIMITS`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_agentproc.supervisor.dialects import Noise, Other
from pytest_agentproc.vocabulary import OUTCOME_BY_LIMIT

if TYPE_CHECKING:
    from pytest_agentproc.supervisor.dialects import Meaning
    from pytest_agentproc.vocabulary import Outcome, Policy


_LIMITS_ON_SILENCE = ("inactivity_timeout", "internal_tool_timeout")
_LIMITS_THAT_PROGRESS_RESTARTS = ("progress_timeout", "prompt_timeout")


class Watchdog:
    """Hold the deadlines of a run."""

    LIMITS: tuple[str, ...] = ("progress_timeout", *_LIMITS_ON_SILENCE, "max_runtime")

    def __init__(self, policy: Policy) -> None:
        limits = policy.nanoseconds()
        self.limits = {name: limits[name] for name in self.LIMITS}
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
        self.deadlines = {
            name: self._find_start_instant(name) + limit
            for name, limit in self.limits.items()
            if limit is not None and (name not in _LIMITS_ON_SILENCE or name == self.silence)
        }
        self.is_armed = True

    def _find_start_instant(self, name: str) -> int:
        if name in _LIMITS_THAT_PROGRESS_RESTARTS:
            return self.last_progress
        return self.last_activity if name in _LIMITS_ON_SILENCE else self.started

    def is_activity(self, stream: str, data: bytes) -> bool:
        """Say whether output shows that the agent works: any byte does, of either stream (A1)."""
        return bool(data)

    def note_activity(self, now: int, stream: str, size: int) -> None:
        """Take note of bytes."""
        self.count += size
        self.last_activity = now
        self._move_deadlines(now, self.silence)

    def note_own_write(self, now: int) -> None:
        """Take note of what the supervisor wrote itself: that says nothing of the agent (A1)."""

    @property
    def silence(self) -> str:
        """The name of the limit on silence that holds now: while tools run, the longer of the two (A6)."""
        short, long = self.limits["inactivity_timeout"], self.limits["internal_tool_timeout"]
        is_longer = short is not None and (long is None or long > short)
        return "internal_tool_timeout" if self.is_busy and is_longer else "inactivity_timeout"

    def note_work(self, *, busy: bool, doing: str = "a tool ran") -> None:
        """Take note of whether the agent works in silence, and at what, in a clause."""
        self.doing = doing
        before, self.is_busy = self.silence, busy
        if self.is_armed and self.silence != before:
            # Only silence changes: a deadline that rests, as the caller owes an answer, must not run again.
            limit = self.limits[self.silence]
            silent = {} if limit is None else {self.silence: self.last_activity + limit}
            new = {**{name: at for name, at in self.deadlines.items() if name not in _LIMITS_ON_SILENCE}, **silent}
            self.deadlines = {name: new[name] for name in self.LIMITS if name in new}

    def is_progress(self, meaning: Meaning) -> bool:
        """Say whether a line shows that the work continues: an event of it does, and text; noise does not (A8)."""
        return meaning.is_progress if isinstance(meaning, Other) else not isinstance(meaning, Noise)

    def note_progress(self, now: int) -> None:
        """Take note of an event."""
        self.last_progress = now
        self._move_deadlines(now, *_LIMITS_THAT_PROGRESS_RESTARTS)

    def _move_deadlines(self, now: int, *names: str) -> None:
        for name in names:
            limit = self.limits.get(name)
            if name in self.deadlines and limit is not None:
                self.deadlines[name] = now + limit

    def note_stream_end(self, now: int, stream: str) -> None:
        """Take note of a closed stream, which is neither activity nor exit: the deadlines stand (A5)."""
        self.closed.append(stream)

    def disarm(self) -> None:
        """Disarm everything."""
        self.deadlines = {}
        self.is_armed = False

    @property
    def deadline(self) -> int | None:
        """The earliest deadline."""
        return min(self.deadlines.values()) if self.deadlines else None

    def find_expired_limit(self, now: int) -> tuple[str, Outcome] | None:
        """Say which limit has run out, by (instant, rank), and what the run or the turn ends as."""
        for name, deadline in sorted(self.deadlines.items(), key=lambda item: item[1]):
            if deadline <= now:
                return name, OUTCOME_BY_LIMIT[name]
        return None

    def explain_expiry(self, name: str, now: int) -> str:
        """Say in a sentence how long the agent was silent, or ran, and after how many bytes."""
        if name == "max_runtime":
            return f"still running after {(now - self.started) / 1e9:g} s{self._describe_output()}"
        if name in _LIMITS_THAT_PROGRESS_RESTARTS:
            return f"no progress for {(now - self.last_progress) / 1e9:g} s{self._describe_output()}"
        running = f" while {self.doing}" if name == "internal_tool_timeout" else ""
        silent = (now - self.last_activity) / 1e9
        return f"no output for {silent:g} s{running}, after {self.count} bytes{self._describe_closed_streams()}"

    def _describe_output(self) -> str:
        return f", with {self.count} bytes of output"

    def _describe_closed_streams(self) -> str:
        return f", and {' and '.join(self.closed)} closed" if self.closed else ""


class TurnWatchdog(Watchdog):
    """Hold the deadlines of the turn in flight, while it is not cancelled.

    Progress moves the prompt's deadline, activity does not (P2). While the caller owes the agent an answer, the limits
    that wait for progress rest.
    """

    LIMITS = (*_LIMITS_THAT_PROGRESS_RESTARTS, *_LIMITS_ON_SILENCE, "max_runtime")

    def watch_new_agent(self) -> None:
        """Watch a new agent process: its streams are open, and no tool of it runs."""
        self.closed = []
        self.note_work(busy=False)

    def pause_progress_limits(self) -> None:
        """Let the limits that wait for progress rest: the caller owes an answer."""
        self.deadlines = {name: at for name, at in self.deadlines.items() if name not in _LIMITS_THAT_PROGRESS_RESTARTS}

    def resume_progress_limits(self, now: int) -> None:
        """Wait for progress again, from now."""
        self.last_progress = now
        again = {name: limit for name in _LIMITS_THAT_PROGRESS_RESTARTS if (limit := self.limits[name]) is not None}
        self.deadlines = {**{name: now + limit for name, limit in again.items()}, **self.deadlines}

    def explain_expiry(self, name: str, now: int) -> str:
        """Say in a sentence how long the agent was silent, or ran."""
        if name in _LIMITS_ON_SILENCE:
            running = f" while {self.doing}" if name == "internal_tool_timeout" else ""
            return f"no output for {(now - self.last_activity) / 1e9:g} s{running}{self._describe_closed_streams()}"
        return super().explain_expiry(name, now) + ("" if name == "max_runtime" else self._describe_closed_streams())

    def _describe_output(self) -> str:
        return ""
