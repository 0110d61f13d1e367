"""Owns `agentproc explain`: one word of a scenario or a verdict, as the reference has it. Runs on any platform."""

from __future__ import annotations

import sys
import textwrap
from shutil import get_terminal_size
from typing import TYPE_CHECKING

from pytest_agentproc.errors import UsageError
from pytest_agentproc.reference import find_entries, find_meanings, format_for_terminal, list_entries

if TYPE_CHECKING:
    import argparse


HELP_TEXT = """\
A word is a rule, an outcome, a verdict, a level, a limit, a step, a key, a signal, a defect or a bug family. A key
that stands below another key has both names, such as `turns: elapsed`; its last name alone is enough. For a word of
another tool, such as `timeout`, it says what to write.

exit codes:
  0  the word is explained
  2  there is no such word

examples:
  agentproc explain T1                # a rule: what it demands, why, and what breaks it
  agentproc explain undecided         # a verdict: what it means, and what to do
  agentproc explain drip              # a step, with an example that runs
  agentproc explain                   # every word
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("words", nargs="*", metavar="WORD", help="the word; without it all words are listed")


def run_command(options: argparse.Namespace) -> int:
    """Print the text of a word, or the list of words.

    Raises:
        UsageError: there is no such word.
    """
    width = min(get_terminal_size().columns, 100)
    word = " ".join(options.words)
    if not word:
        sys.stdout.write(_format_list_of_words(width))
        return 0
    found, near = find_entries(word)
    if not found and len(options.words) > 1 and all(find_entries(each)[0] for each in options.words):
        found = [entry for each in options.words for entry in find_entries(each)[0]]
    meanings = find_meanings(word)
    if not found:
        spelled = f"did you mean {', '.join(near)}?" if near else "agentproc explain lists all words"
        raise UsageError(f"there is no word {word!r}", "\n".join(meanings) or spelled)
    shown = [format_for_terminal(entry, width) for entry in found]
    if meanings:
        shown.append("".join(f"{word} {line}\n" for line in meanings))
    sys.stdout.write("\n".join(shown))
    return 0


def _format_list_of_words(width: int) -> str:
    """List the words of each kind; keys below others are left out."""
    kinds: dict[str, list[str]] = {}
    for entry in list_entries():
        if ": " not in entry.name:
            kinds.setdefault(entry.kind, []).append(entry.name)
    lines = [
        line
        for kind, names in kinds.items()
        for line in textwrap.wrap(
            f"{kind}: {', '.join(names)}", width, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False
        )
    ]
    return "\n".join(lines) + "\n"
