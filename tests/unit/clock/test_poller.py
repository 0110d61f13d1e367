"""A poll that waits keeps no other process waiting."""

from __future__ import annotations

import os
import threading

from pytest_agentproc.clock._hub_socket import DescriptorPoller


class _Epoll:
    """Says at once what is readable, and asks meanwhile whether another thread could have the lock."""

    def __init__(self, poller: DescriptorPoller, found: list[tuple[int, int]]) -> None:
        self._poller = poller
        self._found = found
        self.was_free: list[tuple[float, bool]] = []

    def poll(self, timeout: float) -> list[tuple[int, int]]:
        def ask() -> None:
            free = self._poller.lock.acquire(blocking=False)
            self.was_free.append((timeout, free))
            if free:
                self._poller.lock.release()

        other = threading.Thread(target=ask)
        other.start()
        other.join()
        return self._found


def test_a_poll_that_waits_keeps_no_other_thread_waiting() -> None:
    """A thread that starts an agent has something to say of it at once, and the loop waits for that very thread."""
    poller = DescriptorPoller()
    poller.close()
    heard: list[int] = []
    poller._handlers[5] = lambda: heard.append(5)  # noqa: SLF001
    epoll = poller._epoll = _Epoll(poller, [(5, 1)])  # type: ignore[assignment]  # noqa: SLF001
    poller.poll(0.05)
    assert epoll.was_free == [(0.05, True), (0, False)]
    assert heard == [5]


def test_what_is_readable_is_handled_once_however_long_was_waited() -> None:
    """The wait takes nothing away, and does nothing twice."""
    poller, heard = DescriptorPoller(), []
    read, write = os.pipe()
    try:
        poller.watch(read, lambda: heard.append(os.read(read, 1)))
        os.write(write, b"x")
        poller.poll(5.0)
        poller.poll()
        assert heard == [b"x"]
    finally:
        poller.close()
        os.close(read)
        os.close(write)
