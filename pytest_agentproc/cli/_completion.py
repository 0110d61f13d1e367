"""Owns what a shell is offered for the next word of a line. Loaded only when a shell asks, by argcomplete.

argcomplete asks the installed version at each Tab, so that its scenarios, rules and words are offered. A script that is
written once, as shtab makes it, would know only options, and grow old.
"""

from __future__ import annotations

import argparse
import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pytest_agentproc.cli._commands import MODULE_AND_PURPOSE_BY_COMMAND

if TYPE_CHECKING:
    from collections.abc import Iterable


class _CompletedParser(argparse.ArgumentParser):
    """A parser whose arguments know their words: argcomplete asks an action for its completer."""

    def add_argument(self, *names: Any, **settings: Any) -> argparse.Action:
        """Add an argument."""
        action = super().add_argument(*names, **settings)
        if action.dest in _WORD_LISTS or action.dest == "words":
            vars(action)["completer"] = self._complete_word
        return action

    def _complete_word(self, prefix: str, action: argparse.Action, **_: object) -> list[str]:
        kind = self.prog if action.dest == "words" else action.dest
        words = [word for word in _WORD_LISTS.get(kind, list)() if word.startswith(prefix)]
        if action.dest == "scenario":
            from argcomplete.completers import FilesCompleter

            words += FilesCompleter(("yaml", "yml"))(prefix)
        return words


def _list_explained_words() -> Iterable[str]:
    from pytest_agentproc.reference import list_entries

    return (entry.name for entry in list_entries())


def _list_scenario_ids() -> Iterable[str]:
    from pytest_agentproc.corpus import index_corpus_files

    return index_corpus_files()


def _list_rules() -> Iterable[str]:
    from pytest_agentproc.vocabulary import RULES

    return RULES


def _list_families() -> Iterable[str]:
    from pytest_agentproc.vocabulary import BUG_FAMILIES

    return BUG_FAMILIES


def _list_dialects() -> Iterable[str]:
    from pytest_agentproc.vocabulary import DIALECTS

    return DIALECTS


_WORD_LISTS = {
    "agentproc explain": _list_explained_words,
    "dialect": _list_dialects,
    "family": _list_families,
    "rule": _list_rules,
    "scenario": _list_scenario_ids,
}
"""The words of each argument, by its name; those of an argument `words` by the command."""


def complete_line() -> None:
    """Answer the shell that asks, and end the process; return if argcomplete is not installed here."""
    try:
        import argcomplete
    except ImportError:
        return
    parser = _CompletedParser(prog="agentproc", allow_abbrev=False)
    parser.add_argument("--version", action="store_true")
    commands = parser.add_subparsers()
    commands.add_parser("help").add_argument("command", choices=MODULE_AND_PURPOSE_BY_COMMAND)
    asked = os.environ.get("COMP_LINE", "").split()[1:2]
    for name, (module, purpose) in MODULE_AND_PURPOSE_BY_COMMAND.items():
        command = commands.add_parser(name, help=purpose, prog=f"agentproc {name}", allow_abbrev=False)
        if asked == [name]:
            import_module(module).add_arguments(command)
    argcomplete.autocomplete(parser, always_complete_options="long")
