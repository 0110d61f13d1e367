"""The stdin of this process while a scenario is played: an open pipe without data. Knows no supervisor.

The stdin of a terminal or of a service stays open, but pytest's own is at its end. An agent that inherits it would wait
for its end there, and would get that end here. So the fault would be seen by users only.

The pipe is made where the supervisor runs. Below a coordinator, a pipe with a holder outside would make time pass as on
the machine. Code that reads `sys.stdin`, such as a debugger, reads what it would read without a play.
"""

from __future__ import annotations

import io
import os
import sys
import threading
from typing import TYPE_CHECKING

from pytest_agentproc.interrupts import whole_block

if TYPE_CHECKING:
    from collections.abc import Iterator

STDIN_DESCRIPTOR = 0

_lock = threading.Lock()
_users = 0
_pipe: _OpenPipe | None = None
"""Plays in several threads share one pipe: two that end in any order would leave one of them in place."""


@whole_block
def keep_stdin_open() -> Iterator[None]:
    """Have an open pipe without data as the stdin of this process while the block runs."""
    global _users, _pipe  # noqa: PLW0603  # a process has one stdin
    with _lock:
        _pipe = _pipe or _OpenPipe()
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if not _users:
                _pipe.close()
                _pipe = None


def restore_user_stdin() -> None:
    """Let the user type, for the rest of a play: a debugger asks for a command."""
    with _lock:
        if _pipe is not None:
            _pipe.restore()


class _OpenPipe:
    """The pipe, and what it replaces."""

    def __init__(self) -> None:
        if _read_inode(STDIN_DESCRIPTOR) is None:
            os.open(os.devnull, os.O_RDONLY)  # it gets the lowest free number, which is that of stdin
        self._replaced = os.dup(STDIN_DESCRIPTOR)
        try:
            source, self._end = os.pipe()
        except OSError:
            os.close(self._replaced)
            raise
        os.dup2(source, STDIN_DESCRIPTOR)
        os.close(source)
        self._inode = _read_inode(STDIN_DESCRIPTOR)
        self._stream = sys.stdin
        if _is_stream_of_stdin():
            sys.stdin = io.open(  # noqa: SIM115  # see restore
                self._replaced, encoding=self._stream.encoding, closefd=False
            )
        self._stand_in = sys.stdin

    def restore(self) -> None:
        """Put back what the pipe replaces, unless other code, such as pytest's capture, has put something there."""
        if _read_inode(STDIN_DESCRIPTOR) in (self._inode, None):
            os.dup2(self._replaced, STDIN_DESCRIPTOR)
        if sys.stdin is self._stand_in:
            sys.stdin = self._stream

    def close(self) -> None:
        """Put back what the pipe replaces, and close it: an agent that still reads it gets its end."""
        self.restore()
        os.close(self._replaced)
        os.close(self._end)


def _read_inode(descriptor: int) -> int | None:
    """Give the number of an open file; None: the descriptor is closed."""
    try:
        return os.fstat(descriptor).st_ino
    except OSError:
        return None


def _is_stream_of_stdin() -> bool:
    try:
        return sys.stdin.fileno() == STDIN_DESCRIPTOR
    except (AttributeError, OSError, ValueError):  # it is None, or one that pytest or another program has put there
        return False
