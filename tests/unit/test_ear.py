"""Who is looked out for and who is roused, by how many live and whether others want the cores."""

from __future__ import annotations

import os
import socket
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from fake_agents import wire
from fake_agents.main import _play_by_grants
from pytest_agentproc.clock import JumpRule, _ear
from pytest_agentproc.clock._ear import EVERY, GRANTS, TAKEN, Ear, Rivals
from pytest_agentproc.clock._participant import Participant

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fake_agents.player import Player
    from fake_agents.stage import Stage
    from pytest_agentproc.clock._roll import Roll

FIRST, SECOND = (0,), (1,)


class _Roll:
    """Has two participants of whom so many live, and keeps who was heard awake."""

    def __init__(self, lives: int, participants: dict[tuple[int, ...], Participant]) -> None:
        self.lives = lives
        self.participants = participants
        self.vigils: list[object] = []

    @property
    def awake(self) -> list[bool]:
        return [vigil is not None for vigil in self.vigils]

    def hear(self, participant: Participant, vigil: object) -> None:
        self.vigils.append(vigil)


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
        ear.grant(both.participants[FIRST], 9, ready=False)
        ear.hear(both.participants[FIRST])
        ear.note_answer(None)
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


def _grants(rivals: Rivals, switches: list[int], taken: int) -> None:
    """Have so many of the grants that are looked at take the core."""
    for number in range(GRANTS):
        rivals.begin()
        switches[0] += 3 if number < taken * EVERY else 0
        rivals.end()


def test_rivals_come_and_go(switches: list[int]) -> None:
    """With nobody else there, too, the kernel takes the core at times; what counts are the last grants."""
    rivals, found = Rivals(), []
    for taken in (TAKEN - 1, TAKEN, TAKEN - 1, GRANTS // EVERY, 0):
        _grants(rivals, switches, taken)
        found.append(rivals.are_there)
    assert found == [False, True, False, True, False]


def test_a_grant_that_is_never_answered_stops_no_counting(switches: list[int]) -> None:
    """A fake that hangs ends its play, and the next play goes on counting."""
    rivals = Rivals()
    for _ in range(GRANTS):
        rivals.begin()
    for _ in range(2):
        _grants(rivals, switches, GRANTS // EVERY)
    assert rivals.are_there


def test_what_is_between_two_grants_is_no_rivalry(both: _Both, switches: list[int]) -> None:
    """A start moves its host, threads of a supervisor take the core: that says nothing of others."""
    ear, _ = both.ear(1)
    for _ in range(GRANTS):
        switches[0] += 1
        ear.grant(both.participants[FIRST], 9, ready=False)
        ear.note_answer(None)
    assert not both.rivals.are_there


def test_who_has_said_goodbye_is_looked_out_for_until_it_is_gone(both: _Both) -> None:
    """Until the kernel has taken its memory back is longer than a step."""
    ear, roll = both.ear(1)
    one = both.participants[FIRST]
    for one.leaves in (False, True, False):
        ear.hear(one)
    assert roll.vigils[0] is roll.vigils[2] is not roll.vigils[1]


def test_to_rouse_a_dead_one_harms_nobody(both: _Both) -> None:
    """The one that has just spoken may have killed it."""
    both.fakes[1].close()
    both.ear(2)[0].note_answer(None)


class _Link:
    """A fake's end of the talk: these words, each after a look in vain where it looks out."""

    def __init__(self, *words: bytes) -> None:
        self.words = list(words)
        self.asked: list[int] = []
        self.said = 0

    def recv(self, _size: int, flags: int = 0) -> bytes:
        self.asked.append(flags)
        if flags and self.asked[-2:] != [flags, flags]:
            raise BlockingIOError
        if not self.words:
            raise EOFError
        return self.words.pop(0)

    def send(self, _message: bytes) -> None:
        self.said += 1


class _Idle:
    """A player and its stage in one, that have nothing to do."""

    wants, until = (False, False, False), 0

    def grant(self, now: int, signals: list[int], *, readable: bool) -> None:
        """Do nothing."""

    def take(self, *_: object) -> list[int]:
        return []

    take_notes = take_signals = take
    arm = stdin_ready = bool


def test_a_roused_fake_looks_out_for_its_grant_and_says_nothing() -> None:
    """It is no grant, and good for one."""
    link = _Link(wire.ROUSE, wire.grant(5, ready=False, awake=False))
    with pytest.raises(EOFError):
        _play_by_grants(cast("Player", _Idle()), cast("Stage", _Idle()), cast("socket.socket", link))
    assert (link.asked, link.said) == ([0, socket.MSG_DONTWAIT, socket.MSG_DONTWAIT, 0], 1)
