"""Owns what one event is; knows no record."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Event", "new_event"]


class Event(NamedTuple):
    """One thing that happened.

    Args:
        at: nanoseconds since the first spawn, on the run's clock.
        code: `o` stdout, `e` stderr, `i` stdin, `s` signal, `p` process, `x` exit, `t` timer, `m` marker.
        data: always names the `process` it is about; `by` is there when the supervisor's side did or saw it.
    """

    at: int
    code: str
    data: Mapping[str, Any]


new_event = partial(tuple.__new__, Event)
"""What `Event` itself calls, without its frame: there are several events in every step."""
