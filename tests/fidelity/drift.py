"""What changed in the newest releases of the real CLIs and clients, since those that the fakes imitate.

`python -m tests.fidelity.drift` installs the newest releases, and prints a table. Each conversation and command line is
played with both releases of a CLI, and what they print is compared. A CLI without a newer release is not played. A
client with a newer release meets the fakes in its own tests. `--out FILE` writes the table to a file, too.
`python -m tests.fidelity.drift --page` writes the page that compares the fakes and the pinned releases.

What comes only once is a race: a difference counts if it is in several conversations, or comes again in a second play.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tests.clients.packages import ALONE, NPM, PYPI, VERSIONS_VARIABLE, find_node, install_from_npm
from tests.fidelity.command_lines import COMMAND_LINES, measure_real
from tests.fidelity.comparing import compare_runs
from tests.fidelity.conversations import CONVERSATIONS
from tests.fidelity.noticing import judge_difference
from tests.fidelity.running import PACKAGES, CliRun
from tests.fidelity.table import PAGE, hold_with_real_cli, write_page_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.fidelity.command_lines import Refusal
    from tests.fidelity.comparing import Difference
    from tests.fidelity.conversation import Conversation

__all__ = ["Drift", "Release", "compare_plays", "compare_refusals", "format_drift", "mask"]

_TIME = 13 * 60.0
"""Real seconds after which no further play begins, so that the whole takes less than 15 minutes."""
_CLIENT_LIMIT = 240
"""Real seconds for the tests of one client."""
_CHANGES = ("new", "gone", "different")
_MASKS = (
    (r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<id>"),
    (r"\b(?:ses|msg|prt)_\w+", "<id>"),
    (r"127\.0\.0\.1:\d+", "<server>"),
    (rf"{re.escape(tempfile.gettempdir())}[/]tmp\w+", "<home>"),
    (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "<instant>"),
)
"""What differs in each run."""
_HEAD = """# What changed in the newest releases

| CLI or client | package | imitated | newest |
| --- | --- | --- | --- |
"""
_ROWS = """
| name | change | what | where | would a supervisor notice? |
| --- | --- | --- | --- | --- |
"""


_REGISTRY_LIMIT = 60
"""Real seconds for one question."""

_CLIENT_TESTS = {
    "claude-agent-sdk": (
        "claude/test_sdk_py.py",
        "claude/test_sdk_py_asks.py",
        "claude/test_sdk_py_client.py",
        "claude/test_sdk_py_servers.py",
    ),
    "@anthropic-ai/claude-agent-sdk": ("claude/test_sdk_ts.py",),
    "@openai/codex-sdk": ("codex/test_sdk.py",),
    "openai-codex": ("codex/test_openai_codex.py",),
    "codex-app-server-client": ("codex/test_app_server_client.py",),
    "agent-client-protocol": ("acp/test_py.py", "acp/test_py_models.py"),
    "@agentclientprotocol/sdk": ("acp/test_ts.py",),
    "@agentclientprotocol/claude-agent-acp": ("acp/test_claude_agent_acp.py",),
}
"""By package, the tests in `tests/clients` in which a client meets a fake. pi's client comes with pi itself."""


@dataclass(frozen=True)
class Release:
    """A package, and how far it has come.

    Args:
        name: the CLI, or the package of a client.
        package: its name in the registry.
        imitated: the version that the fakes imitate, or were tried with.
        newest: the newest version.
        notice: why its makers say that it is not to be used any more; "" if they do not.
    """

    name: str
    package: str
    imitated: str
    newest: str
    notice: str = ""

    @property
    def is_cli(self) -> bool:
        """Whether it is a CLI, and no client."""
        return self.name in PACKAGES

    @property
    def pins(self) -> tuple[dict[str, str], dict[str, str]]:
        """The imitated and the newest version, each by the name of its package; and what it needs."""
        others = dict([*NPM[PACKAGES[self.name]].items()][1:]) if self.is_cli else {}
        return {self.package: self.imitated, **others}, {self.package: self.newest, **others}

    @property
    def is_newer(self) -> bool:
        """Whether there is a newer one."""
        return self.newest != self.imitated


@dataclass(frozen=True)
class Drift:
    """One row: how the newest release of a CLI or client differs.

    Args:
        name: the CLI or client.
        change: "new", "gone" or "different".
        what: the difference in words.
        where: the conversation, the command line or the test.
        notice: whether a supervisor would notice, and why.
    """

    name: str
    change: str
    what: str
    where: str
    notice: str


def compare_plays(conversation: Conversation, first: CliRun, second: CliRun) -> list[Drift]:
    """Compare what two releases did in one conversation."""
    return [
        Drift(
            conversation.cli,
            found.change,
            _describe(found),
            conversation.name,
            judge_difference(conversation, found, first, second),
        )
        for found in compare_runs(first, second)
    ]


def _describe(found: Difference) -> str:
    if found.what == "line":
        return f"line `{found.kind}` after `{found.place}`"
    if found.what == "key":
        kinds = " to ".join(kind for kind in (found.first, found.second) if kind)
        return f"`{found.place}` ({kinds}) in `{found.kind}`"
    return f"{found.what}: {_shorten(found.first)} to {_shorten(found.second)}"


