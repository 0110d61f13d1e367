"""The reference supervisor's sessions, driven by the caller of a scenario. Owns the loop that follows the drive."""

from __future__ import annotations

import math
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio

from pytest_agentproc.record import add_session_to_trace
from pytest_agentproc.supervisor import open_session, report_session, summarize_view
from pytest_agentproc.vocabulary import (
    NANOSECONDS_PER_SECOND,
    SWITCH_BY_ACTION,
    CallbackError,
    Caller,
    CallerRole,
    RunReport,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from anyio.abc import TaskGroup

    from pytest_agentproc.supervisor import Hook, Question, Session, SessionDeciders, SessionEvent, Turn, Viewer
    from pytest_agentproc.vocabulary import CallerAction, RunRequest


class SessionGroup:
    """The sessions of an order, with one caller for all of them."""

    def __init__(self, order: RunRequest, deciders: SessionDeciders) -> None:
        self._order = order
        parts = order.sessions or (order,)
        self._caller = Caller(
            order.drive, self._record_action, {part.name: CallerRole(part.handler, part.hooks) for part in parts}
        )
        self._news = anyio.Event()
        self._held = {part.name: _DrivenSession(part, deciders, self._caller, self._wake) for part in parts}

    async def run(self) -> RunReport:
        """Open the sessions, drive them, and sum them up."""
        async with anyio.create_task_group() as group, AsyncExitStack() as stack:
            for held in self._held.values():
                await held.open(stack, group)
            await self._drive_sessions()
        answers = {name: held.make_report() for name, held in self._held.items()}
        return RunReport(sessions=answers) if self._order.sessions else answers[""]

    async def _drive_sessions(self) -> None:
        clock = self._order.clock
        while True:
            for action in self._caller.act(clock.instant()):
                if action.kind == "detach":
                    await anyio.lowlevel.checkpoint()  # the viewer reads what is there
                self._held[action.session].do_action(action)
            if self._caller.is_done:
                return
            due = self._caller.deadline
            left = math.inf if due is None else (due - clock.instant()) / NANOSECONDS_PER_SECOND / self._order.scale
            with anyio.move_on_after(left):
                await self._news.wait()
            self._news = anyio.Event()

    def _wake(self) -> None:
        self._news.set()

    def _record_action(self, action: CallerAction) -> None:
        self._order.trace(action.make_event(self._order.clock.instant()))


class _DrivenSession:
    """One session, as its order wants it."""

    def __init__(self, order: RunRequest, deciders: SessionDeciders, caller: Caller, ring: Callable[[], None]) -> None:
        self._order = order
        self._deciders = deciders
        self._caller = caller
        self._ring = ring
        self._hooks = {hook.name: hook for hook in order.hooks}
        self._called: list[tuple[str, int]] = []
        self._turns: list[Turn] = []
        self._answers: dict[int, anyio.Event] = {}
        self._viewers: dict[str, Viewer] = {}
        self._seen: dict[str, list[SessionEvent]] = {}
        self._session: Session
        self._group: TaskGroup
        self._deeds: dict[str, Callable[[Any], None]] = {
            "prompt": lambda text: self._turns.append(self._session.prompt(text)),
            "cancel": self._cancel_turn,
            "stop": lambda _: self._await_in_group(self._session.stop()),
            "close": lambda _: self._await_in_group(self._session.close()),
            **{action: partial(self._switch_setting, action) for action in SWITCH_BY_ACTION},
            "attach": self._attach_viewer,
            "detach": lambda name: self._viewers.pop(name).detach(),
            "answer": lambda number: self._answers[number].set(),
            "register": lambda name: self._session.on_hook(name, self._call_hook),
        }

    async def open(self, stack: AsyncExitStack, group: TaskGroup) -> None:
        """Open the session until the stack is left; a task of the group passes its events on."""
        order, self._group = self._order, group
        door = open_session(
            order.argv,
            dialect=order.contributed or order.dialect,
            mode=order.mode,
            policy=order.policy,
            permission=None if order.handler is None else self._ask_permission,
            hooks={hook.name: hook.event for hook in order.hooks},
            continues=order.continues,
            cwd=order.cwd,
            env=order.env,
            clock=order.clock,
            deciders=self._deciders,
            key="caller",
            trace=add_session_to_trace(order.trace, order.name),
        )
        self._session = await stack.enter_async_context(door)
        group.start_soon(self._report_events_to_caller, self._session.attach())

    def do_action(self, deed: CallerAction) -> None:
        """Do what the caller wants."""
        self._deeds[deed.kind](deed.value)

    def make_report(self) -> RunReport:
        """Make the report of the session, once it is over."""
        views = {name: summarize_view(events) for name, events in self._seen.items()}
        return report_session(self._session, turns=len(self._turns), views=views, called=self._called)

    # Reports of the session.

    async def _report_events_to_caller(self, viewer: Viewer) -> None:
        async for event in viewer:
            self._caller.note_event(event.kind, event.turn, event.text, self._order.name)
            self._ring()

    async def _ask_permission(self, question: Question) -> bool:
        number = self._caller.note_question(self._order.clock.instant(), self._order.name)
        self._answers[number] = anyio.Event()
        self._ring()
        await self._answers[number].wait()
        assert self._order.handler is not None
        return self._order.handler.allowed is True

    async def _call_hook(self, hook: Hook) -> bool:
        self._called.append((hook.callback, self._order.clock.instant()))
        use = self._hooks[hook.callback]
        if use.raises:
            raise CallbackError
        return use.allowed

    # Actions of the caller.

    def _cancel_turn(self, number: int | None) -> None:
        if number is None:
            self._session.cancel()
        else:
            self._turns[number - 1].cancel()

    def _switch_setting(self, action: str, name: str) -> None:
        getattr(self._session, action)(name)

    def _await_in_group(self, coroutine: Coroutine[Any, Any, None]) -> None:
        self._group.start_soon(_wait_for, coroutine)

    def _attach_viewer(self, name: str) -> None:
        viewer = self._viewers[name] = self._session.attach()
        self._seen[name] = []
        self._group.start_soon(self._collect_viewer_events, viewer, self._seen[name])

    async def _collect_viewer_events(self, viewer: Viewer, observed: list[SessionEvent]) -> None:
        observed.extend([event async for event in viewer])


async def _wait_for(coroutine: Coroutine[Any, Any, None]) -> None:
    """Wait for a coroutine: a task group starts functions only."""
    await coroutine
