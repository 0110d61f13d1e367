"""The door of a hub decides in which time a fake is: open while virtual time runs, and shut at all other times."""

from __future__ import annotations

import select
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_agentproc.clock import SystemClock, VirtualClock
from pytest_agentproc.harness import FakeAgent, RealTimeLifetime
from pytest_agentproc.scenario import loads
from pytest_agentproc.verdict._facts import EndStatus, find_end_status
from tests.process.stand import CEILING, build_scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_agentproc.harness import ScenarioRunner

import pytest


@pytest.fixture
def clock() -> Iterator[VirtualClock]:
    """Give a clock, and end its processes that are left."""
    with VirtualClock() as clock:
        yield clock


def _make_fake(runner: ScenarioRunner, clock: VirtualClock, script: str) -> FakeAgent:
    outside = RealTimeLifetime(SystemClock(1, time.monotonic_ns()), 60)
    return runner.make_fake(build_scenario(script), clock=clock, outside=outside)


def _start_fake_at_door(clock: VirtualClock, fake: FakeAgent) -> subprocess.Popen[bytes]:
    """Start a fake, and return once it stands at the open door and has not been let in."""
    clock.hub.registry.start_accepting_participants()
    process = subprocess.Popen(fake.argv, stdout=subprocess.PIPE)
    assert select.select([clock.hub.registry.listen_fd], [], [], CEILING)[0]
    return process


def test_a_fake_that_stands_at_a_door_that_is_shut_is_in_real_time(runner: ScenarioRunner, clock: VirtualClock) -> None:
    """The run ended between the start and the first word of the fake: it must not wait for an answer."""
    fake = _make_fake(runner, clock, "- spawn: {id: helper, for: 1ms, clear_env: true}\n- say: hi\n- exit: 3")
    with _start_fake_at_door(clock, fake) as process:
        clock.hub.registry.stop_accepting_participants()
        assert process.communicate(timeout=CEILING)[0] == b"hi\n"
    assert [(start.name, start.status) for start in fake.starts] == [("agent", 3)]
    fake.finish()


def catches_term(pid: int) -> bool:
    """Say whether a process catches TERM by now."""
    masks = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text("ascii").splitlines())
    return bool(int(masks["SigCgt"], 16) & 1 << (signal.SIGTERM - 1))


def test_a_signal_at_a_door_that_is_shut_reaches_the_script(runner: ScenarioRunner, clock: VirtualClock) -> None:
    """Virtual time ended as the agent started, and its supervisor ended it: the signal was lost."""
    outside = RealTimeLifetime(SystemClock(1, time.monotonic_ns()), 60)
    scenario = loads("scenario: it is ended\nagent: claude\nscript: [{silence: 2s}, {answer: done}]\n")
    fake = runner.make_fake(scenario, clock=clock, outside=outside)
    clock.hub.registry.start_accepting_participants()
    with subprocess.Popen(fake.argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert select.select([clock.hub.registry.listen_fd], [], [], CEILING)[0]
        end = time.monotonic() + CEILING
        while not catches_term(process.pid):
            assert time.monotonic() < end
        process.terminate()
        clock.hub.registry.stop_accepting_participants()
        said, noise = process.communicate(timeout=CEILING)
    assert b"done" not in said
    assert process.returncode == 143, noise
    fake.finish()


def test_a_fake_that_is_gone_before_it_is_let_in_is_no_fault(runner: ScenarioRunner, clock: VirtualClock) -> None:
    """Its starter has killed it and waited for it, so the kernel knows no such process."""
    fake = _make_fake(runner, clock, "- say: hi")
    with _start_fake_at_door(clock, fake) as process:
        process.kill()
        process.wait()
        clock.hub.settle_participants()
    fake.finish()
    assert fake.starts == ()


def test_a_fake_without_real_time_exits_when_nobody_lets_it_in(runner: ScenarioRunner, clock: VirtualClock) -> None:
    """It would have to guess otherwise, or hang."""
    fake = runner.make_fake(build_scenario("- say: hi"), clock=clock)
    completed = subprocess.run(fake.argv, capture_output=True, timeout=CEILING, check=False)
    assert (completed.returncode, completed.stdout) == (70, b"")


def test_a_signal_is_known_before_it_can_be_asked_for(runner: ScenarioRunner, clock: VirtualClock) -> None:
    """The test waits until the fake has acted: an answer that is too early would be a false one."""
    fake = _make_fake(runner, clock, "- when: {signal: TERM}\n  do: [{say: no}]\n- say: ready\n- wait_for: eof")
    with subprocess.Popen(fake.argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        for number in range(1, 20):
            process.terminate()
            assert len(fake.starts[0].signals) == number
        process.communicate(timeout=CEILING)
    assert (fake.starts[0].status, fake.starts[0].stdin) == (0, b"")
    fake.finish()


def test_a_start_is_known_as_soon_as_it_was_made(runner: ScenarioRunner, clock: VirtualClock) -> None:
    """The fake has not said a word when `Popen` returns."""
    fake = _make_fake(runner, clock, "- silence: for ever")
    for number in range(1, 4):
        with subprocess.Popen(fake.argv) as process:
            assert len(fake.starts) == number
            process.kill()
        first = fake.starts
        assert fake.starts == first, "an end is at one instant, however often somebody asks"
    assert [start.status for start in fake.starts] == [-9, -9, -9]
    fake.finish()


def test_a_fake_that_dies_of_a_realtime_signal_has_its_number_as_status(
    runner: ScenarioRunner, clock: VirtualClock
) -> None:
    """Such a signal has no name."""
    fake = _make_fake(runner, clock, "- silence: for ever")

    async def host() -> None:
        with subprocess.Popen(fake.argv) as process:
            process.send_signal(40)

    clock.run(host)
    assert [start.status for start in fake.starts] == [-40]
    assert find_end_status(fake.record) == EndStatus(None, "signal 40", forced=True, at=0)
    assert EndStatus(None, "signal 40", forced=True, at=0).list_exit_codes() == (-40, 168)
