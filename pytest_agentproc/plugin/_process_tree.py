"""Owns the process tree of one test: the questions about it, and the failure for the processes that it leaves."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import pytest

from pytest_agentproc.errors import UsageError
from pytest_agentproc.foreign import find_globals_name
from pytest_agentproc.plugin._contributions import is_fake_command
from pytest_agentproc.processes import describe_processes, open_processes
from pytest_agentproc.tree import LeakTracker, read_command_line

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence
    from types import FrameType

    from pytest_agentproc.processes import Process
    from pytest_agentproc.tree import OwnedProcess, Ownership, ProcessState


_END_TIMEOUT_NS = 200_000_000
"""Real nanoseconds that a process may take to end once its test is over; a test that leaves none pays nothing."""

_MAX_COMMAND_CHARS = 160
_LEAK_TRACKERS_STASH_KEY: pytest.StashKey[list[LeakTracker]] = pytest.StashKey()


class ProcessTree:
    """The processes of one test.

    Args:
        request: the test's.

    Raises:
        pytest.skip.Exception: this system is not Linux.
        pytest.fail.Exception: /proc does not show the pid namespace of this process.
    """

    def __init__(self, request: pytest.FixtureRequest) -> None:
        if sys.platform != "linux":
            pytest.skip(f"process_tree needs Linux (pidfd, /proc, subreaper), and this is {sys.platform}")
        self._config = request.config
        self._pids: set[int] = set()
        self._patterns: list[str] = []
        self._leak_tracker = LeakTracker(
            home=str(request.path), counts=_is_frame_called_by_test, excuses=self._is_allowed_to_live
        )
        try:
            self._leak_tracker.begin()
        except UsageError as error:
            raise pytest.fail.Exception(str(error), pytrace=False) from None
        _get_trackers(self._config).append(self._leak_tracker)

    @property
    def processes(self) -> tuple[Process, ...]:
        """Those that live now, each as a `psutil.Process`, parents before children.

        psutil's `create_time()` is by the clock of the machine, in virtual time too.
        """
        living = _list_living(self._leak_tracker.find_owned())
        return open_processes((process.pid, process.started) for process in living)

    def find_start_lines(self, process: Process) -> tuple[str, ...]:
        """Give the lines that started a process of this test, or the process above it: `file:line`, the nearest first.

        Args:
            process: one of `processes`, or another object with its `pid`.

        Returns:
            the lines; none if they are not known, or the process is not of this test.
        """
        mine = self._leak_tracker.find_owned().mine
        starts = (owned.start for owned in mine if owned.snapshot.pid == process.pid)
        return next((start.places for start in starts if start is not None), ())

    def wait_gone(self, timeout: float) -> bool:
        """Wait until no process of this test lives.

        It blocks this thread, and with it an event loop that runs here. A dead child counts as ended, though its parent
        has to wait for it before the test ends.

        Args:
            timeout: real seconds.

        Returns:
            Whether they are gone.
        """
        # No second look: a fake that is just exiting has no command line any more, by which it would be excused.
        left = self._leak_tracker.wait_until_none_left(round(timeout * 1e9), zombies=False)
        return all(process.snapshot.state == "zombie" for process in left.mine)

    def allow(self, what: Any) -> None:
        """Let a process, with whatever descends from it, outlive this test: it is neither counted nor ended.

        Args:
            what: a pid, an object with a `pid` such as a `Popen`, or a pattern for the whole command line (`*redis*`).

        Raises:
            UsageError: it is none of these.
        """
        pid = getattr(what, "pid", what)
        if isinstance(what, str):
            self._patterns.append(what)
        elif isinstance(pid, int) and not isinstance(pid, bool) and pid > 0:
            self._pids.add(pid)
        else:
            raise UsageError(
                f"a process to allow is a pid, a Popen or a pattern, not {what!r}",
                'write process_tree.allow(process) or process_tree.allow("*redis-server*"), for example',
            )

    def _is_allowed_to_live(self, pid: int, command: str) -> bool:
        return (
            pid in self._pids
            or any(fnmatchcase(command, pattern) for pattern in self._patterns)
            or is_fake_command(self._config, command)  # its lifeline reports it, with the line of its scenario
        )

    def finish(self) -> None:
        """End every process that is left, and fail the test for it."""
        try:
            found = self._leak_tracker.wait_until_none_left(_END_TIMEOUT_NS)
            facts = _describe_before_end(found) if found.mine else {}
            refused = self._leak_tracker.end_owned_processes(found.mine) if found.mine else []
        finally:
            if not isinstance(sys.exception(), KeyboardInterrupt):  # after a Ctrl-C the end of the session calls again
                self._leak_tracker.close()
                _get_trackers(self._config).remove(self._leak_tracker)
        if found.mine:
            pytest.fail(_explain_left_processes(found, refused, facts), pytrace=False)


def _get_trackers(config: pytest.Config) -> list[LeakTracker]:
    """Get the open trackers of the session; the first call registers the plugin that pauses them for wide fixtures."""
    if _LEAK_TRACKERS_STASH_KEY not in config.stash:
        config.stash[_LEAK_TRACKERS_STASH_KEY] = []
        config.pluginmanager.register(_FixturePauses(config.stash[_LEAK_TRACKERS_STASH_KEY]), "agentproc-process-tree")
    return config.stash[_LEAK_TRACKERS_STASH_KEY]


class _FixturePauses:
    """Counts the processes of a wider-scoped fixture as foreign, also if the test asks for the fixture."""

    def __init__(self, watched: list[LeakTracker]) -> None:
        self._watched = watched

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, object, object]:
        """Count nothing while such a fixture is set up."""
        if fixturedef.scope == "function" or not self._watched:
            return (yield)
        with _pause_trackers(self._watched):
            return (yield)


@contextmanager
def _pause_trackers(watched: Sequence[LeakTracker]) -> Iterator[None]:
    if not watched:
        yield
        return
    with watched[0].pause(), _pause_trackers(watched[1:]):
        yield


_HOOKS_THAT_CALL_TESTS = ("pytest_pyfunc_call", "pytest_fixture_setup")
"""Hooks in which plugins call a test, or a fixture, in their own way."""


def _is_frame_called_by_test(frame: FrameType) -> bool:
    """Say whether a call comes from the test and not from another plugin's own hook beside it."""
    inner, outer = frame, frame.f_back
    while outer is not None:
        if find_globals_name(outer.f_globals).startswith("pluggy."):
            owner = find_globals_name(inner.f_globals)
            return owner.startswith("_pytest.") or inner.f_code.co_name in _HOOKS_THAT_CALL_TESTS
        inner, outer = outer, outer.f_back
    return True


