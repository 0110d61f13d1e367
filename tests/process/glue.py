"""An adapter in a module of its own: it calls a supervisor that is defined elsewhere, and does nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pytest_agentproc.vocabulary import RunRequest


def wrap_supervise_function(
    supervise: Callable[[RunRequest], Awaitable[Any]],
) -> Callable[[RunRequest], Awaitable[Any]]:
    """Give an adapter of a supervisor."""

    async def adapter(order: RunRequest) -> Any:
        return await supervise(order)

    return adapter
