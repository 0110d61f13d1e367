"""The scenario runner: runs a scenario against a subject with real processes. Owns the broker and the fakes' files."""

from __future__ import annotations

import contextlib
import os
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_agentproc.clock import SystemClock, VirtualClock, bind_socket_in, is_debugged, register_debugger_listener
from pytest_agentproc.errors import AgentprocError, KitError, Spin, UsageError
from pytest_agentproc.events import FaultFound, SignalStrayed
from pytest_agentproc.harness._agent_launch import (
    MAX_PROMPT_CHARS_KNOWN,
    build_command_line,
    build_record_header,
    describe_accepted_flags,
)
from pytest_agentproc.harness._faults import map_probe_answers, require_spare_descriptors, require_startable_fakes
from pytest_agentproc.harness._limit_binding import (
    ReferenceResults,
    UnstatedLimitResults,
    bind_to_subject,
    list_agent_scenarios,
)
from pytest_agentproc.harness._open_stdin import keep_stdin_open
from pytest_agentproc.harness._pace import (
    NotForRealTime,
    RunForecast,
    add_pause_before_script,
    can_be_polling,
    choose_pace,
    compute_polling_limit,
    find_short_timers,
    forecast_run,
    make_exact_pace,
    sum_stated_limits,
)
from pytest_agentproc.harness._preload import PreloadRunner, UnreachableSupervisor
from pytest_agentproc.harness._signal_guard import Decoys
from pytest_agentproc.harness._supervise import (
    ArtifactDirectory,
    explain_no_virtual_time,
    explain_real_time_only,
    supervise_in_real_time,
    supervise_in_virtual_time,
)
from pytest_agentproc.harness._unrelated_processes import is_fake_command
from pytest_agentproc.harness._wakes import CoordinatorWakes
from pytest_agentproc.harness.fakes._fake_agent import FakeAgent, LockstepProcesses, RealTimeLifetime
from pytest_agentproc.harness.fakes._fake_log import FakeLog
from pytest_agentproc.harness.fakes._hidden_programs import ProgramHider
from pytest_agentproc.harness.fakes._launch import FakeBuilder
from pytest_agentproc.harness.fakes._refused_starts import make_spawn_failure_listener, simulate_spawn_failures
from pytest_agentproc.harness.fakes._standalone import COMMAND_BY_DIALECT, NAMES_OF_REFUSED_CLIS
from pytest_agentproc.harness.model._in_memory_model import DEFAULT_REFERENCE_SUBJECT
from pytest_agentproc.harness.model._play import blame_endless_agent, play_bound_scenario
from pytest_agentproc.interrupts import end_left_blocks, hold_interrupts
from pytest_agentproc.machine import is_virtual
from pytest_agentproc.originals import Popen, monotonic_ns
from pytest_agentproc.plays import PlayResult, PollingPace, RealTimePace
from pytest_agentproc.record import Record
from pytest_agentproc.scenario import NotApplicable
from pytest_agentproc.tree import exclude_from_tracking, find_interpreter
from pytest_agentproc.vocabulary import NANOSECONDS_PER_SECOND, Policy, read_abilities

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from pytest_agentproc.clock import PollingDetector
    from pytest_agentproc.scenario import BoundScenario, Scenario
    from pytest_agentproc.vocabulary import Subject


FAKE_LIFETIME_SECONDS = 300.0
"""Real seconds after which a fake is killed whatever happens."""


@contextlib.contextmanager
def name_refusals() -> Iterator[None]:
    """Say that the machine refused something to the kit itself, such as space on a disk.

    Raises:
        KitError: it did, so there is no verdict on the supervisor.
    """
    try:
        yield
    except TimeoutError:  # a limit of the test's own, which raises in the middle of what the kit does
        raise
    except OSError as error:
        raise KitError(
            f"the machine refused the kit something: {error}; this says nothing of the supervisor"
        ) from error


_INPUT_REPORT_STEP = (0, "report_start", (None,))


class _BrokerProcess(Popen[bytes]):
    """The broker: virtual time, in which an async test may make the first fake, does not wait for it."""

    serves_host = True

    def __del__(self) -> None:
        """End a broker whose start a Ctrl-C broke off: nobody else knows of it."""
        with contextlib.suppress(Exception):
            self.kill()
            self.wait(_BROKER_END_SECONDS)
        super().__del__()


