"""Owns which runs a test's timeline is of. Reads no record itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest

from pytest_agentproc.errors import UsageError

if TYPE_CHECKING:
    from pytest_agentproc.record import Record, Timeline
    from pytest_agentproc.scenario import Scenario

__all__ = ["AgentTimeline", "keep_record"]

_FIXTURE = "agent_timeline"
_KEPT: pytest.StashKey[list[_Kept]] = pytest.StashKey()


class _Kept(NamedTuple):
    """What one run of a test is told by; fakes that a test starts by itself share a clock and are one run."""

    record: Record
    scenario: Scenario
    is_fake: bool


def keep_record(node: pytest.Item, record: Record, scenario: Scenario, *, is_fake: bool = False) -> None:
    """Keep a record for the timeline of a test, if the test has asked for one; it may still grow."""
    if _FIXTURE in getattr(node, "fixturenames", ()):
        node.stash.setdefault(_KEPT, []).append(_Kept(record, scenario, is_fake))


class AgentTimeline:
    """What the runs of this test did, both sides in order. Its words are told in `pytest_agentproc.record.Timeline`.

    Of a test with one run it is that run's timeline; of several, `agent_timeline[1]` is the second one's. All fakes of
    `fake_agent` together are one run: they share a clock. Times are seconds of the virtual clock.
    """

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._node = request.node

    def __len__(self) -> int:
        return len(self._runs())

    def __getitem__(self, number: int) -> Timeline:
        """Give the timeline of one run, counted from 0 in the order in which they were begun."""
        from pytest_agentproc.record import Timeline, beside

        runs = self._runs()
        if not -len(runs) <= number < len(runs):
            raise UsageError(
                f"there is no run {number}, the test had {len(runs)} so far",
                "run something by agent_run, agent_session or fake_agent first",
            )
        run = runs[number]
        return Timeline(beside([one.record for one in run]), run[0].scenario if len(run) == 1 else None)

    def __str__(self) -> str:
        return str(self._only())

    def at(self, word: str) -> float:
        """Give the first instant of a word: `agent_timeline.at("TERM") == 120`; one that never came fails the test."""
        return self._only().at(word)

    def times(self, word: str) -> tuple[float, ...]:
        """Give every instant of a word, in order; none if it never came."""
        return self._only().times(word)

    def order(self, *words: str) -> None:
        """Require that these came one after the other, whatever came between."""
        self._only().order(*words)

    def not_before(self, word: str, bound: float | str) -> None:
        """Require that a word came, and not before an instant, or the first time of another word."""
        self._only().not_before(word, bound)

    def never(self, word: str) -> None:
        """Require that a word did not come."""
        self._only().never(word)

    def finish(self) -> None:
        """Let go of the records."""
        self._node.stash.setdefault(_KEPT, []).clear()

    def _only(self) -> Timeline:
        runs = self._runs()
        if len(runs) > 1:
            raise UsageError(
                f"the test had {len(runs)} runs, each with a clock of its own", "choose one: agent_timeline[0]"
            )
        return self[0]

    def _runs(self) -> list[list[_Kept]]:
        runs: list[list[_Kept]] = []
        fakes: list[_Kept] = []
        for one in self._node.stash.get(_KEPT, []):
            if not one.is_fake:
                runs.append([one])
            else:
                if not fakes:
                    runs.append(fakes)
                fakes.append(one)
        return runs