# The text of a failure.


def _describe_before_end(found: Ownership) -> dict[int, list[str]]:
    """Describe what is left while it is there: nothing can be asked about a process that has been ended."""
    return describe_processes((process.pid, process.started) for process in _list_living(found))


def _list_living(found: Ownership) -> list[ProcessState]:
    return [owned.snapshot for owned in found.mine if owned.snapshot.state != "zombie"]


def _explain_left_processes(
    found: Ownership, refused: Sequence[ProcessState], facts: Mapping[int, Sequence[str]]
) -> str:
    count = len(found.mine)
    end = "it has been ended" if count == 1 else "they have been ended"
    lines = [f"the test left {count} process{'' if count == 1 else 'es'} behind; {end}:"]
    for owned in found.mine:
        lines += ["", *_describe_process(owned, facts.get(owned.snapshot.pid, ()))]
    if refused:
        lines += ["", f"could not be ended: {', '.join(f'{owned.command} (pid {owned.pid})' for owned in refused)}"]
    if found.unknown:
        lines += ["", "of unknown origin, so neither counted nor ended:"]
        lines += [f"  {_shorten_command(owned.command)} (pid {owned.pid}, {owned.state})" for owned in found.unknown]
    lines += ["", *_describe_leak_remedy(found.mine)]
    return "\n".join(lines)


def _describe_process(owned: OwnedProcess, facts: Sequence[str]) -> list[str]:
    pid, state = owned.snapshot.pid, owned.snapshot.state
    state = "a zombie: it has exited, and no process waited for it" if state == "zombie" else state
    lines = [
        f"  {_shorten_command(_format_command(owned))}",
        f"    pid {pid}, {state}",
        *([f"    {', '.join(facts)}"] if facts else []),
        f"    {_describe_process_relation(owned)}",
    ]
    if owned.start is not None and owned.start.places:
        nearest, *further = owned.start.places
        lines.append(f"    started at {nearest}" + "".join(f", by the test at {place}" for place in further))
    else:
        lines.append("    started at a place that is not known")
    return lines


def _describe_process_relation(owned: OwnedProcess) -> str:
    """Describe how a process is related to this one, as far as that is known."""
    me = f"pytest ({os.getpid()})"
    if owned.how == "child":
        parent = owned.snapshot.parent
        return f"a child of {me}" if parent == os.getpid() else f"a child of multiprocessing's forkserver ({parent})"
    if owned.how == "descendant":
        chain = " < ".join(f"{_shorten_command(parent.command)} ({parent.pid})" for parent in owned.above)
        return f"a descendant: {chain} < {me}"
    root = ""
    if owned.start is not None and owned.start.command:
        pid = f" ({owned.start.pid})" if owned.start.pid else ""
        root = f" of {_shorten_command(owned.start.command)}{pid}, which has exited"
    return f"an orphan{root}; {owned.why}"


def _format_command(owned: OwnedProcess) -> str:
    return owned.describe_command(read_command_line(os.getpid()))


def _shorten_command(command: str) -> str:
    command = " ".join(command.split())
    return command if len(command) <= _MAX_COMMAND_CHARS else f"{command[:_MAX_COMMAND_CHARS]}..."


def _describe_leak_remedy(mine: Sequence[OwnedProcess]) -> list[str]:
    lines = []
    if any(owned.snapshot.state != "zombie" for owned in mine):
        lines.append("end what the test starts before it returns, and wait for it;")
        lines.append("process_tree.allow(...) is for a process that is meant to live on")
    if any(owned.snapshot.state == "zombie" for owned in mine):
        lines.append("wait for every child: Popen.wait(), Popen.communicate(), Process.join(), os.waitpid()")
    return lines
