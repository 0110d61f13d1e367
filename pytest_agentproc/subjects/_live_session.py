"""The reference supervisor's session as a subject whose caller is a test, in another thread. Owns the loop's side."""

from __future__ import annotations

import inspect
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

import anyio

from pytest_agentproc.supervisor import open_session, report_session
from pytest_agentproc.vocabulary import (
    NANOSECONDS_PER_SECOND,
    CallerAction,
    LimitsRequest,
    Policy,
    RunReport,
    RunRequest,
    explain_idle_cancel,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pytest_agentproc.clock import Clock
    from pytest_agentproc.subjects._reference import ReferenceSupervisor
    from pytest_agentproc.supervisor import Question, Session, Turn, TurnResult


_SECONDS_BETWEEN_LOOKS = 0.5
"""Real seconds after which a wait for an answer looks for a Ctrl-C."""


class _WaitForOtherTasks:
    """A wait that ends when all other tasks have done their work at this instant."""

    news = False
    descriptor = None

    def __init__(self, clock: Clock) -> None:
        self.deadline: int | None = clock.instant()
        self._has_looked = False

    def look(self) -> bool:
        """Be done with the second look: that is the deadline's, and deadlines come last in their instant."""
        is_second, self._has_looked = self._has_looked, True
        return is_second

    def describe(self) -> str:
        """See `Watched.describe`."""
        return "lets everybody finish what there is to do now"


class HeldSession:
    """An open session in a test's hands; all that is awaited here runs in the session's own loop."""

    def __init__(self, session: Session, order: RunRequest) -> None:
        self.session = session
        self.turns: list[Turn] = []
        self._order = order
        self._clock: Clock = order.clock

    @property
    def now(self) -> int:
        """The instant, in nanoseconds."""
        return self._clock.instant()

    async def begin_turn(self, text: str) -> int:
        """Send a prompt, wait for nothing, and give the number of the turn."""
        self._record_action("prompt", text)
        self.turns.append(self.session.prompt(text))
        return len(self.turns)

    async def wait_for_outcome(self, number: int) -> TurnResult:
        """Wait for the outcome of a turn."""
        self._record_action("turn", number)
        return await self.turns[number - 1].outcome()

    async def wait(self, seconds: float) -> None:
        """Let time pass."""
        self._record_action("wait", round(seconds * NANOSECONDS_PER_SECOND))
        await anyio.sleep(seconds)

    async def wait_for_status(self, status: str) -> None:
        """Wait until the session has this status."""
        self._record_action("status", status)
        while self.session.status != status:
            await self.session.wait_for_change()

    async def cancel_turn(self, number: int | None) -> None:
        """Cancel a turn, or the one in flight."""
        over = {turn.number for turn in self.turns if turn.result is not None}
        self._record_action("cancel", number, explain_idle_cancel(number, len(self.turns), over))
        if number is None:
            self.session.cancel()
        else:
            self.turns[number - 1].cancel()

    async def stop_agent(self) -> None:
        """Terminate the agent, and wait until no process of it is left."""
        self._record_action("stop")
        await self.session.stop()

    async def call(self, function: Callable[[Session], Awaitable[Any]]) -> Any:
        """Run something else with the session."""
        return await function(self.session)

    def _record_action(self, kind: str, value: Any = None, misses: str = "") -> None:
        self._order.trace(CallerAction(0, kind, value, misses=misses).make_event(self.now))


class LiveSupervisor:
    """The reference supervisor, which holds one session for a caller in another thread.

    Without a call the loop's thread stands still, and virtual time with it.

    Args:
        reference_supervisor: the reference supervisor, with its judgements and limits.
        permission: answers the agent's questions; None: they get no answer.
    """

    keeps_artifacts = False
    holds_sessions = True

    def __init__(
        self, reference_supervisor: ReferenceSupervisor, permission: Callable[[Question], Any] | None = None
    ) -> None:
        self.name = reference_supervisor.name
        self._reference = reference_supervisor
        self._permission = permission
        self._wanted: SimpleQueue[Callable[[HeldSession], Awaitable[Any]] | None] = SimpleQueue()
        self._told: SimpleQueue[tuple[Any, BaseException | None, bool]] = SimpleQueue()

    # The caller's side.

    def submit_call(self, verb: Callable[[HeldSession], Awaitable[Any]] | None) -> None:
        """Have a function called in the session's loop; None: close the session.

        `receive_call_answer` gives the answer.
        """
        self._wanted.put(verb)

    def report_session_end(self, value: Any, error: BaseException | None = None) -> None:
        """Report to the caller that the session is over, with its result or its error."""
        self._told.put((value, error, True))

    def receive_call_answer(self) -> tuple[Any, BaseException | None, bool]:
        """Wait for the answer to the last call: its value, its error, and whether the session is over.

        A Ctrl-C ends the wait within half a second. CPython looks for it before it blocks, and not between that look
        and the block: without a limit the Ctrl-C would wait for the answer.
        """
        while True:
            with suppress(Empty):
                return self._told.get(timeout=_SECONDS_BETWEEN_LOOKS)

    # The loop's side.

    def policy(self, request: LimitsRequest) -> Policy:
        """See `ReferenceSupervisor.policy`."""
        return self._reference.policy(request)

    async def run(self, order: RunRequest) -> RunReport:
        """Open the session, and do what its caller wants until it wants no more."""
        async with open_session(
            order.argv,
            dialect=order.dialect,
            mode=order.mode,
            policy=order.policy,
            permission=None if self._permission is None else self._ask_permission,
            hooks={hook.name: hook.event for hook in order.hooks},
            continues=order.continues,
            cwd=order.cwd,
            env=order.env,
            clock=order.clock,
            deciders=self._reference.session_deciders,
            key="caller",
            trace=order.trace,
        ) as session:
            held = HeldSession(session, order)
            await self._serve_calls(held, order.clock)
        return report_session(session, turns=len(held.turns), views={})

    async def _serve_calls(self, held: HeldSession, clock: Clock) -> None:
        value: Any = held
        error: Exception | None = None
        while True:
            await clock.drive(_WaitForOtherTasks(clock))
            self._told.put((value, error, False))
            verb = self._wanted.get()
            if verb is None:
                return
            value = error = None
            try:
                value = await verb(held)
            except Exception as raised:  # noqa: BLE001  # it is the caller's, and raised there
                error = raised

    async def _ask_permission(self, question: Question) -> bool:
        assert self._permission is not None
        answer = self._permission(question)
        return (await answer if inspect.isawaitable(answer) else answer) is True