_BROKER_END_SECONDS = 10.0
"""The broker is dead of its KILL by then, on any machine."""


class ScenarioRunner:
    """Where scenarios are played.

    The broker process starts with the first fake, the decoys with the first play in real time; `close` ends them.

    Args:
        new_record: makes the record of a play, of its header.
        commands: what fakes of other packages' dialects are called, beside those of the kit.
    """

    def __init__(
        self, new_record: Callable[[Mapping[str, Any]], Record] = Record, *, commands: Iterable[str] = ()
    ) -> None:
        self.new_record = new_record
        self._workshop: FakeBuilder | None = None
        self._hider: ProgramHider | None = None
        self._broker: Popen[bytes] | None = None
        self._lifeline = b""
        self._clock: VirtualClock | None = None
        register_debugger_listener(self, self.disable_fake_lifetimes)
        self._preload = PreloadRunner(self._open_guarded_folder)
        self._out_of_reach: dict[str, str] = {}
        self._added_commands = frozenset(commands)
        self._decoys = Decoys(sorted({*COMMAND_BY_DIALECT.values(), *self._added_commands}))

    def __enter__(self) -> ScenarioRunner:  # noqa: PYI034  # it has no subclass
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @name_refusals()
    @end_left_blocks()
    def play(
        self, scenario: Scenario, subject: Subject, *, backend: str = "asyncio", record: Record | None = None
    ) -> PlayResult:
        """Run a scenario against a supervisor, in virtual time.

        Args:
            scenario: the fake's script and the expectations.
            subject: the supervisor under test.
            backend: "asyncio" or "trio".
            record: an empty record, which can be read meanwhile; None: one of its own.

        Raises:
            NotApplicable: the script needs a limit that the supervisor does not have, a disk that its host does not
            have, or an action that virtual time cannot play.
            ScenarioError: the script has no end, and the reference supervisor does not end it, either.
            KitError: the harness or a fake failed, so there is no verdict on the supervisor.
        """
        if explain_real_time_only(subject):
            return self._play_in_preload_process(scenario, subject, backend)
        bound = bind_to_subject(scenario, subject).require_virtual_time()
        played, polling = self._play_in_virtual_time(
            bound, subject, backend, self.new_record({}) if record is None else record
        )
        return _add_polling_and_reference(
            played,
            polling,
            scenario,
            subject,
            lambda: self._play_in_virtual_time(add_pause_before_script(bound), subject, backend, Record())[1],
        )

    def _play_in_preload_process(self, scenario: Scenario, subject: Subject, backend: str) -> PlayResult:
        """Play below a coordinator, or in real time if virtual time cannot reach the supervisor there."""
        if is_virtual():
            return self._play_below_coordinator(scenario, subject, backend)
        reason = self._out_of_reach.get(subject.name)
        if reason is None:
            try:
                return self._preload.play(scenario, subject, backend)
            except Spin as error:
                return self._make_lost_play(scenario, subject, error)
            except UnreachableSupervisor as error:
                reason = self._out_of_reach[subject.name] = str(error)
        try:
            played = self.play_real(scenario, subject, backend=backend)
        except NotForRealTime as error:
            raise NotForRealTime(f"{error}; virtual time cannot reach it: {reason}") from None
        played.record.header["out_of_reach"] = reason
        return played

    def _make_lost_play(self, scenario: Scenario, subject: Subject, fault: Spin) -> PlayResult:
        """Give a play whose record was lost with its process, so that the fault alone is known."""
        bound = bind_to_subject(scenario, subject)
        clock = {"clock": "virtual", "arm": "preload"}
        record = self.new_record({**build_record_header(bound, subject.name), **clock})
        record.add(FaultFound(0, "supervisor", fault.reason, str(fault)))
        return PlayResult(
            bound,
            record,
            None,
            fault,
            reference=ReferenceResults.for_play(scenario, subject),
            unstated=UnstatedLimitResults.for_play(bound),
        )

    def _play_below_coordinator(self, scenario: Scenario, subject: Subject, backend: str) -> PlayResult:
        """Play below the coordinator of this process, where the machine's clock is virtual."""
        bound, foreseen = _bind_and_forecast(scenario, subject)
        bound.require_virtual_time()
        limits = None if UnstatedLimitResults(bound).armed_limits else sum_stated_limits(bound)
        pace = make_exact_pace(foreseen, limits, sum_stated_limits(bound, "_grace"))
        played, polling = self._play_in_real_time(bound, subject, backend, pace)
        assert polling is not None, "time is virtual here"

        def play_with_delayed_script() -> PollingDetector:
            found = self._play_in_real_time(add_pause_before_script(bound), subject, backend, pace)[1]
            assert found is not None, "time is virtual here"
            return found

        return _add_polling_and_reference(played, polling, scenario, subject, play_with_delayed_script)

    @keep_stdin_open()
    def _play_in_virtual_time(
        self, bound: BoundScenario, subject: Subject, backend: str, record: Record
    ) -> tuple[PlayResult, PollingDetector]:
        """Play in virtual time; give the pace of the subject's own loop, too."""
        require_spare_descriptors()
        artifacts = ArtifactDirectory(
            bound.scenario, self._open_builder().folder, keeps_artifacts=subject.keeps_artifacts
        )
        clock = VirtualClock(patience=compute_polling_limit(bound))
        record.header.update(build_record_header(bound, subject.name))
        fakes: list[FakeAgent] = []
        try:
            fakes += [self._make_fake_of_bound(part, clock, record) for part in list_agent_scenarios(bound)]
            played = _blame_broken_fake(
                supervise_in_virtual_time(subject, bound, fakes, clock, backend, artifacts), fakes
            )
            self._require_broker()
            return played, clock.polling_detector
        finally:
            clock.close()
            artifacts.close()
            for fake in fakes:
                self._open_builder().recycle_fake(fake.path)

    @name_refusals()
    @end_left_blocks()
    def play_real(
        self, scenario: Scenario, subject: Subject, *, backend: str = "asyncio", scale: float | None = None
    ) -> PlayResult:
        """Run a scenario against a supervisor in real time, if its instants are far enough apart.

        Args:
            scenario: the fake's script and the expectations.
            subject: the supervisor under test.
            backend: "asyncio" or "trio".
            scale: the divisor of every duration; None: the largest one that the scenario allows; for a program with
                limits of its own that do not follow the scale: 1.

        Raises:
            NotForRealTime: two instants that must not change places are too near to each other, or it takes too long.
            NotApplicable: the script needs a limit that the supervisor does not have, or a disk that its host does not
            have.
            ScenarioError: the script has no end, and the reference supervisor does not end it, either.
            KitError: the harness or a fake failed, so there is no verdict on the supervisor.
        """
        bound, foreseen = _bind_and_forecast(scenario, subject)
        pace = choose_pace(foreseen, scale, FAKE_LIFETIME_SECONDS, is_scaled=read_abilities(subject).is_scaled)
        played, _ = self._play_in_real_time(bound, subject, backend, pace)
        return replace(
            played,
            reference=ReferenceResults.for_play(scenario, subject),
            unstated=UnstatedLimitResults.for_play(bound),
        )

    @keep_stdin_open()
    def _play_in_real_time(
        self, bound: BoundScenario, subject: Subject, backend: str, pace: RealTimePace
    ) -> tuple[PlayResult, PollingDetector | None]:
        """Play by the machine's clock; give how the supervisor polls, too, where that clock is virtual."""
        require_spare_descriptors()
        self._decoys.start_missing()
        artifacts = ArtifactDirectory(
            bound.scenario, self._open_builder().folder, keeps_artifacts=subject.keeps_artifacts
        )
        record = self.new_record(
            {**build_record_header(bound, subject.name), **_describe_clock(subject), "scale": pace.scale}
        )
        clock = SystemClock(pace.scale, monotonic_ns())
        wakes = CoordinatorWakes() if is_virtual() else None
        fakes = [self._make_fake_of_bound(part, clock, record) for part in list_agent_scenarios(bound)]
        try:
            played = _blame_broken_fake(
                supervise_in_real_time(subject, bound, fakes, pace, backend, artifacts, wakes), fakes
            )
            for hit in self._decoys.collect_hits():
                stray = SignalStrayed(clock.instant(), "supervisor", hit.signal, "decoy", hit.decoy, origin=hit.origin)
                record.add(stray)
            self._require_broker()
            return played, None if wakes is None else wakes.build_polling_detector(record, clock)
        finally:
            if wakes is not None:
                wakes.close()
            for fake in fakes:
                fake.watch.end()
            artifacts.close()
            for fake in fakes:
                self._open_builder().recycle_fake(fake.path)

    @name_refusals()
    def make_fake(
        self,
        scenario: Scenario,
        *,
        clock: VirtualClock | SystemClock | None = None,
        name: str = "agent",
        record: Record | None = None,
        tells: bool = False,
        command: str = "",
        instead: Sequence[tuple[tuple[str, ...], str]] = (),
        outside: RealTimeLifetime | None = None,
        is_for_arguments: bool = False,
    ) -> FakeAgent:
        """Make the scenario's fake, which the caller's own code starts.

        Args:
            scenario: the agent and its script, under the default policy and the scenario's own.
            clock: the clock that it obeys; None: the virtual one that `virtual_clock` made last, or else real time.
            name: its name in the record.
            record: receives its actions in order; None: a record of its own.
            tells: whether its record begins each start with the given command.
            command: the name of its executable; empty: that of its dialect's CLI.
            instead: patterns of arguments, each with the path of the fake that plays a start with such arguments.
            is_for_arguments: whether the script is for certain arguments: any session or command that they name exists.
            outside: its life if it is started while its virtual clock does not run; None: it exits.

        Raises:
            UsageError: the scenario has several agents.
            NotApplicable: virtual time cannot play it.
        """
        if scenario.parts:
            names = ", ".join(scenario.parts)
            raise UsageError(
                f"{scenario.path} has a fake for each of its sessions: {names}", "make one of scenario.parts[...]"
            )
        policy = Policy.for_dialect(scenario.dialect_record, **scenario.policy)
        bound = scenario.bind(policy.adapt_to_session() if scenario.is_session else policy)
        bound = _add_input_report_step(bound) if tells else bound
        record = record or Record(build_record_header(bound, ""))
        clock = clock or self._clock or SystemClock(1, monotonic_ns())
        if isinstance(clock, VirtualClock):
            bound.require_virtual_time()
        # A user who starts a raw program by `argv` gave no prompt, and would be surprised to find one.
        is_bare = scenario.dialect == "raw" and not scenario.has_stated_prompt
        arguments = () if is_bare else build_command_line(scenario)
        fake = self._make_fake_of_bound(
            bound, clock, record, name, outside, arguments, command=command, instead=instead, trusts=is_for_arguments
        )
        fake.ends.enter_context(simulate_spawn_failures([fake.refusal]))
        return fake

    def virtual_clock(self, **options: Any) -> VirtualClock:
        """Make a virtual clock, which the fakes made from now on obey; see `VirtualClock` for the options."""
        self._clock = VirtualClock(**options)
        self._clock.on_close = self._forget_clock
        return self._clock

    def hide_agents(self, path: str, more: Collection[str]) -> str:
        """Give a PATH without known agent CLIs, and without more programs: see `ProgramHider`."""
        if self._hider is None:
            self._hider = ProgramHider(self._open_builder().folder / "without-agents")
        return self._hider.hide(path, {*NAMES_OF_REFUSED_CLIS, *self._added_commands, *more})

    def disable_fake_lifetimes(self) -> None:
        """Disable the lifetime of all fakes from now on: a debugger watches the code that started them."""
        if self._workshop is not None:
            self._workshop.debugger_marker_path.touch()

    def is_fake(self, command: str) -> bool:
        """Say whether a command line is that of a fake of this runner, or of a descendant of one."""
        return self._workshop is not None and is_fake_command(command, str(self._workshop.folder))

    def end_play_process(self) -> None:
        """Have the process exit that plays plain functions in virtual time; the next play of one starts another."""
        self._preload.close()

    def close(self) -> None:
        """End the decoys, the broker, and with it every fake that is left, and remove the files."""
        # A second Ctrl-C may come in any of these steps. Those after it run all the same, or the files would be left.
        with hold_interrupts(), ExitStack() as steps:
            # The builder removes the folder once nobody refers to it, and a broker that begins would write into it.
            builder, broker = self._workshop, self._broker
            self._workshop = self._broker = self._hider = None
            if builder is not None:
                steps.callback(builder.close)
            if broker is not None:
                steps.callback(broker.wait, _BROKER_END_SECONDS)
                for _ in range(2):  # the Ctrl-C may come in the first kill, before the signal is sent
                    steps.callback(broker.kill)
            steps.callback(self._decoys.close)
            steps.callback(self._preload.close)

    def _forget_clock(self) -> None:
        self._clock = None

    def _require_broker(self) -> None:
        if self._broker is None or self._broker.poll() is not None:
            raise KitError("the lifeline broker ended during the play, and every fake with it")

    def _make_fake_of_bound(
        self,
        bound: BoundScenario,
        clock: VirtualClock | SystemClock,
        record: Record,
        name: str = "",
        outside: RealTimeLifetime | None = None,
        arguments: tuple[str, ...] | None = None,
        *,
        command: str = "",
        instead: Sequence[tuple[tuple[str, ...], str]] = (),
        trusts: bool = False,
    ) -> FakeAgent:
        scenario, builder = bound.scenario, self._open_builder()
        if is_debugged():  # the debugger of an editor is noticed by looking alone
            self.disable_fake_lifetimes()
        name = name or bound.program["name"]
        watch: LockstepProcesses | FakeLog
        logs: FakeLog | None = None
        if isinstance(clock, VirtualClock):
            watch = LockstepProcesses(clock, record, str(builder.folder))
            if outside is not None:
                logs = FakeLog(
                    builder.make_log_folder(),
                    builder.death_notes_path,
                    outside.clock,
                    name,
                    clock.hub.registry.is_known,
                )
                life = round(outside.lifetime * NANOSECONDS_PER_SECOND), str(builder.debugger_marker_path)
                logs.baked |= {"lifetime": life, "notice": outside.notice}
                clock.hub.registry.before_opening.append(logs.refuse_running_processes)
        else:
            watch = logs = FakeLog(builder.make_log_folder(), builder.death_notes_path, clock, name)
        baked = {
            **(logs.baked if logs else {}),
            **watch.baked,
            "lifeline": self._start_lifeline_broker(),
            "program": {**bound.program, "name": name, "prompt": scenario.prompt[:MAX_PROMPT_CHARS_KNOWN]},
            "probes": map_probe_answers(scenario.dialect_record),
            "instead": list(instead),
            **describe_accepted_flags(scenario, trusts=trusts),
        }
        program = command or scenario.dialect_record.command
        record.header.setdefault("programs", {})[name] = program
        path = builder.write_fake(program, baked, spawn_error=scenario.cannot_spawn)
        if isinstance(watch, LockstepProcesses):
            watch.clock.launchers.add(path)
        if logs is not None:
            logs.command, logs.scenario = path, scenario
        inside = isinstance(watch, LockstepProcesses)
        arguments = build_command_line(scenario) if arguments is None else arguments
        fake = FakeAgent(path, arguments, record, watch, name, logs if inside else None)
        fake.can_start = scenario.cannot_spawn is None
        fake.refusal = make_spawn_failure_listener(path, scenario)
        if inside and logs is not None:
            logs.read_virtual_record = lambda: fake.virtual_record
        return fake

    def _open_builder(self) -> FakeBuilder:
        if self._workshop is None:
            require_startable_fakes()
            with hold_interrupts():
                self._workshop = FakeBuilder()
        return self._workshop

    def _open_guarded_folder(self) -> Path:
        """Give the folder that the broker removes if this process is killed."""
        self._start_lifeline_broker()
        return self._open_builder().folder

    def _start_lifeline_broker(self) -> bytes:
        """Give the broker's address, and start it if it does not run."""
        if self._broker is None or self._broker.poll() is not None:
            self._open_builder()
            with hold_interrupts():
                self._start_broker()
        return self._lifeline

    def _start_broker(self) -> None:
        listener, self._lifeline = bind_socket_in(str(self._open_builder().folder), "lifeline", 1024)
        with contextlib.closing(listener):
            self._open_builder().death_notes_path.touch()
            script = str(Path(__file__).parent / "fakes" / "_broker.py")
            command = [
                find_interpreter(),
                "-IS",
                script,
                str(os.getpid()),
                str(FAKE_LIFETIME_SECONDS),
                str(self._open_builder().folder),
            ]
            self._broker = _BrokerProcess(command, stdin=listener.fileno(), start_new_session=True)
            exclude_from_tracking(self._broker.pid)


