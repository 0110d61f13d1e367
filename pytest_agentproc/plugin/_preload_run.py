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
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from pytest_agentproc import machine
from pytest_agentproc.errors import Deadlock, UsageError
from pytest_agentproc.places import find_call_lines
from pytest_agentproc.plugin._options import get_option

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterator

_DEADLOCK_SIGNAL = signal.SIGRTMAX - 2
"""The signal by which the coordinator says that nobody can move any more; the shim keeps the next one for itself."""


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Start pytest below the coordinator if that is asked for, and if it can be done; else each test says why not."""
    uses_xdist = config.getoption("numprocesses", None) or config.getoption("tx", None)
    if get_option(config, "virtual_sync") and not uses_xdist and _explain_no_restart(config) is None:
        _execute_coordinator(config)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config, specs: list[Any]) -> None:
    """Have each local worker start below a coordinator of its own."""
    if not get_option(config, "virtual_sync") or isinstance(words := _find_coordinator_command(), UsageError):
        return
    for spec in specs:
        if spec.popen and not spec.python:
            spec.python = shlex.join([*words, sys.executable])


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


@contextmanager
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
    lines = [*_describe_threads(known), *(line for line in waiting if not _is_kit_process(line))]
    raise Deadlock(
        "\n  ".join(["nobody can move: all threads and processes wait, and no wait has a time limit", *lines])
    )


def _describe_threads(known: list[threading.Thread]) -> Iterator[str]:
    """Name the threads that the test has started, and the line at which each waits."""
    frames = sys._current_frames()  # noqa: SLF001  # the one way to see them
    for thread in threading.enumerate():
        if thread not in known and (found := find_call_lines(frames.get(thread.ident or 0))):
            yield f"thread {thread.name}, at {found[0]}"


def _is_kit_process(waiting: str) -> bool:
    """Say whether a line of the coordinator's is about this process, of which the traceback says more, or a helper."""
    from pytest_agentproc.procfs import read_command_words

    found = re.search(r" \(pid (\d+)\)", waiting)
    pid = int(found[1]) if found else 0
    return pid == os.getpid() or any(word.endswith("/harness/fakes/_broker.py") for word in read_command_words(pid))


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
