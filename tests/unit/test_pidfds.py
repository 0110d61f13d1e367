"""A process that is opened by its pid, which may be nobody's, or a thread's, by now."""

from __future__ import annotations

import os
import subprocess
import threading

import pytest

from pytest_agentproc.tree import pidfd_of


def test_who_lives_is_opened() -> None:
    """The descriptor is the caller's."""
    pidfd = pidfd_of(os.getpid())
    assert pidfd is not None
    os.close(pidfd)


def test_who_is_reaped_is_nobody() -> None:
    """As the kernel says it."""
    with subprocess.Popen(["true"]) as process:
        process.wait()
    assert pidfd_of(process.pid) is None


def test_the_number_of_a_thread_is_nobodys() -> None:
    """Threads have their numbers from where pids come from; a kernel that opens one is asked for a process."""
    told: list[int | None] = []
    go_on = threading.Event()
    thread = threading.Thread(target=go_on.wait)
    thread.start()
    try:
        assert thread.native_id is not None
        told.append(pidfd_of(thread.native_id))
    finally:
        go_on.set()
        thread.join()
    assert told == [None]


def test_too_many_descriptors_are_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """What says nothing of the process is raised."""

    def refuse(_pid: int) -> int:
        raise OSError(24, os.strerror(24))

    monkeypatch.setattr("posix.pidfd_open", refuse)
    with pytest.raises(OSError, match="Too many open files"):
        pidfd_of(os.getpid())
