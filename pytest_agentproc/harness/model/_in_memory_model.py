"""The model: the same player and the same machine on a stage in memory, without a process.

Nothing here decides the order: the jump rule does, as in the hub. The model adds the settling that real processes do by
themselves, and pipes with the capacity of real pipes. Equality with the lockstep proves stage, hub and driver. The
rules of the reference supervisor are proven by hand-written expectations.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from pytest_agentproc import events
from pytest_agentproc.clock import HostState, JumpRule, NextMove, SystemClock
from pytest_agentproc.errors import BrokenFake, Deadlock, Spin
from pytest_agentproc.events import Leaked, ProcessGone, ProcessStarted, Trace
from pytest_agentproc.fake_agents.flags import adapt_program_to_arguments
from pytest_agentproc.fake_agents.player import FAULT_EXIT_CODE
from pytest_agentproc.fake_agents.program import make_invocation_program, make_numbered_name
from pytest_agentproc.harness._faults import describe_model_fault
from pytest_agentproc.harness.model._actors import (
    InMemoryPipe,
    InMemoryProcess,
    ModelAgent,
    ModelTreePlace,
    ProcessEnded,
)
from pytest_agentproc.supervisor import (
    AnswerQuestion,
    Deciders,
    DecideTool,
    Driver,
    Session,
    SessionDeciders,
    SessionDriver,
    SessionEvent,
    report_session,
    summarize_view,
)
from pytest_agentproc.vocabulary import (
    SWITCH_BY_ACTION,
    CallbackError,
    Caller,
    CallerRole,
    RunReport,
    split_exit_status,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pytest_agentproc.clock import SpawnPath
    from pytest_agentproc.plays import FakeFault
    from pytest_agentproc.record import Record
    from pytest_agentproc.scenario import BoundScenario
    from pytest_agentproc.supervisor import Conversation, Hook, Question, Transcript, Turn, Viewer
    from pytest_agentproc.vocabulary import CallerAction, LimitsRequest, Policy


class _DefaultReferenceSubject:
    """The reference supervisor as it ships."""

    name = "reference"
    deciders = Deciders()
    session_deciders = SessionDeciders()

    def policy(self, request: LimitsRequest) -> Policy:
        return self.deciders.build_policy(request.limits, request.dialect)


DEFAULT_REFERENCE_SUBJECT = _DefaultReferenceSubject()


_MAX_LOOKS_AT_ONE_INSTANT = 10_000
_CALLER_LOOP_NUMBER = 1 << 60
"""The number of the loop in which callers wait: after every run."""


class InMemoryModel:
    """Virtual time over processes in memory.

    The types are what a broken model replaces, to show that a tie rule matters.
    """

    rule_type = JumpRule
    pipe_type = InMemoryPipe
    process_type = InMemoryProcess
    world_type = ModelAgent
    driver_type = Driver

    def __init__(self, record: Record) -> None:
        self.record = record
        self.rule = self.rule_type()
        self.processes: dict[SpawnPath, InMemoryProcess] = {}
        self._living: dict[SpawnPath, InMemoryProcess] = {}
        self.agents: list[ModelAgent] = []
        self.drivers: list[Driver] = []
        self.hosts: dict[int, SessionHost] = {}
        """The sessions of those drivers that drive one."""
        self.callers: list[CallerHost | OneActionCaller] = []
        self.begun: set[int] = set()
        self.over: set[int] = set()
        self.on_over: Callable[[], None] | None = None
        self._births: list[InMemoryProcess] = []
        self._deaths: list[InMemoryProcess] = []
        self._fakes: list[int] = []
        self._names: Counter[tuple[int, str]] = Counter()
        self._looks = 0
        self.broken: FakeFault | None = None
        """The failure of a fake itself."""
        self._host = HostState()
        self._looking: list[tuple[int, Driver, SessionHost | None]] = []
        """The drivers that are not over, and their sessions."""

    # Calls of processes and worlds.

    def now(self) -> int:
        """Give the instant."""
        return self.rule.now

    def start_agent(self, program: dict[str, Any], fake: int, containment: str = "group") -> ModelAgent:
        """Start an agent, as a driver asks for one."""
        pipes: dict[str, InMemoryPipe | None] = {name: self.pipe_type() for name in ("stdin", "stdout", "stderr")}
        played = make_invocation_program(program, self._fakes.count(fake) + 1)
        if "flags" in played:
            played, _ = adapt_program_to_arguments(played, played["flags"], ())
        agent = self.process_type(self, (len(self._fakes),), program["name"], 0, played, pipes)
        agent.tree_place = ModelTreePlace(agent, None, "new_session")
        self._fakes.append(fake)
        self.add_process(agent)
        self.record_births()
        self.agents.append(self.world_type(agent, containment))
        return self.agents[-1]

    def add_process(self, process: InMemoryProcess) -> None:
        """Add a new process; a stopped process waits for nothing yet."""
        self.processes[process.path] = self._living[process.path] = process
        if not process.is_stopped:
            self.park_process(process)
        self._births.append(process)

    def park_process(self, process: InMemoryProcess) -> None:
        """Have the rule know until when a process waits."""
        self.rule.park_process(process.path, process.until)

    def wake_process(self, process: InMemoryProcess) -> None:
        """A parked process caught a signal."""
        self.rule.request_grant(process.path)

    def remove_process(self, process: InMemoryProcess) -> None:
        """Remove a process that has ended."""
        self.rule.drop_process(process.path)
        del self._living[process.path]
        self._deaths.append(process)

    # The lockstep.

    def run(self) -> None:
        """Let everything move until every driver and its callers are done.

        Raises:
            Deadlock: no process can move.
            Spin: a driver looks for ever and takes nothing.
        """
        self._looking = [(number, driver, self.hosts.get(number)) for number, driver in enumerate(self.drivers)]
        while True:
            self.settle_events()
            if self.callers and self._let_callers_act():
                continue
            if not self._looking and not any(caller.is_busy for caller in self.callers):
                return
            move, target = self.rule.choose_next_move(self.collect_host_state())
            while move is NextMove.GRANT:  # which reports nothing to a caller
                self._looks = 0
                self.grant(self.processes[target])
                self.settle_events()
                move, target = self.rule.choose_next_move(self.collect_host_state())
            if move is NextMove.STUCK:
                raise Deadlock("nobody can move")
            if move is NextMove.FIRE:
                self._looks = 0
            if target == _CALLER_LOOP_NUMBER:
                self._let_callers_act(is_due=True)
            else:
                self._let_driver_look(target)

    def _let_callers_act(self, *, is_due: bool = False) -> bool:
        """Let the callers do what they want to do now, by declaration, if they have a report, or are due.

        Returns:
            Whether one did something.
        """
        has_acted = False
        for caller in self.callers:
            if is_due or caller.has_news:
                has_acted = caller.do_due_actions(self.rule.now) or has_acted
        return has_acted

    def block_loops_until(self, until: int) -> None:
        """Let time pass until an instant in which no driver looks and no caller acts: other code holds their loop."""
        deadline = (until, _CALLER_LOOP_NUMBER)
        while (process := self.rule.find_first_process(deadline)) is not None:
            self.rule.now, path = process
            self.grant(self.processes[path])
            self.settle_events()
        self.rule.now = max(self.rule.now, until)

    def settle_events(self) -> None:
        """Show the events: processes that can run ask, and births and deaths are recorded in spawn order."""
        for process in self._living.values():
            for is_woken in process.wakers:
                if is_woken():
                    self.rule.request_grant(process.path)
                    break
        if self._births:
            self.record_births()
        if self._deaths:
            self.record_deaths()

    def record_deaths(self) -> None:
        """Record the dead processes."""
        for process in self.sort_in_spawn_order(self._deaths):
            assert process.ended is not None
            self.record.add(events.ProcessEnded(self.rule.now, process.name, *split_exit_status(process.ended)))
            self.record.add(ProcessGone(self.rule.now, process.name))
        self._deaths.clear()

    def record_births(self) -> None:
        """Record the births."""
        for process in self.sort_in_spawn_order(self._births):
            fake_and_name = self._fakes[process.path[0]], process.name
            self._names[fake_and_name] += 1
            process.name = make_numbered_name(process.name, self._names[fake_and_name])
            parent = self.processes.get(process.path[:-1])
            above = "supervisor" if parent is None else parent.name
            self.record.add(ProcessStarted(self.rule.now, process.name, parent=above, line=process.line))
        self._births.clear()

    def record_leaks(self) -> None:
        """Record the processes that are left, fake by fake."""
        for path in sorted(self.processes, key=lambda path: (self._fakes[path[0]], path)):
            process = self.processes[path]
            lives = "stopped" if process.is_stopped else "alive"
            state = lives if process.is_alive else "zombie" if len(path) == 1 and not process.is_reaped else None
            if state is not None:
                self.record.add(Leaked(self.rule.now, process.name, state, line=process.line))

    def sort_in_spawn_order(self, processes: list[InMemoryProcess]) -> list[InMemoryProcess]:
        """Give processes in spawn order (rules 2 and 4)."""
        return sorted(processes, key=lambda process: process.path)

    def collect_host_state(self) -> HostState:
        """Tell the jump rule what the drivers want."""
        ready = pending = first = None
        host, whose, begun = self._host, _CALLER_LOOP_NUMBER, self.begun
        for number, driver, session in self._looking:
            if number not in begun:
                pending = number if pending is None else pending
                continue
            if ready is None:
                agent = driver.agent
                if (session is not None and session.wakeup.is_set) or (agent is not None and agent.poll()):
                    ready = number
            deadline = driver.deadline
            if deadline is not None and (first is None or deadline < first):
                first, whose = deadline, number
        for caller in self.callers:
            deadline = caller.deadline
            if deadline is not None and (first is None or deadline < first):
                first, whose = deadline, _CALLER_LOOP_NUMBER
        host.ready, host.pending, host.deadline = ready, pending, None if first is None else (first, whose)
        return host

    def grant(self, process: InMemoryProcess) -> None:
        """Let one process run."""
        rule, signals = self.rule, process.signals
        asked = rule.has_requested_grant(process.path)
        rule.drop_process(process.path)
        if signals:
            process.signals = []
        try:
            process.player.run_until_parked(rule.now, signals, readable=process.can_read_stdin(asked=asked))
        except ProcessEnded:
            return
        except Exception as error:
            self.broken = describe_model_fault(error)
            place = f"line {self.broken.line}, step {self.broken.step}: " if self.broken.line else ""
            process.add_note("q", {"broken": f"{place}{self.broken.words}"})
            process.end(FAULT_EXIT_CODE)
            self.record_deaths()
            raise BrokenFake(f"the fake agent itself failed: {self.broken.words}") from error
        process.update_wake_conditions()
        rule.park_process(process.path, process.until)

    def _let_driver_look(self, number: int) -> None:
        self._looks += 1
        if self._looks > _MAX_LOOKS_AT_ONE_INSTANT:
            raise Spin(
                f"the supervisor looks again and again, {_MAX_LOOKS_AT_ONE_INSTANT} times at one instant, "
                "and takes nothing"
            )
        self.begun.add(number)
        driver = self.drivers[number]
        if driver.look():
            if number in self.hosts and self._deaths:
                self.record_deaths()  # of whom a keeper ended that was let go
            self.remove_driver(number)
            if number in self.hosts:
                self.hosts[number].driver.abandon()  # as it does in `Session.run`
            elif driver.agent is not None:
                driver.machine.abandonment.release(driver.agent)

    def remove_driver(self, number: int) -> None:
        """Have a driver look no more."""
        self.over.add(number)
        self._looking = [look for look in self._looking if look[0] != number]
        if self.on_over is not None:
            self.on_over()

    def break_reference_cycles(self) -> None:
        """Break the reference cycles at once: all parts hold each other, and would wait for the garbage collector."""
        for process in self.processes.values():
            for part in (process.player, process.tree_place, process):
                vars(part).clear()
        for driver in self.drivers:
            for each in (driver.machine, driver):
                vars(each).clear()
        for host in self.hosts.values():
            vars(host).clear()
        vars(self).clear()


PROMPT_MARK_SEED = "caller"
"""The value that makes the marks on prompts different in each session."""


class _ModelWakeup:
    """A session's wakeup in memory."""

    descriptor = -1

    def __init__(self) -> None:
        self.is_set = False

    def set(self) -> None:
        self.is_set = True

    def clear(self) -> None:
        self.is_set = False

    def watch(self, descriptor: int) -> None:
        """Nothing else sets it: the model asks the agent's pipes itself."""

    def unwatch(self, descriptor: int) -> None:
        """See `watch`."""

    def close(self) -> None:
        """Nothing is open."""