def _shorten(text: str) -> str:
    return text if len(text) <= 100 else f"{text[:97]}..."


def compare_refusals(cli: str, line: str, first: Refusal, second: Refusal) -> list[Drift]:
    """Compare what two releases did with one command line."""
    rows: list[tuple[str, object, object, str]] = []
    if first.code != second.code:
        rows.append(("exit code", first.code, second.code, "yes: it is how the run ended"))
    if first.answers != second.answers:
        rows.append(("model is asked", first.answers, second.answers, "yes: a prompt is taken or refused"))
    elif first.stdout != second.stdout:
        rows.append(("first line of stdout", first.stdout, second.stdout, "yes: it is the answer"))
    if first.answers == second.answers and first.stderr != second.stderr:
        notice = "yes: it says why the run failed" if second.code else "no: the run succeeds all the same"
        rows.append(("first line of stderr", first.stderr, second.stderr, notice))
    return [
        Drift(cli, "different", f"{what}: {_shorten(repr(old))} to {_shorten(repr(new))}", f"`{cli} {line}`", notice)
        for what, old, new, notice in rows
    ]


def mask(text: str, version: str) -> str:
    """Put a word in the place of all that differs in each run or in each release."""
    text = text.replace(version, "<version>")
    for form, word in _MASKS:
        text = re.sub(form, word, text)
    return text


def format_drift(releases: Iterable[Release], drifts: Iterable[Drift], skipped: Iterable[str] = ()) -> str:
    """Write the table: the rows that a supervisor notices come first. A difference in several places is one row."""
    lines = [
        f"| {release.name} | {next(iter(release.pins[1]))} | {release.imitated} | {release.newest} |"
        + (f" {release.notice} |" if release.notice else "")
        for release in releases
    ]
    places: dict[tuple[str, str, str], list[Drift]] = defaultdict(list)
    for drift in drifts:
        places[drift.name, drift.change, drift.what].append(drift)
    groups = sorted(places.values(), key=lambda group: (_rank(group), group[0].name, _CHANGES.index(group[0].change)))
    rows = []
    for group in groups:
        first, where = group[0], list(dict.fromkeys(drift.where for drift in group))
        more = f" and {len(where) - 2} more" if len(where) > 2 else ""
        cells = (first.name, first.change, first.what, ", ".join(where[:2]) + more, _choose_notice(group))
        rows.append("| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |")
    text = _HEAD + "\n".join(lines) + "\n"
    text += _ROWS + "\n".join(rows) + "\n" if rows else "\nNothing changed.\n"
    missed = list(skipped)
    return text + (f"\nNot played, as the time was over: {', '.join(missed)}.\n" if missed else "")


def _choose_notice(group: list[Drift]) -> str:
    return min((drift.notice for drift in group), key=_rank_notice)


def _rank(group: list[Drift]) -> int:
    return _rank_notice(_choose_notice(group))


def _rank_notice(notice: str) -> int:
    return ("yes", "maybe", "no").index(notice.partition(":")[0])


class _Measuring:
    """All plays of one run, two at a time, and how long they may take."""

    def __init__(self) -> None:
        self.deadline = time.monotonic() + _TIME
        self.skipped: list[str] = []

    def measure(self, releases: list[Release]) -> list[Drift]:
        newer = [release for release in releases if release.is_newer]
        for release in newer:
            for pins in release.pins if release.is_cli else ():
                install_from_npm(PACKAGES[release.name], pins)
        with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
            tasks = [
                pool.submit(self._measure_in_time, *task) for release in newer for task in self._list_tasks(release)
            ]
            found = [task.result() for task in tasks]
            often = Counter((drift.name, drift.what) for drifts, _ in found for drift in drifts)
            again = [
                pool.submit(self._confirm, drifts, play)
                for drifts, play in found
                if any(often[drift.name, drift.what] == 1 for drift in drifts)
            ]
            certain = [
                drift for drifts, _ in found for drift in drifts if all(often[one.name, one.what] > 1 for one in drifts)
            ]
            return [*certain, *(drift for task in again for drift in task.result())]

    def _list_tasks(self, release: Release) -> list[tuple[str, Callable[[], list[Drift]]]]:
        name = release.name
        if not release.is_cli:
            return [(name, partial(_try_client, release))]
        talks = [talk for talk in CONVERSATIONS if talk.cli == name]
        lines = COMMAND_LINES[name]
        return [
            *((talk.id, partial(_play, talk, release)) for talk in talks),
            *((f"{name} {line}", partial(_start, name, line, release)) for line in lines),
        ]

    def _measure_in_time(
        self, name: str, play: Callable[[], list[Drift]]
    ) -> tuple[list[Drift], Callable[[], list[Drift]]]:
        if time.monotonic() > self.deadline:
            self.skipped.append(name)
            return [], play
        return play(), play

    def _confirm(self, drifts: list[Drift], play: Callable[[], list[Drift]]) -> list[Drift]:
        if time.monotonic() > self.deadline:
            return drifts
        again = play()
        return [drift for drift in drifts if drift in again]


