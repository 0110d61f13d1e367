"""Runs a program in our place and keeps what happened; the record survives a kill of the recorder.

Streams, signals, window size and exit code go through as if no recorder stood between. Everything is kept in memory,
and written later, once it is known to hold no secret.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import subprocess
import termios
import tty
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_agentproc.capture._record_writer import RecordWriter
from pytest_agentproc.capture._targets import require_linux
from pytest_agentproc.capture._tree_watcher import TreeWatcher
from pytest_agentproc.errors import UsageError
from pytest_agentproc.events import (
    Event,
    InputEnded,
    InputRead,
    OutputWritten,
    ProcessEnded,
    ProcessGone,
    ProcessStarted,
    SignalCaught,
    StreamBroken,
    StreamBytes,
    StreamClosed,
    TerminalResized,
)
from pytest_agentproc.interrupts import whole_block
from pytest_agentproc.originals import Popen, monotonic_ns
from pytest_agentproc.record import Record
from pytest_agentproc.tree import adopt_orphans_in_block, require_own_proc
from pytest_agentproc.vocabulary import format_signal_name, split_exit_status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence


_MAX_BYTES_PER_READ = 1 << 16
_MAX_BYTES_PER_WRITE = select.PIPE_BUF
_MAX_BUFFERED_BYTES = 1 << 16


class StreamForwarder:
    """One direction: each chunk that is read from one descriptor is reported and written to another.

    Args:
        source: where it comes from.
        sink: where it goes; a pipe that has room takes what is written at once, so nothing blocks.
        report: called with each chunk as it came; empty: the end, None: the sink has no reader any more.
        closes_sink: whether the sink is closed, or `at_end` written, behind the last byte.
        at_end: what is written for the end where the sink cannot be closed.
    """

    def __init__(
        self, source: int, sink: int, report: Callable[[bytes | None], None], *, closes: bool, at_end: bytes = b""
    ) -> None:
        self.source: int | None = source
        self.sink: int | None = sink
        self._report = report
        self._closes = closes
        self._at_end = at_end
        self._waiting: deque[bytes] = deque()
        self._size = 0

    @property
    def has_forwarded_everything(self) -> bool:
        """Whether nothing can come or go any more."""
        return self.source is None and not self._waiting

    def list_poll_events(self) -> list[tuple[int, int]]:
        """Say which descriptors to watch, and for what."""
        wanted = []
        if self.source is not None and self._size < _MAX_BUFFERED_BYTES:
            wanted.append((self.source, select.POLLIN))
        if self.sink is not None and self._waiting:
            wanted.append((self.sink, select.POLLOUT))
        return wanted

    def forward_ready_descriptors(self, ready: set[int]) -> None:
        """Move what can be moved."""
        if self.source in ready and self._size < _MAX_BUFFERED_BYTES:
            self.read_chunk()
        if self.sink in ready and self._waiting:
            self.write_chunk()

    def read_chunk(self) -> bool:
        """Read once; say whether something came."""
        assert self.source is not None
        try:
            data = os.read(self.source, _MAX_BYTES_PER_READ)
        except BlockingIOError:
            return False
        except OSError:  # a terminal whose other end is closed
            data = b""
        self._report(data)
        if not data:
            self.source = None
            if self._at_end:
                self._waiting.append(self._at_end)
            elif not self._waiting:
                self._close_sink()
            return False
        if self.sink is not None:
            self._waiting.append(data)
            self._size += len(data)
        return True

    def write_chunk(self) -> None:
        """Write once, as much as a pipe with room takes for sure."""
        assert self.sink is not None
        data = self._waiting.popleft()
        try:
            written = os.write(self.sink, data[:_MAX_BYTES_PER_WRITE])
        except BlockingIOError:
            written = 0
        except OSError:
            self.handle_broken_sink()
            return
        self._size -= written
        if data[written:]:
            self._waiting.appendleft(data[written:])
        if self.has_forwarded_everything:
            self._close_sink()

    def handle_broken_sink(self) -> None:
        """The sink has no reader any more: the source notices that, too."""
        self._waiting.clear()
        self._size = 0
        self._report(None)
        self._close_sink()
        if self.source is not None and self.source > 2:  # noqa: PLR2004  # our own streams are not ours to close
            os.close(self.source)
            self.source = None

    def forward_remaining_bytes(self) -> None:
        """Read what there is, and give it away, waiting as long as that takes."""
        while self.source is not None:
            os.set_blocking(self.source, False)
            if not self.read_chunk():
                break
        while self.sink is not None and self._waiting:
            poll = select.poll()
            poll.register(self.sink, select.POLLOUT)
            poll.poll(1000)
            self.write_chunk()

    def _close_sink(self) -> None:
        if self._closes and self.sink is not None:
            with suppress(OSError):
                os.close(self.sink)
        self.sink = None


_DEFAULT_TERMINAL_ROWS, _DEFAULT_TERMINAL_COLUMNS = 24, 80
_END_OF_INPUT_BYTE = b"\x04"


class AgentTerminal:
    """Have the recorded program run in a terminal.

    Args:
        like: a descriptor whose size is taken, if it is a terminal.
    """

    end_of_input = _END_OF_INPUT_BYTE
    """What is written for the end of input."""

    def __init__(self, like: int) -> None:
        self._like = like
        self.master, self.slave = pty.openpty()
        self.copy_own_terminal_size()

    def copy_own_terminal_size(self) -> tuple[int, int]:
        """Take over the size of our own terminal; give rows and columns."""
        size = _DEFAULT_TERMINAL_ROWS, _DEFAULT_TERMINAL_COLUMNS
        with suppress(termios.error):
            size = termios.tcgetwinsize(self._like)
        termios.tcsetwinsize(self.slave, size)
        return size

    def set_controlling_terminal(self) -> None:
        """Make it the controlling terminal of this session; called in the child."""
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def close_child_end(self) -> None:
        """Let go of the program's end. Its size is set through ours from now on."""
        os.close(self.slave)
        self.slave = self.master


