"""Plays scenarios in a process below the coordinator, where real time is virtual. Owns that process, and plays nothing.

There the arm of real time is exact: every clock of the supervisor, of the fakes and of the harness itself is the
coordinator's. The process stays for the next play; it waits for one outside its time, which stands still meanwhile.
"""

from __future__ import annotations

import _socket
import contextlib
import os
import pickle
import re
import select
import signal
import subprocess
import sys
import tempfile
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Thread
from time import CLOCK_MONOTONIC
from typing import TYPE_CHECKING, Any, Protocol

from pytest_agentproc.clock import is_debugged
from pytest_agentproc.clock.preload import find_coordinator
from pytest_agentproc.errors import AgentprocError, KitError
from pytest_agentproc.foreign import find_module_name
from pytest_agentproc.harness._endless_waits import SPIN_SIGNALS, make_spin_error
from pytest_agentproc.harness._spins import SpinDetector, SpinFinding
from pytest_agentproc.interrupts import hold_interrupts
from pytest_agentproc.originals import Popen, monotonic, monotonic_ns
from pytest_agentproc.tree import exclude_from_tracking

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from pytest_agentproc.plays import PlayResult
    from pytest_agentproc.scenario import Scenario
    from pytest_agentproc.vocabulary import Subject


_PLAY_SERVER_CODE = (
    "import sys; sys.path[:] = sys.argv[3:]; "
    "from pytest_agentproc.harness import ScenarioRunner, _preload; _preload.serve_play_requests(ScenarioRunner)"
)
_NO_MORE_TASKS = b""
_PLAYER_FILE_NAME = "player"
_RESULT_POLL_SECONDS = 0.1
_EXIT_TIMEOUT_SECONDS = 5
_PLAY_TIMEOUT_SECONDS = 300
"""Real seconds after which a play is given up: a supervisor that computes for so long is none that waits."""

_TIMER_ABSTIME = 1
_PLAY_START_STEP_NS = 1_000_000_000_000
_REAL_TIME_NOTE_BEGINNING = "time passes as on the machine while "
_PID_PHRASE_PATTERN = re.compile(r" \(pid \d+\)( lives)?")


class UnreachableSupervisor(Exception):
    """A supervisor that virtual time cannot reach; the text says why."""


class PreloadRunner:
    """A process below a coordinator of its own. It is started when it is first used.

    Args:
        folder: gives a folder for all files of that process, which goes with this process, even if this one is killed.
    """

    def __init__(self, folder: Callable[[], Path]) -> None:
        self._folder = folder
        self._process: Popen[bytes] | None = None
        self._line: Connection | None = None
        self._notes = Path()

    def play(self, scenario: Scenario, subject: Subject, backend: str) -> PlayResult:
        """Play a scenario there.

        Raises:
            UnreachableSupervisor: the supervisor, or what it starts, follows another clock, or cannot be sent there.
            Spin: the supervisor is a thread of that process, and spins. The record of the play is lost.
            AgentprocError: whatever the play raises.
        """
        try:
            task = pickle.dumps((scenario, subject, backend))
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise UnreachableSupervisor(f"{subject.name} cannot be sent to another process: {error}") from None
        if self._line is not None and self._line.poll():
            self._end()  # it sends nothing unasked: it was killed after an earlier play
        if self._process is None:
            self._start()
        assert self._line is not None
        with contextlib.suppress(BrokenPipeError):  # that it has ended is seen where it is listened to
            self._line.send_bytes(task)
        try:
            result = self._receive_result(self._line)
        except BaseException:
            self._end()  # else its result would be taken for the next play's
            raise
        if isinstance(result, BaseException):
            raise result
        played: PlayResult = result
        return played

    def close(self) -> None:
        """Have the process exit as a program does, and end what is left below it.

        What is done at the exit of a program is done then: coverage writes what it has counted.
        """
        if self._process is not None and self._line is not None:
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                self._line.send_bytes(_NO_MORE_TASKS)
                self._process.wait(_EXIT_TIMEOUT_SECONDS)
        self._end()

    def _end(self) -> None:
        """End the process at once, whatever it does, and what is left below it."""
        process, line = self._process, self._line
        self._process = self._line = None
        if process is None or line is None:
            return
        line.close()
        try:
            process.wait(_EXIT_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            process.terminate()
            process.kill()
            process.wait()

    def _start(self) -> None:
        program = str(find_coordinator())  # it may have to be compiled, and that may fail
        with hold_interrupts():
            self._start_coordinator(program)

    def _start_coordinator(self, program: str) -> None:
        folder = Path(tempfile.mkdtemp(prefix="below-", dir=self._folder()))
        self._notes = folder / "notes"
        self._notes.touch()
        # Not `multiprocessing.Pipe`: its sockets are of a class that pytest-socket has refused.
        ours, theirs = (Connection(end.detach()) for end in _socket.socketpair())
        with theirs:
            words = [program, sys.executable, "-c", _PLAY_SERVER_CODE, str(theirs.fileno()), str(folder), *sys.path]
            env = {**os.environ, "AGENTPROC_CLOCK_NOTES": str(self._notes), "AGENTPROC_CLOCK_HARNESS": str(os.getpid())}
            self._process = Popen(
                words, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], env=env, start_new_session=True
            )
        exclude_from_tracking(self._process.pid)
        self._line = ours

    def _receive_result(self, line: Connection) -> Any:
        """Give what comes back; end the process if time passes there as on the machine."""
        assert self._process is not None
        start, has_spun = monotonic(), False
        with contextlib.closing(SpinDetector(self._process.pid)) as spins:
            while not line.poll(_RESULT_POLL_SECONDS):
                self._require_all_in_virtual_time()
                if not (has_spun or is_debugged()) and (found := spins.find_spinner()):
                    has_spun = True
                    self._end_spin(found)
                if monotonic() - start > _PLAY_TIMEOUT_SECONDS:
                    raise KitError(
                        f"a play in virtual time took more than {_PLAY_TIMEOUT_SECONDS} s of the machine; "
                        f"{self._read_coordinator_notes()}"
                    )
        try:
            result = pickle.loads(line.recv_bytes())  # noqa: S301  # from the process that was started here
        except (EOFError, ConnectionResetError):
            raise KitError(
                f"the process below the coordinator ended by itself; {self._read_coordinator_notes()}"
            ) from None
        self._require_all_in_virtual_time()
        return result

    def _end_spin(self, found: SpinFinding) -> None:
        """Have the play end, and then the process that spins: else time would not go on for what is left.

        Raises:
            Spin: a thread of the process that plays spins. No thread can be ended alone, so nothing ends that play.
        """
        player = int((self._notes.parent / _PLAYER_FILE_NAME).read_text("ascii"))
        if found.pid == player:
            raise make_spin_error(found.kind)
        with contextlib.suppress(ProcessLookupError):
            os.kill(player, SPIN_SIGNALS[found.kind])
            os.kill(found.pid, signal.SIGKILL)

    def _require_all_in_virtual_time(self) -> None:
        reasons = [
            _PID_PHRASE_PATTERN.sub("", note.partition(_REAL_TIME_NOTE_BEGINNING)[2])
            for note in self._read_coordinator_notes().splitlines()
            if _REAL_TIME_NOTE_BEGINNING in note
        ]
        if reasons:
            raise UnreachableSupervisor(reasons[0])

    def _read_coordinator_notes(self) -> str:
        """Give what the coordinator has said."""
        return self._notes.read_text("utf-8", errors="replace").strip() or "it said nothing"


