"""Plays of a scenario in the model. Owns the choice of its drivers: a run, a session, or several."""

from __future__ import annotations

import datetime as dt
import gc
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any, Protocol

from pytest_agentproc.errors import ClockError, EndlessAgent, Spin
from pytest_agentproc.events import FaultFound, Returned
from pytest_agentproc.fake_agents.program import MAX_REPORTED_WORD_BYTES
from pytest_agentproc.harness._agent_launch import (
    MAX_PROMPT_CHARS_KNOWN,
    SESSION_FOLDER,
    build_command_line,
    build_environment,
    build_record_header,
    describe_accepted_flags,
    find_requested_model,
)
from pytest_agentproc.harness._supervise import EMPTY_REPORT, MAX_AGENT_STARTS, MemoryStore, compute_leave_instant
from pytest_agentproc.harness.fakes._refused_starts import find_spawn_error
from pytest_agentproc.harness.model._in_memory_model import (
    DEFAULT_REFERENCE_SUBJECT,
    PROMPT_MARK_SEED,
    CallerHost,
    InMemoryModel,
    OneActionCaller,
    SessionHost,
)
from pytest_agentproc.plays import PlayResult
from pytest_agentproc.record import Record, add_session_to_trace
from pytest_agentproc.scenario import NotApplicable
from pytest_agentproc.supervisor import Conversation, RunHeader, RunMachine, RunSettings, SessionSettings, Setting

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_agentproc.harness.model._actors import ModelAgent
    from pytest_agentproc.plays import FakeFault
    from pytest_agentproc.scenario import BoundScenario, Scenario
    from pytest_agentproc.supervisor import Artifacts, Deciders, SessionDeciders
    from pytest_agentproc.vocabulary import CallerAction, LimitsRequest, Policy, RunReport


class _NamedDeciders(Protocol):
    """The judgements of the reference supervisor, and their names."""

    name: str
    deciders: Deciders
    session_deciders: SessionDeciders


class ReferenceSubject(_NamedDeciders, Protocol):
    """The reference supervisor as a subject: its judgements are what the model needs of it."""

    def policy(self, request: LimitsRequest) -> Policy: ...


def run_in_model(
    scenario: Scenario, subject: ReferenceSubject, *, model: type[InMemoryModel] = InMemoryModel
) -> PlayResult:
    """Run a scenario against the reference supervisor, or one with judgements replaced, in the model.

    Args:
        scenario: the fake's script and the expectations.
        subject: the supervisor, as `subjects.reference_supervisor()` or a defect gives it.
        model: the model; a broken one shows that a tie rule matters.

    Raises:
        NotApplicable: the script needs a limit that the subject does not have, or what virtual time cannot play.
        ScenarioError: the script has no end, and the kit's own supervisor does not end it.
        KitError: the fake itself failed.
    """
    bound = scenario.bind(scenario.request_limits(subject)).require_virtual_time()
    played = play_bound_scenario(bound, subject, model=model)
    if played.broken is None:
        return played
    is_reference = subject.name == DEFAULT_REFERENCE_SUBJECT.name
    return blame_endless_agent(
        played, played.broken, lambda: played if is_reference else play_bound_scenario(bound, DEFAULT_REFERENCE_SUBJECT)
    )


def blame_endless_agent(played: PlayResult, fault: FakeFault, reference: Callable[[], Any]) -> PlayResult:
    """Give a play in which the supervisor did not end an agent that it could have ended, as its fault.

    Args:
        played: the play in which the fake broke.
        fault: what broke.
        reference: plays the same with the kit's own supervisor.

    Raises:
        ScenarioError: the kit's own supervisor does not end the agent, either.
        KitError: the fake failed, in a way that no supervisor can bring about.
        Declined: the supervisor starts its agent for a session, and the scenario is for one prompt, or the reverse.
    """
    scenario = played.bound.scenario
    fault.require_same_mode()
    if not fault.is_endless or scenario.served_agents:
        raise fault.make_error(scenario)
    ended = reference()
    if isinstance(ended.fault, ClockError):
        raise fault.make_error(scenario)
    return replace(played, answer=None, fault=EndlessAgent(f"the supervisor does not end the agent: {fault.words}"))


