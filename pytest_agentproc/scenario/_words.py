"""Owns how an unknown word is answered: the nearest known one, or all of them. Refuses to know what words mean."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["choices", "nearest", "shorten", "unknown"]

_LONGEST = 60


def nearest(word: str, options: Iterable[str]) -> str | None:
    """Find the option that was probably meant, whatever its case."""
    by_lower = {option.lower(): option for option in options}
    found = get_close_matches(word.lower()[:_LONGEST], by_lower, n=1, cutoff=0.6)
    return by_lower[found[0]] if found else None


def choices(options: Iterable[str], last: str = "or") -> str:
    """List options in words: `a, b or c`."""
    listed = list(options)
    return listed[0] if len(listed) == 1 else f"{', '.join(listed[:-1])} {last} {listed[-1]}"


def unknown(what: str, word: str, options: Iterable[str]) -> str:
    """Say that a word is unknown, and which one was probably meant."""
    listed = list(options)
    shown = shorten(word)
    meant = nearest(word, listed)
    if meant is not None:
        return f'unknown {what} "{shown}": did you mean "{meant}"?'
    return f'unknown {what} "{shown}": known {"is" if len(listed) == 1 else "are"} {", ".join(listed)}'


def shorten(text: str) -> str:
    """Cut a text that is too long for a message."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
