"""Supervision holds if other code reaps, and if this process is the first one and must reap all."""

from __future__ import annotations

import fcntl
import json
import os
import platform
import signal
import subprocess
import sys
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from pytest_agentproc.supervisor import Outcome, Policy, run_once
from tests.process.reaping import reap_all
from tests.process.stand import is_gone

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_agentproc.supervisor import Result

PROGRAM = Path(__file__).parents[1] / "reaping.py"
ROOT = Path(__file__).parents[3]
FIRST = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "--kill-child"]
KNOWS_EXITS = (6, 15)
"""From this version on Linux reports the exit of a process that another process reaped."""

EXITED = "the agent exited with code 3"
NOT_KNOWN = "it is not known how the agent ended: another part of this process reaped it"
SILENT = "no output"

pytestmark = pytest.mark.slow
at_every_containment = pytest.mark.parametrize("containment", ["group", "subreaper", "keeper"])


def run_and_read_report(how: str, containment: str, *before: str) -> dict[str, Any]:
    """Run the program, and give its report."""
    completed = subprocess.run(
        [*before, sys.executable, PROGRAM, how, containment],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr
    found: dict[str, Any] = json.loads(completed.stdout)
    return found


@at_every_containment
@pytest.mark.parametrize("how", ["handler", "ignored"])
def test_an_exit_that_somebody_else_took_is_still_known_and_nothing_is_kept(how: str, containment: str) -> None:
    """A host with a handler of its own for SIGCHLD is no reason to lose a result."""
    found = run_and_read_report(how, containment)
    version = tuple(map(int, platform.release().split("-")[0].split(".")[:2]))
    is_known = how == "ignored" or containment == "keeper" or version >= KNOWS_EXITS
    left = ["failed", 3, 3, EXITED] if is_known else ["incomplete", 1, None, NOT_KNOWN, "exit_unknown"]
    ended = ["inactive", 124, -15, SILENT] if is_known else ["inactive", 124, None, SILENT, "exit_unknown"]
    assert found == {"runs": [left, ended], "kept": 0, "zombies": 0}


@pytest.mark.parametrize("containment", ["group", "subreaper"])
def test_an_exit_that_nobody_saw_is_said_to_be_unknown(containment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An older kernel does not tell the exit of a reaped process: 255 was reported, which nobody had seen."""

    def refuse(*_: object) -> None:
        raise OSError

    monkeypatch.setattr(fcntl, "ioctl", refuse)
    with _reap_each_child():
        policy = Policy(containment=containment, inactivity_timeout=5)
        result = anyio.run(partial(run_once, ["sh", "-c", "echo hi; exit 3"], policy=policy))
    assert (result.outcome, result.exit_code, result.agent_status) == (Outcome.INCOMPLETE, 1, None)
    assert (result.text, result.warnings) == ("hi", ("exit_unknown",))
    assert result.error.startswith(NOT_KNOWN)


@contextmanager
def _reap_each_child() -> Iterator[None]:
    """Be a program that reaps each child of its own as soon as it ends."""
    before = signal.signal(signal.SIGCHLD, reap_all)
    try:
        yield
    finally:
        signal.signal(signal.SIGCHLD, before)


@pytest.mark.parametrize("containment", ["group", "subreaper"])
def test_an_agent_that_is_reaped_at_once_was_started(containment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A handler may reap it before its pidfd is open: its exit is unknown, but it ran, and its tree is ended."""
    plain = os.pidfd_open

    def open_late(pid: int) -> int:
        monkeypatch.setattr(os, "pidfd_open", plain)
        os.waitpid(pid, 0)
        return plain(pid)

    async def supervise() -> Result:
        monkeypatch.setattr(os, "pidfd_open", open_late)
        policy = Policy(containment=containment, inactivity_timeout=5)
        return await run_once(["sh", "-c", "sleep 60 >&- 2>&- & echo $!; exit 3"], policy=policy)

    before = len([*Path("/proc/self/fd").iterdir()])
    result = anyio.run(supervise)
    assert (result.outcome, result.agent_status, result.leaks) == (Outcome.INCOMPLETE, None, ())
    assert result.warnings == ("exit_unknown",)
    assert result.text is not None
    assert is_gone(int(result.text))
    assert len([*Path("/proc/self/fd").iterdir()]) == before


@at_every_containment
def test_the_first_process_of_a_namespace_keeps_no_zombie(containment: str) -> None:
    """In a container the supervisor may be process 1, and then no other process reaps its leftovers."""
    try:
        probe = subprocess.run([*FIRST, "true"], check=False, timeout=60)
    except FileNotFoundError:
        pytest.skip("this machine has no unshare")
    if probe.returncode != 0:
        pytest.skip(f"this kernel does not permit {' '.join(FIRST)}")
    found = run_and_read_report("nobody", containment, *FIRST)
    assert found == {"runs": [["failed", 3, 3, EXITED], ["inactive", 124, -15, SILENT]], "kept": 0, "zombies": 0}
