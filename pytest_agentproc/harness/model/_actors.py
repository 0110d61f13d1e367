"""Processes, their kinship and their pipes in memory, as the model needs them. The order is the model's.

A write first fills up the last page, if its odd bytes fit there as a whole. The rest takes one slot for each page. So
3,000-byte writes fill a pipe at 48,000 bytes, and single bytes share a page.

The children of a process that ends are adopted by the next living ancestor that is a subreaper, or by a process outside
the tree. A group with a stopped member gets HUP and CONT when it loses its last parent outside itself in its own
session.

`InMemoryProcess` is the stage of a player; `ModelAgent` is a driver's view of one agent. Both do in memory what
`fake_agents.stage` and `pytest_agentproc.tree` do for real.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Protocol

from pytest_agentproc.clock import convert_note_to_event
from pytest_agentproc.events import OutputWritten
from pytest_agentproc.fake_agents.dialects import make_encoder
from pytest_agentproc.fake_agents.player import ScriptPlayer
from pytest_agentproc.fake_agents.program import PARENT_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_agentproc.clock import JumpRule, SpawnPath
    from pytest_agentproc.record import Record


PIPE_PAGE_BYTES = 4096


class _PipePage:
    __slots__ = ("data", "end")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.end = len(data)


class InMemoryPipe:
    """Bytes between processes, with the counts of those that hold either end."""

    slots = 16

    def __init__(self) -> None:
        self.writers = 1
        self.readers = 1
        self.pages: deque[_PipePage] = deque()

    def is_writable(self) -> bool:
        """Say whether poll would call it writable: a free slot, or no reader."""
        return len(self.pages) < self.slots or not self.readers

    def is_readable(self) -> bool:
        """Say whether poll would call it readable: bytes, or the end."""
        return bool(self.pages) or not self.writers

    def write(self, data: bytes | memoryview) -> int | None:
        """Take as many bytes as fit; None if none fit.

        Raises:
            BrokenPipeError: no process can read it.
        """
        if not self.readers:
            raise BrokenPipeError
        odd = len(data) % PIPE_PAGE_BYTES
        taken = 0
        if odd and self.pages and self.pages[-1].end + odd <= PIPE_PAGE_BYTES:
            last = self.pages[-1]
            last.data += bytes(data[:odd])
            last.end += odd
            taken = odd
        while taken < len(data) and len(self.pages) < self.slots:
            page = bytes(data[taken : taken + PIPE_PAGE_BYTES])
            self.pages.append(_PipePage(page))
            taken += len(page)
        return taken or None

    def read(self, limit: int) -> bytes | None:
        """Give what is there: None would block, b"" is the end."""
        if not self.pages:
            return None if self.writers else b""
        parts = []
        while self.pages and limit:
            page = self.pages[0]
            size = len(page.data)
            if size <= limit:
                parts.append(page.data)
                limit -= size
                self.pages.popleft()
            else:
                part, page.data = page.data[:limit], page.data[limit:]
                parts.append(part)
                limit = 0
        return parts[0] if len(parts) == 1 else b"".join(parts)


_SPAWN_KINDS_OF_ORPHANS = ("double_fork", "daemon", "launcher", "refork")
_SPAWN_KINDS_IN_GROUP = ("same_group", "double_fork")
_SPAWN_KINDS_IN_SESSION = (*_SPAWN_KINDS_IN_GROUP, "own_group")
_SIGHUP = 1


class ModelTreePlace:
    """One process among the others of its tree.

    Args:
        process: the process whose kinship this is.
        above: its parent; None for an agent, which leads its session.
        how: the way in which it was spawned.
        is_subreaper: whether it adopts orphans of its descendants.
        is_cleared: whether it began with an empty environment.
    """

    def __init__(
        self,
        process: InMemoryProcess,
        above: ModelTreePlace | None,
        how: str,
        *,
        is_subreaper: bool = False,
        is_cleared: bool = False,
    ) -> None:
        self.process = process
        self.is_subreaper = is_subreaper
        self.is_cleared: bool = is_cleared or (above is not None and above.is_cleared)
        self.children: list[ModelTreePlace] = []
        self.tree: list[ModelTreePlace] = [] if above is None else above.tree
        self.group: list[ModelTreePlace] = above.group if above is not None and how in _SPAWN_KINDS_IN_GROUP else []
        self.session: list[ModelTreePlace] = (
            above.session if above is not None and how in _SPAWN_KINDS_IN_SESSION else []
        )
        self.parent = above if above is None or how not in _SPAWN_KINDS_OF_ORPHANS else above.find_orphan_adopter()
        for relatives in (self.tree, self.group, self.session):
            relatives.append(self)
        if self.parent is not None:
            self.parent.children.append(self)

    @classmethod
    def from_step_fields(
        cls, process: InMemoryProcess, above: ModelTreePlace, fields: dict[str, Any]
    ) -> ModelTreePlace:
        """Give the kinship of a process that is spawned as a step says."""
        is_cleared, adopts = fields.get("clear_env", False), fields.get("subreaper", False)
        return cls(process, above, fields["how"], is_subreaper=adopts, is_cleared=is_cleared)

    def find_orphan_adopter(self) -> ModelTreePlace | None:
        """Find the process that adopts the orphans of a child of this process."""
        found: ModelTreePlace | None = self
        while found is not None and not found.is_subreaper:
            found = found.parent
        return found

    def leave_tree(self) -> None:
        """Be gone: the children are adopted, and groups that are orphaned by that hear of it."""
        heir = None if self.parent is None else self.parent.find_orphan_adopter()
        left, self.children = self.children, []
        for child in left:
            child.parent = heir
            if heir is not None:
                heir.children.append(child)
            if child.group is not self.group and child.session is self.session:
                _signal_orphaned_group(child.group)
        above = self.parent
        if above is not None:
            above.children.remove(self)
            if above.group is not self.group and above.session is self.session:
                _signal_orphaned_group(self.group)

    def list_descendants(self) -> list[ModelTreePlace]:
        """List its descendants through living parents, parents before children."""
        found: list[ModelTreePlace] = []
        frontier = [self]
        while frontier:
            living = [child for child in frontier.pop(0).children if child.process.is_alive]
            found += living
            frontier += living
        return found


def _signal_orphaned_group(group: list[ModelTreePlace]) -> None:
    """Send HUP and CONT to a group if it is orphaned and has stopped members."""
    members = [member for member in group if member.process.is_alive]
    if any(member.process.is_stopped for member in members) and not any(map(_has_parent_outside_group, members)):
        for member in members:
            member.process.catch_or_die_of_signal(_SIGHUP)
        for member in members:
            member.process.resume_after_stop()


def _has_parent_outside_group(member: ModelTreePlace) -> bool:
    """Say whether a member's parent is outside its group, in its session: then the group is no orphan."""
    above = member.parent
    return above is not None and above.group is not member.group and above.session is member.session


