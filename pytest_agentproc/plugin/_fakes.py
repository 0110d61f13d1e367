"""Owns the fakes of one test: makes them, and fails the test for one that outlives it. Starts none itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_agentproc.plugin._options import lab_of
from pytest_agentproc.plugin._scripts import scenario_of
from pytest_agentproc.plugin._timelines import keep_record
from pytest_agentproc.verdict import explain_leaks

if TYPE_CHECKING:
    from pytest_agentproc.clock import VirtualClock
    from pytest_agentproc.harness import FakeAgent
    from pytest_agentproc.scenario import Scenario

__all__ = ["Fakes"]


class Fakes:
    """The fakes that one test asked for.

    Args:
        request: the test's.
        clock: the clock that they obey.
    """

    def __init__(self, request: pytest.FixtureRequest, clock: VirtualClock) -> None:
        self._request = request
        self._clock = clock
        self._made: list[tuple[FakeAgent, Scenario]] = []

    def make(self, script: Any) -> FakeAgent:
        """Make one fake.

        Raises:
            ScenarioError: every problem of the script, with its line.
            NotApplicable: the script needs a limit that is off by default.
        """
        scenario = scenario_of(script, self._request)
        fake = lab_of(self._request.config).fake(scenario, clock=self._clock)
        self._made.append((fake, scenario))
        keep_record(self._request.node, fake.record, scenario, is_fake=True)
        return fake

    def finish(self) -> None:
        """Show every record to whoever wants it, and fail the test for every fake that is still alive."""
        node = self._request.node
        texts = []
        for fake, scenario in self._made:
            record = fake.finish()
            node.ihook.pytest_agentproc_record(nodeid=node.nodeid, record=record)
            texts.append(explain_leaks(scenario, record))
        text = "\n\n".join(filter(None, texts))
        if text:
            pytest.fail(text, pytrace=False)
