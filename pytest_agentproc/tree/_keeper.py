"""A keeper as its host sees it: started, asked, outlived. Owns the process and its socket; signals nobody by itself."""

from __future__ import annotations

import contextlib
import marshal
import os
import resource
import secrets
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from pytest_agentproc.errors import AgentprocError
from pytest_agentproc.tree._cgroup import end_cgroup, new_cgroup
from pytest_agentproc.tree._members import Members
from pytest_agentproc.tree._membership import SubreaperTree
from pytest_agentproc.tree._prctl import adopt_orphans, release_orphans
from pytest_agentproc.tree._snapshots import check_proc

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["COOKIE", "Ended", "Keeper", "KeeperDied", "Left", "baked", "keepers"]

COOKIE = "AGENTPROC_TREE"
"""The environment variable by which what a dead keeper leaves, or an agent lets go of, is known."""

_STUB = "import marshal\nfor code in marshal.loads(open(0, 'rb', closefd=False).read()): exec(code)\nmain()"
_MODULES = ("_kernel", "_keep")
_PATIENCE = 5.0
"""Real seconds within which a keeper answers; then it is taken for dead, and killed."""
_ENDING = 2.0
"""Real seconds that a keeper may take to end everybody, before its socket is closed; it goes on after that."""
_LEAST = 0.2
"""Real seconds that whatever is done in a hurry has at least."""
_ANSWER = 0.5
"""Real seconds in which a keeper that lives answers even then, on a busy machine."""
_SHARES = 3
"""One answer may take this part of what is left in a hurry: if none comes, the rest must do without the keeper."""
_LONGEST_ANSWER = 200_000
_TURN = 0.1
"""Real seconds of killing as they come, and then of stopping all first, in turns."""
_LOWEST_LIMIT = 65536
_MOST_MARKS = 4096


keepers: set[int] = set()
"""The pids of all keepers of this process that are not reaped."""


class KeeperDied(AgentprocError):
    """A keeper that is gone, or does not answer, was asked."""


@dataclass(frozen=True, slots=True)
class Left:
    """Who lives below a keeper.

    Args:
        commands: the commands by pid, parents before children; of more than 500 the first.
        is_sure: whether nobody was missed: an empty list then is a proof.
    """

    commands: dict[int, str]
    is_sure: bool


@dataclass(frozen=True, slots=True)
class Ended:
    """How a subtree was ended.

    Args:
        killed: the commands by pid of those who were killed; of more than 500 the first.
        refused: of those who may not be signalled, and live on.
        is_over: whether nobody else is left.
    """

    killed: dict[int, str]
    refused: dict[int, str]
    is_over: bool


class _Process(subprocess.Popen[bytes]):
    """A keeper's process.

    `serves_host` tells a virtual clock that it acts only while this process waits for its answer.
    """

    serves_host = True


