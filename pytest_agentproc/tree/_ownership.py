"""The owner of a process, judged by observations and known facts. Pure: values in, values out; ends no process.

A process belongs to the tracker if it
- was started here, by one of the calls that count (a child),
- descends from such a process,
- was adopted (its parent died, and this process took it), and its environment carries the cookie, or it is in a session
    that an owned process led or was in, or no other program was there to start it.
It never belongs if it was there before, others here started it, it is excused, or it descends from such a process.
An adopted process without any evidence has no owner. A dead adopted process is no leak: only adoption made it a zombie
of this process.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from pytest_agentproc.tree._starts import COMMAND_TEXT_OF_FORK

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from pytest_agentproc.tree._snapshots import ProcessState
    from pytest_agentproc.tree._starts import ProcessStart


_BIRTH_CLOCK_TOLERANCE_NS = 20_000_000
"""The kernel counts births in steps of 10 ms: a process that seems born this much after its start is still that one."""


@dataclass(frozen=True, slots=True)
class OwnershipFacts:
    """The facts beside the snapshots.

    Args:
        me: this process.
        session: this process's session, which says nothing about its members.
        before: (pid, birth) of the processes that were there before, with their parents.
        helpers: pids of multiprocessing's resource tracker and forkserver, which belong to no test.
        starts: the last start that became each pid.
        cookies: the start that each adopted process's cookie names; None: the cookie is right, the start not known.
        sessions: sessions in which owned processes were seen before, with the start of their root.
        claimed: (pid, birth) of the processes that were owned before, with the evidence.
        candidates: the starts that count; a single one is the root of a process that only it can have started.
        others: whether another program was there that might have started the adopted processes.
        excuses: decides by (pid, command) whether a process is allowed to be there.
    """

    me: int
    session: int
    before: Mapping[tuple[int, int], int] = field(default_factory=dict)
    helpers: Collection[int] = ()
    starts: Mapping[int, ProcessStart] = field(default_factory=dict)
    cookies: Mapping[int, ProcessStart | None] = field(default_factory=dict)
    sessions: Mapping[int, ProcessStart | None] = field(default_factory=dict)
    claimed: Mapping[tuple[int, int], OwnedProcess] = field(default_factory=dict)
    candidates: Sequence[ProcessStart] = ()
    others: bool = False
    excuses: Callable[[int, str], bool] = lambda _pid, _command: False


class OwnedProcess(NamedTuple):
    """A process that belongs to the tracker.

    Args:
        snapshot: its snapshot.
        how: `child`, `descendant` or `adopted`.
        why: the evidence for an adopted process.
        start: the start of its root, if it is known.
        above: its parents up to this process, the nearest first.
    """

    snapshot: ProcessState
    how: str
    why: str
    start: ProcessStart | None
    above: tuple[ProcessState, ...] = ()

    def describe_command(self, own: str) -> str:
        """Give the command that was asked for, or the command that it runs.

        Args:
            own: the command line of this process, which its forks have too.
        """
        asked = self.start.command if self.how == "child" and self.start is not None else ""
        if asked and asked != COMMAND_TEXT_OF_FORK:
            return asked
        return COMMAND_TEXT_OF_FORK if self.snapshot.command == own else self.snapshot.command


class Ownership(NamedTuple):
    """The owners of the processes below this one.

    Args:
        mine: the processes that belong.
        unknown: adopted processes without evidence.
        spent: dead adopted processes of any owner: this process reaps them, as no other will.
    """

    mine: tuple[OwnedProcess, ...] = ()
    unknown: tuple[ProcessState, ...] = ()
    spent: tuple[int, ...] = ()


def attribute_processes(seen: Sequence[ProcessState], known: OwnershipFacts) -> Ownership:
    """Decide the owner of each process.

    Args:
        seen: the descendants of this process, parents before children.
        known: everything else.
    """
    judge = _OwnershipJudge(known)
    adopted = [process for process in seen if not judge.judge_by_start_or_parent(process)]
    # Two passes: the sessions of certain processes are evidence for adopted ones. In one pass the order of pids would
    # decide who is recognised.
    for process in adopted:  # by now the sessions of all others are known
        judge.judge_by_evidence(process)
    for process in seen:
        judge.judge_by_parent(process)
    mine = [belonging for process in seen if (belonging := judge.verdicts.get(process.pid)) is not None]
    return Ownership(
        tuple(process for process in mine if process.snapshot.state != "zombie" or process.how == "child"),
        tuple(process for process in seen if process.pid not in judge.verdicts and process.state != "zombie"),
        tuple(
            process.pid
            for process in seen
            if process.state == "zombie" and process.parent == known.me and judge.is_surely_adopted(process)
        ),
    )


class _OwnershipJudge:
    """One pass over the snapshots; `verdicts` has None for a process without an owner here."""

    def __init__(self, known: OwnershipFacts) -> None:
        self._known = known
        self.verdicts: dict[int, OwnedProcess | None] = {}
        self._sessions: dict[int, ProcessStart | None] = dict(known.sessions)
        self._others_sessions: set[int] = set()
        for start in known.starts.values():
            if start.is_own and not known.excuses(start.pid, start.command):
                self._sessions.setdefault(start.pid, start)

    def judge_by_start_or_parent(self, process: ProcessState) -> bool:
        """Judge a process by itself, its start or its judged parent; False: only evidence can decide."""
        known = self._known
        identity = process.pid, process.born
        start = known.starts.get(process.pid)
        # Pids are reused. A process that was born clearly after the start with this pid is another one.
        if start is not None and process.born > start.at + _BIRTH_CLOCK_TOLERANCE_NS:
            start = None  # its pid is another's now
        if process.pid in known.helpers or identity in known.before or known.excuses(process.pid, process.command):
            return self._set_verdict(process, None)
        if start is not None and (process.parent == known.me or process.parent in known.helpers):
            is_mine = start.is_own and not known.excuses(process.pid, start.command)
            return self._set_verdict(process, OwnedProcess(process, "child", "", start) if is_mine else None)
        if process.parent != known.me:
            return self.judge_by_parent(process) or True
        if identity in known.claimed:
            claim = known.claimed[identity]
            why = claim.why or "its parent was seen"
            return self._set_verdict(process, OwnedProcess(process, "adopted", why, claim.start))
        return False

    def judge_by_parent(self, process: ProcessState) -> bool:
        """Judge a process as its parent was judged, if it was."""
        if process.pid in self.verdicts or process.parent not in self.verdicts:
            return False
        above = self.verdicts[process.parent]
        if above is None:
            return self._set_verdict(process, None)
        return self._set_verdict(
            process, OwnedProcess(process, "descendant", "", above.start, (above.snapshot, *above.above))
        )

    def judge_by_evidence(self, process: ProcessState) -> bool:
        """Judge an adopted process by its cookie, its session, or because only the tracker could start it."""
        known = self._known
        # The cookie is the strongest evidence: only a descendant inherits it. It can be cleared, so the session
        # follows.
        if process.pid in known.cookies:
            return self._judge_adopted(process, known.cookies[process.pid], "it inherited the environment")
        if process.session != known.session and process.session in self._sessions:
            return self._judge_adopted(
                process, self._sessions[process.session], f"it is in session {process.session}, as one of them was"
            )
        if process.session in self._others_sessions:
            return self._set_verdict(process, None)
        # The last resort, and only where no other program can have started it. With others there, a session-scoped
        # server that became a daemon was a false leak.
        if not known.others:
            candidates = [start for start in known.candidates if not known.excuses(start.pid, start.command)]
            only = candidates[0] if len(candidates) == 1 else None
            return self._judge_adopted(process, only, "nobody else was there to start it")
        return False

    def is_surely_adopted(self, process: ProcessState) -> bool:
        """Say whether this process certainly did not start a child: if it did, a part of it may wait for the child."""
        known = self._known
        verdict = self.verdicts.get(process.pid)
        if verdict is not None:
            return verdict.how == "adopted"
        parent = known.before.get((process.pid, process.born), known.me)
        return parent != known.me or (process.session in known.starts and process.session != process.pid)

    def _judge_adopted(self, process: ProcessState, start: ProcessStart | None, why: str) -> bool:
        excuses = self._known.excuses
        if start is not None and (not start.is_own or excuses(start.pid, start.command)):
            return self._set_verdict(process, None)
        return self._set_verdict(process, OwnedProcess(process, "adopted", why, start))

    def _set_verdict(self, process: ProcessState, verdict: OwnedProcess | None) -> bool:
        self.verdicts[process.pid] = verdict
        if process.session != self._known.session:
            if verdict is None:
                self._others_sessions.add(process.session)
            else:
                self._sessions.setdefault(process.session, verdict.start)
        return True
