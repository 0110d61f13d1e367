"""Owns how a command's line is read, and how a command asks before it writes. Knows no command.

`agentproc COMMAND --help` has the command's purpose, its arguments, and its `HELP_TEXT` (exit codes, examples).
"""

from __future__ import annotations

import argparse
import locale
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from pytest_agentproc.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import ModuleType

    from pytest_agentproc.capture import RedactedSecret


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


def get_output_encoding() -> str:
    """Give the encoding in which this process prints, and each Python that it starts: PYTHONIOENCODING is for all."""
    return getattr(sys.__stdout__, "encoding", None) or locale.getpreferredencoding(do_setlocale=False)


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


def add_consent_option(parser: argparse.ArgumentParser) -> None:
    """Add the option of scripts."""
    parser.add_argument("--yes", action="store_true", help="write without a question; needed if stdin is no terminal")


def require_answerer() -> None:
    """See that somebody can be asked, before anything runs or is read.

    Raises:
        UsageError: stdin is no terminal.
    """
    with suppress(OSError):
        if os.isatty(0):
            return
    raise UsageError(
        "stdin is no terminal, so nobody can be asked to look before the files are written",
        "add --yes to write them without a question, and read them before you give them away",
    )


def ask_before_writing(command: str, files: str, redacted: Sequence[RedactedSecret], preview: Iterable[str]) -> bool:
    """Say what is replaced, and ask until the answer is yes or no. No answer is no.

    Args:
        command: who asks.
        files: the files that would be written.
        redacted: what is replaced in them.
        preview: the lines to look at; they are made only if the user wants to look.
    """
    import termios

    for line in describe_redactions(redacted):
        sys.stderr.write(f"agentproc {command}: {line}\n")
    with suppress(termios.error):
        termios.tcflush(0, termios.TCIFLUSH)  # what was typed for the program is no answer
    while True:
        sys.stderr.write(
            f"agentproc {command}: write {files}? A secret that no rule knows may be in it. [y]es, [n]o, [l]ook: "
        )
        sys.stderr.flush()
        try:
            answer = sys.stdin.readline()
        except KeyboardInterrupt:
            answer = ""
        if answer.strip().lower() in ("y", "yes"):
            return True
        if not answer or answer.strip().lower() in ("n", "no"):
            sys.stderr.write(f"agentproc {command}: nothing was written\n")
            return False
        if answer.strip().lower() in ("l", "look"):
            sys.stderr.writelines(f"{_make_printable(line)}\n" for line in preview)


def _make_printable(line: str) -> str:
    """Take out what would command the terminal."""
    return "".join(letter if letter.isprintable() else "?" for letter in line)


def describe_redactions(redacted: Sequence[RedactedSecret]) -> list[str]:
    """Say for each secret its kind, and how often it stood where."""
    return [f"redacted {secret}" for secret in redacted] or ["redacted nothing: no secret was found"]
