"""The marker `virtual_time`: which tests are in virtual time, and how each comes into it.

The event loop of an async test is the virtual clock's, whatever plugin makes it. Without a plugin the test runs here.
A sync test follows the preload clock, as all processes that it starts do: see `_preload_run`.
"""

from __future__ import annotations

import functools
from contextlib import ExitStack, contextmanager
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any

from pytest_agentproc.errors import UsageError
from pytest_agentproc.foreign import find_module_name, read_attribute
from pytest_agentproc.plugin._preload_run import run_in_virtual_time

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

    from pytest_agentproc.clock import VirtualClock


MARKER_NAME, _FIXTURE_NAME = "virtual_time", "virtual_clock"
_MARKER_OPTION_NAMES = {"allow", "backend", "start"}


def get_allowed_programs(node: pytest.Item) -> tuple[str, ...]:
    """Give the names in `@pytest.mark.virtual_time(allow=["cat"])`, of every such marker of the test.

    Raises:
        UsageError: `allow` is no list of names.
    """
    names: list[str] = []
    for marker in node.iter_markers(MARKER_NAME):
        given = marker.kwargs.get("allow", ())
        if not isinstance(given, list | tuple) or not all(isinstance(name, str) for name in given):
            raise UsageError(f"virtual_time(allow={given!r}) is no list of names", "write allow=['cat'], for example")
        names += given
    return tuple(names)


def move_fixture_first(item: pytest.Item, names: list[str], fixture: str) -> list[str]:
    """Order the fixtures of a test: those that outlive it, then the given one, then all others."""
    known = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
    others = [name for name in names if name != fixture]
    wide = [name for name in others if name in known and known[name][-1].scope != "function"]
    return [*wide, fixture, *(name for name in others if name not in wide)]


@contextmanager
def open_virtual_clock(request: pytest.FixtureRequest) -> Iterator[VirtualClock]:
    """Give the virtual clock of a test, which every clock of Python follows if the test is in virtual time.

    Raises:
        UsageError: the marker is wrong, or its test cannot be in virtual time.
    """
    from pytest_agentproc.plugin._contributions import get_runner

    item: Any = request.node
    marker = item.get_closest_marker(MARKER_NAME)
    options = _read_marker_options(marker)
    allowed = get_allowed_programs(item)
    with get_runner(request.config).virtual_clock(allow=allowed, **options) as clock, ExitStack() as stack:
        if marker is not None and _is_async_test(item):
            _require_function_loop(item)
            stack.enter_context(clock.make_loops_virtual())
            stack.callback(setattr, item, "obj", item.obj)
            item.obj = clock.wrap_with_fault_check(item.obj)
            if hasattr(item.instance, "asyncSetUp"):  # unittest looks the method up itself, in this test's object
                setattr(item.instance, item.name, item.obj)
        elif _has_clock_fixture(item):
            stack.enter_context(clock.patch_time())
        elif marker is not None:
            _refuse_backend_for_sync_test(item, marker)
            stack.enter_context(run_in_virtual_time(item, clock.start))
        yield clock


def explain_unused_clock(item: Any) -> list[str]:
    """Say that a test that asks for the virtual clock never ran it; nothing for any other test."""
    clock = getattr(item, "funcargs", {}).get(_FIXTURE_NAME)
    if clock is None or clock.has_run or not _has_clock_fixture(item):
        return []
    here = "the test asks for virtual_clock, and nothing called virtual_clock.run(...): its fakes were in real time"
    if _is_async_test(item):
        return [f"{here}; write @pytest.mark.virtual_time above it"]
    return [f"{here}; for virtual time write @pytest.mark.virtual_time above it, and take virtual_clock away"]


