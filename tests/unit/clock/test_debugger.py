"""Which trace functions are debuggers. A tracer may be of any type, and may have no attribute at all."""

from __future__ import annotations

import ctypes
import sys
from bdb import Bdb
from types import FunctionType
from typing import TYPE_CHECKING, Any

import pytest

from pytest_agentproc.clock import is_debugged
from pytest_agentproc.clock._debugger import _is_traced_by_debugger

if TYPE_CHECKING:
    from collections.abc import Callable


class Hidden:
    """A tracer that raises at any look."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("==")

    def __bool__(self) -> bool:
        raise RuntimeError("bool")

    __hash__ = None  # type: ignore[assignment]

    def __call__(self, *_: object) -> None:
        """Trace nothing."""


class Misnamed:
    """A tracer whose names are no text."""

    __module__ = 7  # type: ignore[assignment]
    __self__ = None

    def __call__(self, *_: object) -> None:
        """Trace nothing."""


class _Nameless(type):
    @property
    def __module__(cls) -> str:  # type: ignore[override]
        raise AttributeError("__module__")


class OfNamelessClass(metaclass=_Nameless):
    """A tracer whose class does not say where it is defined."""

    def __call__(self, *_: object) -> None:
        """Trace nothing."""


def trace_nothing(*_: object) -> None:
    """Trace nothing."""


TRACERS: dict[str, Callable[..., Any]] = {
    "function": trace_nothing,
    "function without a module": FunctionType(trace_nothing.__code__, {}),
    "builtin": print,
    "object that raises": Hidden(),
    "object with false names": Misnamed(),
    "object of a class without a module": OfNamelessClass(),
    "C function": ctypes.PYFUNCTYPE(ctypes.py_object, *[ctypes.py_object] * 3)(lambda *_: None),
}


@pytest.mark.parametrize("name", TRACERS)
def test_a_tracer_of_any_type_is_no_debugger(name: str) -> None:
    """Coverage, profilers and monitors trace, and stop nothing."""
    tracer, before = TRACERS[name], sys.gettrace()
    sys.settrace(tracer)
    try:
        found = is_debugged()
    finally:
        sys.settrace(before)
    assert not found


def test_a_tracer_in_c_without_an_attribute_is_no_debugger() -> None:
    """It is set by the C interface, and its object is no function."""
    set_trace = ctypes.pythonapi.PyEval_SetTrace
    set_trace.argtypes = [ctypes.c_void_p, ctypes.py_object]
    tracer = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.py_object, ctypes.c_int, ctypes.c_void_p)
    callback = tracer(lambda *_: 0)
    before, state = sys.gettrace(), object()
    set_trace(ctypes.cast(callback, ctypes.c_void_p), state)
    try:
        seen, found = sys.gettrace(), is_debugged()
    finally:
        sys.settrace(before)
    assert seen is state
    assert not found


def test_a_debugger_of_the_standard_library_is_known() -> None:
    """Its trace function is a method, also of a class that a user derives."""
    debugger = type("Mine", (Bdb,), {"__module__": "mine"})()
    debugger.reset()
    debugger.set_continue()
    before = sys.gettrace()
    sys.settrace(debugger.trace_dispatch)
    try:
        found = _is_traced_by_debugger()
    finally:
        sys.settrace(before)
    assert found