def _play(conversation: Conversation, release: Release) -> list[Drift]:
    runs: list[CliRun | str] = []
    for pins, version in zip(release.pins, (release.imitated, release.newest), strict=True):
        try:
            ran = hold_with_real_cli(conversation, pins)
        except AssertionError as fault:
            runs.append(str(fault).partition(":")[0])
            continue
        runs.append(replace(ran, stdout=mask(ran.stdout, version), stderr=mask(ran.stderr, version)))
    first, second = runs
    if isinstance(first, CliRun) and isinstance(second, CliRun):
        return compare_plays(conversation, first, second)
    ends = [run if isinstance(run, str) else "it goes on to its end" for run in runs]
    if ends[0] == ends[1]:
        return []
    what = f"conversation: {ends[0]} to {ends[1]}"
    return [Drift(conversation.cli, "different", what, conversation.name, "yes: its client waits for that")]


def _start(cli: str, line: str, release: Release) -> list[Drift]:
    seen = []
    for pins, version in zip(release.pins, (release.imitated, release.newest), strict=True):
        ran = measure_real(cli, line, pins)
        seen.append(replace(ran, stdout=mask(ran.stdout, version), stderr=mask(ran.stderr, version)))
    return compare_refusals(cli, line, *seen)


def _try_client(release: Release) -> list[Drift]:
    """Run the tests of a client with its newest version, and the failing ones with the version that they know."""
    files = [f"tests/clients/{file}" for file in _CLIENT_TESTS[release.name]]
    failing = _list_failing_tests(files, {release.package: release.newest})
    known = _list_failing_tests([*failing], {}) if failing else {}
    return [
        Drift(
            release.name, "different", f"it fails: {_shorten(words)}", f"`{test}`", "yes: it is the client that fails"
        )
        for test, words in failing.items()
        if test not in known
    ]


def _list_failing_tests(tests: list[str], versions: dict[str, str]) -> dict[str, str]:
    command = [sys.executable, "-m", "pytest", *tests, "-q", "-n", "0", "--tb=no", "-rfE", "-p", "no:cacheprovider"]
    environ = {**os.environ, VERSIONS_VARIABLE: json.dumps(versions), "COLUMNS": "200"}
    ran = subprocess.run(command, capture_output=True, text=True, timeout=_CLIENT_LIMIT, check=False, env=environ)
    assert ran.returncode in (0, 1), ran.stdout + ran.stderr
    rows = re.findall(r"^(?:FAILED|ERROR) (\S+?(?:\[.*\])?)(?: - (.*))?$", ran.stdout, re.MULTILINE)
    return dict(rows)


def _find_releases() -> list[Release]:
    """Ask the registries for the newest of each."""
    find_node()
    pins = {cli: next(iter(NPM[key].items())) for cli, key in PACKAGES.items()}
    npm = {package: version for packages in NPM.values() for package, version in packages.items()}
    pypi = PYPI | ALONE
    for package in _CLIENT_TESTS:
        pins[package] = (package, (pypi if package in pypi else npm)[package])
    return [
        Release(name, package, version, *(_ask_pypi(package) if package in pypi else _ask_npm(package)))
        for name, (package, version) in pins.items()
    ]


def _ask_npm(package: str) -> tuple[str, str]:
    found = json.loads(_run(["npm", "view", package, "version", "deprecated", "--json"]))
    return (found, "") if isinstance(found, str) else (found["version"], found.get("deprecated") or "")


def _ask_pypi(package: str) -> tuple[str, str]:
    found = _run([sys.executable, "-m", "pip", "index", "versions", package, "--disable-pip-version-check"])
    newest = re.search(r"\((.+?)\)", found)
    assert newest is not None, found
    return newest[1], ""


def _run(command: list[str]) -> str:
    ran = subprocess.run(command, capture_output=True, text=True, timeout=_REGISTRY_LIMIT, check=False)
    assert ran.returncode == 0, f"{' '.join(command)}: {ran.stderr}"
    return ran.stdout


def main() -> int:
    """Measure, and print the table; or write the page."""
    parser = argparse.ArgumentParser(prog="python -m tests.fidelity.drift", description=__doc__)
    parser.add_argument("--out", type=Path, help="a file for the table")
    parser.add_argument("--only", nargs="*", default=[], help="the CLIs and clients to look at; all if absent")
    parser.add_argument("--page", action="store_true", help="write docs/reference/fidelity.md")
    options = parser.parse_args()
    if options.page:
        PAGE.write_text(write_page_text(), encoding="utf-8")
        return 0
    began = time.monotonic()
    releases = [release for release in _find_releases() if not options.only or release.name in options.only]
    measuring = _Measuring()
    text = format_drift(releases, measuring.measure(releases), measuring.skipped)
    text += f"\nIt took {time.monotonic() - began:.0f} s.\n"
    sys.stdout.write(text)
    if options.out:
        options.out.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