def predict_real_seconds(scenario: Scenario, subject: Subject, scale: float | None) -> float | None:
    """Foresee how many real seconds a play takes; None: it is not played there, for whatever reason."""
    try:
        _, foreseen = _bind_and_forecast(scenario, subject)
        pace = choose_pace(foreseen, scale, FAKE_LIFETIME_SECONDS, is_scaled=read_abilities(subject).is_scaled)
    except (NotForRealTime, AgentprocError):
        return None
    return foreseen.duration / NANOSECONDS_PER_SECOND / pace.scale


def _bind_and_forecast(scenario: Scenario, subject: Subject) -> tuple[BoundScenario, RunForecast]:
    """Bind a scenario for the machine's clock, and predict its run.

    Raises:
        NotApplicable: it needs something that the supervisor does not have, or an event loop.
        ScenarioError: the script has no end.
    """
    bound = bind_to_subject(scenario, subject)
    # Below a coordinator the machine can sleep, and there is no event loop that other code could block.
    blocked = None if bound.blocked is not None and bound.blocked.kind == "sleep" and is_virtual() else bound.blocked
    if blocked is not None or scenario.served_agents:  # no run of the kit's own supervisor predicts the latter
        is_async_needed = (blocked is None or blocked.kind == "block") and explain_real_time_only(subject)
        needed = "a supervisor that is async" if is_async_needed else "virtual time"
        raise NotApplicable(needed, 1 if blocked is None else blocked.line)
    foreseen = forecast_run(scenario, scenario.request_limits(subject))
    if foreseen.broken is not None:
        raise foreseen.broken.make_error(scenario)
    return bound, foreseen


