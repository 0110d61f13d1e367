"""One epoll descriptor and who handles what it finds. Owns the registration; knows no meaning."""

from __future__ import annotations

import contextlib
import select
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Poller"]


class Poller:
    """Call handlers of descriptors that are readable, from whichever thread asks."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._epoll = select.epoll()
        self._handlers: dict[int, Callable[[], None]] = {}

    def watch(self, descriptor: int, handler: Callable[[], None]) -> None:
        """Call `handler` in each poll that finds the descriptor readable."""
        self._handlers[descriptor] = handler
        self._epoll.register(descriptor, select.EPOLLIN)

    def forget(self, descriptor: int) -> None:
        """Watch a descriptor no more; one that is closed has left the poll by itself."""
        if self._handlers.pop(descriptor, None) is not None:
            with contextlib.suppress(OSError):
                self._epoll.unregister(descriptor)

    def poll(self, timeout: float = 0.0) -> None:
        """Handle what is readable, or becomes so within `timeout` real seconds."""
        if timeout:
            self._epoll.poll(timeout)  # whoever else has something to do here need not wait as long
        with self.lock:
            for descriptor, _ in self._epoll.poll(0):
                handler = self._handlers.get(descriptor)
                if handler is not None:
                    handler()

    def close(self) -> None:
        """Give the descriptor back, and let go of who handles what."""
        self._epoll.close()
        self._handlers.clear()
