"""`agentproc record`: run a program in our place, write a scenario of what it did. Owns its options and words."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from pytest_agentproc import capture
from pytest_agentproc.errors import UsageError

if TYPE_CHECKING:
    import argparse

    from pytest_agentproc.record import Record


HELP_TEXT = """\
The program runs as without this command: stdin, stdout and stderr, TERM, INT and HUP, the window's size and the exit
code go through. A KILL that ends this command ends the program, too. All is kept in memory until then, at most 16 MiB,
fewer if lines are short. Later bytes go through and are not recorded. Only when secrets have been replaced by
placeholders of the same length are files written: NAME.scenario.yaml, the record as NAME.record.jsonl and, if there are
many bytes, NAME.1.bin and so on. The redactions, and each difference between the scenario and the record, are printed
on stderr and at the top of the scenario. Read it before you give it away: a secret that no rule knows is not
found.

exit codes: that of the program, 128 + n if signal n ended it; 127 or 126 if it could not be started; 2 if an option is
wrong.

examples:
  agentproc record --out hello.scenario.yaml -- claude -p --output-format stream-json --verbose hello
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument("--out", required=True, metavar="FILE", help="the scenario to write: NAME.scenario.yaml")
    parser.add_argument(
        "--dialect", default="", metavar="DIALECT", help="its wire format; by default its name decides, or it is raw"
    )
    parser.add_argument(
        "--mode", default="", metavar="MODE", help="the dialect's variant; by default the arguments decide"
    )
    parser.add_argument(
        "--terminal", action="store_true", help="run it in a terminal of its own: one stream, no stderr"
    )
    parser.add_argument("--shorten", type=int, metavar="N", help="keep N characters of each text in the scenario")
    parser.add_argument("program", nargs="+", metavar="CMD", help="after --: the program and its arguments")


def run_command(options: argparse.Namespace) -> int:
    """Record; give the program's exit code."""
    capture.require_linux()
    out = capture.check_scenario_output_path(options.out)
    if options.shorten is not None and options.shorten < 1:
        raise UsageError(f"--shorten is {options.shorten}", "give the number of characters to keep, 1 or more")
    capture.identify_agent(options.program, b"", options.dialect, options.mode)
    env = dict(os.environ)

    def write(record: Record) -> capture.CapturedFiles:
        how = {"dialect": options.dialect, "mode": options.mode, "shorten": options.shorten}
        return capture.write_capture_files(record, options.program, out, env=env, **how)

    try:
        record, code = capture.run_and_record_program(options.program, terminal=options.terminal, if_killed=write)
    except capture.ProgramStartError as error:
        sys.stderr.write(f"agentproc record: {error}\n")
        return error.code
    result = write(record)
    sys.stderr.write("".join(f"agentproc record: {line}\n" for line in _describe_capture(result)))
    return code


def _describe_capture(result: capture.CapturedFiles) -> list[str]:
    """Put into words what was written."""
    lines = [f"wrote {result.scenario} and {result.record}"]
    lines += [f"redacted {secret}" for secret in result.redacted] or ["redacted nothing: no secret was found"]
    if result.too_short:
        lines.append(f"not looked for: {', '.join(result.too_short)} (too short, or a common word)")
    if result.shortened:
        lines.append(f"shortened {result.shortened} texts in the scenario; the record has them whole")
    return (
        lines
        + [f"not faithful: {note}" for note in result.notes]
        + ([] if result.notes else ["played again: the same"])
    )
