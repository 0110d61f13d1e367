"""The private names of asyncio and trio that virtual time leans on are there, in this very version."""

# ruff: noqa: SLF001  # private names are what this file is about

from __future__ import annotations

import asyncio
import asyncio.base_events
import asyncio.unix_events
import inspect
import subprocess
import sys

import pytest
import trio
import trio._core._run
import trio._subprocess
import trio._threads
from anyio._backends import _asyncio as anyio_asyncio

LOOP = ("_ready", "_scheduled", "_stopping", "_clock_resolution", "_default_executor")
MAKERS = ("_make_subprocess_transport", "_make_read_pipe_transport", "_make_write_pipe_transport")


@pytest.mark.parametrize("name", LOOP)
def test_an_asyncio_loop_has_what_virtual_time_reads_or_sets(name: str) -> None:
    """A version that renames one fails here, by name, and not in some timing far away."""
    loop = asyncio.SelectorEventLoop()
    loop.close()
    assert hasattr(loop, name)


@pytest.mark.parametrize("name", MAKERS)
def test_an_asyncio_loop_makes_its_transports_where_virtual_time_looks(name: str) -> None:
    """The overridden method must be the method that is called."""
    assert inspect.isfunction(getattr(asyncio.unix_events._UnixSelectorEventLoop, name))


def test_asyncio_waits_for_timers_by_their_own_instant() -> None:
    """`_run_once` compares a timer's `when` with the clock plus the resolution: holding timers is that resolution."""
    source = inspect.getsource(vars(asyncio.base_events.BaseEventLoop)["_run_once"])
    assert "end_time = self.time() + self._clock_resolution" in source
    assert "handle._when >= end_time" in source


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="asyncio waits by pidfd itself")
def test_asyncio_before_3_12_can_be_given_a_pidfd_watcher() -> None:
    """Its own default waits in threads, whose end no selector sees in time."""
    assert hasattr(asyncio.PidfdChildWatcher(), "_callbacks")


def test_anyio_has_one_door_to_its_worker_threads_on_asyncio() -> None:
    """It is replaced while virtual time runs, and put back as the class method that it is."""
    door = inspect.getattr_static(anyio_asyncio.AsyncIOBackend, "run_sync_in_worker_thread")
    assert isinstance(door, classmethod)


def test_trio_asks_its_clock_only_when_no_task_can_run() -> None:
    """And asks it for the time once after the I/O, which is the question for due timers."""
    source = inspect.getsource(trio._core._run.unrolled_run)
    order = [
        "if runner.runq:",
        "runner.clock.deadline_to_sleep_time(deadline)",
        "runner.waiting_for_idle",
        'call("before_io_wait"',
        'call("after_io_wait"',
        "now = runner.clock.current_time()",
        "runner.deadlines.expire(now)",
    ]
    places = [source.index(piece) for piece in order]
    assert places == sorted(places)


def test_trio_starts_processes_through_its_thread_door() -> None:
    """That call is what virtual time makes in place."""
    source = inspect.getsource(trio._subprocess)
    assert "await trio.to_thread.run_sync(" in source
    assert "subprocess.Popen" in source
    assert subprocess.Popen.__init__ is not None


def test_trio_starts_threads_by_a_name_of_its_module() -> None:
    """Replacing the name in the module is enough."""
    assert "start_thread_soon(worker_fn" in inspect.getsource(trio._threads.to_thread_run_sync)
    assert hasattr(trio._core._run.Task, "_attempt_abort")
