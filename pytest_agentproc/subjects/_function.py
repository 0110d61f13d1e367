"""A Python function as the supervisor under test. Owns how it is called and what it claims; keeps no time itself."""

from __future__ import annotations

import difflib
import functools
import inspect
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from pytest_agentproc.errors import AdapterError, UsageError
from pytest_agentproc.subjects._guarded import ask, stated
from pytest_agentproc.supervisor.dialects import DIALECTS, SESSIONS
from pytest_agentproc.vocabulary import OPTIONAL_NAMES, POLICY_NAMES, Dialect, Policy

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_agentproc.vocabulary import Answer, Order

__all__ = ["Function"]

Limits = Mapping[str, Any] | Callable[[Mapping[str, Any], str], Mapping[str, Any]]

_KNOWN = tuple(dict.fromkeys((*DIALECTS, *SESSIONS)))


class Function:
    """A function that is given an order, supervises its agent, and returns what it knows.

    It returns an `Answer`; or a mapping of an answer's fields, with times in seconds as its own clock measured them
    (`elapsed` is multiplied by the order's scale); or the name of an outcome; or None: then only what the record shows
    is judged. What it raises, and what it returns wrongly, is an adapter error.

    An `async def` runs on the event loop, in virtual and in real time. Any other function runs in a thread, and in real
    time only: virtual time stands still while a thread runs. In real time limits are to be divided by `order.scale`.

    Args:
        function: takes an `Order`.
        name: what the verdict calls it; None: the function's own name.
        limits: the limits that it keeps: names of `Policy` with seconds, bytes or names, whatever a scenario tells; or
            a function of (what the scenario tells, the dialect) that gives such a mapping. None as a value: it has no
            such limit. Of what is not named, it does not have a limit that can be switched off, and keeps the default
            of any other.
        sessions: whether it takes orders with a drive.
        artifacts: whether it writes the files of C3 into the order's directory.
        dialects: the dialects whose agents it can run, by name, or as `Dialect` where another package adds them; None:
            all. Scenarios of others are not applicable.

    Raises:
        UsageError: it is no function, or there is no such limit or dialect.
    """

    needs_keeper = False

    def __init__(
        self,
        function: Callable[[Order], Any],
        *,
        name: str | None = None,
        limits: Limits | None = None,
        sessions: bool = False,
        artifacts: bool = False,
        dialects: Iterable[str | Dialect] | str | None = None,
    ) -> None:
        if not callable(function):
            raise UsageError(
                f"{function!r} is no function", "write Function(supervise), with `async def supervise(order):`"
            )
        if limits is not None and not callable(limits) and not isinstance(limits, Mapping):
            raise UsageError(f"limits is {limits!r}", "write limits={'inactivity_timeout': 60}, for example")
        self.function = function
        self.name = name or _name(function)
        self.holds_sessions = sessions
        self.keeps_artifacts = artifacts
        given = [dialects] if isinstance(dialects, str) else list(dialects or ())
        self.dialects = None if dialects is None else tuple(_named(dialect) for dialect in given)
        self._limits = limits or {}
        self._is_async = _is_async(function)
        self.real_time_only = "" if self._is_async else _why(function)
        if isinstance(self._limits, Mapping):
            _policy(self._limits, "raw")

    def policy(self, overrides: Mapping[str, Any], dialect: str) -> Policy:
        """State the limits that it keeps.

        Raises:
            AdapterError: the function that states them raised, or gave none.
        """
        limits = self._limits
        return stated(lambda: _policy(limits(overrides, dialect) if callable(limits) else limits, dialect))

    async def run(self, order: Order) -> Answer:
        """Call the function.

        Raises:
            AdapterError: it raised, or returned no answer.
        """
        return await ask(self._call, order)

    async def _call(self, order: Order) -> Any:
        if self._is_async:
            return await self.function(order)
        return await anyio.to_thread.run_sync(self.function, order, abandon_on_cancel=True)


def _policy(limits: Any, dialect: str) -> Policy:
    if not isinstance(limits, Mapping):
        raise AdapterError(f"its limits are {limits!r}, and no mapping\ngive {{'inactivity_timeout': 60}}, for example")
    for name in limits:
        _require("limit", name, POLICY_NAMES)
    return Policy.for_dialect(dialect, **(dict.fromkeys(OPTIONAL_NAMES) | dict(limits)))


def _named(dialect: str | Dialect) -> str:
    if isinstance(dialect, Dialect):
        return dialect.name
    _require("dialect", dialect, _KNOWN)
    return dialect


def _require(what: str, name: Any, known: tuple[str, ...]) -> None:
    if name not in known:
        near = difflib.get_close_matches(str(name), known, 1)
        raise UsageError(
            f"there is no {what} {name!r}" + (f", did you mean {near[0]}?" if near else ""),
            f"{what}s are {', '.join(known)}",
        )


def _inner(function: Any) -> Any:
    """Give the function behind partials, and that of an object that is called."""
    while isinstance(function, functools.partial):
        function = function.func
    return function if inspect.isroutine(function) or inspect.isclass(function) else type(function).__call__


def _name(function: Any) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__name__", type(function).__name__))


def _is_async(function: Any) -> bool:
    return inspect.iscoroutinefunction(inspect.unwrap(_inner(function)))


def _why(function: Any) -> str:
    """Say, with its place, why a function that is not async is for real time only."""
    code = getattr(inspect.unwrap(_inner(function)), "__code__", None)
    place = "" if code is None else f"{os.path.relpath(code.co_filename)}:{code.co_firstlineno}: "
    return (
        f"{place}{_name(function)} is no `async def`, so it runs in a thread, and virtual time stands still while a "
        "thread runs: make it async, or choose --agentproc-clock=real"
    )
