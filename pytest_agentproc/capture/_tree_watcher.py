"""Watches the tree of a recorded program. Owns the processes that were seen and have ended; starts and ends none.

A process that lives for less than two looks is not seen: the kernel does not report it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass

from pytest_agentproc.events import Leaked, ProcessGone, ProcessStarted, Trace
from pytest_agentproc.tree import ProcessState, list_descendants, read_group, take_snapshot


@dataclass
class _SeenProcess:
    """A process that was seen."""

    name: str
    first: int
    told: bool = False


class TreeWatcher:
    """Watch the descendants of this process, among them orphans that it adopted.

    Args:
        agent: the pid of the recorded program.
        report: takes an event.
        pipes: the targets of the program's own descriptors, by which it is seen who holds them.
    """

    def __init__(self, agent: int, report: Trace, pipes: frozenset[str]) -> None:
        self._agent = agent
        self._report = report
        self._pipes = pipes
        self._known: dict[int, _SeenProcess] = {}
        self._names: dict[str, int] = {}
        self._before = frozenset(list_descendants(os.getpid())) - {agent}

    def report_tree_changes(self, now: int) -> None:
        """Report new processes, with the time of their first sight, and ended ones; adopted ones are reaped."""
        seen = {}
        for pid in list_descendants(os.getpid()):
            sighted = take_snapshot(pid) if pid != self._agent and pid not in self._before else None
            if sighted is not None and sighted.state == "zombie" and sighted.parent == os.getpid():
                with suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
            elif sighted is not None and sighted.state != "zombie":
                seen[pid] = sighted
        for pid, sighted in seen.items():
            self._report_new_process(pid, sighted, now)
        for pid in [pid for pid in self._known if pid not in seen]:
            gone = self._known.pop(pid)
            if gone.told:
                self._report(ProcessGone(now, gone.name))

    def _report_new_process(self, pid: int, sighted: ProcessState, now: int) -> None:
        known = self._known.setdefault(pid, _SeenProcess("", now))
        if known.told or known.first == now:
            return
        known.name, known.told = self._choose_process_name(sighted.command), True
        parent = self._known.get(sighted.parent)
        above = "agent" if sighted.parent == self._agent else "nobody" if sighted.parent == os.getpid() else "unknown"
        self._report(
            ProcessStarted(
                now,
                known.name,
                pid,
                (parent.name or "unknown") if parent else above,
                how=self._describe_detachment(pid, sighted),
                since=known.first,
                inherits=self._has_program_pipe(pid),
                argv=sighted.command,
            )
        )

    def _choose_process_name(self, command: str) -> str:
        base = os.path.basename(command.split(" ", maxsplit=1)[0]).strip("[]") or "process"  # noqa: PTH119  # no path of this host
        self._names[base] = self._names.get(base, 0) + 1
        return base if self._names[base] == 1 else f"{base} {self._names[base]}"

    def _describe_detachment(self, pid: int, sighted: ProcessState) -> str:
        """Say in the words of `spawn` how it left its parent."""
        own = take_snapshot(self._agent)
        session = own.session if own is not None else None
        if sighted.parent == os.getpid():
            return "double_fork" if sighted.session == session else "daemon"
        if sighted.session == pid:
            return "new_session"
        return "own_group" if read_group(pid) == pid else "same_group"

    def _has_program_pipe(self, pid: int) -> bool:
        """Say whether it can write to the program's pipes; psutil lists open files, and no pipes."""
        for number in (1, 2):
            with suppress(OSError):
                if os.readlink(f"/proc/{pid}/fd/{number}") in self._pipes:  # noqa: PTH115  # as in `tree`
                    return True
        return False

    def report_survivors(self, now: int) -> None:
        """Report the processes that live on after the program's end."""
        for known in self._known.values():
            if known.told:
                self._report(Leaked(now, known.name, "alive"))
