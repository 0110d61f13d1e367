"""Owns `explore`: how far each piece of a scenario can be moved, settings of several, and the least that fails."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from itertools import permutations
from random import Random
from typing import TYPE_CHECKING

from pytest_agentproc.search._draws import Enough
from pytest_agentproc.search._exploration import Exploration, Setting
from pytest_agentproc.search._hunt import Hunt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_agentproc.harness import ScenarioRunner
    from pytest_agentproc.scenario import Scenario
    from pytest_agentproc.search._hunt import Searched
    from pytest_agentproc.vocabulary import Subject


Pools = Callable[[int], list[str]]
"""The possible values of each piece, by its number: see `_pool`."""

_MILLISECOND = 1_000_000
_SECOND = 1_000_000_000
_OFTEN = 4
"""A repeated event may happen this many times as often, or for this many times as long."""
_TOGETHER = (1, 2, 2, 3)
"""So many pieces are moved at a time."""
_HALF, _FAR, _TRIES = 0.5, 4, 3
_PAIRED = 4
"""Of the limits on silence, progress and runtime, at most this number; their differences are tried, too."""


def explore(
    scenario: Scenario,
    subject: Subject,
    *,
    runs: int,
    seed: int,
    seconds: float = 3600.0,
    shrinking: float = 20.0,
    lab: ScenarioRunner | None = None,
    backend: str = "asyncio",
) -> Searched:
    """Move the times, cuts and orders of a scenario as far as its expectations allow, and see who breaks one of them.

    Args:
        scenario: without open values.
        subject: the supervisor.
        runs: the most settings that are played.
        seed: the same seed draws the same settings.
        seconds: after this real time the search ends.
        shrinking: the real time for bringing a find nearer to the file.
        lab: the runner of every supervisor but the reference supervisor.
        backend: its event loop, "asyncio" or "trio".

    Raises:
        NotApplicable: the supervisor lacks a limit without which the scenario has no meaning.
    """
    hunt = _Hunt(Exploration(scenario, subject, lab, backend), seconds, shrinking)
    with suppress(Enough):
        _look(hunt, runs, Random(seed))  # noqa: S311  # no secret
    return hunt.came()


class _Hunt(Hunt[Setting]):
    """A hunt that also asks whether settings are within what the file expects."""

    def __init__(self, made: Exploration, seconds: float, shrinking: float) -> None:
        super().__init__(made, seconds, shrinking)
        self.made = made

    def counts(self, setting: Setting) -> bool:
        """Say whether a setting is within what the file expects; raises `Enough` when the time is over."""
        self.require_time()
        return self.made.counts(setting)


def _look(hunt: _Hunt, runs: int, random: Random) -> None:
    made = hunt.made
    if hunt.fails(made.original) or not hunt.counts(made.original):
        return
    pools = cache(lambda index: _pool(hunt, index))
    found = next(filter(hunt.fails, _settings(made.original, pools, runs - 1, random)), None)
    for index, text in enumerate(made.original):
        if found is not None and found[index] != text:
            found = _nearer(hunt, found, index, pools(index))


def _nearer(hunt: _Hunt, setting: Setting, index: int, pool: list[str]) -> Setting:
    """Bring one piece of a setting back to the file, or as near to it as it still fails."""

    def made(text: str) -> Setting:
        return (*setting[:index], text, *setting[index + 1 :])

    best = next((made(text) for text in pool[: pool.index(setting[index])] if hunt.fails(made(text))), setting)
    movable, limits = hunt.made.movables[index], hunt.made.limits
    now, far = movable.evaluate_time(limits), movable.evaluate_text(best[index], limits)
    if now is None or far is None or far == now:
        return best
    return made(
        movable.write_time(
            _reach([far, now], lambda worth: hunt.fails(made(movable.write_time(worth, limits))), _MILLISECOND), limits
        )
    )


def _settings(original: Setting, pools: Pools, runs: int, random: Random) -> Iterator[Setting]:
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
    for _ in range(_TRIES * runs if moving else 0):
        if len(seen) > runs:
            return
        made = list(original)
        for index in random.sample(moving, min(len(moving), random.choice(_TOGETHER))):
            pool = pools(index)[1:]
            made[index] = random.choice(pool[-_FAR:] if random.random() < _HALF else pool)
        setting = tuple(made)
        if setting not in seen:
            seen.add(setting)
            yield setting


def _pool(hunt: _Hunt, index: int) -> list[str]:
    """List the texts for one piece, that of the file first, then what is nearest to it.

    A time is tried at the limits and about them, as far as the file's expectations allow it if nothing else is moved.
    Where that ends is found to the millisecond if it is a time of the file's; there are many places for pauses.
    """
    made = hunt.made
    movable = made.movables[index]
    now = movable.evaluate_time(made.limits)
    if now is None:
        return [movable.text, *movable.options]

    def is_allowed(worth: int) -> bool:
        setting = list(made.original)
        setting[index] = movable.write_time(worth, made.limits)
        return hunt.counts(tuple(setting))

    tried = _worths(made, now)
    if movable.repeats:
        tried = [worth for worth in tried if now <= worth * _OFTEN <= now * _OFTEN**2]
    step = _MILLISECOND if movable.kind == "time" else None
    above = _reach([now, *(worth for worth in tried if worth > now)], is_allowed, step)
    below = _reach([now, *(worth for worth in reversed(tried) if worth < now)], is_allowed, step)
    inside = {worth for worth in tried if below <= worth <= above}
    inside |= {above, below, (now + above) // 2, (now + below) // 2} - {now}
    if made.slight and not movable.repeats:
        inside |= {worth for worth in (now - made.slight, now + made.slight) if worth >= 0}
    ordered = sorted(inside, key=lambda worth: (abs(worth - now), worth))
    return [movable.text, *(movable.write_time(worth, made.limits) for worth in ordered if worth != now)]


def _worths(made: Exploration, now: int) -> list[int]:
    """List the times at which something may turn over, in order."""
    on = [limit for name in made.names if (limit := made.limits[name]) is not None]
    exact = [0, _MILLISECOND, _SECOND, 10 * _SECOND, now // 2, 2 * now, *on, *(2 * limit for limit in on)]
    exact += [instant - other for instant, other in permutations(on[:_PAIRED], 2)]
    near = [worth + by for worth in (now, *on) for by in (-_MILLISECOND, _MILLISECOND)]
    return sorted({worth for worth in (*exact, *near) if worth >= 0 and worth != now})


def _reach(worths: list[int], is_allowed: Callable[[int], bool], step: int | None) -> int:
    """Find the last of a row of times that is allowed, and from there on as exactly as `step` says; the first one is.

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
