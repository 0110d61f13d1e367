"""The lines of the user's program that wait, for the message of a fault. Reads tasks, threads and the stack."""

from __future__ import annotations

import sys
import threading
from types import FrameType
from typing import TYPE_CHECKING, Any

from pytest_agentproc.foreign import read_attribute
from pytest_agentproc.places import find_nearest_line, iterate_callers, list_thread_frames

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def list_waiting_places(coroutines: Iterable[Any], *, has_threads: bool) -> list[str]:
    """Name the line at which each task waits, `file:line`, without tasks that wait in libraries alone.

    Args:
        coroutines: those of the tasks.
        has_threads: whether other threads are named as well.
    """
    found = {find_nearest_line(reversed([*_list_coroutine_frames(coroutine)])) for coroutine in coroutines}
    if has_threads:
        here = threading.get_ident()
        frames = [frame for thread, frame in list_thread_frames().items() if thread != here]
        found |= {find_nearest_line(iterate_callers(frame)) for frame in frames}
    return sorted(
        found - {""}, key=_split_place_for_sorting
    )  # neither tasks nor threads have an order that two runs share


def find_kit_call_place() -> str:
    """Name the line that called the kit, `file:line`; empty: no line of the user's program did."""
    return find_nearest_line(iterate_callers(sys._getframe(1)))  # noqa: SLF001  # no other way leads to a caller


def _split_place_for_sorting(place: str) -> tuple[str, int]:
    file, _, line = place.rpartition(":")
    return file, int(line)


def _list_coroutine_frames(coroutine: Any) -> Iterator[FrameType]:
    """Give the frames of a coroutine that waits, the outermost first."""
    # What is awaited may be any object, and a proxy has every attribute: only real frames lead on.
    while True:
        for frame_name, awaited_name in (("cr_frame", "cr_await"), ("gi_frame", "gi_yieldfrom")):
            frame = read_attribute(coroutine, frame_name)
            if type(frame) is FrameType:
                yield frame
                coroutine = read_attribute(coroutine, awaited_name)
                break
        else:
            return
