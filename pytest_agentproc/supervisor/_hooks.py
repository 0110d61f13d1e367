"""The hooks of a session's agents and their callbacks, whichever is there first (B4). Pure; calls nobody.

What may forbid a tool waits: for its callback to be registered, for the callback's word, and no longer than
`hook_timeout` in all; then the tool is denied. Everything else is answered at once, and kept until a callback for it is
registered, or until it is too old.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_agentproc.supervisor.dialects import Hook, Talk
    from pytest_agentproc.vocabulary import Policy

__all__ = ["Hooks"]

_SECOND = 1_000_000_000


class Hooks:
    """Hold what fired and has not been called. What a method returns is to be written to the agent.

    Args:
        policy: its `hook_timeout`.
        tell: how viewers, and who calls the callbacks, are told.
    """

    LIFE = 300 * _SECOND
    """What is kept for longer is called no more."""

    SWEEP = 60 * _SECOND
    MOST = 1000
    """So many may wait, and so many are kept (F6)."""

    MOST_SIZE = 16 * 1024**2
    """So many characters of what is kept, where the newest stays always."""

    def __init__(self, policy: Policy, tell: Callable[..., None]) -> None:
        limit = policy.nanoseconds()["hook_timeout"]
        assert limit is not None
        self._limit = limit
        self._tell = tell
        self._registered: set[str] = set()
        self._waiting: dict[str, tuple[Hook, int]] = {}
        self._kept: deque[tuple[Hook, int, int]] = deque()
        self._size = 0
        self._sweep_at: int | None = None
        self._talk: Talk

    def connect(self, talk: Talk) -> None:
        """Speak to a new agent process; what waited in the old one waits no more."""
        self._talk = talk

    def lose(self) -> None:
        """Take note that the agent is gone: nobody waits for an answer."""
        for name in tuple(self._waiting):
            self.withdraw(name)

    @property
    def deadlines(self) -> dict[str, int]:
        """When the oldest tool that waits is denied, and when what is too old is thrown away."""
        if not self._waiting and self._sweep_at is None:
            return {}
        waiting = {"hook_timeout": min(at for _, at in self._waiting.values())} if self._waiting else {}
        return waiting if self._sweep_at is None else {**waiting, "hook_sweep": self._sweep_at}

    # What the agent says.

    def fire(self, hook: Hook, now: int) -> bytes:
        """Take a hook."""
        is_registered = hook.callback in self._registered
        if hook.is_question:
            if len(self._waiting) >= self.MOST:
                return self._talk.answer_hook(hook, "too many hooks wait")
            self.withdraw(hook.id)
            self._waiting[hook.id] = (hook, now + self._limit)
        elif not is_registered:
            self._keep(hook, now)
        if is_registered:
            self._call(hook)
        return b"" if hook.is_question else self._talk.answer_hook(hook)

    def withdraw(self, name: str) -> None:
        """Take note that the agent wants no answer to a hook any more."""
        hook, _ = self._waiting.pop(name, (None, 0))
        if hook is not None:
            self._tell("withdrawn", None, _title(hook), hook=hook)

    # What the caller says.

    def register(self, name: str, now: int) -> None:
        """Have a callback called from now on, with what fired before too: once, and if it is not too old."""
        self._registered.add(name)
        before, self._kept, self._size = self._kept, deque(), 0
        for hook, at, size in before:
            if hook.callback != name:
                self._kept.append((hook, at, size))
                self._size += size
            elif now - at <= self.LIFE:
                self._call(hook)
        self._sweep_at = self._sweep_at if self._kept else None
        for hook, _ in self._waiting.values():
            if hook.callback == name:
                self._call(hook)

    def decide(self, name: str, *, allowed: bool) -> bytes:
        """Let a tool run that waits, or deny it, as its callback said."""
        hook, _ = self._waiting.pop(name, (None, 0))
        if hook is None:
            return b""
        return self._talk.answer_hook(hook, "" if allowed else "denied by the supervising program")

    # Time.

    def due(self, now: int) -> bytes:
        """Deny what waited for too long, and throw away what was kept for too long."""
        late = [hook for hook, at in self._waiting.values() if at <= now]
        for hook in late:
            self.withdraw(hook.id)
        if self._sweep_at is not None and self._sweep_at <= now:
            while self._kept and now - self._kept[0][1] > self.LIFE:
                self._drop()
            self._sweep_at = now + self.SWEEP if self._kept else None
        return b"".join(self._talk.answer_hook(hook, "nobody answered the hook in time") for hook in late)

    def _keep(self, hook: Hook, now: int) -> None:
        size = self._size_of(hook)
        self._kept.append((hook, now, size))
        self._size += size
        while len(self._kept) > self.MOST or (self._size > self.MOST_SIZE and len(self._kept) > 1):
            self._drop()
        if self._sweep_at is None:
            self._sweep_at = now + self.SWEEP

    def _size_of(self, hook: Hook) -> int:
        try:
            return len(repr(hook))
        except RecursionError:  # nested so deeply that it can be read, but not be written
            return self.MOST_SIZE

    def _drop(self) -> None:
        self._size -= self._kept.popleft()[2]

    def _call(self, hook: Hook) -> None:
        self._tell("hook", None, _title(hook), hook=hook)


def _title(hook: Hook) -> str:
    return f"{hook.event} {hook.title}".strip()
