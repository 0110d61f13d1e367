"""One descriptor that a caller can set and that agents, one after the other, set too. Owns system calls."""

from __future__ import annotations

import contextlib
import os
import select


class LoopWakeup:
    """An epoll descriptor over an eventfd and the descriptor of the agent that lives now.

    Raises:
        OSError: no descriptor is left.
    """

    def __init__(self) -> None:
        self._event = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        try:
            self._epoll = select.epoll()
        except OSError:
            os.close(self._event)
            raise
        self._epoll.register(self._event, select.EPOLLIN)

    @property
    def descriptor(self) -> int:
        """The descriptor that is readable after a call of `set`."""
        return self._epoll.fileno()

    def set(self) -> None:
        """Make it readable, from any thread; after `close` this does nothing."""
        if not self._epoll.closed:
            os.eventfd_write(self._event, 1)

    def clear(self) -> None:
        """Undo `set`."""
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._event)

    def watch(self, descriptor: int) -> None:
        """Become readable with this descriptor, too."""
        self._epoll.register(descriptor, select.EPOLLIN)

    def unwatch(self, descriptor: int) -> None:
        """Stop following a descriptor."""
        self._epoll.unregister(descriptor)

    def close(self) -> None:
        """Give both descriptors back."""
        if not self._epoll.closed:
            self._epoll.close()
            os.close(self._event)
