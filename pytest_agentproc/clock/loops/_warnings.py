"""Silence asyncio's warnings about leftovers of a program after its loop is closed, on any loop."""

from __future__ import annotations

import asyncio
from typing import Any


def is_reporting_errors(loop: asyncio.AbstractEventLoop) -> bool:
    """Say whether an unhandled error is still to be reported: only as long as the program runs.

    A later find of the garbage collector would be printed in an unrelated test. Also, a log with a stack parses source.
    During another parse, which is frequent in pytest, CPython 3.11 raises a SystemError there.
    """
    return not loop.is_closed()


def silence_loop_warnings() -> None:
    """Silence the running loop once it is closed; until then nothing is different."""
    asyncio.get_running_loop().set_exception_handler(_handle_loop_exception)


def _handle_loop_exception(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    if is_reporting_errors(loop):
        loop.default_exception_handler(context)