class ReachableTree:
    """Whom of an agent's tree its supervisor finds; see `vocabulary.CONTAINMENT_NAMES`."""

    def __init__(self, agent: ModelTreePlace, containment: str) -> None:
        self._agent = agent
        self._containment = containment
        self._seen = [agent.session]

    def list_reachable(self) -> list[InMemoryProcess]:
        """List the descendants that are found now."""
        found = self._agent.list_descendants()
        for place in self._list_living_processes(self._agent.session):
            found += [place, *place.list_descendants()]
        if self._containment == "subreaper":
            for orphan in self._list_living_processes(self._agent.tree):
                if orphan.parent is None and self._is_orphan_of_agent(orphan):
                    found += [orphan, *orphan.list_descendants()]
        elif self._containment == "keeper":
            found += self._list_living_processes(self._agent.tree)
        self._seen += [place.session for place in found if not self._has_seen_session_of(place)]
        return list(dict.fromkeys(place.process for place in found))

    def _list_living_processes(self, relatives: list[ModelTreePlace]) -> list[ModelTreePlace]:
        return [place for place in relatives if place is not self._agent and place.process.is_alive]

    def _is_orphan_of_agent(self, orphan: ModelTreePlace) -> bool:
        return not orphan.is_cleared or self._has_seen_session_of(orphan)

    def _has_seen_session_of(self, place: ModelTreePlace) -> bool:
        return any(place.session is session for session in self._seen)


