"""Owns `agentproc schema`: the language for editors. Starts no process and runs on any platform."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_agentproc.cli._calls import write_output_file
from pytest_agentproc.scenario import SCHEMA_MODELINE_FORMAT, format_schema

if TYPE_CHECKING:
    import argparse


HELP_TEXT = """\
An editor that speaks YAML offers the steps and keys, with their words, to a file whose first line names the schema.

exit codes:
  0  the schema is written, or printed
  2  it cannot be written

examples:
  agentproc schema --out agentproc.schema.json   # and prints the line for scenarios beside it
  agentproc schema | jq '.definitions.step.properties | keys'
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("--out", metavar="FILE", help="where it goes, over what is there; printed without it")


def run_command(options: argparse.Namespace) -> int:
    """Write the schema, or print it.

    Raises:
        UsageError: it cannot be written.
    """
    text = format_schema()
    if options.out is None:
        sys.stdout.write(text)
        return 0
    write_output_file(options.out, text, replaces=True)
    modeline = SCHEMA_MODELINE_FORMAT.format(Path(options.out).name)
    sys.stdout.write(f"{options.out}\nthe first line of a scenario beside it: {modeline}\n")
    return 0
