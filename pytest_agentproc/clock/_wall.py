"""Every clock of Python on virtual time: `time` and `datetime` show what the event loop's own clock shows.

The one file that imports freezegun, whose classes stand in for `datetime` and `date`. Its own readings are floats of
microseconds since 1970, so `time.monotonic()` and the others are answered here, to the nanosecond. Its search through
all modules takes milliseconds for each start, so the search is here too, and looks at changed modules only.

Code that waits in real time keeps real clocks: this kit, pytest and its plugins, debuggers, and the modules of
`_REAL_CLOCK_MODULES`, such as `subprocess`, whose `timeout=` ends a real wait.
"""

from __future__ import annotations

import datetime as dt
import sys
import threading
import types
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import freezegun
import freezegun.api

from pytest_agentproc.errors import Spin, UsageError
from pytest_agentproc.foreign import (
    find_globals_name,
    find_module_name,
    get_class_namespace,
    get_module_namespace,
    is_real_instance,
)
from pytest_agentproc.interrupts import whole_block
from pytest_agentproc.originals import monotonic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_agentproc.clock._hub import Hub


_REAL_CLOCK_MODULES = {
    *("_pytest", "anyio", "asyncio", "concurrent", "coverage", "debugpy", "execnet", "multiprocessing"),
    *("outcome", "pexpect", "pluggy", "psutil", "ptyprocess", "pydevd", "pytest", "queue", "sched", "selectors"),
    *("signal", "sniffio", "socket", "socketserver", "ssl", "subprocess", "threading", "trio", "xdist"),
}
_REAL_CLOCK_MODULE_PREFIXES = ("pytest_", "_pydev", "pydev")

_READS_BETWEEN_TIME_CHECKS, _MAX_SECONDS_OF_READS = 64, 2.0
"""The reads of a clock, and the real seconds, that are allowed at one instant while no event loop runs."""

_CLOCK_READERS_BY_NAME: dict[str, Callable[[_FreezeFactory], float]] = {
    "monotonic": lambda clock: clock.read_seconds(),
    "perf_counter": lambda clock: clock.read_seconds(),
    "time": lambda clock: clock.read_wall_ns() / 1_000_000_000,
    "monotonic_ns": lambda clock: clock.now_ns(),
    "perf_counter_ns": lambda clock: clock.now_ns(),
    "time_ns": lambda clock: clock.read_wall_ns(),
}


class _FollowedClock(Protocol):
    """The part of a virtual clock that the clocks of Python follow."""

    start: dt.datetime
    slept_ns: int
    hub: Hub

    @property
    def now_ns(self) -> int: ...
    @property
    def is_loop_running(self) -> bool: ...


class _FreezeFactory:
    """A factory of freezegun's kind: the instant is a virtual clock's, whenever it is asked."""

    def __init__(self, clock: _FollowedClock) -> None:
        self.clock = clock
        self.time_to_freeze = clock.start.replace(tzinfo=None)
        self.epoch: int = (clock.start - _UNIX_EPOCH) // _MICROSECOND * 1000
        self._reads, self._read_at, self._since = 0, -1, 0.0

    def __call__(self) -> dt.datetime:
        return self.time_to_freeze + dt.timedelta(microseconds=(self.now_ns() + self.clock.slept_ns) // 1000)

    def read_wall_ns(self) -> int:
        """Give the nanoseconds since 1970."""
        return self.epoch + self.now_ns() + self.clock.slept_ns

    def read_seconds(self) -> float:
        """Give what the event loop's `time()` gives."""
        self.now_ns()
        return self.clock.hub.seconds.now()

    def now_ns(self) -> int:
        """Give the instant.

        Raises:
            Spin: code waits for this clock without an event loop, and nothing moves it.
        """
        now = self.clock.now_ns
        # Inside a loop time moves, so reads are harmless. Outside it stands still: a busy wait would hang without this
        # check.
        if self.clock.is_loop_running or threading.current_thread() is not threading.main_thread():
            self._reads = 0
            return now
        self._reads = self._reads + 1 if now == self._read_at else 1
        self._read_at = now
        if self._reads == 1:
            self._since = monotonic()
        if self._reads % _READS_BETWEEN_TIME_CHECKS == 0 and monotonic() - self._since > _MAX_SECONDS_OF_READS:
            self._reads = 0
            raise Spin(
                f"code outside an event loop reads the clock again and again, for {_MAX_SECONDS_OF_READS:g} s, and "
                "virtual time stands still there\nmake that code async, or let it wait before the test asks for "
                "virtual time"
            )
        return now


_UNIX_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)

_clock_patch_lock = threading.Lock()
_followed_clocks: list[_FreezeFactory] = []
"""The clocks that are followed now; the last one counts."""


