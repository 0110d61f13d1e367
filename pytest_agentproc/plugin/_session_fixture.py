"""Owns the conversation that a test holds by hand: its words, each waited for, and its end. Knows no loop."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from pytest_agentproc.errors import UsageError
from pytest_agentproc.foreign import find_exit_of_pytest
from pytest_agentproc.plugin._contributions import get_reference_subject
from pytest_agentproc.plugin._judged_items import finish_test_by_judgement, play_in_virtual_time
from pytest_agentproc.plugin._options import get_backends
from pytest_agentproc.plugin._run_fixture import (
    AgentRun,
    AgentTurn,
    add_scenario_limits,
    convert_to_seconds,
    fail_test_on_red,
    make_agent_run,
)
from pytest_agentproc.plugin._scripts import CONVERSATION_AGENT, find_test_place, load_given_scenario
from pytest_agentproc.plugin._virtual_time import refuse_nested_clock
from pytest_agentproc.plugin.reports._pages import add_run_page
from pytest_agentproc.verdict import judge_play

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import pytest

    from pytest_agentproc.plays import PlayResult
    from pytest_agentproc.scenario import Scenario
    from pytest_agentproc.subjects import HeldSession, LiveSupervisor
    from pytest_agentproc.supervisor import Question, Session, SessionEvent, TurnResult


class AgentSession:
    """A conversation with an agent, held by the reference supervisor in virtual time.

    Each call returns when what it names has happened, and time stands still until the next one. A fault of the clock (a
    deadlock: the awaited event can never come) fails the test there. At the end of a `with` block, or of the test, the
    session is closed; a process that is left then, or an `expect` of the scenario that does not hold, fails the test.
    """

    def __init__(self, request: pytest.FixtureRequest, live: LiveSupervisor) -> None:
        self._request = request
        self._live = live
        self._held: HeldSession
        self._thread: threading.Thread | None = None
        self._run: AgentRun | None = None
        self._unanswered = 1  # the thread says that the session is open

    def __enter__(self) -> AgentSession:  # noqa: PYI034  # nobody derives from it
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.finish()  # what is raised here is what has ended the session, if it is over

    # The session's state, for the test to look at.

    @property
    def now(self) -> float:
        """Seconds since the agent was started, on the virtual clock."""
        return self._held.now / 1_000_000_000

    @property
    def status(self) -> str:
        """Where the session stands: `starting`, `ready`, `prompting`, `restarting`, `failed` or `closed`."""
        return self._held.session.status

    @property
    def events(self) -> tuple[SessionEvent, ...]:
        """The messages to the session's viewers, from the beginning; `at` is in nanoseconds."""
        return tuple(self._held.session.transcript)

    @property
    def background(self) -> tuple[AgentTurn, ...]:
        """The turns that the agent began by itself, as far as they are over."""
        return tuple(_make_turn(result) for result in self._held.session.background)

    # The session's actions, for the test to call.

    def prompt(self, text: str) -> AgentTurn:
        """Ask the agent, and wait for what comes of it."""
        return self.begin(text).wait()

    def begin(self, text: str) -> StartedTurn:
        """Ask the agent, and wait for nothing: the turn is queued, or under way."""
        return StartedTurn(self, self.run_in_session_loop(lambda held: held.begin_turn(text)))

    def wait(self, seconds: float) -> None:
        """Let this many seconds of virtual time pass."""
        if not seconds >= 0:
            raise UsageError(f"{seconds} seconds cannot pass", "wait(2.5) lets two and a half pass")
        self.run_in_session_loop(lambda held: held.wait(seconds))

    def wait_for(self, status: str) -> None:
        """Wait until the session stands there: `ready`, `restarting`, `failed`, ..."""
        statuses = ("starting", "ready", "prompting", "restarting", "failed", "closed")
        if status not in statuses:
            raise UsageError(f"there is no status {status!r}", f"they are {', '.join(statuses)}")
        self.run_in_session_loop(lambda held: held.wait_for_status(status))

    def cancel(self) -> None:
        """Cancel the turn in flight; the agent lives on."""
        self.run_in_session_loop(lambda held: held.cancel_turn(None))

    def stop(self) -> None:
        """End the agent with its whole tree, and wait until no process of it is left; another agent is started."""
        self.run_in_session_loop(lambda held: held.stop_agent())

    def call(self, function: Callable[[Session], Awaitable[Any]]) -> Any:
        """Run an async function of your own in the session's loop: `call(function)` awaits `function(session)`.

        Args:
            function: gets the `supervisor.Session`; its exception is raised here.
        """
        return self.run_in_session_loop(lambda held: held.call(function))

    def close(self) -> AgentRun:
        """Close the session, wait until no process is left, and give all results; the second time the same."""
        if self._run is None:
            self.run_in_session_loop(None)
            assert self._run is not None
        return self._run

    # How.

    def open(self, scenario: Scenario, backend: str) -> None:
        """Start the agent, and give the session its loop."""

        def run_session_loop() -> None:
            try:
                self._live.report_session_end(play_in_virtual_time(self._request.node, scenario, backend, self._live))
            except BaseException as error:  # noqa: BLE001  # it is raised in the test's thread
                self._live.report_session_end(None, find_exit_of_pytest(error) or error)

        self._thread = threading.Thread(target=run_session_loop, name="agent_session", daemon=True)
        self._thread.start()
        self._held = self._receive_answer()

    def finish(self) -> None:
        """Close it unless that has been done, or it has ended by itself."""
        if self._thread is not None:
            self.close()

    def run_in_session_loop(self, verb: Callable[[HeldSession], Awaitable[Any]] | None) -> Any:
        """Have the session's loop do something, and wait for it; None: close the session."""
        if self._thread is None:
            raise UsageError("the conversation is over", "open another one: agent_session(...)")
        self._unanswered += 1
        self._live.submit_call(verb)
        return self._receive_answer()

    def _receive_answer(self) -> Any:
        is_over = False
        while self._unanswered and not is_over:  # a Ctrl-C may have broken off the wait for an earlier answer
            value, error, is_over = self._live.receive_call_answer()
            self._unanswered -= 1
        if is_over:
            assert self._thread is not None
            self._thread.join()
            self._thread = None
        if error is not None:
            with fail_test_on_red():
                raise error
        if is_over:
            self._judge_session(value)
        return value

    def _judge_session(self, played: PlayResult) -> None:
        with fail_test_on_red():
            judgement = judge_play(played)
            add_run_page(self._request.node, played, judgement.rows, judgement.verdict)
            finish_test_by_judgement(judgement)
        self._run = make_agent_run(played)


