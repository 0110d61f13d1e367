"""The hub: the lockstep between participants and the host. Owns the turns; the jump rule decides who moves.

Participants run only while the host sits in `turn`; the host looks at real I/O only when every participant is inert.
A participant's epoll descriptor stands in the hub's own, so one poll tells at once who could go on; only a signal, a
birth or a death needs the slower proof that a process is blocked again (`_prove_quiet`). No loop is known here.
"""

from __future__ import annotations

import os
import select
import threading
import weakref
from time import monotonic
from typing import TYPE_CHECKING, Any

from pytest_agentproc.clock._debugger import is_over
from pytest_agentproc.clock._guards import PollingDetector, Wakes
from pytest_agentproc.clock._hub_socket import Poller
from pytest_agentproc.clock._jump import JumpRule, Move
from pytest_agentproc.clock._participant import Participant, State, process_state
from pytest_agentproc.clock._participants import ParticipantRegistry
from pytest_agentproc.clock._protocol import Seconds
from pytest_agentproc.clock._runs import Runs
from pytest_agentproc.errors import BrokenFake, ClockError, Deadlock, Spin, Stall

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

__all__ = ["Hub"]

_LOOKS = 10_000
"""So many looks in a row without a grant or a jump are a spin; of a loop as many more as it may read single bytes."""

_PIPES = 1 << 20
"""So many bytes may be there at most, in pipes as long as they can be made."""

_SLOW_LOOKS = 64
"""So many looks may take as long as they take; of more, and more than there are bytes, a guard period is a spin too."""

_THREAD_REMEDY = "await the agent in async code, or test code that waits for it in a thread without virtual time"
_LAST_GUARD = 0.5
"""After a fault threads and declared programs get so many real seconds: the verdict is there already."""

_LAST_RUN = 2.0
"""After a fault a loop may run on for so many without a pause: somebody may swallow every cancellation."""


