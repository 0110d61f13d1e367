"""A Python function as the supervisor under test. Owns how it is called and what it claims; keeps no time itself."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Literal

import anyio.to_thread

from pytest_agentproc.errors import AdapterError, UsageError
from pytest_agentproc.events import ScaleIgnored
from pytest_agentproc.foreign import find_code, read_attribute, unwrap_function
from pytest_agentproc.subjects._checked_subject import ask_for_limits, call_supervisor, find_adapter_module
from pytest_agentproc.subjects._limit_statements import (
    has_time_limit,
    make_policy,
    require_actions,
    require_cannot_words,
    require_dialects,
    require_first_signal,
    require_limits,
    require_limits_function,
    require_outcomes,
)
from pytest_agentproc.vocabulary import (
    CAPABILITIES,
    REPORTED_EVENT_TEXTS,
    SWITCH_BY_ACTION,
    Dialect,
    LimitsRequest,
    Policy,
    RunRequest,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_agentproc.vocabulary import RunReport


StatedLimits = Mapping[str, Any] | Callable[[LimitsRequest], Mapping[str, Any] | Policy]


class Function:
    """A function that is given an order, supervises its agent, and returns its observations.

    It raises `Declined("reason")` for an order that it cannot take: the scenario is then not applicable, as long as no
    agent was started.

    If it does not report `elapsed`, the kit looks at its first signal to the tree, or at its return. That is right at
    the expected instant, or, for a signal to an agent that lingers, a stated `linger_grace` after it. A return before
    that instant fails. A later act leaves `elapsed` undecided: the function may have known earlier, and waited.

    It returns a `RunReport`; or a mapping of an answer's fields, with times in seconds as its own clock measured them
    (`elapsed` is multiplied by the order's scale); or the name of an outcome; or None: then only what the record shows
    is judged. A wrong return value is an adapter error. If it raises, it has crashed; only an exception that comes
    out of the function's own module, before an agent was started, is an adapter error.

    An `async def` runs on the event loop. Any other function runs in a thread. Its virtual time is in a process of its
    own, which imports the function by its name. In real time limits are to be divided by `order.scale`: a function that
    keeps a limit and never asked for the scale gets that message instead of a failed verdict.

    Args:
        function: takes a `RunRequest`.
        name: what the verdict calls it; None: the function's own name.
        limits: the limits that it keeps: names of `Policy` with seconds, bytes or names, whatever a scenario gives; or
            a function that takes a `LimitsRequest` (limits, dialect, mode, is_session) and returns such a mapping, or a
            whole `Policy`, or raises `Declined`. None as a value: it has no such limit, and waits for ever. A limit of
            `vocabulary.LIMITS_OFF_IF_UNSTATED` that is not named it does not have. Any other is unstated: checks that
            depend on it are not applicable, and say what to state. 0 as `kill_grace`, `linger_kill_grace` or
            `leftover_kill_grace`: it may kill without TERM there. `host_tools` are those that the host executes:
            scenarios of others are not applicable.
        sessions: whether it takes orders with a drive; or what the drive may hold, of `vocabulary.CAPABILITIES`, such
            as `["prompt", "cancel"]`. Scenarios with more than that are not applicable. True: all but `set_mode`,
            `set_model` and the waits for a tool or a message.
        runs: whether it takes orders without a drive: agents that get one prompt and end. Scenarios of such agents are
            not applicable to a function that holds sessions only.
        artifacts: whether it writes the files of C3 into the order's directory.
        cancellable: whether it may be cancelled and then leaves no process (T4): True by asyncio's `Task.cancel` and by
            an anyio scope, which cancels at every await; "task" by the former alone. None: it says nothing of that, so
            that scenarios of it are informational.
        cannot: what it cannot do, of `vocabulary.TEXTS_OF_OTHER_NEEDS` and `CAPABILITIES`: scenarios that need it are
            not applicable. "stdin": a one-shot agent is never given its prompt on stdin. "pause": a session is given
            all prompts at once. "deny": the caller allows everything at once. "argv", "env": it makes its own command
            line, or environment, so that what the agent is given is not compared with the order.
        outcomes: the outcomes that it can tell apart, `completed` and `failed` among them; empty: all. Where a scenario
            expects another one, the most similar one meets it, or `failed`.
        first_signal: with which it begins to end an agent: TERM, INT or HUP. Scenarios then expect this one where they
            say TERM, other polite signals may follow, and `kill_grace` is the time from it to KILL.
        dialects: the dialects whose agents it can run, by name (`gemini stream` is one mode of one), or as `Dialect`
            where another package adds them; None: all. Scenarios of others are not applicable.

    Raises:
        UsageError: it is no function, or there is no such limit, dialect, ability, outcome, first signal, or way to be
            cancelled.
    """

    needs_keeper = False

    def __init__(
        self,
        function: Callable[[RunRequest], Any],
        *,
        name: str | None = None,
        limits: StatedLimits | None = None,
        sessions: bool | Iterable[str] = False,
        runs: bool = True,
        artifacts: bool = False,
        cancellable: bool | Literal["task"] | None = None,
        cannot: Iterable[str] = (),
        outcomes: Iterable[str] = (),
        first_signal: str = "TERM",
        dialects: Iterable[str | Dialect] | str | None = None,
    ) -> None:
        if not callable(function):
            raise UsageError(
                f"{function!r} is no function", "write Function(supervise), with `async def supervise(order):`"
            )
        if cancellable not in (True, False, None, "task"):
            raise UsageError(f"cancellable is {cancellable!r}", 'write True, False, or "task"')
        self.function = function
        self._module = find_adapter_module(function)
        self.name = name or _get_function_name(function)
        self.cannot = require_cannot_words(cannot)
        self.outcomes = require_outcomes(outcomes)
        self.first_signal = require_first_signal(first_signal)
        plain = tuple(action for action in CAPABILITIES if action not in (*SWITCH_BY_ACTION, *REPORTED_EVENT_TEXTS))
        actions = plain if isinstance(sessions, bool) else require_actions(sessions)
        self.actions = tuple(action for action in actions if action not in self.cannot)
        self.holds_sessions = bool(sessions)
        self.takes_runs = runs
        self.keeps_artifacts = artifacts
        self.cancellable = cancellable
        self.dialects = require_dialects(dialects)
        self._limits = (
            require_limits_function(limits) if callable(limits) else require_limits({} if limits is None else limits)
        )
        self._keeps_time = callable(limits) or has_time_limit(limits or {})
        self._is_async_function = _is_async_function(function)
        self.real_time_only = "" if self._is_async_function else _explain_need_of_process(function)

    def policy(self, request: LimitsRequest) -> Policy:
        """State the limits that it keeps.

        Raises:
            AdapterError: the function that states them raised, or gave none.
            Declined: that function raised it.
        """
        limits = self._limits
        return ask_for_limits(lambda: _make_policy(limits(request) if callable(limits) else limits, request.dialect))

    async def run(self, order: RunRequest) -> RunReport:
        """Call the function.

        Raises:
            AdapterError: it returned no answer.
            SupervisorCrash: it raised.
            Declined: it raised that.
        """
        if order.scale == 1 or order.sessions or not self._keeps_time:
            return await call_supervisor(self._call_function, order, self._module)
        watched = _ScaleTrackingRequest(**{field.name: getattr(order, field.name) for field in fields(RunRequest)})
        try:
            return await call_supervisor(lambda _: self._call_function(watched), order, self._module)
        finally:
            if not watched.is_scaled:
                order.trace(ScaleIgnored(order.clock.instant(), "supervisor", "order.scale"))

    async def _call_function(self, order: RunRequest) -> Any:
        if self._is_async_function:
            return await self.function(order)
        try:
            return await anyio.to_thread.run_sync(self.function, order, abandon_on_cancel=True)
        except (ValueError, RuntimeError) as error:  # as `signal`, asyncio and trio raise it
            if "main thread" not in str(error):
                raise
            raise AdapterError(f"the kit calls it in a thread, and {error}\n{_HOW_TO_WRAP_IN_PROGRAM}") from error


_HOW_TO_WRAP_IN_PROGRAM = "write a program that calls it, and a wrapper.toml for that program"


def _make_policy(limits: Any, dialect: str) -> Policy:
    if isinstance(limits, Policy):
        return limits
    if not isinstance(limits, Mapping):
        raise AdapterError(f"its limits are {limits!r}, and no mapping\ngive {{'inactivity_timeout': 60}}, for example")
    return make_policy(limits, dialect)


class _ScaleTrackingRequest(RunRequest):
    """An order that records whether its user has asked for the scale of time."""

    __slots__ = ("is_scaled",)
    is_scaled: bool

    def __getattribute__(self, name: str) -> Any:
        if name == "is_scaled":
            try:
                return bool(object.__getattribute__(self, name))
            except AttributeError:
                return False
        if name in ("scale", "clock"):
            object.__setattr__(self, "is_scaled", True)
        return object.__getattribute__(self, name)


def copy_without_scale_tracking(order: RunRequest) -> RunRequest:
    """Copy an order for the kit's own use, so that a look at its scale does not count as one of the subject."""
    return RunRequest(**{field.name: object.__getattribute__(order, field.name) for field in fields(RunRequest)})


def _find_inner_function(function: Any) -> Any:
    """Give the function inside partials, or the method of a callable object."""
    while isinstance(function, functools.partial):
        function = function.func
    return function if inspect.isroutine(function) or inspect.isclass(function) else type(function).__call__


def _get_function_name(function: Any) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    return str(read_attribute(function, "__name__", type(function).__name__))


def _is_async_function(function: Any) -> bool:
    return inspect.iscoroutinefunction(unwrap_function(_find_inner_function(function)))


def _explain_need_of_process(function: Any) -> str:
    """Say, with its place, why the virtual time of a function that is not async needs a process of its own."""
    code = find_code(_find_inner_function(function))
    place = "" if code is None else f"{os.path.relpath(code.co_filename)}:{code.co_firstlineno}: "
    return f"{place}{_get_function_name(function)} is no `async def`, so it runs in a thread"
