"""What asyncio tells of what a program left behind ends with the program's loop, whatever loop that is."""

from __future__ import annotations

import asyncio
from typing import Any

__all__ = ["is_told", "silence_loop_warnings"]


def is_told(loop: asyncio.AbstractEventLoop) -> bool:
    """Say whether anybody is to hear of what nobody handled: that is so as long as the program runs.

    What the garbage collector finds of it later is no word to whichever test runs then. And a log with a stack parses
    source: in the middle of another parse, as pytest has many, that is a SystemError of CPython 3.11.
    """
    return not loop.is_closed()


def silence_loop_warnings() -> None:
    """Have the loop that runs tell nobody of it once it is closed; until then nothing is different."""
    asyncio.get_running_loop().set_exception_handler(_handle)


def _handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    if is_told(loop):
        loop.default_exception_handler(context)
