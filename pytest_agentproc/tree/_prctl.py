"""System calls without a name in the standard library: subreaper, and real-time alarm. Owns both; reaps nothing."""

from __future__ import annotations

import errno
import os
import signal
import struct
import threading
from functools import cache
from typing import TYPE_CHECKING

from pytest_agentproc.interrupts import whole_block
from pytest_agentproc.tree._kernel import call_libc

if TYPE_CHECKING:
    import ctypes
    from collections.abc import Iterator


_SET_PARENT_DEATH_SIGNAL = 1
_SET_CHILD_SUBREAPER = 36
_GET_CHILD_SUBREAPER = 37
_CLOCK_MONOTONIC = 1

_subreaper_lock = threading.Lock()
_adoption_request_count = 0
_was_subreaper = False


def adopt_orphans() -> None:
    """Make orphans of this process's descendants its children, until `release_orphans` was called equally often.

    Raises:
        OSError: this system cannot.
    """
    global _adoption_request_count, _was_subreaper  # noqa: PLW0603  # it is one attribute of one process
    # The attribute belongs to the process, and several runs want it at once. Without one counter for all, the end of
    # one run would take the orphans from another.
    with _subreaper_lock:
        if _adoption_request_count == 0:
            _was_subreaper = is_subreaper()
            _call_libc("prctl", _SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        _adoption_request_count += 1


def release_orphans() -> None:
    """Undo one `adopt_orphans`; the last one makes this process what it was."""
    global _adoption_request_count  # noqa: PLW0603  # see above
    with _subreaper_lock:
        _adoption_request_count -= 1
        # The host program may have been a subreaper before. It gets that back.
        if _adoption_request_count == 0:
            _call_libc("prctl", _SET_CHILD_SUBREAPER, int(_was_subreaper), 0, 0, 0)


def is_subreaper() -> bool:
    """Say whether this process adopts orphans now.

    Raises:
        OSError: this system cannot say it.
    """
    import ctypes

    found = ctypes.c_int()
    _call_libc("prctl", _GET_CHILD_SUBREAPER, ctypes.byref(found), 0, 0, 0)
    return bool(found.value)


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent ends, or the thread of its parent that started it."""
    call_libc("prctl", _SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it has ended before this call
        os._exit(1)


@whole_block
def adopt_orphans_in_block() -> Iterator[bool]:
    """Adopt the orphans of this process's descendants while the block runs; yield whether the kernel can.

    Blocks may be nested and overlap in any order, in several threads. The end of the last block restores the setting
    from before the first. An adopted process stays this process's child after the end of the block.
    """
    try:
        adopt_orphans()
    except (OSError, AttributeError):  # another kernel, or no C library that has it
        yield False
        return
    try:
        yield True
    finally:
        release_orphans()


class Alarm:
    """A descriptor that becomes readable a given number of real milliseconds after it was set."""

    def __init__(self) -> None:
        self.descriptor = call_libc("timerfd_create", _CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)
        if self.descriptor < 0:  # the C module that is loaded keeps no errno, and nothing else can be wrong
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    def set(self, milliseconds: int) -> None:
        """Ring once after the given milliseconds; an earlier setting no longer counts."""
        call_libc("timerfd_settime", self.descriptor, 0, struct.pack("4l", 0, 0, 0, milliseconds * 1_000_000), None)

    def clear(self) -> None:
        """Stop the alarm, and clear a ring."""
        call_libc("timerfd_settime", self.descriptor, 0, struct.pack("4l", 0, 0, 0, 0), None)

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self.descriptor)


@cache
def _load_libc() -> ctypes.CDLL:
    import ctypes  # slow to load, and few runs need it

    return ctypes.CDLL(None, use_errno=True)


def _call_libc(name: str, *arguments: object) -> int:
    import ctypes

    result: int = getattr(_load_libc(), name)(*arguments)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result
