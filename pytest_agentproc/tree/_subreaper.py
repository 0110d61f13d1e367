"""Adoption: while somebody wants it, orphans below this process become its children. Owns the setting; reaps nobody."""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["adopting"]

_SET, _GET = 36, 37
"""prctl's numbers for the setting."""


class _Adoption:
    """How many want it, and how it was before the first of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self._was_set = False

    def enter(self) -> bool:
        """Switch it on with the first who comes; return whether it holds."""
        with self._lock:
            if self._count == 0:
                self._was_set = _is_set()
                if not self._was_set and not _set(wanted=True):
                    return False
            self._count += 1
            return True

    def leave(self) -> None:
        """Switch it back with the last who goes."""
        with self._lock:
            self._count -= 1
            if self._count == 0 and not self._was_set:
                _set(wanted=False)


_ADOPTION = _Adoption()


@contextmanager
def adopting() -> Iterator[bool]:
    """Adopt the orphans of this process's descendants while the block runs; yield whether the kernel can.

    Blocks may be nested and overlap in any order, in several threads; with the end of the last the setting is again
    what it was before the first. An adopted process stays this process's child, also after the end of the block.
    """
    holds = _ADOPTION.enter()
    try:
        yield holds
    finally:
        if holds:
            _ADOPTION.leave()


@cache
def _prctl() -> Callable[..., int] | None:
    if sys.platform != "linux":
        return None
    import ctypes  # slow to load, and wanted by few

    return getattr(ctypes.CDLL(None, use_errno=True), "prctl", None)


def _set(*, wanted: bool) -> bool:
    prctl = _prctl()
    return prctl is not None and prctl(_SET, int(wanted), 0, 0, 0) == 0


def _is_set() -> bool:
    prctl = _prctl()
    if prctl is None:
        return False
    import ctypes

    value = ctypes.c_int(0)
    return prctl(_GET, ctypes.byref(value), 0, 0, 0) == 0 and bool(value.value)
