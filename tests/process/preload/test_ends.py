"""The end of a command in virtual time, whichever process is killed: nothing is left of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.clock.preload import find_coordinator
from tests.attacks.trials import Trial
from tests.process.preload.stand import LIMIT, run_in_virtual_time

if TYPE_CHECKING:
    from collections.abc import Iterator

BUSY = "setsid sh -c 'while :; do sleep 1; done' & while :; do sleep 2 & wait $!; echo; done"
"""It never ends, starts a process at every instant, and one of its processes has left the session."""


def list_members(coordinator: int) -> list[int]:
    """List the processes that live in a coordinator's time, by the variable that the shim puts into each."""
    mark = f"AGENTPROC_CLOCK=/proc/{coordinator}/".encode()
    return [int(entry.name) for entry in Path("/proc").glob("[0-9]*") if mark in _read_environment(entry)]


def _read_environment(process: Path) -> bytes:
    try:
        return process.joinpath("environ").read_bytes()
    except OSError:
        return b""


def _list_children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@contextmanager
def start_in_virtual_time(script: str) -> Iterator[tuple[subprocess.Popen[str], int, int]]:
    """Start a script in virtual time; give what watches, the coordinator and the program, once that has printed."""
    words = [str(find_coordinator()), "bash", "-c", script]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watcher:
        assert watcher.stdout is not None
        try:
            watcher.stdout.readline()
            middle = _list_children(watcher.pid)[0]
            yield watcher, middle, _list_children(middle)[0]
        finally:
            watcher.kill()


def test_a_command_ends_although_its_parent_ignored_the_end_of_children() -> None:
    """That is handed on: the kernel then kept no exit code, and the command never ended."""
    with subprocess.Popen(
        ["env", "--ignore-signal=CHLD", find_coordinator(), "sh", "-c", "sleep 3; exit 3"], stderr=subprocess.DEVNULL
    ) as watcher:
        try:
            code = watcher.wait(LIMIT)
        finally:
            watcher.kill()
    assert code == 3


@pytest.mark.parametrize("victim", ["watcher", "coordinator", "program"])
def test_nothing_is_left_after_a_kill(victim: str) -> None:
    """Whichever of the three is killed, the two others end the rest, and the page goes with its last user."""
    with start_in_virtual_time(BUSY) as (watcher, middle, program):
        victims = {"watcher": watcher.pid, "coordinator": middle, "program": program}
        os.kill(victims[victim], signal.SIGKILL)
        _, err = watcher.communicate(timeout=LIMIT)
    _wait_for_end(middle)
    assert list_members(middle) == []
    assert list(Path("/dev/shm").glob("*agentproc*")) == []  # noqa: S108  # only a look
    if victim == "coordinator":
        assert "agentproc time: the coordinator was killed by signal 9: the command is ended, too\n" in err


def _wait_for_end(pid: int) -> None:
    """Wait for a process that is not our child."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    import select

    assert select.select([descriptor], [], [], LIMIT)[0]
    os.close(descriptor)


def test_leftovers_are_killed_and_named() -> None:
    """Time would never move for a process that outlives the command."""
    run = run_in_virtual_time("sh", "-c", "sleep 1000 & exit 3")
    assert (run.code, run.virtual) == (3, "0")
    assert run.notes == ["sleep (pid N) was still there after the command's end, and was killed"]


HOLDS = "import ctypes, os; ctypes.CDLL(None).agentproc_hold(1); os.kill(os.getpid(), 9)"
"""A nested pytest, say, that is killed while it rests by the machine's clock."""


@pytest.mark.parametrize("rest", ["sleep 5", "wait; sleep 5"])
def test_a_process_that_held_time_and_was_killed_holds_it_no_more(rest: str) -> None:
    """Time would stand still for good, without a word; nobody reaps the first one while the shell sleeps."""
    run = run_in_virtual_time("sh", "-c", f"'{sys.executable}' -ISc '{HOLDS}' & {rest}")
    assert (run.code, run.virtual, run.notes) == (0, "5", [])


