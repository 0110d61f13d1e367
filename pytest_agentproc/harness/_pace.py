"""Whether a scenario can be judged in real time, and how fast. Pure; plays nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_agentproc.record import duration

if TYPE_CHECKING:
    from pytest_agentproc.harness._margin import Foreseen

__all__ = ["MARGIN", "NotForReal", "Pace", "pace_of"]

MARGIN = 250_000_000
"""Competing instants must be so many real nanoseconds apart: the delays of a busy machine must not swap them."""

_EASY_MARGIN = 2 * MARGIN
_FASTEST = 100
_LONG = 20
"""Left to itself a scenario leaves twice the margin, or less of it if that takes more real seconds than this."""

_LONGEST = 45
"""What takes more real seconds with the margin alone is not played."""

_LATE = 1_000_000_000
"""So many real nanoseconds after its instant a thing may happen; never before it."""

_FINISH = 10
"""Real seconds beyond the expected end after which a supervisor that has not returned is given up."""


class NotForReal(Exception):
    """A scenario that real time cannot judge, at this scale or at all; the text says why."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How a scenario is played in real time.

    Args:
        scale: every duration is divided by it.
        margin: real nanoseconds between competing instants; None: nothing competes.
        tolerance: how much later than expected a thing may happen, in nanoseconds of the scenario's time.
        limit: real seconds after which a supervisor that has not returned is given up.
    """

    scale: float
    margin: int | None
    tolerance: int
    limit: float


def pace_of(foreseen: Foreseen, scale: float | None, lifetime: float) -> Pace:
    """Choose the pace.

    Args:
        foreseen: what the model says.
        scale: what the caller wants; None: as fast as twice the margin allows, or the margin where that is slow, and at
            most 100.
        lifetime: real seconds for which a fake can live.

    Raises:
        NotForReal: the margin is too small, it would take too long, or the model does not come to an end.
    """
    if foreseen.fault:
        raise NotForReal(f"it ends in a {foreseen.fault}, which virtual time alone can tell from a long wait")
    margin = foreseen.margin
    if margin is not None and margin < MARGIN * (scale or 1):
        apart = f"{duration(margin)} apart" if margin else "at the same time"
        needed = duration(round(MARGIN * (scale or 1)))
        raise NotForReal(f"two of its competing instants are {apart}, and {needed} are needed{_at(scale)}")
    chosen = scale or _left_to_itself(foreseen.duration / 1e9, margin)
    seconds = foreseen.duration / 1e9 / chosen
    longest = lifetime / 2 if scale else _LONGEST
    if seconds > longest:
        raise NotForReal(f"it takes {seconds:.0f} s{_at(chosen)}, and {longest:g} s are allowed")
    left = None if margin is None else round(margin / chosen)
    return Pace(chosen, left, round(_LATE * chosen), seconds + _FINISH)


def _left_to_itself(seconds: float, margin: int | None) -> float:
    """Give the scale of a scenario for which the caller wants none."""
    if margin is None:
        return _FASTEST
    easy, most = (min(_FASTEST, max(1.0, margin / least)) for least in (_EASY_MARGIN, MARGIN))
    return max(easy, min(most, seconds / _LONG))


def _at(scale: float | None) -> str:
    return "" if scale in (None, 1) else f" at scale {scale:g}"
