"""Writes into the page of a coordinator as an attacker below it would. Owns the layout of the page; judges nothing.

Usage: page_writer.py fuzz SEED COUNT PID...
       page_writer.py order KIND PID TID SIGNAL [UID]
       page_writer.py shorten
       page_writer.py bare WORDS...

`fuzz` writes COUNT random pages and orders, which name any of the PIDs, and prints a dot for each page. `order` claims
that a wait (KIND 0) or a timer (KIND 2) of the process is due, or that it asks to be traced (KIND 7); it first becomes
the user UID. `bare` does what the
other words say, without the library of the coordinator.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import random
import select
import struct
import sys

_SLOTS_OFFSET_BYTES, _SLOT_COUNT = 134_208, 4096
_SLOT_STRUCT = struct.Struct("iiiiqqiIIiqiiiiiiQQQ")
_TOP_OFFSET_BYTES = 44
_ASKS_OFFSET_BYTES = _SLOTS_OFFSET_BYTES + _SLOT_COUNT * _SLOT_STRUCT.size
_ODD_NUMBERS = (0, 1, -1, 2**31 - 1, -(2**31), 4096, 4097, 63, 9)
_ODD_INSTANTS = (0, 1, -1, 2**63 - 1, -(2**63), 10**15)
_TIMER = 2
_EXECVE = {"x86_64": 59, "aarch64": 221}
SHARE_OF_PAGES_AGAINST_ITSELF = 0.01
"""An order may kill its own writer, or the shell above it; then nothing more is written."""


def _open_page() -> mmap.mmap:
    descriptor = os.open(os.environ["AGENTPROC_CLOCK"], os.O_RDWR)
    return mmap.mmap(descriptor, 0)


def _write_order(page: mmap.mmap, index: int, *fields: int) -> None:
    _SLOT_STRUCT.pack_into(page, _SLOTS_OFFSET_BYTES + index * _SLOT_STRUCT.size, *fields)


def _draw_order(rnd: random.Random, pids: list[int]) -> list[int]:
    number = (*_ODD_NUMBERS, *pids)
    pid = rnd.choice((*pids, *_ODD_NUMBERS))
    return [
        rnd.choice((pid, *number)),
        pid,
        rnd.randrange(-1, 9),
        rnd.choice((0, 0, 1)),
        rnd.choice(_ODD_INSTANTS),
        rnd.choice(_ODD_INSTANTS),
        rnd.choice((0, 1)),
        rnd.getrandbits(32),
        rnd.choice((0, 5, 2**32 - 1)),
        rnd.choice((0, 0, 0, 1, -1, 2**31 - 1)),
        rnd.choice(_ODD_INSTANTS),
        rnd.choice((9, 15, 63, 0, -1, 65, 2**31 - 1)),
        rnd.choice((0, 0, pid, *number)),
        rnd.choice(number),
        *(rnd.choice((0, 1)) for _ in range(3)),
        rnd.getrandbits(64),
        rnd.choice((0, 0, rnd.getrandbits(64))),
        rnd.choice((0, rnd.getrandbits(64))),
    ]


def _fuzz(seed: str, count: str, *pids: str) -> None:
    rnd = random.Random(seed)  # noqa: S311  # the same pages each time
    outside, own = [*map(int, pids)], [os.getpid(), os.getppid()]
    with _open_page() as page:
        for number in range(int(count)):
            named = [*outside, *(own if rnd.random() < SHARE_OF_PAGES_AGAINST_ITSELF else ())]
            if number % 4 == 0:
                page[:] = rnd.randbytes(len(page))
            for _ in range(20):
                _write_order(page, rnd.randrange(_SLOT_COUNT), *_draw_order(rnd, named))
            for place in range(8, 64, 4):
                if rnd.random() < 0.3:
                    struct.pack_into("i", page, place, rnd.choice((*_ODD_NUMBERS, *named)))
            struct.pack_into("q", page, 8, rnd.choice((-(2**63), -(2**63), *_ODD_INSTANTS)))
            struct.pack_into("i", page, _ASKS_OFFSET_BYTES, number)
            struct.pack_into("i", page, _TOP_OFFSET_BYTES, rnd.choice((4096, 4096, *_ODD_NUMBERS)))
            os.write(1, b".")
            os.sched_yield()


def _claim(kind: int, pid: int, tid: int, signum: int, uid: str = "") -> None:
    with _open_page() as page:
        if uid:
            os.setuid(int(uid))
        thread = tid if kind == _TIMER else 0
        _write_order(page, 4000, tid, pid, kind, 0, 0, 1, 1, 0, 0, 0, 0, signum, thread, 0, 0, 0, 0, 0, 0, 0)
        struct.pack_into("i", page, _TOP_OFFSET_BYTES, 4001)
        struct.pack_into("i", page, _ASKS_OFFSET_BYTES, 77)
        select.select([], [], [], 0.3)
        _write_order(page, 4000, tid, pid, kind, 0, 0, 1, 0, 0, 0, 0, 0, signum, thread, 0, 0, 0, 0, 0, 0, 0)
        select.select([], [], [], 3)


def _execute_without_library(words: list[str]) -> None:
    """Execute this program by a system call of its own: the library gives itself to each program that libc executes."""
    environment = [os.fsencode(f"{name}={value}") for name, value in os.environ.items() if name != "LD_PRELOAD"]
    argv = [os.fsencode(word) for word in (sys.executable, __file__, *words)]
    arrays = [(ctypes.c_char_p * (len(each) + 1))(*each, None) for each in (argv, environment)]
    ctypes.CDLL(None).syscall(_EXECVE[platform.machine()], argv[0], *arrays)


def main() -> None:
    """Do what the first argument says."""
    what, *words = sys.argv[1:]
    if what == "bare":
        _execute_without_library(words)
    elif what == "fuzz":
        _fuzz(*words)
    elif what == "order":
        _claim(int(words[0]), int(words[1]), int(words[2]), int(words[3]), *words[4:])
    else:
        os.truncate(os.environ["AGENTPROC_CLOCK"], 0)


if __name__ == "__main__":
    main()
