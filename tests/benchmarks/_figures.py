"""Summaries of repeated numbers: median, spread, ratios round by round. Values only; measures nothing."""

from __future__ import annotations

import statistics
from typing import Any, Protocol

__all__ = ["Part", "Samples", "compute_ratios", "summarize_values"]


class Samples:
    """The cost of one thing, round by round: in each round the median of its repetitions counts."""

    def __init__(self) -> None:
        self.rounds: list[float] = []

    def add(self, repetitions: list[float]) -> None:
        """Take one round."""
        self.rounds.append(statistics.median(repetitions))


def compute_ratios(above: Samples, below: Samples) -> list[float]:
    """Divide round by round: a slowdown of the whole machine slows both."""
    return [upper / lower for upper, lower in zip(above.rounds, below.rounds, strict=True)]


def summarize_values(values: list[float]) -> dict[str, Any]:
    """Sum values up as median, p10, p90 and their count."""
    ordered = sorted(values)
    last = len(ordered) - 1
    return {
        "median": _round_to_four_digits(statistics.median(ordered)),
        "p10": _round_to_four_digits(ordered[round(last * 0.1)]),
        "p90": _round_to_four_digits(ordered[round(last * 0.9)]),
        "rounds": len(ordered),
    }


def _round_to_four_digits(value: float) -> float:
    return float(f"{value:.4g}")


class Part(Protocol):
    """One part of the cost benchmark."""

    name: str

    def sample(self) -> None:
        """Measure everything of this part once, its two sides in turn."""

    def report(self) -> dict[str, Any]:
        """Give the figures by their names in the JSON."""

    def close(self) -> None:
        """End all started processes and remove all written files."""
