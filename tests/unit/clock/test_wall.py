"""Which modules and classes get virtual clocks, and what a failure on the way leaves behind."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
import time
import types
from typing import TYPE_CHECKING, Any, cast

import pytest

from pytest_agentproc.clock import VirtualClock

if TYPE_CHECKING:
    from collections.abc import Callable


async def _read_time_after_an_hour(holder: Any) -> Any:
    """Ask a clock for the time after an hour."""
    await asyncio.sleep(3600)
    return holder.clock()


def test_a_lazy_module_is_not_loaded_by_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module is made lazy because its import is slow, or does something."""
    spec = importlib.util.find_spec("this")
    assert spec is not None
    assert spec.loader is not None
    spec.loader = importlib.util.LazyLoader(spec.loader)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "this", module)
    spec.loader.exec_module(module)
    with VirtualClock() as clock:
        clock.run(asyncio.sleep, 1)
    assert "s" not in object.__getattribute__(module, "__dict__")


def test_a_module_without_a_name_gets_the_clocks_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program can put anything among the modules; virtual time must begin all the same."""
    module = types.ModuleType("searched")
    vars(module).update(clock=time.monotonic)
    del vars(module)["__name__"]
    monkeypatch.setitem(sys.modules, "searched", module)
    with VirtualClock() as clock:
        assert clock.run(_read_time_after_an_hour, module) == 3600
    assert vars(module)["clock"] is time.monotonic


class _LazyModule:
    """Import something for any name, as the moved modules of six do."""

    def __getattr__(self, name: str) -> Any:
        raise ModuleNotFoundError(f"No module for {name}")


def test_a_lazy_attribute_of_a_class_is_not_asked_for_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it would import may be missing on this machine; virtual time must begin all the same."""
    module = types.ModuleType("searched")
    holder = type("Moves", (), {"__module__": "searched", "gdbm": _LazyModule(), "clock": time.monotonic})
    vars(module).update(Moves=holder)
    monkeypatch.setitem(sys.modules, "searched", module)
    with VirtualClock() as clock:
        assert clock.run(_read_time_after_an_hour, holder) == 3600


class _LazyObject:
    """Make itself at the first look, as the objects of Django's apps do that need settings."""

    @property
    def __class__(self) -> Any:
        raise RuntimeError("it was looked at")

    @__class__.setter
    def __class__(self, kind: type) -> None: ...


class _LazyType(type):
    def __getattribute__(cls, name: str) -> Any:
        raise RuntimeError(f"{name} was asked for")


def test_a_lazy_object_is_not_made_by_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may need what the test has not made; virtual time must begin all the same."""
    module = types.ModuleType("searched")
    holder = type("Holder", (), {"__module__": "searched", "lazy": _LazyObject(), "clock": time.monotonic})
    vars(module).update(lazy=_LazyObject(), LazyClass=_LazyType("LazyClass", (), {}), Holder=holder)
    monkeypatch.setitem(sys.modules, "searched", module)
    monkeypatch.setitem(sys.modules, "lazy", cast("types.ModuleType", _LazyObject()))
    with VirtualClock() as clock:
        assert clock.run(_read_time_after_an_hour, holder) == 3600


class _SealedType(type):
    def __setattr__(cls, name: str, value: object) -> None:
        raise TypeError(f"{name} is final")


def test_a_class_that_lets_nobody_set_attributes_gets_the_clocks_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its metaclass refuses other code; a clock that stays real gives a false verdict."""
    module = types.ModuleType("searched")
    sealed: Any = _SealedType("Sealed", (), {"__module__": "searched", "clock": time.monotonic})
    vars(module).update(Sealed=sealed)
    monkeypatch.setitem(sys.modules, "searched", module)
    with VirtualClock() as clock:
        assert clock.run(_read_time_after_an_hour, sealed) == 3600
    assert sealed.clock is time.monotonic


def test_clocks_that_could_not_be_replaced_are_real_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else every later test of the session would have the time of a run that never began."""
    from pytest_agentproc.clock import _wall

    def fail(found: Any, others: dict[int, Any], plain: Callable[..., None] = _wall._replace_clocks) -> None:  # noqa: SLF001
        plain(found, others)
        if others is _wall._VIRTUAL_CLOCK_BY_REAL_ID:  # noqa: SLF001
            raise RuntimeError("a module that cannot be searched")

    real = time.monotonic
    with monkeypatch.context() as patched, VirtualClock() as clock:
        patched.setattr(_wall, "_replace_clocks", fail)
        with pytest.raises(RuntimeError, match="a module that cannot be searched"):
            clock.run(asyncio.sleep, 1)
    assert time.monotonic is real
    with VirtualClock() as clock:
        assert clock.run(_read_time_after_an_hour, types.SimpleNamespace(clock=_read_monotonic)) == 3600


def test_a_module_that_is_loaded_in_virtual_time_has_real_clocks_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is searched at the end of a run that loads no module, so a run that loads one must be noticed."""
    late, known = types.ModuleType("late"), types.ModuleType("known")
    monkeypatch.setitem(sys.modules, "known", known)

    async def take_clock(*modules: types.ModuleType) -> None:
        for module in modules:
            monkeypatch.setitem(sys.modules, module.__name__, module)
            exec("from time import monotonic", vars(module))  # noqa: S102  # an import, as a module has it
        await asyncio.sleep(3600)
        assert vars(modules[0])["monotonic"]() == 3600

    real = time.monotonic
    with VirtualClock() as clock:
        clock.run(take_clock, known)
    assert real() <= vars(known)["monotonic"]() <= real()
    with VirtualClock() as clock:
        clock.run(take_clock, late)
    assert vars(late)["monotonic"] is vars(known)["monotonic"] is real


def test_a_run_that_loads_no_module_searches_all_modules_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search is the largest cost of virtual clocks: two for each run took 6 % of the time of all scenarios."""
    from pytest_agentproc.clock import _wall

    searches: list[int] = []

    def search(plain: Callable[[], Any] = _wall._find_clock_holders) -> Any:  # noqa: SLF001
        searches.append(1)
        return plain()

    with VirtualClock() as clock:
        clock.run(asyncio.sleep, 1)  # the first run loads the event loop
    monkeypatch.setattr(_wall, "_find_clock_holders", search)
    with VirtualClock() as clock:
        clock.run(asyncio.sleep, 1)
    assert searches == [1]


def _read_monotonic() -> float:
    return time.monotonic()
