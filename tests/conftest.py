"""What holds for every test of ours: a test that starts processes ends with none. Knows no fixture of the kit."""

from __future__ import annotations

import contextlib
import gc
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

pytest_plugins = ["pytester"]

# pytester gives each test a home of its own. Without this, each would compile virtual time for programs once more.
os.environ.setdefault("XDG_CACHE_HOME", str(Path.home() / ".cache"))

_THREADS = Path("/proc/self/task")
_RUNNER_PROGRAMS = ("harness/fakes/_broker.py", "harness/_decoy.py", "_preload.serve_play_requests(")
"""What serves every later test and ends with the session's runner: lifeline broker, decoys, programs' virtual time."""


def _has_children() -> bool:
    """Ask the kernel with a single call; zombies count."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _describe_children() -> dict[int, str]:
    """Describe this process's children, zombies included, by pid."""
    if not _has_children():
        return {}
    pids: list[int] = []
    for file in _THREADS.glob("*/children"):
        with contextlib.suppress(OSError):  # a thread that has ended meanwhile; its children are another thread's now
            pids += [int(pid) for pid in file.read_text().split()]
    return {pid: _describe(pid) for pid in pids}


def _describe(pid: int) -> str:
    process = Path(f"/proc/{pid}")
    try:
        state = process.joinpath("stat").read_text().rpartition(")")[2].split()[0]
        command = process.joinpath("cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return "gone while looked at"
    return "zombie" if state == "Z" else command


@pytest.fixture(autouse=True)
def _no_child_is_left() -> Iterator[None]:
    """Fail a test that leaves a child process behind, alive or unreaped."""
    before = _describe_children()
    yield
    new = {pid: command for pid, command in _describe_children().items() if pid not in before}
    left = {pid: command for pid, command in new.items() if not any(own in command for own in _RUNNER_PROGRAMS)}
    assert left == {}, f"the test left child processes: {left}"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Have a worker more than there are cores: a test of processes waits for half of its time."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Leave the tests themselves out of each later search for garbage: with 12,800 of them one takes half a second.

    hypothesis comes first: it looks who refers to a generator of trio, and nobody does among frozen objects.
    """
    import hypothesis  # noqa: F401

    gc.collect()
    gc.freeze()


@pytest.fixture
def small_heap() -> None:
    """Leave out what earlier tests have made, too, for a test that has hundreds of searches for garbage."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Collect what a test may leave within that test: a later one, which may leave nothing, would fail for it."""
    try:
        return (yield)
    finally:
        marks = item.iter_markers("filterwarnings")
        if any("PytestUnraisableExceptionWarning" in argument for mark in marks for argument in mark.args):
            gc.collect()
