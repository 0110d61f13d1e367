"""Whether a process that sleeps waits for a time of its own, by the system call that it is in. Owns those numbers.

A shell that waits for its child, or a reader of a pipe, goes with any clock. Who sleeps for five seconds, or looks out
for input with a limit, counts in real time. Where the kernel or the machine does not tell, nobody is taken for such.
"""

from __future__ import annotations

import os
from typing import NamedTuple

__all__ = ["is_timed"]


class _Call(NamedTuple):
    """A system call that can wait with a limit.

    Args:
        limit: which of its arguments that is; None: it always has one.
        is_pointer: whether the limit is a pointer, null for none; else milliseconds, negative for none.
    """

    limit: int | None
    is_pointer: bool = False


_ANYWHERE = {441: _Call(3, is_pointer=True)}  # epoll_pwait2

_CALLS = {
    "x86_64": {
        7: _Call(2),  # poll
        23: _Call(4, is_pointer=True),  # select
        35: _Call(None),  # nanosleep
        230: _Call(None),  # clock_nanosleep
        232: _Call(3),  # epoll_wait
        270: _Call(4, is_pointer=True),  # pselect6
        271: _Call(2, is_pointer=True),  # ppoll
        281: _Call(3),  # epoll_pwait
        **_ANYWHERE,
    },
    "aarch64": {
        22: _Call(3),  # epoll_pwait
        72: _Call(4, is_pointer=True),  # pselect6
        73: _Call(2, is_pointer=True),  # ppoll
        101: _Call(None),  # nanosleep
        115: _Call(None),  # clock_nanosleep
        **_ANYWHERE,
    },
}

_known = _CALLS.get(os.uname().machine, {})


def is_timed(pid: int) -> bool:
    """Say whether the first thread of a process waits for a time of its own."""
    try:
        with open(f"/proc/{pid}/syscall", "rb", buffering=0) as file:
            words = file.read(512).split()
    except OSError:
        return False
    call = _known.get(int(words[0])) if len(words) > _ARGUMENTS and words[0].isdigit() else None
    if call is None:
        return False
    if call.limit is None:
        return True
    limit = int(words[1 + call.limit], 16)
    return limit != 0 if call.is_pointer else limit & 0x8000_0000 == 0


_ARGUMENTS = 6