class _PlayRunner(Protocol):
    """A runner of scenarios, as that process makes one for itself."""

    def play(self, scenario: Scenario, subject: Subject, *, backend: str) -> PlayResult: ...


def serve_play_requests(make_runner: Callable[[], AbstractContextManager[_PlayRunner]]) -> None:
    """Be that process: play what is asked until nobody asks."""
    line = Connection(int(sys.argv[1]))
    try:
        (Path(sys.argv[2]) / _PLAYER_FILE_NAME).write_text(str(os.getpid()), "ascii")
    except FileNotFoundError:  # the harness was interrupted meanwhile, and has removed its folder
        return
    tempfile.tempdir = sys.argv[2]  # not by TMPDIR, which is the supervisor's, too
    os.set_inheritable(line.fileno(), False)
    Thread(target=_exit_when_peer_closes, args=(line.fileno(),), daemon=True).start()
    with make_runner() as runner, contextlib.suppress(EOFError, BrokenPipeError):
        while task := line.recv_bytes():
            line.send_bytes(pickle.dumps(_play_task(runner, task)))


def _play_task(runner: _PlayRunner, task: bytes) -> PlayResult | Exception:
    try:
        scenario, subject, backend = pickle.loads(task)  # noqa: S301  # from the harness
    except Exception as error:  # noqa: BLE001  # whatever an import of somebody else's module raises
        return UnreachableSupervisor(f"it cannot be found by another process: {error}")
    _wait_for_exact_float_instant()
    try:
        return runner.play(scenario, subject, backend=backend)
    except Exception as error:  # noqa: BLE001  # it is raised where the play was asked for
        return _make_picklable(error)


def _wait_for_exact_float_instant() -> None:
    """Begin each play at an instant that a float holds exactly: sums of floats are then rounded alike in every play."""
    import ctypes  # time.sleep rounds

    libc = ctypes.CDLL(None)
    until = (ctypes.c_long * 2)((monotonic_ns() // _PLAY_START_STEP_NS + 1) * _PLAY_START_STEP_NS // 1_000_000_000, 0)
    libc.clock_nanosleep(CLOCK_MONOTONIC, _TIMER_ABSTIME, ctypes.byref(until), None)


def _exit_when_peer_closes(line: int) -> None:
    """End this process when nobody is at the other end any more; the coordinator ends what is left below.

    At once, whatever runs: a supervisor that spins lets no time pass in which this process could end by itself.
    """
    broken = select.poll()
    broken.register(line, 0)
    broken.poll()
    os._exit(0)


def _make_picklable(error: Exception) -> Exception:
    from traceback import format_exception

    if isinstance(error, AgentprocError) or find_module_name(type(error)).startswith("pytest_agentproc."):
        with contextlib.suppress(Exception):
            pickle.loads(pickle.dumps(error))  # noqa: S301  # it was made here
            return error
    return RuntimeError("".join(format_exception(error)))
