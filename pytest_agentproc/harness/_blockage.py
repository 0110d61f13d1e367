"""Other code of the supervising program, which keeps its event loop from running for a while. Judges nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import anyio

from pytest_agentproc.vocabulary import NANOSECONDS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pytest_agentproc.vocabulary import CallerAction


_T = TypeVar("_T")


async def run_and_block_loop(
    deed: CallerAction, ask: Callable[[], Awaitable[_T]], block: Callable[[CallerAction], None]
) -> _T:
    """Have a subject supervise, and block the event loop at the instant of the deed.

    Returns:
        what the subject gave.
    """

    async def block_at_instant() -> None:
        await anyio.sleep((deed.at or 0) / NANOSECONDS)
        block(deed)

    async with anyio.create_task_group() as group:
        group.start_soon(block_at_instant)
        said = await ask()
        group.cancel_scope.cancel()
    return said