_STREAM_NAMES = ("stdin", "stdout", "stderr")
_SIGKILL, _SIGTERM, _SIGCONT, _SIGSTOP = 9, 15, 18, 19


class ProcessEnded(Exception):
    """Unwind a player whose process has ended."""


class ModelOfProcesses(Protocol):
    """The part of a model that its processes need."""

    record: Record
    rule: JumpRule

    def now(self) -> int: ...
    def add_process(self, process: InMemoryProcess) -> None: ...
    def wake_process(self, process: InMemoryProcess) -> None: ...
    def park_process(self, process: InMemoryProcess) -> None: ...
    def remove_process(self, process: InMemoryProcess) -> None: ...


class InMemoryProcess:
    """A fake process in memory, and the stage of its player.

    Args:
        model: its model.
        path: its place in spawn order.
        name: its name in the record.
        line: the line that spawned it.
        program: the program that it plays.
        pipes: its stdin, stdout and stderr; None leads nowhere.

        `tree_place` is its place in the tree; `until` is the instant that it waits for, stopped or not.
    """

    tree_place: ModelTreePlace
    player_type = ScriptPlayer

    def __init__(
        self,
        model: ModelOfProcesses,
        path: SpawnPath,
        name: str,
        line: int,
        program: dict[str, Any],
        pipes: dict[str, InMemoryPipe | None],
    ) -> None:
        self.model = model
        self.path = path
        self.name = name
        self.line = line
        self.pipes = pipes
        self.is_alive = True
        self.ended: int | None = None
        self.is_reaped = False
        self.is_stopped = False
        self.until: int | None = model.now()
        self.signals: list[int] = []
        self.caught: set[int] = set()
        self._pending: set[int] = set()
        self._spawned: dict[str, InMemoryProcess] = {}
        self._watched: dict[str, InMemoryProcess] = {}
        self.wakers: list[Callable[[], bool]] = []
        """The wait is over as soon as one of these is true; before the first grant it waits for nothing."""
        self.player = self.player_type(program, self, make_encoder(program))

    # Actions of the player.

    def add_note(self, code: str, data: Any) -> None:
        self.model.record.add(convert_note_to_event(self.model.now(), self.name, code, data))

    def read_start_facts(self, names: Sequence[str] | None) -> dict[str, Any]:
        given: dict[str, Any] = self.player.program["given"]
        return {**given, "env": {name: given["env"].get(name) for name in (given["env"] if names is None else names)}}

    def has_terminal(self) -> bool:
        return False

    def can_write_chunk(self, stream: str) -> bool:
        pipe = self.pipes[stream]
        return pipe is None or pipe.is_writable()

    def write_chunk(self, stream: str, data: bytes) -> bool:
        pipe = self.pipes[stream]
        if pipe is not None:
            try:
                pipe.write(data)
            except BrokenPipeError:
                self.add_note("b", stream)
                return False
        self.model.record.add(OutputWritten(self.model.now(), self.name, data, stream))
        return True

    def write_file(self, path: str, data: bytes) -> None:
        pass

    def write_message_file(self, path: str, data: bytes | None) -> None:
        pass

    def append_session_file(self, path: str, data: bytes) -> None:
        pass

    def read_stdin(self, size: int) -> bytes | None:
        pipe = self.pipes["stdin"]
        return b"" if pipe is None else pipe.read(size)

    def close_stream(self, stream: str) -> None:
        self.add_note("c", stream)
        self._release_pipe_end(stream)

    def catch_signal(self, signum: int, exit_code: int | None = None) -> None:
        self.caught.add(signum)

    def stop_catching_signal(self, signum: int) -> None:
        self.caught.discard(signum)

    def spawn_descendant(self, index: int, fields: dict[str, Any], program: dict[str, Any]) -> None:
        pipes = {stream: self.pipes[stream] if stream in fields["inherits"] else None for stream in _STREAM_NAMES}
        for stream, pipe in pipes.items():
            if pipe is not None:
                _change_pipe_end_count(pipe, stream, 1)
        child = type(self)(self.model, (*self.path, index), fields["id"], fields["line"], program, pipes)
        child.tree_place = ModelTreePlace.from_step_fields(child, self.tree_place, fields)
        child.is_stopped = fields.get("stopped", False)
        self._spawned[fields["id"]] = child
        self.model.add_process(child)

    def watch_process_end(self, name: str) -> None:
        relative = self._find_relative(name)
        if relative is not None:
            self._watched[name] = relative

    def has_process_ended(self, name: str) -> bool:
        return self._find_relative(name) is None

    def signal_process(self, name: str, signum: int) -> None:
        relative = self._find_relative(name)
        if relative is not None:
            leads = name != PARENT_NAME and relative.tree_place.group is not self.tree_place.group
            for member in list(relative.tree_place.group) if leads else [relative.tree_place]:
                member.process.receive_signal(signum)

    def _find_relative(self, name: str) -> InMemoryProcess | None:
        """Find a child that lives, or the parent if it is the parent still."""
        if name == PARENT_NAME:
            above = self.tree_place.parent
            return None if above is None or above.process.path != self.path[:-1] else above.process
        child = self._spawned.get(name)
        return child if child is not None and child.is_alive and child.tree_place.parent is self.tree_place else None

    def exit_process(self, code: int) -> None:
        self.end(code)
        raise ProcessEnded

    def die_of_signal(self, signum: int) -> None:
        self.end_by_signal(signum)
        raise ProcessEnded

    # Actions on the process.

    def receive_signal(self, signum: int) -> None:
        """Take any signal, also one that stops or continues."""
        if signum == _SIGSTOP:
            self.is_stopped = self.is_alive
            self.model.rule.drop_process(self.path)
        elif signum == _SIGCONT:
            self.resume_after_stop()
        else:
            self.catch_or_die_of_signal(signum)

    def catch_or_die_of_signal(self, signum: int) -> None:
        """Take a signal: caught, it wakes; not caught, it kills; KILL alone does so while it is stopped."""
        if not self.is_alive:
            return
        if self.is_stopped and signum != _SIGKILL:
            self._pending.add(signum)
        elif signum in self.caught:
            self.signals.append(signum)
            self.model.wake_process(self)
        else:
            self.end_by_signal(signum)

    def resume_after_stop(self) -> None:
        """Take CONT: a stopped process receives the pending signals, and runs on."""
        if not (self.is_alive and self.is_stopped):
            return
        self.is_stopped = False
        self.model.park_process(self)
        if self.signals:
            self.model.wake_process(self)
        for signum in sorted(self._pending):
            self.catch_or_die_of_signal(signum)
        self._pending.clear()

    def end_by_signal(self, signum: int) -> None:
        """Die of a signal."""
        self.end(-signum)

    def end(self, ended: int) -> None:
        """Be gone: every stream is let go, the parent will see it."""
        self.is_alive = False
        self.ended = ended
        for stream in _STREAM_NAMES:
            self._release_pipe_end(stream)
        self.model.remove_process(self)
        self.tree_place.leave_tree()

    def can_read_stdin(self, *, asked: bool) -> bool:
        """Say whether stdin is readable, for a process that asked for a grant or did not."""
        pipe = self.pipes["stdin"]
        return pipe is None or (asked and pipe.is_readable())

    def has_watched_process_ended(self) -> bool:
        """Say whether a process that a track waits for has ended; each end wakes once."""
        ended = [name for name, process in self._watched.items() if not process.is_alive]
        for name in ended:
            del self._watched[name]
        return bool(ended)

    def update_wake_conditions(self) -> None:
        """Find out until when it waits, and what else would wake it: only a grant changes either.

        A stream that leads nowhere is ready at once, without a question to any process.
        """
        wakers = [self.has_watched_process_ended] if self._watched else []
        until, now, pipes = self.player.earliest_wake_instant, self.model.rule.now, self.pipes
        wants_stdin, wants_stdout, wants_stderr = self.player.wanted_streams
        if wants_stdin and (pipe := pipes["stdin"]) is not None:
            wakers.append(pipe.is_readable)
        elif wants_stdin:
            until = now
        if wants_stdout and (pipe := pipes["stdout"]) is not None:
            wakers.append(pipe.is_writable)
        elif wants_stdout:
            until = now
        if wants_stderr and (pipe := pipes["stderr"]) is not None:
            wakers.append(pipe.is_writable)
        elif wants_stderr:
            until = now
        self.until, self.wakers = until, wakers

    def _release_pipe_end(self, stream: str) -> None:
        pipe, self.pipes[stream] = self.pipes[stream], None
        if pipe is not None:
            _change_pipe_end_count(pipe, stream, -1)