def refuse_nested_clock(item: pytest.Item, fixture: str) -> None:
    """Refuse a fixture that begins virtual time by itself where virtual time runs already.

    Raises:
        UsageError: with the code to write.
    """
    from pytest_agentproc.clock import current_clock

    if getattr(current_clock(), "is_loop_running", False):
        raise UsageError(
            f"{fixture} begins a virtual time of its own, and virtual time runs here already",
            "call it in a plain function, outside virtual_clock.run and without @pytest.mark.virtual_time:\n"
            f"def {getattr(item, 'originalname', None) or item.name}({fixture}):\n    {fixture}(...)",
        )


def wrap_in_virtual_time(function: Any) -> None:
    """Have a marked async test that no plugin runs be run in virtual time when it is called.

    Raises:
        UsageError: the marker chooses an event loop for a test that another plugin runs.
    """
    marker = function.get_closest_marker(MARKER_NAME)
    if marker is None:
        return
    if not iscoroutinefunction(function.obj) or "anyio_backend" in function.funcargs:
        if "backend" in marker.kwargs:
            given = marker.kwargs["backend"]
            raise UsageError(
                f"backend={given!r} is for async tests that no plugin runs, and {function.name} is none",
                "take backend= away, and choose the event loop as the plugin says",
            )
        return
    plain, clock = function.obj, function.funcargs[_FIXTURE_NAME]

    @functools.wraps(plain)
    def run(**arguments: Any) -> None:
        clock.run(functools.partial(plain, **arguments), backend=marker.kwargs.get("backend", "asyncio"))

    del run.__wrapped__  # pytest would find the async function by it
    function.obj = run


def _read_marker_options(marker: pytest.Mark | None) -> dict[str, Any]:
    """Give what the marker says of the clock.

    Raises:
        UsageError: it says something else.
    """
    if marker is None:
        return {}
    if marker.args or not set(marker.kwargs) <= _MARKER_OPTION_NAMES:
        given = ", ".join([*map(repr, marker.args), *(f"{name}={value!r}" for name, value in marker.kwargs.items())])
        raise UsageError(
            f"@pytest.mark.virtual_time({given}) takes start=, backend= and allow= only",
            'write @pytest.mark.virtual_time(start="2026-11-22T12:00:00Z")',
        )
    return {name: value for name, value in marker.kwargs.items() if name == "start"}


def _is_async_test(item: Any) -> bool:
    inner = read_attribute(read_attribute(item.obj, "hypothesis"), "inner_test", item.obj)
    return iscoroutinefunction(inner)


def _has_clock_fixture(item: Any) -> bool:
    """Say whether a test, or a fixture of its own, has the virtual clock as an argument."""
    info = item._fixtureinfo  # noqa: SLF001  # pytest has no public list of who asks for what
    fixtures = [found[-1] for name, found in info.name2fixturedefs.items() if name in info.names_closure]
    own = [fixture for fixture in fixtures if not find_module_name(fixture.func).startswith("pytest_agentproc.")]
    return _FIXTURE_NAME in info.argnames or any(_FIXTURE_NAME in fixture.argnames for fixture in own)


def _require_function_loop(item: Any) -> None:
    """Refuse a test of pytest-asyncio whose event loop is for other tests too.

    Raises:
        UsageError: with the remedy.
    """
    if (scope := getattr(item, "_loop_scope", "function")) == "function":
        return
    raise UsageError(
        f"the event loop of {item.name} is for a whole {scope}, and virtual time is for one test",
        'write @pytest.mark.asyncio(loop_scope="function") above the test',
    )


def uses_preload_clock(item: Any) -> bool:
    """Say whether a marked test is in the time of the preload clock: a sync one that does not run a clock itself."""
    is_function = hasattr(item, "_fixtureinfo") and hasattr(item, "obj")
    return is_function and not _is_async_test(item) and not _has_clock_fixture(item)


def _refuse_backend_for_sync_test(item: Any, marker: pytest.Mark) -> None:
    """Refuse the choice of an event loop for a plain function.

    Raises:
        UsageError: with the remedy.
    """
    if "backend" in marker.kwargs:
        raise UsageError(
            f"backend={marker.kwargs['backend']!r} chooses an event loop, and {item.name} is a plain function",
            "take backend= away",
        )
