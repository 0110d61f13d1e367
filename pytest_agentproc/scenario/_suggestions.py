"""Owns how an unknown word is answered: the nearest known one, or the right place of a word from elsewhere."""

from __future__ import annotations

from difflib import get_close_matches
from itertools import islice
from typing import TYPE_CHECKING

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


def join_choices(options: Iterable[str], last: str = "or") -> str:
    """List options in words: `a, b or c`."""
    listed = list(options)
    return listed[0] if len(listed) == 1 else f"{', '.join(listed[:-1])} {last} {listed[-1]}"


def describe_unknown_word(
    what: str, word: str, options: Iterable[str], elsewhere: Mapping[str, str] | None = None
) -> str:
    """Say that a word is unknown, and which one was probably meant; `elsewhere` has the answers to words of others."""
    listed = list(options)
    shown = shorten_text(word)
    if elsewhere and word in elsewhere:
        return f'unknown {what} "{shown}": {elsewhere[word]}'
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


REMEDY_BY_COMMAND_WORD = map_words_to_remedy(
    "a scenario starts no command: every process is a fake, its script says what it does",
    ("args", "argv", "bash", "cmd", "command", "exec", "executable", "program", "run", "shell", "system"),
)
"""Where somebody wants to start a program, which no scenario can."""

REMEDY_BY_UNKNOWN_STEP = {
    **REMEDY_BY_COMMAND_WORD,
    **map_words_to_remedy("write silence", ("delay", "idle", "pause", "sleep", "wait")),
    **map_words_to_remedy("write say", ("echo", "output", "print", "stdout", "write")),
    **map_words_to_remedy("write when", ("catch", "on", "trap")),
    "crash": "write die",
    "signal": "write die, or kill for a child",
    "stderr": "write raw with to: stderr",
    "fork": "write spawn",
    **map_words_to_remedy("write ask", ("can_use_tool", "hook", "permission", "request_permission")),
    "do": 'it belongs to a when, without a "-" before it',
}
"""What is written for a step."""
