"""Gives up a supervisor that does not return in real time, or that spins below a coordinator. Judges nothing."""

from __future__ import annotations

import signal
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio

from pytest_agentproc.clock import is_debugged
from pytest_agentproc.errors import EndlessWait, Spin
from pytest_agentproc.harness._spins import SpinKind
from pytest_agentproc.harness.fakes._fake_log import FakeLog

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from pytest_agentproc.harness._wakes import CoordinatorWakes
    from pytest_agentproc.harness.fakes._fake_agent import FakeAgent
    from pytest_agentproc.plays import RealTimePace


_LEAST_LOOKS_OF_POLLING = 400
"""A supervisor that polls looks more often than this within a few minutes."""
_LIMIT_EXTENSION_SECONDS = 60
SPIN_SIGNALS = {kind: signal.SIGRTMIN + 3 + place for place, kind in enumerate(SpinKind)}
"""Come from outside the virtual time, which stands still while a supervisor spins."""


def make_spin_error(kind: SpinKind) -> Spin:
    """Make the error of a supervisor that spins below a coordinator."""
    return Spin(f"the supervisor {kind.value}")


@asynccontextmanager
async def cancel_endless_run(
    pace: RealTimePace, wakes: CoordinatorWakes | None, faults: list[EndlessWait | Spin], fakes: Sequence[FakeAgent]
) -> AsyncIterator[anyio.CancelScope]:
    """Cancel a block that does not end by itself, unless somebody debugs by then; add the fault.

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
            kind = "virtual" if pace.is_exact else "real"
            faults.append(EndlessWait(f"the supervisor did not return within {limit:.0f} {kind} seconds"))
            group.cancel_scope.cancel()

    try:
        async with anyio.create_task_group() as group:
            group.start_soon(cancel_after_limit)
            if wakes is not None:
                group.start_soon(_cancel_after_spin, faults, group.cancel_scope)
            yield group.cancel_scope
            group.cancel_scope.cancel()
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None  # the block's own: the task beside it raises none


async def _cancel_after_spin(faults: list[EndlessWait | Spin], scope: anyio.CancelScope) -> None:
    kinds: dict[int, SpinKind] = {number: kind for kind, number in SPIN_SIGNALS.items()}
    with anyio.open_signal_receiver(*kinds) as signals:  # type: ignore[arg-type]
        async for number in signals:
            if not is_debugged():
                faults.append(make_spin_error(kinds[number]))
                scope.cancel()
