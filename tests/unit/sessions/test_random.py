"""Caller and agent may act in any order: the status is true, no turn gets another's words (P1-P6, B1).

`SESSION_EXAMPLES=2000 pytest tests/unit/sessions/test_random.py` takes some minutes.
"""

from __future__ import annotations

import itertools
import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from pytest_agentproc.supervisor import Policy, SessionEvent, SessionStatus, Viewer
from pytest_agentproc.supervisor import _events as machine_events
from pytest_agentproc.supervisor._agent_lifecycle import ALLOWED_STATUS_CHANGES
from tests.unit.session_stage import SECOND, Stage
from tests.unit.sessions.players import PLAYERS

EXAMPLES = int(os.environ.get("SESSION_EXAMPLES", "100"))
POLICY = Policy(prompt_timeout=60.0, cancel_grace=90.0, handshake_timeout=30.0, restart_backoff=1.0)
ACTIONS = ["greet", "begin", "begin_own", "speak", "end", "settle"]


class Sessions(RuleBasedStateMachine):
    """One session, its caller, its agents and its viewers."""

    dialect = "pi"

    def __init__(self) -> None:
        super().__init__()
        self.stage = Stage(self.dialect, policy=POLICY)
        self.player = PLAYERS[self.dialect](self.stage)
        self.asked: list[int] = []
        self.is_stopped: set[int] = set()
        self.viewers: list[tuple[Viewer, list[SessionEvent]]] = []
        self.checked = 0
        self.player.read_written()

    @initialize(greets=st.sampled_from([True, True, True, False]))
    def begin(self, greets: bool) -> None:  # Hypothesis passes it
        """Mostly the handshake is done when it begins."""
        if greets:
            self.player.act("greet", good=True)
            self.player.read_written()

    # The caller.

    @precondition(lambda self: not self.stage.is_over)
    @rule()
    def prompt(self) -> None:
        """Ask."""
        self.asked.append(self.stage.prompt(str(len(self.asked) + 1)))
        self.player.read_written()

    @rule(back=st.integers(0, 3))
    def cancel(self, back: int) -> None:
        """Cancel the turn in flight, or one of the last three."""
        number = self.asked[-back] if 0 < back <= len(self.asked) else None
        self.stage.send_intents(machine_events.CancelTurn(number))
        self.player.read_written()

    @precondition(lambda self: len(self.asked) > 4)
    @rule()
    def close(self) -> None:
        """End the session."""
        self.stage.send_intents(machine_events.CloseSession())
        self.player.read_written()

    @rule()
    def attach(self) -> None:
        """Attach a viewer."""
        self.viewers.append((self.stage.session.attach(), []))

    @precondition(lambda self: self.viewers)
    @rule()
    def look_and_detach(self) -> None:
        """Have the oldest viewer see everything and go."""
        viewer, seen = self.viewers.pop(0)
        self.pull(viewer, seen)
        viewer.detach()
        assert seen == self.stage.events

    def pull(self, viewer: Viewer, observed: list[SessionEvent]) -> None:
        """Give a viewer what there is, without waiting for more."""
        while len(observed) < len(self.stage.events):
            try:
                anext(viewer).__await__().send(None)
            except StopIteration as given:
                observed.append(given.value)

    # Time.

    @rule()
    def advance_to_next_deadline(self) -> None:
        """Turn the clock to the next timer."""
        deadline = self.stage.machine.deadline
        if deadline is not None:
            self.stage.advance_to(deadline / SECOND)
            self.player.read_written()

    @rule(seconds=st.sampled_from([0.5, 5.0, 29.0]))
    def wait(self, seconds: float) -> None:
        """Let some time pass, but no timer unseen."""
        deadline = self.stage.machine.deadline
        goal = self.stage.now + round(seconds * SECOND)
        self.stage.advance_to(min(goal, deadline or goal) / SECOND)
        self.player.read_written()

    # The agent.

    @property
    def lives(self) -> bool:
        """Whether there is an agent that can print."""
        return self.stage.agents[-1].exit is None

    @precondition(lambda self: self.lives)
    @rule(data=st.data(), steps=st.integers(1, 6), good=st.booleans())
    def do_random_steps(self, data: st.DataObject, steps: int, good: bool) -> None:  # Hypothesis passes it
        """Have the agent do what an honest one could do now, some steps on end."""
        for _ in range(steps):
            able = [action for action in ACTIONS if self.player.can_do(action) and hasattr(self.player, f"do_{action}")]
            if not able or not self.lives:
                return
            self.player.act(data.draw(st.sampled_from(able)), good=good)
            self.player.read_written()

    @precondition(lambda self: self.lives)
    @rule(steps=st.integers(1, 4), good=st.booleans())
    def do_wanted_steps(self, steps: int, good: bool) -> None:  # Hypothesis passes it
        """Have the agent do the next thing that its prompts and cancels want of it."""
        for _ in range(steps):
            for action in ("greet", "begin", "settle", "end"):
                if self.lives and self.player.can_do(action) and hasattr(self.player, f"do_{action}"):
                    self.player.act(action, good=good)
                    self.player.read_written()
                    break

    @precondition(lambda self: self.lives and self.stage.agent.is_reading and not self.stage.agent.has_eof)
    @rule()
    def ask(self) -> None:
        """Have the agent ask for a permission, which is denied at once (P7)."""
        if self.player.can_do("ask") and hasattr(self.player, "do_ask"):
            self.player.act("ask", good=True)

    @precondition(lambda self: self.lives)
    @rule(data=st.sampled_from([b"noise\n", b"\xff\n", b"{\n", b"[1]\n", b""]))
    def make_noise(self, data: bytes) -> None:
        """Have the agent print what means nothing."""
        self.stage.agent.output["stdout"] += data
        self.stage.agent.output["stderr"] += b"."
        self.stage.look()

    @precondition(lambda self: self.lives)
    @rule(
        kind=st.sampled_from(["crash", "stop", "ignores_signals", "mute", "none", "none", "none"]),
        status=st.sampled_from([0, 1, -9]),
    )
    def get_into_trouble(self, kind: str, status: int) -> None:
        """Have the agent die, be stopped, ignore TERM or read no more."""
        if kind == "crash":
            self.stage.exit_agent(status)
        elif kind == "stop":
            self.is_stopped.add(len(self.stage.agents))
            self.stage.send_intents(machine_events.StopAgent())
        self.stage.agent.is_deaf = self.stage.agent.is_deaf or kind == "ignores_signals"
        self.stage.agent.is_reading = self.stage.agent.is_reading and kind != "mute"
        self.player.read_written()

    # The claims that must be true.

    @invariant()
    def check_statuses(self) -> None:
        """Every status follows from the last, and ready means what it says (P1, P6)."""
        stage, turns = self.stage, self.stage.machine.turns
        history = [SessionStatus.STARTING, *(SessionStatus(text) for text in stage.list_statuses())]
        assert all(after in ALLOWED_STATUS_CHANGES[before] for before, after in itertools.pairwise(history))
        assert history[-1] is stage.machine.state
        if stage.status in ("ready", "prompting"):
            agent = stage.agent
            assert (agent.exit, agent.signals, agent.has_eof and stage.status == "ready") == (None, [], False)
            assert self.player.is_greeted
        assert (turns.flight is not None) is (stage.status == "prompting")
        if stage.status == "ready" and turns.unacknowledged is None:
            assert not turns.queue

    @invariant()
    def check_words_of_turns(self) -> None:
        """In what viewers see and in results (P5, B1)."""
        for event in self.stage.events[self.checked :]:
            text = event.text if event.kind == "message" else event.result.text if event.result else None
            if text and event.turn is not None:
                own = f"w{event.turn}." if event.turn else "bg."
                assert text.replace(own, "") == "", (event, text)
                said = event.result.transcript if event.result else ""
                assert said.replace(own, "").strip() == "", (event, said)
            if event.kind == "outcome" and event.text in ("timed_out", "cancelled"):
                assert event.turn in self.asked
        self.checked = len(self.stage.events)

    @invariant()
    def check_signals(self) -> None:
        """A timeout is none (P1, P3)."""
        agent, stage = self.stage.agent, self.stage
        if agent.signals:
            words = [event.text for event in stage.events if event.kind == "error" and event.at <= stage.now]
            reasons = (
                stage.status in ("closed", "failed"),
                len(stage.agents) in self.is_stopped,
                not agent.is_reading,
                any("forced to stop" in text or "did not answer" in text for text in words),
            )
            assert any(reasons), agent.signals

    @invariant()
    def check_outcomes(self) -> None:
        """And none is taken back."""
        ended = [event.turn for event in self.stage.events if event.kind == "outcome"]
        assert len(ended) == len(set(ended))

    def teardown(self) -> None:
        """Close: no process is left, every turn has its outcome, and every viewer has seen it all."""
        stage = self.stage
        stage.send_intents(machine_events.CloseSession())
        stage.advance_to(stage.now / SECOND + 100)
        assert stage.is_over
        assert all(agent.is_reaped for agent in stage.agents)
        assert {event.turn for event in stage.events if event.kind == "outcome"} == set(self.asked)
        for viewer, seen in self.viewers:
            self.pull(viewer, seen)
            assert seen == stage.events


@pytest.mark.once
@pytest.mark.slow
@pytest.mark.parametrize("dialect", PLAYERS)
def test_nothing_that_caller_and_agent_do_breaks_a_session(dialect: str) -> None:
    """Unforeseen cases; the smallest one that fails is printed."""
    machine = type(dialect, (Sessions,), {"dialect": dialect})
    checks = [HealthCheck.too_slow, HealthCheck.filter_too_much]
    run_state_machine_as_test(
        machine,
        settings=settings(max_examples=EXAMPLES, stateful_step_count=50, deadline=None, suppress_health_check=checks),
    )
