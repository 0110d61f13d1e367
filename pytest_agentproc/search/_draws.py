"""Owns Hypothesis: settings drawn near the policy's own limits, and the smallest that still fails. Plays nothing."""

from __future__ import annotations

from itertools import permutations
from random import Random
from typing import TYPE_CHECKING, Any

from pytest_agentproc.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pytest_agentproc.scenario import OpenValue, OpenValueChoice


_MILLISECOND_NS = 1_000_000
_OFFSETS_AROUND_A_LIMIT = ("", " - 1ms", " + 1ms")


class SearchTimeOver(BaseException):  # no Exception: Hypothesis would take one for a failure, and shrink it
    """The time for a search is over."""


_SHORT_TIMES_TO_TRY = ("0s", "1ms", "1s", "10s")
_FIRST_DRAW_NEAR_CANDIDATES, _FIRST_DRAW_NEAR_LIMIT_END, _DRAW_FOR_ANY_TIME = 2, 5, 7
"""Of eight draws of a time those below are the lower bound, those from here on land at an end, and this is any."""
_UNIT_NAMES_AND_NANOSECONDS = (("s", 1_000_000_000), ("ms", _MILLISECOND_NS), ("us", 1000), ("ns", 1))


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


def list_candidates(opening: OpenValue, limits: Mapping[str, int | None], names: Sequence[str]) -> list[str]:
    """List the values of a range at which something may turn over: its bounds, and about the limits in it.

    Args:
        opening: a `between`.
        limits: the supervisor's limits, as whole numbers.
        names: the limits that matter.
    """
    bounds = opening.evaluate_bounds(limits)
    if bounds is None:
        return []
    texts = [opening.options[0]]
    if opening.kind == "time":
        on = [name for name in names if limits[name] is not None]
        texts += [f"{name}{near}" for name in on for near in _OFFSETS_AROUND_A_LIMIT]
        texts += [f"2 * {name}" for name in on]
        texts += [f"{limit} - {other}" for limit, other in permutations(on, 2)]
        texts += _SHORT_TIMES_TO_TRY
    elif opening.kind == "size":
        texts += [f"max_line_bytes{near}" for near in ("", " - 1 B", " + 1 B")]
    texts.append(opening.options[1])
    found: dict[int, str] = {}
    for text in texts:
        worth = opening.evaluate_choice_text(text, limits)
        if worth is not None and bounds[0] <= worth <= bounds[1]:
            found.setdefault(worth, text)
    return list(found.values())


def _make_value_strategy(opening: OpenValue, limits: Mapping[str, int | None]) -> Any:
    """Give the strategy of one opening that is no time; of `some_of` none or one alone is as likely as any others."""
    from hypothesis import strategies as st

    indices = range(len(opening.options))
    if opening.word == "one_of":
        return st.sampled_from(indices)
    if opening.word == "any_order":
        return st.permutations(indices).map(tuple)
    if opening.word == "some_of":
        alone = st.sampled_from(indices).map(lambda index: (index,))
        taken = st.lists(st.booleans(), min_size=len(indices), max_size=len(indices))
        any_of_them = taken.map(lambda which: tuple(index for index in indices if which[index]))
        return st.one_of(st.just(()), alone, any_of_them, any_of_them)
    bounds = opening.evaluate_bounds(limits)
    if bounds is None:
        return st.just(opening.options[0])
    if opening.kind == "size":
        return st.sampled_from(list_candidates(opening, limits, ()))
    return st.integers(*bounds).map(str)


