"""The hub: the lockstep between participants and the host. Owns the turns; the jump rule decides which side moves.

Participants run only while the host sits in `advance_time`. The host looks at real I/O only when every participant is
inert. The hub's epoll contains the epoll descriptor of each participant, so one poll finds every participant that can
move. After a signal, a birth or a death, the hub also has to prove that each process is blocked again
(`_wait_until_quiet`). The hub knows no event loop.
"""

from __future__ import annotations

import os
import select
import threading
import weakref
from typing import TYPE_CHECKING, Any

from pytest_agentproc.clock._debugger import is_guard_time_over
from pytest_agentproc.clock._guards import PollingDetector, WakeCounter
from pytest_agentproc.clock._hub_socket import DescriptorPoller
from pytest_agentproc.clock._jump import JumpRule, NextMove
from pytest_agentproc.clock._participant import (
    Participant,
    ParticipantState,
    describe_held_streams,
    read_process_state,
)
from pytest_agentproc.clock._participants import ParticipantRegistry
from pytest_agentproc.clock._protocol import LoopTime
from pytest_agentproc.clock._runs import HostRuns
from pytest_agentproc.clock._waiters import find_kit_call_place, list_waiting_places
from pytest_agentproc.errors import BrokenFake, ClockError, Deadlock, ForeignProgram, Spin, Stall
from pytest_agentproc.originals import monotonic
from pytest_agentproc.places import describe_other_interpreters
from pytest_agentproc.processes import list_programs_below

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterable


_MAX_LOOKS_WITHOUT_PROGRESS = 10_000
"""More looks in a row without a grant or a jump are a spin. A loop gets one extra look per byte that it may read."""

_MAX_BYTES_IN_PIPES = 1 << 20
"""The upper bound for the bytes that wait in pipes, even if each pipe has its largest size."""

_LOOKS_BETWEEN_TIME_CHECKS = 64
"""After so many looks their real time counts, too: see `_is_looking_too_long`."""

_WAITING_THREAD_REMEDY = (
    "await the agent in async code, or test code that waits for it in a thread without virtual time"
)
_OTHER_INTERPRETERS_REMEDY = (
    "their clocks are real here; in a plain function with @pytest.mark.virtual_time they are virtual"
)
_SLOW_HOOK_REMEDY = "no time passes while a hook or an MCP server of a fake works, so it must answer sooner"
_GUARD_SECONDS_AFTER_FAULT = 0.5
"""After a fault, threads and declared programs get only these real seconds: the verdict is already known."""

_LOOP_SECONDS_AFTER_FAULT = 2.0
"""After a fault, a loop may run for these real seconds without a pause: a program may swallow all cancellations."""


