"""Starts of processes in this program: every start is reported to listeners. Owns the patches and the cookie.

A listener is also called before each `os.kill` and `os.killpg`. Adoption keeps orphans from init, and a program that
polls for the end of a process group would poll for ever if they stayed zombies.

Patched while a listener exists: `subprocess.Popen` (asyncio and all libraries use it), `os.fork`, `os.forkpty`,
`os.posix_spawn`, `os.posix_spawnp` (`os.spawn*` use them), `os.system`, multiprocessing's processes, and the start of
threads. If another library has patched over one of these, the patch stays in place at the end, and does nothing.

The cookie is an environment variable: a word for each listener, with the number of the start. It identifies every
process that inherits it. A program within the program, such as an inner pytest, adds its own words.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any, Protocol

from pytest_agentproc.foreign import is_real_instance
from pytest_agentproc.interrupts import whole_block
from pytest_agentproc.originals import Popen
from pytest_agentproc.procfs import read_nanoseconds_since_boot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType


START_COOKIE_VARIABLE = "PYTEST_AGENTPROC_COOKIE"
COMMAND_TEXT_OF_FORK = "a fork of this process"
"""The command of a start that asks for none."""


@dataclass(slots=True, eq=False)
class ProcessStart:
    """One start of a process.

    Args:
        number: counts the starts of one listener.
        command: what was asked for.
        places: the lines that asked, the nearest first.
        is_own: whether it counts for the listener.
        pid: the process; 0: not known, or not there.
        at: when that was known, in nanoseconds of the clock BOOTTIME.
        handle: gives the object that will ask how it ended.
    """

    number: int
    command: str
    places: tuple[str, ...] = ()
    is_own: bool = True
    pid: int = 0
    at: int = 0
    handle: Callable[[], Any] = field(default=lambda: None, repr=False)


class StartListener(Protocol):
    """An object that is informed of starts."""

    @property
    def cookie_word(self) -> str:
        """Its word of the cookie; empty: none for now."""

    def before_start(self, command: str, frame: FrameType) -> ProcessStart:
        """Take note that a process is about to be started."""

    def after_start(self, start: ProcessStart) -> None:
        """Take note of the process that the start became."""

    def before_thread_start(self, thread: threading.Thread) -> None:
        """Take note of a thread that the current one starts."""

    def before_signal(self) -> None:
        """Take note that the program is about to send a signal, or to ask by one whether a process exists."""


_start_listener_lock = threading.Lock()
_start_listeners: list[StartListener] = []
_inherited_cookie = ""
_patch_scope: _PatchScope | None = None
_AnnouncedStarts = list[tuple[StartListener, ProcessStart]]
_starts_of_this_thread = threading.local()
"""`starts` is what this thread is about to start: a step of one start, such as a fork, is no other start."""
_starting_thread_ids: set[int] = set()
"""The threads that start a process now. Its child may be there already, and may have ended, while no listener knows."""


def is_start_under_way() -> bool:
    """Say whether a start is under way, so that a child may be there that no listener knows yet."""
    return bool(_starting_thread_ids)


@whole_block
def listen_to_starts(listener: StartListener) -> Iterator[None]:
    """Report every start to a listener while the block runs."""
    global _inherited_cookie, _patch_scope  # noqa: PLW0603  # there is one environment
    with _start_listener_lock:
        if not _start_listeners:
            _inherited_cookie = os.environ.get(START_COOKIE_VARIABLE, "")
            _patch_scope = _patch_scope if _patch_scope is not None and _patch_scope.install() else _PatchScope()
        _start_listeners.append(listener)
    publish_cookie()
    try:
        yield
    finally:
        with _start_listener_lock:
            if listener in _start_listeners:  # it is not in a fork
                _start_listeners.remove(listener)
            if not _start_listeners and _patch_scope is not None and not _patch_scope.remove():
                _patch_scope = None
        publish_cookie()


def publish_cookie() -> None:
    """Write the words of the listeners into the environment that children inherit."""
    _write_cookie_variable(
        " ".join(filter(None, [_inherited_cookie, *(listener.cookie_word for listener in tuple(_start_listeners))]))
    )


def _write_cookie_variable(cookie: str) -> None:
    if cookie:
        os.environ[START_COOKIE_VARIABLE] = cookie
    else:
        os.environ.pop(START_COOKIE_VARIABLE, None)


def _report_start_done(starts: _AnnouncedStarts, pid: int, handle: Callable[[], Any] = lambda: None) -> None:
    for listener, start in starts:
        start.pid, start.at, start.handle = pid, read_nanoseconds_since_boot(), handle
        listener.after_start(start)


@whole_block
def _merge_nested_starts(starts: _AnnouncedStarts) -> Iterator[None]:
    """Treat every start of this thread as a part of these starts while the block runs."""
    # Since CPython 3.13 `subprocess` uses `os.posix_spawn`. Without this each start counted twice, and a daemon with a
    # cleared environment no longer led to the one line that can have started it.
    outer = getattr(_starts_of_this_thread, "starts", None)
    _starts_of_this_thread.starts = starts
    _starting_thread_ids.add(threading.get_ident())
    try:
        yield
    finally:
        _starts_of_this_thread.starts = outer
        if outer is None:
            _starting_thread_ids.discard(threading.get_ident())


def _handle_fork_result(starts: _AnnouncedStarts, pid: int) -> None:
    if pid:
        _report_start_done(starts, pid)
    else:
        # A fork is no listener, and must not report the starts of its own program to the parent's.
        _start_listeners.clear()
        _starting_thread_ids.clear()
        if START_COOKIE_VARIABLE in os.environ:
            _write_cookie_variable(_format_cookie(starts))


def _format_cookie(starts: _AnnouncedStarts) -> str:
    words = [
        f"{listener.cookie_word}.{start.number}" for listener, start in starts if start.is_own and listener.cookie_word
    ]
    return " ".join(filter(None, [_inherited_cookie, *words]))


def _add_cookie(environment: Mapping[Any, Any], starts: _AnnouncedStarts) -> dict[Any, Any]:
    """Give the environment of one start: the cookie, which would be inherited, names that start."""
    copy = dict(environment)
    del copy[START_COOKIE_VARIABLE]
    cookie = _format_cookie(starts)
    return {**copy, START_COOKIE_VARIABLE: cookie} if cookie else copy


def _format_command(asked: Any) -> str:
    try:
        if isinstance(asked, str | bytes | os.PathLike):
            return os.fsdecode(asked)
        # Nothing else is read: the words of an iterator are there once, and they are for the start.
        return " ".join(os.fsdecode(word) for word in asked) if isinstance(asked, Sequence) else ""
    except Exception:  # noqa: BLE001  # the words are somebody else's objects, and the start itself says what is wrong
        return ""


def _list_patch_targets() -> tuple[tuple[Any, str], ...]:
    """Give the patched names as they are now: another library may have replaced a class."""
    from multiprocessing.process import BaseProcess  # its forkserver starts what no other patch sees

    return (
        (subprocess.Popen if is_real_instance(subprocess.Popen, type) else Popen, "__init__"),  # there may be a mock
        *((os, name) for name in ("fork", "forkpty", "posix_spawn", "posix_spawnp", "system")),
        (BaseProcess, "start"),
        (threading.Thread, "start"),
        (os, "kill"),
        (os, "killpg"),
    )


class _PatchScope:
    """The patches, from the first listener to the last. Each calls the function that it replaced.

    They are used again if the same functions are found again: to make them takes longer than most of a listener's life.
    """

    def __init__(self) -> None:
        patches: tuple[Callable[[Any], Any], ...] = (
            self._patch_popen,
            self._patch_fork,
            self._patch_forkpty,
            self._patch_posix_spawn,
            self._patch_posix_spawn,
            self._patch_system,
            self._patch_process_start,
            self._patch_thread_start,
            self._patch_signal,
            self._patch_signal,
        )
        self._is_over = False
        self._put: dict[tuple[Any, str], tuple[Any, Any]] = {}
        for (owner, name), patch in zip(_list_patch_targets(), patches, strict=True):
            plain = getattr(owner, name)
            patched = wraps(plain)(patch(plain))
            self._put[owner, name] = plain, patched
            setattr(owner, name, patched)

    def install(self) -> bool:
        """Install the patches once more if the functions that they call are in place; return whether they are."""
        # A class that was put in the place of `subprocess.Popen` between two listeners was once not watched.
        if (*self._put,) != _list_patch_targets() or any(
            getattr(*place) is not plain for place, (plain, _) in self._put.items()
        ):
            return False
        self._is_over = False
        for (owner, name), (_, patched) in self._put.items():
            setattr(owner, name, patched)
        return True

    def remove(self) -> bool:
        """Remove the patches; return whether all could be removed, so that they may be used again."""
        self._is_over = True
        covered = False
        # A patch that another library has wrapped cannot be removed without undoing that library. `_is_over` makes it
        # do nothing.
        for (owner, name), (plain, patched) in self._put.items():
            if getattr(owner, name) is patched:
                setattr(owner, name, plain)
            else:
                covered = True
        return not covered

    def _announce_start(self, command: str) -> _AnnouncedStarts:
        if (outer := getattr(_starts_of_this_thread, "starts", None)) is not None:
            return list(outer)
        if self._is_over or not _start_listeners:
            return []
        frame = sys._getframe(2)  # noqa: SLF001  # the only way to the caller's line
        return [(listener, listener.before_start(command, frame)) for listener in tuple(_start_listeners)]

    def _patch_popen(self, plain: Any) -> Any:
        def init(process: Popen[Any], *args: Any, **options: Any) -> None:
            starts = self._announce_start(_format_command(args[0] if args else options.get("args", "")))
            if starts and len(args) <= _POPEN_ENV_ARGUMENT_INDEX:
                given = options.get("env")
                environment = os.environ if given is None else given
                if isinstance(environment, Mapping) and START_COOKIE_VARIABLE in environment:
                    options["env"] = _add_cookie(environment, starts)
            with _merge_nested_starts(starts):
                plain(process, *args, **options)
                _report_start_done(starts, process.pid, weakref.ref(process))

        return init

    def _patch_fork(self, plain: Any) -> Any:
        def fork() -> int:
            starts = self._announce_start(COMMAND_TEXT_OF_FORK)
            with _merge_nested_starts(starts):
                pid: int = plain()
                _handle_fork_result(starts, pid)
            return pid

        return fork

    def _patch_forkpty(self, plain: Any) -> Any:
        def forkpty() -> tuple[int, int]:
            starts = self._announce_start(COMMAND_TEXT_OF_FORK)
            with _merge_nested_starts(starts):
                pid, descriptor = plain()
                _handle_fork_result(starts, pid)
            return pid, descriptor

        return forkpty

    def _patch_posix_spawn(self, plain: Any) -> Any:
        def spawn(path: Any, argv: Any, env: Any, *args: Any, **options: Any) -> int:
            starts = self._announce_start(_format_command(argv))
            if starts and isinstance(env, Mapping) and START_COOKIE_VARIABLE in env:
                env = _add_cookie(env, starts)
            with _merge_nested_starts(starts):
                pid: int = plain(path, argv, env, *args, **options)
                _report_start_done(starts, pid)
            return pid

        return spawn

    def _patch_system(self, plain: Any) -> Any:
        def system(command: Any) -> int:
            starts = self._announce_start(_format_command(command))
            if starts and START_COOKIE_VARIABLE in os.environ:
                _write_cookie_variable(_format_cookie(starts))
            try:
                with _merge_nested_starts(starts):
                    status: int = plain(command)
            finally:
                if starts:
                    publish_cookie()
            return status

        return system

    def _patch_process_start(self, plain: Any) -> Any:
        def start(process: Any) -> None:
            starts = self._announce_start(f"multiprocessing's {process.name}")
            with _merge_nested_starts(starts):
                plain(process)
                _report_start_done(starts, process.pid)

        return start

    def _patch_thread_start(self, plain: Any) -> Any:
        def start(thread: threading.Thread) -> None:
            for listener in () if self._is_over else tuple(_start_listeners):
                listener.before_thread_start(thread)
            plain(thread)

        return start

    def _patch_signal(self, plain: Any) -> Any:
        def send(*args: Any) -> None:
            for listener in () if self._is_over else tuple(_start_listeners):
                listener.before_signal()
            plain(*args)

        return send


_POPEN_ENV_ARGUMENT_INDEX = 10
"""The place of `env` among the arguments of `Popen` after its first."""
