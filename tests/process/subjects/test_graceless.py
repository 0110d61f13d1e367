"""A client of sessions that kills without TERM, and states that it gives no grace."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING

import anyio
import pytest

from pytest_agentproc.scenario import loads
from pytest_agentproc.subjects import Driven
from pytest_agentproc.verdict import Verdict, choose_overall_verdict, judge_all_expectations
from tests.bundled import load_bundled
from tests.process.subjects.test_driven import ONCE, Pi

if TYPE_CHECKING:
    from pytest_agentproc.harness import ScenarioRunner


TERMINATED = (
    ONCE
    + """answer: done
  - wait_for: signal
drive: [{prompt: hi}, {wait_for: turn 1}, {close: {}}]
expect:
  signals: [{TERM: close_grace}]
  agent_status: {signal: TERM, forced: true}
  returned: close_grace
"""
)


class KillsAtClose(Pi):
    """A client that ends its agent with SIGKILL at the close, and whatever else is in its session."""

    async def close(self) -> None:
        """Give it the grace of the close, and no other."""
        await super().close()
        with anyio.move_on_after(2):
            await self.agent.wait()
        with suppress(ProcessLookupError):
            os.killpg(self.agent.pid, signal.SIGKILL)
        await self.agent.wait()


@pytest.mark.parametrize(
    "name",
    [
        "session-close-kills-an-agent-that-ignores-term[pi]",
        "session-close-kills-a-child-that-ignores-term[pi]",
        "ends by TERM",
    ],
)
def test_a_client_without_a_grace_is_believed(runner: ScenarioRunner, name: str) -> None:
    """A grace of 0 is honoured in sessions as it is in runs, for the agent and for its descendants."""
    scenario = load_bundled(name) if "-" in name else loads(TERMINATED)
    limits = {"close_grace": 2, "kill_grace": 0}
    rows = judge_all_expectations(runner.play(scenario, Driven(KillsAtClose, limits=limits)))
    assert choose_overall_verdict(rows) is Verdict.PASSED, [row for row in rows if row.verdict is not Verdict.PASSED]
