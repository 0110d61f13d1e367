"""Owns `agentproc conform`: supervisors judged over the bundled scenarios. Plays and judges nothing itself.

The pytest plugin runs the scenarios, in a process of its own. Its loop (attempts, replays), its baseline, its pages and
its workers are the only ones: a second loop would come to other verdicts one day. That process gets no settings, no
plugins and no words of the user's pytest; its results come back as the file of results.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from html import escape
from importlib.util import find_spec
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

import pytest_agentproc
from pytest_agentproc.cli._calls import get_output_encoding
from pytest_agentproc.cli._supervisors import add_run_options, load_supervisor_under_test, parse_time_scale
from pytest_agentproc.errors import KitError, UsageError
from pytest_agentproc.terminal import ERASE_LINE, PROGRESS_DESCRIPTOR_VARIABLE, is_terminal, paint_verdicts
from pytest_agentproc.verdict import Conformance, JudgedScenario, Verdict, format_summary, judge_conformance
from pytest_agentproc.vocabulary import RULES

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping


HELP_TEXT = """\
A supervisor is conformant if no check at level `must` failed or is undecided, there was no error of the kit or the
adapter, and some check passed. Checks at level `should` are counted, and decide nothing.

exit codes:
  0  every supervisor is conformant
  1  at least one is not shown to be: a `must` failed or is undecided, no check passed, or there was an adapter error
  2  there is no such supervisor, rule, or scenario, or a program that is named is not there
  3  there was a kit error: that is no verdict

examples:
  agentproc conform reference
  agentproc conform my_package.supervising:run_agent --report pages
  agentproc conform --command 'my-supervisor --timeout {inactivity_timeout} -- {agent}' --rule A1 --rule T1
  agentproc conform null kill-at-once --json | jq '.subjects[] | {name, conformant}'