def play_bound_scenario(
    bound: BoundScenario, subject: _NamedDeciders, *, model: type[InMemoryModel] = InMemoryModel
) -> PlayResult:
    """Play a scenario whose times are known; see `run_in_model`."""
    is_collecting = gc.isenabled()
    gc.disable()  # whatever is made lives as long as the play, so that looking for garbage in it is looking in vain
    try:
        return _play_in_model(bound, subject, model)
    finally:
        if is_collecting:
            gc.enable()


def _play_in_model(bound: BoundScenario, subject: _NamedDeciders, model: type[InMemoryModel]) -> PlayResult:
    scenario = bound.scenario
    if scenario.served_agents:
        raise NotApplicable(f"agents of {scenario.served_agents[0]}", 1)
    record = Record(build_record_header(bound, subject.name))
    built_model = model(record)
    store = MemoryStore(scenario.disk) if scenario.asks_for_artifacts else None
    kept = subject.deciders.artifacts(store, _build_run_header(scenario)) if store else None
    caller = add_sessions_to_model(built_model, bound, subject) if scenario.is_session else None
    machine = None if caller else add_run_to_model(built_model, bound, subject, kept)
    answers: list[RunReport] = []
    if bound.abandoned is not None:
        leaving = (
            _make_caller_leaving_sessions(built_model, bound.abandoned, caller, answers)
            if machine is None
            else _make_leaving_caller(built_model, bound.abandoned, machine, kept, answers)
        )
        built_model.callers.append(leaving)

    def collect_report_if_over() -> None:
        if len(built_model.over) < len(built_model.drivers) or (caller is not None and caller.is_busy):
            return
        if caller is not None and not answers:
            answers.append(caller.build_report())
        elif machine is not None and not answers:
            result = machine.build_result(0, built_model.now(), containment=built_model.drivers[0].containment)
            answers.append((kept.finish(result) if kept else result).to_report())
        record.add(Returned(built_model.now(), "supervisor"))

    if bound.blocked is not None:
        built_model.callers.insert(0, _make_loop_blocker(built_model, bound.blocked))
    built_model.on_over = collect_report_if_over
    fault = None
    try:
        built_model.run()
        if caller is not None and not answers:
            collect_report_if_over()  # its caller had more to do than its sessions
        built_model.record_leaks()
    except ClockError as error:
        fault = error
        record.add(FaultFound(built_model.now(), "supervisor", error.reason, str(error)))
    broken = built_model.broken
    pipes_left = sum(agent.count_dead_pipes() for agent in built_model.agents) if fault is None else 0
    built_model.break_reference_cycles()
    answer = answers[0] if answers and fault is None else None
    files = store.files if store else None
    return PlayResult(bound, record, answer, fault, files, broken=broken, pipes_left=pipes_left)


def _make_loop_blocker(model: InMemoryModel, action: CallerAction) -> OneActionCaller:
    """Give the other code that keeps the event loop from running."""

    def block_loop(now: int) -> None:
        model.record.add(action.make_event(now))
        if action.kind == "block":  # no part of the model reads a wall clock
            model.block_loops_until(now + action.value)

    return OneActionCaller(action.at, block_loop)


def _make_leaving_caller(
    model: InMemoryModel,
    action: CallerAction,
    machine: RunMachine,
    kept: Artifacts | None,
    answers: list[RunReport],
) -> OneActionCaller:
    """Give the caller that leaves in the middle of a run, as a cancelled task does."""

    def leave_run(now: int) -> None:
        model.record.add(action.make_event(now))
        driver = model.drivers[0]
        status = machine.abandonment.end(driver.agent) if driver.agent is not None else None
        answers.append(EMPTY_REPORT)
        if kept:
            machine.stop(now, status, "the run was given up: CancelledError")
            kept.finish(machine.build_result(0, now, containment=driver.containment))
        model.remove_driver(0)

    return OneActionCaller(compute_leave_instant(action), leave_run)


def _make_caller_leaving_sessions(
    model: InMemoryModel, action: CallerAction, caller: CallerHost | None, answers: list[RunReport]
) -> OneActionCaller:
    """Give the caller that leaves its session, as a cancelled task does."""
    assert caller is not None

    def leave_sessions(now: int) -> None:
        model.record.add(action.make_event(now))
        caller.leave()
        answers.append(EMPTY_REPORT)
        for number, host in model.hosts.items():
            host.driver.abandon()
            model.remove_driver(number)

    return OneActionCaller(compute_leave_instant(action), leave_sessions)


