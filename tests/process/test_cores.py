"""A child comes to life beside its host where a core is idle, and both have all their cores when it is there."""

from __future__ import annotations

import os
import subprocess
from collections import deque
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import anyio
import pytest

from pytest_agentproc.clock import _cores
from tests.process.stand import scenario_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_agentproc.harness import Lab

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
    with _cores.keep_apart() as part:
        kept = os.sched_getaffinity(0)
        with child("sleep", "60") as pid:
            part(pid)
            assert (len(kept), os.sched_getaffinity(0), os.sched_getaffinity(pid)) == (1, CORES, CORES - kept)


@pytest.mark.usefixtures("idle")
def test_a_child_has_every_core_once_it_is_there() -> None:
    """What it starts has what it has."""
    with ExitStack() as stack:
        with _cores.keep_apart() as part:
            pid = stack.enter_context(child("sleep", "60"))
            assert part(pid)
        assert os.sched_getaffinity(pid) == CORES


@pytest.mark.usefixtures("idle")
def test_a_child_that_chose_its_cores_keeps_them() -> None:
    """Before it was to be kept apart, or after."""
    with ExitStack() as stack:
        with _cores.keep_apart() as part:
            first, second = (stack.enter_context(child("sleep", "60")) for _ in range(2))
            part(first)
            chosen = CORES - os.sched_getaffinity(first)
            os.sched_setaffinity(first, chosen)
            os.sched_setaffinity(second, CORES)
            part(second)
        assert (os.sched_getaffinity(first), os.sched_getaffinity(second)) == (chosen, CORES)


@pytest.mark.usefixtures("idle")
def test_a_start_that_fails_leaves_the_host_all_its_cores() -> None:
    """Nobody called `part`."""
    with pytest.raises(FileNotFoundError), _cores.keep_apart() as part:
        part(subprocess.Popen("/nowhere/nobody").pid)
    assert os.sched_getaffinity(0) == CORES


@pytest.mark.usefixtures("idle")
def test_a_child_that_is_gone_is_nobody_s_trouble() -> None:
    """It may be dead and reaped before it is kept anywhere."""
    with _cores.keep_apart() as part:
        with child("true") as pid:
            pass
        part(pid)
    assert os.sched_getaffinity(0) == CORES


@pytest.mark.parametrize(
    ("running", "found"), [("1", [True] * 6), ("2", [False] * 6), ("12222222", [True] * 5 + [False] * 3)]
)
def test_cores_are_idle_where_one_of_the_last_starts_found_them_so(
    monkeypatch: pytest.MonkeyPatch, running: str, found: list[bool]
) -> None:
    """One start may fall into the end of the agent before; two workers, who would pay for it, are hardly ever still."""
    monkeypatch.setattr(_cores, "_last_idle", deque((False,), maxlen=5))
    loads = iter(running if len(running) > 1 else running * 6)
    monkeypatch.setattr(_cores, "_read", lambda _path: f"0.52 0.50 0.48 {next(loads)}/812 4711\n".encode())
    assert [_cores._look_for_idle() for _ in found] == found  # noqa: SLF001  # what a start asks, without a start


def test_where_all_cores_are_busy_nobody_is_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is kept off a core has to share another one, and who runs there would pay for it."""
    monkeypatch.setattr(_cores, "_look_for_idle", lambda: False)
    with _cores.keep_apart() as part, child("sleep", "60") as pid:
        assert not part(pid)
        assert (os.sched_getaffinity(0), os.sched_getaffinity(pid)) == (CORES, CORES)


@pytest.mark.usefixtures("idle")
def test_a_program_that_is_no_fake_has_every_core_from_its_start(lab: Lab) -> None:
    """Many a program makes as many threads as it has cores."""
    with lab.virtual_clock(allow=["nproc"]) as clock:

        async def host() -> bytes:
            return (await anyio.run_process(["nproc"])).stdout

        assert int(clock.run(host)) == len(CORES)


@pytest.mark.usefixtures("idle")
def test_what_a_caller_does_with_an_agent_s_cores_stands(lab: Lab) -> None:
    """Code of its own runs between the fork and the agent."""
    chosen = {min(CORES)}

    def choose() -> None:
        os.sched_setaffinity(0, chosen)

    with lab.virtual_clock() as clock:
        fake = lab.fake(scenario_of("- linger: for ever"))

        async def host() -> set[int]:
            with subprocess.Popen(fake.argv, preexec_fn=choose) as agent:  # noqa: PLW1509  # this is what is tested
                try:
                    return os.sched_getaffinity(agent.pid)
                finally:
                    agent.kill()

        assert clock.run(host) == chosen
