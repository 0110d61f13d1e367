"""A terminal of its own for the recorded program. Owns the pair, its size and our own terminal's mode."""

from __future__ import annotations

import fcntl
import os
import pty
import termios
import tty
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Terminal", "raw_mode"]

_ROWS, _COLUMNS = 24, 80
_END = b"\x04"


class Terminal:
    """Have the recorded program run in a terminal.

    Args:
        like: a descriptor whose size is taken, if it is a terminal.
    """

    end_of_input = _END
    """What is written for the end of input."""

    def __init__(self, like: int) -> None:
        self._like = like
        self.master, self.slave = pty.openpty()
        self.resize()

    def resize(self) -> tuple[int, int]:
        """Take over the size of our own terminal; give rows and columns."""
        size = _ROWS, _COLUMNS
        with suppress(termios.error):
            size = termios.tcgetwinsize(self._like)
        termios.tcsetwinsize(self.slave, size)
        return size

    def adopt(self) -> None:
        """Make it the controlling terminal of this session; called in the child."""
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def started(self) -> None:
        """Let go of the program's end. Its size is set through ours from now on."""
        os.close(self.slave)
        self.slave = self.master


@contextmanager
def raw_mode(number: int) -> Iterator[None]:
    """Have our own terminal pass every key on while the block runs; what is no terminal stays as it is."""
    if not os.isatty(number):
        yield
        return
    before = termios.tcgetattr(number)
    tty.setraw(number)
    try:
        yield
    finally:
        termios.tcsetattr(number, termios.TCSADRAIN, before)
