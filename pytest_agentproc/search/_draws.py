"""Owns Hypothesis: settings drawn near the policy's own limits, and the smallest that still fails. Plays nothing."""

from __future__ import annotations

from itertools import permutations
from random import Random
from typing import TYPE_CHECKING, Any

from pytest_agentproc.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pytest_agentproc.scenario import Choice, Opening

__all__ = ["Enough", "candidates", "require_hypothesis", "smallest"]

_MILLISECOND = 1_000_000
_NEAR = ("", " - 1ms", " + 1ms")


class Enough(BaseException):  # no Exception: Hypothesis would take one for a failure, and shrink it
    """The time for a search is over."""


_PAIRED = 4
"""Of so many limits, those on silence, progress and runtime, the differences are drawn, too: two that end at once."""
_SMALL = ("0s", "1ms", "1s", "10s")


def require_hypothesis() -> None:
    """See that Hypothesis is there.

    Raises:
        UsageError: it is not.
    """
    try:
        import hypothesis  # noqa: F401
    except ImportError:
        raise UsageError(
            "a search needs Hypothesis, which is not installed", 'install it: pip install "pytest-agentproc[search]"'
        ) from None


def candidates(opening: Opening, limits: Mapping[str, int | None], names: Sequence[str]) -> list[str]:
    """List the values of a range at which something may turn over: its bounds, and about the limits in it.

    Args:
        opening: a `between`.
        limits: the supervisor's limits, as whole numbers.
        names: the limits that matter.
    """
    bounds = opening.bounds(limits)
    if bounds is None:
        return []
    texts = [opening.options[0]]
    if opening.kind == "time":
        on = [name for name in names if limits[name] is not None]
        texts += [f"{name}{near}" for name in on for near in _NEAR]
        texts += [f"2 * {name}" for name in on]
        texts += [f"{one} - {other}" for one, other in permutations(on[:_PAIRED], 2)]
        texts += _SMALL
    elif opening.kind == "size":
        texts += [f"max_line_bytes{near}" for near in ("", " - 1 B", " + 1 B")]
    texts.append(opening.options[1])
    found: dict[int, str] = {}
    for text in texts:
        worth = opening.worth(text, limits)
        if worth is not None and bounds[0] <= worth <= bounds[1]:
            found.setdefault(worth, text)
    return list(found.values())


def _values(opening: Opening, limits: Mapping[str, int | None], names: Sequence[str]) -> Any:
    """Give the strategy of one opening: three times in four at a limit, else anywhere."""
    from hypothesis import strategies as st

    indices = range(len(opening.options))
    if opening.word == "one_of":
        return st.sampled_from(indices)
    if opening.word == "any_order":
        return st.permutations(indices).map(tuple)
    if opening.word == "some_of":
        taken = st.lists(st.booleans(), min_size=len(indices), max_size=len(indices))
        return taken.map(lambda which: tuple(index for index in indices if which[index]))
    bounds = opening.bounds(limits)
    if bounds is None:
        return st.just(opening.options[0])
    near = st.sampled_from(candidates(opening, limits, names))
    if opening.kind == "time":
        low, high = -(-bounds[0] // _MILLISECOND), bounds[1] // _MILLISECOND
        anywhere = st.integers(low, high).map(lambda value: f"{value}ms") if low <= high else near
    else:
        unit = " B" if opening.kind == "size" else ""
        anywhere = st.integers(*bounds).map(lambda value: f"{value}{unit}")
    return near if opening.kind == "size" else st.one_of(near, near, near, anywhere)


def smallest(
    openings: Sequence[Opening],
    limits: Mapping[str, int | None],
    names: Sequence[str],
    fails: Callable[[tuple[Choice, ...]], bool],
    *,
    runs: int,
    seed: int,
) -> tuple[Choice, ...] | None:
    """Draw settings until one fails, and shrink that; None: none failed.

    Args:
        openings: what is open.
        limits: the supervisor's limits, as whole numbers.
        names: the limits about which times are drawn.
        fails: whether a setting fails; it raises `Enough` when there is no time left.
        runs: so many settings are drawn at most; shrinking has as many of its own.
        seed: the same seed draws the same settings.
    """
    from hypothesis import HealthCheck, Phase, find, settings
    from hypothesis import strategies as st
    from hypothesis.errors import NoSuchExample

    drawn = st.tuples(*(_values(opening, limits, names) for opening in openings))
    how = settings(
        max_examples=runs,
        database=None,
        deadline=None,
        derandomize=False,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    try:
        return tuple(find(drawn, fails, settings=how, random=Random(seed)))  # noqa: S311  # no secret
    except (NoSuchExample, Enough):
        return None
