"""The kit's needs of the machine, the answers to probes, and failures of a fake itself. Judges no supervisor.

A client asks a probe before it starts an agent, or never. So a probe is no start of the agent: it plays no script, is
not counted and not recorded. The versions are those whose dialects the fakes speak.

If the machine lacks one of the needs, fakes fail or do not start, and each supervisor would look wrong.

A failure of the fake is no failure of the agent: the scenario asks for an impossible action, the machine refuses
something, or the kit has a mistake. An agent that never ends is either a fault of the supervisor, or of the scenario.
The reference supervisor decides that, in the model, under the same limits.
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
from typing import TYPE_CHECKING

from pytest_agentproc.errors import UsageError
from pytest_agentproc.fake_agents.player import EndlessStep
from pytest_agentproc.files import read_own_file
from pytest_agentproc.originals import Popen
from pytest_agentproc.plays import FakeFault
from pytest_agentproc.procfs import iterate_pids, list_threads
from pytest_agentproc.tree import require_own_proc

if TYPE_CHECKING:
    from pytest_agentproc.vocabulary import Dialect


START_PROBE_ARGUMENT = "--agentproc-start"
"""The argument with which the kit asks whether a fake starts at all."""


def map_probe_answers(dialect: Dialect) -> dict[tuple[str, ...], tuple[int, bytes]]:
    """Give what a dialect's CLI prints, and on which descriptor, by all the arguments that ask for it."""
    stream = 2 if dialect.tells_on_stderr else 1
    fields = {tuple(asked.split()): (stream, f"{reported}\n".encode()) for asked, reported in dialect.probes.items()}
    return {(START_PROBE_ARGUMENT,): (1, b""), **fields}


_LEAST_DESCRIPTOR_LIMIT = 256
"""A fake keeps its own descriptors from number 200 on, out of the way of what a script closes."""

_START_TIMEOUT_SECONDS = 10.0
"""Real seconds within which a fake starts on any machine that is of use."""

_MAX_OUTPUT_CHARS_SHOWN = 200
"""So many characters of what a fake printed instead of starting are shown."""

_SPARE_DESCRIPTOR_COUNT = 64
_SPARE_PROCESS_COUNT = 32
"""So many more this process, or this user, may need for one scenario."""


def require_startable_fakes() -> None:
    """See whether fakes can be started here and can do what they have to.

    Raises:
        UsageError: they cannot, because of the one thing that it says.
    """
    require_startable_fakes_in(tempfile.gettempdir())
    require_spare_descriptors()


def require_spare_descriptors() -> None:
    """See whether this process has descriptors enough for one scenario: a test may have left files open.

    A supervisor that shares this process would report that it could start no agent.

    Raises:
        UsageError: it has too few.
    """
    most, used = _read_limit(resource.RLIMIT_NOFILE), len(os.listdir("/proc/self/fd"))  # noqa: PTH208  # counted
    if most is not None and most < (needed := max(_LEAST_DESCRIPTOR_LIMIT, used + _SPARE_DESCRIPTOR_COUNT)):
        raise UsageError(
            f"a process may open {most} files at most, and scenarios need {needed}",
            "raise the limit, such as with: ulimit -n 1024",
        )


@lru_cache(maxsize=8)
def require_startable_fakes_in(folder: str) -> None:
    """See to it once, with fakes in a folder; see `require_startable_fakes`."""
    require_own_proc()
    # The first fake waits for these looks: psutil, which has them too, would have to be loaded.
    if os.statvfs(folder).f_flag & os.ST_NOEXEC:
        raise UsageError(
            f"the folder for temporary files, {folder}, is mounted noexec, and fake agents are started from there",
            "set TMPDIR to a folder from which programs may be started",
        )
    most = None if os.geteuid() == 0 else _read_limit(resource.RLIMIT_NPROC)
    if most is not None and most < (needed := count_tasks_of_this_user() + _SPARE_PROCESS_COUNT):
        raise UsageError(
            f"this user may have {most} processes and threads at most, and with a scenario there are up to {needed}",
            "raise the limit, such as with: ulimit -u 4096",
        )


class _TrialStart(Popen[bytes]):
    """A start of a fake that is not the supervisor's: neither a clock nor a leak tracker counts it."""

    serves_host = True


def explain_failed_start(launcher: str) -> str:
    """Start a fake that plays nothing; say why it does not come to its first line, or nothing if it does."""
    pipe = subprocess.PIPE
    try:
        with _TrialStart(
            [launcher, START_PROBE_ARGUMENT], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=pipe
        ) as trial:
            try:
                stderr = trial.communicate(timeout=_START_TIMEOUT_SECONDS)[1]
            except subprocess.TimeoutExpired:
                trial.kill()
                return f"it does not come to its first line within {_START_TIMEOUT_SECONDS:g} s"
    except OSError as error:
        return f"{error.strerror} (errno {error.errno})"
    if trial.returncode == 0:
        return ""
    code = trial.returncode
    end = f"it exits with {code}" if code > 0 else f"it dies by {signal.Signals(-code).name}"
    words = "".join(filter(str.isprintable, stderr.decode(errors="replace").strip().rpartition("\n")[2]))
    return f"{end} before its first line" + (f" and prints {words[:_MAX_OUTPUT_CHARS_SHOWN]}" if words else "")


def _read_limit(which: int) -> int | None:
    soft = resource.getrlimit(which)[0]
    return None if soft == resource.RLIM_INFINITY else soft


def count_tasks_of_this_user() -> int:
    """Count the processes of this user with their threads, as the kernel's limit does."""
    count, me = 0, os.getuid()
    for pid in iterate_pids():
        with suppress(OSError):
            if Path(f"/proc/{pid}").stat().st_uid == me:
                count += len(list_threads(pid))
    return count


def locate_fault_file(launcher: str) -> Path:
    """Give the file in which a fake and its descendants write what broke in them."""
    return Path(launcher).parent.with_suffix(".faults")


def read_fault(launcher: str) -> FakeFault | None:
    """Read what broke first in a fake; None: nothing did."""
    try:
        first = read_own_file(locate_fault_file(launcher)).decode().partition("\n")[0]
    except FileNotFoundError:
        return None
    line, step, kind, words = first.split("\t", 3)
    return FakeFault(int(line), step, words, kind)


def read_expiry(launcher: str, since: int) -> FakeFault | None:
    """Read whether the lifeline broker ended a fake because it had lived too long; None: it did not.

    Args:
        launcher: the fake.
        since: the machine's monotonic instant, in nanoseconds, at which the fake was made.
    """
    try:
        lines = read_own_file(Path(launcher).parents[1] / "expired").decode("ascii").splitlines()
    except FileNotFoundError:
        return None
    for at, seconds in (line.split() for line in lines):
        if int(at) >= since:
            words = f"the kit ended the fake agent after {seconds} s of real time, the longest life of a fake"
            return FakeFault(0, "", words, "outside")
    return None


def describe_model_fault(error: Exception) -> FakeFault:
    """Give what broke in a fake of the model."""
    line, step = vars(error).get("step", (0, ""))
    if isinstance(error, EndlessStep):
        return FakeFault(line, step, str(error), "endless")
    return FakeFault(line, step, f"{type(error).__name__}: {error}", "own")