class StartedTurn:
    """A turn that was asked for and not waited for; `number` counts from 1."""

    def __init__(self, session: AgentSession, number: int) -> None:
        self.number = number
        self._session = session

    def wait(self) -> AgentTurn:
        """Wait for what comes of it."""
        result: TurnResult = self._session.run_in_session_loop(lambda held: held.wait_for_outcome(self.number))
        return _make_turn(result)

    def cancel(self) -> None:
        """Cancel it, also while it is queued."""
        self._session.run_in_session_loop(lambda held: held.cancel_turn(self.number))


class Sessions:
    """Opens conversations for one test, one at a time."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._request = request
        self._last: AgentSession | None = None

    def __call__(
        self,
        scenario: Any,
        *,
        backend: str | None = None,
        permission: bool | Callable[[Question], Any] | None = None,
        **policy: Any,
    ) -> AgentSession:
        """Start an agent, and open a session with it.

        Args:
            scenario: as `fake_agent` takes it; of steps alone the agent is pi. Its `expect` is judged at the end; its
                `drive`, if it has one, is left to you.
            backend: asyncio or trio; default: the first of the session's.
            permission: how questions of the agent are answered: True, False, or by a function, async or not, that gets
                the question. None: no answer.
            policy: limits in seconds, and `host_tools`.

        Raises:
            pytest.fail.Exception: a check failed, a process was left, or the clock was stuck.
            UsageError: there is no such limit, the agent holds no conversation, or virtual time runs already.
        """
        from pytest_agentproc.subjects import LiveSupervisor, ReferenceSupervisor

        refuse_nested_clock(self._request.node, "agent_session")
        asked = add_scenario_limits(
            load_given_scenario(scenario, find_test_place(self._request), CONVERSATION_AGENT, ("scenario",)), policy
        )
        if asked.parts or not asked.is_session:
            what = "several agents" if asked.parts else f"an agent of {asked.dialect} {asked.mode}"
            raise UsageError(
                f"{what} cannot be talked to by agent_session",
                "agent: acp, {dialect: claude, mode: session}, {dialect: codex, mode: app-server} and "
                "{dialect: pi, mode: rpc} can; agent_run plays all",
            )
        config = self._request.config
        reference_supervisor = get_reference_subject(config)
        assert isinstance(reference_supervisor, ReferenceSupervisor), "the kit's own"
        live = LiveSupervisor(
            reference_supervisor, (lambda _: permission) if isinstance(permission, bool) else permission
        )
        self.finish()
        self._last = AgentSession(self._request, live)
        self._last.open(asked, backend or get_backends(config)[0])
        return self._last

    def finish(self) -> None:
        """Close the open session."""
        if self._last is not None:
            self._last.finish()


def _make_turn(result: TurnResult) -> AgentTurn:
    return AgentTurn(
        result.outcome.value, result.exit_code, result.text, result.error, convert_to_seconds(result.elapsed)
    )
