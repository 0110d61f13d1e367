"""A block that holds interrupts is not broken by one, and the interrupt is not lost."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.interrupts import end_left_blocks, hold_interrupts, read_handler, whole_block

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _keep_the_handlers() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_in_the_block_is_raised_at_its_end() -> None:
    """The block runs to its end, and Ctrl-C is a Ctrl-C."""
    steps = []

    @hold_interrupts()
    def hold() -> None:
        assert read_handler(signal.SIGINT) is signal.default_int_handler
        signal.raise_signal(signal.SIGINT)
        with hold_interrupts():
            steps.append("inner")
        steps.append("outer")

    with pytest.raises(KeyboardInterrupt):
        hold()
    assert steps == ["inner", "outer"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_interrupt_in_the_block_is_raised_at_once() -> None:
    """A block that hangs can be left."""
    steps = []

    @hold_interrupts()
    def hold() -> None:
        signal.raise_signal(signal.SIGINT)
        steps.append("first")
        signal.raise_signal(signal.SIGINT)
        steps.append("second")

    with pytest.raises(KeyboardInterrupt):
        hold()
    assert steps == ["first"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_handler_that_the_block_sets_stays() -> None:
    """An event loop may set its own."""

    def handle(*_: object) -> None:
        """Do nothing."""

    with hold_interrupts():
        signal.signal(signal.SIGINT, handle)
    assert signal.getsignal(signal.SIGINT) is handle


def test_another_thread_changes_no_handler() -> None:
    """Python raises interrupts in the main thread alone."""
    seen: list[object] = []

    def look() -> None:
        with hold_interrupts():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]


def test_a_whole_block_ends_after_an_interrupt_of_its_beginning() -> None:
    """The caller's `with` does not know yet that the block has begun."""
    steps: list[str] = []

    @whole_block
    def begin() -> Iterator[None]:
        signal.raise_signal(signal.SIGINT)
        steps.append("begun")
        try:
            yield
        finally:
            steps.append("ended")

    with pytest.raises(KeyboardInterrupt), begin():
        pytest.fail("the block was entered")
    assert steps == ["begun", "ended"]


def test_left_blocks_are_ended_from_the_inside_out() -> None:
    """An interrupt at the very call of `__exit__` leaves a block open."""
    steps: list[str] = []

    @whole_block
    def begin(name: str) -> Iterator[None]:
        yield
        steps.append(name)

    with begin("before"):
        with end_left_blocks():
            left = [begin("outer"), begin("inner")]
            for block in left:
                block.__enter__()
        assert steps == ["inner", "outer"]
        left[0].__exit__(None, None, None)
    assert steps == ["inner", "outer", "before"]


def test_a_whole_block_as_a_decorator_begins_at_each_call() -> None:
    """A generator runs once, and a function may be called again, in itself too."""
    steps: list[str] = []

    @whole_block
    def count() -> Iterator[None]:
        steps.append("begun")
        yield
        steps.append("ended")

    @count()
    def call(depth: int) -> None:
        if depth:
            call(depth - 1)

    call(1)
    assert steps == ["begun", "begun", "ended", "ended"]
