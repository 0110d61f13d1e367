"""What the diaries of one fake say, beside what its supervisor saw: whose end an exit is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fake_agents import diary
from pytest_agentproc.clock import SystemClock
from pytest_agentproc.harness._diaries import Diaries
from pytest_agentproc.record import Record

if TYPE_CHECKING:
    from pathlib import Path

FIRST, SECOND = 2**22 + 1, 2**22 + 2
"""Pids that no process has."""


def _ends(folder: Path, deaths: list[tuple[int, int]], seen: list[int]) -> list[int]:
    """Give the ends of two agents, born at 0 and 100, of whose deaths the broker told so, and their supervisor so."""
    (folder / "book").mkdir()
    for pid, born in ((FIRST, 0), (SECOND, 100)):
        (folder / "book" / str(pid)).write_bytes(diary.entry(born, ("H", 0, -1, "agent", 0)))
    (folder / "deaths").write_text("".join(f"{pid} {at}\n" for pid, at in deaths))
    record = Record({})
    for at in seen:
        record.add(at, "x", {"process": "agent", "by": "supervisor", "code": 0})
    Diaries(folder / "book", folder / "deaths", SystemClock(1, 0)).collect(record)
    return [event.at for event in record.events if event.code == "x" and "by" not in event.data]


@pytest.mark.parametrize("deaths", [[(FIRST, 300), (SECOND, 310)], [(SECOND, 300), (FIRST, 310)]], ids=["so", "or so"])
def test_an_end_that_was_seen_is_that_of_one_agent_which_had_begun(
    tmp_path: Path, deaths: list[tuple[int, int]]
) -> None:
    """A broker that got no core tells of both at once, and in any order."""
    assert _ends(tmp_path, deaths, [50, 250]) == [50, 250]


def test_an_end_that_nobody_saw_is_when_the_broker_noted_it(tmp_path: Path) -> None:
    """And what was seen of one says nothing of the other."""
    assert _ends(tmp_path, [(FIRST, 60), (SECOND, 310)], [50]) == [50, 310]
