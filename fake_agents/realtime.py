"""A fake without a hub keeps time itself: the machine's own, faster by the given factor.

Its zero is the start of the process and not of the interpreter, and a step that comes late is played at the instant at
which it was due: neither a slow start nor a busy machine moves what follows.

A fake of a test has a lifetime, after which it kills itself. Before that it says once, where pytest's own output goes,
that it waits and that nothing comes. Code that waits for it without a limit would hang without a word.
"""

from __future__ import annotations

import _signal
import fcntl
import posix
import select
import sys
import time

from pytest_agentproc.fake_agents import process_log
from pytest_agentproc.fake_agents.dialects import make_encoder
from pytest_agentproc.fake_agents.player import ScriptPlayer
from pytest_agentproc.fake_agents.stage import (
    STARTED_PROGRAMS,
    SideEffectStage,
    block_fatal_signals,
    stop_this_process,
    unblock_all_signals,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pytest_agentproc.fake_agents.program import Program

_FIRST_OWN_DESCRIPTOR = 200
"""The log lives up here, out of the way of what a scenario or a client does with low numbers."""

_MAX_START_NS = 60_000_000_000
_FILE_TYPE_MASK, _REGULAR_FILE_TYPE = 0o170000, 0o100000

_CLOCK_PAGE_PATH = posix.environ.get(b"AGENTPROC_CLOCK")
"""The page of the coordinator that this process lives below: the machine's clock is what stands there."""

_VIRTUAL_TIME_MARK, _NO_LISTENER_BYTES = -1 << 63, bytes(4)
_DAY_NS = 86_400_000_000_000


def _read_clock_page() -> tuple[int, bool]:
    """Give how far the clock is ahead of the machine's (`_VIRTUAL_TIME_MARK`: time is virtual now), up to a constant.

    And say whether a thread learns that time stands still: see `clock/preload/page.h`.
    """
    if _CLOCK_PAGE_PATH is None:
        return 0, False
    try:
        page = posix.open(_CLOCK_PAGE_PATH, posix.O_RDONLY | posix.O_CLOEXEC)
    except OSError:
        return 0, False
    found = posix.pread(page, 12, 8)
    posix.close(page)
    return int.from_bytes(found[:8], "little", signed=True), found[8:] != _NO_LISTENER_BYTES


_CLOCK_OFFSET_NS, _HAS_STALL_LISTENER = _read_clock_page()
_IS_VIRTUAL_TIME = _CLOCK_OFFSET_NS == _VIRTUAL_TIME_MARK
"""Nothing is made faster in virtual time. A test in it fails once nobody can move: there no fake needs a lifetime."""


def choose_lifetime_ns(limit: int) -> int:
    """Give the nanoseconds that a fake may live: in virtual time a day at least, since silences cost nothing."""
    return max(limit, _DAY_NS) if _IS_VIRTUAL_TIME else limit


class _FakeClock:
    """Instants in nanoseconds since the root agent's start; descendants inherit it by their fork.

    Args:
        zero: that start, on the machine's clock.
        scale: how many times faster than the machine's clock.
        offset: how far the clock was ahead then.
    """

    def __init__(self, zero: int, scale: float, offset: int = _CLOCK_OFFSET_NS) -> None:
        self.scale = 1 if _IS_VIRTUAL_TIME else scale
        self.zero = zero
        self.offset = 0 if _IS_VIRTUAL_TIME else offset
        self.now = 0
        self.moment = self.zero
        """The machine's instant at which the player was last let go on: nothing that it tells came before."""

    def advance_to_present(self, until: int | None) -> int:
        """Move to the present instant, or to the awaited one if it has passed; return the lateness."""
        self.moment = time.monotonic_ns()
        present = self._convert_to_fake_instant(self.moment)
        self.now = present if until is None else min(present, max(until, self.now))
        return present - self.now

    def _convert_to_fake_instant(self, moment: int) -> int:
        return int((moment - self.zero) * self.scale)

    def compute_wait_milliseconds(self, instant: int) -> float:
        """Give the wait that does not end before an instant, in whole milliseconds of the machine."""
        left = (instant - self._convert_to_fake_instant(time.monotonic_ns())) / self.scale
        return max(0, -(-left // 1_000_000))


class _LifetimeLimit:
    """The end of a process that would wait longer than it may live.

    Args:
        end: that end, on the machine's clock: a test in virtual time takes nothing of it.
        debugged: the file that exists while a user debugs the test: then there is no such end.
        notice: where it says that it waits, in which words, with `%d` for the step's line, and after how many seconds
            without any event; None: it says nothing.
    """

    def __init__(self, end: int, debugged: str, notice: tuple[str, str, float] | None) -> None:
        self._end = end
        self._debugged = debugged
        self._notice = notice

    def poll_until_lifetime_ends(
        self, epoll: select.epoll, wait: float, line: int, write_entry: Any
    ) -> list[tuple[int, int]]:
        """Wait for events as `epoll` does; at the end of this life write that into the log, and die."""
        offset = 0 if _IS_VIRTUAL_TIME else _read_clock_page()[0]
        if offset == _VIRTUAL_TIME_MARK:
            return epoll.poll(wait)
        left = (self._end - time.monotonic_ns() + offset) / 1e9
        if left <= 0:
            if _path_exists(self._debugged):
                return epoll.poll(wait)
            write_entry(time.monotonic_ns(), "T", line)
            posix.kill(posix.getpid(), 9)
        if 0 <= wait <= left:
            return epoll.poll(wait)
        if self._notice is None or left <= self._notice[2]:
            return epoll.poll(left)
        path, words, patience = self._notice
        events = epoll.poll(patience)
        if not events:
            _write_notice(path, words % line)
            self._notice = None
        return events


def _path_exists(path: str) -> bool:
    try:
        posix.stat(path)
    except OSError:
        return False
    return True


def _write_notice(path: str, words: str) -> None:
    """Write to what another process has open, unless that is a file, in which it would be overwritten."""
    try:
        number = posix.open(path, posix.O_WRONLY | posix.O_APPEND | posix.O_NONBLOCK | posix.O_NOCTTY | posix.O_CLOEXEC)
    except OSError:  # a socket, or that process has closed it
        return
    if posix.fstat(number).st_mode & _FILE_TYPE_MASK != _REGULAR_FILE_TYPE:
        try:  # noqa: SIM105  # an import that a start would pay for
            posix.write(number, words.encode("utf-8", "replace"))
        except OSError:  # a full pipe
            pass
    posix.close(number)


_fake_clocks: list[_FakeClock] = []


def play_program_in_real_time(
    baked: dict[str, Any],
    parent: int,
    index: int,
    fields: dict[str, Any],
    program: Program,
    harness: list[int],
    early: Callable[[], list[int]],
) -> None:
    """Play to the end, and keep a log if there is a folder for it.

    Args:
        baked: all that the fake was made with.
        parent: the pid of its parent, and `index` its place among the children; 0 and -1 for the agent.
        index: see above.
        fields: what the spawn step says.
        program: its script.
        harness: descriptors that are readable once the harness is gone.
        early: gives the signals that were caught while it waited to be let into virtual time.
    """
    if not _fake_clocks:
        _fake_clocks.append(_FakeClock(_read_process_start_instant(), baked.get("scale", 1)))
    times = _fake_clocks[0]
    if fields.get("every") == 0:
        times.advance_to_present(
            None
        )  # who forks again and again without a pause has no instants of its own to keep to
    started = times.zero if index < 0 else time.monotonic_ns()
    book = _open_log(baked["log"], is_root=index < 0) if baked.get("log") else None
    write_entry = _discard_log_entry if book is None else _make_log_writer(book)
    write_entry(started, "H", parent or posix.getppid(), index, fields["id"], fields["line"])

    def send_notes(_form: str, notes: list[Any]) -> None:
        write_entry(times.moment, "N", notes)

    def report_death(signum: int, notes: list[Any]) -> None:
        write_entry(time.monotonic_ns(), "D", signum, notes)

    life = None
    if "lifetime" in baked and not _HAS_STALL_LISTENER:
        lifetime, debugged = baked["lifetime"]
        notice = (
            baked["notice"] if index < 0 and not _IS_VIRTUAL_TIME else None
        )  # below a coordinator a wait costs nothing
        life = _LifetimeLimit(times.zero - times.offset + choose_lifetime_ns(lifetime), debugged, notice)
    stage = SideEffectStage(send_notes, report_death, parent)
    if index < 0:  # its encoder may wait for a server, and a signal ends that; a descendant may ignore signals
        unblock_all_signals()
    player = ScriptPlayer(program, stage, make_encoder(program))
    player.most_hops = sys.maxsize
    for child in STARTED_PROGRAMS:
        child.is_watched = True
        stage.epoll.register(child.output, select.EPOLLIN | select.EPOLLET)
    stage.signals += early()
    unblock_all_signals()
    if fields.get("stopped"):
        stop_this_process()
    try:
        _play_program_with_signal_pipe(player, stage, times, write_entry, harness, life)
    finally:  # only a forked child comes here: the log is its parent's
        if book is not None:
            posix.close(book)


def read_fake_clock_position() -> tuple[int, int, int]:
    """Give the instant on the machine's clock from which this fake counts, its present instant, and the offset."""
    return _fake_clocks[0].zero, _fake_clocks[0].now, _fake_clocks[0].offset


def restore_fake_clock_position(position: tuple[int, int, int], baked: dict[str, Any]) -> None:
    """Count on from where another image of this process had come to."""
    zero, now, offset = position
    times = _FakeClock(zero, baked.get("scale", 1), offset)
    times.now = now
    _fake_clocks.append(times)


def _play_program_with_signal_pipe(
    player: ScriptPlayer,
    stage: SideEffectStage,
    times: _FakeClock,
    write_entry: Any,
    harness: list[int],
    life: _LifetimeLimit | None,
) -> None:
    bell, ring = posix.pipe()
    posix.set_blocking(ring, False)
    _signal.set_wakeup_fd(ring)
    stage.epoll.register(bell, 1)
    for number in harness:
        stage.epoll.register(number, 1)
    try:
        _play_program_until_end(player, stage, times, write_entry, bell, harness, life)
    finally:  # only a forked child comes here: these are its parent's
        _signal.set_wakeup_fd(-1)
        stage.close_after_fork()
        posix.close(bell)
        posix.close(ring)


def _play_program_until_end(
    player: ScriptPlayer,
    stage: SideEffectStage,
    times: _FakeClock,
    write_entry: Any,
    bell: int,
    harness: list[int],
    life: _LifetimeLimit | None,
) -> None:
    events: list[tuple[int, int]] = []
    if player.session is None:  # in a session the first steps say how requests are answered, so they come first
        stage.watch_streams(player.wanted_streams)
        events = stage.epoll.poll(0)  # input that is there before the first step is read with it
    latest = 0
    while True:
        if any(number == bell for number, _ in events):
            posix.read(bell, 64)
        if harness and any(number == harness[0] for number, _ in events):
            posix.kill(posix.getpid(), 9)
        late = times.advance_to_present(player.earliest_wake_instant)
        if late > latest and player.earliest_wake_instant is not None:
            latest = late
            write_entry(times.moment, "L", late)
        if _IS_VIRTUAL_TIME:
            block_fatal_signals()
        player.run_until_parked(times.now, stage.take_caught_signals(), readable=stage.can_read_stdin(events))
        if notes := stage.take_unsent_notes():
            write_entry(times.moment, "N", notes)
        is_ready = stage.watch_streams(player.wanted_streams) or player.is_burning_cpu
        until = player.earliest_wake_instant
        wait = 0 if is_ready else -1 if until is None else times.compute_wait_milliseconds(until) / 1000
        if _IS_VIRTUAL_TIME:
            unblock_all_signals()
        events = (
            stage.epoll.poll(wait)
            if life is None
            else life.poll_until_lifetime_ends(stage.epoll, wait, player.line, write_entry)
        )


def _open_log(folder: str, *, is_root: bool) -> int:
    """Open this process's log; a process that starts after the folder's removal has no test and ends."""
    flags = posix.O_WRONLY | posix.O_CREAT | posix.O_APPEND | posix.O_CLOEXEC
    path = f"{folder}/{posix.getpid()}"
    if is_root:
        try:  # noqa: SIM105  # an import that a start would pay for
            posix.rename(f"{folder}/{process_log.SPARE_FILE_NAME}", path)
        except OSError:  # the agent was started before
            pass
    try:
        low = posix.open(path, flags, 0o600)
    except FileNotFoundError:
        posix._exit(70)
    high = fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, _FIRST_OWN_DESCRIPTOR)
    posix.close(low)
    return high


def _make_log_writer(book: int) -> Any:
    """Give what writes into a log: an instant, and the words of an entry."""

    def write_entry(at: int, *message: Any) -> None:
        posix.write(book, process_log.encode_log_entry(at, message))

    return write_entry


def _discard_log_entry(*words: object) -> None:
    """Write it nowhere: no folder was given for a log."""


def _read_process_start_instant() -> int:
    """Give the instant at which this process was started, on the monotonic clock; never before it was."""
    if _CLOCK_PAGE_PATH is not None:
        return time.monotonic_ns()
    with open("/proc/self/stat", "rb", buffering=0) as file:
        ticks = int(file.read(4096).rpartition(b")")[2].split()[19])
    tick = 1_000_000_000 // posix.sysconf("SC_CLK_TCK")
    booted = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    now = time.monotonic_ns()  # read last: a pause between the two makes the start later, and never earlier
    started = (ticks + 1) * tick - (booted - now)
    return started if now - _MAX_START_NS < started < now else now
