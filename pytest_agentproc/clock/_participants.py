"""The registry of participants: births, words, deaths. Owns their sockets; moves no participant.

Births and deaths are recorded in spawn order once every process is inert. The order in which processes connect or die
depends on the machine.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

from pytest_agentproc.clock._hub_socket import HubListener
from pytest_agentproc.clock._note_translation import convert_note_to_event
from pytest_agentproc.clock._participant import Participant, ParticipantState
from pytest_agentproc.clock._wrappers import WrapperRegistry, list_ancestors
from pytest_agentproc.events import Event, ProcessEnded, ProcessGone, ProcessStarted, Trace
from pytest_agentproc.fake_agents import wire
from pytest_agentproc.fake_agents.program import make_numbered_name
from pytest_agentproc.vocabulary import split_exit_status

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_agentproc.clock._hub_socket import DescriptorPoller
    from pytest_agentproc.clock._jump import JumpRule, SpawnPath


# A step of these kinds may wake any process, so the hub has to prove quiescence anew after it.
_SIGNAL_SENDING_STEPS = ("kill",)
"""The steps of one participant that signal others."""


_OUTPUT_EVENT_CODES = ("o", "e")
"""The notes that come with every step."""


class ParticipantRegistry:
    """Keep every participant that ever said hello.

    Args:
        poller: finds the participants that speak.
        rule: learns which participants park, ask, or are dead.
    """

    def __init__(self, poller: DescriptorPoller, rule: JumpRule) -> None:
        self.participants: dict[SpawnPath, Participant] = {}
        self.expected: dict[int, SpawnPath] = {}
        self.dying: list[Participant] = []
        self.changed = False
        self.living: dict[SpawnPath, Participant] = {}
        """The participants that live: a search of all would pass thousands of dead ones that re-forks left."""
        self.written = 0
        """How many bytes they have printed."""
        self._poller = poller
        self._rule = rule
        self._door = HubListener()
        self._sinks: dict[bytes, Trace] = {}
        self.by_pid: dict[int, Participant] = {}
        """The participant that said hello last from each pid."""
        self.wrappers = WrapperRegistry(poller, self.participants, self.by_pid)
        self.before_opening: list[Callable[[], None]] = []
        """The checks that run before new participants are let in."""
        self._births: list[Participant] = []
        self._deaths: list[Participant] = []
        self._kept: list[Participant] = []
        """The dead participants that a parent may still have to reap."""
        self._names: Counter[tuple[bytes, str]] = Counter()
        self._buffer = bytearray(wire.MAX_MESSAGE_BYTES)
        self._roots = 0
        self.agents_started = 0
        """How many fakes the supervisor has started; other programs do not count."""
        self.broken = ""
        """The first failure of a fake itself."""
        poller.watch(self._door.fileno(), self._accept_participants)

    @property
    def listen_fd(self) -> int:
        """The descriptor at which new participants connect."""
        return self._door.fileno()

    @property
    def address(self) -> bytes:
        """The address for new participants: the path of a socket; empty before the first `register_fake`."""
        return self._door.address

    def start_accepting_participants(self) -> None:
        """Let new participants in from now on: a fake that is started is in virtual time.

        Raises:
            UsageError: a fake that was started in real time still runs.
        """
        for check in self.before_opening:
            check()
        self._door.open()

    def stop_accepting_participants(self) -> None:
        """Refuse every participant from now on: a fake that is started now runs in real time."""
        self._door.refuse_connections()

    def register_fake(self, sink: Trace, folder: str) -> bytes:
        """Give the token of one fake; its events, and those of its descendants, go to `sink`.

        Args:
            sink: called with each.
            folder: where the hub's socket may be: only this user can enter it. The first one counts.
        """
        self._door.choose_socket_folder(folder)
        token = secrets.token_bytes(wire.TOKEN_BYTES)
        self._sinks[token] = sink
        return token

    def stop_recording_fake(self, token: bytes) -> None:
        """Send a fake's events nowhere from now on."""
        self._sinks[token] = _ignore_event

    # Births.

    def number_next_root(self) -> SpawnPath:
        """Number an agent that the host starts, in the order of the starts."""
        self._roots += 1
        return (self._roots - 1,)

    def expect_hello(self, pid: int, path: SpawnPath) -> None:
        """Wait for the hello of process `pid`."""
        # The lock closes a race with `_accept_participants` in another thread. A hello between the start and this line
        # would leave an expectation that nothing ever fulfils, and time would stand still until the guard.
        with self._poller.lock:
            self.changed = True
            self._drop_reused_pid(pid)
            if pid not in self.by_pid:
                self.expected[pid] = path

    def _drop_reused_pid(self, pid: int) -> None:
        """Drop a process that is dead and reaped: the kernel has given its number to a new process."""
        # Without this the new process with a reused pid counted as known, and time moved before its hello. The result
        # was a red test that no log explained.
        former = self.by_pid.get(pid)
        if former is not None and former.is_reaped():
            del self.by_pid[pid]

    def is_known(self, pid: int) -> bool:
        """Say whether a process has said hello, or is a program that is watched instead."""
        return pid in self.by_pid or pid in self.wrappers.alive

    def needs_clock(self, pid: int) -> bool:
        """Say whether a process has said hello, or runs around an agent that has: the end of the clock is its end."""
        wrapper = self.wrappers.alive.get(pid)
        return pid in self.by_pid or (wrapper is not None and bool(wrapper.agents))

    def stop_expecting_hello(self, pid: int) -> None:
        """Stop the wait for a process that does not belong to the clock."""
        with self._poller.lock:
            self.expected.pop(pid, None)

    def _accept_participants(self) -> None:
        for link, pid, stage, token, (parent, index, name, line) in self._door.receive_hellos(self._sinks):
            path = self.expected.pop(pid, None)
            # A child of a fake has its place from the hello itself: parent and index. An agent of the host has it from
            # the start window. Only an agent that a shell started has neither.
            if index >= 0:
                path = (*self.by_pid[parent].path, index)
            elif path is None:
                path = self._choose_root_path(pid)
            try:
                participant = Participant(link, pid, stage, path, name, line, token)
            except ProcessLookupError:  # it was killed and reaped before this look
                link.close()
                os.close(stage)
                continue
            # A newborn is due at once. It runs only after its grant, so two agents that start together print in spawn
            # order.
            participant.until = self._rule.now
            self.participants[path] = participant
            self.by_pid[pid] = participant
            self._poller.watch(link.fileno(), partial(self.receive_message, participant))
            self._poller.watch(stage, partial(self._rule.request_grant, path))
            # The pidfd pins the process. A pid that is read later may belong to a new process.
            self._poller.watch(participant.pidfd, partial(self._handle_death, participant))
            self.changed = True
            self._rule.park_process(path, participant.until)
            self._births.append(participant)
            self.living[path] = participant
            if index < 0:
                self.agents_started += 1
                # The name in the record gets its number here for an agent of the host, before its children use it as
                # their parent.
                self._record_births()

    def _choose_root_path(self, pid: int) -> SpawnPath:
        """Give an unexpected agent the place of the program that it was before, or that it descends from (a shell)."""
        # First case: the program turned into the agent by exec. Second: a shell above it waits. Third: nothing above it
        # is known, so the agent is numbered as a new start.
        if (was := self.wrappers.drop(pid)) is not None:
            return was.free or self.number_next_root()
        wrapper = self.wrappers.find_wrapper_above(pid)
        if wrapper is None:
            above = next((ancestor for ancestor in list_ancestors(pid) if ancestor in self.expected), None)
            if above is None:
                return self.number_next_root()
            wrapper = self.wrappers.add(above, self.expected.pop(above))
        # Which agent of a shell takes its place is fixed: the first hello. Later ones are numbered in the order of
        # their hellos.
        path, wrapper.free = wrapper.free or self.number_next_root(), None
        wrapper.agents.append(path)
        return path

    # What participants say.

    def receive_message(self, participant: Participant) -> None:
        """Take one message of a participant.

        Raises:
            TimeoutError: half a second without a message.
        """
        try:
            size = participant.link.recv_into(self._buffer)
        # A process that is killed with an unread grant resets its socket. This counts as its end.
        except ConnectionError:
            size = 0
        if size == 0:
            self._handle_socket_end(participant)
        elif size == 1:
            # One byte is WAKE: the fake saw input or a signal before its deadline. It does not act on it before its
            # grant, or two early wakers would run at once and their order would be a race.
            participant.woken = True
            self._rule.request_grant(participant.path)
        else:
            self._handle_message(participant, wire.decode_fake_message(self._buffer))

    def _handle_message(self, participant: Participant, message: tuple[Any, ...]) -> None:
        form = message[0]
        if notes := message[-1]:
            self._record_notes(participant, notes)
        if form == "W":
            _, participant.until, participant.wants, _ = message
            participant.state = ParticipantState.PARKED
            # A stopped process may still have sent its last word. It enters the rule only after SIGCONT.
            if not participant.stopped:
                self.report_parked(participant)
        elif form == "D":
            participant.signal = message[1]

    def report_parked(self, participant: Participant) -> None:
        """Report to the rule that a participant waits, and whether it asks for a grant."""
        self._rule.park_process(participant.path, participant.until)
        if participant.woken:
            self._rule.request_grant(participant.path)

    def _record_notes(self, participant: Participant, notes: list[tuple[str, Any]]) -> None:
        now, sink = self._rule.now, self._sinks[participant.token]
        for code, data in notes:
            if code == "x":
                participant.code = data
                continue
            if code == "p":
                index, pid, _name, _line = data
                path = (*participant.path, index)
                # The parent announces a child before it parks. So the child is expected before time can move, even if
                # it has not connected yet.
                if path not in self.participants:
                    self.expect_hello(pid, path)
                continue
            if code in _OUTPUT_EVENT_CODES:
                self.written += len(data)
            elif code == "m":
                participant.doing = data
                self.changed = self.changed or data[1] in _SIGNAL_SENDING_STEPS
            elif code == "q" and "broken" in data:
                self.broken = self.broken or data["broken"]
            sink(convert_note_to_event(now, participant.name, code, data))

    # Deaths.

    def _handle_socket_end(self, participant: Participant) -> None:
        """Its socket has ended: it is dying, and dead once its pidfd says so."""
        # EOF may be seen twice: by the poller, and by the last reads of `_handle_death`.
        if participant.is_alive:
            participant.state = ParticipantState.DYING
            self.changed = True
            self.dying.append(participant)
            # A process that replaced itself by exec may have said hello again with the same path: the new one lives.
            if self.living.get(participant.path) is participant:
                del self.living[participant.path]
            self._rule.drop_process(participant.path)
            # The number of a closed descriptor is reused. A handler left here would be called for another process's
            # file.
            self._poller.forget(participant.link.fileno())
            self._poller.forget(participant.stage)

    def _handle_death(self, participant: Participant) -> None:
        with contextlib.suppress(BlockingIOError):  # a process that inherited the socket keeps it open
            # The words before the death are read first. Otherwise the signal that killed the process was lost, and the
            # record said KILL for TERM.
            participant.link.setblocking(False)
            while participant.is_alive:
                self.receive_message(participant)
        self._handle_socket_end(participant)
        if participant.state is ParticipantState.DYING:
            # The status is read here and not when it is recorded: trio's `Process.wait` reaps right after its signal,
            # and then the kernel does not know it any more.
            participant.record_end()
            self.changed = True  # its end may have continued others: the kernel sends HUP and CONT to orphaned groups
            self.dying.remove(participant)
            self._poller.forget(participant.pidfd)
            self._deaths.append(participant)

    # The record.

    def record_births_and_deaths(self) -> None:
        """Record births and deaths in spawn order; call this when every process is inert."""
        self._record_births()
        if self._deaths:
            for death in sorted(self._deaths, key=lambda death: death.path):
                sink = self._sinks[death.token]
                sink(ProcessEnded(self._rule.now, death.name, *split_exit_status(death.status)))
                sink(ProcessGone(self._rule.now, death.name))
                death.close_connection()
            self._kept += self._deaths
            self._deaths.clear()
            self._close_reaped_participants()

    def _close_reaped_participants(self) -> None:
        """Close the participants that the kernel has forgotten; long re-forks leave thousands."""
        for participant in self._kept:
            if participant.is_reaped():
                # A zombie is kept: its pidfd is what shows later that the supervisor never reaped it.
                participant.close()
                if self.by_pid.get(participant.pid) is participant:
                    del self.by_pid[participant.pid]
        self._kept = [participant for participant in self._kept if not participant.is_closed]

    def _record_births(self) -> None:
        for birth in sorted(self._births, key=lambda birth: birth.path):
            key = birth.token, birth.name
            self._names[key] += 1
            birth.name = make_numbered_name(birth.name, self._names[key])
            parent = self.participants.get(birth.path[:-1])
            above = "supervisor" if parent is None else parent.name
            born = ProcessStarted(self._rule.now, birth.name, birth.pid, above, line=birth.line)
            self._sinks[birth.token](born)
        self._births.clear()

    def list_in_spawn_order(self, token: bytes | None = None) -> list[Participant]:
        """List every participant there was, of one fake or of all, in spawn order."""
        everyone = [self.participants[path] for path in sorted(self.participants)]
        return [participant for participant in everyone if token in (None, participant.token)]

    def close(self) -> None:
        """End all processes that are left and close every descriptor, even if an exception interrupts that."""
        # One callback each: an interrupt while one agent was ended once left the others alive and the socket open.
        with contextlib.ExitStack() as stack:
            stack.callback(self._door.close)
            stack.callback(self.wrappers.close)
            stack.callback(self.participants.clear)  # a second close must not meet reused descriptors
            for participant in reversed(self.participants.values()):
                stack.callback(_end_participant, participant)


def _end_participant(participant: Participant) -> None:
    # Kill, then reap: SIGKILL is not refused, so the wait is short. A reap without the kill could block for ever.
    if participant.is_alive:
        participant.kill()
    participant.reap()
    participant.close()


def _ignore_event(_event: Event) -> None:
    """Drop an event."""
