"""Judgements of hooks and their callbacks that are wrong, each in one way. Pure; calls nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_agentproc.supervisor import Hooks

if TYPE_CHECKING:
    from pytest_agentproc.supervisor import Hook

__all__ = ["AllowingHooks", "BlockingHooks", "DeafHooks", "EndlessHooks", "LosingHooks", "RepeatingHooks", "StaleHooks"]


class LosingHooks(Hooks):
    """Drops a hook that fires before its callback is registered (B4)."""

    def register(self, name: str, now: int) -> None:
        """Hear of nothing that was before."""
        self._kept.clear()
        super().register(name, now)


class RepeatingHooks(Hooks):
    """Calls back for a hook that was kept, and keeps it (B4)."""

    def fire(self, hook: Hook, now: int) -> bytes:
        """Call once more for whatever is kept of this hook."""
        data = super().fire(hook, now)
        if hook.callback in self._registered and not hook.is_question:
            self._call(hook)
        return data

    def register(self, name: str, now: int) -> None:
        """Call back twice."""
        kept = tuple(self._kept)
        super().register(name, now)
        for hook, at, _ in kept:
            if hook.callback == name and now - at <= self.LIFE:
                self._call(hook)


class BlockingHooks(Hooks):
    """Has the agent wait for the callback of a hook that asks nothing (B4)."""

    def fire(self, hook: Hook, now: int) -> bytes:
        """Answer only once somebody is registered."""
        data = super().fire(hook, now)
        if hook.is_question or hook.callback in self._registered:
            return data
        self._waiting[hook.id] = (hook, now + self._limit)
        return b""

    def register(self, name: str, now: int) -> None:
        """Let nothing wait twice."""
        super().register(name, now)
        for hook, _ in tuple(self._waiting.values()):
            if hook.callback == name and not hook.is_question:
                del self._waiting[hook.id]


class AllowingHooks(Hooks):
    """Lets a tool run whose hook has no callback yet (B4)."""

    def fire(self, hook: Hook, now: int) -> bytes:
        """Answer at once where nobody is registered."""
        data = super().fire(hook, now)
        if hook.is_question and hook.callback not in self._registered:
            return data + self.decide(hook.id, allowed=True)
        return data


class DeafHooks(Hooks):
    """Lets a tool run whatever its callback says (B4)."""

    def decide(self, name: str, *, allowed: bool) -> bytes:
        """Hear no refusal."""
        return super().decide(name, allowed=True)


class EndlessHooks(Hooks):
    """Waits for a callback for ever (B4)."""

    @property
    def deadlines(self) -> dict[str, int]:
        """Have no limit."""
        return {name: at for name, at in super().deadlines.items() if name != "hook_timeout"}


class StaleHooks(Hooks):
    """Calls back for a hook that is long past (B4)."""

    LIFE = 1 << 62
