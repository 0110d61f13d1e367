"""Adoption: orphans below this process become its children while a caller wants it. Owns the block; reaps nothing."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from pytest_agentproc.tree._prctl import adopt_orphans, release_orphans

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def adopting() -> Iterator[bool]:
    """Adopt the orphans of this process's descendants while the block runs; yield whether the kernel can.

    Blocks may be nested and overlap in any order, in several threads. The end of the last block restores the setting
    from before the first. An adopted process stays this process's child after the end of the block.
    """
    try:
        adopt_orphans()
    except (OSError, AttributeError):  # another kernel, or no C library that has it
        yield False
        return
    try:
        yield True
    finally:
        release_orphans()