class Keeper:
    """Start a keeper: a process that everything stays below that it starts, and that ends all of it with this process.

    While it lives this process adopts orphans of its own, so that what a killed keeper leaves is not lost. Its methods
    may be called from any thread; each waits for at most 5 s of real time, and a keeper that has not answered by then
    is killed. After `hurry` all of them together take no longer than it says.

    Raises:
        KeeperDied: it did not come up.
        OSError: it could not be started, or this system has no subreapers.
        UsageError: /proc does not show the pid namespace of this process.
    """

    def __init__(self) -> None:
        check_proc()
        self.cookie = secrets.token_hex(8)
        """What is in the environment of all that it starts."""
        self.mark = _new_mark()
        """The soft limit for message queues of all that it starts; None: it has none of its own."""
        self._lock = threading.RLock()
        self._end: float | None = None
        self.started: set[int] = set()
        """Who was started, and is not reaped."""
        self.cgroup = new_cgroup()
        """The folder of the cgroup that it may make; "" where there can be none."""
        adopt_orphans()
        try:
            self._process = self._begin()
        except BaseException:
            _marks.discard(self.mark)
            release_orphans()
            raise
        self.pid = self._process.pid
        keepers.add(self.pid)
        try:
            self._hear()
        except KeeperDied:
            self.close()
            raise

    def _begin(self) -> _Process:
        """Start the process; whatever fails, no descriptor is kept."""
        none = subprocess.DEVNULL
        with contextlib.ExitStack() as failed:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            failed.callback(ours.close)
            with theirs:
                ours.settimeout(_PATIENCE)
                self._socket = ours
                program = _file(_program())
                command = [interpreter(), "-I", "-S", "-c", _STUB, str(theirs.fileno()), str(os.getpid()), self.cgroup]
                try:
                    process = _Process(
                        command,
                        stdin=program,
                        stdout=none,
                        stderr=none,
                        pass_fds=(theirs.fileno(),),
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
        """Start a program, as a leader of a session of its own, and give its pid: it is no child of this process.

        Args:
            argv: the command; the first word is looked up in `env`'s PATH.
            cwd: where it runs; None: here.
            env: its whole environment, to which the cookie is added; None: ours.
            stdio: its standard descriptors; they stay open here.

        Raises:
            OSError: it could not be started.
            KeeperDied: the keeper is gone.
        """
        words = [os.fsencode(word) for word in argv]
        place = os.fsencode(os.getcwd() if cwd is None else cwd)
        given = {os.fsencode(name): os.fsencode(value) for name, value in baked(env, self.cookie).items()}
        task = _file(marshal.dumps((words, place, given, _limit(self.mark))))
        try:
            pid, number, failed = self._ask("start", descriptors=(task, *stdio))
        finally:
            os.close(task)
        if number:
            raise OSError(number, os.strerror(number), cwd if failed == "cwd" else argv[0])
        self.started.add(int(pid))
        return int(pid)

    def status(self, pid: int) -> int | None:
        """Tell how a process ended that was started: a code, or minus a signal's number; None while it lives."""
        status: int | None = self._ask("status", pid)
        return status

    def reap(self, pid: int) -> int | None:
        """Take the zombie of a process that was started, and its status; until then its pid is no one else's."""
        status: int | None = self._ask("reap", pid)
        self.started.discard(pid)
        return status

    def left(self) -> Left:
        """List who lives below it."""
        living, is_sure = self._ask("left")
        return Left(dict(living), is_sure)

    def kill(self, seconds: float) -> bool:
        """Have everybody below it killed; it goes on with that for as long as somebody comes after.

        Args:
            seconds: real seconds to wait for it.

        Returns:
            Whether nobody is left but who may not be signalled.
        """
        return bool(self._ask("kill", seconds))

    def end(self, seconds: float = 2.0) -> Ended:
        """Kill and reap everybody below it.

        Args:
            seconds: real seconds to wait for it.
        """
        killed, refused, is_over = self._ask("end", seconds)
        return Ended(dict(killed), dict(refused), is_over)

    def hurry(self, seconds: float) -> None:
        """Have everything that is asked from now on be over within so many real seconds."""
        self._end = time.monotonic() + seconds

    def _seconds(self, most: float) -> float:
        """Give how long something may take, a little at least."""
        return most if self._end is None else max(_LEAST, min(most, self._end - time.monotonic()))

    def close(self) -> None:
        """End everybody and the keeper itself; of one that is dead, end what it left. May be called twice.

        No signal ends a process that the kernel does not let run. The keeper stays for it, and goes with the last one.
        """
        with self._lock:
            if self._socket.fileno() < 0:
                return
            is_adopting = True
            with contextlib.suppress(KeeperDied):
                self.end(self._seconds(_ENDING))
                release_orphans()  # whoever lives is the keeper's, or may not be signalled and is nobody's child here
                is_adopting = False
            self._socket.close()
            try:
                self._process.wait(self._seconds(_PATIENCE))
            except subprocess.TimeoutExpired:
                threading.Thread(target=self._bury, name="agentproc-keeper", daemon=True).start()
            else:
                self._bury()
            if is_adopting:
                self._end_orphans()
                release_orphans()
                end_cgroup(self.cgroup)

    def _bury(self) -> None:
        """Wait for the end of the keeper, and leave nothing of it."""
        self._process.wait()
        end_cgroup(self.cgroup)
        keepers.discard(self.pid)
        _marks.discard(self.mark)

    def _end_orphans(self) -> None:
        """Kill and reap what this process adopted when the keeper died, as far as it is known to be the keeper's."""
        members = Members(None, SubreaperTree(-1, self.cookie, self.mark), _ignore, _ignore)
        end = time.monotonic() + self._seconds(_PATIENCE)
        turns = 0
        while time.monotonic() < end:
            members.hunt(_TURN, freeze=turns % 2 == 1)
            members.survey(_TURN)
            members.prune()
            if members.is_empty and members.is_sure:
                break
            turns += 1
        members.close()

    def _ask(self, op: str, *arguments: Any, descriptors: tuple[int, ...] = ()) -> Any:
        with self._lock:
            if not self.is_alive or self._socket.fileno() < 0:
                raise KeeperDied(f"the keeper (pid {self.pid}) is gone")
            if self._end is not None:
                self._socket.settimeout(max(_ANSWER, self._seconds(_PATIENCE) / _SHARES))
            try:
                socket.send_fds(self._socket, [marshal.dumps((op, arguments))], descriptors)
            except OSError as error:
                raise self._lost(error) from error
            return self._hear()

    def _hear(self) -> Any:
        try:
            message = self._socket.recv(_LONGEST_ANSWER)
        except OSError as error:
            raise self._lost(error) from error
        if not message:
            raise self._lost("its socket has ended")
        is_answer, value = marshal.loads(message)  # noqa: S302  # our own program wrote it
        if not is_answer:
            raise self._lost(value)
        return value

    def _lost(self, why: object) -> KeeperDied:
        """End a keeper that is of no use any more; what it held is ours then."""
        self._process.kill()
        self._process.wait()
        return KeeperDied(f"the keeper (pid {self.pid}) is gone: {why}")


def baked(env: Mapping[str, str] | None, cookie: str) -> dict[str, str]:
    """Give an environment with a cookie in it, beside those of whoever holds this process itself.

    Args:
        env: the environment; None: ours.
        cookie: the word that is to be found in it.
    """
    given = dict(os.environ if env is None else env)
    outer = given.get(COOKIE)
    return {COOKIE: f"{outer} {cookie}" if outer else cookie} | {n: v for n, v in given.items() if n != COOKIE}


def interpreter() -> str:
    """Give the interpreter below any virtual environment: it starts faster, and a keeper needs nothing else."""
    return getattr(sys, "_base_executable", None) or sys.executable


@cache
def _program() -> bytes:
    """Compile the keeper's program: once, and not at each start."""
    folder = os.path.dirname(__file__)
    codes = []
    for name in _MODULES:
        path = os.path.join(folder, f"{name}.py")
        with open(path, "rb") as file:
            codes.append(compile(file.read(), path, "exec", dont_inherit=True, optimize=2))
    return marshal.dumps(codes)


def _ignore(descriptor: int) -> None:
    """Watch nothing."""


def _file(data: bytes) -> int:
    """Give a descriptor from which data can be read."""
    number = os.memfd_create("agentproc")
    with open(number, "wb", closefd=False) as file:
        file.write(data)
    os.lseek(number, 0, os.SEEK_SET)
    return number


_marks: set[int | None] = set()


def _new_mark() -> int | None:
    """Choose a limit a little below ours that no other keeper of this process has; None where there is no room."""
    soft = resource.getrlimit(resource.RLIMIT_MSGQUEUE)[0]
    if soft < _LOWEST_LIMIT:  # unlimited is -1
        return None
    mark = next((one for _ in range(100) if (one := soft - 1 - secrets.randbelow(_MOST_MARKS)) not in _marks), None)
    _marks.add(mark)
    return mark


def _limit(mark: int | None) -> bytes | None:
    """Give a limit as the kernel takes it: soft, hard."""
    if mark is None:
        return None
    hard = resource.getrlimit(resource.RLIMIT_MSGQUEUE)[1]
    return b"".join((number % (1 << 64)).to_bytes(8, sys.byteorder) for number in (mark, hard))
