"""Lines of the user's program, for messages. Owns which code belongs to whom; keeps no frame."""

from __future__ import annotations

import os
import sys
import sysconfig
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_agentproc.files import shorten_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import FrameType

__all__ = [
    "describe_other_interpreters",
    "find_call_lines",
    "find_nearest_line",
    "iterate_callers",
    "list_thread_frames",
]

_KIT_FOLDER_PREFIX = f"{Path(__file__).absolute().parent}{os.sep}"
_INSTALLED_PACKAGE_PATH_PARTS = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_PYTEST_PATH_PART, _PLUGGY_PATH_PART = f"{os.sep}_pytest{os.sep}", f"{os.sep}pluggy{os.sep}"
_OWNED_BY_USER, _OWNED_BY_LIBRARY, _OWNED_BY_NOBODY = 0, 1, 2
"""The owner of a file: the user, a library, or the standard library and this kit."""


def find_call_lines(frame: FrameType | None, home: str = "") -> tuple[str, ...]:
    """Name the lines that led to a call, `file:line`: the nearest of the user's own code, then the nearest in `home`.

    If the call passed no line of the user's own code, it is the nearest line of a library.

    Args:
        frame: the frame of the call.
        home: a file whose line is wanted as well, such as the test's.
    """
    nearest: dict[int, str] = {}
    at_home = ""
    for caller in iterate_callers(frame):
        file = caller.f_code.co_filename
        is_home = bool(home) and _make_absolute(file) == home
        owner = _OWNED_BY_USER if is_home else _find_owner(file)
        if owner != _OWNED_BY_NOBODY and owner not in nearest:
            nearest[owner] = _format_line(caller)
        if is_home:
            at_home = _format_line(caller)
        if at_home and _OWNED_BY_USER in nearest:
            break
    found = nearest.get(_OWNED_BY_USER) or nearest.get(_OWNED_BY_LIBRARY) or ""
    return tuple(dict.fromkeys(filter(None, (found, at_home))))


def iterate_callers(frame: FrameType | None) -> Iterator[FrameType]:
    """Give a frame and those that called it, up to the call by pytest."""
    while frame is not None and _PLUGGY_PATH_PART not in frame.f_code.co_filename:
        yield frame
        frame = frame.f_back


def find_nearest_line(frames: Iterable[FrameType]) -> str:
    """Name the first line of the user's own code, `file:line`, in these frames; empty: there is none."""
    return next(
        (_format_line(frame) for frame in frames if _find_owner(frame.f_code.co_filename) == _OWNED_BY_USER), ""
    )


def list_thread_frames() -> dict[int, FrameType]:
    """Give the frame of each thread, by the thread's number; none while this process has other interpreters.

    CPython 3.12 and 3.13 look at the threads of all interpreters here. A frame object that is made for another
    interpreter is memory of this one, and that one frees it, which aborts the process.
    """
    return {} if _count_other_interpreters() else sys._current_frames()  # noqa: SLF001  # the one way to see them


def describe_other_interpreters() -> str:
    """Say why no line of a thread is named; empty: this process has one interpreter."""
    count = _count_other_interpreters()
    if not count:
        return ""
    return f"no line of a thread is known, because this process has {count} other interpreter{'s'[: count > 1]}"


def _count_other_interpreters() -> int:
    for name in ("_interpreters", "_xxsubinterpreters"):  # its name from CPython 3.13 on, and before
        try:
            return len(import_module(name).list_all()) - 1
        except ImportError:
            continue
    return 0


@cache
def _find_owner(file: str) -> int:
    if file.startswith("<"):
        return _OWNED_BY_USER if file.startswith("<doctest ") else _OWNED_BY_NOBODY
    if _make_absolute(file).startswith(_KIT_FOLDER_PREFIX) or _PYTEST_PATH_PART in file:
        return _OWNED_BY_NOBODY
    if any(part in file for part in _INSTALLED_PACKAGE_PATH_PARTS):
        return _OWNED_BY_LIBRARY
    folders = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "scripts")}
    return (
        _OWNED_BY_NOBODY if any(folder and file.startswith(folder + os.sep) for folder in folders) else _OWNED_BY_USER
    )


def _make_absolute(file: str) -> str:
    return os.path.abspath(file)  # noqa: PTH100  # links stay as they are: a test is known by the path that it was given


def _format_line(frame: FrameType) -> str:
    return f"{shorten_path(frame.f_code.co_filename)}:{frame.f_lineno}"
