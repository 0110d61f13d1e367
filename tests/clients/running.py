"""Programs that use a Node client, or a shell, run in real time against a fake and within a bound. Judges nothing.

A program is a file of `programs/`, and a usage is one of the things that it can do. It reports each event as a line of
JSON, with its instant on the machine's clock, which is also the fakes' clock. So the reports and the fake's record have
times in one order: seconds since the fake was born.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_agentproc.harness.fakes._fake_log import FakeLog
from pytest_agentproc.scenario import loads
from tests.clients.packages import find_node, install_from_npm, install_from_pypi, install_from_pypi_without_clis
from tests.event_lines import list_lines
from tests.process.stand import is_gone

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_agentproc.harness import FakeAgent, ScenarioRunner
    from pytest_agentproc.record import Record

__all__ = ["CEILING", "IGNORES_EOF", "IGNORES_TERM", "TICK", "Client", "ProgramRun", "Programs"]

CEILING = 20.0
"""Real seconds that one program may take; a time that has no reason to be longer than another is compared with this."""

TICK = 0.002
"""Real seconds by which a timer of Node's may be early: it counts whole milliseconds from when its loop last woke."""

IGNORES_EOF = "- {when: eof, do: []}"
IGNORES_TERM = "- {when: {signal: TERM}, do: []}"
"""Steps of scripts."""

_GRACE = 5.0
"""Real seconds after a program's end until all processes that it must not leave must have ended."""

_PROGRAMS = Path(__file__).with_name("programs")
_SECOND = 1_000_000_000


@dataclass(frozen=True)
class ProgramRun:
    """One program that ran, and the fake that its client had.

    Args:
        code: the program's exit code; negative: the signal that ended it.
        told: its reports, in order: `what` happened, `at` how many seconds (a shell cannot say), and more.
        errors: its text on stderr.
        record: the actions of the fake.
    """

    code: int
    told: list[dict[str, Any]]
    errors: str
    record: Record

    def __getitem__(self, what: str) -> dict[str, Any]:
        """Give the first report of that name by the program."""
        found = [row for row in self.told if row["what"] == what]
        assert found, f"nothing was told of {what!r}: {self.told}\n{self.errors}"
        return found[0]

    def list_values(self, what: str, key: str) -> list[Any]:
        """Give one value of all the things of that name that have it."""
        return [row[key] for row in self.told if row["what"] == what and key in row]

    @property
    def ends(self) -> list[dict[str, Any]]:
        """How each start of the agent ended by itself or by its client: {"code": 0} or {"signal": "KILL"}."""
        ends = [
            event.data
            for event in list_lines(self.record)
            if event.code == "x" and event.data["process"] in self._agents
        ]
        return [{key: end[key] for key in ("code", "signal") if key in end} for end in ends]

    @property
    def left(self) -> list[str]:
        """The processes that were alive after the program ended, and that the kit then ended."""
        return [event.data["process"] for event in list_lines(self.record) if "leaked" in event.data]

    @property
    def signals(self) -> list[tuple[str, float]]:
        """The signals that the agent was sent and could catch, and their instants."""
        return [(event.data["signal"], event.at / _SECOND) for event in list_lines(self.record) if event.code == "s"]

    @property
    def argv(self) -> list[list[str]]:
        """The arguments of each start of the agent."""
        return [event.data["given"]["argv"] for event in list_lines(self.record) if "given" in event.data]

    @property
    def stdin(self) -> str:
        """All that the agent read."""
        return self._join_bytes("i")

    @property
    def stdout(self) -> str:
        """All that the agent printed."""
        return self._join_bytes("o")

    def find_instant(self, code: str, **data: Any) -> float:
        """Give the time of the first event of the record with that code and those values."""
        return next(
            event.at / _SECOND
            for event in list_lines(self.record)
            if event.code == code and all(event.data.get(key) == value for key, value in data.items())
        )

    def _join_bytes(self, code: str) -> str:
        return b"".join(
            event.data.get("bytes", b"") for event in list_lines(self.record) if event.code == code
        ).decode()

    @property
    def _agents(self) -> set[str]:
        return {event.data["process"] for event in list_lines(self.record) if event.data.get("parent") == "supervisor"}


