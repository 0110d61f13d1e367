"""The logs of one fake, beside its supervisor's view: which process an exit belongs to, and which one is left."""

from __future__ import annotations

import subprocess
from itertools import count
from subprocess import PIPE
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from pytest_agentproc import machine
from pytest_agentproc.clock import SystemClock
from pytest_agentproc.fake_agents import process_log
from pytest_agentproc.harness import _leftovers as _kept
from pytest_agentproc.harness._leftovers import KeeperScope
from pytest_agentproc.harness.fakes._fake_log import FakeLog
from pytest_agentproc.procfs import read_command_words
from pytest_agentproc.record import Record
from tests.event_lines import add_line, list_lines

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_agentproc.tree import Keeper

FIRST, SECOND = 2**22 + 1, 2**22 + 2
"""Pids that no process has."""


def _list_ends(folder: Path, deaths: list[tuple[int, int]], observed: list[int]) -> list[int]:
    """Give the ends of two agents, born at 0 and 100, of whose deaths the broker told so, and their supervisor so."""
    (folder / "book").mkdir()
    for pid, born in ((FIRST, 0), (SECOND, 100)):
        (folder / "book" / str(pid)).write_bytes(process_log.encode_log_entry(born, ("H", 0, -1, "agent", 0)))
    (folder / "deaths").write_text("".join(f"{pid} {at}\n" for pid, at in deaths))
    record = Record({})
    for at in observed:
        add_line(record, at, "x", {"process": "agent", "by": "supervisor", "code": 0})
    FakeLog(folder / "book", folder / "deaths", SystemClock(1, 0)).collect(record)
    return [event.at for event in list_lines(record) if event.code == "x" and "by" not in event.data]


@pytest.mark.parametrize("deaths", [[(FIRST, 300), (SECOND, 310)], [(SECOND, 300), (FIRST, 310)]], ids=["so", "or so"])
def test_an_end_that_was_seen_is_that_of_one_agent_which_had_begun(
    tmp_path: Path, deaths: list[tuple[int, int]]
) -> None:
    """A broker that got no core reports both at once, and in any order."""
    assert _list_ends(tmp_path, deaths, [50, 250]) == [50, 250]


def test_an_end_that_nobody_saw_is_when_the_broker_noted_it(tmp_path: Path) -> None:
    """And what was seen of one says nothing of the other."""
    assert _list_ends(tmp_path, [(FIRST, 60), (SECOND, 310)], [50]) == [50, 310]


def test_an_end_that_was_given_once_does_not_move_when_the_broker_reports_it(tmp_path: Path) -> None:
    """A test may ask between a death and the broker's report of it, and compare what it was given."""
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / str(FIRST)).write_bytes(process_log.encode_log_entry(0, ("H", 0, -1, "agent", 0)))
    (tmp_path / "deaths").touch()
    log, record = FakeLog(tmp_path / "book", tmp_path / "deaths", SystemClock(1, 0)), Record({})
    log.command = str(tmp_path / "agent")
    first = log.read_so_far(record).events
    (tmp_path / "deaths").write_text(f"{FIRST} {first[-1].at + 1}\n")
    assert log.read_so_far(record).events == first
    log.collect(record)
    assert record.events == first


def test_a_line_that_the_broker_is_still_writing_is_no_death(tmp_path: Path) -> None:
    """The log is read while a test runs: half a number is another number."""
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / str(FIRST)).write_bytes(process_log.encode_log_entry(0, ("H", 0, -1, "agent", 0)))
    (tmp_path / "deaths").write_text(f"{FIRST} 30")
    log = FakeLog(tmp_path / "book", tmp_path / "deaths", SystemClock(1, 0))
    log.command = str(tmp_path / "agent")
    assert log.read_so_far(Record({})).events[-1].at > 30


def test_the_end_of_a_fake_kills_its_processes_however_slow_a_search_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search that takes long is no reason to leave a process: it would turn up in later runs."""
    launcher = str(tmp_path / "claude")
    (tmp_path / "book").mkdir()
    seconds = count(0, 1)
    monkeypatch.setattr(machine, "read_monotonic", lambda: float(next(seconds)))
    logs = FakeLog(tmp_path / "book", tmp_path / "deaths", SystemClock(1, 0))
    logs.command = launcher
    with subprocess.Popen([launcher], executable="/bin/cat", stdin=PIPE, stdout=PIPE, bufsize=0) as left:
        assert left.stdin is not None
        assert left.stdout is not None
        left.stdin.write(b"?")
        left.stdout.read(1)  # it is through its exec: /proc shows its words
        try:
            logs.end()
            assert not read_command_words(left.pid)
        finally:
            left.kill()
    assert not list(tmp_path.iterdir())


class _SlowKeeper:
    """A keeper whose looks take a second each, and the clock that shows it."""

    def __init__(self, *looks: dict[int, str]) -> None:
        self.started: set[int] = set()
        self._looks = iter(looks)
        self._now = 0.0

    def find_remaining_processes(self) -> SimpleNamespace:
        """Give the next look."""
        self._now += 1
        return SimpleNamespace(commands=next(self._looks))

    def monotonic(self) -> float:
        """Give the time."""
        return self._now


@pytest.mark.parametrize(
    ("looks", "leaks"),
    [([{FIRST: "helper"}, {}], 0), ([{FIRST: "helper"}, {FIRST: "helper"}], 1)],
    ids=["it ended in time", "it is left"],
)
def test_a_slow_look_below_a_keeper_accuses_no_process_that_ended_in_time(
    monkeypatch: pytest.MonkeyPatch, looks: list[dict[int, str]], leaks: int
) -> None:
    """The look that judges begins after the time that a process may take to end."""
    slow, record = _SlowKeeper(*looks), Record({})
    monkeypatch.setattr(_kept, "monotonic", slow.monotonic)
    kept = KeeperScope([], wanted=False)
    kept.keeper = cast("Keeper", slow)
    kept.record_leftovers(record, 0)
    assert len(record.events) == leaks
