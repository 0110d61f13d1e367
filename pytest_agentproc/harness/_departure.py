"""The caller of a run who goes away in the middle of it. Owns the instant and what he is answered; judges nothing.

A task of asyncio is cancelled once, so that it may wait as it cleans up. A scope, which is the only way on trio and
anyio's way on asyncio, cancels at every await until it is left, unless that is shielded.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import anyio

from pytest_agentproc.errors import Declined, SubjectError
from pytest_agentproc.vocabulary import NANOSECONDS, Answer

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from pytest_agentproc.scenario import Bound
    from pytest_agentproc.vocabulary import Deed, Subject

    Said = Answer | SubjectError | Declined
    Ask = Callable[[], Coroutine[Any, Any, Said]]

__all__ = ["NOBODY", "ModelDeparture", "aftermath", "asked_until"]

NOBODY = Answer()
"""What somebody is told who is there no more: nothing."""

_REST = 1.0


async def asked_until(deed: Deed, ask: Ask, leave: Callable[[], None], scale: float, backend: str) -> Said:
    """Have a subject supervise, and cancel that at the instant of the deed if it is not done.

    Args:
        deed: when the caller goes away, counted from now.
        ask: has the subject supervise.
        leave: called as he goes.
        scale: so many times faster than its own clock the event loop's time goes.
        backend: the event loop's name.

    Returns:
        the subject's answer, if it gave one; what it raises as it is cancelled is nobody's to hear.
    """
    seconds = departs_at(deed) / NANOSECONDS / scale
    cancel_task = backend == "asyncio" and deed.value == "task"
    return await (_cancel_task if cancel_task else _cancel_scope)(seconds, ask, leave)


def departs_at(deed: Deed) -> int:
    """Give the nanoseconds from the beginning to a deed that is the first behind the prompt."""
    return deed.at if deed.at is not None else deed.after or 0


def aftermath(bound: Bound, subject: Subject) -> float:
    """Say for how many seconds the event loop goes on after a run that was abandoned.

    Who has killed may leave the reaping to his event loop, and who has terminated the rest to a task of his own: both
    are done where a program goes on. The core leaves nothing to anybody.
    """
    if bound.abandoned is None or hasattr(subject, "deciders"):
        return 0
    policy = bound.policy
    return policy.kill_grace + policy.linger_kill_grace + policy.leftover_kill_grace + _REST


async def _cancel_task(seconds: float, ask: Ask, leave: Callable[[], None]) -> Said:
    loop = asyncio.get_running_loop()
    task = loop.create_task(ask())
    has_left = False

    def go() -> None:
        nonlocal has_left
        has_left = True
        leave()
        task.cancel()

    timer = loop.call_at(loop.time() + seconds, go)
    try:
        said = await task
    except asyncio.CancelledError:
        if not has_left or not task.cancelled():
            raise
        return NOBODY
    finally:
        timer.cancel()
    return NOBODY if has_left and isinstance(said, SubjectError | Declined) else said


async def _cancel_scope(seconds: float, ask: Ask, leave: Callable[[], None]) -> Said:
    has_left = False
    said: Said = NOBODY
    async with anyio.create_task_group() as group:

        async def go() -> None:
            nonlocal has_left
            await anyio.sleep(seconds)
            has_left = True
            leave()
            scope.cancel()

        group.start_soon(go)
        with anyio.CancelScope() as scope:
            said = await ask()
        group.cancel_scope.cancel()
    return NOBODY if has_left and isinstance(said, SubjectError | Declined) else said


class ModelDeparture:
    """The same in the model, where nobody waits for it.

    Args:
        deed: when he goes.
        go: called with the instant as he does.
    """

    has_news = is_busy = False

    def __init__(self, deed: Deed, go: Callable[[int], None]) -> None:
        self.deadline: int | None = departs_at(deed)
        self._go = go

    def act(self, now: int) -> bool:
        """Go, once."""
        if self.deadline is None or now < self.deadline:
            return False
        self.deadline = None
        self._go(now)
        return True
