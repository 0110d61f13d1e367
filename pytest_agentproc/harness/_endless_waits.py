"""Gives up a supervisor that does not return in real time, or below a coordinator. Judges nothing."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio

from pytest_agentproc.clock import is_debugged
from pytest_agentproc.harness.fakes._fake_log import FakeLog

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from pytest_agentproc.harness._play_result import RealTimePace
    from pytest_agentproc.harness._wakes import CoordinatorWakes
    from pytest_agentproc.harness.fakes._fake_agent import FakeAgent


_LEAST_LOOKS_OF_POLLING = 400
"""A supervisor that polls looks more often than this within a few minutes."""
_LIMIT_EXTENSION_SECONDS = 60


@asynccontextmanager
async def cancel_endless_run(
    pace: RealTimePace, wakes: CoordinatorWakes | None, limits: list[float], fakes: Sequence[FakeAgent]
) -> AsyncIterator[anyio.CancelScope]:
    """Cancel a block that does not end by itself, unless somebody debugs by then; add the limit that was over.

    A process that has outlived a signal and all graces will not be killed any more. So a supervisor that still looks
    for its end is given up before all its other limits are over.
    """
    start = anyio.current_time()

    def is_hopeless() -> bool:
        logs = (fake.watch for fake in fakes)
        is_deaf = any(isinstance(log, FakeLog) and log.has_outlived_signal(pace.graces) for log in logs)
        return is_deaf or (wakes is not None and wakes.have_taken_long())

    async def cancel_after_limit() -> None:
        limit = pace.least_of_looks
        await anyio.sleep_until(start + limit)
        while limit < pace.limit_of_looks and not is_hopeless():
            limit = min(limit + _LIMIT_EXTENSION_SECONDS, pace.limit_of_looks)
            await anyio.sleep_until(start + limit)
        if not limit or wakes is None or wakes.count_wakes() < _LEAST_LOOKS_OF_POLLING:
            limit = pace.limit
        await anyio.sleep_until(start + limit)
        if not is_debugged():
            limits.append(limit)
            group.cancel_scope.cancel()

    try:
        async with anyio.create_task_group() as group:
            group.start_soon(cancel_after_limit)
            yield group.cancel_scope
            group.cancel_scope.cancel()
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None  # the block's own: the task beside it raises none
