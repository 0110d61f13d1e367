"""Models in which one tie rule is broken. Each lies in one way; the parity tests show where that can be seen.

A supervisor acts only when no process is due, so no track can be due in the grant that a signal asks for. So the half
'caught signals first' of rule 9 cannot be seen. A tie of rule 8 between runs that are ready to read cannot be seen
either: a grant makes one run ready, and that run looks before the next grant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_agentproc.clock import HostState, JumpRule, NextMove
from pytest_agentproc.fake_agents.player import ScriptPlayer, ScriptTrack
from pytest_agentproc.harness import InMemoryModel
from pytest_agentproc.harness.model._actors import InMemoryPipe, InMemoryProcess, ModelAgent
from pytest_agentproc.supervisor import Driver

if TYPE_CHECKING:
    from pytest_agentproc.clock import SpawnPath

__all__ = ["BROKEN", "UNSEEN"]


class WorkTakesTime(InMemoryModel):
    """Rule 1: each grant costs a nanosecond."""

    def grant(self, process: InMemoryProcess) -> None:
        self.rule.now += 1
        super().grant(process)


class DeathsAsTheyCome(InMemoryModel):
    """Rule 2: the dead are recorded in another order than that of their births."""

    def sort_in_spawn_order(self, processes: list[InMemoryProcess]) -> list[InMemoryProcess]:
        return super().sort_in_spawn_order(processes)[::-1]


class HostLast(InMemoryModel):
    """Rule 3: processes continue although the host has something to read."""

    class Rule(JumpRule):
        def find_host_move(self, host: HostState) -> tuple[NextMove, int] | None:
            due = self.find_first_due_process()
            if host.pending is None and (
                self.find_first_grant_request() is not None or (due is not None and due[0] <= self.now)
            ):
                return None
            return super().find_host_move(host)

    rule_type = Rule


class YoungestFirst(InMemoryModel):
    """Rule 4: of the processes that ask or are due, the youngest comes first."""

    class Rule(JumpRule):
        def find_first_grant_request(self) -> SpawnPath | None:
            return max(self._askers) if self._askers else None

        def find_first_due_process(self) -> tuple[int, SpawnPath] | None:
            due = super().find_first_due_process()
            if due is None:
                return None
            return due[0], max(path for path, until in self._until.items() if until == due[0])

    rule_type = Rule


class DeadlineFirst(InMemoryModel):
    """Rule 5: a deadline of the host fires before a process that is due at its instant."""

    class Rule(JumpRule):
        def is_agent_before_host(self, until: int, deadline: int) -> bool:
            return until < deadline

    rule_type = Rule


class OtherLookOrder(InMemoryModel):
    """Rule 6: a look takes stderr before stdout, and stdin last."""

    class Look(Driver):
        order = ("stderr", "stdout", "stdin")

    driver_type = Look


class LooksTwice(InMemoryModel):
    """Rule 6: the effects of a look's commands are looked at in the same wake."""

    class Look(Driver):
        def look(self) -> bool:
            return super().look() or (self.agent is not None and super().look())

    driver_type = Look


class LastRunFirst(InMemoryModel):
    """Rule 8: of several runs with deadlines due at one instant, the run that was declared last comes first."""

    def collect_host_state(self) -> HostState:
        host = super().collect_host_state()
        if host.deadline is not None:
            first = host.deadline[0]
            due = [number for number in self.begun - self.over if self.drivers[number].deadline == first]
            host.deadline = first, max(due, default=host.deadline[1])
        return host


class TracksFromTheEnd(InMemoryModel):
    """Rule 9: the tracks of a process run from the last to the first."""

    class Actor(InMemoryProcess):
        class Backwards(ScriptPlayer):
            def list_tracks(self) -> tuple[ScriptTrack, ...]:
                return super().list_tracks()[::-1]

        player_type = Backwards

    process_type = Actor


class ReactionsFirst(InMemoryModel):
    """Rule 9: a reaction is put before the tracks that were there."""

    class Actor(InMemoryProcess):
        class Eager(ScriptPlayer):
            def list_tracks(self) -> tuple[ScriptTrack, ...]:
                return tuple(sorted(super().list_tracks(), key=lambda track: track.key is None))

        player_type = Eager

    process_type = Actor


class DeathWaitsForAGrant(InMemoryModel):
    """Rule 10: a signal that is not caught kills at the next grant, not while everything settles."""

    class Actor(InMemoryProcess):
        deadly = 0

        def catch_or_die_of_signal(self, signum: int) -> None:
            if signum in self.caught or not self.is_alive or signum == 9:  # KILL does not wait
                super().catch_or_die_of_signal(signum)
            else:
                self.deadly = signum
                self.model.wake_process(self)

    def grant(self, process: InMemoryProcess) -> None:
        signum = getattr(process, "deadly", 0)
        if signum:
            process.end_by_signal(signum)
        else:
            super().grant(process)

    process_type = Actor


class BytesNotSlots(InMemoryModel):
    """Rule 11: a pipe is full at 65,536 bytes, however they were written."""

    class Bytes(InMemoryPipe):
        slots = 1 << 20

        def is_writable(self) -> bool:
            held = sum(len(page.data) for page in self.pages)
            return held < 65_536 or not self.readers

    pipe_type = Bytes


class WholeWrites(InMemoryModel):
    """Rule 11: a chunk is as long as its text, and goes out in one grant."""

    class Actor(InMemoryProcess):
        class Whole(ScriptPlayer):
            def _write_stream(self, stream: str, data: bytes) -> Any:
                return self._write_chunks(stream, iter([data] if data else []), 1)

        player_type = Whole

    process_type = Actor


BROKEN: dict[str, type[InMemoryModel]] = {
    "1 work takes time": WorkTakesTime,
    "2 deaths as they come": DeathsAsTheyCome,
    "3 host last": HostLast,
    "4 youngest first": YoungestFirst,
    "5 deadline first": DeadlineFirst,
    "6 other look order": OtherLookOrder,
    "6 looks twice": LooksTwice,
    "8 last run first": LastRunFirst,
    "9 tracks from the end": TracksFromTheEnd,
    "9 reactions first": ReactionsFirst,
    "10 death waits for a grant": DeathWaitsForAGrant,
    "11 bytes, not slots": BytesNotSlots,
    "11 whole writes": WholeWrites,
}

UNSEEN = {
    7: "no list of commands of today's machine has anything behind a command that is answered, so there is no next "
    "command for which the answer could come too late; tests/unit pins the order with a machine made for it",
}
assert ModelAgent is InMemoryModel.world_type