class SessionHost:
    """One session in the model: its driver, the actions of its caller, and the events for its viewers."""

    def __init__(
        self,
        machine: Conversation,
        transcript: Transcript,
        bound: BoundScenario,
        spawn: Callable[[str], ModelAgent],
        now: Callable[[], int],
        trace: Trace,
    ) -> None:
        self._session = Session(machine, SystemClock(), None, transcript)
        self.wakeup = _ModelWakeup()
        """Set while the caller has said something that the session has not handled."""
        self.role = CallerRole(bound.handler, bound.hooks)
        self._hooks = {hook.name: hook for hook in bound.hooks}
        self._registered: set[str] = set()
        self._called: list[tuple[str, int]] = []
        self._events: list[SessionEvent] = []
        self.caller: CallerHost | None = None
        """The listeners for the session's events."""
        self._turns: list[Turn] = []
        self._questions: list[Question | None] = []
        """The handler's questions, in order; None: it was withdrawn, and another question may have its id."""
        self._viewers: dict[str, Viewer] = {}
        self._seen: dict[str, list[SessionEvent]] = {}
        self.driver = SessionDriver(machine, spawn, self.wakeup, now, self._receive_event, trace)
        self._session.set_driver(self.driver)

    def report_to_caller(self, caller: Caller, name: str, now: int) -> None:
        """Give the caller the session's reports since the last question, and call the callbacks."""
        events, self._events = self._events, []
        for event in events:
            caller.note_event(event.kind, event.turn, event.text, name)
            if event.kind == "withdrawn":
                self._questions = [None if question is event.question else question for question in self._questions]
            elif event.question is not None and self.role.handler is not None:
                caller.note_question(event.at, name)
                self._questions.append(event.question)
            if event.kind == "hook" and event.hook is not None and event.hook.callback in self._registered:
                self._call_hook(event.hook, now)

    def build_report(self) -> RunReport:
        """Sum it up, as the reference supervisor does."""
        for name in self._viewers:
            self._read_viewer_events(name)
        views = {name: summarize_view(seen) for name, seen in self._seen.items()}
        return report_session(self._session, turns=len(self._turns), views=views, called=self._called)

    def _call_hook(self, hook: Hook, now: int) -> None:
        """Do what the session's door does about a callback, which takes no time."""
        use = self._hooks[hook.callback]
        self._called.append((use.name, now))
        if use.raises:
            words = f"the callback of hook {use.name} broke: {CallbackError()!r}"
            self._session.receive_event(SessionEvent(now, "warning", text=words))
        if hook.is_question:
            self.driver.queue_intent(DecideTool(hook.id, use.allowed and not use.raises))

    def _receive_event(self, event: SessionEvent) -> None:
        self._events.append(event)
        if self.caller is not None:
            self.caller.has_news = True
        self._session.receive_event(event)

    def _read_viewer_events(self, name: str) -> None:
        self._seen[name] += self._viewers[name].take()

    def do_action(self, action: CallerAction) -> None:
        """Do what the caller wants."""
        value, session = action.value, self._session
        if action.kind == "prompt":
            self._turns.append(session.prompt(value))
        elif action.kind == "cancel":
            (session if value is None else self._turns[value - 1]).cancel()
        elif action.kind == "answer":
            handler, question = self.role.handler, self._questions[value - 1]
            assert handler is not None
            if question is not None:
                self.driver.queue_intent(AnswerQuestion(question.id, handler.allowed is True))
        elif action.kind == "register":
            self._registered.add(value)
            session.on_hook(value, _ignore_hook)
        elif action.kind in SWITCH_BY_ACTION:
            getattr(session, action.kind)(value)
        elif action.kind == "attach":
            self._viewers[value] = session.attach()
            self._seen[value] = []
        elif action.kind == "detach":
            self._read_viewer_events(value)
            del self._viewers[value]
        else:
            (session.stop() if action.kind == "stop" else session.close()).close()  # no task waits for it


