"""Owns how times are shown: readable, exact to the nanosecond; refuses to know which clock they are on."""

from __future__ import annotations

__all__ = ["duration", "instant"]

_UNITS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"))


def instant(ns: int) -> str:
    """Show nanoseconds as exact seconds: `120 s`, `0.25 s`, `120.000000001 s`."""
    return f"{_decimal(ns, 1_000_000_000)} s"


def duration(ns: int) -> str:
    """Show nanoseconds exactly in the largest unit that they fill: `120 s`, `250 ms`, `1 ns`."""
    for size, unit in _UNITS:
        if abs(ns) >= size:
            return f"{_decimal(ns, size)} {unit}"
    return f"{ns} ns" if ns else "0 s"


def _decimal(ns: int, size: int) -> str:
    whole, rest = divmod(abs(ns), size)
    fraction = str(rest).zfill(len(str(size)) - 1).rstrip("0")
    return ("-" if ns < 0 else "") + str(whole) + (f".{fraction}" if fraction else "")
