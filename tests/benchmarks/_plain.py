"""The units of the kit's costs: bare interpreters, ping-pongs, steps. Owns these; knows nothing of the kit."""

from __future__ import annotations

import contextlib
import itertools
import os
import select
import socket
import subprocess
import time
from functools import partial
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["ENVIRONMENT", "PLACEMENTS", "BareSteps", "PingPong", "measure_first_byte", "measure_spawns", "pin_to_cores"]

ENVIRONMENT: Mapping[str, str] = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
"""As small as a fake's: its content changes how an interpreter starts."""

_CORES = sorted(os.sched_getaffinity(0))

PLACEMENTS: Mapping[str, tuple[list[int], list[int]]] = {
    "free": (_CORES, _CORES),
    "apart": (_CORES[:1], _CORES[-1:]),
    "together": (_CORES[:1], _CORES[:1]),
}
"""Where two processes that take turns run: the cores of the first and of the second. Waking a sleeping core costs
several times as much as a change of process on one core. So the same code has three prices."""


@contextlib.contextmanager
def pin_to_cores(cores: Sequence[int]) -> Iterator[None]:
    """Keep this process, and its children, on these cores."""
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, _CORES)


def measure_spawns(interpreter: str, count: int, backend: str) -> list[float]:
    """Spawn `python -I -S -c pass` through `anyio.run_process` and wait for it, in a loop that has done so before.

    Returns:
        Seconds of each of `count` spawns, from the call to its return: the exit is seen, both pipes are at their end.
    """

    async def measure() -> list[float]:
        command = [interpreter, "-I", "-S", "-c", "pass"]
        spawn = partial(anyio.run_process, command, stdin=subprocess.DEVNULL, env=ENVIRONMENT)
        await spawn()
        taken = []
        for _ in range(count):
            start = time.perf_counter()
            await spawn()
            taken.append(time.perf_counter() - start)
        return taken

    return anyio.run(measure, backend=backend)


def measure_first_byte(command: Sequence[str], environment: Mapping[str, str] = ENVIRONMENT) -> float:
    """Start a command as the core starts agents, and give the seconds until its first byte of output is read."""
    pipe = subprocess.PIPE
    start = time.perf_counter()
    process = subprocess.Popen(
        command, bufsize=0, stdin=pipe, stdout=pipe, stderr=pipe, env=environment, start_new_session=True
    )
    assert process.stdout is not None
    data = process.stdout.read(1)
    taken = time.perf_counter() - start
    process.kill()
    process.communicate()
    if not data:
        raise RuntimeError(f"{command[0]} ended without a byte")
    return taken


_PONG = """
import select, _socket
link = _socket.socket(fileno=0)
poll = select.poll()
poll.register(0, select.POLLIN)
wait, receive, send = poll.poll, link.recv, link.send
{wait}
    message = receive(64)
    if not message:
        break
    send(message)
"""


class PingPong:
    """Two Python processes that send one small message to and fro over AF_UNIX SEQPACKET.

    Args:
        interpreter: the Python at the other end.
        placement: one of `PLACEMENTS`.
        polls: whether each side waits in `select.poll` before it receives, as an event-driven program does; else
            both block in `recv`, which is the least that two processes can do.
    """

    def __init__(self, interpreter: str, placement: str, *, polls: bool) -> None:
        self._polls = polls
        self._here, there = PLACEMENTS[placement]
        self._link, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        source = _PONG.format(wait="while wait():" if polls else "while True:")
        with other, pin_to_cores(there):
            command = [interpreter, "-I", "-S", "-c", source]
            self._process = subprocess.Popen(command, stdin=other.fileno(), env=ENVIRONMENT)
        self.measure_round_trip(100)

    def measure_round_trip(self, count: int) -> float:
        """Give the seconds of one round trip, over `count` of them."""
        poll = select.poll()
        poll.register(self._link, select.POLLIN)
        wait, send, receive = poll.poll, self._link.send, self._link.recv
        with pin_to_cores(self._here):
            start = time.perf_counter()
            if self._polls:
                for _ in range(count):
                    send(b"12345678")
                    wait()
                    receive(64)
            else:
                for _ in range(count):
                    send(b"12345678")
                    receive(64)
            return (time.perf_counter() - start) / count

    def close(self) -> None:
        """End the other process."""
        self._link.close()
        self._process.wait()


_STEPPER = """
import posix, select, _socket
link = _socket.socket(fileno=0)
poll = select.poll()
poll.register(1, select.POLLOUT)
has_room, receive, write, send = poll.poll, link.recv, posix.write, link.send
while receive(16):
    has_room(0)
    write(1, b".")
    send(b"12345678901234567890123456789012345678")
"""


class BareSteps:
    """The system calls of a virtual step, in its order, and nothing else: no lockstep of this kind can cost less.

    Here: send a grant, await and receive an answer, and ask the polls of all processes and of one supervisor. Then read
    a byte from a pipe, and ask the poll of all again. There: a grant is received, the pipe is asked for room, a byte is
    written, the answer is sent.

    Args:
        interpreter: whose processes are at the other end.
        placement: one of `PLACEMENTS`.
        count: how many processes take their steps in turn.
    """

    def __init__(self, interpreter: str, placement: str, count: int = 1) -> None:
        self._here, there = PLACEMENTS[placement]
        self._everyone = select.epoll()
        self._ends: list[tuple[socket.socket, int, select.epoll]] = []
        self._processes: list[subprocess.Popen[bytes]] = []
        with pin_to_cores(there):
            for _ in range(count):
                self._start(interpreter)
        self.measure_step(2 * count)

    def _start(self, interpreter: str) -> None:
        link, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        link.settimeout(10)
        command = [interpreter, "-I", "-S", "-c", _STEPPER]
        with other:
            started = subprocess.Popen(command, stdin=other.fileno(), stdout=writer, env=ENVIRONMENT)
        os.close(writer)
        mine = select.epoll()
        mine.register(reader, select.EPOLLIN)
        for descriptor in (link.fileno(), mine.fileno()):
            self._everyone.register(descriptor, select.EPOLLIN)
        self._processes.append(started)
        self._ends.append((link, reader, mine))

    def measure_step(self, count: int) -> float:
        """Give the seconds of one step, over `count` of them, one process after the other."""
        buffer, everyone, ends = bytearray(64), self._everyone.poll, itertools.cycle(self._ends)
        with pin_to_cores(self._here):
            start = time.perf_counter()
            for link, reader, mine in itertools.islice(ends, count):
                os.write(link.fileno(), b"123456789")
                link.recv_into(buffer)
                everyone(0)
                mine.poll(0)
                os.read(reader, 65536)
                everyone(0)
            return (time.perf_counter() - start) / count

    def close(self) -> None:
        """End the other processes."""
        self._everyone.close()
        for link, reader, mine in self._ends:
            link.close()
            mine.close()
            os.close(reader)
        for process in self._processes:
            process.wait()
