"""Owns how a command's line is read: its parser, its help, its errors. Knows no command.

`agentproc COMMAND --help` is the command's own docstring (what it does, exit codes, examples) around the arguments.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, NoReturn

from pytest_agentproc.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType


class HelpPrinted(Exception):
    """Help was asked for and has been printed."""


class CommandLineError(Exception):
    """The command line cannot be meant."""


class _RaisingArgumentParser(argparse.ArgumentParser):
    """A parser that raises, so that the door alone decides what a mistake prints and returns."""

    def error(self, message: str) -> NoReturn:
        """Report a mistake, with the way to the help."""
        raise CommandLineError(f"{message}\n{self.prog} --help shows what it takes")

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """End after the help."""
        raise HelpPrinted


def parse_arguments(name: str, about: str, module: ModuleType, words: Sequence[str]) -> argparse.Namespace:
    """Read a command's arguments.

    Args:
        name: the command's name.
        about: its purpose, in one line.
        module: its module: `add_arguments` adds the arguments, and `HELP_TEXT` follows them in its help.
        words: the arguments.

    Raises:
        CommandLineError: they cannot be meant.
        HelpPrinted: the help was asked for, and is printed.
    """
    parser = _RaisingArgumentParser(
        prog=f"agentproc {name}",
        description=f"{about[:1].upper()}{about[1:]}.",
        epilog=getattr(module, "HELP_TEXT", None),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    module.add_arguments(parser)
    return parser.parse_args(list(words))


def write_output_file(path: str, text: str, *, replaces: bool = False) -> None:
    """Write a file that a command makes.

    Args:
        path: where it goes.
        text: its content.
        replaces: whether an older file of that name is replaced.

    Raises:
        UsageError: it cannot be written, or is there already.
    """
    try:
        with open(path, "w" if replaces else "x", encoding="utf-8") as file:  # noqa: PTH123  # it is named as given
            file.write(text)
    except FileExistsError:
        raise UsageError(f"{path} is there already", "choose another name, or remove it") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {os.strerror(error.errno or 0)}", "name another place") from None


def handle_closed_output() -> int:
    """Give the exit code of a command whose reader has left; keep the interpreter silent about that at its end."""
    null = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(null, stream.fileno())
    os.close(null)
    return 141
