"""Owns the table of commands; knows nothing of what they do."""

from __future__ import annotations

import argparse
import importlib
import sys
from typing import TYPE_CHECKING

from pytest_agentproc.errors import AgentprocError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["COMMANDS", "main"]

COMMANDS = {"record": ("pytest_agentproc.cli._record", "run a program and write a scenario of what it did")}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; give the exit code."""
    parser = argparse.ArgumentParser(prog="agentproc")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (module, told) in COMMANDS.items():
        importlib.import_module(module).declare(commands.add_parser(name, help=told))
    options = parser.parse_args(argv)
    try:
        code: int = importlib.import_module(COMMANDS[options.command][0]).run(options)
    except AgentprocError as error:
        sys.stderr.write(f"agentproc {options.command}: {error}\n")
        return 2
    return code
