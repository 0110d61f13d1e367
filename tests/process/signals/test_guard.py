"""The notes of a run's signal guard on one signal, by the run's processes. With real processes, and without a play."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.harness import _signal_guard
from pytest_agentproc.harness._signal_guard import _KnownProcess, guard_signals
from pytest_agentproc.procfs import ProcessStat

if TYPE_CHECKING:
    from pytest_agentproc.events import Event


@pytest.mark.parametrize("is_reaped", [False, True])
def test_when_a_descendants_pid_is_free_is_nobodys_word(is_reaped: bool) -> None:
    """Init waits for an orphan, soon or late: of two plays one would have a note and the other none."""
    notes: list[Event] = []
    with subprocess.Popen(["true"]) as process:
        process.wait()
    known = _KnownProcess("server", is_reaped=is_reaped, is_agent=False)
    with guard_signals(notes.append, int, lambda _pid: known), pytest.raises(ProcessLookupError):
        os.kill(process.pid, signal.SIGCONT)
    assert notes == []


@pytest.mark.parametrize("observed", [None, ProcessStat("sh", "S", 1, 2, 2, 3)], ids=["nobody", "somebody else"])
def test_who_is_reaped_meanwhile_is_no_stray(observed: ProcessStat | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A keeper reaps it between two looks, and another process may have its pid by then."""
    notes: list[Event] = []
    monkeypatch.setattr(_signal_guard, "read_stat", lambda _pid: observed)
    monkeypatch.setattr(_signal_guard, "is_unrelated_process", lambda *_: True)
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        pidfd = os.pidfd_open(process.pid)

        def known(_pid: int) -> _KnownProcess:
            process.communicate()
            return _KnownProcess("agent", is_reaped=True, is_agent=True)

        with guard_signals(notes.append, int, known), pytest.raises(ProcessLookupError):
            signal.pidfd_send_signal(pidfd, signal.SIGCONT)
        os.close(pidfd)
    assert notes == []


def test_of_two_runs_at_a_time_the_first_is_watched() -> None:
    """Whichever ends first, nothing stays patched."""
    plain = os.kill
    notes: list[Event] = []
    first, second = guard_signals(notes.append, int), guard_signals(notes.append, int)
    first.__enter__()
    watched = os.kill
    second.__enter__()
    assert os.kill is watched
    first.__exit__(None, None, None)
    assert os.kill is plain
    second.__exit__(None, None, None)
    assert os.kill is plain
