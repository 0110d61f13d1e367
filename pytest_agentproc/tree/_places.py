"""The place in the user's program where a call came from. Owns which files belong to whom; keeps no frame."""

from __future__ import annotations

import os
import sysconfig
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

__all__ = ["places_of"]

_KIT = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_PYTEST, _PLUGGY = f"{os.sep}_pytest{os.sep}", f"{os.sep}pluggy{os.sep}"
_THEIRS, _LIBRARY, _NOBODY = 0, 1, 2
"""The owner of a file: the user, a library, or the standard library and this kit."""


def places_of(frame: FrameType | None, home: str = "") -> tuple[str, ...]:
    """Name the lines that led to a call, `file:line`: the nearest of the user's own code, then the nearest in `home`.

    If the call passed no line of the user's own code, it is the nearest line of a library.

    Args:
        frame: the frame of the call.
        home: a file whose line is wanted as well, such as the test's.
    """
    nearest: dict[int, str] = {}
    at_home = ""
    while frame is not None and not (at_home and _THEIRS in nearest):
        file = frame.f_code.co_filename
        is_home = bool(home) and os.path.abspath(file) == home
        owner = _THEIRS if is_home else _owner(file)
        if owner != _NOBODY and owner not in nearest:
            nearest[owner] = f"{_shown(file)}:{frame.f_lineno}"
        if is_home and not at_home:
            at_home = f"{_shown(file)}:{frame.f_lineno}"
        if _PLUGGY in file:
            break  # above this frame pytest is the caller
        frame = frame.f_back
    found = nearest.get(_THEIRS) or nearest.get(_LIBRARY) or ""
    return tuple(dict.fromkeys(filter(None, (found, at_home))))


@cache
def _owner(file: str) -> int:
    if file.startswith("<"):
        return _THEIRS if file.startswith("<doctest ") else _NOBODY
    if os.path.abspath(file).startswith(_KIT) or _PYTEST in file:
        return _NOBODY
    if any(part in file for part in _INSTALLED):
        return _LIBRARY
    folders = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}
    return _NOBODY if any(folder and file.startswith(folder + os.sep) for folder in folders) else _THEIRS


def _shown(file: str) -> str:
    return _from(os.getcwd(), file)


@cache
def _from(folder: str, file: str) -> str:
    relative = os.path.relpath(file, folder)
    return file if relative.startswith("..") else relative
