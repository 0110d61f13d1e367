"""`agentproc record`: run a program in our place, write a scenario of what it did. Owns its options and words."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from pytest_agentproc import capture
from pytest_agentproc.cli._calls import add_consent_option, ask_before_writing, describe_redactions, require_answerer
from pytest_agentproc.errors import UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from pytest_agentproc.record import Record


HELP_TEXT = """\
The program runs as without this command: stdin, stdout and stderr, TERM, INT and HUP, the window's size and the exit
code go through. A KILL that ends this command ends the program, too. All is kept in memory until then, at most 16 MiB,
fewer if lines are short. Later bytes go through and are not recorded.

After the end secrets are replaced by placeholders of the same length, and are listed on stderr. Then you are asked; `l`
shows the record as it would be written. In a script nobody can be asked: without --yes the program is not started. Only
after your yes are files written: NAME.scenario.yaml, the record as NAME.record.jsonl and, if there are many bytes,
NAME.1.bin and so on. Replacements, and differences between the scenario and the record, also stand at the top of the
scenario. Read it before you give it away: a secret that no rule knows is not found.

exit codes: that of the program, 128 + n if signal n ended it; 127 or 126 if it could not be started; 2 if an option is
wrong, or if nobody can be asked.

examples:
  agentproc record --out hello.scenario.yaml -- claude -p --output-format stream-json --verbose hello
  agentproc record --yes --out ci.scenario.yaml -- my-agent < prompt.txt
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
    add_consent_option(parser)
    parser.add_argument("program", nargs="+", metavar="CMD", help="after --: the program and its arguments")


def run_command(options: argparse.Namespace) -> int:
    """Record; give the program's exit code."""
    capture.require_linux()
    out = capture.check_scenario_output_path(options.out)
    if options.shorten is not None and options.shorten < 1:
        raise UsageError(f"--shorten is {options.shorten}", "give the number of characters to keep, 1 or more")
    capture.identify_agent(options.program, b"", options.dialect, options.mode)
    if not options.yes:
        require_answerer()
    env = dict(os.environ)

    def write(record: Record) -> capture.CapturedFiles | None:
        how = {"dialect": options.dialect, "mode": options.mode, "shorten": options.shorten}
        confirm = None if options.yes else ask
        return capture.write_capture_files(record, options.program, out, env=env, confirm=confirm, **how)

    def ask(record: Record, redacted: Sequence[capture.RedactedSecret]) -> bool:
        return ask_before_writing("record", f"{out} and its record", redacted, record.lines())

    def write_if_killed(record: Record) -> None:
        if options.yes:
            write(record)
        else:
            sys.stderr.write("agentproc record: killed before it could ask you: nothing was written\n")

    try:
        record, code = capture.run_and_record_program(
            options.program, terminal=options.terminal, if_killed=write_if_killed
        )
    except capture.ProgramStartError as error:
        sys.stderr.write(f"agentproc record: {error}\n")
        return error.code
    result = write(record)
    if result is not None:
        lines = _describe_capture(result, describe_redactions(result.redacted) if options.yes else [])
        sys.stderr.write("".join(f"agentproc record: {line}\n" for line in lines))
    return code


def _describe_capture(result: capture.CapturedFiles, redactions: Sequence[str]) -> list[str]:
    """Put into words what was written, and what was replaced, if the question has not said it."""
    lines = [f"wrote {result.scenario} and {result.record}", *redactions]
    if result.too_short:
        lines.append(f"not looked for: {', '.join(result.too_short)} (too short, or a common word)")
    if result.shortened:
        lines.append(f"shortened {result.shortened} texts in the scenario; the record has them whole")
    return (
        lines
        + [f"not faithful: {note}" for note in result.notes]
        + ([] if result.notes else ["played again: the same"])
    )
