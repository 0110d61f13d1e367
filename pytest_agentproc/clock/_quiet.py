"""An event loop of asyncio's whose end is the end of what it tells. Changes nothing else."""

from __future__ import annotations

import asyncio
from typing import Any

__all__ = ["QuietLoop", "loop_options"]


class QuietLoop(asyncio.SelectorEventLoop):
    """The usual loop, in real time; until it is closed nothing is different."""

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Tell of what nobody handled, as long as the program runs.

        What the garbage collector finds of it later is no word to whichever test runs then. And a log with a stack
        parses source: in the middle of another parse, as pytest has many, that is a SystemError of CPython 3.11.
        """
        if not self.is_closed():
            super().call_exception_handler(context)


def loop_options(backend: str) -> dict[str, Any]:
    """Give what anyio is to be told of the loop of a run in real time."""
    return {"loop_factory": QuietLoop} if backend == "asyncio" else {}
