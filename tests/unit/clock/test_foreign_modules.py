"""The search for clocks meets modules and values of any kind: virtual time begins all the same."""

from __future__ import annotations

import asyncio
import gc
import sys
import time
import types
from typing import Any

import pytest

from pytest_agentproc.clock import VirtualClock


class _Proxy:
    """Raise at any look, as the proxy of a web framework does outside a request."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(f"no request: {name}")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no request: ==")

    __hash__ = None  # type: ignore[assignment]


class _Hiding(type):
    def __getattribute__(cls, name: str) -> Any:
        raise RuntimeError(f"no look: {name}")


class _Kind(metaclass=_Hiding):
    pass


class _CallsItselfFunction:
    __class__ = types.FunctionType  # type: ignore[assignment]


class _CallsItselfModule:
    __class__ = types.ModuleType  # type: ignore[assignment]
    __slots__ = ()


async def _read_time_after_an_hour(holder: Any) -> Any:
    await asyncio.sleep(3600)
    return holder.clock()


def _make_class_without_module() -> type:
    space: dict[str, Any] = {}
    exec("made = type('Bare', (), {})", {"__builtins__": {"type": type}}, space)  # noqa: S102  # there is no name there
    made: type = space["made"]
    return made


VALUES = {
    "proxy": _Proxy(),
    "class that hides all": _Kind,
    "object that calls itself a function": _CallsItselfFunction(),
    "class without a module": _make_class_without_module(),
}


@pytest.mark.parametrize("name", VALUES)
def test_a_module_holds_any_value(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Each beside a clock, which is found."""
    module = types.ModuleType("searched")
    vars(module).update(value=VALUES[name], clock=time.monotonic)
    monkeypatch.setitem(sys.modules, "searched", module)
    with VirtualClock() as clock:
        assert clock.run(_read_time_after_an_hour, module) == 3600
    assert vars(module)["clock"] is time.monotonic


FALSE_NAMES = {"list": ["a", "list"], "number": 7, "None": None, "proxy": _Proxy()}


@pytest.mark.parametrize("kind", FALSE_NAMES)
def test_a_module_has_any_name(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Its own code asks for the time, too."""
    module = types.ModuleType("searched")
    exec("import time\ndef clock(): return time.monotonic()", vars(module))  # noqa: S102  # a module of any name
    vars(module)["__name__"] = FALSE_NAMES[kind]
    monkeypatch.setitem(sys.modules, "searched", module)
    with VirtualClock() as clock:
        assert clock.run(_read_time_after_an_hour, module) == 3600


ENTRIES = {"None": None, "number": 7, "object": object(), "liar": _CallsItselfModule(), "proxy": _Proxy()}


@pytest.mark.parametrize("kind", ENTRIES)
def test_anything_may_be_among_the_modules(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Also in the place of a module that was searched before, and is gone."""
    monkeypatch.setitem(sys.modules, "searched", types.ModuleType("searched"))
    with VirtualClock() as clock:
        clock.run(asyncio.sleep, 1)
    monkeypatch.setitem(sys.modules, "searched", ENTRIES[kind])
    gc.collect()
    with VirtualClock() as clock:
        clock.run(asyncio.sleep, 1)
        assert clock.now == 1
