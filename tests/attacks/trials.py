"""Runs one command under attack, and says what it did and what it left. Owns the census; knows no command."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import signal
import subprocess
import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from pytest_agentproc.harness._unrelated_processes import FAKE_INTERPRETER_OPTION
from tests.attacks import MAX_MEGABYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

__all__ = ["AGENTPROC", "Trial", "run_trial"]

AGENTPROC = (sys.executable, "-m", "pytest_agentproc")
_MARK = "ATTACKED"
_WRONG = re.compile(r"Traceback \(most|mistake of the kit|Exception ignored in|INTERNALERROR|Fatal Python")
_LOADING = re.compile(r"<frozen (?:importlib|runpy|site)|import_module|^    (?:from|import) ", re.MULTILINE)
"""An interrupt before a command has begun is Python's own to report."""


class Trial:
    """A command that runs, in a folder of its own, with a word in its environment that all its processes have.

    Args:
        folder: where it runs; its temporary files go to `t` there.
        argv: the command.
        env: additions to our environment.
        limit: the seconds within which it must end.
        how: more for `Popen`.
    """

    def __init__(
        self, folder: Path, argv: Sequence[str], env: Mapping[str, str] | None = None, limit: int = 60, **how: Any
    ) -> None:
        self.folder, self.argv, self._limit = folder, list(argv), limit
        self._word = uuid.uuid4().hex
        (folder / "t").mkdir(parents=True)
        cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")  # what is compiled once is there
        own = {"PYTHONPATH": str(Path(__file__).parents[2]), "TMPDIR": str(folder / "t"), "HOME": str(folder)}
        own["XDG_CACHE_HOME"] = cache
        environment = {**os.environ, **own, **(env or {}), _MARK: self._word}
        self._out = (folder / "out").open("w+b")
        given = {"stdin": subprocess.DEVNULL, "stdout": self._out, "stderr": self._out, **how}
        self.process = subprocess.Popen(argv, cwd=folder, env=environment, start_new_session=True, **given)

    def list_living_processes(self) -> list[int]:
        """Give the processes of it that live, itself included."""
        return [pid for pid, _ in self._iterate_living_processes()]

    def _iterate_living_processes(self) -> Iterator[tuple[int, str]]:
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdecimal() and self._word.encode() in (entry / "environ").read_bytes():
                    yield int(entry.name), (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()

    def find_roles(self) -> dict[str, int]:
        """Find the processes of a play by their roles; those that are not there yet are left out."""
        found: dict[str, int] = {"pytest": self.process.pid}
        for process in psutil.Process(self.process.pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                words, parent = process.cmdline(), process.ppid()
                if process.name() == "coordinator":
                    found["watcher" if parent == self.process.pid else "coordinator"] = process.pid
                elif process.name() == "lifeline-broker":
                    found["broker"] = process.pid
                elif parent == found.get("coordinator"):
                    found["play server"] = process.pid
                elif words[:2] == ["bash", "supervisor.sh"]:
                    found["supervisor"] = process.pid
                elif parent == found.get("supervisor"):
                    found["agent"] = process.pid
                elif words[1:] and words[1].startswith(FAKE_INTERPRETER_OPTION):
                    found["fake"] = process.pid
        return found

    def has_ended_after(self, seconds: float) -> bool:
        """Let it run for a time; say whether it has ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
        return self.process.returncode is not None

    def await_end_of_others(self) -> list[str]:
        """Wait for the end of all but the command itself; give the commands of those that live on."""
        _wait_until(lambda: not any(pid != self.process.pid for pid in self.list_living_processes()), 15)
        return [command for pid, command in self._iterate_living_processes() if pid != self.process.pid]

    def find_faults_at_end(self, codes: Sequence[int], *, was_killed: bool) -> list[str]:
        """Wait for its end, and say what is wrong: nothing, as a rule."""
        found = []
        try:
            self.process.wait(self._limit)
        except subprocess.TimeoutExpired:
            found.append(f"it did not end in {self._limit} s")
        left = self.await_end_of_others()
        left += [command for pid, command in self._iterate_living_processes() if pid == self.process.pid]
        for pid in self.list_living_processes():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        code = self.process.wait()
        self._out.seek(0)
        said = self._out.read().decode("utf-8", "replace")
        self._out.close()
        found += [f"a process is left: {process}" for process in left]
        if code not in codes:
            found.append(f"exit code {code}, not one of {sorted(codes)}")
        if (wrong := _WRONG.search(said)) and not ("KeyboardInterrupt" in said and _LOADING.search(said)):
            found.append(f"it printed a traceback: {said[wrong.start() : wrong.start() + 2500]}")
        if not was_killed and (files := sorted(entry.name for entry in (self.folder / "t").iterdir())):
            found.append(f"files are left: {files}")
        return [f"{fault}\n{self.argv}\n{said[-2500:]}" for fault in found]


def _wait_until(holds: Callable[[], bool], seconds: float) -> None:
    """Wait for what other processes do, without a limit that a busy machine breaks."""
    pause = subprocess.Popen(["sleep", str(seconds)])
    try:
        while not holds() and pause.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                pause.wait(0.05)
    finally:
        pause.kill()
        pause.wait()


def run_trial(trial: Trial, codes: Sequence[int], attack: Callable[[Trial], bool]) -> list[str]:
    """Attack a command that runs; say what is wrong.

    Args:
        trial: the command.
        codes: the exit codes that it may have.
        attack: does something to it; it says whether a process was killed that cannot clean up then.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    was_killed = attack(trial)
    found = trial.find_faults_at_end(codes, was_killed=was_killed)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    if peak > before and peak >> 10 > MAX_MEGABYTES:
        found.append(f"{peak >> 10} MiB\n{trial.argv}")
    return found
