"""The end of a fake without a supervisor: at the latest after its lifetime, and with its harness if it has one.

The lifetime is a timer of the kernel's that kills, so that it ends a stopped or busy process, too. The harness is
another process, whose end every loop of ours waits for beside all else; a stopped fake outlives it until its lifetime.
"""

from __future__ import annotations

import fcntl
import posix
import time

from pytest_agentproc.fake_agents.realtime import choose_lifetime_ns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_SIGKILL_NUMBER = 9
_ABSOLUTE_TIMER_FLAG = 1
_FIRST_OWN_DESCRIPTOR = 200
"""The harness's descriptor lives up here, out of the way of what a scenario or a client does with low numbers."""

_HARNESS_PID_VARIABLE = b"AGENTPROC_HARNESS"
"""The pid of a harness, for a fake that was told none when it was made."""

_NO_HARNESS_EXIT_CODE = 70
_guard_state: list[tuple[int, int]] = []
_harness_descriptors: list[int] = []


def start_lifetime_guard(lifetime: float, harness: tuple[int, int] | None) -> None:
    """Begin as the agent itself.

    Args:
        lifetime: real seconds until the kernel kills this process.
        harness: the pid and the start of the process to end with; None: that of the environment, if it names one.
    """
    named = posix.environ.get(_HARNESS_PID_VARIABLE, b"")
    if named and not named.isdigit():
        posix.write(
            2,
            b"%s=%s: it must be the pid of the process that this fake agent ends with\n"
            % (_HARNESS_PID_VARIABLE, named),
        )
        posix._exit(_NO_HARNESS_EXIT_CODE)
    pid, started = harness or (int(named or 0), 0)
    until = time.clock_gettime_ns(time.CLOCK_BOOTTIME) + choose_lifetime_ns(int(lifetime * 1e9))
    if pid and not started:
        started = _read_process_start_ticks(pid) or -1
    _guard_state[:] = [(until, 0), (pid, started)]
    renew_lifetime_guard()


def read_guard_state() -> list[tuple[int, int]]:
    """Give the facts that another image of this process needs to continue."""
    return _guard_state


def renew_lifetime_guard(state: list[tuple[int, int]] | None = None) -> None:
    """Begin anew as a fork, which inherits no timer, or as another image, with the state that it was given."""
    if state is not None:
        _guard_state[:] = state
    (until, _), (pid, started) = _guard_state
    _set_kill_timer(until)
    if not pid or (_harness_descriptors and state is None):
        return
    if _read_process_start_ticks(pid) != started:
        _exit_without_harness(pid)
    try:
        low = posix.pidfd_open(pid)
    except OSError:  # no such process, or the number of somebody's thread
        _exit_without_harness(pid)
    _harness_descriptors[:] = [fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, _FIRST_OWN_DESCRIPTOR)]
    posix.close(low)


def list_harness_descriptors() -> list[int]:
    """Give the descriptor that is readable once the harness has ended; none if there is no harness."""
    return _harness_descriptors


def _exit_without_harness(pid: int) -> None:
    posix.write(2, b"this fake agent ends with its harness, and process %d is gone\n" % pid)
    posix._exit(_NO_HARNESS_EXIT_CODE)


def _read_process_start_ticks(pid: int) -> int:
    """Give a process's start in ticks; 0 if there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            fields = file.read(4096).rpartition(b")")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] in (b"Z", b"X") else int(fields[19])


def _set_kill_timer(until: int) -> None:
    """Have the kernel kill this process at an instant of the clock that also runs while the machine sleeps."""
    import ctypes  # slow to load, and needed by nobody else

    libc: Any = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "timer_create"):
        libc = ctypes.CDLL("librt.so.1", use_errno=True)
    event = (ctypes.c_int * 16)(0, 0, _SIGKILL_NUMBER)
    timer = ctypes.c_void_p()
    when = (ctypes.c_long * 4)(0, 0, *divmod(until, 1_000_000_000))
    failed = libc.timer_create(time.CLOCK_BOOTTIME, ctypes.byref(event), ctypes.byref(timer))
    if failed or libc.timer_settime(timer, _ABSOLUTE_TIMER_FLAG, ctypes.byref(when), None):
        posix.write(2, b"this fake agent cannot be given a lifetime: the kernel has no timer for it\n")
        posix._exit(_NO_HARNESS_EXIT_CODE)
