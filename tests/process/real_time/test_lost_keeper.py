"""A keeper that ends during a play: the play has an error, which says who ended it."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import anyio
import pytest

from pytest_agentproc.errors import KitError
from pytest_agentproc.harness._leftovers import KeeperScope
from pytest_agentproc.tree import KeeperDied

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_agentproc.tree import Keeper


def kill_from_outside(keeper: Keeper) -> None:
    """Do what a tester or the machine may do."""
    os.kill(keeper.pid, signal.SIGKILL)


def ask_for_an_unknown_process(keeper: Keeper) -> None:
    """Have the keeper fail at a question: the kit then kills it."""
    with pytest.raises(KeeperDied):
        keeper.read_status(os.getpid())


@pytest.mark.parametrize(
    ("end", "why"),
    [
        (kill_from_outside, "it was killed from outside"),
        (ask_for_an_unknown_process, "the kit killed it: KeyError"),
    ],
)
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_lost_keeper_says_who_ended_it(backend: str, end: Callable[[Keeper], None], why: str) -> None:
    """Without the reason, nobody could tell a late answer from a stray signal."""
    with KeeperScope([], wanted=True) as scope:
        keeper = scope.keeper
        assert keeper is not None

        async def run() -> None:
            await anyio.wait_all_tasks_blocked()  # the watch has begun
            end(keeper)
            await anyio.Event().wait()

        with pytest.raises(KitError, match=why):
            anyio.run(scope.run_guarded, run, backend=backend)
