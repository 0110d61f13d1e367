"""Carries a session's commands out, and runs the caller's own functions in tasks. Judges nothing.

A look takes, in this order: stdin, stdout, stderr, the exit, the descendants, the caller, the deadline. So the session
handles the agent's events before the caller's calls, and the caller's calls before its timers.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Protocol

import anyio

from pytest_agentproc.supervisor import _events as machine_events
from pytest_agentproc.supervisor._driver import Driver

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from anyio.abc import TaskGroup

    from pytest_agentproc.events import Trace
    from pytest_agentproc.supervisor._conversation import Conversation
    from pytest_agentproc.supervisor._driver import AgentProcess
    from pytest_agentproc.supervisor._events import CallerIntent, MachineEvent, SessionEvent


class _CallbackTask:
    """Something to run, on behalf of what the agent wants."""

    def __init__(self, cause: object, work: Callable[[], Awaitable[None]]) -> None:
        self.cause = cause
        self.is_recalled = False
        self._work = work
        self._scope: anyio.CancelScope | None = None

    async def run(self) -> None:
        """Run it; cancelled, it ends quietly."""
        with anyio.CancelScope() as self._scope:
            await self._work()

    def cancel(self) -> None:
        """Cancel it, where it stands."""
        self.is_recalled = True
        if self._scope is not None:
            self._scope.cancel()


class CallbackRunner:
    """Hold the errands of a session: those that wait to be begun, and those that run."""

    def __init__(self) -> None:
        self._waiting: deque[_CallbackTask] = deque()
        self._running: list[_CallbackTask] = []

    def schedule(self, cause: object, work: Callable[[], Awaitable[None]]) -> None:
        """Have something run, soon."""
        self._waiting.append(_CallbackTask(cause, work))

    def cancel(self, cause: object) -> None:
        """End what runs on behalf of a cause, or forget it if it was not begun."""
        self._waiting = deque(errand for errand in self._waiting if errand.cause is not cause)
        for errand in self._running:
            if errand.cause is cause:
                errand.cancel()

    def is_running(self, cause: object) -> bool:
        """Say whether what runs on behalf of a cause was not recalled."""
        return any(errand.cause is cause and not errand.is_recalled for errand in self._running)

    def start_waiting(self, group: TaskGroup) -> None:
        """Begin everything that waits."""
        while self._waiting:
            errand = self._waiting.popleft()
            self._running.append(errand)
            group.start_soon(self._run_callback, errand)

    async def _run_callback(self, errand: _CallbackTask) -> None:
        try:
            await errand.run()
        finally:
            self._running.remove(errand)


class SessionWakeup(Protocol):
    """One descriptor for a whole session: readable after `set`, or when the agent of the day has news."""

    @property
    def descriptor(self) -> int | None: ...
    def set(self) -> None: ...
    def clear(self) -> None: ...
    def watch(self, descriptor: int) -> None: ...
    def unwatch(self, descriptor: int) -> None: ...
    def close(self) -> None: ...


class MissingWakeup:
    """The wakeup of a session that got no descriptor: it can start no agent, and fails."""

    descriptor = None

    def __init__(self, error: OSError) -> None:
        self.errno, self.reason = error.errno or 0, f"agent: {error.strerror}"
        self.wake: Callable[[], None] = lambda: None
        """The event that wakes the session instead."""

    def set(self) -> None:
        """See `SessionWakeup`."""
        self.wake()

    def clear(self) -> None:
        """See `SessionWakeup`."""

    def watch(self, descriptor: int) -> None:
        """See `SessionWakeup`."""

    def unwatch(self, descriptor: int) -> None:
        """See `SessionWakeup`."""

    def close(self) -> None:
        """See `SessionWakeup`."""


class SessionDriver(Driver):
    """Drive one session.

    Args:
        machine: the machine that decides.
        spawn: starts an agent, its tree held by a containment; raises OSError if it cannot.
        wakeup: the session's descriptor.
        now: the clock, in nanoseconds.
        listen: called with everything that viewers see, in order.
        trace: called with (instant, code, data) for the record's supervisor side; None: no trace.
    """

    machine: Conversation

    def __init__(
        self,
        machine: Conversation,
        spawn: Callable[[str], AgentProcess],
        wakeup: SessionWakeup,
        now: Callable[[], int],
        listen: Callable[[SessionEvent], None],
        trace: Trace | None = None,
    ) -> None:
        super().__init__(machine, spawn, now, trace)
        self._wakeup = wakeup
        self._listen = listen
        self._intents: deque[CallerIntent] = deque()
        self._has_begun = False
        self._execute[machine_events.PublishSessionEvent] = self._do_publish

    @property
    def descriptor(self) -> int | None:
        """See `WatchedRun`: it is the same for every agent of the session."""
        return self._wakeup.descriptor

    def queue_intent(self, intent: CallerIntent) -> None:
        """Take an intent of the caller: the next look hears it."""
        self._intents.append(intent)
        self._wakeup.set()

    def look(self) -> bool:
        """Take one look; return whether the session is over."""
        now = self._now()
        self.news = False
        has_news = bool(self._intents)
        if not self._has_begun:
            self._has_begun = True
            self._feed(machine_events.RunStarted(), now)
        elif self.agent is not None:
            has_news = self._feed_ready_events(self.agent, now) or has_news
        self._wakeup.clear()
        while self._intents and not self._done:
            self._carry_out(self.machine.handle_intent(self._intents.popleft(), now))
        return self._trace_changes(self._fire_deadline(now, has_news=has_news), now)

    def describe(self) -> str:
        """See `WatchedRun`."""
        return f"holds a session that is {self.machine.state.value}, and no timer of it runs"

    def abandon(self) -> None:
        """Kill and reap whoever lives, at once, and give every descriptor back."""
        self._containment = self.containment
        agent, self.agent = self.agent, None
        self._done = True
        if agent is not None:
            self.machine.note_abandoned(self.machine.abandonment.end(agent))
        self._wakeup.close()

    def _do_spawn(self, command: machine_events.SpawnAgent) -> MachineEvent:
        if isinstance(self._wakeup, MissingWakeup):
            return machine_events.SpawnFailed(self._wakeup.errno, self._wakeup.reason)
        answer = super()._do_spawn(command)
        if self.agent is not None:
            self._wakeup.watch(self.agent.descriptor)
        return answer

    def _do_reap(self, command: machine_events.ReapAgent) -> None:
        super()._do_reap(command)
        self._containment = self.containment
        agent, self.agent = self._require_agent(), None
        self._wakeup.unwatch(agent.descriptor)
        self.machine.abandonment.release(agent)

    def _do_publish(self, command: machine_events.PublishSessionEvent) -> None:
        self.news = True
        event = command.event
        self._trace_event(event.make_report())
        self._listen(event)
