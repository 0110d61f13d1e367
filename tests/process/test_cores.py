"""A child comes to life beside its host where a core is idle, and both have all their cores when it is there."""

from __future__ import annotations

import os
import subprocess
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.clock import _cores

if TYPE_CHECKING:
    from collections.abc import Iterator

CORES = os.sched_getaffinity(0)

pytestmark = pytest.mark.skipif(len(CORES) < 2, reason="there is one core, and nobody to make room for")


@contextmanager
def child(*command: str) -> Iterator[int]:
    """Start a program that stays, and end it."""
    with subprocess.Popen(command) as process:
        try:
            yield process.pid
        finally:
            process.kill()


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the last start found all cores idle, whatever other tests do."""
    monkeypatch.setattr(_cores, "_last_idle", deque([True], maxlen=2))


@pytest.mark.usefixtures("idle")
def test_a_child_is_kept_off_its_host_s_core_until_it_is_there() -> None:
    """Its start would fill the caches that the host needs at once; afterwards neither is kept anywhere."""
    with _cores.apart() as part:
        kept = os.sched_getaffinity(0)
        with child("sleep", "60") as pid:
            part(pid)
            assert (len(kept), os.sched_getaffinity(0), os.sched_getaffinity(pid)) == (1, CORES, CORES - kept)


@pytest.mark.usefixtures("idle")
def test_a_child_has_every_core_once_it_is_there() -> None:
    """What it starts has what it has."""
    with child("sleep", "60") as pid:
        with _cores.apart() as part:
            part(pid)
        assert os.sched_getaffinity(pid) == CORES


@pytest.mark.usefixtures("idle")
def test_a_child_that_chose_its_cores_keeps_them() -> None:
    """A program that is no fake may be one that does."""
    with child("sleep", "60") as pid:
        with _cores.apart() as part:
            part(pid)
            chosen = CORES - os.sched_getaffinity(pid)
            os.sched_setaffinity(pid, chosen)
        assert os.sched_getaffinity(pid) == chosen


@pytest.mark.usefixtures("idle")
def test_a_start_that_fails_leaves_the_host_all_its_cores() -> None:
    """Nobody called `part`."""
    with pytest.raises(FileNotFoundError), _cores.apart() as part:
        part(subprocess.Popen("/nowhere/nobody").pid)
    assert os.sched_getaffinity(0) == CORES


@pytest.mark.usefixtures("idle")
def test_a_child_that_is_gone_is_nobody_s_trouble() -> None:
    """It may be dead and reaped before it is kept anywhere."""
    with _cores.apart() as part:
        with child("true") as pid:
            pass
        part(pid)
    assert os.sched_getaffinity(0) == CORES


def test_where_all_cores_are_busy_nobody_is_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is kept off a core has to share another one, and who runs there would pay for it."""
    monkeypatch.setattr(_cores, "_last_idle", deque([False], maxlen=1))
    with child("sh", "-c", "while :; do :; done"), _cores.apart() as part, child("sleep", "60") as pid:
        part(pid)
        assert (os.sched_getaffinity(0), os.sched_getaffinity(pid)) == (CORES, CORES)