class Hub:
    """Virtual time over real processes.

    Args:
        guard: real seconds that a participant may run, or that a thread or birth may take, before it is a stall.
        patience: nanoseconds of virtual time for which the loop may wake repeatedly, while nothing else happens, before
            it is a hang.
    """

    def __init__(self, guard: float = 10.0, patience: int = 86_400_000_000_000) -> None:
        self.guard = guard
        self.rule = JumpRule()
        self.seconds = LoopTime(self.rule)
        self.poller = DescriptorPoller()
        self.registry = ParticipantRegistry(self.poller, self.rule)
        self.runs = HostRuns(self.poller)
        self.fault: ClockError | None = None
        self.on_fault: Callable[[], None] | None = None
        self.fault_handler: Callable[[ClockError], None] | None = None
        self.most_starts: int | None = None
        """So many agents may be started, one after the other: time passes between them, so no other guard ends that."""
        self.tasks: Callable[[], Iterable[Any]] = tuple
        """Gives the coroutines of the tasks of the loop that runs."""
        self.busy = self.turns = 0
        self._thread = threading.get_ident()
        self.started: weakref.WeakValueDictionary[int, subprocess.Popen[Any]] = weakref.WeakValueDictionary()
        self._kept: list[subprocess.Popen[Any]] = []
        """The started processes: a fault may drop them, but each object has to live until its process is reaped."""
        self.rings = self._rung = 0
        """The number of alarms of the sentry. An alarm is no event of the loop, and time that is held stays held."""
        self._held_since = 0.0
        self.is_waiting = self.is_late = False
        """Whether the loop waits in `advance_time`; whether it was blocked: then events and timers come together."""
        self._loop_ready = False
        self._looks, self._looked_since = 0, 0.0
        self._fires, self._fired_at = 0, -1
        self._wakes = WakeCounter(patience)
        """The wakes of the loop by its own timers since the last grant, and when they began (virtual and real time)."""
        self.polling_detector = PollingDetector()
        """The pace of the loop's own timers; the timers of runs do not count."""

    @property
    def longest_loop_seconds(self) -> float:
        """Real seconds for which a loop may run on without a pause."""
        return self.guard if self.fault is None else min(self.guard, _LOOP_SECONDS_AFTER_FAULT)

    @property
    def now(self) -> int:
        """The instant, in nanoseconds since the clock's start."""
        return self.rule.now

    def watch_loop(self, descriptor: int) -> None:
        """Take a loop's own selector for a run of the host, the last one in order."""

        def note_loop_ready() -> None:
            self._loop_ready = True

        self.poller.forget(descriptor)  # a Ctrl-C may have come as its last run ended
        self.poller.watch(descriptor, note_loop_ready)

    # Everyone inert.

    def settle_participants(self) -> None:
        """Return once every participant is inert, births are complete and the dying are dead."""
        # The cheap test comes first. A poll alone proves quiescence as long as no signal, birth or death happened: each
        # participant says when it parks, and wakes only by I/O that the poll finds. The full proof reads /proc for each
        # participant; at each step it would be quadratic with many agents.
        registry = self.registry
        self.runs.ready.clear()
        self._loop_ready = False
        self.poller.poll()
        if registry.changed or registry.dying or registry.expected or registry.wrappers.alive:
            self._wait_until_inert()
            registry.record_births_and_deaths()
            self._require_few_starts()

    def record_events_so_far(self) -> None:
        """Record what the program can have seen since the last turn; in another thread nothing is asked.

        trio's `Process.wait` returns in the turn in which the process ends.
        """
        if not self.is_waiting and not self.busy and threading.get_ident() == self._thread:
            self.settle_participants()

    def _require_few_starts(self) -> None:
        """Raise for the start after the last one that is allowed, once: the hub settles again as all is ended."""
        most = self.most_starts
        if most is not None and self.registry.agents_started > most:
            self.most_starts = None
            raise Spin.for_agent_starts(most)

    def _wait_until_inert(self, *, births: bool = True) -> None:
        registry, start = self.registry, monotonic()
        while True:
            if registry.changed:
                # The flag is cleared before the proof, not after it: a process that changes during the proof sets it
                # again, and the loop runs once more. Without a barrier of this kind 68 to 94 % of the plays with
                # signals or stdin were wrong.
                registry.changed = False
                self._wait_until_quiet(start)
                self.poller.poll()
            elif registry.dying:
                # EOF on the socket only says that the process is dying. Its pidfd says that it is dead. Time that moved
                # in between let a timer fire before an exit that belonged to the earlier instant.
                self._wait_for_hello_or_end(f"{registry.dying[0].describe()}: it does not end", start)
            elif births and registry.expected:
                # The start window: a process that was started counts as running until its hello or its end. A jump in
                # this window would let a limit of the supervisor expire before the agent's first instruction.
                self._wait_for_hello_or_end(
                    f"process {next(iter(registry.expected))} was started but never said hello", start
                )
            elif restless := registry.wrappers.find_restless_wrapper():
                self._wait_for_hello_or_end(f"{restless}: it neither rests nor ends", start)
            elif registry.wrappers.alive and self._has_new_effects():
                # A program around an agent may have done something just before it came to rest, such as another start.
                continue
            else:
                return

    def _has_new_effects(self) -> bool:
        """Find the effects of programs around agents until they rested; return whether the hub has to wait again."""
        self.poller.poll()
        return self.registry.changed or bool(self.registry.dying)

    def _wait_for_hello_or_end(self, trouble: str, start: float) -> None:
        """Wait for a hello or an end only: all other readable data stays unread until the host looks."""
        # To poll everything here would let participants and runs move before the wait is over, in an order that the
        # machine decides. Before, the hub asked each starting child for its command every millisecond, and waited for a
        # death in a busy loop.
        waits = select.poll()
        waits.register(self.registry.listen_fd, select.POLLIN)
        for participant in self.registry.dying:
            waits.register(participant.pidfd, select.POLLIN)
        self.turns += 1
        waits.poll(1)  # a hello that another thread takes does not wake this one
        self.poller.poll()
        if is_guard_time_over(start, self.guard):
            raise Stall(f"{trouble} within {self.guard:g} s")

    def _wait_until_quiet(self, start: float) -> None:
        """Wait until no live participant runs: a signal, a birth or a death may have woken any of them."""
        for participant in list(self.registry.living.values()):
            while participant.is_alive:
                state = read_process_state(participant.pid)
                if state in ("T", "t"):
                    # A stopped process never parks, so it must not keep time from moving: it leaves the rule until
                    # SIGCONT.
                    participant.stopped = True
                    self.rule.drop_process(participant.path)
                    break
                if participant.stopped:
                    participant.stopped = False
                    # It was continued. If it was parked before, it said nothing new, so the hub puts its wait back.
                    if participant.state is ParticipantState.PARKED:
                        self.registry.report_parked(participant)
                elif state == "S" and participant.state is ParticipantState.PARKED:
                    # Both proofs are needed. "S" alone may be a short sleep on the way; PARKED alone may be an old word
                    # of a process that a signal has woken since.
                    break
                os.sched_yield()
                self.poller.poll()
                self._check_guard_time(participant, start)

    def settle_signals(self) -> None:
        """Let a signal that the host has just sent take its whole effect, so that the next one meets what it left."""
        # A killed process may still run for a moment after `kill` returns. A second signal would then meet a state that
        # no real run shows. Births are left out: the caller may be in the middle of a start.
        self.registry.changed = True
        self._wait_until_inert(births=False)
        self.registry.changed = True

    def _check_guard_time(self, participant: Participant, start: float) -> None:
        self.turns += 1
        if is_guard_time_over(start, self.guard):
            programs = list_programs_below(participant.pid, {other.pid for other in self.registry.living.values()})
            awaited = f"\nit may wait for {' and '.join(programs)}: {_SLOW_HOOK_REMEDY}" if programs else ""
            raise Stall(f"{participant.describe()}: it neither parked nor spoke for {self.guard:g} s{awaited}")

    # Turns.

    def advance_time(self, deadline: int | None) -> bool:
        """Let participants and runs move until the loop itself has something to do.

        Args:
            deadline: the loop's earliest timer, in nanoseconds, or None.

        Returns:
            True if the loop's deadline is due: it may fire its timers; False if it has something to read or to run.
        """
        self.turns += 1
        self.is_waiting = True
        try:
            if self._has_unreported_fault:
                self._cancel_backend_tasks()
                return False
            return self._advance_until_loop_is_due(deadline)
        except ClockError as error:
            self.abort_with(error)
            return False
        finally:
            self.is_waiting = False

    def _advance_until_loop_is_due(self, deadline: int | None) -> bool:
        self.polling_detector.record_sleep(self.now, deadline)
        runs, rule, registry, participants = self.runs, self.rule, self.registry, self.registry.participants
        grant, stuck, fire = NextMove.GRANT, NextMove.STUCK, NextMove.FIRE
        while True:
            # `busy` counts threads in flight. They may start or feed agents, so the hub settles only when they are
            # back.
            if not self.busy:
                self.settle_participants()
            self._raise_if_fake_broke()
            if self.busy or (registry.wrappers.alive and self._is_time_held()):
                self._wait_while_time_held()
                return False
            if runs.resumed:
                runs.resumed = False
                return False
            host = runs.collect_host_state(deadline)
            if self._loop_ready and host.ready is None:
                # Rule 3: after every single grant a host with readable I/O goes first. A second grant before that look
                # would merge two chunks of output that a real supervisor reads separately.
                self._note_loop_event()
                self._count_run_look(runs.LOOP)
                return False
            move, target = rule.choose_next_move(host)
            if move is grant:
                self._looks = 0
                self.grant(participants[target])
                continue
            if move is stuck:
                raise Deadlock(self.describe())
            if move is fire:
                self._looks = 0
                if target == runs.LOOP:
                    # A timer fires only by order of the hub. A loop that read its own clock fired timers during a look
                    # at I/O, so a timeout beat the answer of the same instant.
                    self._count_timer_fire()
                    return True
            self._count_run_look(target)
            runs.let_run_look(target)

    def _raise_if_fake_broke(self) -> None:
        if self.registry.broken and self.fault is None:
            raise BrokenFake(f"the fake agent itself failed: {self.registry.broken}")

    def _note_loop_event(self) -> None:
        """Begin to count wakes anew: the loop met something, and not the alarm of the sentry alone."""
        # The alarm writes to the wake-up descriptor of a loop that listens for signals, as trio does. To count this as
        # an event restarted the count at each ring, and on a slow machine an endless poll was never reported.
        if self._rung == self.rings:
            self._wakes.reset()
        self._rung = self.rings

    def _count_run_look(self, number: int) -> None:
        self._looks += 1
        # Only the loop of a foreign supervisor may read single bytes. The reference supervisor and the model must count
        # alike, or one spin has two different timelines.
        spare = min(self.registry.written, _MAX_BYTES_IN_PIPES) if number == self.runs.LOOP else 0
        if self._looks > _MAX_LOOKS_WITHOUT_PROGRESS + spare or (
            self._looks % _LOOKS_BETWEEN_TIME_CHECKS == 0 and self._is_looking_too_long(spare)
        ):
            looks, self._looks = self._looks - 1, 0
            who = self.runs.describe(number)
            raise Spin(f"{who} looks again and again, {looks} times at one instant, and takes nothing")

    def _is_looking_too_long(self, spare: int) -> bool:
        """Say whether looks that can have taken nothing more have gone on for a guard period."""
        # The count alone is too patient with slow looks: a client that walked /proc at each look made 130 looks a
        # second, and its play gave no verdict for minutes.
        if self._looks == _LOOKS_BETWEEN_TIME_CHECKS:
            self._looked_since = monotonic()
            return False
        return self._looks > spare and is_guard_time_over(self._looked_since, self.longest_loop_seconds)

    def _count_timer_fire(self) -> None:
        self._fires = self._fires + 1 if self._fired_at == self.now else 0
        self._fired_at = self.now
        self.polling_detector.record_wake(self.now)
        self._wakes.count_wake(self.now)
        if self._fires > _MAX_LOOKS_WITHOUT_PROGRESS:
            self._fires = 0
            raise Spin(
                f"the event loop sets timers again and again, {_MAX_LOOKS_WITHOUT_PROGRESS} times at one instant"
            )

    def grant(self, participant: Participant) -> None:
        """Let one participant run until it parks."""
        rule, hear, running = self.rule, self.registry.receive_message, ParticipantState.RUNNING
        # `has_requested_grant` is read before `drop` forgets it: the fake needs to know whether a stream is ready or
        # its time has come.
        asked = rule.has_requested_grant(participant.path)
        rule.drop_process(participant.path)
        participant.woken = False
        self._wakes.reset()
        participant.grant(rule.now, ready=asked)
        start = 0.0
        while participant.state is running:
            # A read with SO_RCVTIMEO began anew after each signal, so an alarm every half second hid a spinning fake
            # from the guard. The socket's timeout in Python survives interruptions.
            try:
                hear(participant)
            except TimeoutError:  # half a second without a word
                start = start or monotonic()
                self._check_guard_time(participant, start)

    def _is_time_held(self) -> bool:
        """Say whether a program that is no agent holds time, or did something before it came to rest."""
        return bool(self.registry.wrappers.list_time_holders()) or self._has_new_effects()

    def _wait_while_time_held(self) -> None:
        """Wait in real time for threads in flight and for declared processes that are no participants."""
        # The alarm ends the wait below early. The start of the hold then survives, or a thread that never returns would
        # get a new guard period at each ring.
        start = self._held_since or monotonic()
        rings, self._held_since, self._loop_ready = self.rings, 0.0, False
        guard = self.guard if self.fault is None else min(self.guard, _GUARD_SECONDS_AFTER_FAULT)
        held: list[str] = []
        while (
            (self.busy or (held := self.registry.wrappers.list_time_holders()))
            and not self._loop_ready
            and not self._has_unreported_fault
        ):
            self.poller.poll(0.05 if self.busy else 0.005)
            if is_guard_time_over(start, guard):
                threads = f"{self.busy} thread(s) of the supervising program did not return"
                what = threads if self.busy else f"{' and '.join(held)} did not come to rest"
                remedy = f"\n{_WAITING_THREAD_REMEDY}" if self.busy else ""
                raise Stall(f"{what} within {guard:g} s, and time is held until then{remedy}")
        if rings != self.rings:
            self._held_since = start
        self.registry.changed = True

    # The end.

    def abort_with(self, error: ClockError) -> None:
        """Give up: keep the first fault, end every participant, and let the backend cancel what waits."""
        # Only the first fault is the verdict. Later failures, while participants die and tasks are cancelled, follow
        # from it.
        if self.fault is not None:
            raise error
        self.fault = error
        if isinstance(error, Deadlock | ForeignProgram | Stall) and (place := self._describe_supervisor_place()):
            error.args = (f"{error}\n{place}",)
        if self.fault_handler is not None:
            self.fault_handler(error)
        self._kept = list(self.started.values())
        for participant in list(self.registry.living.values()):
            participant.kill()
        self.registry.expected.clear()
        self.registry.changed = True
        # The backend's cancel scope may only be used in the loop's own thread; from another thread the next turn does
        # it.
        if threading.get_ident() == self._thread:
            self._cancel_backend_tasks()

    def _describe_supervisor_place(self) -> str:
        """Say where the supervising program is: where its tasks and threads wait, or where it called the kit."""
        if not self.is_waiting:
            return f"the supervising program is at {line}" if (line := find_kit_call_place()) else ""
        lines = list_waiting_places(self.tasks(), has_threads=self.busy > 0)
        places = f"the supervising program waits at {' and '.join(lines)}" if lines else ""
        others = describe_other_interpreters() if self.busy else ""
        return "\n".join(filter(None, (places, others and f"{others}\n{_OTHER_INTERPRETERS_REMEDY}")))

    @property
    def _has_unreported_fault(self) -> bool:
        return self.fault is not None and self.on_fault is not None

    def _cancel_backend_tasks(self) -> None:
        """Have the backend cancel what waits, once, and in its own thread."""
        report, self.on_fault = self.on_fault, None
        if report is not None:
            report()

    def describe(self) -> str:
        """Describe each side and its wait."""
        living = [participant for participant in self.registry.list_in_spawn_order() if participant.is_alive]
        agents = {participant.path for participant in living if len(participant.path) == 1}
        waits = []
        for participant in living:
            # A living agent holds its own streams open. Those that its descendants hold after its end surprise a user.
            held = "" if participant.path[:1] in agents else describe_held_streams(participant.pid)
            waits.append(f"{participant.describe()}{', and ' if held else ''}{held}")
        host = self.runs.describe_all_runs() or ["the supervising program waits, and no timer of it runs"]
        return "nobody can move: " + "; ".join([*host, *(waits or ["no agent lives"])])

    def close(self) -> None:
        """End all processes that are left, close every descriptor, and drop the listener for faults."""
        self.fault_handler = None
        try:
            self.registry.close()
        finally:
            self.poller.close()
