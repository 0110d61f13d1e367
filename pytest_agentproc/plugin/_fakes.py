"""Owns the fakes of one test: makes them, and fails the test for one that outlives it. Starts none itself."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from pytest_agentproc.errors import UsageError
from pytest_agentproc.plugin._options import lab_of
from pytest_agentproc.plugin._scripts import place_of, scenario_of
from pytest_agentproc.plugin._timelines import keep_record
from pytest_agentproc.verdict import explain_leaks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_agentproc.clock import VirtualClock
    from pytest_agentproc.harness import FakeAgent
    from pytest_agentproc.record import Record
    from pytest_agentproc.scenario import Scenario

__all__ = ["Fakes", "end_fakes"]


class Fakes:
    """The fakes that one test asked for.

    Args:
        request: the test's.
        clock: the clock that they obey.
    """

    def __init__(self, request: pytest.FixtureRequest, clock: VirtualClock) -> None:
        self._request = request
        self.virtual_clock = clock
        self._made: list[tuple[FakeAgent, Scenario]] = []

    def __call__(self, script: Any, *, scale: float | None = None) -> FakeAgent:
        """Make one fake.

        Args:
            script: what it plays.
            scale: it plays in real time, with every duration divided by it; None: under the test's virtual clock,
                unless an event loop runs here, where time is real and the scale 1.

        Raises:
            ScenarioError: every problem of the script, with its line.
            NotApplicable: the script needs a limit that is off by default.
            UsageError: no time can be scaled so.
        """
        return self.make(self.read(script), scale=scale)

    def read(self, script: Any, agent: str = '"raw"') -> Scenario:
        """Load a script of the test; see `scenario_of`."""
        return scenario_of(script, place_of(self._request), agent)

    def make(self, scenario: Scenario, *, scale: float | None = None, **options: Any) -> FakeAgent:
        """Make the fake of a scenario; see `Lab.fake` for the other options."""
        from pytest_agentproc.clock import SystemClock, is_in_loop

        if scale is not None and not scale > 0:
            raise UsageError(f"scale is {scale}, but must be more than 0", "scale=60 plays a minute in a second")
        clock: VirtualClock | SystemClock = self.virtual_clock
        if scale is not None or is_in_loop():
            clock = SystemClock(scale or 1, time.monotonic_ns())
        fake = lab_of(self._request.config).fake(scenario, clock=clock, tells=True, **options)
        self._made.append((fake, scenario))
        keep_record(self._request.node, fake.record, scenario, is_fake=True)
        return fake

    def refusals(self) -> str:
        """See `Lab.refusals`."""
        return lab_of(self._request.config).refusals()

    def finish(self) -> None:
        """Show every record to whoever wants it, and fail the test for every fake that is still alive.

        Raises:
            KitError: a fake itself failed, which says nothing of the code under test.
            ScenarioError: its script has no end.
        """
        node = self._request.node
        text = end_fakes(
            self._made, lambda record: node.ihook.pytest_agentproc_record(nodeid=node.nodeid, record=record)
        )
        if text:
            pytest.fail(text, pytrace=False)


def end_fakes(made: Sequence[tuple[FakeAgent, Scenario]], see: Callable[[Record], None]) -> str:
    """End fakes, and explain which of them were still alive; empty: none was.

    Args:
        made: each fake with its scenario.
        see: is given each record.

    Raises:
        KitError: a fake itself failed, which says nothing of the code under test.
        ScenarioError: its script has no end.
    """
    texts = []
    for fake, scenario in made:
        record = fake.finish()
        see(record)
        texts.append(explain_leaks(scenario, record))
    for fake, scenario in made:
        if fake.broken is not None:
            raise fake.broken.error(str(scenario.path))
    return "\n\n".join(filter(None, texts))
