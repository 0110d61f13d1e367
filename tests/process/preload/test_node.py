"""All of Node's ways to wait: each gives its own milliseconds, exactly."""

from __future__ import annotations

from pathlib import Path

from tests.process.preload.stand import run_in_virtual_time

PROGRAMS = Path(__file__).parent / "programs"


def test_http_on_loopback_waits_in_virtual_time() -> None:
    """A server and its client in one process: an abort after 60 s, an answer after 120 s, a silent socket."""
    run = run_in_virtual_time("node", PROGRAMS / "http.mjs")
    assert run.out.splitlines() == ["TimeoutError 60000", "answer 180000", "socket timeout 210000", "end 300000"]
    assert (run.notes, run.virtual) == ([], "300")


def test_child_processes_are_killed_at_their_timeouts() -> None:
    """`execFile` and `spawnSync` with a timeout, `spawn` with a signal, and children that come to their own ends."""
    run = run_in_virtual_time("node", PROGRAMS / "children.mjs")
    assert run.out.splitlines() == [
        "execFile SIGTERM 30000",
        "execFile ok 130000",
        "spawnSync SIGTERM ETIMEDOUT 137000",
        "execFileSync 148000",
        "AbortError 157000",
        "exit SIGTERM 157000",
    ]


def test_promises_and_readline_wait_in_virtual_time() -> None:
    """Timers as promises, and lines that a child writes one by one."""
    run = run_in_virtual_time("node", PROGRAMS / "promises.mjs")
    assert run.out.splitlines() == ["sleep 45000", "interval 50000", "line 1 52000", "line 2 54000", "closed 55000"]


def test_worker_threads_wait_in_virtual_time() -> None:
    """Each worker has a loop of its own, and `Atomics.wait` blocks its thread."""
    run = run_in_virtual_time("node", PROGRAMS / "workers.mjs")
    assert run.out.splitlines() == ["timer 45000", "main 60000", "atomics 65000"]
