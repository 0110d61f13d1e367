"""Owns `agentproc import`: a pasted log in, a draft of a scenario out. Starts no process and runs on any platform."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from pytest_agentproc import capture
from pytest_agentproc.capture import LOG_DIALECTS, Redactor, draft_scenario_from_log
from pytest_agentproc.cli._calls import (
    add_consent_option,
    ask_before_writing,
    describe_redactions,
    require_answerer,
    write_output_file,
)
from pytest_agentproc.errors import ScenarioError, ScenarioProblem, UsageError
from pytest_agentproc.files import read_file

if TYPE_CHECKING:
    import argparse


_MAX_LOG_BYTES = 1 << 24
"""So many bytes of a log are read; of these `draft_scenario_from_log` takes as many characters as it likes."""

HELP_TEXT = """\
The log may be pasted as it is: with words around it, times before its lines, quotes, fences, arrows, and lines that
were shortened. Unreadable lines become comments of the draft; the behaviour that the reporter saw becomes its end and
its `expect`. Then the draft is played in memory. Each event of the log that its fake does not print is named on stderr.
Secrets are replaced by placeholders of the same length, and are listed on stderr. A secret that no rule knows stays:
read the draft before you publish it. With --out you are asked before the file is written; `l` shows the draft.

exit codes:
  0  the draft is written, or printed
  1  you said no, so nothing was written
  2  the log cannot be read, no line of it is an event of the dialect, or nobody can be asked

examples:
  agentproc import issue.txt --dialect claude --yes --out hang.scenario.yaml && pytest hang.scenario.yaml
  pbpaste | agentproc import - --dialect acp
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("log", metavar="LOG", help="the file with the log; - reads standard input")
    parser.add_argument("--dialect", choices=LOG_DIALECTS, required=True, help="whose log it is")
    parser.add_argument("--out", metavar="FILE", help="where the draft goes; printed without it; a file is kept")
    add_consent_option(parser)


def run_command(options: argparse.Namespace) -> int:
    """Write the draft, or print it.

    Raises:
        ScenarioError: the log is not text, or has no event of the dialect.
        UsageError: the log cannot be read, nobody can be asked, or the draft is there already or cannot be written.
    """
    name = "<stdin>" if options.log == "-" else options.log
    asks = options.out is not None and not options.yes
    if asks:
        require_answerer()
    redactor = Redactor(os.environ)
    log = redactor.redact_text(_read_log_file(options.log, name), name)
    text = draft_scenario_from_log(log, options.dialect, name)
    if asks:
        if not ask_before_writing("import", options.out, redactor.redacted_secrets, text.splitlines()):
            return 1
    elif redactor.redacted_secrets:
        lines = describe_redactions(redactor.redacted_secrets)
        sys.stderr.writelines(f"agentproc import: {line}\n" for line in lines)
    if options.out is None:
        sys.stdout.write(text)
    else:
        write_output_file(options.out, text)
        sys.stdout.write(f"{options.out}\n")
    sys.stdout.flush()
    for line in _describe_comparison(text, log, options.dialect):
        sys.stderr.write(f"agentproc import: {line}\n")
    return 0


def _describe_comparison(text: str, log: str, dialect: str) -> list[str]:
    """Say where the draft prints otherwise than the log; where no fake can be played, say that."""
    try:
        notes = capture.find_draft_differences(text, log, dialect)
    except ImportError:
        return ["not played again: this needs Linux"]
    return [f"not faithful: {note}" for note in notes] or ["played again: the same"]


def _read_log_file(path: str, name: str) -> str:
    try:
        data = sys.stdin.buffer.read(_MAX_LOG_BYTES + 1) if path == "-" else read_file(path, _MAX_LOG_BYTES)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{name} cannot be read: {reason}", "name the file with the log, or - for stdin") from error
    if len(data) > _MAX_LOG_BYTES:
        raise UsageError(f"{name} has more than {_MAX_LOG_BYTES} bytes", "cut it to what matters")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line, column = before.count(b"\n") + 1, error.start - before.rfind(b"\n")
        remedy = "save it as UTF-8 text"
        raise ScenarioError([ScenarioProblem(name, line, column, f"the log is not UTF-8: {remedy}")]) from error
