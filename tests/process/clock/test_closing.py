"""A closed clock: no process is left and nothing is open, whatever comes in between."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import anyio
import pytest

from pytest_agentproc.clock import _virtual
from pytest_agentproc.clock._participant import Participant
from tests.process.stand import Stand, is_gone, list_open_descriptors

if TYPE_CHECKING:
    from pytest_agentproc.harness import ScenarioRunner


def leave_two_agents_running(runner: ScenarioRunner) -> tuple[Stand, list[subprocess.Popen[bytes]]]:
    """Give a clock whose program has ended, and forgot two agents."""
    stand = Stand(runner)
    fakes = [stand.fake("- linger: for ever", name=name) for name in ("one", "two")]
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
