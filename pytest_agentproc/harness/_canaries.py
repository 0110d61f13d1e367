"""The canaries of one lab: real processes beside a run in real time, which must get no signal. Owns their lives.

One is in the process group of pytest, one in a session of its own; both are children of this process, as a server of
another test is. A hit counts against a run if the kernel names this process or a descendant of it as the sender. One
whose sender nobody knows (it was gone too soon; KILL and STOP leave no word) counts as well, but not beside other
workers of pytest-xdist: it may be theirs.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_agentproc.clock import signal_name
from pytest_agentproc.errors import KitError
from pytest_agentproc.harness._bystanders import how_it_lives
from pytest_agentproc.harness._launch import interpreter
from pytest_agentproc.tree import disown

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Canaries", "Hit"]

_PATIENCE = 10.0
"""Real seconds in which a canary that can must have answered."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A signal that a canary got.

    Args:
        signal: its name.
        canary: where that canary lives.
        origin: `run` if this process or a descendant of it sent it, `unknown` if nobody knows who did.
    """

    signal: str
    canary: str
    origin: str


class Canaries:
    """Two canaries.

    Args:
        names: words that stand among their arguments, so that they look like agents.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._command = [interpreter(), "-IS", str(Path(__file__).with_name("_canary.py")), str(os.getpid()), *names]
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._are_alone = "PYTEST_XDIST_WORKER" not in os.environ

    def ready(self) -> None:
        """Start those that are not there, and forget what they got so far: it was not this run's."""
        self.hits()
        missing = [canary for canary in _PLACES if canary not in self._processes]
        for canary in missing:
            self._processes[canary] = self._start(is_apart=canary == _APART)
        for canary in missing:
            if _ask(self._processes[canary]) is None:
                raise KitError("a canary did not come up, so nobody can tell whether bystanders are harmed")

    def hits(self) -> list[Hit]:
        """Ask each what it got since it was asked last; who is dead or stopped is replaced at the next `ready`."""
        found: list[Hit] = []
        for canary, process in tuple(self._processes.items()):
            noted = _ask(process)
            if noted is None:
                noted = [f"{_silenced_by(process)}:unknown"]
                self._bury(canary)
            pairs = [note.split(":") for note in noted]
            found += [Hit(signal_name(int(signum)), canary, origin) for signum, origin in pairs if self._counts(origin)]
        return found

    def close(self) -> None:
        """End them."""
        for canary in tuple(self._processes):
            self._bury(canary)

    def _counts(self, origin: str) -> bool:
        return origin == "run" or (origin == "unknown" and self._are_alone)

    def _start(self, *, is_apart: bool) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        process = subprocess.Popen(self._command, stdin=pipe, stdout=pipe, bufsize=0, start_new_session=is_apart)
        disown(process.pid)
        return process

    def _bury(self, canary: str) -> None:
        with self._processes.pop(canary) as process:
            process.kill()


_GROUP, _APART = "in the process group of pytest", "in a session of its own"
_PLACES = (_GROUP, _APART)


def _silenced_by(process: subprocess.Popen[bytes]) -> int:
    """Say by which signal one that does not answer was ended or stopped; its pipes end before it can be waited for."""
    if how_it_lives(process.pid) == "stopped":
        return signal.SIGSTOP
    try:
        return -process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        return signal.SIGSTOP


def _ask(process: subprocess.Popen[bytes]) -> list[str] | None:
    """Give what a canary noted; None if it does not answer: it is dead, or stopped."""
    assert process.stdin is not None
    assert process.stdout is not None
    if how_it_lives(process.pid) == "stopped":
        return None
    try:
        process.stdin.write(b"?")
    except BrokenPipeError:
        return None
    answers = select.poll()
    answers.register(process.stdout, select.POLLIN)
    line = process.stdout.readline() if answers.poll(_PATIENCE * 1000) else b""
    return line.decode().split() if line else None
