"""Owns pytest's life below the coordinator of the preload clock: how it comes there, and which test is in its time.

pytest starts itself again below the coordinator, once: at once if `agentproc_virtual_sync` says so, else when the first
sync test that is marked `virtual_time` is collected. There real time passes, except while such a test runs. Each worker
of pytest-xdist has a coordinator of its own.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from pytest_agentproc import machine
from pytest_agentproc.errors import Deadlock, UsageError
from pytest_agentproc.interrupts import whole_block
from pytest_agentproc.places import describe_other_interpreters, find_call_lines, list_thread_frames

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Iterator

END_OF_PLAYS_STASH_KEY: pytest.StashKey[Callable[[], None]] = pytest.StashKey()
"""Has the process exit that plays plain functions below a coordinator; absent: the session has none."""

_DEADLOCK_SIGNAL = signal.SIGRTMAX - 2
"""The signal by which the coordinator says that nobody can move any more; the shim keeps the next one for itself."""


def start_below_coordinator(config: pytest.Config) -> None:
    """Start pytest below the coordinator if that can be done; else each test says why not."""
    uses_xdist = config.getoption("numprocesses", None) or config.getoption("tx", None)
    if not uses_xdist and _explain_no_restart(config) is None:
        _execute_coordinator(config)


def start_workers_below_coordinators(specs: list[Any]) -> None:
    """Have each local worker of pytest-xdist start below a coordinator of its own."""
    if isinstance(words := _find_coordinator_command(), UsageError):
        return
    for spec in specs:
        if spec.popen and not spec.python:
            spec.python = shlex.join([*words, sys.executable])


def end_play_process(config: pytest.Config) -> None:
    """Have the process of plain functions exit, if the session has one."""
    config.stash.get(END_OF_PLAYS_STASH_KEY, lambda: None)()


def restart_below_coordinator(session: pytest.Session, count: int) -> None:
    """Start pytest again below the coordinator if that is possible, for so many tests of this session."""
    config = session.config
    if not count or session.testsfailed or config.option.collectonly or _explain_no_restart(config) is not None:
        return
    reporter = config.pluginmanager.unregister(name="terminalreporter")
    if reporter is not None:
        what = "1 sync test is" if count == 1 else f"{count} sync tests are"
        reporter.write_line(
            f"agentproc: {what} in virtual time, so pytest starts once more "
            "(with agentproc_virtual_sync = true in the ini file it does so before it collects)"
        )
    config.hook.pytest_sessionfinish(session=session, exitstatus=pytest.ExitCode.OK)
    _execute_coordinator(config)


def _execute_coordinator(config: pytest.Config) -> None:
    words = _find_coordinator_command()
    assert not isinstance(words, UsageError), "the reason against it was asked for"
    config._ensure_unconfigure()  # noqa: SLF001  # it gives stdin back, and ends what this session has begun
    os.chdir(config.invocation_params.dir)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(words[0], [*words, sys.executable, *sys.orig_argv[1:]])  # noqa: S606  # it takes the place of this process


def _find_coordinator_command() -> list[str] | UsageError:
    """Find the coordinator, as the beginning of a command; or give the error that explains why there is none."""
    from pytest_agentproc.clock.preload import find_coordinator

    try:
        return [str(find_coordinator()), "--session"]
    except UsageError as error:
        return error


def _explain_no_restart(config: pytest.Config) -> UsageError | None:
    """Explain why this pytest cannot start again below the coordinator; None: it can."""
    if machine.CLOCK_PAGE_VARIABLE in os.environ:
        return UsageError(
            "virtual time does not reach this Python: it is static or setuid, or /proc is that of other processes",
            "run pytest by another Python, or take @pytest.mark.virtual_time away",
        )
    if isinstance(words := _find_coordinator_command(), UsageError):
        return words
    if hasattr(config, "workerinput"):
        return UsageError(
            "this worker of pytest-xdist was started in real time",
            "write agentproc_virtual_sync = true into the ini file, or add --agentproc-virtual-sync",
        )
    if [*config.invocation_params.args] != sys.argv[1:]:
        return UsageError(
            "this pytest runs inside of another program, and virtual time needs one that can be started again",
            "run it as a command of its own: python -m pytest",
        )
    return None


@whole_block
def run_in_virtual_time(item: pytest.Item, start: dt.datetime) -> Iterator[None]:
    """Have a sync test, and all processes that it starts, be in virtual time while the block runs.

    Raises:
        UsageError: this pytest is not below the coordinator, or the test runs in a thread.
    """
    if machine.find_preload_shim() is None:
        raise _explain_no_restart(item.config) or UsageError(
            f"{item.name} was marked with virtual_time after the tests were collected",
            "write agentproc_virtual_sync = true into the ini file, or add --agentproc-virtual-sync",
        )
    if threading.current_thread() is not threading.main_thread():
        raise UsageError(f"{item.name} runs in a thread, and virtual time is for the main thread", "run it there")
    from pytest_agentproc.clock import make_popen_limits_exact

    end_play_process(item.config)  # a coordinator below this one: it waits in a way that has no place in virtual time
    known = threading.enumerate()
    before = signal.signal(_DEADLOCK_SIGNAL, lambda *_: _raise_deadlock(known))
    try:
        with (
            machine.enter_virtual_time(round(start.timestamp() * 1e9), _DEADLOCK_SIGNAL) as shim,
            make_popen_limits_exact(),
        ):
            yield
        notes = shim.agentproc_notes().decode(errors="replace")
    finally:
        signal.signal(_DEADLOCK_SIGNAL, before)
    for note in notes.splitlines():
        item.warn(pytest.PytestWarning(note))


def _raise_deadlock(known: list[threading.Thread]) -> None:
    from pytest_agentproc.clock import is_debugged

    if is_debugged():
        return
    waiting = machine.find_preload_shim().agentproc_waits().decode(errors="replace").split(", ")
    lines = [*_describe_threads(known), *_describe_processes(waiting)]
    raise Deadlock(
        "\n  ".join(["nobody can move: all threads and processes wait, and no wait has a time limit", *lines])
    )


def _describe_threads(known: list[threading.Thread]) -> Iterator[str]:
    """Name the threads that the test has started, and the line at which each waits."""
    frames = list_thread_frames()
    for thread in threading.enumerate():
        if thread not in known and (found := find_call_lines(frames.get(thread.ident or 0))):
            yield f"thread {thread.name}, at {found[0]}"
    if not frames:
        yield describe_other_interpreters()


def _describe_processes(waiting: list[str]) -> Iterator[str]:
    """Name the processes that wait: a fake by its script, another by its command.

    The coordinator knows a process by the name that the kernel has, which a descendant of a fake has from its parent.
    This process is left out, because the traceback says more of it, and so are the kit's helpers.
    """
    from pytest_agentproc.harness import describe_living_fakes
    from pytest_agentproc.processes import read_command

    fakes = describe_living_fakes()
    for line in waiting:
        found = _PID_OF_WAITING_PROCESS_PATTERN.search(line)
        if found is None:
            continue
        pid, does = int(found[1]), line[found.end() :]
        words = read_command(pid)
        if pid in fakes:
            yield fakes[pid]
        elif pid != os.getpid() and not any(word.endswith("/harness/fakes/_broker.py") for word in words):
            command = " ".join(" ".join(words).split())[:_MAX_COMMAND_CHARS] or line[: found.start()]
            yield f"{command} (pid {pid}){does}"


_PID_OF_WAITING_PROCESS_PATTERN = re.compile(r" \(pid (\d+)\)")
_MAX_COMMAND_CHARS = 100


def measure_in_real_time() -> None:
    """Have pytest measure by the machine's clock: its own clocks would show a virtual hour as an hour."""
    from _pytest import timing  # made to be replaced: it has pytest's own names for the functions of `time`

    timing.perf_counter = machine.read_monotonic
    timing.time = machine.read_date


def pause_at_debugger_prompts(debugger: Any) -> None:
    """Pause virtual time while a debugger waits for a command."""
    if machine.read_virtual_start() is None:
        return
    read, obey = debugger.cmdloop, debugger.onecmd

    def hold_time_in_prompt(intro: Any = None) -> Any:
        with machine.hold_virtual_time():
            return read(intro)

    def hold_time_in_command(line: str) -> Any:
        with machine.hold_virtual_time(-1):
            return obey(line)

    debugger.cmdloop, debugger.onecmd = hold_time_in_prompt, hold_time_in_command
