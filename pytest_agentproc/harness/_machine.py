"""What the kit needs of the machine, looked at before the first fake is made. Judges no supervisor.

Where one of these is missing, fakes fail or cannot be started, and each supervisor would look wrong.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import tempfile
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from pytest_agentproc.errors import UsageError
from pytest_agentproc.harness._probes import START
from pytest_agentproc.procfs import every_pid, threads_of
from pytest_agentproc.tree import check_proc

__all__ = ["reason_not_to_start", "require_machine", "require_machine_at", "tasks_of_this_user"]

_DESCRIPTORS = 256
"""A fake keeps its own descriptors from number 200 on, out of the way of what a script closes."""

_LONGEST_START = 10.0
"""Real seconds within which a fake starts on any machine that is of use."""

_SHOWN = 200
"""So many characters of what a fake printed instead of starting are shown."""

_SPARE_DESCRIPTORS = 64
_SPARE_PROCESSES = 32
"""So many more this process, or this user, may need for one scenario."""


def require_machine() -> None:
    """See whether fakes can be started here and can do what they have to.

    Raises:
        UsageError: they cannot, because of the one thing that it says.
    """
    require_machine_at(tempfile.gettempdir())


@lru_cache(maxsize=8)
def require_machine_at(folder: str) -> None:
    """See to it once, with fakes in a folder; see `require_machine`."""
    check_proc()
    if os.statvfs(folder).f_flag & os.ST_NOEXEC:
        raise UsageError(
            f"the folder for temporary files, {folder}, is mounted noexec, and fake agents are started from there",
            "set TMPDIR to a folder from which programs may be started",
        )
    most, used = _limit(resource.RLIMIT_NOFILE), sum(1 for _ in Path("/proc/self/fd").iterdir())
    if most is not None and most < (needed := max(_DESCRIPTORS, used + _SPARE_DESCRIPTORS)):
        raise UsageError(
            f"a process may open {most} files at most, and scenarios need {needed}",
            "raise the limit, such as with: ulimit -n 1024",
        )
    most = None if os.geteuid() == 0 else _limit(resource.RLIMIT_NPROC)
    if most is not None and most < (needed := tasks_of_this_user() + _SPARE_PROCESSES):
        raise UsageError(
            f"this user may have {most} processes and threads at most, and with a scenario there are up to {needed}",
            "raise the limit, such as with: ulimit -u 4096",
        )


class _Trial(subprocess.Popen[bytes]):
    """A start of a fake that is none of the supervisor's: neither a clock nor a custody counts it."""

    serves_host = True


def reason_not_to_start(launcher: str) -> str:
    """Start a fake that plays nothing; say why it does not come to its first line, or nothing if it does."""
    pipe = subprocess.PIPE
    try:
        with _Trial([launcher, START], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=pipe) as trial:
            try:
                said = trial.communicate(timeout=_LONGEST_START)[1]
            except subprocess.TimeoutExpired:
                trial.kill()
                return f"it does not come to its first line within {_LONGEST_START:g} s"
    except OSError as error:
        return f"{error.strerror} (errno {error.errno})"
    if trial.returncode == 0:
        return ""
    code = trial.returncode
    end = f"it exits with {code}" if code > 0 else f"it dies by {signal.Signals(-code).name}"
    words = "".join(filter(str.isprintable, said.decode(errors="replace").strip().rpartition("\n")[2]))
    return f"{end} before its first line" + (f" and prints {words[:_SHOWN]}" if words else "")


def _limit(which: int) -> int | None:
    soft = resource.getrlimit(which)[0]
    return None if soft == resource.RLIM_INFINITY else soft


def tasks_of_this_user() -> int:
    """Count the processes of this user with their threads, as the kernel's limit does."""
    count, me = 0, os.getuid()
    for pid in every_pid():
        with suppress(OSError):
            if Path(f"/proc/{pid}").stat().st_uid == me:
                count += len(threads_of(pid))
    return count
