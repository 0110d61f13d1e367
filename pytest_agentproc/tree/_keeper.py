"""A keeper as its host sees it: started, asked, outlived. Owns the process and its socket; sends no other signals."""

from __future__ import annotations

import _socket
import contextlib
import io
import marshal
import os
import resource
import secrets
import socket
import subprocess
import sys
import threading
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from pytest_agentproc.errors import AgentprocError
from pytest_agentproc.originals import Popen, monotonic
from pytest_agentproc.tree._kernel import read_parent
from pytest_agentproc.tree._members import TreeProcesses
from pytest_agentproc.tree._membership import SubreaperTree
from pytest_agentproc.tree._prctl import adopt_orphans, release_orphans
from pytest_agentproc.tree._snapshots import require_own_proc

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_agentproc.tree._membership import KnownTreeProcesses


TREE_COOKIE_VARIABLE = "AGENTPROC_TREE"
"""The environment variable that identifies the orphans of a dead keeper or of an agent."""

_KEEPER_START_CODE = (
    "import marshal\nfor code in marshal.loads(open(0, 'rb', closefd=False).read()): exec(code)\nmain()"
)
_KEEPER_MODULE_NAMES = ("_kernel", "_keeper_server")
_ANSWER_TIMEOUT_SECONDS = 5.0
"""Real seconds within which a keeper answers; after that it counts as dead, and is killed."""
_TREE_END_SECONDS = 2.0
"""Real seconds that a keeper may take to end its tree before its socket is closed; it continues after that."""
_LEAST_STEP_SECONDS = 0.2
"""The least real seconds for any step, even in a hurry."""
_LEAST_ANSWER_SECONDS = 0.5
"""Real seconds in which a living keeper answers even on a busy machine."""
_HURRIED_ANSWER_TIME_DIVISOR = 3
"""In a hurry, one answer may take this part of the time that is left: without it the rest must do without a keeper."""
_MAX_ANSWER_BYTES = 200_000
_SECONDS_PER_KILL_METHOD = 0.1
"""Real seconds of killing processes as they come, then of stopping all first, in turns."""
_LEAST_QUEUE_LIMIT_BYTES = 65536
_QUEUE_LIMIT_MARK_COUNT = 4096


living_keeper_pids: set[int] = set()
"""The pids of all keepers of this process that are not reaped."""


class KeeperDied(AgentprocError):
    """A keeper was asked that is dead or does not answer."""


@dataclass(frozen=True, slots=True)
class RemainingProcesses:
    """The living processes below a keeper.

    Args:
        commands: the commands by pid, parents before children; the first 500 at most.
        is_sure: whether the list is complete: an empty list then is a proof.
    """

    commands: dict[int, str]
    is_sure: bool


@dataclass(frozen=True, slots=True)
class EndReport:
    """The result of ending a subtree.

    Args:
        killed: the commands by pid of the killed processes; the first 500 at most.
        refused: the commands of the processes that may not be signalled, and live on.
        is_over: whether no other process is left.
    """

    killed: dict[int, str]
    refused: dict[int, str]
    is_over: bool


class _KeeperProcess(Popen[bytes]):
    """A keeper's process.

    `serves_host` says to a virtual clock that it acts only while this process waits for its answer.
    """

    serves_host = True


