"""What each containment promises of an agent's tree, with programs that leave it in every way."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.tree import Child
from pytest_agentproc.vocabulary import CONTAINMENTS
from tests.process.escapes import HYDRA, WAYS, await_alone, await_exit, escape, program, read_line
from tests.process.stand import descriptors, is_gone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BEYOND = {
    "group": {
        "daemon",
        "daemon with closed streams",
        "daemon with a cleared environment",
        "daemon with neither",
    },
    "subreaper": {"daemon with a cleared environment", "daemon with neither"},
    "keeper": set[str](),
}
"""Who is out of reach of which containment."""


@pytest.fixture
def start() -> Iterator[Callable[..., Child]]:
    """Give a starter of children, of which none outlives the test."""
    children: list[Child] = []

    def starter(argv: list[str], containment: str, **options: object) -> Child:
        children.append(Child(argv, containment=containment, **options))  # type: ignore[arg-type]
        assert children[-1].containment == containment
        return children[-1]

    yield starter
    for child in children:
        child.abandon()


def end_lost(pid: int) -> None:
    """End what nobody holds any more, and its zombie if it is ours."""
    os.kill(pid, signal.SIGKILL)
    assert is_gone(pid)
    try:
        os.waitid(os.P_PID, pid, os.WEXITED)
    except ChildProcessError:
        return


@pytest.mark.parametrize("containment", CONTAINMENTS)
@pytest.mark.parametrize("way", WAYS)
def test_a_kill_reaches_who_left_the_tree(start: Callable[..., Child], way: str, containment: str) -> None:
    """What is in reach is dead, and what is not is alive: a promise that is too small is one as well."""
    before = descriptors()
    child = start(escape(WAYS[way]), containment)
    pid = int(read_line(child))
    is_beyond = way in BEYOND[containment]
    child.kill()
    assert await_exit(child) == -signal.SIGKILL
    assert await_alone(child)
    assert is_gone(pid, 0) is not is_beyond
    assert child.strangers() == ([pid] if is_beyond and containment == "subreaper" else [])
    child.reap()
    child.close()
    if is_beyond:
        end_lost(pid)
    assert descriptors() == before


@pytest.mark.parametrize("containment", ["subreaper", "keeper"])
def test_many_heads_without_a_pause_are_dead_within_a_second(start: Callable[..., Child], containment: str) -> None:
    """Each is gone before it can be signalled, and another one there: killing has to converge."""
    child = start(program(HYDRA, "16"), containment)
    read_line(child)
    begin = time.monotonic()
    child.kill()
    assert await_alone(child, 5.0)
    assert time.monotonic() - begin < 1
    await_exit(child)
    child.reap()