@whole_block
def set_raw_mode_in_block(number: int) -> Iterator[None]:
    """Have our own terminal pass every key on while the block runs; a pipe or file stays as it is."""
    if not os.isatty(number):
        yield
        return
    before = termios.tcgetattr(number)
    tty.setraw(number)
    try:
        yield
    finally:
        termios.tcsetattr(number, termios.TCSADRAIN, before)


_POLL_INTERVAL_MS = 25
_MAX_RECORDED_BYTES = 1 << 24
_OVERHEAD_BYTES_PER_EVENT = 128
_OVERHEAD_BYTES_PER_LINE = 256
"""So many bytes more each chunk and each line counts: the memory that they take does not depend on their size."""
_FORWARDED_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_EVENT_CODE_BY_STREAM = {"stdin": "i", "stdout": "o", "stderr": "e"}
_NOT_FOUND_EXIT_CODE, _NOT_EXECUTABLE_EXIT_CODE, _SIGNAL_EXIT_CODE_BASE = 127, 126, 128


class ProgramStartError(UsageError):
    """The program cannot even be started.

    Args:
        program: its name.
        why: in the kernel's words.
        code: the exit code that a shell gives for that.
    """

    def __init__(self, program: str, why: str, code: int) -> None:
        super().__init__(f'"{program}" cannot be started: {why}', "name a program after --")
        self.code = code


