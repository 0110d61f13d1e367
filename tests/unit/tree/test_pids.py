"""Pids: an opened pid may be free, or a thread, by now; and a child's may be smaller than its parent's."""

from __future__ import annotations

import os
import subprocess
import threading

import pytest

from pytest_agentproc.tree import _membership, open_pidfd


def test_who_lives_is_opened() -> None:
    """The descriptor is the caller's."""
    pidfd = open_pidfd(os.getpid())
    assert pidfd is not None
    os.close(pidfd)


def test_who_is_reaped_is_nobody() -> None:
    """As the kernel says it."""
    with subprocess.Popen(["true"]) as process:
        process.wait()
    assert open_pidfd(process.pid) is None


def test_the_number_of_a_thread_is_nobodys() -> None:
    """Threads have their numbers from where pids come from; a kernel that opens one is asked for a process."""
    lines: list[int | None] = []
    go_on = threading.Event()
    thread = threading.Thread(target=go_on.wait)
    thread.start()
    try:
        assert thread.native_id is not None
        lines.append(open_pidfd(thread.native_id))
    finally:
        go_on.set()
        thread.join()
    assert lines == [None]


def test_too_many_descriptors_are_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that says nothing of the process is raised."""

    def refuse(_pid: int) -> int:
        raise OSError(24, os.strerror(24))

    monkeypatch.setattr("posix.pidfd_open", refuse)
    with pytest.raises(OSError, match="Too many open files"):
        open_pidfd(os.getpid())


def test_parents_come_before_children_whose_pids_are_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers go round: what is signalled in the order of a walk is signalled in that of the births."""
    children = {40: [7, 3], 7: [5], 90: [], 3: [], 5: []}
    parents = {child: above for above, all_of_it in children.items() for child in all_of_it}

    def below(pid: int) -> list[int]:
        return [process_id for child in children.get(pid, []) for process_id in (child, *below(child))]

    monkeypatch.setattr(_membership, "list_descendants", below)
    monkeypatch.setattr(_membership, "list_session_members", lambda _session: [3, 5, 7, 40, 90])
    monkeypatch.setattr(_membership, "read_parent", lambda pid: parents.get(pid, 1))
    assert list(_membership.DescentTree(12).find_candidates({}, 0.0)) == [40, 7, 5, 3, 90]  # type: ignore[arg-type]  # a line asks nobody
