"""Owns `agentproc fake`: a scenario's fake as a file, in a folder that is a PATH. Starts none."""

from __future__ import annotations

import argparse
import json
import re
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_agentproc.cli._scenarios import load_scenario
from pytest_agentproc.errors import UsageError
from pytest_agentproc.harness import (
    COMMAND_BY_DIALECT,
    NAMES_OF_REFUSED_CLIS,
    can_overwrite,
    write_fake,
    write_missing_cli_stub,
)
from pytest_agentproc.vocabulary import DIALECTS

if TYPE_CHECKING:
    from pytest_agentproc.scenario import Scenario


HELP_TEXT = """\
The fake is one executable file that plays the scenario's script in real time, for tests in any language: put the folder
first in PATH, or start the file. It needs the Python that made it, and nothing else. The names of all other agent CLIs
in the folder refuse with exit code 127, so that a test never starts a real one. If you make a second fake in the same
folder, its name is a fake, too. `expect:` is not judged: your own test does that.

After its lifetime the kernel kills the fake and all its descendants. It also ends with its harness: the process of
--harness, or of AGENTPROC_HARNESS in its environment.

exit codes:
  0  the fake is written, and its path printed
  2  there is no such scenario, or the folder has a file of that name that is no fake

examples:
  agentproc fake lingers-and-ignores-term --dir fakes                 # prints fakes/pi
  PATH=$PWD/fakes:$PATH AGENTPROC_HARNESS=$$ ./my-supervisor
  agentproc fake hang.scenario.yaml --dir fakes --name claude --scale 60
  agentproc fake --help-dialect codex      # which options it takes and does not obey
"""


class _DialectHelp(argparse.Action):
    """Prints what a dialect's fake does, and ends: the other arguments are not needed then."""

    def __call__(self, parser: argparse.ArgumentParser, *given: object) -> None:
        sys.stdout.write(_describe_dialect(str(given[1])))
        parser.exit()


def _describe_dialect(name: str) -> str:
    record = DIALECTS[name]
    assert record.command_line is not None
    lines = [f"The fake {record.command} imitates {name} {record.version} in the modes {', '.join(record.modes)}.", ""]
    unobeyed = {each.option: each for each in record.command_line.unobeyed}
    if unobeyed:
        lines.append("It takes these options and does not obey them. A failure of a run with one of them says so.")
        lines += [f"  {option}: the real CLI {each.real}" for option, each in unobeyed.items()]
        lines.append("")
    lines.append("It obeys all other options, or the model alone can see them:")
    for command, options in record.command_line.to_plain_table()["options"].items():
        names = sorted({long for long, *_ in options.values()} - {*unobeyed})
        text = f"{command}: {' '.join(names)}".removeprefix(": ")
        lines += textwrap.wrap(text, 100, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)
    lines += ["", "With `flags: any` in its scenario it takes any arguments, and obeys none."]
    return "\n".join(lines) + "\n"


_COMMAND_NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_MAX_SCALE = 100_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("scenario", metavar="SCENARIO", help="a scenario file, or the id of a bundled one")
    parser.add_argument("--dir", required=True, help="the folder; it is made if it is not there")
    parser.add_argument("--name", help="what the file is called; the dialect's own CLI without it, such as claude")
    parser.add_argument("--session", help="which agent, if the scenario has several")
    parser.add_argument("--scale", default="1", help="every duration is divided by it; 1 without it")
    parser.add_argument("--lifetime", default="600", metavar="SECONDS", help="when it is killed; 600 without it")
    parser.add_argument("--harness", type=int, metavar="PID", help="the process that it must not outlive")
    parser.add_argument("--json", action="store_true", help="print an object: path, name, dialect, mode, refused")
    parser.add_argument(
        "--help-dialect",
        action=_DialectHelp,
        choices=[name for name, record in DIALECTS.items() if record.command_line is not None],
        metavar="NAME",
        help="print which CLI a dialect imitates, and which options its fake takes and does not obey",
    )


def run_command(options: argparse.Namespace) -> int:
    """Write the fake, and a refusal for every other agent's name.

    Raises:
        UsageError: a value cannot be, or a file would be lost.
        ScenarioError: the scenario has mistakes.
    """
    scale = _parse_positive_number("scale", options.scale, _MAX_SCALE)
    lifetime = _parse_positive_number("lifetime", options.lifetime, 86_400)
    scenario = _select_session_agent(load_scenario(options.scenario), options.session)
    name = options.name or COMMAND_BY_DIALECT[scenario.dialect]
    if not _COMMAND_NAME_PATTERN.fullmatch(name):
        raise UsageError(f"--name {name}: it cannot be a command's name", "write one word, such as claude")
    if scenario.simulates_failed_spawn:
        raise UsageError(
            f"{scenario.path}: its machine refuses a start, and no file can do that",
            "run it in pytest, or with: agentproc run",
        )
    if scenario.cannot_spawn == "not_found":
        raise UsageError(
            f"{scenario.path}: its agent does not exist",
            "use an empty folder as PATH: there is no file to make",
        )
    path = Path(options.dir, name)
    if not can_overwrite(path):
        raise UsageError(f"{path} is there and is no fake of ours", "name another folder, or remove it")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_fake(scenario, path, scale=scale, lifetime=lifetime, harness=options.harness)
        refused = [other for other in NAMES_OF_REFUSED_CLIS if not (path.parent / other).exists()]
        for other in refused:
            write_missing_cli_stub(path.parent / other)
    except OSError as error:
        raise UsageError(f"--dir {options.dir}: {error.strerror}", "name a folder to write to") from error
    fields = {"path": str(path), "name": name, "dialect": scenario.dialect, "mode": scenario.mode, "refused": refused}
    sys.stdout.write(f"{json.dumps(fields) if options.json else path}\n")
    return 0


def _parse_positive_number(name: str, text: str, most: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0 < value <= most:
        raise UsageError(f"--{name} {text}: it must be a number above 0, at most {most}", f"write --{name} 60")
    return value


def _select_session_agent(scenario: Scenario, session: str | None) -> Scenario:
    names = ", ".join(scenario.parts)
    if session is None:
        if scenario.parts:
            raise UsageError(f"{scenario.path} has several agents: {names}", "choose one with --session")
        return scenario
    if session not in scenario.parts:
        hint = f"its sessions are {names}" if names else "it has one agent: leave --session out"
        raise UsageError(f"--session {session}: {scenario.path} has no such session", hint)
    return scenario.parts[session]