class CallerHost:
    """The caller of all sessions of a scenario."""

    def __init__(
        self,
        drive: Sequence[CallerAction],
        hosts: Mapping[str, SessionHost],
        now: Callable[[], int],
        trace: Trace,
    ) -> None:
        self._hosts = hosts
        for host in hosts.values():
            host.caller = self
        self._has_left = False
        self.has_news = False
        """Whether a session has a report that the caller has not received."""
        roles = {name: host.role for name, host in hosts.items()}
        self._caller = Caller(drive, lambda action: trace(action.make_event(now())), roles)
        self.deadline: int | None = None
        """The instant at which the caller acts in any case; an event or its own action may move it."""
        self.do_due_actions(now())

    @property
    def is_busy(self) -> bool:
        """Whether there is anything left to do."""
        return not (self._has_left or self._caller.is_done)

    def leave(self) -> None:
        """Do nothing any more."""
        self._has_left, self.has_news, self.deadline = True, False, None

    def do_due_actions(self, now: int) -> bool:
        """Give the caller the sessions' reports, and do its actions; return whether it had any."""
        self.has_news = False
        if self._has_left:
            return False
        for name, host in self._hosts.items():
            host.report_to_caller(self._caller, name, now)
        actions = self._caller.act(now)
        self.deadline = self._caller.deadline
        for action in actions:
            self._hosts[action.session].do_action(action)
        return bool(actions)

    def build_report(self) -> RunReport:
        """Sum it up, as the reference supervisor does."""
        answers = {name: host.build_report() for name, host in self._hosts.items()}
        return answers[""] if "" in answers else RunReport(sessions=answers)


class OneActionCaller:
    """A caller with one action at a fixed instant: it leaves, or other code blocks the event loop.

    Args:
        deadline: the instant.
        action: called with the instant, once.
    """

    has_news = is_busy = False

    def __init__(self, deadline: int | None, action: Callable[[int], None]) -> None:
        self.deadline = deadline
        self._action = action

    def do_due_actions(self, now: int) -> bool:
        """Do the action if it is due; return whether it was."""
        if self.deadline is None or now < self.deadline:
            return False
        self.deadline = None
        self._action(now)
        return True


async def _ignore_hook(_hook: Hook) -> None:
    """Stand for a callback: the model does itself what that would do."""