class Client:
    """One client in the hands of one program.

    Args:
        runner: the maker of its fakes.
        command: the program, to which a usage and the fake's executable are added.
        agent: the value of a scenario's `agent` for it.
        folder: the program's home.
    """

    def __init__(self, runner: ScenarioRunner, command: list[str], agent: str, folder: Path) -> None:
        self._runner = runner
        self.command = command
        self._agent = agent
        self._folder = folder

    def __call__(self, usage: str, script: str, *, leaves: tuple[str, ...] = (), **environ: str) -> ProgramRun:
        """Have the client used in one way, against a fake that plays a script.

        Args:
            usage: what the program does.
            script: the steps of the fake.
            leaves: the processes that are alive when the program has ended; any other one fails the test.
            environ: additions to the program's environment.
        """
        steps = textwrap.indent(textwrap.dedent(script).strip(), "  ")
        told = "expect: {received: {argv: []}}"  # it judges nothing; it has the agent report its start arguments
        scenario = loads(f"scenario: a client's agent\nagent: {self._agent}\nscript:\n{steps}\n{told}\n")
        fake = self._runner.make_fake(scenario)
        environ = {"PATH": f"{fake.folder}:{os.environ['PATH']}", "HOME": str(self._folder), **environ}
        with self._start([*self.command, usage, fake.path], environ) as program:
            try:
                is_over = is_gone(program.pid, CEILING)
                if is_over and not leaves:
                    _await_ends(_list_fake_pids(fake))
            finally:
                record = fake.finish()
            if is_over:
                _await_ends(_find_group_members(program.pid))
            others = [*_find_group_members(program.pid).values()]
        errors = (self._folder / "stderr").read_text("utf-8")
        if not is_over:
            said = (self._folder / "stdout").read_text("utf-8")
            pytest.fail(f"{usage} did not end within {CEILING:.0f} s:\n{said}{errors}", pytrace=False)
        run = ProgramRun(program.returncode, self._told(fake), errors, record)
        assert (tuple(run.left), others) == (leaves, []), f"left are {run.left} and {others}: {run.told}\n{errors}"
        return run

    @contextmanager
    def _start(self, command: list[str], environ: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
        """Start it with files for its output, as a leftover process may hold a pipe open; end it with its group."""
        with (self._folder / "stdout").open("wb") as stdout, (self._folder / "stderr").open("wb") as stderr:
            program = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                env=environ,
                cwd=self._folder,
                start_new_session=True,
            )
        try:
            yield program
        finally:
            os.killpg(program.pid, signal.SIGKILL)  # it is not reaped yet, so that the group is still its own
            program.wait()

    def _told(self, fake: FakeAgent) -> list[dict[str, Any]]:
        assert isinstance(fake.watch, FakeLog)
        lines = []
        for line in (self._folder / "stdout").read_text("utf-8").splitlines():
            row = json.loads(line)
            at = {"at": fake.watch.clock.convert_moment_to_instant(int(row["at"])) / _SECOND} if "at" in row else {}
            lines.append({**row, **at})
        return lines


def _list_fake_pids(fake: FakeAgent) -> list[int]:
    """List the pids that the fake has had: each has a log."""
    assert isinstance(fake.watch, FakeLog)
    return [int(log.name) for log in fake.watch.folder.iterdir()]


def _await_ends(pids: Iterable[int]) -> None:
    """Give processes that the program signalled last the time to die of it."""
    deadline = time.monotonic() + _GRACE
    for pid in pids:
        is_gone(pid, max(0.0, deadline - time.monotonic()))


def _find_group_members(group: int) -> dict[int, str]:
    """Find a process group's members, and their commands, without its leader and the dead."""
    found = {}
    for process in Path("/proc").iterdir():
        with contextlib.suppress(OSError):  # no process, or a process that has ended meanwhile
            state, _, owner = (process / "stat").read_text("utf-8").rpartition(")")[2].split()[:3]
            if int(owner) == group and int(process.name) != group and state != "Z":
                found[int(process.name)] = (process / "cmdline").read_text("utf-8").replace("\0", " ")
    return found


class Programs:
    """The programs, each beside the packages that it imports.

    Args:
        runner: the maker of the fakes.
        folder: an empty folder of the session.
    """

    def __init__(self, runner: ScenarioRunner, folder: Path) -> None:
        self._runner = runner
        self._folder = folder

    def node(self, name: str, package: str | None, agent: str) -> Client:
        """Give a client that a Node program uses, or is.

        Args:
            name: the program's file.
            package: the key of `packages.NPM` that it imports; None: no package.
            agent: the value of a scenario's `agent` for it.
        """
        folder = self._folder / (package or "node")
        if not folder.exists():
            shutil.copytree(_PROGRAMS, folder)
            if package is not None:
                (folder / "node_modules").symlink_to(install_from_npm(package) / "node_modules")
        return Client(self._runner, [find_node(), str(folder / name)], agent, folder)

    def python(self, name: str, agent: str) -> Client:
        """Give a client that a Python program uses.

        Args:
            name: the program's file, beside this one.
            agent: the value of a scenario's `agent` for it.
        """
        folder = self._folder / "python"
        folder.mkdir(exist_ok=True)
        path = f"PYTHONPATH={install_from_pypi_without_clis()}:{install_from_pypi()}"
        return Client(self._runner, ["env", path, sys.executable, str(_PROGRAMS.with_name(name))], agent, folder)

    def shell(self, name: str, agent: str) -> Client:
        """Give a client that is a shell script.

        Args:
            name: the script's file.
            agent: the value of a scenario's `agent` for it.
        """
        folder = self._folder / "shell"
        folder.mkdir(exist_ok=True)
        return Client(self._runner, ["sh", str(_PROGRAMS / name)], agent, folder)