def _add_polling_and_reference(
    played: PlayResult,
    polling: PollingDetector,
    scenario: Scenario,
    subject: Subject,
    play_later: Callable[[], PollingDetector],
) -> PlayResult:
    """Give a play in virtual time with what its verdict needs: the reference's view, and how the supervisor polls.

    Args:
        played: the play.
        polling: the wakes of its supervisor.
        scenario: what was played.
        subject: that supervisor.
        play_later: plays it again with a pause before the script, long enough to find a pace, and gives the wakes.
    """
    bound = played.bound
    played = replace(
        played, reference=ReferenceResults.for_play(scenario, subject), unstated=UnstatedLimitResults.for_play(bound)
    )
    if isinstance(played.fault, Spin):
        return played
    naps = find_short_timers(subject, bound, polling)
    period, began = polling.period, polling.began
    if not period and can_be_polling(subject, bound, polling):
        period = play_later().period
        began = naps[0][0] if naps else 0
    if period and not hasattr(subject, "deciders"):
        is_foreseen = not scenario.served_agents
        margin = forecast_run(scenario, scenario.request_limits(subject)).margin if is_foreseen else None
        return replace(played, polling=PollingPace.measure(bound, played.record, period, margin, began))
    return replace(played, polling=PollingPace(0, None, naps=naps)) if naps else played


def _describe_clock(subject: Subject) -> dict[str, str]:
    """Say in a record which clock a play goes by that goes by the machine's, and why if that is not a virtual one."""
    if is_virtual():
        return {"clock": "virtual", "arm": "preload"}
    reason = explain_no_virtual_time(subject)
    return {"clock": "real", "out_of_reach": reason} if reason else {"clock": "real"}


def _blame_broken_fake(played: PlayResult, fakes: Sequence[FakeAgent]) -> PlayResult:
    """Give a play as it is, unless a fake itself failed in it."""
    for fake in fakes:
        if (fault := fake.first_fault) is not None:
            return blame_endless_agent(
                played, fault, lambda: play_bound_scenario(played.bound, DEFAULT_REFERENCE_SUBJECT)
            )
    return played


def _add_input_report_step(bound: BoundScenario) -> BoundScenario:
    """Have an agent report its input first, at each start."""
    program = {**bound.program, "steps": [_INPUT_REPORT_STEP, *bound.program["steps"]]}
    if "then" in program:
        program["then"] = [[_INPUT_REPORT_STEP, *steps] for steps in program["then"]]
    return replace(bound, program=program)
