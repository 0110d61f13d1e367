"""Whether a debugger watches this process: then no guard of real time counts. Decides nothing else.

A guard looks only when its time is over, and the debugger may have finished by then. So a debugger that was seen once
counts until the process ends.
"""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any
from weakref import ref

from pytest_agentproc.foreign import find_module_name, list_classes, read_attribute
from pytest_agentproc.originals import monotonic

if TYPE_CHECKING:
    from collections.abc import Callable


_DEBUGGER_MODULE_PREFIXES = ("bdb", "pdb", "pydevd", "_pydevd")
"""Beginnings of the names of modules whose trace functions are debuggers, and not measures of coverage."""

_debugger_was_seen = threading.Event()
_debugger_listeners: list[tuple[ref[Any], str]] = []
"""Objects and the names of their methods. No `WeakMethod`: it runs Python code as its object dies, and a Ctrl-C that
comes just then is printed as ignored, and is lost."""


def record_debugger() -> None:
    """Take note that a debugger has begun."""
    _debugger_was_seen.set()
    while _debugger_listeners:
        find_owner, name = _debugger_listeners.pop()
        if (owner := find_owner()) is not None:
            getattr(owner, name)()


def register_debugger_listener(owner: object, method: Callable[[], Any]) -> None:
    """Have a method called as soon as a debugger is noticed, if its object still lives then.

    Args:
        owner: the object.
        method: its method.
    """
    _debugger_listeners[:] = [listener for listener in _debugger_listeners if listener[0]() is not None]
    _debugger_listeners.append((ref(owner), method.__name__))


def is_debugged() -> bool:
    """Say whether a debugger runs in this process, or did."""
    if not _debugger_was_seen.is_set() and (_is_traced_by_debugger() or _is_monitored_by_debugger()):
        record_debugger()
    return _debugger_was_seen.is_set()


def is_guard_time_over(since: float, limit: float) -> bool:
    """Say whether a guard's real seconds have passed, and no debugger was seen.

    Args:
        since: the moment of `time.monotonic()` at which the guard began.
        limit: its seconds.
    """
    # The order matters: the search for a debugger costs more than the comparison, and guards ask at every step.
    return monotonic() - since > limit and not is_debugged()


def _is_traced_by_debugger() -> bool:
    # Coverage tools set a trace function too. They do not stop the program, so only known debuggers count.
    trace = sys.gettrace()
    owner = read_attribute(trace, "__self__", trace)
    names = map(find_module_name, (trace, *list_classes(owner)))
    return trace is not None and any(name.startswith(_DEBUGGER_MODULE_PREFIXES) for name in names)


def _is_monitored_by_debugger() -> bool:
    monitoring = getattr(sys, "monitoring", None)  # since 3.12
    return monitoring is not None and monitoring.get_tool(monitoring.DEBUGGER_ID) is not None
