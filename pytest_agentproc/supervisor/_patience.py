"""The watchdog of a session's turn: when to cancel it, and as what. Pure; knows instants and limits.

Armed while a turn is in flight and nobody has cancelled it. Progress moves the prompt's deadline, activity does not
(P2); while the caller owes the agent an answer, what waits for progress rests. While the agent executes its own tools
the limit on silence, where there is one, is the longer of two (A6). At one instant the order is the table's (A3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_agentproc.vocabulary import Outcome

if TYPE_CHECKING:
    from pytest_agentproc.vocabulary import Policy

__all__ = ["Patience"]

_ENDINGS = {
    "progress_timeout": Outcome.STALLED,
    "prompt_timeout": Outcome.TIMED_OUT,
    "inactivity_timeout": Outcome.INACTIVE,
    "internal_tool_timeout": Outcome.INACTIVE,
    "max_runtime": Outcome.OVERRAN,
}
_OF_SILENCE = ("inactivity_timeout", "internal_tool_timeout")
_OF_PROGRESS = ("progress_timeout", "prompt_timeout")


class Patience:
    """Hold the deadlines of the turn in flight.

    Args:
        policy: the limits.
    """

    def __init__(self, policy: Policy) -> None:
        limits = policy.nanoseconds()
        self.limits = {name: limits[name] for name in _ENDINGS}
        self.deadlines: dict[str, int] = {}
        self.closed: list[str] = []
        self.is_busy = False
        self.doing = ""
        self.started = 0
        self.last_activity = 0
        self.last_progress = 0
        self._is_armed = False

    def start(self, now: int) -> None:
        """Arm every limit that is on: a prompt was delivered."""
        self.started = self.last_activity = self.last_progress = now
        self._is_armed = True
        names = [name for name in _ENDINGS if name == self.silence or name not in _OF_SILENCE]
        self.deadlines = {name: now + limit for name in names if (limit := self.limits[name]) is not None}

    @property
    def silence(self) -> str:
        """The name of the limit on silence that holds now: while tools run, the longer of the two (A6)."""
        short, long = self.limits["inactivity_timeout"], self.limits["internal_tool_timeout"]
        is_longer = short is not None and (long is None or long > short)
        return "internal_tool_timeout" if self.is_busy and is_longer else "inactivity_timeout"

    def work(self, *, busy: bool, doing: str = "a tool ran") -> None:
        """Take note of whether the agent works in silence, and at what, in a clause."""
        self.doing = doing
        before, self.is_busy = self.silence, busy
        if self._is_armed and self.silence != before:
            at, limit = self.deadlines, self.limits[self.silence]
            silent = {} if limit is None else {self.silence: self.last_activity + limit}
            new = {**{name: at[name] for name in at if name not in _OF_SILENCE}, **silent}
            self.deadlines = {name: new[name] for name in _ENDINGS if name in new}

    def activity(self, now: int) -> None:
        """Take note of bytes."""
        self.last_activity = now
        self._wind(now, self.silence)

    def progress(self, now: int) -> None:
        """Take note of an event of the turn."""
        self.last_progress = now
        self._wind(now, *_OF_PROGRESS)

    def connect(self) -> None:
        """Watch a new agent process: its streams are open, and no tool of it runs."""
        self.closed = []
        self.work(busy=False)

    def ended(self, now: int, stream: str) -> None:
        """Take note of a closed stream, which is neither activity nor exit: the deadlines stand (A5)."""
        self.closed.append(stream)

    def hold(self) -> None:
        """Let what waits for progress rest: the caller owes an answer."""
        self.deadlines = {name: at for name, at in self.deadlines.items() if name not in _OF_PROGRESS}

    def go_on(self, now: int) -> None:
        """Wait for progress again, from now."""
        self.last_progress = now
        again = {name: limit for name in _OF_PROGRESS if (limit := self.limits[name]) is not None}
        self.deadlines = {**{name: now + limit for name, limit in again.items()}, **self.deadlines}

    def rest(self) -> None:
        """Disarm everything."""
        self._is_armed = False
        self.deadlines = {}

    def _wind(self, now: int, *names: str) -> None:
        for name in names:
            limit = self.limits[name]
            if name in self.deadlines and limit is not None:
                self.deadlines[name] = now + limit

    def due(self, now: int) -> tuple[Outcome, str] | None:
        """Say what a turn whose time is up ends as, and why in a clause."""
        for name in sorted(self.deadlines, key=lambda name: self.deadlines[name]):
            if self.deadlines[name] <= now:
                return _ENDINGS[name], self._explain(name, now)
        return None

    def _explain(self, name: str, now: int) -> str:
        closed = f", and {' and '.join(self.closed)} closed" if self.closed else ""
        if name in _OF_SILENCE:
            running = f" while {self.doing}" if name == "internal_tool_timeout" else ""
            return f"no output for {(now - self.last_activity) / 1e9:g} s{running}{closed}"
        if name == "max_runtime":
            return f"still running after {(now - self.started) / 1e9:g} s"
        return f"no progress for {(now - self.last_progress) / 1e9:g} s{closed}"
