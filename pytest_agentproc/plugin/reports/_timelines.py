"""Owns which runs a test's timeline is of. Reads no record itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest

from pytest_agentproc.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_agentproc.harness import FakeAgent
    from pytest_agentproc.record import Record, Timeline
    from pytest_agentproc.scenario import Scenario


__tracebackhide__ = True  # a failure shows the line of the test, and none of this file

_FIXTURE_NAME = "agent_timeline"
_TRACE_SOURCES_STASH_KEY: pytest.StashKey[list[_TraceSource]] = pytest.StashKey()


class _TraceSource(NamedTuple):
    """The trace of one run of a test: a record that may still grow, or a fake that the test itself starts."""

    source: Record | FakeAgent
    scenario: Scenario


class _TracedRun(NamedTuple):
    """One run, of which a timeline is made."""

    records: list[Record]
    scenario: Scenario | None
    is_supervised: bool


def add_run_to_timeline(node: pytest.Item, source: Record | FakeAgent, scenario: Scenario) -> None:
    """Keep the trace of a run for the timeline of a test, if the test has asked for one; it may still grow."""
    if _FIXTURE_NAME in getattr(node, "fixturenames", ()):
        node.stash.setdefault(_TRACE_SOURCES_STASH_KEY, []).append(_TraceSource(source, scenario))


class AgentTimeline:
    """The actions in the runs of this test, both sides in order. See `pytest_agentproc.record.Timeline`.

    In a test with one run it is that run's timeline; in a test with several, `agent_timeline[1]` is the second one's.
    All fakes of `fake_agent` together are one run, as far as they share a clock: virtual time is one, real time
    another. Times are seconds of that clock. The supervisor of such a fake is not recorded, so no word about it can be
    asked.
    """

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._node = request.node

    def __len__(self) -> int:
        return len(self._collect_runs())

    def __getitem__(self, number: int) -> Timeline:
        """Give the timeline of one run, counted from 0 in the order in which they were begun."""
        from pytest_agentproc.record import Timeline, join_records

        runs = self._collect_runs()
        if not -len(runs) <= number < len(runs):
            if not runs and self._node.stash.get(_TRACE_SOURCES_STASH_KEY, []):
                raise UsageError(
                    "no fake agent of this test has been started, so there is nothing to ask of it",
                    "start it first, by the command agent.argv: its code may have found another program",
                )
            raise UsageError(
                f"there is no run {number}, the test had {len(runs)} so far",
                "run agent_run or agent_session, or start a fake, before you ask",
            )
        run = runs[number]
        return Timeline(join_records(run.records), run.scenario, is_supervised=run.is_supervised)

    def __str__(self) -> str:
        return str(self._get_only_timeline())

    def at(self, word: str) -> float:
        """Give the first instant of a word: `agent_timeline.at("TERM") == 120`; one that never came fails the test."""
        return self._get_only_timeline().at(word)

    def times(self, word: str) -> tuple[float, ...]:
        """Give every instant of a word, in order; none if it never came."""
        return self._get_only_timeline().times(word)

    def order(self, *words: str) -> None:
        """Require that these came one after the other, whatever came between."""
        self._get_only_timeline().order(*words)

    def not_before(self, word: str, bound: float | str) -> None:
        """Require that a word came, and not before an instant, or the first time of another word."""
        self._get_only_timeline().not_before(word, bound)

    def never(self, word: str) -> None:
        """Require that a word did not come."""
        self._get_only_timeline().never(word)

    def finish(self) -> None:
        """Let go of the records."""
        self._node.stash.setdefault(_TRACE_SOURCES_STASH_KEY, []).clear()

    def _get_only_timeline(self) -> Timeline:
        runs = self._collect_runs()
        if len(runs) > 1:
            raise UsageError(
                f"the test had {len(runs)} runs, each with a clock of its own", "choose one: agent_timeline[0]"
            )
        return self[0]

    def _collect_runs(self) -> list[_TracedRun]:
        from pytest_agentproc.harness import FakeAgent

        kept = self._node.stash.get(_TRACE_SOURCES_STASH_KEY, [])
        fakes = [(timeline.source, timeline.scenario) for timeline in kept if isinstance(timeline.source, FakeAgent)]
        runs: list[_TracedRun] = []
        for timeline in kept:
            if not isinstance(timeline.source, FakeAgent):
                runs.append(_TracedRun([timeline.source], timeline.scenario, is_supervised=True))
            elif timeline.source is fakes[0][0]:
                runs += _split_by_clock(fakes)
        return runs


def _split_by_clock(fakes: Sequence[tuple[FakeAgent, Scenario]]) -> Iterator[_TracedRun]:
    """Give a run for each clock in whose time a fake was started; a fake has the same letter in all of them."""
    from pytest_agentproc.record import Record

    scenario = fakes[0][1] if len(fakes) == 1 else None
    by_clock: dict[float, list[Record]] = {0: []}
    for number, (fake, _) in enumerate(fakes):
        scale = fake.outside.clock.scale if fake.outside is not None else 0
        for key, record in ((0, fake.virtual_record), (scale, fake.real_record)):
            records = by_clock.setdefault(key, [])
            records += [Record({}) for _ in range(number - len(records))]
            records += [] if record is None else [record]
    for records in by_clock.values():
        if any(record.events for record in records):
            yield _TracedRun(records, scenario, is_supervised=False)
