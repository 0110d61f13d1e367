"""Rousing who goes on next, with real processes: that it is done, and what it must not change."""

from __future__ import annotations

import os
import select
import subprocess
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from pytest_agentproc.clock._ear import Rivals
from pytest_agentproc.clock._hub import Hub
from pytest_agentproc.clock._participant import Participant

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.process.stand import Stand

KILLED_IN_ITS_TURN = """
- spawn: {id: child, script: [{silence: 2s}, {exit: 0}]}
- silence: 1s
- kill: {id: child, signal: TERM}
- silence: 2s
"""

IN_TURNS = """
- spawn: {id: child, script: [{silence: 1.5s}, {silence: 1s}, {silence: 1s}]}
- silence: 1s
- silence: 1s
- silence: 1s
"""


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have two cores, and nobody else who wants them, whatever machine this is."""
    monkeypatch.setattr(Rivals, "end", lambda rivals: setattr(rivals, "are_there", False))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1})


def _play(stand: Stand, script: str) -> list[Mapping[str, Any]]:
    """Play a script to its end, and give what is recorded of its child."""
    argv = stand.fake(script)

    async def wait() -> None:
        process = subprocess.Popen(argv, start_new_session=True)
        await anyio.sleep(60)
        assert process.poll() == 0

    stand.run(wait)
    return [event.data for event in stand.fakes[0].record.events if event.data.get("process") == "child"]


@pytest.mark.usefixtures("alone")
def test_what_a_roused_one_said_before_it_died_is_heard(
    make_stand: Callable[..., Stand], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is killed with a word to it unread, for which the kernel resets what it said last: which signal it was."""
    plain = Hub.settle

    def late(hub: Hub) -> None:
        for one in list(hub.roll.living.values()) if hub.now == 1_000_000_000 else ():
            if one.name == "child":  # others have the core until it is dead
                dead = select.poll()
                dead.register(one.pidfd, select.POLLIN)
                assert dead.poll(10_000)
        plain(hub)

    monkeypatch.setattr(Hub, "settle", late)
    found = _play(make_stand(), KILLED_IN_ITS_TURN)
    assert [data["signal"] for data in found if "signal" in data] == ["TERM"]


@pytest.mark.usefixtures("alone")
def test_the_next_in_line_is_roused_before_its_turn(
    make_stand: Callable[..., Stand], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parent and child take turns; whoever has not spoken last is woken for its own."""
    done: list[tuple[str, str]] = []
    plain_rouse, plain_grant = Participant.rouse, Participant.grant

    def rouse(one: Participant) -> None:
        done.append(("rouse", one.name))
        plain_rouse(one)

    def grant(one: Participant, now: int, *, ready: bool, awake: bool) -> None:
        done.append(("grant", one.name))
        plain_grant(one, now, ready=ready, awake=awake)

    monkeypatch.setattr(Participant, "rouse", rouse)
    monkeypatch.setattr(Participant, "grant", grant)
    _play(make_stand(), IN_TURNS)
    turns = [name for what, name in done if what == "grant"]
    roused = [name for before, (what, name) in pairwise(done) if what == "grant" and before == ("rouse", name)]
    assert roused == ["child", "agent"] * 3
    assert turns == ["agent", "agent", *roused, "child"]  # the first two, and who is left in the end, are alone
