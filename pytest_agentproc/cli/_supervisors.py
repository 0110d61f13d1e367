"""Owns how a command's arguments name supervisors: by name, as an attribute of a module, or as a program."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_agentproc.errors import UsageError, suggest_known_word

if TYPE_CHECKING:
    import argparse

    from pytest_agentproc.vocabulary import Subject


_MAX_REAL_TIME_SCALE = 1000


def add_supervisor_options(parser: argparse.ArgumentParser) -> None:
    """Add what names one supervisor."""
    names = "reference (the default), null, ..., package.module:attribute or FILE.toml"
    parser.add_argument("--subject", help=names)
    parser.add_argument("--defect", help="the reference supervisor with this defect built in")


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add what says how scenarios are played."""
    parser.add_argument(
        "--clock",
        choices=("virtual", "real", "model"),
        help="virtual without it; model: virtual without a process, for the reference supervisor only",
    )
    parser.add_argument("--backend", choices=("asyncio", "trio"), default="asyncio", help="the event loop")
    parser.add_argument("--scale", default="auto", help="in real time every duration is divided by it; auto without it")
    parser.add_argument(
        "--command",
        metavar="'PROGRAM {agent}'",
        help="a program as the supervisor: {agent} stands for the agent's command, {prompt} for the prompt, the name "
        "of a limit such as {inactivity_timeout} for that limit in seconds",
    )


def parse_time_scale(text: str) -> float | None:
    """Read a scale; None: as fast as can be judged.

    Raises:
        UsageError: it is none.
    """
    if text == "auto":
        return None
    try:
        scale = float(text)
    except ValueError:
        scale = 0
    if not 1 <= scale <= _MAX_REAL_TIME_SCALE:
        raise UsageError(
            f"--scale {text}: it must be auto, or a number from 1 to {_MAX_REAL_TIME_SCALE}", "try --scale 10"
        )
    return scale


def load_supervisor_under_test(name: str | None, command: str | None = None, defect: str | None = None) -> Subject:
    """Give the supervisor that a command line names; the reference supervisor if it names none.

    Raises:
        UsageError: there is none such, or more than one is named.
    """
    from pytest_agentproc.subjects import ReferenceSupervisor, find_subject, get_bundled_subjects, make_command

    if [name is not None and name != "reference", command is not None, defect is not None].count(True) > 1:
        raise UsageError("--subject, --command and --defect name three supervisors", "choose one of them")
    if command is not None:
        return make_command(command)
    if defect is not None:
        from pytest_agentproc import defects

        if defect not in defects.DEFECT_NAMES:
            hint = suggest_known_word(defect, defects.DEFECT_NAMES, "agentproc list --json prints them: `catches`")
            raise UsageError(f"--defect {defect}: there is no such defect", hint)
        built_in = defects.find_defect(defect)
        return ReferenceSupervisor(defect, built_in.deciders, built_in.session_deciders)
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    return find_subject(name or "reference", name or "reference", here, get_bundled_subjects())
