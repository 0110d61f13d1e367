"""Who is looked out for and who is roused, by how many live and whether others want the cores."""

from __future__ import annotations

import os
import signal
import socket
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from fake_agents import wire
from pytest_agentproc.clock import JumpRule, _ear
from pytest_agentproc.clock._ear import GRANTS, Ear, Rivals
from pytest_agentproc.clock._participant import Participant

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_agentproc.clock._roll import Roll

FIRST, SECOND = (0,), (1,)


class _Roll:
    """Has two participants of whom so many live, and keeps who was heard awake."""

    def __init__(self, lives: int, participants: dict[tuple[int, ...], Participant]) -> None:
        self.lives = lives
        self.participants = participants
        self.awake: list[bool] = []

    def hear(self, participant: Participant, vigil: object) -> None:
        self.awake.append(vigil is not None)


class _Both:
    """Two participants, this process's own ends of two sockets, and what each has been told."""

    def __init__(self) -> None:
        self.rivals = Rivals()
        self.fakes: list[socket.socket] = []
        self.participants: dict[tuple[int, ...], Participant] = {}
        for path in (FIRST, SECOND):
            ours, fake = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self.participants[path] = Participant(ours, os.getpid(), -1, path, "agent", 0, b"")
            self.fakes.append(fake)

    def told(self) -> list[bytes]:
        found = []
        for fake in self.fakes:
            fake.setblocking(False)
            try:
                found.append(fake.recv(16))
            except BlockingIOError:
                found.append(b"")
        return found

    def ear(self, lives: int) -> tuple[Ear, _Roll]:
        rule = JumpRule()
        rule.park(FIRST, 9)
        rule.park(SECOND, 7)
        roll = _Roll(lives, self.participants)
        return Ear(cast("Roll", roll), rule, self.rivals), roll

    def close(self) -> None:
        for one in self.participants.values():
            one.close()
        for fake in self.fakes:
            fake.close()


@pytest.fixture
def both() -> Iterator[_Both]:
    """Make two participants, and close them."""
    made = _Both()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have two cores, whatever machine this is."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1})


def test_the_next_in_line_is_roused_once(both: _Both) -> None:
    """It may not be its turn after all, and looks out no longer than a moment."""
    ear, _ = both.ear(2)
    ear.note_answer(None)
    ear.note_answer(None)
    assert both.told() == [b"", wire.ROUSE]
    assert both.told() == [b"", b""]


def test_who_has_been_granted_is_roused_again(both: _Both) -> None:
    """Each turn is new."""
    ear, _ = both.ear(2)
    ear.note_answer(None)
    both.told()
    ear.grant(both.participants[SECOND], 7, ready=False)
    assert wire.granted(both.told()[1]) == (7, False, False)
    ear.note_answer(None)
    assert both.told() == [b"", wire.ROUSE]


def test_a_lone_participant_looks_out_by_itself(both: _Both) -> None:
    """Its grant says so, which costs nothing."""
    ear, roll = both.ear(1)
    ear.note_answer(None)
    ear.grant(both.participants[FIRST], 9, ready=True)
    ear.hear(both.participants[FIRST])
    assert both.told() == [wire.grant(9, ready=True, awake=True), b""]
    assert roll.awake == [True]


def test_nobody_is_roused_where_a_run_s_deadline_comes_first(both: _Both) -> None:
    """The host has more to do then than to read."""
    ear, _ = both.ear(2)
    ear.note_answer((6, 0))
    assert both.told() == [b"", b""]


@pytest.mark.parametrize("cores", [1, 2])
def test_nobody_is_in_the_way_of_who_wants_the_cores(both: _Both, monkeypatch: pytest.MonkeyPatch, cores: int) -> None:
    """Where there is one core, the next participant itself wants it."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(cores)))
    both.rivals.are_there = cores > 1
    for lives in (1, 2):
        ear, roll = both.ear(lives)
        ear.note_answer(None)
        ear.grant(both.participants[FIRST], 9, ready=False)
        ear.hear(both.participants[FIRST])
        assert (both.told(), roll.awake) == ([wire.grant(9, ready=False, awake=False), b""], [False])


@pytest.fixture
def switches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Give how often the kernel has taken this thread's core, as a list of one number to be changed."""
    count = [1000]
    usage = SimpleNamespace()

    def asked(_whose: int) -> SimpleNamespace:
        usage.ru_nivcsw = count[0]
        return usage

    monkeypatch.setattr(_ear, "getrusage", asked)
    return count


def test_a_few_grants_that_take_the_core_are_nobody_s_rivalry(switches: list[int]) -> None:
    """With nobody else there the kernel does so at times, too."""
    rivals = Rivals()
    rivals.begin()
    for number in range(4 * GRANTS):
        switches[0] += number % 6 == 0
        rivals.note()
        assert not rivals.are_there


def test_rivals_come_and_go(switches: list[int]) -> None:
    """What counts are the last grants."""
    rivals, found = Rivals(), []
    rivals.begin()
    for rate in (1, 0, 2):
        for number in range(GRANTS):
            switches[0] += rate if number % 3 == 0 else 0
            rivals.note()
        found.append(rivals.are_there)
    assert found == [True, False, True]


@pytest.mark.parametrize("is_told", [True, False])
def test_what_a_start_did_to_the_host_is_no_rivalry(both: _Both, switches: list[int], *, is_told: bool) -> None:
    """It keeps the host on a core, and lets it go again."""
    ear, _ = both.ear(1)
    for _ in range(GRANTS):
        switches[0] += 1
        if is_told:
            ear.begin()
        ear.note_answer(None)
    assert both.rivals.are_there is not is_told


def test_to_rouse_a_dead_one_harms_nobody(both: _Both) -> None:
    """The one that has just spoken may have killed it; the host's program may let broken pipes kill itself."""
    both.fakes[1].close()
    before = signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        both.ear(2)[0].note_answer(None)
    finally:
        signal.signal(signal.SIGPIPE, before)