class Hub:
    """Virtual time over real processes.

    Args:
        guard: real seconds that a participant may run, or a thread or birth may take, before it is a stall.
        patience: nanoseconds of virtual time for which the loop may wake again and again with nobody else doing
            anything, before it is a hang.
    """

    def __init__(self, guard: float = 10.0, patience: int = 86_400_000_000_000) -> None:
        self.guard = guard
        self.rule = JumpRule()
        self.seconds = Seconds(self.rule)
        self.poller = Poller()
        self.roll = ParticipantRegistry(self.poller, self.rule)
        self.runs = Runs(self.poller)
        self.fault: ClockError | None = None
        self.on_fault: Callable[[], None] | None = None
        self.hears_fault: Callable[[ClockError], None] | None = None
        self.busy = self.turns = 0
        self._thread = threading.get_ident()
        self.started: weakref.WeakSet[subprocess.Popen[Any]] = weakref.WeakSet()
        self._kept: list[subprocess.Popen[Any]] = []
        """What was started and may be dropped while a fault unwinds: it lives until it is reaped."""
        self.rings = self._rung = 0
        """How often the sentry's alarm rang: a loop that it woke met nothing, and what is held is held on."""
        self._held_since = 0.0
        self.is_waiting = self.is_late = False
        """Whether the loop is at its wait; whether it was blocked, and what came and what is due meanwhile is one."""
        self._loop_ready = False
        self._looks, self._looked_since = 0, 0.0
        self._fires, self._fired_at = 0, -1
        self._wakes = Wakes(patience)
        """How often the loop woke by its timers alone since somebody was granted time, and since when (both times)."""
        self.pulse = PollingDetector()
        """The pace of the loop's own timers, which are no driver's."""

    @property
    def longest_run(self) -> float:
        """Real seconds for which a loop may run on without a pause."""
        return self.guard if self.fault is None else min(self.guard, _LAST_RUN)

    @property
    def now(self) -> int:
        """The instant, in nanoseconds since the clock's start."""
        return self.rule.now

    def watch_loop(self, descriptor: int) -> None:
        """Take a loop's own selector for a run of the host, the last one in order."""

        def ready() -> None:
            self._loop_ready = True

        self.poller.watch(descriptor, ready)

    # Everyone inert.

    def settle(self) -> None:
        """Return once every participant is inert, births are complete and the dying are dead."""
        roll = self.roll
        self.runs.ready.clear()
        self._loop_ready = False
        self.poller.poll()
        if roll.changed or roll.dying or roll.expected or roll.wrappers.alive:
            self._complete()
            roll.tell()

    def _complete(self, *, births: bool = True) -> None:
        roll, start = self.roll, monotonic()
        while True:
            if roll.changed:
                roll.changed = False
                self._prove_quiet(start)
                self.poller.poll()
            elif roll.dying:
                self._await(f"{roll.dying[0].describe()}: it does not end", start)
            elif births and roll.expected:
                self._await(f"process {next(iter(roll.expected))} was started but never said hello", start)
            elif restless := roll.wrappers.restless():
                self._await(f"{restless}: it neither rests nor ends", start)
            elif roll.wrappers.alive and self._finds_more():
                continue
            else:
                return

    def _finds_more(self) -> bool:
        """See what programs around agents did until they rested; return whether anybody is to be waited for again."""
        self.poller.poll()
        return self.roll.changed or bool(self.roll.dying)

    def _await(self, trouble: str, start: float) -> None:
        """Wait for a hello or an end, and for nothing else: what else is readable stays so until the host looks."""
        waits = select.poll()
        waits.register(self.roll.door, select.POLLIN)
        for one in self.roll.dying:
            waits.register(one.pidfd, select.POLLIN)
        self.turns += 1
        waits.poll(1)  # what another thread takes from the door wakes nobody here
        self.poller.poll()
        if is_over(start, self.guard):
            raise Stall(f"{trouble} within {self.guard:g} s")

    def _prove_quiet(self, start: float) -> None:
        """Wait until no live participant runs: a signal, a birth or a death may have woken any of them."""
        for participant in list(self.roll.living.values()):
            while participant.lives:
                state = process_state(participant.pid)
                if state in ("T", "t"):
                    participant.stopped = True
                    self.rule.drop(participant.path)
                    break
                if participant.stopped:
                    participant.stopped = False
                    if participant.state is State.PARKED:
                        self.roll.park(participant)
                elif state == "S" and participant.state is State.PARKED:
                    break
                os.sched_yield()
                self.poller.poll()
                self._guard_runner(participant, start)

    def feel_signals(self) -> None:
        """Let a signal that the host has just sent take its whole effect, so that the next one meets what it left."""
        self.roll.changed = True
        self._complete(births=False)
        self.roll.changed = True

    def _guard_runner(self, participant: Participant, start: float) -> None:
        self.turns += 1
        if is_over(start, self.guard):
            raise Stall(f"{participant.describe()}: it neither parked nor spoke for {self.guard:g} s")

    # Turns.

    def turn(self, deadline: int | None) -> bool:
        """Let participants and runs move until the loop itself has something to do.

        Args:
            deadline: the loop's earliest timer, in nanoseconds, or None.

        Returns:
            True if the loop's deadline is due: it may fire its timers; False if it has something to read or to run.
        """
        self.turns += 1
        self.is_waiting = True
        try:
            if self._is_untold:
                self._tell_fault()
                return False
            return self._turn(deadline)
        except ClockError as error:
            self.fail(error)
            return False
        finally:
            self.is_waiting = False

    def _turn(self, deadline: int | None) -> bool:
        self.pulse.park(self.now, deadline)
        runs, rule, roll, participants = self.runs, self.rule, self.roll, self.roll.participants
        grant, stuck, fire = Move.GRANT, Move.STUCK, Move.FIRE
        while True:
            if not self.busy:
                self.settle()
            self._require_sound()
            if self.busy or (roll.wrappers.alive and self._is_held()):
                self._hold()
                return False
            if runs.resumed:
                runs.resumed = False
                return False
            host = runs.host(deadline)
            if self._loop_ready and host.ready is None:
                self._note_meeting()
                self._count_look(runs.LOOP)
                return False
            move, target = rule.next(host)
            if move is grant:
                self._looks = 0
                self.grant(participants[target])
                continue
            if move is stuck:
                raise Deadlock(self.describe())
            if move is fire:
                self._looks = 0
                if target == runs.LOOP:
                    self._count_fire()
                    return True
            self._count_look(target)
            runs.look(target)

    def _require_sound(self) -> None:
        if self.roll.broken and self.fault is None:
            raise BrokenFake(f"the fake agent itself failed: {self.roll.broken}")

    def _note_meeting(self) -> None:
        """Begin to count wakes anew: the loop met something, and not the alarm of the sentry alone."""
        if self._rung == self.rings:
            self._wakes.forget()
        self._rung = self.rings

    def _count_look(self, number: int) -> None:
        self._looks += 1
        spare = min(self.roll.written, _PIPES) if number == self.runs.LOOP else 0
        if self._looks > _LOOKS + spare or (self._looks % _SLOW_LOOKS == 0 and self._is_slow(spare)):
            looks, self._looks = self._looks - 1, 0
            who = self.runs.describe(number)
            raise Spin(f"{who} looks again and again, {looks} times at one instant, and takes nothing")

    def _is_slow(self, spare: int) -> bool:
        """Say whether looks that can have taken nothing more have gone on for a guard period."""
        if self._looks == _SLOW_LOOKS:
            self._looked_since = monotonic()
            return False
        return self._looks > spare and is_over(self._looked_since, self.longest_run)

    def _count_fire(self) -> None:
        self._fires = self._fires + 1 if self._fired_at == self.now else 0
        self._fired_at = self.now
        self.pulse.beat(self.now)
        self._wakes.add(self.now)
        if self._fires > _LOOKS:
            self._fires = 0
            raise Spin(f"the event loop sets timers again and again, {_LOOKS} times at one instant")

    def grant(self, participant: Participant) -> None:
        """Let one participant go on until it parks."""
        rule, hear, running = self.rule, self.roll.hear, State.RUNNING
        asked = rule.asks(participant.path)
        rule.drop(participant.path)
        participant.woken = False
        self._wakes.forget()
        participant.grant(rule.now, ready=asked)
        start = 0.0
        while participant.state is running:
            try:
                hear(participant)
            except TimeoutError:  # half a second without a word
                start = start or monotonic()
                self._guard_runner(participant, start)

    def _is_held(self) -> bool:
        """Say whether a program that is no agent holds time, or did something before it came to rest."""
        return bool(self.roll.wrappers.held()) or self._finds_more()

    def _hold(self) -> None:
        """Wait in real time for threads in flight and for declared processes that are no participants."""
        start = self._held_since or monotonic()
        rings, self._held_since, self._loop_ready = self.rings, 0.0, False
        guard = self.guard if self.fault is None else min(self.guard, _LAST_GUARD)
        held: list[str] = []
        while (self.busy or (held := self.roll.wrappers.held())) and not self._loop_ready and not self._is_untold:
            self.poller.poll(0.05 if self.busy else 0.005)
            if is_over(start, guard):
                threads = f"{self.busy} thread(s) of the supervising program did not return"
                what = threads if self.busy else f"{' and '.join(held)} did not come to rest"
                remedy = f"\n{_THREAD_REMEDY}" if self.busy else ""
                raise Stall(f"{what} within {guard:g} s, and time is held until then{remedy}")
        if rings != self.rings:
            self._held_since = start
        self.roll.changed = True

    # The end.

    def fail(self, error: ClockError) -> None:
        """Give up: keep the first fault, end every participant, and let the backend cancel what waits."""
        if self.fault is not None:
            raise error
        self.fault = error
        if self.hears_fault is not None:
            self.hears_fault(error)
        self._kept = list(self.started)
        for participant in list(self.roll.living.values()):
            participant.kill()
        self.roll.expected.clear()
        self.roll.changed = True
        if threading.get_ident() == self._thread:
            self._tell_fault()

    @property
    def _is_untold(self) -> bool:
        return self.fault is not None and self.on_fault is not None

    def _tell_fault(self) -> None:
        """Have the backend cancel what waits, once, and in its own thread."""
        tell, self.on_fault = self.on_fault, None
        if tell is not None:
            tell()

    def describe(self) -> str:
        """Say who waits for what."""
        living = [one.describe() for one in self.roll.in_order() if one.lives]
        host = self.runs.describe_all() or ["the supervising program waits, and no timer of it runs"]
        return "nobody can move: " + "; ".join([*host, *(living or ["no agent lives"])])

    def close(self) -> None:
        """End whoever is left, give every descriptor back, and let go of who hears of faults."""
        self.hears_fault = None
        try:
            self.roll.close()
        finally:
            self.poller.close()
