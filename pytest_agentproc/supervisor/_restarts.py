"""When a crashed agent is started again, and when no more. Pure; starts nothing (P6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_agentproc.vocabulary import to_nanoseconds

if TYPE_CHECKING:
    from pytest_agentproc.vocabulary import Policy

__all__ = ["Restarts"]

_SECOND = 1_000_000_000


class Restarts:
    """Count the restarts of one session.

    Args:
        policy: its `restart_backoff`.
    """

    MOST = 5
    """So many restarts within the window; the next crash is the end."""

    WINDOW = 600 * _SECOND
    LONGEST = 60
    """Seconds between two starts at most."""

    def __init__(self, policy: Policy) -> None:
        self.backoff = policy.restart_backoff
        self._crashes: list[int] = []

    def is_given_up(self, *, was_ready: bool) -> bool:
        """Say whether another start is useless: so it is if no agent of the session has ever done its handshake."""
        return not was_ready

    def crash(self, now: int) -> int | None:
        """Take note of a crash; say how long to wait before the next start, or None: do not start again."""
        self._crashes = [at for at in self._crashes if now - at < self.WINDOW]
        if self.backoff is None or len(self._crashes) >= self.MOST:
            return None
        delay = min(self.backoff * 2 ** len(self._crashes), max(self.LONGEST, self.backoff))
        self._crashes.append(now)
        return to_nanoseconds(delay)
