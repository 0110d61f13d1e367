"""Has a block that changes this interpreter begin whole and end whole, whenever a Ctrl-C comes. Knows no such block.

Python raises `KeyboardInterrupt` at any call. In the middle of a beginning or an ending it would leave half of a change
behind: a patched clock, a handler, a process that nobody knows. pytest-timeout raises from a signal in the same way.

    hold_interrupts    an interrupt that comes in the block is raised right after it; a second one at once
    whole_block        `contextmanager`, for blocks whose beginning and ending hold interrupts
    end_left_blocks    ends the whole blocks within that are still open
    read_handler       what `signal.getsignal` would say without all this

The last one is for the interrupt at the very call of `__exit__`: Python then runs nothing of it. `sys.settrace` and
masked signals were no way round: the mask is inherited by each process that is started meanwhile.
"""

from __future__ import annotations

import signal
import sys
import threading
from contextlib import ContextDecorator, contextmanager
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from contextlib import AbstractContextManager
    from types import FrameType, TracebackType

__all__ = ["end_blocks_beyond", "end_left_blocks", "hold_interrupts", "list_open_blocks", "read_handler", "whole_block"]

_Value = TypeVar("_Value")
_Arguments = ParamSpec("_Arguments")

_HELD_SIGNALS = (signal.SIGTERM, signal.SIGALRM, signal.SIGINT)
"""The signals whose handlers may raise."""

_held_handlers: dict[int, Any] | None = None
"""What the signals had as handlers, while they are held; None: they are not."""


def read_handler(number: int) -> Any:
    """Give the handler of a signal, as `signal.getsignal` does, also in a block that holds interrupts."""
    return (_held_handlers or {}).get(number, signal.getsignal(number))


@contextmanager
def hold_interrupts() -> Iterator[None]:
    """Have an interrupt that comes in the block wait for its end; in the main thread, where Python raises it."""
    global _held_handlers  # noqa: PLW0603  # a process has one handler for each signal
    if _held_handlers is not None or threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    handlers: dict[int, Any] = {}
    is_over = False

    def note(number: int, frame: FrameType | None) -> None:
        # Another signal may have raised before this handler was taken away. A second Ctrl-C breaks a block that hangs.
        if is_over or number in came:
            handlers[number](number, frame)
        else:
            came.append(number)

    _held_handlers = handlers
    try:
        handlers |= {number: found for number in _HELD_SIGNALS if callable(found := signal.getsignal(number))}
        for number in handlers:
            signal.signal(number, note)
        yield
    finally:
        try:
            for number, handler in handlers.items():
                if signal.getsignal(number) is note:  # the block may have put a handler of its own there
                    signal.signal(number, handler)
        finally:
            _held_handlers, is_over = None, True
        for number in came:
            if callable(handler := signal.getsignal(number)):
                handler(number, sys._getframe())  # noqa: SLF001  # a handler is given a frame, which it may look at


def whole_block(
    function: Callable[_Arguments, Iterator[_Value]],
) -> Callable[_Arguments, _WholeBlock[_Value]]:
    """Make a context manager of a generator, as `contextmanager` does; its beginning and ending hold interrupts."""
    make = contextmanager(function)

    @wraps(function)
    def build(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _WholeBlock[_Value]:
        return _WholeBlock(partial(make, *args, **kwargs))

    return build


class _WholeBlock(ContextDecorator, Generic[_Value]):
    """A block that is open, or is not: nothing in between is seen."""

    def __init__(self, make: Callable[[], AbstractContextManager[_Value]]) -> None:
        self._make = make
        self._inner = make()

    def _recreate_cm(self) -> _WholeBlock[_Value]:
        return _WholeBlock(self._make)  # a decorated function begins a block of its own at each call

    def __enter__(self) -> _Value:
        try:
            with hold_interrupts():
                value = self._inner.__enter__()
                _open_blocks[self] = threading.get_ident()
        except BaseException:
            self.__exit__(*sys.exc_info())  # the interrupt came right after the beginning
            raise
        return value

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        with hold_interrupts():
            return self._inner.__exit__(kind, error, trace) if _open_blocks.pop(self, None) is not None else None


_open_blocks: dict[_WholeBlock[Any], int] = {}
"""All that are open, the innermost last, each with its thread."""


def list_open_blocks() -> Collection[object]:
    """List the whole blocks that are open now, for `end_blocks_beyond`."""
    return {*_open_blocks}


def end_blocks_beyond(known: Collection[object]) -> None:
    """End the open blocks of this thread that were not open before, the innermost first."""
    left = [block for block, thread in _open_blocks.items() if block not in known and thread == threading.get_ident()]
    for block in reversed(left):
        block.__exit__(None, None, None)


@contextmanager
def end_left_blocks() -> Iterator[None]:
    """End what is left of whole blocks when this one ends: of a call that outlives none of them."""
    known = list_open_blocks()
    try:
        yield
    finally:
        end_blocks_beyond(known)
