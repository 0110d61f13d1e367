"""The limits that a supervisor keeps: names, units, defaults. Knows nobody who keeps them."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from pytest_agentproc.errors import UsageError

__all__ = ["NANOSECONDS", "OPTIONAL_NAMES", "POLICY_NAMES", "SIZE_NAMES", "TIME_NAMES", "Policy", "to_nanoseconds"]

NANOSECONDS = 1_000_000_000


def to_nanoseconds(seconds: float) -> int:
    """Turn seconds into whole nanoseconds, the unit in which all clocks of the kit count."""
    return round(seconds * NANOSECONDS)


class _Unsaid(float):
    """A default that nobody chose."""


UNSAID_SILENCE = _Unsaid(120.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What a supervisor promises. Durations are seconds, sizes bytes; None switches a limit off.

    Args:
        inactivity_timeout: silence (no byte on stdout or stderr) after which a run ends as `inactive` (A1); in a
            session, where it cancels the turn, it is off unless it is given.
        progress_timeout: time without an event of the dialect after which a run ends as `stalled`, whatever bytes it
            prints (A8).
        max_runtime: the longest a run may take, whatever its activity; it then ends as `overran` (A2).
        linger_grace: how long a one-shot agent may live on after its completion (C1).
        linger_kill_grace: from TERM to KILL for an agent, or its leftovers, after a good end (C1, T6).
        kill_grace: from TERM to KILL otherwise (T1).
        prompt_timeout: time without progress of a session's turn after which the turn is cancelled, not the agent; it
            ends as `timed_out` (P1, P2).
        cancel_grace: how long a cancel may stay unacknowledged before the agent is forced to stop (P3).
        permission_timeout: how long the caller's handler may take to answer the agent's question; then: denied (P7).
        handshake_timeout: from the start of a session's agent to the end of its handshake (P6).
        restart_backoff: from a crash to the next start; it doubles with each of the last 10 minutes, up to 60 s (P6).
        close_grace: from the end of a session's stdin to TERM (P8).
        max_line_bytes: the longest line on stdout, without its end; a longer one is a `protocol_error` (F3).

    Raises:
        UsageError: a duration is negative or not a number, a size is no whole number above 0.
    """

    inactivity_timeout: float | None = UNSAID_SILENCE
    progress_timeout: float | None = None
    max_runtime: float | None = None
    linger_grace: float = 0.25
    linger_kill_grace: float = 0.25
    kill_grace: float = 2.0
    prompt_timeout: float | None = 3600.0
    cancel_grace: float = 300.0
    permission_timeout: float = 300.0
    handshake_timeout: float = 30.0
    restart_backoff: float = 1.0
    close_grace: float = 2.0
    max_line_bytes: int = 16 * 1024**2

    def __post_init__(self) -> None:
        size = self.max_line_bytes
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise UsageError(
                f"policy max_line_bytes is {size!r}, but must be bytes (a whole number, 1 or more)",
                "write max_line_bytes=16 * 1024**2, for example",
            )
        for name in TIME_NAMES:
            value = getattr(self, name)
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
        """Give every duration in whole nanoseconds."""
        times = {name: value for name, value in self.items() if name in TIME_NAMES}
        return {name: None if value is None else to_nanoseconds(value) for name, value in times.items()}

    def in_session(self) -> Policy:
        """Give the limits as a session keeps them: silence is no fault there unless the caller says so."""
        return replace(self, inactivity_timeout=None) if isinstance(self.inactivity_timeout, _Unsaid) else self

    @classmethod
    def of_silence(cls, seconds: float) -> Policy:
        """Give the limits that one number stands for: it limits silence, never the whole duration (A9)."""
        return cls(inactivity_timeout=seconds)


OPTIONAL_NAMES = frozenset({"inactivity_timeout", "progress_timeout", "max_runtime", "prompt_timeout"})
SIZE_NAMES = frozenset({"max_line_bytes"})
POLICY_NAMES = tuple(field.name for field in fields(Policy))
TIME_NAMES = tuple(name for name in POLICY_NAMES if name not in SIZE_NAMES)
