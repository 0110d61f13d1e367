"""How a descendant comes to be: forks, sessions, descriptors, a new image. Owns system calls; knows no script.

    same_group, own_group, new_session   a fork; in the last two it leaves its parent's group, or session
    double_fork                          a fork of a fork that exits: the group and session are the spawner's
    daemon                               the fork between them leads the session, and exits
    launcher, refork                     the descendant itself leads its session, and the fork between exits

The process between is never heard of: it holds nothing, says nothing, and is gone before the spawn is over.
"""

from __future__ import annotations

import marshal
import posix
import sys
from _signal import SIG_BLOCK, SIG_SETMASK, pthread_sigmask

from pytest_agentproc.fake_agents.program import FATAL_SIGNALS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container
    from typing import Any


_SESSION_LEADING_SPAWN_WAYS = ("new_session", "launcher", "refork")
_ORPHANING_SPAWN_WAYS = ("double_fork", "daemon", "launcher", "refork")
_PR_SET_CHILD_SUBREAPER = 36
"""Linux's PR_SET_CHILD_SUBREAPER."""

_STANDARD_STREAM_NAMES = ("stdin", "stdout", "stderr")
_STATE_OPTION_NAME = "reborn"


def fork_descendant(how: str, *, stops: bool = False) -> int:
    """Fork a descendant; no signal reaches it before it has unblocked them.

    Args:
        how: the way; see above.
        stops: whether it will stop itself: then it is waited for until it has.

    Returns:
        Its pid, once it is in the group and session of its way; 0 in the descendant.
    """
    before = pthread_sigmask(SIG_BLOCK, FATAL_SIGNALS)
    pid = _fork_and_await_stop(stops=stops) if how == "same_group" else _fork_outside_group(how, stops=stops)
    if pid:
        pthread_sigmask(SIG_SETMASK, before)
    return pid


def _fork_and_await_stop(*, stops: bool) -> int:
    pid = posix.fork()
    if pid and stops:
        wait_for_child(pid, posix.WUNTRACED)
    return pid


def _fork_outside_group(how: str, *, stops: bool) -> int:
    """Fork a descendant, and wait until it is out: a signal to the group right after the spawn must not reach it."""
    is_orphan = how in _ORPHANING_SPAWN_WAYS
    read_end, write_end = posix.pipe()
    child = _fork_and_await_stop(stops=stops and not is_orphan)
    if child:
        posix.close(write_end)
        pid = int.from_bytes(posix.read(read_end, 4), "little")
        posix.close(read_end)
        if is_orphan:
            wait_for_child(child)
        return pid or child  # it was killed before it was out
    if how == "daemon":
        posix.setsid()
    if is_orphan and _fork_and_await_stop(stops=stops):
        posix._exit(0)
    if how == "own_group":
        posix.setpgid(0, 0)
    elif how in _SESSION_LEADING_SPAWN_WAYS:
        posix.setsid()
    posix.write(write_end, posix.getpid().to_bytes(4, "little"))  # `heard` is open here, so this cannot fail
    posix.close(read_end)
    posix.close(write_end)
    return 0


def wait_for_child(pid: int, options: int = 0) -> None:
    """Wait for a child, whichever process reaps it."""
    try:  # noqa: SIM105  # an import that a start would pay for
        posix.waitpid(pid, options)
    except ChildProcessError:
        pass


def is_child_alive(child: int) -> bool:
    """Say whether this process has such a child that has not ended; wait for no child."""
    try:
        return posix.waitid(posix.P_PID, child, posix.WEXITED | posix.WNOHANG | posix.WNOWAIT) is None
    except ChildProcessError:
        return False


def keep_only_streams(streams: Container[str]) -> None:
    """Keep only these standard streams; the others lead to /dev/null."""
    null = posix.open("/dev/null", posix.O_RDWR)
    for number, stream in enumerate(_STANDARD_STREAM_NAMES):
        if stream not in streams:
            posix.dup2(null, number)
    posix.close(null)


def close_descriptors_except(but: Container[int]) -> None:
    """Close every descriptor after the standard streams, but for these."""
    for name in posix.listdir("/proc/self/fd"):
        number = int(name)
        if number >= len(_STANDARD_STREAM_NAMES) and number not in but:
            try:  # noqa: SIM105  # as above
                posix.close(number)
            except OSError:  # the listing's own
                pass


def become_subreaper() -> None:
    """Become the parent of all that descendants of this process let go of."""
    import ctypes  # slow to load, and needed by nobody else

    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def reexecute_without_environment(state: tuple[Any, ...]) -> None:
    """Execute this fake's launcher again, with an empty environment, in which its forks are from then on.

    Args:
        state: what `read_state_after_reexecution` gives in the new image.
    """
    if _STATE_OPTION_NAME in sys._xoptions:  # noqa: SLF001  # private in name only: the documentation tells of it
        return
    number = posix.memfd_create(_STATE_OPTION_NAME, 0)
    posix.write(number, marshal.dumps(state))
    posix.lseek(number, 0, 0)
    python, *command = sys.orig_argv
    posix.execve(sys.executable, [python, f"-X{_STATE_OPTION_NAME}={number}", *command], {})


def read_state_after_reexecution() -> tuple[Any, ...] | None:
    """Give the state that the image before this one handed over; None for a process that was not renewed."""
    number = sys._xoptions.get(_STATE_OPTION_NAME)  # noqa: SLF001  # as above
    if not isinstance(number, str):
        return None
    with open(int(number), "rb") as file:
        state: tuple[Any, ...] = marshal.load(file)
    return state
