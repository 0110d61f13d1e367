"""The log of a fake in real time: the messages for a hub, in a file of its own. Owns the form; knows no player.

A file is called after the process's pid and holds entries, each four bytes of length and a marshalled tuple: the
instant (nanoseconds of the machine's monotonic clock), and a message as `pytest_agentproc.fake_agents.wire` has it:

    ("H", parent pid, child index, name, line)   born; a root agent has index -1
    ("N", notes)                                 what it did since the last entry
    ("D", signal number, notes)                  about to die of a signal
    ("T", line)                                  about to end because its lifetime is over, at the step in that line
    ("L", lateness)                              a step came so many nanoseconds (of scaled time) late, the most so far

An entry is written by one call, so a process that is killed leaves whole ones. An empty file lies ready for the first
agent, which gives it its own name: to make one takes the kernel far longer.
"""

from __future__ import annotations

import marshal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    LogEntry = tuple[int, tuple[Any, ...]]

SPARE_FILE_NAME = "spare"
"""The file that lies ready."""

_LENGTH_PREFIX_BYTES = 4


def encode_log_entry(at: int, message: tuple[Any, ...]) -> bytes:
    """Give the bytes of one entry."""
    data = marshal.dumps((at, message))
    return len(data).to_bytes(_LENGTH_PREFIX_BYTES, "little") + data


def decode_log_entries(data: bytes) -> Iterator[LogEntry]:
    """Read a whole log; a last entry that was cut off is left out."""
    start = 0
    while start + _LENGTH_PREFIX_BYTES <= len(data):
        end = start + _LENGTH_PREFIX_BYTES + int.from_bytes(data[start : start + _LENGTH_PREFIX_BYTES], "little")
        if end > len(data):
            return
        at, message = marshal.loads(data[start + _LENGTH_PREFIX_BYTES : end])
        yield at, message
        start = end
