"""A frozen process blocks no caller: a cancellation takes 3 s of real time, and a keeper stays."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest

from pytest_agentproc.supervisor import Policy, run_once
from pytest_agentproc.tree import AgentChild

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FREEZER = Path("/sys/fs/cgroup/freezer")
LONGEST = 4.5
"""Real seconds: the 3 of the promise, and the addition of a busy machine."""

pytestmark = pytest.mark.slow


@pytest.fixture
def freezer() -> Iterator[Path]:
    """Give a cgroup in which the kernel can freeze processes so that not even KILL ends them."""
    folder = FREEZER / f"agentproc-test-{os.getpid()}"
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("this user can make no freezer cgroup of version 1")
    try:
        yield folder
    finally:
        (folder / "freezer.state").write_text("THAWED")
        _await_condition(lambda: not (folder / "tasks").read_text())
        folder.rmdir()


def _await_condition(is_true: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not is_true() and time.monotonic() < end:
        os.sched_yield()


@pytest.mark.parametrize("containment", ["group", "subreaper", "keeper"])
def test_a_cancelled_run_of_a_frozen_agent_returns_within_the_promise(freezer: Path, containment: str) -> None:
    """The event loop belongs to the whole program: one agent must not stop it."""
    agent = ["bash", "-c", f"echo $$ > {freezer}/tasks; sleep 60 & echo FROZEN > {freezer}/freezer.state"]
    took = 0.0

    async def cancel() -> None:
        nonlocal took
        with anyio.move_on_after(0.5):
            await run_once(agent, policy=Policy(containment=containment))
        took = time.monotonic()

    begin = time.monotonic()
    anyio.run(cancel)
    assert took - begin < LONGEST + 0.5
    (freezer / "freezer.state").write_text("THAWED")
    _await_condition(lambda: not (freezer / "tasks").read_text())
    assert (freezer / "tasks").read_text() == ""
    for thread in threading.enumerate():
        if thread.name.startswith("agentproc-"):
            thread.join(10)


@pytest.mark.parametrize("containment", ["subreaper", "keeper"])
def test_a_frozen_descendant_of_a_cancelled_run_leaves_no_zombie(
    freezer: Path, tmp_path: Path, containment: str
) -> None:
    """It ends when it is thawed, long after the run, and no other process can reap it."""
    freeze = f"echo $! > {freezer}/tasks; echo FROZEN > {freezer}/freezer.state"
    agent = ["bash", "-c", f"setsid sleep 60 & echo $! > {tmp_path}/pid; {freeze}; sleep 60"]

    async def cancel() -> None:
        with anyio.move_on_after(0.5):
            await run_once(agent, policy=Policy(containment=containment))

    anyio.run(cancel)
    pid = int((tmp_path / "pid").read_text())
    assert Path(f"/proc/{pid}").exists()
    (freezer / "freezer.state").write_text("THAWED")
    _await_condition(lambda: not Path(f"/proc/{pid}").exists())
    assert not Path(f"/proc/{pid}").exists()
    for thread in threading.enumerate():
        if thread.name.startswith("agentproc-"):
            thread.join(10)


def test_a_stopped_keeper_delays_a_cancellation_no_longer_than_the_promise() -> None:
    """A keeper that does not answer is ended, and its tree is ended without it."""
    child = AgentChild(["sleep", "60"], containment="keeper")
    keeper = child._keeper  # noqa: SLF001  # the keeper has no public name
    assert keeper is not None
    os.kill(keeper.pid, signal.SIGSTOP)
    begin = time.monotonic()
    assert child.kill_and_reap() == -signal.SIGKILL
    assert time.monotonic() - begin < LONGEST
    assert not Path(f"/proc/{child.pid}").exists()