class Keeper:
    """Start a keeper: a process that holds everything that it starts below it, and ends all of it with this process.

    While the keeper lives, this process adopts orphans of its own, so that the tree of a killed keeper is not lost. Its
    methods may be called from any thread. Each waits for at most 5 s of real time; a keeper that has not answered by
    then is killed. After `limit_total_time` all of them together take no longer than it says.

    Raises:
        KeeperDied: it did not come up.
        OSError: it could not be started, or this system has no subreapers.
        UsageError: /proc does not show the pid namespace of this process.
    """

    def __init__(self) -> None:
        require_own_proc()
        self.cookie = secrets.token_hex(8)
        """The word in the environment of all that it starts."""
        self.mark = _choose_queue_limit_mark()
        """The soft limit for message queues of all that it starts; None: it has none of its own."""
        self._lock = threading.RLock()
        self._end: float | None = None
        self.fault = ""
        """Why this process killed the keeper; "": it did not."""
        self.started: set[int] = set()
        """The pids that were started and are not reaped."""
        # Before the keeper exists, not after it: a keeper that is killed in between would leave its tree to process 1,
        # out of reach. With adoption its orphans become children of this process.
        adopt_orphans()
        try:
            self._process = self._start_process()
        except BaseException:
            _used_queue_limit_marks.discard(self.mark)
            release_orphans()
            raise
        self.pid = self._process.pid
        living_keeper_pids.add(self.pid)
        try:
            self._read_answer()
        except KeeperDied:
            self.close()
            raise

    def _start_process(self) -> _KeeperProcess:
        """Start the process; close every descriptor if it fails."""
        none = subprocess.DEVNULL
        with contextlib.ExitStack() as failed:
            # Not those of `socket`: pytest-socket has every socket of that class refused.
            ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
            failed.callback(ours.close)
            with contextlib.closing(theirs):
                ours.settimeout(_ANSWER_TIMEOUT_SECONDS)
                self._socket = ours
                # The program is compiled once and travels in a file: a start takes milliseconds, and no import path of
                # the host can break it.
                program = _write_to_memory_file(_compile_keeper_program())
                command = [
                    find_interpreter(),
                    "-I",
                    "-S",
                    "-c",
                    _KEEPER_START_CODE,
                    str(theirs.fileno()),
                    str(os.getpid()),
                ]
                try:
                    process = _KeeperProcess(
                        command,
                        stdin=program,
                        stdout=none,
                        stderr=none,
                        pass_fds=(theirs.fileno(),),
                        # A session of its own: a Ctrl+C in the terminal must not end the keeper before its host has
                        # used it.
                        start_new_session=True,
                    )
                finally:
                    os.close(program)
            failed.pop_all()
        return process

    @property
    def is_alive(self) -> bool:
        """Whether it lived when it was last asked."""
        return self._process.returncode is None

    def start(
        self, argv: Sequence[str], cwd: str | None, env: Mapping[str, str] | None, stdio: tuple[int, int, int]
    ) -> int:
        """Start a program as leader of a session of its own, and give its pid; it is no child of this process.

        Args:
            argv: the command; the first word is looked up in `env`'s PATH.
            cwd: where it runs; None: here.
            env: its whole environment, to which the cookie is added; None: ours.
            stdio: its standard descriptors; they stay open here.

        Raises:
            OSError: it could not be started.
            KeeperDied: the keeper has ended.
        """
        words = [os.fsencode(word) for word in argv]
        place = os.fsencode(os.getcwd() if cwd is None else cwd)
        given = {os.fsencode(name): os.fsencode(value) for name, value in add_cookie(env, self.cookie).items()}
        # In a file, not in arguments: a command of more than 128 KiB is E2BIG.
        task = _write_to_memory_file(marshal.dumps((words, place, given, _pack_queue_limit(self.mark))))
        try:
            pid, number, failed = self._ask_keeper("start", descriptors=(task, *stdio))
        finally:
            os.close(task)
        if number:
            raise OSError(number, os.strerror(number), cwd if failed == "cwd" else argv[0])
        self.started.add(int(pid))
        return int(pid)

    def read_status(self, pid: int) -> int | None:
        """Say how a started process ended: a code, or minus a signal's number; None while it lives."""
        status: int | None = self._ask_keeper("status", pid)
        return status

    def reap(self, pid: int) -> int | None:
        """Reap a started process, and give its status; until then its pid belongs to it alone."""
        status: int | None = self._ask_keeper("reap", pid)
        self.started.discard(pid)
        return status

    def find_remaining_processes(self) -> RemainingProcesses:
        """List the living processes below it."""
        living, is_sure = self._ask_keeper("remaining")
        return RemainingProcesses(dict(living), is_sure)

    def kill_all(self, seconds: float) -> bool:
        """Kill all processes below it; the keeper continues as long as new ones come.

        Args:
            seconds: real seconds to wait for it.

        Returns:
            Whether only processes are left that may not be signalled.
        """
        return bool(self._ask_keeper("kill", seconds))

    def end_all(self, seconds: float = 2.0) -> EndReport:
        """Kill and reap all processes below it.

        Args:
            seconds: real seconds to wait for it.
        """
        killed, refused, is_over = self._ask_keeper("end", seconds)
        return EndReport(dict(killed), dict(refused), is_over)

    def limit_total_time(self, seconds: float) -> None:
        """Limit everything that is asked from now on to the given real seconds together."""
        self._end = monotonic() + seconds

    def _limit_step_seconds(self, most: float) -> float:
        """Limit the time of a step by the hurry; each step has a minimum."""
        return most if self._end is None else max(_LEAST_STEP_SECONDS, min(most, self._end - monotonic()))

    def close(self) -> None:
        """End all processes and the keeper; if the keeper is dead, end the processes that it left. May be called twice.

        No signal ends a process that the kernel does not let run. The keeper waits for it, and ends after the last one.
        """
        with self._lock:
            if self._socket.fileno() < 0:
                return
            is_adopting = True
            with contextlib.suppress(KeeperDied):
                self.end_all(self._limit_step_seconds(_TREE_END_SECONDS))
                release_orphans()  # the living are the keeper's, or may not be signalled and are no children here
                is_adopting = False
            self._socket.close()
            try:
                self._process.wait(self._limit_step_seconds(_ANSWER_TIMEOUT_SECONDS))
            # A frozen tree or a stopped keeper once blocked the event loop for 15 s here. A thread waits instead.
            except subprocess.TimeoutExpired:
                threading.Thread(target=self._await_keeper_end, name="agentproc-keeper", daemon=True).start()
            else:
                self._await_keeper_end()
            if is_adopting:
                self._end_orphans()
                release_orphans()

    def _await_keeper_end(self) -> None:
        """Wait for the end of the keeper, and remove its mark."""
        self._process.wait()
        living_keeper_pids.discard(self.pid)
        _used_queue_limit_marks.discard(self.mark)

    def _end_orphans(self) -> None:
        """Kill and reap the adopted processes of a dead keeper, as far as cookie or mark identify them."""
        members = TreeProcesses(None, SubreaperTree(-1, self.cookie, self.mark), _ignore_descriptor, _ignore_descriptor)
        end = monotonic() + self._limit_step_seconds(_ANSWER_TIMEOUT_SECONDS)
        turns = 0
        while monotonic() < end:
            # Killing as they come is fastest for most trees, but a fork bomb refills each freed slot for ever. Stopping
            # all first ends it, but needs much longer for small trees. The turns alternate.
            members.kill_all(_SECONDS_PER_KILL_METHOD, freeze=turns % 2 == 1)
            members.walk_tree_until_sure(_SECONDS_PER_KILL_METHOD)
            members.drop_dead_members()
            if members.is_empty and members.is_sure:
                break
            turns += 1
        members.close()

    def _ask_keeper(self, op: str, *arguments: Any, descriptors: tuple[int, ...] = ()) -> Any:
        with self._lock:
            if not self.is_alive or self._socket.fileno() < 0:
                raise KeeperDied(f"the keeper (pid {self.pid}) is gone")
            # One stopped keeper must not use up the whole hurry: the rest of the time is for killing without it.
            if self._end is not None:
                self._socket.settimeout(
                    max(
                        _LEAST_ANSWER_SECONDS,
                        self._limit_step_seconds(_ANSWER_TIMEOUT_SECONDS) / _HURRIED_ANSWER_TIME_DIVISOR,
                    )
                )
            try:
                message = [marshal.dumps((op, arguments))]
                socket.send_fds(self._socket, message, descriptors)  # type: ignore[arg-type]  # it calls `sendmsg`
            except OSError as error:
                raise self._kill_keeper(error) from error
            return self._read_answer()

    def _read_answer(self) -> Any:
        try:
            message = self._socket.recv(_MAX_ANSWER_BYTES)
        except OSError as error:
            raise self._kill_keeper(error) from error
        if not message:
            raise self._kill_keeper("its socket has ended")
        is_answer, value = marshal.loads(message)  # noqa: S302  # our own program wrote it
        if not is_answer:
            raise self._kill_keeper(value)
        return value

    def _kill_keeper(self, why: object) -> KeeperDied:
        """Kill a keeper that is of no more use; this process then adopts its tree."""
        # A keeper that is late may still answer. Its answer would be read as the one to the next question, so it has to
        # die.
        self.fault = str(why)
        self._process.kill()
        self._process.wait()
        return KeeperDied(f"the keeper (pid {self.pid}) is gone: {why}")


