"""Owns the way from a command line to a command, and from its errors to an exit code. Loads only what was asked for."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from typing import TYPE_CHECKING

from pytest_agentproc.cli._commands import COMMANDS
from pytest_agentproc.errors import ScenarioError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: the arguments; None takes those of this process.

    Returns:
        the exit code: 2 for a command line that cannot be meant and for input that cannot be read.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    parser = argparse.ArgumentParser(prog="agentproc", allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (place, about) in COMMANDS.items():
        command = commands.add_parser(name, help=about, description=about)
        if words[:1] == [name]:
            import_module(place).declare(command)
    options = parser.parse_args(words)
    try:
        return int(import_module(COMMANDS[options.command][0]).run(options))
    except (ScenarioError, UsageError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
