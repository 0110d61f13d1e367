"""Owns the way from a command line to a command and from its errors to an exit code. Loads only what was asked for.

Exit codes that all commands share: 2 for a command line that cannot be meant, 3 for a failure of the kit itself, 130
after an interrupt. Each command gives 0 and 1 its own meaning, and its help says which.
"""

from __future__ import annotations

import os
import sys

import pytest_agentproc
from pytest_agentproc.cli._commands import LINUX_ONLY_COMMANDS, MODULE_AND_PURPOSE_BY_COMMAND

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


_COMMAND_OVERVIEW_FORMAT = """\
usage: agentproc COMMAND ...

Fake agents that misbehave on command, and verdicts over the programs that supervise them.

commands:
{commands}

`agentproc COMMAND --help` shows a command's arguments, exit codes and examples; `agentproc --version` the version.
Every command exits 2 when it is called wrongly, and 3 when the kit itself fails, which is never a verdict.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: the arguments; None takes those of this process.

    Returns:
        the exit code. Nothing that a user can write makes it raise.
    """
    if argv is None and "_ARGCOMPLETE" in os.environ:
        from pytest_agentproc.cli._completion import complete_line

        complete_line()
        return 1
    words = list(sys.argv[1:] if argv is None else argv)
    _replace_closed_streams()
    _escape_what_stdout_cannot_write()
    try:
        code = _run_command_line(words)
        sys.stdout.flush()  # a reader that has gone is noticed here, and not at the interpreter's end
    except BrokenPipeError:
        from pytest_agentproc.cli._calls import handle_closed_output

        return handle_closed_output()
    except OSError as error:  # help or a version that cannot be written; a command's own errors do not come here
        code = _report_error("agentproc", error)
    return code


def _run_command_line(words: list[str]) -> int:
    if len(words) == 2 and words[0] == "help":  # noqa: PLR2004  # `help run` means `run --help`
        words = [words[1], "--help"]
    if not words or words[0] in ("-h", "--help", "help"):
        sys.stdout.write(_COMMAND_OVERVIEW_FORMAT.format(commands=_format_command_table()))
        return 0 if words else 2
    if words[0] in ("-V", "--version"):
        sys.stdout.write(f"agentproc {pytest_agentproc.__version__}\n")
        return 0
    name = words[0]
    if name not in MODULE_AND_PURPOSE_BY_COMMAND:
        return _report_usage_error("agentproc", _describe_unknown_command(name))
    if name in LINUX_ONLY_COMMANDS and sys.platform != "linux":
        return _report_usage_error(
            f"agentproc {name}",
            f"it starts processes, which needs Linux (pidfd, /proc), and this is {sys.platform}\n"
            "check, explain, list, new, schema and import run on any platform",
        )
    return _run_and_report_errors(name, words[1:])


def _replace_closed_streams() -> None:
    """Open /dev/null in place of each closed standard stream, so that no other file gets its number."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(opened, True)  # the lowest free number: the closed one
        if getattr(sys, name) is None:
            stream = open(number, "w" if number else "r", encoding="utf-8", closefd=False)  # noqa: SIM115  # it stays
            setattr(sys, name, stream)


def _escape_what_stdout_cannot_write() -> None:
    """Have a stdout that is not UTF-8 show other characters as escapes: a claim or an answer may have any."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)  # what stands in its place may have none
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")


def _format_command_table() -> str:
    width = max(map(len, MODULE_AND_PURPOSE_BY_COMMAND))
    return "\n".join(f"  {name:{width}}  {about}" for name, (_, about) in MODULE_AND_PURPOSE_BY_COMMAND.items())


def _describe_unknown_command(name: str) -> str:
    from pytest_agentproc.errors import suggest_known_word

    kind = "option" if name.startswith("-") else "command"
    hint = suggest_known_word(
        name, MODULE_AND_PURPOSE_BY_COMMAND, f"the commands are {', '.join(MODULE_AND_PURPOSE_BY_COMMAND)}"
    )
    return f"there is no {kind} {name}: {hint}"


def _run_and_report_errors(name: str, words: list[str]) -> int:
    """Run a command, and turn what it raises into a sentence and an exit code."""
    from importlib import import_module

    from pytest_agentproc.cli._calls import HelpPrinted, parse_arguments

    try:
        module = import_module(MODULE_AND_PURPOSE_BY_COMMAND[name][0])
        code = int(module.run_command(parse_arguments(name, MODULE_AND_PURPOSE_BY_COMMAND[name][1], module, words)))
        sys.stdout.flush()  # a disk that is full is noticed here, and told in the command's name
    except HelpPrinted:
        code = 0
    except BrokenPipeError:
        raise
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  # whatever it is, the exit code must say so
        code = _report_error(f"agentproc {name}", error)
    return code


def _report_error(place: str, error: BaseException) -> int:
    from pytest_agentproc.cli._calls import CommandLineError
    from pytest_agentproc.errors import KitError, ScenarioError, UsageError

    if isinstance(error, (CommandLineError, UsageError)):
        return _report_usage_error(place, str(error))
    if isinstance(error, ScenarioError):
        from pytest_agentproc.cli._scenarios import UNKNOWN_WORD_HINT, is_unknown_word_problem

        _write_to_stderr(f"{error}\n")
        if any(map(is_unknown_word_problem, error.problems)):
            _write_to_stderr(f"{place}: {UNKNOWN_WORD_HINT}\n")
        return 2
    if isinstance(error, KeyboardInterrupt):
        _write_to_stderr(f"{place}: interrupted\n")
        return 130
    words = f"the kit failed: {error}"
    if isinstance(error, OSError) and _is_write_failure(error):
        words = f"something could not be written: {error}"
    elif not isinstance(error, KitError):
        from traceback import print_exception

        print_exception(error)
        words = "this is a mistake of the kit, not yours: please report the lines above"
    _write_to_stderr(f"{place}: {words}\n")
    return 3


def _write_to_stderr(words: str) -> None:
    """Say on stderr what is wrong; where that cannot be written either, the exit code alone says it."""
    try:
        sys.stderr.write(words)
        sys.stderr.flush()
    except BrokenPipeError:
        raise
    except OSError:
        from pytest_agentproc.cli._calls import handle_closed_output

        handle_closed_output()


def _is_write_failure(error: OSError) -> bool:
    import errno

    return error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)


def _report_usage_error(place: str, sentence: str) -> int:
    _write_to_stderr(f"{place}: {sentence}\n")
    return 2
