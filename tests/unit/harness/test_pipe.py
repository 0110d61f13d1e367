"""The model's pipe against the kernel's: random writes and reads give the same counts, bytes and readiness."""

from __future__ import annotations

import fcntl
import os
import select
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pytest_agentproc.harness.model._actors import InMemoryPipe

if TYPE_CHECKING:
    from collections.abc import Iterator

PIPE_SIZE = 65536
BYTES = bytes(range(251)) * 800

Call = tuple[str, int]

SIZES = st.sampled_from([1, 3000, 4095, 4096, 4097, 8192, 61440, PIPE_SIZE, 70_000]) | st.integers(1, 150_000)
CALLS = st.lists(st.tuples(st.sampled_from(["write", "write", "read"]), SIZES), max_size=40)


class Real:
    """A pipe of the kernel, as far as the model's goes."""

    def __init__(self) -> None:
        self.ends = dict(zip(("reader", "writer"), os.pipe2(os.O_NONBLOCK), strict=True))

    def size(self) -> int:
        """Give its capacity."""
        return fcntl.fcntl(self.ends["writer"], fcntl.F_GETPIPE_SZ)

    def write(self, data: bytes) -> int | None:
        """Write what fits."""
        try:
            return os.write(self.ends["writer"], data)
        except BlockingIOError:
            return None

    def read(self, limit: int) -> bytes | None:
        """Read what is there."""
        try:
            return os.read(self.ends["reader"], limit)
        except BlockingIOError:
            return None

    def is_writable(self) -> bool:
        """Ask poll whether it is writable."""
        return _is_ready(self.ends["writer"], select.POLLOUT)

    def is_readable(self) -> bool:
        """Ask poll whether it is readable."""
        return _is_ready(self.ends["reader"], select.POLLIN)

    def close(self, end: str) -> None:
        """Close one end."""
        os.close(self.ends.pop(end))


def _is_ready(number: int, event: int) -> bool:
    poll = select.poll()
    poll.register(number, event)
    return bool(poll.poll(0))


@contextmanager
def open_both_pipes() -> Iterator[tuple[Real, InMemoryPipe]]:
    """Give a real pipe and a model of it."""
    real = Real()
    try:
        if real.size() != PIPE_SIZE:
            pytest.skip(f"a pipe of this machine holds {real.size()} bytes and not {PIPE_SIZE}")
        yield real, InMemoryPipe()
    finally:
        for end in list(real.ends):
            real.close(end)


def call_pipe(pipe: Real | InMemoryPipe, call: Call) -> tuple[int | bytes | None, bool, bool]:
    """Do one call; give its answer and what poll would say afterwards."""
    name, size = call
    answer = pipe.write(BYTES[:size]) if name == "write" else pipe.read(size)
    return answer, pipe.is_writable(), pipe.is_readable()


@pytest.mark.slow
@settings(deadline=None)  # the machine may be busy
@given(CALLS)
@example([("write", 1), ("write", 70_000), ("read", 4096), ("write", 70_000)])
@example([("write", 3000)] * 17)
@example([("write", 1)] * 4097 + [("write", 4096)] * 15)
@example([("write", 5000), ("read", 4999), ("write", 3000), ("read", 1), ("write", 96), ("write", 1)])
def test_the_model_of_a_pipe_counts_as_the_kernel_does(calls: list[Call]) -> None:
    """A pipe holds page slots and not bytes; the model's floods park where real ones do."""
    with open_both_pipes() as (real, model):
        for number, call in enumerate(calls):
            assert call_pipe(model, call) == call_pipe(real, call), f"call {number}: {call}"


@pytest.mark.slow
@settings(deadline=None)  # the machine may be busy
@given(CALLS, CALLS)
def test_a_pipe_without_a_writer_ends_after_its_last_byte(calls: list[Call], reads: list[Call]) -> None:
    """The bytes written before the end are read before the end, in both."""
    with open_both_pipes() as (real, model):
        for call in calls:
            assert call_pipe(model, call) == call_pipe(real, call)
        real.close("writer")
        model.writers = 0
        for _, size in reads:
            assert (model.is_readable(), model.read(size)) == (real.is_readable(), real.read(size))


def test_a_write_of_more_than_a_pipe_holds_fills_up_the_last_page_first() -> None:
    """A long prompt goes into a pipe that its agent reads slowly."""
    with open_both_pipes() as (real, model):
        for call in [("write", 1), ("write", 70_000), ("read", 4096), ("write", 70_000)]:
            assert call_pipe(model, call) == call_pipe(real, call)


@pytest.mark.parametrize("before", [[], [("write", 65536)]])
def test_a_pipe_that_nobody_reads_is_writable_and_broken(before: list[Call]) -> None:
    """A full pipe whose reader goes wakes its writer, who then fails."""
    with open_both_pipes() as (real, model):
        for call in before:
            assert call_pipe(model, call) == call_pipe(real, call)
        real.close("reader")
        model.readers = 0
        for pipe in (real, model):
            assert pipe.is_writable()
            with pytest.raises(BrokenPipeError):
                pipe.write(b"x")
