"""Owns the fakes of one test: makes them, and fails the test for one that outlives it. Starts none itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_agentproc.errors import UsageError
from pytest_agentproc.plugin import _lifetime
from pytest_agentproc.plugin._options import lab_of
from pytest_agentproc.plugin._scripts import place_of, scenario_of
from pytest_agentproc.plugin._timelines import keep_fake
from pytest_agentproc.verdict import explain_leaks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_agentproc.clock import SystemClock, VirtualClock
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
        self._clocks: dict[float, SystemClock] = {}
        _lifetime.hear_debugger(request.config)

    def __call__(self, script: Any, *, scale: float = 1) -> FakeAgent:
        """Make one fake.

        A start within a virtual run is in virtual time. Every other start is in real time, and lives for 60 s at most.

        Args:
            script: what it plays.
            scale: in real time every duration is divided by it.

        Raises:
            ScenarioError: every problem of the script, with its line.
            NotApplicable: the script needs a limit that is off by default, or virtual time cannot play it.
            UsageError: no time can be scaled so.
        """
        if not scale > 0:
            raise UsageError(f"scale is {scale}, but must be more than 0", "scale=60 plays a minute in a second")
        return self.make(self.read(script), scale=scale)

    def read(self, script: Any, agent: str = '"raw"') -> Scenario:
        """Load a script of the test; see `scenario_of`."""
        return scenario_of(script, place_of(self._request), agent)

    def make(self, scenario: Scenario, *, scale: float = 1, **options: Any) -> FakeAgent:
        """Make the fake of a scenario; see `Lab.fake` for the other options."""
        from pytest_agentproc.clock import SystemClock
        from pytest_agentproc.harness import Outside

        is_new = scale not in self._clocks
        real = self._clocks.setdefault(scale, SystemClock(scale))
        outside = Outside(real, _lifetime.LIFETIME, _lifetime.notice(self._request, scenario))
        lab = lab_of(self._request.config)
        fake = lab.fake(scenario, clock=self.virtual_clock, tells=True, outside=outside, **options)
        if is_new:
            real.start()
        self._made.append((fake, scenario))
        keep_fake(self._request.node, fake, scenario)
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
        see = node.ihook.pytest_agentproc_record
        text = end_fakes(self._made, lambda record: see(nodeid=node.nodeid, record=record))
        if text:
            pytest.fail(text, pytrace=False)


def end_fakes(made: Sequence[tuple[FakeAgent, Scenario]], see: Callable[[Record], object]) -> str:
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
        fake.finish()
        texts += _lifetime.expired(fake, scenario)
        for record in fake.records or (fake.record,):
            see(record)
            texts.append(explain_leaks(scenario, record))
    for fake, scenario in made:
        if fake.broken is not None:
            raise fake.broken.error(str(scenario.path))
    return "\n\n".join(filter(None, texts))