@whole_block
def make_python_clocks_follow(clock: _FollowedClock) -> Iterator[None]:
    """Have every clock of Python follow a virtual clock while the block runs.

    Raises:
        UsageError: freezegun holds the time already, or is started inside the block.
    """
    if _followed_clocks and _followed_clocks[-1].clock is clock:
        yield
        return
    _refuse_nested_freezegun(not _followed_clocks and bool(freezegun.api.freeze_factories))
    follower = _FreezeFactory(clock)
    try:
        with _clock_patch_lock:
            _followed_clocks.append(follower)
            if len(_followed_clocks) == 1:
                _install_virtual_clocks()
            freezegun.api.freeze_factories[-1] = follower  # type: ignore[call-overload]
        yield
    finally:
        with _clock_patch_lock:
            _followed_clocks.remove(follower)
            if _followed_clocks:
                freezegun.api.freeze_factories[-1] = _followed_clocks[-1]  # type: ignore[call-overload]
            else:
                _restore_real_clocks()


def _refuse_nested_freezegun(nested: bool) -> None:  # noqa: FBT001  # it is said where it is called
    if nested:
        raise UsageError(
            "freeze_time and virtual time cannot both hold the clocks",
            'drop freeze_time: @pytest.mark.virtual_time(start="2026-11-22T12:00:00Z") says when virtual time begins',
        )


# freezegun's part.

_freezegun_api: Any = freezegun.api
_freezegun_freezer: Any = freezegun.freeze_time(_UNIX_EPOCH)
_freezegun_freezer.ignore = ()  # it decides by the beginnings of names: `gi` would be every module called `git...`
_freezer_class: Any = type(_freezegun_freezer)
_original_freezer_start = _freezer_class.start


def _build_followed_clock(name: str, read: Callable[[_FreezeFactory], float]) -> Callable[[], float]:
    plain = getattr(_freezegun_api, f"real_{name}")

    def read_followed_clock() -> float:
        caller = sys._getframe(1).f_globals  # noqa: SLF001  # there is no other way to find the caller
        return plain() if _is_real_time_module(caller) or not _followed_clocks else read(_followed_clocks[-1])

    read_followed_clock.__name__ = f"fake_{name}"
    return read_followed_clock


_FOLLOWED_CLOCKS_BY_NAME = {
    f"fake_{name}": _build_followed_clock(name, read) for name, read in _CLOCK_READERS_BY_NAME.items()
}
_original_clocks_by_name = {name: getattr(_freezegun_api, name) for name in _FOLLOWED_CLOCKS_BY_NAME}
_clock_holders_at_start: _ClockHolders | None = None
"""The modules as the search at the start found them, while the clocks are virtual."""
_METHOD_WRAPPER_TYPES = (staticmethod, classmethod, types.MethodType)
_SYS_WITHOUT_MODULES = types.SimpleNamespace(modules={})
"""The `sys` of freezegun: its search finds no module."""


def _install_virtual_clocks() -> None:
    vars(_freezegun_api).update(_FOLLOWED_CLOCKS_BY_NAME, sys=_SYS_WITHOUT_MODULES)
    _original_freezer_start(_freezegun_freezer)
    # A second freeze would replace our classes by its own, and time would stand still at its instant.
    _freezer_class.start = lambda self: _refuse_nested_freezegun(True)  # noqa: ARG005  # freezegun's own signature
    global _clock_holders_at_start  # noqa: PLW0603  # there is one interpreter
    _clock_holders_at_start = _find_clock_holders()
    _replace_clocks(_clock_holders_at_start, _VIRTUAL_CLOCK_BY_REAL_ID)


def _restore_real_clocks() -> None:
    global _clock_holders_at_start  # noqa: PLW0603  # as above
    _freezer_class.start = _original_freezer_start
    _freezegun_freezer.stop()
    vars(_freezegun_api).update(_original_clocks_by_name, sys=sys)
    # Two searches for each run took 6 % of the time of all scenarios, and most runs load no module. A virtual clock
    # that a module has got meanwhile by other means shows real time from here on, and the next search finds it.
    found = (
        _clock_holders_at_start
        if _clock_holders_at_start is not None and _clock_holders_at_start.size == len(sys.modules)
        else _find_clock_holders()
    )
    _clock_holders_at_start = None
    _replace_clocks(found, _REAL_CLOCK_BY_VIRTUAL_ID)


# Names of modules.

_calendar_function_names = ["localtime", "gmtime", "strftime"]
_REAL_AND_VIRTUAL_CLOCKS = [
    *(
        (getattr(_freezegun_api, f"real_{name}"), _FOLLOWED_CLOCKS_BY_NAME[f"fake_{name}"])
        for name in _CLOCK_READERS_BY_NAME
    ),
    *(
        (getattr(_freezegun_api, f"real_{name}"), getattr(_freezegun_api, f"fake_{name}"))
        for name in _calendar_function_names
    ),
    (_freezegun_api.real_datetime, _freezegun_api.FakeDatetime),
    (_freezegun_api.real_date, _freezegun_api.FakeDate),
]
_VIRTUAL_CLOCK_BY_REAL_ID = {id(real): fake for real, fake in _REAL_AND_VIRTUAL_CLOCKS}
_REAL_CLOCK_BY_VIRTUAL_ID = {id(fake): real for real, fake in _REAL_AND_VIRTUAL_CLOCKS}
_IDS_OF_ALL_CLOCKS = {*_VIRTUAL_CLOCK_BY_REAL_ID, *_REAL_CLOCK_BY_VIRTUAL_ID}