"""

_PROGRAM_MODULE_NAME = "agentproc_program"
_JUDGED_EXIT_CODES, _USAGE_ERROR_EXIT_CODE, _NO_SCENARIO_EXIT_CODE = (0, 1), 4, 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    names = "reference (the reference supervisor), null, ..., package.module:attribute or FILE.toml"
    parser.add_argument("subjects", nargs="*", metavar="SUBJECT", help=names)
    add_run_options(parser)
    parser.add_argument(
        "-k", metavar="WORDS", help="only scenarios whose id has them, such as 'lingers and not ignores'"
    )
    parser.add_argument("--rule", action="append", default=[], help="only scenarios that cover it; may be repeated")
    parser.add_argument("-j", type=int, default=1, metavar="N", help="scenarios at a time; needs pytest-xdist")
    parser.add_argument("--baseline", metavar="FILE", help="known failures, as pytest --agentproc-baseline has them")
    parser.add_argument("--results", metavar="FILE", help="write the results of all scenarios as JSON")
    parser.add_argument("--report", metavar="DIR", help="write a page of each run, and an index of them")
    parser.add_argument("--json", action="store_true", help="print the results as JSON, in place of the summary")


def run_command(options: argparse.Namespace) -> int:
    """Judge, and print a summary for each supervisor.

    Raises:
        UsageError: there is no such supervisor, or a value cannot be.
        KitError: the kit failed.
    """
    _require_valid_options(options)
    with tempfile.TemporaryDirectory(prefix="agentproc-") as folder:
        results_text = _judge_with_pytest(options, Path(folder))
    if options.results:
        _write_results_file(options.results, results_text)
    results = json.loads(results_text)
    judged = [JudgedScenario.from_json_fields(result) for result in results["results"]]
    names = list(dict.fromkeys(result.subject for result in judged))
    if options.json:
        sys.stdout.write(results_text)
    else:
        summaries = [_format_summary([result for result in judged if result.subject == name]) for name in names]
        sys.stdout.write("\n\n".join(summaries) + "\n")
        if options.report:
            sys.stdout.write(f"agentproc: pages in {Path(options.report, 'index.html')}\n")
    if any(result.verdict == Verdict.KIT_ERROR for result in judged):
        return 3
    found = [judge_conformance([result for result in judged if result.subject == name]) for name in names]
    return 0 if all(conformance is Conformance.CONFORMANT for conformance in found) else 1


def _require_valid_options(options: argparse.Namespace) -> None:
    if bool(options.subjects) == bool(options.command):
        raise UsageError(
            "there is no supervisor to judge" if not options.subjects else "SUBJECT and --command exclude each other",
            "name one, such as reference or package.module:attribute, or give --command 'my-supervisor {agent}'",
        )
    parse_time_scale(options.scale)
    if options.command:
        load_supervisor_under_test(None, options.command)
    for name in options.subjects:
        if ":" in name:  # others may be known to a conftest file
            load_supervisor_under_test(name)
    for rule in options.rule:
        if rule not in RULES:
            raise UsageError(f"--rule {rule}: there is no such rule", f"there are {', '.join(RULES)}")
    if options.j < 1:
        raise UsageError(f"-j {options.j}: it must be at least 1", "leave it out")
    if options.j > 1 and find_spec("xdist") is None:
        raise UsageError(f"-j {options.j} needs pytest-xdist, which is not installed", "pip install pytest-xdist")


def _judge_with_pytest(options: argparse.Namespace, folder: Path) -> str:
    """Run pytest over the scenarios, and give the text of its file of results."""
    folder.joinpath("pytest.ini").write_text("[pytest]\n", "utf-8")
    results = folder / "results.json"
    names = [*options.subjects]
    if options.command:
        words = f"Command({shlex.split(options.command)!r})"
        folder.joinpath(f"{_PROGRAM_MODULE_NAME}.py").write_text(
            f"from pytest_agentproc.subjects import Command\n\nsubject = {words}\n", "utf-8"
        )
        names = [f"{_PROGRAM_MODULE_NAME}:subject"]
    given = {
        "subject": ",".join(names),
        "clock": options.clock,
        "backend": options.backend,
        "scale": options.scale,
        "baseline": options.baseline,
        "report": options.report,
        "timeline": None if options.report else "off",  # without a folder for them, pages would stay where nobody looks
        "rule": ",".join(options.rule),
        "results": str(results),
    }
    argv = [sys.executable, "-m", "pytest", "-q", "-c", str(folder / "pytest.ini"), "--rootdir", str(Path.cwd())]
    argv += ["-p", "pytest_agentproc.plugin", "-p", "no:cacheprovider", "--agentproc-corpus"]
    argv += [f"--agentproc-{name}={value}" for name, value in given.items() if value]
    argv += ["-k", options.k] if options.k else []
    argv += ["-p", "xdist", "-n", str(options.j)] if options.j > 1 else []
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH", "")]))
    env = {**os.environ, "PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
    with _share_terminal(env) as descriptors:
        completed = subprocess.run(
            argv,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding=get_output_encoding(),
            errors="backslashreplace",
            check=False,
            pass_fds=descriptors,
        )
    if completed.returncode == _NO_SCENARIO_EXIT_CODE:
        raise UsageError("no scenario is like that", "agentproc list shows them all")
    if completed.returncode not in _JUDGED_EXIT_CODES or not results.exists():
        raise _make_error_from_pytest_output(completed)
    results_text = results.read_text("utf-8")
    # Each command is that of a pytest that nobody sees.
    commands = {
        result["rerun"]: _format_rerun_command(result, options)
        for result in json.loads(results_text)["results"]
        if result["rerun"]
    }
    for hidden, command in commands.items():
        results_text = results_text.replace(json.dumps(hidden), json.dumps(command))
    if options.report:
        _replace_commands_of_pages(Path(options.report), commands)
    return results_text


def _replace_commands_of_pages(folder: Path, commands: Mapping[str, str]) -> None:
    """Put commands in the place of others on the pages of a folder; earlier pages have none of these."""
    for file in folder.glob("*.html"):
        html = before = file.read_text("utf-8")
        for hidden, command in commands.items():
            html = html.replace(f"<code>{escape(hidden)}</code>", f"<code>{escape(command)}</code>")
        if html != before:
            file.write_text(html, "utf-8")


@contextmanager
def _share_terminal(env: dict[str, str]) -> Iterator[tuple[int, ...]]:
    """Name the terminal to the pytest of the block, so that it says there how far it is; then make the line empty."""
    if not is_terminal(sys.stderr):
        yield ()
        return
    descriptor = os.dup(sys.stderr.fileno())  # the number of stderr itself becomes a pipe there
    env[PROGRESS_DESCRIPTOR_VARIABLE] = str(descriptor)
    try:
        yield (descriptor,)
    finally:
        os.close(descriptor)
        sys.stderr.write(ERASE_LINE)
        sys.stderr.flush()


def _format_rerun_command(judged: dict[str, Any], options: argparse.Namespace) -> str:
    """Give the command that runs one scenario again: `agentproc run`, with the same supervisor in the same time."""
    named = [name for name in options.subjects if judged["subject"] in (name, name.rpartition(":")[2])]
    words = ["--command", options.command] if options.command else ["--subject", *(named or options.subjects)[:1]]
    words += ["--clock", "real"] if judged["clock"] == "real" else []
    words += ["--scale", options.scale] if judged["clock"] == "real" and options.scale not in (None, "auto") else []
    words += ["--backend", judged["backend"]] if judged["backend"] not in ("asyncio", "model") else []
    return shlex.join(["agentproc", "run", judged["scenario"], *words])


def _make_error_from_pytest_output(done: subprocess.CompletedProcess[str]) -> UsageError | KitError:
    """Make the error for a pytest that gave no results, in the words of this command."""
    wrong = [line.removeprefix("ERROR: ") for line in done.stderr.splitlines() if line.startswith("ERROR: ")]
    if wrong or done.returncode == _USAGE_ERROR_EXIT_CODE:
        words = (
            "\n".join(wrong or [done.stderr.strip()]).replace("--agentproc-subject=", "").replace("--agentproc-", "--")
        )
        return UsageError(words)
    return KitError(f"exit code {done.returncode}\n{(done.stdout + done.stderr).strip()}")


def _format_summary(judged: list[JudgedScenario]) -> str:
    width = max(get_terminal_size((100, 24)).columns - 1, 79)
    return paint_verdicts("\n".join(format_summary(judged, pytest_agentproc.__version__, width)), sys.stdout)


def _write_results_file(file: str, text: str) -> None:
    try:
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        Path(file).write_text(text, "utf-8")
    except OSError as error:
        raise UsageError(f"--results {file} cannot be written: {error.strerror}", "name another place") from error