class _RandomTimeDrawer:
    """Strategies of the times of one setting, in the order of the file.

    Two in eight are the lower bound, three are about a limit, two have the next step come about the instant at which
    a limit ends that began at an earlier one, one is any.
    """

    def __init__(self, limits: Mapping[str, int | None], names: Sequence[str], draw: Callable[[Any], Any]) -> None:
        self._limits = limits
        self._lengths = [length for name in names if (length := limits[name]) is not None]
        self._draw = draw
        self._instants = [0]
        self._now: dict[int, int] = {}

    def draw_time(self, opening: OpenValue, near: Sequence[str], track: int) -> str:
        """Draw one time; `near` are its candidates, and on its `track` it follows those that were drawn before."""
        from hypothesis import strategies as st

        bounds = opening.evaluate_bounds(self._limits)
        if bounds is None or not near:
            return opening.options[0]
        way, now = self._draw(st.integers(0, 7)), self._now.get(track, 0)
        text = ""
        if way < _FIRST_DRAW_NEAR_CANDIDATES:
            text = opening.options[0]
        elif way == _DRAW_FOR_ANY_TIME:
            low, high = -(-bounds[0] // _MILLISECOND_NS), bounds[1] // _MILLISECOND_NS
            text = f"{self._draw(st.integers(low, high))}ms" if low <= high else ""
        elif way >= _FIRST_DRAW_NEAR_LIMIT_END:
            text = self._draw_near_limit_end(bounds, now)
        text = text or self._draw(st.sampled_from(near))
        self._now[track] = now + (opening.evaluate_choice_text(text, self._limits) or 0)
        self._instants.append(self._now[track])
        return text

    def _draw_near_limit_end(self, bounds: tuple[int, int], now: int) -> str:
        """Draw a limit and the step at which it began; give the time until just before, at or after its end."""
        from hypothesis import strategies as st

        began = self._draw(st.sampled_from(self._instants))
        about = self._draw(st.sampled_from((0, -_MILLISECOND_NS, _MILLISECOND_NS)))
        ends = (began + length + about - now for length in self._lengths)
        fitting = [end for end in ends if bounds[0] <= end <= bounds[1]]
        return format_exact_time(self._draw(st.sampled_from(fitting))) if fitting else ""


def format_exact_time(nanoseconds: int) -> str:
    """Write a time exactly, in the largest unit that it fills."""
    unit, worth = next(unit for unit in _UNIT_NAMES_AND_NANOSECONDS if nanoseconds % unit[1] == 0)
    return f"{nanoseconds // worth}{unit}"


def _make_setting_strategy(
    openings: Sequence[OpenValue], limits: Mapping[str, int | None], names: Sequence[str], tracks: Sequence[int]
) -> Any:
    """Give the strategy of whole settings."""
    from hypothesis import strategies as st

    near = [list_candidates(opening, limits, names) if opening.kind == "time" else [] for opening in openings]
    others = [None if opening.kind == "time" else _make_value_strategy(opening, limits) for opening in openings]

    @st.composite
    def setting(draw: Callable[[Any], Any]) -> tuple[OpenValueChoice, ...]:
        times = _RandomTimeDrawer(limits, names, draw)
        return tuple(
            times.draw_time(opening, texts, track) if other is None else draw(other)
            for opening, texts, other, track in zip(openings, near, others, tracks, strict=True)
        )

    return setting()


def find_smallest_failure(
    openings: Sequence[OpenValue],
    limits: Mapping[str, int | None],
    names: Sequence[str],
    tracks: Sequence[int],
    fails: Callable[[tuple[OpenValueChoice, ...]], bool],
    *,
    runs: int,
    seed: int,
) -> tuple[OpenValueChoice, ...] | None:
    """Draw settings until one fails, and shrink that; None: none failed.

    Args:
        openings: the open values.
        limits: the supervisor's limits, as whole numbers.
        names: the limits about which times are drawn.
        tracks: for each opening its part of the file. The caller's part and the agent's part begin at one instant, and
            continue side by side.
        fails: whether a setting fails. It raises `SearchTimeOver` when there is no time left.
        runs: the most settings that are drawn. Shrinking has as many of its own.
        seed: the same seed draws the same settings.
    """
    from hypothesis import HealthCheck, Phase, find, settings
    from hypothesis.errors import NoSuchExample

    drawn = _make_setting_strategy(openings, limits, names, tracks)
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
    except (NoSuchExample, SearchTimeOver):
        return None