def _build_run_header(scenario: Scenario) -> RunHeader:
    return RunHeader(
        run_id="model",
        argv=("agent", *build_command_line(scenario)),
        cwd=_AGENT_FOLDER,
        requested_model=find_requested_model(scenario),
        started_at=dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
        started=0,
    )


def add_run_to_model(
    model: InMemoryModel, bound: BoundScenario, subject: _NamedDeciders, kept: Artifacts | None = None
) -> RunMachine:
    """Give the model one more run of a scenario, whose artifacts are kept or not."""
    scenario = bound.scenario
    prompt = scenario.prompt if scenario.prompt_by == "stdin" else ""
    dialect = scenario.added_dialect or scenario.dialect
    argv = ("agent", *build_command_line(scenario))
    machine = RunMachine(RunSettings(dialect, prompt.encode(), bound.policy, scenario.mode, argv), subject.deciders)
    keep = kept.log_event if kept else None
    spawn = _make_spawner(model, bound)
    model.drivers.append(model.driver_type(machine, spawn, model.now, model.record.add, keep))
    return machine


def add_sessions_to_model(model: InMemoryModel, bound: BoundScenario, subject: _NamedDeciders) -> CallerHost:
    """Give the model the sessions of a scenario, and their caller."""
    parts = bound.parts or {"": bound}
    hosts = {name: _add_session_to_model(model, part, subject) for name, part in parts.items()}
    caller = CallerHost(bound.drive, hosts, model.now, model.record.add)
    model.callers.append(caller)
    return caller


def _add_session_to_model(model: InMemoryModel, bound: BoundScenario, subject: _NamedDeciders) -> SessionHost:
    scenario = bound.scenario
    task = SessionSettings(
        ("agent", *build_command_line(scenario)),
        scenario.added_dialect or scenario.dialect,
        scenario.mode,
        bound.policy,
        Setting(
            SESSION_FOLDER,
            PROMPT_MARK_SEED,
            tuple((hook.name, hook.event) for hook in bound.hooks),
            continues=bound.continues,
        ),
        has_handler=bound.handler is not None,
    )
    deciders = subject.session_deciders
    machine = Conversation(task, deciders)
    trace = add_session_to_trace(model.record.add, scenario.session)
    host = SessionHost(machine, deciders.transcript(), bound, _make_spawner(model, bound), model.now, trace)
    model.hosts[len(model.drivers)] = host
    model.drivers.append(host.driver)
    return host


def _make_spawner(model: InMemoryModel, bound: BoundScenario) -> Callable[[str], ModelAgent]:
    """Give what starts the scenario's agent, or fails to."""
    scenario, fake = bound.scenario, len(model.drivers)
    argv, env = build_command_line(scenario), build_environment(scenario, _AGENT_FOLDER)
    given = {
        "argv": [_cut_to_report_length(word) for word in argv],
        "env": env,
        "cwd": SESSION_FOLDER if scenario.is_session else _AGENT_FOLDER,
        "longest": MAX_REPORTED_WORD_BYTES,
    }
    environ = {name.encode(): value.encode() for name, value in env.items()}
    own = {"argv": argv, "environ": environ, "prompt": scenario.prompt[:MAX_PROMPT_CHARS_KNOWN], "given": given}
    # Only a session that the agent lacks has the fake read the kit's own arguments.
    flags = describe_accepted_flags(scenario) if scenario.lacks_session else {}
    program = {**bound.program, **own, **flags}
    starts = count(1)

    def start_fake_agent(containment: str) -> ModelAgent:
        number = next(starts)
        if number > MAX_AGENT_STARTS:
            raise Spin.for_agent_starts(MAX_AGENT_STARTS)
        failure = find_spawn_error(scenario, number) or _find_argument_length_error(argv)
        if failure is not None:
            raise failure
        return model.start_agent(program, fake, containment)

    return start_fake_agent


def _find_argument_length_error(argv: Sequence[str]) -> OSError | None:
    longest = max((len(word.encode()) for word in argv), default=0)
    return OSError(7, "Argument list too long", "agent") if longest >= _ARGUMENT_BYTE_LIMIT else None


_ARGUMENT_BYTE_LIMIT = 131_072
_AGENT_FOLDER = "/agent"


def _cut_to_report_length(word: str) -> str:
    return word.encode()[:MAX_REPORTED_WORD_BYTES].decode(errors="replace")