class _ModuleClocks(NamedTuple):
    """The known contents of a module, valid as long as it has that many names."""

    module: weakref.ref[types.ModuleType]
    size: int
    names: tuple[str, ...]
    owners: tuple[weakref.ref[Any], ...]
    """Its functions and classes that hold a clock: as a default, in a closure, as an attribute."""


_clocks_by_module_name: dict[str, _ModuleClocks] = {}
_keeps_real_clock_by_module: dict[str, bool] = {}


def _is_real_time_module(space: dict[str, Any]) -> bool:
    """Say whether a module, given by its global names, keeps real clocks."""
    name = find_globals_name(space)
    known = _keeps_real_clock_by_module.get(name)
    if known is None:
        top = name.partition(".")[0]
        known = _keeps_real_clock_by_module[name] = top in _REAL_CLOCK_MODULES or top.startswith(
            _REAL_CLOCK_MODULE_PREFIXES
        )
    return known


class _ClockHolders(NamedTuple):
    """The modules that hold a clock, as a search found them when there were so many modules."""

    size: int
    holders: list[tuple[dict[str, Any], _ModuleClocks]]


def _find_clock_holders() -> _ClockHolders:
    modules = list[tuple[str, Any]](sys.modules.items())
    holders: list[tuple[dict[str, Any], _ModuleClocks]] = []
    # Only changed modules are searched again: freezegun's search of all modules took 5 ms at each start.
    for name, module in modules:
        if not is_real_instance(
            module, types.ModuleType
        ):  # objects of C extensions call themselves modules, such as cffi's
            continue
        space = get_module_namespace(module)
        known = _clocks_by_module_name.get(name)
        if known is None or known.module() is not module or known.size != len(space):
            known = _clocks_by_module_name[name] = _find_module_clocks(module, space)
        if known.names or known.owners:
            holders.append((space, known))
    return _ClockHolders(len(modules), holders)


def _replace_clocks(found: _ClockHolders, others: dict[int, Any]) -> None:
    """Put one thing in another's place wherever a module holds it: real clocks or virtual ones."""
    for space, known in found.holders:
        for attribute in known.names:
            if (other := others.get(id(space.get(attribute)))) is not None:
                space[attribute] = other
        for owner in known.owners:
            if (holder := owner()) is not None:
                _replace_in_holder(holder, others)


def _find_module_clocks(module: types.ModuleType, space: dict[str, Any]) -> _ModuleClocks:
    home = find_globals_name(space)
    if _is_real_time_module(space) or home in ("datetime", "time", "freezegun.api", __name__):
        return _ModuleClocks(weakref.ref(module), len(space), (), ())
    held = list(space.items())  # another thread may import meanwhile
    names = tuple(name for name, value in held if id(value) in _IDS_OF_ALL_CLOCKS)
    # Default arguments, closures and class attributes hold clocks too. A clock that was missed there gave real time to
    # virtual code, and a false verdict.
    owners = [] if home in sys.stdlib_module_names else [*_find_clock_owners(home, space.values())]
    return _ModuleClocks(weakref.ref(module), len(space), names, tuple(map(weakref.ref, owners)))


def _find_clock_owners(home: str, values: Any) -> Iterator[Any]:
    """Give the functions and classes of a module that hold a clock otherwise than by a name of the module."""
    for held in list(values):
        value = _unwrap_method(held)
        if is_real_instance(value, types.FunctionType):
            if any(id(inner) in _IDS_OF_ALL_CLOCKS for inner in _list_function_values(value)):
                yield value
        elif is_real_instance(value, type) and find_module_name(value) == home:
            inside = [*get_class_namespace(value).values()]
            if any(id(_unwrap_method(inner)) in _IDS_OF_ALL_CLOCKS for inner in inside):
                yield value
            yield from _find_clock_owners(
                home, [inner for inner in inside if not is_real_instance(inner, type)]
            )  # it may hold itself


def _unwrap_method(value: Any) -> Any:
    """Give the function in a method of a class."""
    # Not getattr for every value: the lazy modules of six import something for any name, and fail if it is missing.
    return value.__func__ if type(value) in _METHOD_WRAPPER_TYPES else value


def _list_function_values(function: types.FunctionType) -> Iterator[Any]:
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # it is empty yet
            continue


def _replace_in_holder(holder: Any, others: dict[int, Any]) -> None:
    if isinstance(holder, type):
        for name, value in list(get_class_namespace(holder).items()):
            if (other := others.get(id(_unwrap_method(value)))) is not None:
                # Not setattr: a metaclass may refuse it, for other code.
                type.__setattr__(holder, name, other if isinstance(other, type) else staticmethod(other))
        return
    holder.__defaults__ = holder.__defaults__ and tuple(
        others.get(id(default), default) for default in holder.__defaults__
    )
    holder.__kwdefaults__ = holder.__kwdefaults__ and {
        name: others.get(id(default), default) for name, default in holder.__kwdefaults__.items()
    }
    for cell in holder.__closure__ or ():
        try:
            cell.cell_contents = others.get(id(cell.cell_contents), cell.cell_contents)
        except ValueError:
            continue
