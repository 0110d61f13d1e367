"""Owns `agentproc time`: any command line in virtual time. Becomes the coordinator, and does nothing after it."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from pytest_agentproc.clock.preload import find_coordinator

if TYPE_CHECKING:
    import argparse


HELP_TEXT = """\
The command and all programs that it starts live in one virtual time, which moves only when all of them wait. A sleep of
an hour is over at once, and a limit of 180 s ends exactly 180 s after it began. Any language does: Python, Node, Rust,
C, perl, bash, Java, and on x86-64 also Go, Bun, static and musl programs. At the end the virtual and the real time are
printed on stderr. Fakes that `agentproc fake` has made follow the same time, whatever their --scale, and live for a day
of it at least, whatever their --lifetime.

Go, Bun, static and musl programs are traced (ptrace). AGENTPROC_CLOCK_TRACE=0 switches that off. Setuid and 32-bit
programs, and those that may not be traced, cannot be reached. While one of them runs, time passes as on the machine,
and its name is printed. The same is true for a program that waits for something outside, such as a server that was
started before. Programs that the command leaves behind are killed at its end, and named.

With --explain each jump of time is a row on stderr: the instant, the jump, who held time there and for how many
milliseconds of the machine, and whose deadline comes next.

exit codes: that of the command, 128 + n if signal n ended it; 127 or 126 if it could not be started; 2 if virtual time
is not to be had here; 3 if the coordinator failed or was killed.

examples:
  agentproc time -- sleep 3600                            # prints: 3600 s of virtual time in 0.01 s
  agentproc time --explain -- sh -c "sleep 5; sleep 60"   # who holds time, where, and for how long
  agentproc fake hang-after-output --dir fakes
  PATH=$PWD/fakes:$PATH agentproc time -- npx vitest run
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "--explain", action="store_true", help="print a row for each jump of time: who held it, who is next"
    )
    parser.add_argument("command", nargs="+", metavar="COMMAND", help="after --: the command and its arguments")


def run_command(options: argparse.Namespace) -> int:
    """Become the coordinator of the command.

    Raises:
        UsageError: there is no coordinator and none can be compiled.
    """
    program = str(find_coordinator())
    sys.stdout.flush()
    sys.stderr.flush()
    words = ["--explain", *options.command] if options.explain else options.command
    os.execv(program, [program, *words])  # noqa: S606  # it takes the place of this process