def _change_pipe_end_count(pipe: InMemoryPipe, stream: str, change: int) -> None:
    if stream == "stdin":
        pipe.readers += change
    else:
        pipe.writers += change


class ModelAgent:
    """One agent in memory, as its driver sees it; see `supervisor`'s `AgentProcess`.

    Args:
        agent: the process, whose pipes' other ends are here.
        containment: how its tree is held.
    """

    pid = 1
    descriptor = -1

    def __init__(self, agent: InMemoryProcess, containment: str = "group") -> None:
        self.agent = agent
        self.containment = containment
        self._reach = ReachableTree(agent.tree_place, containment)
        self._pipes: dict[str, InMemoryPipe] = {name: pipe for name, pipe in agent.pipes.items() if pipe is not None}
        self._watched: dict[str, InMemoryPipe] = {}
        self._members: list[InMemoryProcess] = []
        self._saw_exit = False

    def poll(self) -> set[str]:
        ready = set()
        for name, pipe in self._watched.items():
            if pipe.is_writable() if name == "stdin" else pipe.pages or not pipe.writers:
                ready.add(name)
        if not self.agent.is_alive and not self._saw_exit:
            ready.add("exit")
        for member in self._members:
            if not member.is_alive:
                ready.add("members")
        return ready

    def watch_stream(self, name: str, *, wanted: bool) -> None:
        if wanted:
            self._watched[name] = self._pipes[name]
        else:
            self._watched.pop(name, None)

    def read(self, name: str, limit: int) -> bytes | None:
        return self._pipes[name].read(limit)

    def write(self, data: memoryview) -> int | None:
        return self._pipes["stdin"].write(data)

    def close_stdin(self) -> None:
        self._pipes["stdin"].writers = 0

    def read_exit_status(self) -> int:
        self._saw_exit = True
        assert self.agent.ended is not None
        return self.agent.ended

    def terminate(self, reach: str = "tree") -> None:
        self._send_signal(_SIGTERM, reach)

    def kill(self, reach: str = "tree") -> None:
        self._send_signal(_SIGKILL, reach)

    def _send_signal(self, signum: int, reach: str) -> None:
        if reach != "agent":
            self._add_new_members()
        group = self.agent.tree_place.group
        members = [
            member
            for member in self._members
            if reach == "tree" or (reach == "group" and member.tree_place.group is group)
        ]
        for process in (self.agent, *members):
            process.catch_or_die_of_signal(signum)
            if signum == _SIGTERM:
                process.resume_after_stop()  # a stopped one hears it, too

    def is_alone(self) -> bool:
        self._members = [member for member in self._members if member.is_alive]
        return not self._members and not self._add_new_members()

    def _add_new_members(self) -> bool:
        new = [member for member in self._reach.list_reachable() if member not in self._members]
        self._members += new
        return bool(new)

    def reap(self) -> None:
        self.agent.is_reaped = True

    def kill_and_reap(self) -> int:
        self.kill()
        self.agent.is_reaped = True
        return self.read_exit_status()

    def list_survivors(self) -> list[int]:
        return []

    def count_dead_pipes(self) -> int:
        """Count the pipes that the supervisor has open, and whose other end is closed."""
        kept = (
            (pipe.writers, pipe.readers) if name == "stdin" else (pipe.readers, pipe.writers)
            for name, pipe in self._pipes.items()
        )
        return sum(bool(own and not other) for own, other in kept)

    def close(self) -> None:
        for pipe in self._pipes.values():
            pipe.readers = pipe.writers = 0
        if self.containment == "keeper":  # which ends with all processes below it, and has reaped them
            for place in list(self.agent.tree_place.tree):
                place.process.catch_or_die_of_signal(_SIGKILL)
            self.agent.is_reaped = True
