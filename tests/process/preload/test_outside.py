"""A wait that a process outside the command can end is named, and takes the machine's time; one within is exact.

`programs/outside.c` has both sides of each kind. `test_strangers.py` has connections.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_agentproc.clock.preload import find_coordinator
from tests.process.preload.stand import LIMIT, TimedRun, require_program, require_tracing, run_in_virtual_time

if TYPE_CHECKING:
    from collections.abc import Callable

PROGRAMS = Path(__file__).parent / "programs"
_UDP = "waits for an answer (UDP) from 127.0.0.1 port PORT, which is outside the command"
_FILE = "waits for PLACE, which a process outside the command has open"
_LOCK = "waits for a lock of a file, which a process outside the command holds"
_CHANGES = "waits for changes of a file (inotify), which a process outside the command has open"
REASONS = {
    "udp": _UDP,
    "udp_message": _UDP,
    "fifo": _FILE,
    "fifo_poll": _FILE,
    "fifo_select": _FILE,
    "fifo_epoll": _FILE,
    "flock": _LOCK,
    "setlkw": _LOCK,
    "ofd": _LOCK,
    "inotify": _CHANGES,
    "inotify_folder": _CHANGES,
    "futex": "waits in shared memory, which a process outside the command has, too",
    "msg": "waits for a queue of System V from outside the command",
    "sem": "waits for a semaphore of System V from outside the command",
    "mq": _FILE,
    "pidfd": "waits for the end of a process outside the command",
}
KINDS = {"glibc": [], "static": ["-static"]}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=KINDS)
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile a program that carries the library, and one that is traced."""
    if request.param == "static":
        require_tracing()
    return build("outside.c", tmp_path_factory.mktemp(request.param), *KINDS[request.param])


def build(source: str, folder: Path, *words: str) -> Path:
    """Compile a program of this folder; skip the test if there is no compiler."""
    program = folder / Path(source).stem
    command = [require_program("cc"), *words, "-O1", str(PROGRAMS / source), "-o", str(program), "-lpthread", "-lrt"]
    subprocess.run(command, check=True, timeout=LIMIT)
    return program


@pytest.fixture
def place(tmp_path: Path) -> Callable[[str], Path]:
    """Give the file through which both sides of a kind find each other."""

    def make(kind: str) -> Path:
        path = tmp_path / "place"
        subprocess.run(["mkfifo" if kind.startswith("fifo") else "touch", path], check=True, timeout=LIMIT)
        return path

    return make


def wait_for_outside(program: Path, kind: str, place: Path) -> TimedRun:
    """Start the other side outside the command; it lets go when the coordinator has said something."""
    pipes: dict[str, Any] = {
        "stdin": subprocess.PIPE,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        "text": True,
    }
    with subprocess.Popen([program, "act", kind, place, "0"], **pipes) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        assert other.stdout.readline() == "ready\n"
        words = [str(find_coordinator()), str(program), "wait", kind, str(place), "0", str(other.pid)]
        with subprocess.Popen(words, **pipes) as run:
            assert run.stderr is not None
            first = run.stderr.readline()
            other.stdin.close()
            out, err = run.communicate(timeout=LIMIT)
    return TimedRun(run.returncode, out, first + err)


@pytest.mark.parametrize("kind", REASONS)
def test_a_wait_for_somebody_outside_is_named(kind: str, program: Path, place: Callable[[str], Path]) -> None:
    """Each of these limits of 180 s was over at once, and nothing said so."""
    run = wait_for_outside(program, kind, place(kind))
    [note] = run.notes
    begin, _, reason = note.partition(" (pid N) ")
    assert (run.out, begin) == ("answer\n", "time passes as on the machine while outside")
    reason = re.sub(r"port \d+", "port PORT", re.sub(r" /[^,]+,", " PLACE,", reason))
    assert reason == REASONS[kind]
    assert float(run.virtual) < 20


@pytest.mark.parametrize("kind", REASONS)
def test_a_wait_within_the_command_is_exact(kind: str, program: Path, place: Callable[[str], Path]) -> None:
    """Both sides live below the command: the other one lets go after 100 s."""
    run = run_in_virtual_time(program, "both", kind, place(kind), "100000")
    assert (run.out, run.notes, run.virtual) == ("answer\n", [], "100")
