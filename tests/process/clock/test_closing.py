"""A closed clock: no process is left and nothing is open, whatever comes in between."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from operator import attrgetter
from typing import Any

import anyio
import pytest

from pytest_agentproc.clock import VirtualClock, _virtual
from pytest_agentproc.clock._participant import Participant
from pytest_agentproc.harness import ScenarioRunner
from pytest_agentproc.harness._signal_guard import guard_signals
from tests.process.stand import Stand, is_gone, list_open_descriptors


def leave_two_agents_running(runner: ScenarioRunner) -> tuple[Stand, list[subprocess.Popen[bytes]]]:
    """Give a clock whose program has ended, and forgot two agents."""
    stand = Stand(runner)
    fakes = [stand.fake("- silence: for ever", name=name) for name in ("one", "two")]
    started: list[subprocess.Popen[bytes]] = []

    async def host() -> None:
        started.extend(map(subprocess.Popen, fakes))
        await anyio.sleep(1)

    stand.run(host)
    return stand, started


def raise_keyboard_interrupt(*_: object) -> None:
    """Be stopped with Ctrl-C."""
    raise KeyboardInterrupt


def test_ctrl_c_while_a_clock_is_closed_leaves_nobody(runner: ScenarioRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    """All processes that were still to be ended are ended, and every descriptor is given back."""
    before = list_open_descriptors()
    stand, started = leave_two_agents_running(runner)
    monkeypatch.setattr(_virtual, "end_started_processes", raise_keyboard_interrupt)
    with pytest.raises(KeyboardInterrupt):
        stand.close()
    assert [is_gone(process.pid) for process in started] == [True, True]
    for process in started:
        process.wait()
    assert list_open_descriptors() == before


def test_ctrl_c_at_one_agent_s_end_ends_the_others(runner: ScenarioRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    """All later agents are ended all the same, and no fake can knock any more."""
    stand, started = leave_two_agents_running(runner)
    first, *_ = stand.clock.hub.registry.list_in_spawn_order()
    monkeypatch.setattr(_virtual, "end_started_processes", lambda _hub: None)
    reap = Participant.reap

    def reaped(participant: Participant) -> None:
        if participant is first:
            raise_keyboard_interrupt()
        reap(participant)

    monkeypatch.setattr(Participant, "reap", reaped)
    with pytest.raises(KeyboardInterrupt):
        stand.close()
    assert [is_gone(process.pid) for process in started] == [True, True]
    assert stand.clock.hub.registry.listen_fd == -1
    first.close()
    assert started[0].wait() == -9
    started[1].wait()


@pytest.mark.parametrize("step", ["_preload.close", "_decoys.close", "_broker.kill", "_broker.wait"])
def test_ctrl_c_while_a_runner_is_closed_leaves_nothing(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The steps of the close after the one that is interrupted run all the same: no folder and no process is left."""
    runner = ScenarioRunner()
    stand, started = leave_two_agents_running(runner)
    stand.close()
    assert [process.wait() for process in started] == [-9, -9]
    broker, workshop = runner._broker, runner._workshop  # noqa: SLF001
    assert broker is not None
    assert workshop is not None
    owner, _, name = step.partition(".")
    part = attrgetter(owner)(runner)
    real, interrupts = getattr(part, name), [raise_keyboard_interrupt]

    def interrupt_first_call(*args: object) -> object:
        return interrupts.pop()() if interrupts else real(*args)

    monkeypatch.setattr(part, name, interrupt_first_call)
    with pytest.raises(KeyboardInterrupt):
        runner.close()
    assert not workshop.folder.exists()
    assert is_gone(broker.pid)
    broker.wait()
    runner.close()


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_patch_that_an_interrupt_left_open_is_undone_first(backend: str) -> None:
    """It was undone after the clock's own patches of the same names, and put one of them back for good."""
    before = os.kill, os.killpg, signal.pidfd_send_signal

    async def host() -> None:
        guard_signals(lambda _event: None, int).__enter__()
        raise_keyboard_interrupt()

    with VirtualClock() as clock, pytest.raises(KeyboardInterrupt):
        clock.run(host, backend=backend)
    assert (os.kill, os.killpg, signal.pidfd_send_signal) == before


def test_the_broker_has_ended_before_its_folder_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that had just begun wrote a file into the folder while it was removed, and the folder stayed."""
    runner = ScenarioRunner()
    Stand(runner).fake("- answer: done")
    broker, plain, seen = runner._broker, shutil.rmtree, []  # noqa: SLF001  # nobody else knows its process
    assert broker is not None

    def note_and_remove(*args: Any, **options: Any) -> None:
        seen.append(is_gone(broker.pid))
        plain(*args, **options)

    monkeypatch.setattr(shutil, "rmtree", note_and_remove)
    runner.close()
    assert seen == [True]
