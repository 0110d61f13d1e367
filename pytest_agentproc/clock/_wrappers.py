"""Programs that are no fakes and run all the same: declared ones, and those around an agent (a shell, `timeout`).

Owns the list of them, whether they rest, and whether time is held for them. A program around an agent waits for it, or
passes its output on. It rests when it and its descendants sleep, and time passes as for the agent. Without a living
agent it works in real time: time is held until it ends, or waits for an event.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from pytest_agentproc.clock._guards import has_timed_wait
from pytest_agentproc.errors import ForeignProgram
from pytest_agentproc.originals import monotonic
from pytest_agentproc.processes import read_name
from pytest_agentproc.procfs import iterate_pids, list_threads, read_proc, read_stat

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping

    from pytest_agentproc.clock._hub_socket import DescriptorPoller
    from pytest_agentproc.clock._jump import SpawnPath
    from pytest_agentproc.clock._participant import Participant


LONGEST_PROGRAM_SLEEP_SECONDS = 1.0
"""Real seconds for which a program that is no agent may sleep: it may be about to start one."""


class SleepProof:
    """Whether a process and its descendants sleep.

    One look is not enough: a process that slept when it was seen may wake before the last one is seen, and start
    another. If no process has run between two looks, all slept at the same moment. If the family was listed between the
    two looks, the list is complete. As long as no process runs, none is added.

    Args:
        pid: the process.
        others: pids that do not count, with their descendants: agents park by themselves.
    """

    def __init__(self, pid: int, others: Container[int]) -> None:
        self._pid = pid
        self._others = others
        self.family: list[int] = []
        """The sleeping processes at the last proof."""
        self.proof: dict[int, bytes] | None = None
        """The observation at the last proof: another object once any process has run."""

    def is_tree_asleep(self) -> bool:
        """Look, and say whether all sleep."""
        if self.proof is not None and _count_switches(self.family) == self.proof:
            return True
        family = self._list_process_and_descendants()
        seen = _count_switches(family)
        # The order of the three looks is the proof: switches, list, switches.
        if seen is None or self._list_process_and_descendants() != family or _count_switches(family) != seen:
            self.proof = None
            return False
        self.family, self.proof = family, seen
        return True

    def find_timed_process(self) -> int | None:
        """Give one of the processes of the last proof that waits with a time limit of its own."""
        return next((pid for pid in self.family if has_timed_wait(pid)), None)

    def _list_process_and_descendants(self) -> list[int]:
        return [self._pid, *_list_descendants(self._pid, self._others)]


class WrapperProgram:
    """A program that is no fake.

    Args:
        pid: the process.
        path: its place in spawn order, which its first agent takes.
        name: its name; "": the kernel's name for it.
        participants: all processes that ever said hello, by pid.
    """

    def __init__(self, pid: int, path: SpawnPath, name: str, participants: Mapping[int, Participant]) -> None:
        self.pid = pid
        self.name = name or read_name(pid)
        self.pidfd = os.pidfd_open(pid)  # a zombie has one too, and lets go at the next look
        self.free: SpawnPath | None = path
        self.agents: list[SpawnPath] = []
        self._sleep = SleepProof(pid, participants)
        self._timed_since: float | None = None

    def is_at_rest(self) -> bool:
        """Say whether it and its descendants sleep, and none of them waits with a time limit of its own.

        Raises:
            ForeignProgram: one waits for longer than a second: it uses real time, as a supervisor would.
        """
        if not self._sleep.is_tree_asleep():
            return False
        timed = self._sleep.find_timed_process()
        if timed is None:
            self._timed_since = None
            return True
        # One second of grace: a shell may sleep for a moment before it starts its agent. A supervisor around the agent
        # that counts in real time would see an hour pass in a moment, so virtual time cannot judge it.
        now = monotonic()
        self._timed_since = self._timed_since or now
        if now - self._timed_since > LONGEST_PROGRAM_SLEEP_SECONDS:
            raise ForeignProgram(
                f"{read_name(timed)!r} (pid {timed}), around an agent, counts in real time by itself\n"
                "have what waits run on the virtual clock, or leave the virtual clock out"
            )
        return False

    def prove_rest(self) -> dict[int, bytes] | None:
        """Give the proof that it and all that it started wait for something other than a time; None: there is none."""
        return self._sleep.proof if self._sleep.is_tree_asleep() and self._sleep.find_timed_process() is None else None

    def describe(self) -> str:
        """Name it for a message."""
        kind = "the program around an agent," if self.agents else "the declared program"
        return f"{kind} {self.name!r} (pid {self.pid})"


class WrapperRegistry:
    """All living wrappers.

    Args:
        poller: finds the wrappers that end.
        participants: all processes that ever said hello, by path and by pid.
    """

    def __init__(
        self, poller: DescriptorPoller, participants: Mapping[SpawnPath, Participant], by_pid: Mapping[int, Participant]
    ) -> None:
        self._poller = poller
        self._participants = participants
        self._by_pid = by_pid
        self.alive: dict[int, WrapperProgram] = {}
        """Each by its pid."""

    def add(self, pid: int, path: SpawnPath, name: str = "") -> WrapperProgram:
        """Add a program until it ends."""
        wrapper = self.alive[pid] = WrapperProgram(pid, path, name, self._by_pid)
        self._poller.watch(wrapper.pidfd, partial(self._handle_end, pid))
        return wrapper

    def _handle_end(self, pid: int) -> None:
        self.drop(pid)

    def drop(self, pid: int) -> WrapperProgram | None:
        """Remove the wrapper of a pid, if there is one: it has ended, or has become an agent itself."""
        wrapper = self.alive.pop(pid, None)
        if wrapper is not None:
            self._poller.forget(wrapper.pidfd)
            os.close(wrapper.pidfd)
        return wrapper

    def find_wrapper_above(self, pid: int) -> WrapperProgram | None:
        """Give the wrapper that a process descends from."""
        return next((self.alive[ancestor] for ancestor in list_ancestors(pid) if ancestor in self.alive), None)

    def list_time_holders(self) -> list[str]:
        """Name the wrappers that hold time: no agent of theirs lives, and they work or count in real time."""
        idle = [wrapper for wrapper in self.alive.values() if not any(map(self._has_living_agent, wrapper.agents))]
        # The last wrapper to rest may have woken the first: look at each again.
        proofs = [wrapper.prove_rest() for wrapper in idle]
        return [
            wrapper.describe()
            for wrapper, proof in zip(idle, proofs, strict=True)
            if not proof or wrapper.prove_rest() is not proof
        ]

    def find_restless_wrapper(self) -> str:
        """Name a wrapper around an agent that does not rest; empty: all rest, or are dead.

        Raises:
            ForeignProgram: one keeps real time.
        """
        for wrapper in self.alive.values():
            if wrapper.agents and not wrapper.is_at_rest():
                return wrapper.describe()
        return ""

    def close(self) -> None:
        """Give every descriptor back."""
        for pid in tuple(self.alive):
            self.drop(pid)

    def _has_living_agent(self, path: SpawnPath) -> bool:
        """Say whether an agent lives, or a process that it started."""
        everyone = self._participants.items()
        return any(participant.is_alive for other, participant in everyone if other[: len(path)] == path)


def list_ancestors(pid: int) -> Iterator[int]:
    """Give the parent of a process, and so on, as far as this process."""
    own = os.getpid()
    while (seen := read_stat(pid)) is not None and (pid := seen.parent) > 1 and pid != own:
        yield pid


def _list_descendants(root: int, others: Container[int]) -> list[int]:
    """List the descendants of a process without the others and theirs; not every kernel lists children."""
    below: dict[int, list[int]] = {}
    for pid in iterate_pids():
        if pid not in others and (seen := read_stat(pid)) is not None:
            below.setdefault(seen.parent, []).append(pid)
    found = list(below.get(root, ()))
    for pid in found:
        found += below.get(pid, ())
    return found


def _count_switches(family: list[int]) -> dict[int, bytes] | None:
    """Give for each thread of these processes how often it has given its core up; None: one of them runs."""
    found: dict[int, bytes] = {}
    for pid in family:
        for thread in list_threads(pid):
            # The state alone is a moment; the count of switches shows whether a thread ran between two moments.
            status = read_proc(f"{pid}/task/{thread}/status")
            state = status.partition(b"State:\t")[2][:1]
            if state not in _INERT_STATE_LETTERS:
                return None
            # A thread that reaps a child is in state S already, also while it waits for a core: a shell whose agent had
            # ended was taken for asleep on a busy machine. The kernel calls such a thread `running`.
            if read_proc(f"{pid}/task/{thread}/syscall").startswith(b"running"):
                return None
            found[thread] = status[status.find(b"voluntary_ctxt_switches") :]
    return found


_INERT_STATE_LETTERS = (b"S", b"T", b"t", b"Z", b"X", b"")
"""State letters of a process that does nothing: asleep, stopped, dead."""