class _RecordedRun:
    """One program between its pipes, or its terminal, and our own streams."""

    def __init__(
        self,
        argv: Sequence[str],
        env: Mapping[str, str] | None,
        streams: Sequence[int],
        writer: RecordWriter | None,
        *,
        pty: bool,
    ) -> None:
        self.record = Record()
        self._writer = writer
        self._room, self._kept = _MAX_RECORDED_BYTES, 0
        self.flows: list[StreamForwarder] = []
        self.signals: list[int] = []
        self.terminal = AgentTerminal(streams[0]) if pty else None
        self._streams = streams
        self.start = monotonic_ns()
        self.process = self._spawn_program(argv, env)
        self._record_event(ProcessStarted(self.read_elapsed_ns(), "agent", self.process.pid, "supervisor"))
        self._connect_streams()
        self.watcher = TreeWatcher(self.process.pid, self._record_event, self._find_output_pipes())

    def _spawn_program(self, argv: Sequence[str], env: Mapping[str, str] | None) -> Popen[bytes]:
        pipe = self.terminal.slave if self.terminal else subprocess.PIPE
        fields: dict[str, Any] = {"process_group": 0}
        if self.terminal:
            fields = {
                "start_new_session": True,
                "preexec_fn": self.terminal.set_controlling_terminal,
            }  # one thread: nothing is locked
        try:
            return Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, env=env, bufsize=0, **fields)
        except OSError as error:
            code = _NOT_FOUND_EXIT_CODE if isinstance(error, FileNotFoundError) else _NOT_EXECUTABLE_EXIT_CODE
            raise ProgramStartError(argv[0], error.strerror or str(error), code) from error

    def _connect_streams(self) -> None:
        stdin, stdout, stderr = self._streams
        if self.terminal:
            self.terminal.close_child_end()
            master = self.terminal.master
            self._add_stream_forwarder("stdin", stdin, os.dup(master), at_end=AgentTerminal.end_of_input)
            self._add_stream_forwarder("stdout", master, stdout)
            return
        pipes = self.process.stdin, self.process.stdout, self.process.stderr
        own = [os.dup(pipe.fileno()) for pipe in pipes if pipe]
        for pipe in pipes:
            assert pipe is not None
            pipe.close()
        self._add_stream_forwarder("stdin", stdin, own[0])
        self._add_stream_forwarder("stdout", own[1], stdout)
        self._add_stream_forwarder("stderr", own[2], stderr)

    def _add_stream_forwarder(self, stream: str, source: int, sink: int, at_end: bytes = b"") -> None:
        ours = sink if stream == "stdin" else source
        os.set_blocking(ours, False)

        def report(data: bytes | None) -> None:
            now = self.read_elapsed_ns()
            if data is None:
                self._record_event(StreamBroken(now, "agent", stream))
            elif stream == "stdin":
                self._record_event(InputRead(now, "agent", data) if data else InputEnded(now, "agent"))
            else:
                written = OutputWritten(now, "agent", data, stream)
                self._record_event(written if data else StreamClosed(now, "agent", stream))

        self.flows.append(StreamForwarder(source, sink, report, closes=stream == "stdin" and not at_end, at_end=at_end))

    def _find_output_pipes(self) -> frozenset[str]:
        """Give what the agent's own descriptors 1 and 2 lead to, as /proc names it."""
        names = set()
        for flow in self.flows[1:]:
            if flow.source is not None:
                with contextlib.suppress(OSError):
                    names.add(os.readlink(f"/proc/self/fd/{flow.source}"))  # noqa: PTH115  # a pipe is no path
        return frozenset(names)

    def _record_event(self, event: Event) -> None:
        if isinstance(event, StreamBytes) and isinstance(printed := event.bytes, bytes):
            self._room -= len(printed) + printed.count(b"\n") * _OVERHEAD_BYTES_PER_LINE + _OVERHEAD_BYTES_PER_EVENT
            if self._room < 0:
                cut = f"what came after the first {self._kept} bytes was passed on, not recorded"
                self.record.header.setdefault("cut", cut)
                return
            self._kept += len(printed)
        self.record.add(event)
        if self._writer is not None:
            self._writer.send_event(event)

    def read_elapsed_ns(self) -> int:
        """Give the nanoseconds since the start."""
        return monotonic_ns() - self.start

    def forward_until_exit(self) -> int:
        """Move until the program has exited; give its status: a code, or minus a signal's number."""
        pidfd = os.pidfd_open(self.process.pid)
        exited = False
        try:
            while not exited:
                poll = select.poll()
                poll.register(pidfd, select.POLLIN)
                for flow in self.flows:
                    for number, event in flow.list_poll_events():
                        poll.register(number, event)
                ready = {number for number, _ in poll.poll(_POLL_INTERVAL_MS)}
                self._forward_signals()
                for flow in self.flows:
                    flow.forward_ready_descriptors(ready)
                self.watcher.report_tree_changes(self.read_elapsed_ns())
                exited = pidfd in ready
        finally:
            os.close(pidfd)
        return self._record_program_end()

    def _record_program_end(self) -> int:
        status = self.process.wait()
        for flow in self.flows[1:]:
            flow.forward_remaining_bytes()
        self._record_event(ProcessEnded(self.read_elapsed_ns(), "agent", *split_exit_status(status)))
        self._record_event(ProcessGone(self.read_elapsed_ns(), "agent"))
        for _ in range(2):
            self.watcher.report_tree_changes(self.read_elapsed_ns())
        self.watcher.report_survivors(self.read_elapsed_ns())
        return status

    def _forward_signals(self) -> None:
        while self.signals:
            number = self.signals.pop(0)
            if number == signal.SIGWINCH:
                if self.terminal:
                    rows, columns = self.terminal.copy_own_terminal_size()
                    self._record_event(TerminalResized(self.read_elapsed_ns(), "agent", rows, columns))
                continue
            met = _read_signal_disposition(self.process.pid, number)
            self._record_event(SignalCaught(self.read_elapsed_ns(), "agent", format_signal_name(number), met))
            with contextlib.suppress(ProcessLookupError):
                if os.getpgid(0) == os.getpid():
                    os.killpg(self.process.pid, number)  # who leads a group is signalled with it
                else:
                    os.kill(self.process.pid, number)


