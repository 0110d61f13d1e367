"""Owns `explore`: how far each piece of a scenario can be moved, settings of several, and the least that fails."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from itertools import permutations
from random import Random
from typing import TYPE_CHECKING

from pytest_agentproc.search._draws import SearchTimeOver
from pytest_agentproc.search._exploration import MovedSettings, PieceTexts
from pytest_agentproc.search._trials import TrialsWithinTime

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_agentproc.harness import ScenarioRunner
    from pytest_agentproc.scenario import Scenario
    from pytest_agentproc.search._trials import SearchResult
    from pytest_agentproc.vocabulary import Subject


TextsForPieceIndex = Callable[[int], list[str]]
"""The possible values of each piece, by its number: see `_list_piece_texts`."""

_MILLISECOND_NS = 1_000_000
_SECOND_NS = 1_000_000_000
_MAX_REPEAT_FACTOR = 4
"""A repeated event may happen this many times as often, or for this many times as long."""
_POSSIBLE_NUMBERS_OF_MOVES = (1, 2, 2, 3)
"""So many pieces are moved at a time."""
_PROBABILITY_OF_FAR_MOVE, _NUMBER_OF_FARTHEST_TEXTS, _MAX_SETTINGS_PER_RUN = 0.5, 4, 3
_MAX_LIMITS_TO_PAIR = 4
"""Of the limits on silence, progress and runtime, at most this number; their differences are tried, too."""


def explore(
    scenario: Scenario,
    subject: Subject,
    *,
    runs: int,
    seed: int,
    seconds: float = 3600.0,
    shrinking: float = 20.0,
    runner: ScenarioRunner | None = None,
    backend: str = "asyncio",
    report: Callable[[int], object] = str,
) -> SearchResult:
    """Move the times, cuts and orders of a scenario as far as its expectations allow, and see who breaks one of them.

    The arguments are those of `search`, but the scenario has no open values.

    Raises:
        NotApplicable: the supervisor lacks a limit without which the scenario has no meaning.
    """
    trials = _ExplorationTrials(MovedSettings(scenario, subject, runner, backend), seconds, shrinking, report)
    with suppress(SearchTimeOver):
        _run_exploration(trials, runs, Random(seed))  # noqa: S311  # no secret
    return trials.make_search_result()


class _ExplorationTrials(TrialsWithinTime[PieceTexts]):
    """Trials that also ask whether settings are within what the file expects."""

    def __init__(
        self, exploration: MovedSettings, seconds: float, shrinking: float, report: Callable[[int], object]
    ) -> None:
        super().__init__(exploration, seconds, shrinking, report=report)
        self.exploration = exploration

    def is_within_expectations(self, setting: PieceTexts) -> bool:
        """Say whether a setting is within what the file expects; raises `SearchTimeOver` when the time is over."""
        self.require_time()
        return self.exploration.is_within_expectations(setting)


def _run_exploration(trials: _ExplorationTrials, runs: int, random: Random) -> None:
    exploration = trials.exploration
    if trials.is_failing(exploration.unmoved_texts) or not trials.is_within_expectations(exploration.unmoved_texts):
        return
    pools = cache(lambda index: _list_piece_texts(trials, index))
    found = next(
        filter(trials.is_failing, _generate_settings(exploration.unmoved_texts, pools, runs - 1, random)), None
    )
    for index, text in enumerate(exploration.unmoved_texts):
        if found is not None and found[index] != text:
            found = _move_piece_nearer(trials, found, index, pools(index))


def _move_piece_nearer(trials: _ExplorationTrials, setting: PieceTexts, index: int, pool: list[str]) -> PieceTexts:
    """Bring one piece of a setting back to the file, or as near to it as it still fails."""

    def set_text(text: str) -> PieceTexts:
        return (*setting[:index], text, *setting[index + 1 :])

    best = next(
        (set_text(text) for text in pool[: pool.index(setting[index])] if trials.is_failing(set_text(text))), setting
    )
    movable, limits = trials.exploration.movables[index], trials.exploration.limits
    now, far = movable.evaluate_time(limits), movable.evaluate_replacement_time(best[index], limits)
    if now is None or far is None or far == now:
        return best

    def is_failing(worth: int) -> bool:
        return trials.is_failing(set_text(movable.format_replacement_time(worth, limits)))

    return set_text(
        movable.format_replacement_time(_find_last_allowed([far, now], is_failing, _MILLISECOND_NS), limits)
    )


def _generate_settings(
    original: PieceTexts, pools: TextsForPieceIndex, runs: int, random: Random
) -> Iterator[PieceTexts]:
    """Yield settings in which a few pieces are moved, half of them as far as they can be, or nearly.

    Each piece is moved alone first, the least and as far as it can be.
    """
    order = random.sample(range(len(original)), len(original))
    seen = {original}
    for index in order:
        if len(seen) > runs:
            return
        near, *others = pools(index)[1:] or [original[index]]
        for text in (near, *others[-2:]):
            setting = (*original[:index], text, *original[index + 1 :])
            if setting not in seen and len(seen) <= runs:
                seen.add(setting)
                yield setting
    moving = [index for index in order if len(pools(index)) > 1]
    for _ in range(_MAX_SETTINGS_PER_RUN * runs if moving else 0):
        if len(seen) > runs:
            return
        moved = list(original)
        for index in random.sample(moving, min(len(moving), random.choice(_POSSIBLE_NUMBERS_OF_MOVES))):
            pool = pools(index)[1:]
            moved[index] = random.choice(
                pool[-_NUMBER_OF_FARTHEST_TEXTS:] if random.random() < _PROBABILITY_OF_FAR_MOVE else pool
            )
        setting = tuple(moved)
        if setting not in seen:
            seen.add(setting)
            yield setting


def _list_piece_texts(trials: _ExplorationTrials, index: int) -> list[str]:
    """List the texts for one piece, that of the file first, then what is nearest to it.

    A time is tried at the limits and about them, as far as the file's expectations allow it if nothing else is moved.
    Where that ends is found to the millisecond if it is a time of the file's; there are many places for pauses.
    """
    exploration = trials.exploration
    movable = exploration.movables[index]
    now = movable.evaluate_time(exploration.limits)
    if now is None:
        return [movable.text, *movable.options]

    def is_allowed(worth: int) -> bool:
        setting = list(exploration.unmoved_texts)
        setting[index] = movable.format_replacement_time(worth, exploration.limits)
        return trials.is_within_expectations(tuple(setting))

    tried = _list_times_near_limits(exploration, now)
    if movable.repeats:
        tried = [worth for worth in tried if now <= worth * _MAX_REPEAT_FACTOR <= now * _MAX_REPEAT_FACTOR**2]
    step = _MILLISECOND_NS if movable.kind == "time" else None
    above = _find_last_allowed([now, *(worth for worth in tried if worth > now)], is_allowed, step)
    below = _find_last_allowed([now, *(worth for worth in reversed(tried) if worth < now)], is_allowed, step)
    inside = {worth for worth in tried if below <= worth <= above}
    inside |= {above, below, (now + above) // 2, (now + below) // 2} - {now}
    if exploration.slight_move_limit and not movable.repeats:
        inside |= {
            worth for worth in (now - exploration.slight_move_limit, now + exploration.slight_move_limit) if worth >= 0
        }
    ordered = sorted(inside, key=lambda worth: (abs(worth - now), worth))
    return [
        movable.text,
        *(movable.format_replacement_time(worth, exploration.limits) for worth in ordered if worth != now),
    ]


def _list_times_near_limits(settings: MovedSettings, now: int) -> list[int]:
    """List the times at which something may turn over, in order."""
    on = [limit for name in settings.names if (limit := settings.limits[name]) is not None]
    exact = [0, _MILLISECOND_NS, _SECOND_NS, 10 * _SECOND_NS, now // 2, 2 * now, *on, *(2 * limit for limit in on)]
    exact += [instant - other for instant, other in permutations(on[:_MAX_LIMITS_TO_PAIR], 2)]
    near = [worth + by for worth in (now, *on) for by in (-_MILLISECOND_NS, _MILLISECOND_NS)]
    return sorted({worth for worth in (*exact, *near) if worth >= 0 and worth != now})


def _find_last_allowed(worths: list[int], is_allowed: Callable[[int], bool], step: int | None) -> int:
    """Find the last of these times that is allowed, then go on in steps of `step`; the first time is allowed.

    It is taken that what lies between two that are allowed is allowed, too: each setting is asked for again.
    """
    low, high = 0, len(worths)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_allowed(worths[middle]) else (low, middle)
    if high == len(worths) or step is None:
        return worths[low]
    last, over = worths[low], worths[high]
    while abs(over - last) > step:
        middle = (last + over) // 2 // step * step
        if middle in (last, over):
            break
        last, over = (middle, over) if is_allowed(middle) else (last, middle)
    return last
