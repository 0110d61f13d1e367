"""Behaviour that the promises leave open fails no supervisor: the reference supervisor, changed there, stays green."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_agentproc.harness import run_in_model
from pytest_agentproc.subjects import ReferenceSupervisor
from pytest_agentproc.supervisor import SessionDeciders
from pytest_agentproc.supervisor._agent_lifecycle import AgentLifecycle
from pytest_agentproc.supervisor._turns import OpenTurns
from pytest_agentproc.verdict import Verdict, judge_all_expectations
from pytest_agentproc.vocabulary import NANOSECONDS_PER_SECOND, Outcome
from tests.bundled import load_all_for_functions

if TYPE_CHECKING:
    from pytest_agentproc.supervisor._events import AgentExited, MachineCommand

pytestmark = pytest.mark.once


class ForgetfulTurns(OpenTurns):
    """Ends what waits for an agent that is forced to stop as lost with it (P3: delivered, or `agent_lost`)."""

    def lose_agent(self, outcome: Outcome, now: int, error: str) -> None:
        """Clear the queue, too."""
        super().lose_agent(outcome, now, error)
        if outcome is Outcome.STOPPED:
            self.refuse_queued(Outcome.AGENT_LOST, error, now)


def _wait_for_the_next(monkeypatch: pytest.MonkeyPatch) -> SessionDeciders:
    """Start the next agent after `restart_backoff`, even after an end by the supervisor (P6 speaks of crashes)."""
    exited = vars(AgentLifecycle)["_handle_exit"]

    def slow(self: Any, event: AgentExited, now: int) -> list[MachineCommand]:
        commands: list[MachineCommand] = exited(self, event, now)
        if self._start_at == now and self._is_stopped:
            self._start_at = now + int(self.policy.restart_backoff * NANOSECONDS_PER_SECOND)
        return commands

    monkeypatch.setattr(AgentLifecycle, "_handle_exit", slow)
    return SessionDeciders()


def _forget_the_queue(_monkeypatch: pytest.MonkeyPatch) -> SessionDeciders:
    return SessionDeciders(turns=ForgetfulTurns)


@pytest.mark.parametrize("choice", [_wait_for_the_next, _forget_the_queue])
def test_another_choice_is_no_mistake(monkeypatch: pytest.MonkeyPatch, choice: Any) -> None:
    """A false verdict costs more than a missed one."""
    subject = ReferenceSupervisor("other", session_deciders=choice(monkeypatch))
    red = {
        f"{scenario.id}: {row.key}"
        for scenario in load_all_for_functions()
        if scenario.is_session and scenario.level != "info"
        for row in judge_all_expectations(run_in_model(scenario, subject))
        if row.verdict is Verdict.FAILED and row.level != "info"
    }
    assert red == set()