def _read_signal_disposition(pid: int, number: int) -> str:
    """Say how a process meets a signal: it is `ignored` or `caught`, or takes its `default` course.

    psutil does not tell that.
    """
    with contextlib.suppress(OSError), Path(f"/proc/{pid}/status").open(encoding="utf-8") as status:
        masks = dict(line.split(":", 1) for line in status)
        for name, word in (("SigIgn", "ignored"), ("SigCgt", "caught")):
            if int(masks.get(name, "0"), 16) >> (number - 1) & 1:
                return word
    return "default"


def run_and_record_program(
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    terminal: bool = False,
    streams: Sequence[int] = (0, 1, 2),
    if_killed: Callable[[Record], object] | None = None,
) -> tuple[Record, int]:
    """Run a program in our place, and keep what happens. Call it in the main thread of a program that does no more.

    Args:
        argv: the program and its arguments.
        env: its environment; None: ours.
        terminal: whether it runs in a terminal of its own, which joins stdout and stderr.
        streams: the descriptors that are passed through as stdin, stdout and stderr.
        if_killed: takes the record, in a process of its own, if this one is killed meanwhile; then the program is, too.

    Returns:
        The record, secrets and all, and the exit code that stands for the program's end: its own, or 128 and the number
        of the signal that ended it.

    Raises:
        ProgramStartError: the kernel says why.
        UsageError: this is not Linux, or /proc does not show the pid namespace of this process.
    """
    require_linux()
    require_own_proc()
    writer = RecordWriter(if_killed) if if_killed is not None else None
    try:
        with (
            adopt_orphans_in_block(),
            _collect_signals_in_block() as heard,
            set_raw_mode_in_block(streams[0]) if terminal else contextlib.nullcontext(),
        ):
            run = _RecordedRun(argv, env, streams, writer, pty=terminal)
            run.signals += heard[0]
            heard.append(run.signals)
            status = run.forward_until_exit()
    finally:
        if writer is not None:
            writer.stop()
    return run.record, _SIGNAL_EXIT_CODE_BASE - status if status < 0 else status


@contextlib.contextmanager
def _collect_signals_in_block() -> Iterator[list[list[int]]]:
    """Have what we are signalled kept for who runs in our place, while the block runs."""
    early: list[int] = []
    places: list[list[int]] = [early]

    def hear(number: int, _frame: object) -> None:
        places[-1].append(number)

    before = {number: signal.signal(number, hear) for number in (*_FORWARDED_SIGNALS, signal.SIGWINCH)}
    # A parent that ignores SIGCHLD hands that on. The kernel then reaps the program, and `wait` gives 0 for its exit.
    before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        yield places
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
