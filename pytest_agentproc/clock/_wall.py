"""The wall clock on virtual time: `datetime.now()` and `time.time()` of one test follow its virtual clock.

The one file that imports freezegun. It costs some milliseconds a test, counts in microseconds (rounded down) and stops
`time.monotonic()` for everybody, so it is asked for by the test that wants it; the guards of the hub and pytest's own
timing keep real time.
"""

from __future__ import annotations

import datetime as dt
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import freezegun
import freezegun.api

from pytest_agentproc.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_agentproc.clock._virtual import VirtualClock

__all__ = ["WALL_START", "wall_clock"]

WALL_START = "2026-01-01T00:00:00Z"
"""What the wall clock shows at the start of virtual time, unless the test says otherwise."""

_REAL = [f"pytest_agentproc.clock.{name}" for name in ("_asyncio", "_hub", "_sentry", "_trio", "_window")]
_REAL += ["_pytest.timing", "_pytest.terminal"]


class _Follower:
    """A factory of freezegun's kind: the instant is the virtual clock's, whenever it is asked."""

    def __init__(self, clock: VirtualClock, start: dt.datetime) -> None:
        self._clock = clock
        self.time_to_freeze = start

    def __call__(self) -> dt.datetime:
        return self.time_to_freeze + dt.timedelta(microseconds=self._clock.now_ns // 1000)


@contextmanager
def wall_clock(clock: VirtualClock, start: str = WALL_START) -> Iterator[None]:
    """Have the wall clock follow a virtual clock.

    Args:
        clock: whose time counts.
        start: the date and time at its start, in ISO 8601; without an offset it is UTC.

    Raises:
        UsageError: `start` is no date, or freezegun holds the time already, or is started inside the block.
    """
    _refuse_if(bool(freezegun.api.freeze_factories))
    try:
        freezer: Any = freezegun.freeze_time(start, ignore=_REAL)
    except (ValueError, TypeError) as error:
        raise UsageError(f"wall clock start is {start!r}, but must be a date in ISO 8601", WALL_START) from error
    kind = type(freezer)
    plain = kind.start
    frozen = plain(freezer)
    freezegun.api.freeze_factories[-1] = _Follower(clock, frozen.time_to_freeze)  # type: ignore[call-overload]
    kind.start = lambda self: _refuse_if(True)  # noqa: ARG005  # freezegun's own signature
    try:
        yield
    finally:
        kind.start = plain
        freezer.stop()


def _refuse_if(nested: bool) -> None:  # noqa: FBT001  # it is said where it is called
    if nested:
        raise UsageError(
            "freeze_time and the virtual wall clock cannot both hold the time",
            "drop freeze_time: the wall clock starts at the date given to it, and follows virtual_clock",
        )
