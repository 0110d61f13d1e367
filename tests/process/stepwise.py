"""An awaitable that reports each point at which it waits, so that a test can cancel there. Knows no expectation."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator

__all__ = ["Stepwise"]


class Stepwise:
    """A coroutine, to be awaited once.

    Args:
        runs: the coroutine that it runs.
        step: called whenever that is about to wait.
    """

    def __init__(self, runs: Coroutine[Any, Any, Any], step: Callable[[], None]) -> None:
        self._runs = runs
        self._measure_step = step

    def __await__(self) -> Generator[Any, Any, Any]:
        """Pass on each wait of the coroutine, and its result."""
        go_on: Callable[[], Any] = partial(self._runs.send, None)
        while True:
            try:
                awaited = go_on()
            except StopIteration as end:
                return end.value
            self._measure_step()
            try:
                go_on = partial(self._runs.send, (yield awaited))
            except BaseException as error:  # noqa: BLE001  # a cancellation above all, which the coroutine is to see
                go_on = partial(self._runs.throw, error)
