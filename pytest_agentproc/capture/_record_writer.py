"""Keeps the record where a kill of the recorder does not reach it. Owns a process of its own; knows no program.

A supervisor sends KILL to a program that ignores TERM, and the KILL hits the recorder in its place. The writer lives
on: it ends the program as the KILL would have, and writes what was recorded up to then.

    recorder --events--> writer      every event as it happens, as a marshalled tuple after its length
    recorder --nothing--> writer     informed that all is well: it exits without a word; else the recorder was killed
"""

from __future__ import annotations

import marshal
import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING

from pytest_agentproc.events import Event, ProcessEnded, ProcessStarted, decode_event, encode_event
from pytest_agentproc.record import Record
from pytest_agentproc.tree import open_pidfd

if TYPE_CHECKING:
    from collections.abc import Callable


_LENGTH_PREFIX_BYTES = 8
_NORMAL_END_LENGTH = 0
"""The length of the last message, where all is well."""


class RecordWriter:
    """Start the process; call it before there is a second thread.

    Args:
        write: writes what was recorded; called in the writer's process, if the recorder was killed.
    """

    def __init__(self, write: Callable[[Record], object]) -> None:
        reading, self._writing = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            try:
                os.close(self._writing)
                _write_record_if_recorder_killed(reading, write)
            finally:
                os._exit(0)  # nobody is left to be told
        os.close(reading)

    def send_event(self, event: Event) -> None:
        """Pass an event on."""
        at, code, data = encode_event(event)
        self._send_message(marshal.dumps((at, code, dict(data))))

    def stop(self) -> None:
        """Say that all is well, and see it go."""
        self._send_message(b"")
        os.close(self._writing)
        os.waitpid(self._pid, 0)

    def _send_message(self, message: bytes) -> None:
        data = len(message).to_bytes(_LENGTH_PREFIX_BYTES, "little") + message
        with suppress(BrokenPipeError):  # it was killed: then there is no second record
            while data:
                data = data[os.write(self._writing, data) :]


def _write_record_if_recorder_killed(reading: int, write: Callable[[Record], object]) -> None:
    """Take events until the recorder has ended, out of reach of signals to its group; its streams are let go."""
    os.setsid()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    record, last, agents = Record(), 0, list[int | None]()
    with os.fdopen(reading, "rb") as source:
        while len(head := source.read(_LENGTH_PREFIX_BYTES)) == _LENGTH_PREFIX_BYTES:
            size = int.from_bytes(head, "little")
            if size == _NORMAL_END_LENGTH:
                return
            event = decode_event(*marshal.loads(source.read(size)))  # noqa: S302  # what this very program said
            record.add(event)
            last = event.at
            if not agents and isinstance(event, ProcessStarted):
                agents.append(open_pidfd(event.pid))  # None: it has ended, and the recorder has waited for it
    if not agents:
        return
    if agents[0] is not None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(agents[0], signal.SIGKILL)
    record.add(ProcessEnded(last, "agent", signal="KILL"))
    write(record)
