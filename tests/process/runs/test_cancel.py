"""A cancelled supervisor leaves no process and nothing else, wherever it waits and whatever it does (T4)."""

from __future__ import annotations

import asyncio
import gc
import warnings
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from pytest_agentproc.supervisor import Outcome, Policy, Result, run_once
from tests.process.stand import is_gone, list_open_descriptors
from tests.process.stepwise import Stepwise

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.process.stand import Stand

POLICY = Policy(inactivity_timeout=60.0, linger_grace=1.0, linger_kill_grace=1.0)
LINGERS = """
- spawn: {id: tool, ignores_signals: true}
- when: {signal: TERM}
  do: [{say: not yet}]
- wait_for: eof
- say: let me look
- silence: 30s
- answer: done
- silence: for ever
"""
LEAVES = """
- spawn: {id: tool, ignores_signals: true, inherits: [stdout]}
- wait_for: eof
- answer: done
- exit: 0
"""
IS_SILENT = """
- spawn: {id: tool, ignores_signals: true}
- wait_for: eof
- say: let me look
- silence: for ever
"""
SCRIPTS = {"lingers": (LINGERS, Outcome.COMPLETED), "leaves": (LEAVES, Outcome.COMPLETED)}
SCRIPTS["is silent"] = (IS_SILENT, Outcome.INACTIVE)


def cancel_at_point(stand: Stand, backend: str, script: str, point: int) -> tuple[int, Result | None]:
    """Cancel at one point where it waits or reports an action; give how many points there were, and the result."""
    argv = stand.fake(script, "pi")
    count, results = 0, []

    async def host() -> None:
        tasks = len(anyio.get_running_tasks())
        with anyio.CancelScope() as scope:

            def step(*_told: Any) -> None:
                nonlocal count
                count += 1
                if count == point:
                    scope.cancel()

            results.append(await Stepwise(run_once(argv, dialect="pi", policy=POLICY, trace=step), step))
        assert len(anyio.get_running_tasks()) == tasks
        assert all(is_gone(pid, 0) for pid in stand.pids())

    stand.run(host, backend=backend)
    return count, results[0] if results else None


@pytest.mark.slow
@pytest.mark.parametrize("kind", SCRIPTS)
def test_cancelled_at_any_point_a_run_leaves_nobody(make_stand: Callable[..., Stand], backend: str, kind: str) -> None:
    """Its spawn, its reads and writes, its timers, its signals, and each wait of the cleanup that they begin."""
    script, outcome = SCRIPTS[kind]
    whole = make_stand(guard=10.0)
    points, result = cancel_at_point(whole, backend, script, 0)
    whole.close()
    assert points > 10
    assert result is not None
    assert result.outcome is outcome
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        before = list_open_descriptors()
        for point in range(1, points + 1):
            stand = make_stand(guard=10.0)
            count, _ = cancel_at_point(stand, backend, script, point)
            assert count >= point
            stand.close()
        gc.collect()
        assert list_open_descriptors() == before


@pytest.mark.slow
@pytest.mark.parametrize("kind", SCRIPTS)
def test_cancelled_again_in_its_cleanup_a_run_leaves_nobody(make_stand: Callable[..., Stand], kind: str) -> None:
    """Asyncio cancels a task as often as a caller asks: here at every point after the first."""
    script, _ = SCRIPTS[kind]

    def cancelled_from(stand: Stand, point: int) -> int:
        argv = stand.fake(script, "pi")
        count = 0

        async def supervise() -> None:
            task = asyncio.current_task()
            assert task is not None

            def step(*_told: Any) -> None:
                nonlocal count
                count += 1
                if count >= point:
                    task.cancel()

            await Stepwise(run_once(argv, dialect="pi", policy=POLICY, trace=step), step)

        async def host() -> None:
            task = asyncio.create_task(supervise())
            await asyncio.wait([task])
            if not task.cancelled():
                task.result()
            assert len(asyncio.all_tasks()) == 1
            assert all(is_gone(pid, 0) for pid in stand.pids())

        stand.run(host)
        return count

    points, _ = cancel_at_point(make_stand(guard=10.0), "asyncio", script, 0)
    for point in range(1, points + 1):
        stand = make_stand(guard=10.0)
        assert cancelled_from(stand, point) >= point
        stand.close()
