"""What every part of the cost benchmark is made of: CPU time, its medians and ratios. Knows nothing of the kit.

CPU time is that of this process and of the children that it has waited for. Other load on the machine hardly changes
it, and no virtual clock does.
"""

from __future__ import annotations

import resource
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = ["Part", "Ratio", "measure_each", "measure_mean"]


def measure_mean(work: Callable[[], object], times: int) -> float:
    """Give the CPU seconds of one call, over so many calls."""
    begin = _read_cpu_seconds()
    for _ in range(times):
        work()
    return (_read_cpu_seconds() - begin) / times


def measure_each(work: Callable[[int], object], count: int) -> float:
    """Give the CPU seconds of one of `count` equal steps, without the start and the end of the work that takes them.

    Args:
        work: takes a number of steps.
        count: how many are measured.
    """
    least = measure_mean(lambda: work(1), 1)
    return (measure_mean(lambda: work(1 + count), 1) - least) / count


def _read_cpu_seconds() -> float:
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


class Ratio(NamedTuple):
    """What one thing costs over another.

    Args:
        above: the name of the first.
        below: the name of the second.
        limit: the largest ratio that is in order; None: there is none.
    """

    above: str
    below: str
    limit: float | None = None


@dataclass
class Part:
    """One part of the cost benchmark: things that are measured in turn, and ratios between them.

    Both sides of a ratio see the same machine, because it is computed in each round.

    Args:
        measures: gives the CPU seconds of each thing.
        ratios: by the names of their figures.
        count_facts: gives the other figures, by their names, at the end.
    """

    measures: Mapping[str, Callable[[], float]]
    ratios: Mapping[str, Ratio]
    count_facts: Callable[[], Mapping[str, float]] = dict

    def __post_init__(self) -> None:
        self._rounds: dict[str, list[float]] = {name: [] for name in self.measures}

    def run_round(self) -> None:
        """Measure each thing once. Every second round goes backwards."""
        names = [*self.measures]
        for name in names[:: -1 if len(self._rounds[names[0]]) % 2 else 1]:
            self._rounds[name].append(self.measures[name]())

    def get_median_seconds(self) -> Iterator[tuple[str, float]]:
        """Give the CPU seconds of each thing."""
        for name, values in self._rounds.items():
            yield name, statistics.median(values)

    def get_median_ratios(self) -> Iterator[tuple[str, float, float | None]]:
        """Give each ratio with its limit."""
        for name, ratio in self.ratios.items():
            pairs = zip(self._rounds[ratio.above], self._rounds[ratio.below], strict=True)
            yield name, statistics.median(above / below for above, below in pairs), ratio.limit