@pytest.mark.parametrize(
    ("script", "code"), [("exit 7", 7), ("kill -TERM $$", 143), ("sleep 5; exec true", 0), ("kill -ALRM $PPID", 0)]
)
def test_the_exit_code_is_the_commands(script: str, code: int) -> None:
    """Signals count as in a shell; signals that the command sends to its parent do no harm."""
    assert run_in_virtual_time("sh", "-c", script).code == code


def test_a_command_that_cannot_be_started_is_named() -> None:
    """The codes are the same as those of a shell."""
    time = str(find_coordinator())
    for path, code, reason in (
        ("/no/where", 127, "No such file or directory"),
        ("/dev/null", 126, "Permission denied"),
    ):
        for begin in ([time], [time, time]):  # the second is in virtual time already
            completed = subprocess.run([*begin, path], capture_output=True, text=True, timeout=LIMIT, check=False)
            assert (completed.returncode, completed.stderr.splitlines()[0]) == (
                code,
                f"agentproc time: {path}: {reason}",
            )


MANY_THREADS = (
    "import threading\nfor _ in range(200): threading.Thread(target=threading.Event().wait, args=(60,)).start()"
)


def test_a_command_with_too_many_threads_is_ended_and_named() -> None:
    """There is no file left to read the tree with, and the tree must be ended all the same."""
    limited = ["bash", "-c", 'ulimit -n 400; exec "$@"', "bash", str(find_coordinator())]
    completed = subprocess.run(
        [*limited, sys.executable, "-c", MANY_THREADS], capture_output=True, text=True, timeout=60, check=False
    )
    assert (completed.returncode, completed.stdout) == (3, "")
    assert completed.stderr == "agentproc time: there are too many threads for the limit of open files (ulimit -Hn)\n"


def test_a_signal_reaches_the_command() -> None:
    """`timeout` and CI end a command by TERM; the command may clean up, in virtual time.

    It waits by `sleep`, since bash 5.2 loses a TERM now and then that comes within `read -t`, in real time, too.
    """
    waits = "trap 'sleep 60; exit 9' TERM; echo; while :; do sleep 1; done"
    with start_in_virtual_time(waits) as (watcher, _, _):
        watcher.terminate()
        _, err = watcher.communicate(timeout=LIMIT)
        assert watcher.returncode == 9, err


PLAYS = """
import sys
from pytest_agentproc.errors import KitError
from pytest_agentproc.harness import ScenarioRunner
from pytest_agentproc.scenario import loads
from pytest_agentproc.subjects import Command

if __name__ == "__main__":
    scenario = loads("scenario: it waits\\nagent: raw\\nscript: [{silence: for ever}]\\nexpect: {outcome: inactive}\\n")
    spins = "echo $PPID > begun; {agent} & while :; do :; done"
    with ScenarioRunner() as runner:
        try:
            runner.play(scenario, Command(["sh", "-c", spins], limits={"inactivity_timeout": 180}))
        except KitError as error:
            print(error)
"""
"""Its supervisor lets no time pass: a play that waits for virtual seconds never ends."""
SAID = {
    "harness": "",
    "coordinator": "the coordinator was killed by signal 9: the command is ended, too\n",
    "watcher": "the process that watched over this one was killed: the command is ended, too\n",
}


@pytest.mark.slow
@pytest.mark.parametrize("victim", SAID)
def test_nothing_is_left_after_a_kill_in_a_play(victim: str, tmp_path: Path) -> None:
    """No process spins on, no fake waits on, and the files of all of them go, too; what was killed is named."""
    os.mkfifo(tmp_path / "begun")
    with (tmp_path / "said").open("w") as said:
        trial = Trial(tmp_path, [sys.executable, "-c", PLAYS], stdout=said)
    with (tmp_path / "begun").open() as begun:
        begun.readline()
    watcher = next(pid for pid in _list_children(trial.process.pid) if "coordinator" in _read_command(pid))
    victims = {"harness": trial.process.pid, "watcher": watcher, "coordinator": _list_children(watcher)[0]}
    os.kill(victims[victim], signal.SIGKILL)
    assert trial.find_faults_at_end(range(-64, 256), was_killed=False) == []
    begin = "the process below the coordinator ended by itself; agentproc time: "
    assert (tmp_path / "said").read_text() == (SAID[victim] and begin + SAID[victim])


def _read_command(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text()