def add_cookie(env: Mapping[str, str] | None, cookie: str) -> dict[str, str]:
    """Give an environment with a cookie added to the cookies of the outer programs.

    Args:
        env: the environment; None: ours.
        cookie: the word that is to be found in it.
    """
    given = dict(os.environ if env is None else env)
    # A nested run adds its word. With one word that each program replaced, an outer run would lose its processes, as
    # happened to Jenkins with its cookie.
    outer = given.get(TREE_COOKIE_VARIABLE)
    return {TREE_COOKIE_VARIABLE: f"{outer} {cookie}" if outer else cookie} | {
        n: v for n, v in given.items() if n != TREE_COOKIE_VARIABLE
    }


def find_interpreter() -> str:
    """Give the interpreter below any virtual environment: it starts faster, and keepers and fakes need no packages."""
    return getattr(sys, "_base_executable", None) or sys.executable


@cache
def _compile_keeper_program() -> bytes:
    """Compile the keeper's program: once, and not at each start."""
    folder = os.path.dirname(__file__)
    codes = []
    for name in _KEEPER_MODULE_NAMES:
        path = os.path.join(folder, f"{name}.py")
        with io.open(path, "rb") as file:
            codes.append(compile(file.read(), path, "exec", dont_inherit=True, optimize=2))
    return marshal.dumps(codes)


