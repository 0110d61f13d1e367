"""Owns how an unknown word is answered: the nearest known one, or the right place of a word from elsewhere."""

from __future__ import annotations

import re
from difflib import get_close_matches
from itertools import islice
from typing import TYPE_CHECKING

from pytest_agentproc.vocabulary import find_remedy

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


_MAX_SHORT_TEXT_CHARACTERS = 60
_MAX_MESSAGE_CHARACTERS = 600
_MAX_COMPARED_OPTIONS = 500
_MAX_LISTED_OPTIONS = 40


def find_nearest_option(word: str, options: Iterable[str]) -> str | None:
    """Find the option that was probably meant, whatever its case."""
    by_lower = {option.lower(): option for option in islice(options, _MAX_COMPARED_OPTIONS)}
    found = get_close_matches(word.lower()[:_MAX_SHORT_TEXT_CHARACTERS], by_lower, n=1, cutoff=0.6)
    return by_lower[found[0]] if found else None


def find_meant_option(word: str, options: Iterable[str], kind: str = "") -> str | None:
    """Find the option that was probably meant: by the meaning of the word, else by its spelling."""
    listed = list(options)
    remedy = find_remedy(kind, word)
    if remedy:
        return next((name for name in re.findall(r"\w+", remedy) if name in listed), None)
    return find_nearest_option(word, listed)


def join_choices(options: Iterable[str], last: str = "or") -> str:
    """List options in words: `a, b or c`."""
    listed = list(options)
    return listed[0] if len(listed) == 1 else f"{', '.join(listed[:-1])} {last} {listed[-1]}"


def describe_unknown_word(
    what: str, word: str, options: Iterable[str], elsewhere: Mapping[str, str] | None = None, kind: str = ""
) -> str:
    """Say that a word is unknown, and which one was probably meant: a meaning wins over a near spelling.

    Args:
        what: what messages call the word.
        word: it.
        options: every known word.
        elsewhere: remedies for known words that belong to another place.
        kind: the kind of word, as the table of synonyms names it.
    """
    listed = list(options)
    shown = shorten_text(word)
    remedy = (elsewhere or {}).get(word) or find_remedy(kind, word)
    if remedy:
        return f'unknown {what} "{shown}": {remedy}'
    meant = find_nearest_option(word, listed)
    if meant is not None:
        return f'unknown {what} "{shown}": did you mean "{meant}"?'
    known = ", ".join(listed[:_MAX_LISTED_OPTIONS]) + (" ..." if len(listed) > _MAX_LISTED_OPTIONS else "")
    return f'unknown {what} "{shown}": known {"is" if len(listed) == 1 else "are"} {known}'


def shorten_text(text: str) -> str:
    """Cut a text that is too long for a message."""
    return text if len(text) <= _MAX_SHORT_TEXT_CHARACTERS else f"{text[: _MAX_SHORT_TEXT_CHARACTERS - 3]}..."


def escape_and_shorten(message: str) -> str:
    """Make a message fit for a terminal: escape unprintable characters, and cut an endless text."""
    if not message.isprintable():
        message = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in message)
    return message if len(message) <= _MAX_MESSAGE_CHARACTERS else f"{message[: _MAX_MESSAGE_CHARACTERS - 3]}..."


def map_words_to_remedy(remedy: str, them: Iterable[str]) -> dict[str, str]:
    """Give the same answer to several words."""
    return dict.fromkeys(them, remedy)
