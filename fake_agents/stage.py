"""The real stage: every side effect of a fake process. Owns descriptors, signals and forks; decides nothing."""

from __future__ import annotations

import posix
import select
import sys
from _signal import SIG_BLOCK, SIG_DFL, SIG_IGN, SIG_SETMASK, SIG_UNBLOCK, SIGCHLD, pthread_sigmask, signal

from pytest_agentproc.fake_agents.birth import fork_descendant, is_child_alive, wait_for_child
from pytest_agentproc.fake_agents.program import (
    FATAL_SIGNALS,
    GROUP_LEADING_SPAWN_WAYS,
    MAX_HELD_NOTES_BYTES,
    MAX_REPORTED_ENVIRON_BYTES,
    MAX_REPORTED_WORD_BYTES,
    MAX_WRITE_BYTES,
    PARENT_NAME,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from pytest_agentproc.fake_agents.program import Program
    from pytest_agentproc.fake_agents.serving.http_server import HttpServer

_STREAM_DESCRIPTORS = {"stdin": 0, "stdout": 1, "stderr": 2}
_FOLDER_FLAGS = posix.O_RDONLY | posix.O_DIRECTORY | posix.O_NOFOLLOW | posix.O_CLOEXEC
_NEW_FILE_FLAGS = posix.O_WRONLY | posix.O_CREAT | posix.O_TRUNC | posix.O_NOFOLLOW | posix.O_NONBLOCK | posix.O_CLOEXEC
_MESSAGE_FILE_FLAGS = posix.O_WRONLY | posix.O_CREAT | posix.O_CLOEXEC
_SESSION_FILE_FLAGS = posix.O_WRONLY | posix.O_CREAT | posix.O_APPEND | posix.O_NOFOLLOW | posix.O_CLOEXEC
_OUTPUT_NOTE_CODES = {"stdout": "o", "stderr": "e"}
_READABLE_EVENT, _WRITABLE_EVENT = select.EPOLLIN, select.EPOLLOUT


STARTED_PROGRAMS: list[Any] = []
"""The programs beside the fakes that this process has started: see `children`."""


class ForkedChildStart(BaseException):
    """Unwinds the forked child up to `main`, which starts over with the child's program."""

    def __init__(self, parent: int, index: int, fields: dict[str, Any], program: Program) -> None:
        super().__init__()
        self.parent = parent
        self.index = index
        self.fields = fields
        self.program = program


def _is_stdin_close_invisible() -> bool:
    """Say whether the close of stdin is invisible: it is a file, or a shell above has it open as well."""
    try:
        if posix.fstat(0).st_mode & _FILE_TYPE_MASK not in _PIPE_AND_SOCKET_TYPES:
            return True
        return posix.readlink("/proc/self/fd/0") == posix.readlink(f"/proc/{posix.getppid()}/fd/0")
    except OSError:
        return False


_FILE_TYPE_MASK = 0o170000
_PIPE_AND_SOCKET_TYPES = (0o010000, 0o140000)
"""Kinds of files of which the other end is told: pipes and sockets."""


class SideEffectStage:
    """The effects of a player on the world.

    Args:
        send: sends notes without parking, as `fake_agents.wire.encode_notes_message` has it.
        tell_death: called with a signal's number before dying of it; None: the parent sees it by itself.
        parent: the pid of the fake that spawned this one; 0 if none did.
        foreign: (device, inode) of a file with a reader outside the experiment: a write there takes its time.
    """

    def __init__(
        self,
        send: Callable[[str, list[Any]], None],
        tell_death: Callable[[int, list[Any]], None] | None = None,
        parent: int = 0,
        foreign: Sequence[tuple[int, int]] = (),
    ) -> None:
        self.notes: list[Any] = []
        self.signals: list[int] = []
        self.epoll = select.epoll()
        self.always: set[int] = set()
        self._send = send
        self._tell_death = tell_death
        self._armed = [False, False, False]
        self._caught: set[int] = set()
        self._exit_codes: dict[int, int | None] = {}
        self._unreaped: set[int] = set()
        self._parent = parent
        self._children: dict[str, tuple[int, bool]] = {}
        self._ends: dict[str, int] = {}
        self._room = {"stdout": select.poll(), "stderr": select.poll()}
        self._size = 0
        self._server: HttpServer | None = None
        for stream, poll in self._room.items():
            poll.register(_STREAM_DESCRIPTORS[stream], select.POLLOUT)
        self._foreign = {
            stream
            for stream, number in _STREAM_DESCRIPTORS.items()
            if number and _read_file_identity(number) in foreign
        }
        self.always.update(_STREAM_DESCRIPTORS[stream] for stream in self._foreign)
        if tell_death is not None:
            for signum in FATAL_SIGNALS:
                signal(signum, self._die_of_caught_signal)

    def add_note(self, code: str, data: Any) -> None:
        """Keep a note for the record; it travels with the next message."""
        self.notes.append((code, data))
        if isinstance(data, bytes):
            self._size += len(data)
            if self._size > MAX_HELD_NOTES_BYTES:
                self._send("N", self.take_unsent_notes())

    def read_start_facts(self, names: Sequence[str] | None) -> dict[str, Any]:
        """Tell arguments, working directory, and these variables of the environment (None: all), as text."""
        found = (
            _read_bounded_environment() if names is None else {name: posix.environ.get(name.encode()) for name in names}
        )
        return {
            "argv": [_decode_bounded_word(word.encode("utf-8", "surrogateescape")) for word in sys.argv[1:101]],
            "env": {name: None if value is None else _decode_bounded_word(value) for name, value in found.items()},
            "cwd": _decode_bounded_word(posix.getcwdb()),
            "longest": MAX_REPORTED_WORD_BYTES,
        }

    def take_unsent_notes(self) -> list[Any]:
        """Give the notes so far, once."""
        notes, self.notes, self._size = self.notes, [], 0
        return notes

    def watch_streams(self, wants: tuple[bool, bool, bool]) -> bool:
        """Watch exactly these streams; return whether one of them is ready at all times (a file, /dev/null)."""
        if [*wants] == self._armed:
            return False
        forever = False
        for number, wanted in enumerate(wants):
            if number in self.always:
                forever = forever or wanted
            elif wanted != self._armed[number]:
                try:
                    self.epoll.register(
                        number, _WRITABLE_EVENT if number else _READABLE_EVENT
                    ) if wanted else self.epoll.unregister(number)
                except PermissionError:  # no poll knows it: it never blocks
                    self.always.add(number)
                    forever = True
                else:
                    self._armed[number] = wanted
        return forever

    def can_read_stdin(self, events: list[tuple[int, int]]) -> bool:
        """Say whether stdin can be read without blocking."""
        return 0 in self.always or (bool(events) and any(number == 0 for number, _ in events))

    def has_terminal(self) -> bool:
        """Say whether stdin and stdout are a terminal."""
        return posix.isatty(0) and posix.isatty(1)

    def can_write_chunk(self, stream: str) -> bool:
        """Say whether a chunk can be written without blocking; a broken pipe can."""
        return stream in self._foreign or bool(self._room[stream].poll(0))

    def write_chunk(self, stream: str, data: bytes) -> bool:
        """Write one chunk; return False if there is no reader any more."""
        try:
            if stream in self._foreign:
                self._write_whole_chunk(stream, data)
            else:
                posix.write(_STREAM_DESCRIPTORS[stream], data)
        except OSError:
            self.add_note("b", stream)
            return False
        self.add_note(_OUTPUT_NOTE_CODES[stream], data)
        if stream in self._foreign and len(data) >= MAX_WRITE_BYTES:
            self._send("N", self.take_unsent_notes())  # it took as long as it took: whoever waits for a word hears one
        return True

    def _write_whole_chunk(self, stream: str, data: bytes) -> None:
        """Write all of it in real time, whether or not the descriptor blocks."""
        while data:
            self._room[stream].poll()
            try:
                data = data[posix.write(_STREAM_DESCRIPTORS[stream], data) :]
            except BlockingIOError:
                continue

    def write_file(self, path: str, data: bytes) -> None:
        """Write a file below the working directory, and the folders on its way; follow no link out of it."""
        if posix.getcwdb() == b"/":
            raise OSError("its folder is /, and a fake writes nothing there")
        _write_file_below(posix.open(".", _FOLDER_FLAGS), path, _NEW_FILE_FLAGS, 0o666, data)

    def write_message_file(self, path: str, data: bytes | None) -> None:
        """Write a file that the arguments name, anywhere; without data, make it if it is missing."""
        flags = _MESSAGE_FILE_FLAGS | (posix.O_TRUNC if data is not None else 0)
        _write_and_close(posix.open(path, flags, 0o666), data or b"")

    def append_session_file(self, path: str, data: bytes) -> None:
        """Write at the end of a session file, which is made with its folders; follow no link, and give up silently."""
        try:
            _write_file_below(posix.open("/", _FOLDER_FLAGS), path.strip("/"), _SESSION_FILE_FLAGS, 0o600, data)
        except OSError:
            return

    def open_server(self) -> HttpServer:
        """Make a server, which does not listen yet."""
        from pytest_agentproc.fake_agents.serving.http_server import HttpServer  # most fakes do not pay for it

        self._server = HttpServer(self.epoll)
        return self._server

    def close_after_fork(self) -> None:
        """Close what a fork of this process has of it: only its streams stay."""
        self.epoll.close()
        if self._server is not None:
            self._server.close()

    def read_stdin(self, size: int) -> bytes | None:
        """Take what stdin has; b"" is EOF."""
        try:
            return posix.read(0, size)
        except OSError:
            return b""

    def close_stream(self, stream: str) -> None:
        """Close a stream for good; the number stays taken, so that nothing else gets it."""
        number = _STREAM_DESCRIPTORS[stream]
        self.stop_watching_stream(number)
        self.add_note("c", stream)
        if number == 0 and _is_stdin_close_invisible():
            self.add_note("q", {"kept": stream})
        null = posix.open("/dev/null", posix.O_RDWR)
        posix.dup2(null, number)
        posix.close(null)

    def stop_watching_stream(self, number: int) -> None:
        """Forget a stream that is about to be closed."""
        if self._armed[number]:
            self.epoll.unregister(number)
            self._armed[number] = False

    def catch_signal(self, signum: int, exit_code: int | None = None) -> None:
        """Hear a signal from now on instead of dying of it; exit with a code at once while a hook is awaited."""
        self._exit_codes[signum] = exit_code
        if signum not in self._caught:
            self._caught.add(signum)
            signal(signum, self._record_signal)

    def stop_catching_signal(self, signum: int) -> None:
        """Die of a signal again."""
        self._caught.discard(signum)
        is_seen = self._tell_death is None and not STARTED_PROGRAMS
        signal(signum, SIG_DFL if is_seen else self._die_of_caught_signal)

    def end_children_on_fatal_signals(self) -> None:
        """Have a signal that kills this process end the programs of `STARTED_PROGRAMS` first."""
        for signum in FATAL_SIGNALS if STARTED_PROGRAMS else ():
            if signum not in self._caught:
                signal(signum, self._die_of_caught_signal)

    def _die_of_caught_signal(self, signum: int, frame: object) -> None:
        self.die_of_signal(signum)

    def _record_signal(self, signum: int, frame: object) -> None:
        self.signals.append(signum)
        code = self._exit_codes[signum]
        if code is not None and any(child.is_awaited for child in STARTED_PROGRAMS):
            self.exit_process(code)  # the player does not come back before the hook has ended

    def take_caught_signals(self) -> list[int]:
        """Give the signals caught so far, once."""
        signals, self.signals = self.signals, []
        return signals

    def spawn_descendant(self, index: int, fields: dict[str, Any], program: Program) -> None:
        """Fork a descendant; it is its parent's image and starts over with a program of its own."""
        parent, stays = posix.getpid(), fields.get("zombie")
        if stays:
            signal(SIGCHLD, SIG_DFL)
        if self.notes:  # the fork may wait for another process, and what was done before can be seen meanwhile
            self._send("N", self.take_unsent_notes())
        pid = fork_descendant(fields["how"], stops=fields.get("stopped", False))
        if pid == 0:
            _take_name(fields["id"])
            raise ForkedChildStart(parent, index, fields, program)
        self._children[fields["id"]] = pid, fields["how"] in GROUP_LEADING_SPAWN_WAYS
        if stays:
            self._unreaped.add(pid)
            signal(SIGCHLD, self._reap_dead_children)
            self._reap_dead_children(SIGCHLD, None)
        self.add_note("p", (index, pid, fields["id"], fields["line"]))

    def _reap_dead_children(self, signum: int, frame: object) -> None:
        """Wait for every dead child, its own and adopted ones, except the intended zombies."""
        pid = posix.getpid()
        with open(f"/proc/{pid}/task/{pid}/children", "rb", buffering=0) as file:
            children = {int(child) for child in file.read().split()}
        for child in children - self._unreaped:
            wait_for_child(child, posix.WNOHANG)

    def watch_process_end(self, name: str) -> None:
        """Have the end of a child, or of the parent, wake the player, once."""
        if self._is_parent_or_child_process(name) and name not in self._ends:
            try:
                end = posix.pidfd_open(self._find_pid(name))
            except ProcessLookupError:  # it ended, and was reaped, since the look before: `has_process_ended` says so
                return
            self._ends[name] = end
            self.epoll.register(end, _READABLE_EVENT | select.EPOLLONESHOT)

    def has_process_ended(self, name: str) -> bool:
        """Say whether a process that is watched has ended; one that could not be watched had."""
        end = self._ends.get(name)
        if end is None:
            return True
        ended = select.poll()
        ended.register(end, select.POLLIN)
        if not ended.poll(0):
            return False
        posix.close(self._ends.pop(name))
        return True

    def signal_process(self, name: str, signum: int) -> None:
        """Signal the parent, or a child, with the group if it leads one; the pid of an ended one may be any other's."""
        if self._is_parent_or_child_process(name):
            pid, leads = (self._parent, False) if name == PARENT_NAME else self._children[name]
            try:
                (posix.killpg if leads else posix.kill)(pid, signum)
            except ProcessLookupError:  # it ended, and was reaped, since the look before
                return

    def _find_pid(self, name: str) -> int:
        return self._parent if name == PARENT_NAME else self._children[name][0]

    def _is_parent_or_child_process(self, name: str) -> bool:
        """Say whether a process is this one's parent still, or a child that lives."""
        if name == PARENT_NAME:
            return posix.getppid() == self._parent
        return name in self._children and is_child_alive(self._find_pid(name))

    def exit_process(self, code: int) -> None:
        """Exit now, flushing nothing."""
        _end_started_programs()
        self._send("B", [*self.take_unsent_notes(), ("x", code)])
        posix._exit(code)

    def die_of_signal(self, signum: int) -> None:
        """Die of a signal."""
        if signum != _SIGKILL_NUMBER:
            _end_started_programs()
        if self._tell_death is None:
            self._send("B", self.take_unsent_notes())
        else:
            self._tell_death(signum, self.take_unsent_notes())
        if signum != _SIGKILL_NUMBER:
            signal(signum, SIG_DFL)
            pthread_sigmask(SIG_UNBLOCK, [signum])
        posix.kill(posix.getpid(), signum)


_SIGKILL_NUMBER, _SIGSTOP_NUMBER = 9, 19


def _end_started_programs() -> None:
    for child in STARTED_PROGRAMS:
        child.end_by_signals()


def _take_name(name: str) -> None:
    """Have lists of processes, and those who name what is left, call this process by the id of its `spawn`."""
    try:
        comm = posix.open("/proc/self/comm", posix.O_WRONLY | posix.O_CLOEXEC)
    except OSError:  # there is no /proc, or no descriptor is left
        return
    try:
        posix.write(comm, name.encode(errors="replace"))
    finally:
        posix.close(comm)


def _open_subfolder(name: str, folder: int) -> int:
    """Open a folder of a folder, which is made if it is missing."""
    try:
        return posix.open(name, _FOLDER_FLAGS, dir_fd=folder)
    except FileNotFoundError:
        posix.mkdir(name, dir_fd=folder)
        return posix.open(name, _FOLDER_FLAGS, dir_fd=folder)


def _write_file_below(folder: int, path: str, flags: int, mode: int, data: bytes) -> None:
    """Write a file below an open folder, which is closed, and make the folders on its way; follow no link."""
    try:
        *parents, name = path.split("/")
        for parent in parents:
            inner = _open_subfolder(parent, folder)
            posix.close(folder)
            folder = inner
        _write_and_close(posix.open(name, flags, mode, dir_fd=folder), data)
    finally:
        posix.close(folder)


def _write_and_close(number: int, data: bytes) -> None:
    """Write all the data to an open file, and close it."""
    try:
        left = memoryview(data)
        while left:
            left = left[posix.write(number, left) :]
    finally:
        posix.close(number)


def _read_file_identity(number: int) -> tuple[int, int]:
    try:
        found = posix.fstat(number)
    except OSError:  # it was closed before the start
        return -1, -1
    return found.st_dev, found.st_ino


def _read_bounded_environment() -> dict[str, bytes | None]:
    """Give the environment by name, as much as a message holds."""
    found: dict[str, bytes | None] = {}
    size = 0
    for name, value in sorted(posix.environ.items()):
        size += len(name) + min(len(value), MAX_REPORTED_WORD_BYTES)
        if size > MAX_REPORTED_ENVIRON_BYTES:
            break
        found[name.decode("utf-8", "replace")] = value
    return found


def _decode_bounded_word(word: bytes) -> str:
    return word[:MAX_REPORTED_WORD_BYTES].decode("utf-8", "replace")


def reset_signal_handlers() -> None:
    """Begin with default dispositions, and children that leave no zombie."""
    for signum in (1, 2, 3, 10, 12, 14, 15):
        signal(signum, SIG_DFL)
    signal(SIGCHLD, SIG_IGN)


def block_fatal_signals() -> None:
    """Let signals wait until this process has done all that it does at this instant.

    A supervisor that runs beside the fake may signal it at its first word of an instant. Whether the fake still exited
    by itself in that instant was decided by the machine: it is the agent's turn first.
    """
    pthread_sigmask(SIG_BLOCK, FATAL_SIGNALS)


def unblock_all_signals() -> None:
    """Unblock every signal: signals that came meanwhile arrive now."""
    pthread_sigmask(SIG_SETMASK, [])


def stop_this_process() -> None:
    """Stop this process, until a signal continues or kills it."""
    posix.kill(posix.getpid(), _SIGSTOP_NUMBER)