def _ignore_descriptor(descriptor: int) -> None:
    """Ignore a descriptor."""


def _write_to_memory_file(data: bytes) -> int:
    """Give a descriptor from which data can be read."""
    number = os.memfd_create("agentproc")
    try:
        with io.open(number, "wb", closefd=False) as file:
            file.write(data)
        os.lseek(number, 0, os.SEEK_SET)
    except BaseException:  # a limit on the size of files, or of memory, holds here too
        os.close(number)
        raise
    return number


_used_queue_limit_marks: set[int | None] = set()


def _choose_queue_limit_mark() -> int | None:
    """Choose a limit a little below ours that no other keeper of this process has; None if there is no room."""
    # The environment of a process can be cleared, but a soft limit is inherited all the same. A daemon with closed
    # descriptors and a cleared environment was missed by every other mark.
    soft = resource.getrlimit(resource.RLIMIT_MSGQUEUE)[0]
    if soft < _LEAST_QUEUE_LIMIT_BYTES:  # unlimited is -1
        return None
    mark = next(
        (
            drawn
            for _ in range(100)
            if (drawn := soft - 1 - secrets.randbelow(_QUEUE_LIMIT_MARK_COUNT)) not in _used_queue_limit_marks
        ),
        None,
    )
    _used_queue_limit_marks.add(mark)
    return mark


def _pack_queue_limit(mark: int | None) -> bytes | None:
    """Pack a limit in the kernel's form: soft, hard."""
    if mark is None:
        return None
    hard = resource.getrlimit(resource.RLIMIT_MSGQUEUE)[1]
    return b"".join((number % (1 << 64)).to_bytes(8, sys.byteorder) for number in (mark, hard))


class KeeperTree:
    """Everything below a keeper, whatever it did."""

    adopts = is_cut = False

    def __init__(self, keeper: Keeper, root: int) -> None:
        self.is_sure = True
        self._keeper = keeper
        self._root = root

    def find_candidates(self, known: KnownTreeProcesses, end: float) -> Iterator[int]:
        """See `TreeProcessFinder`."""
        left = self._keeper.find_remaining_processes()
        self.is_sure = left.is_sure
        return iter([pid for pid in left.commands if pid != self._root])

    def confirm_member(self, pid: int, pidfd: int) -> bool:
        """See `TreeProcessFinder`."""
        return _is_descendant(pid, self._keeper.pid)

    def pin_session(self, pid: int) -> bool:
        """See `TreeProcessFinder`."""
        return True


def _is_descendant(pid: int, ancestor: int) -> bool:
    while pid > 1:
        pid = read_parent(pid)
        if pid == ancestor:
            return True
    return False
