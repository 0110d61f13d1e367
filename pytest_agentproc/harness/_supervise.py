"""One run of a supervisor with one fake: its request, its artifact folder, its caller, and the kept results.

A directory without write access, even for root, is real: it is one of the kernel's own (`/sys`, or else `/proc`), and
is tried before it is used. A full disk is played: every artifact's name leads to `/dev/full`, where the kernel refuses
each byte. A supervisor that writes under other names has to play the full disk itself (`RunRequest.disk`). If it could
write bytes elsewhere, its disk was not full, and the scenario does not apply to it.

A task of asyncio is cancelled once, so its clean-up may wait. A scope, which is the only way on trio and anyio's way on
asyncio, cancels at every await until it is left, unless that is shielded.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import tempfile
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from pytest_agentproc.clock import SystemClock, raise_interrupt_alone, require_backend, silence_loop_warnings
from pytest_agentproc.clock.preload import find_coordinator
from pytest_agentproc.errors import (
    AdapterError,
    CannotContinue,
    ClockError,
    Declined,
    EndlessWait,
    ForeignProgram,
    KitError,
    Spin,
    Stall,
    SubjectError,
    SupervisorCrash,
    UsageError,
)
from pytest_agentproc.events import Event, FaultFound, ProcessStarted, Returned, TimerArmed, TimerFired, Trace
from pytest_agentproc.harness._agent_launch import SESSION_FOLDER, build_environment, find_requested_model
from pytest_agentproc.harness._endless_waits import cancel_endless_run
from pytest_agentproc.harness._leftovers import KeeperScope, SideProcesses
from pytest_agentproc.harness._pipes import PipeCount
from pytest_agentproc.harness._signal_guard import guard_signals, make_participant_finder
from pytest_agentproc.harness.fakes._fake_log import FakeLog
from pytest_agentproc.harness.fakes._refused_starts import simulate_spawn_failures
from pytest_agentproc.plays import PlayResult
from pytest_agentproc.scenario import NotApplicable
from pytest_agentproc.vocabulary import (
    ARTIFACT_TEXTS,
    NANOSECONDS_PER_SECOND,
    WAYS_TO_END_A_PROGRAM,
    RunReport,
    RunRequest,
    read_abilities,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from pytest_agentproc.clock import Clock, VirtualClock
    from pytest_agentproc.harness._wakes import CoordinatorWakes
    from pytest_agentproc.harness.fakes._fake_agent import FakeAgent
    from pytest_agentproc.plays import RealTimePace
    from pytest_agentproc.record import Record
    from pytest_agentproc.scenario import BoundScenario, Scenario
    from pytest_agentproc.vocabulary import CallerAction, Subject


_UNWRITABLE_FOLDERS = ("/sys", "/proc")


class ArtifactDirectory:
    """The directory of one play.

    Args:
        scenario: what it asks for.
        keeps_artifacts: whether the subject keeps any.
        folder: where a directory may be made.

    Raises:
        NotApplicable: the scenario is about artifacts' disk, and the subject has none.
        KitError: no directory of this machine refuses a file.
    """

    def __init__(self, scenario: Scenario, folder: Path, *, keeps_artifacts: bool) -> None:
        self.disk = scenario.disk
        self._line = scenario.host_line
        self.path: str | None = None
        if self.disk and not keeps_artifacts:
            raise NotApplicable("artifacts", self._line)
        if not scenario.asks_for_artifacts or not keeps_artifacts:
            return
        if self.disk == "read_only":
            self.path = _find_read_only_folder()
            return
        self.path = tempfile.mkdtemp(prefix="artifacts-", dir=folder)
        if self.disk == "full":
            for name in ARTIFACT_TEXTS:
                Path(self.path, name).symlink_to("/dev/full")

    def read_files(self) -> Mapping[str, bytes] | None:
        """Give what was kept, by name; None if the subject keeps nothing, or was not asked to.

        Raises:
            NotApplicable: the disk was to be full, and something was written to it.
        """
        if self.path is None:
            return None
        folder = Path(self.path)
        names = ARTIFACT_TEXTS if self.disk == "read_only" else sorted(file.name for file in folder.iterdir())
        found = {name: data for name in names if (data := _read_artifact(folder / name)) is not None}
        if self.disk == "full" and any(found.values()):
            raise NotApplicable("files that meet the kit's full disk", self._line)
        return found

    def close(self) -> None:
        """Remove the directory, if it was made."""
        if self.path is not None and self.disk != "read_only":
            shutil.rmtree(self.path, ignore_errors=True)


def _read_artifact(file: Path) -> bytes | None:
    """Read a regular file; anything else with that name is no artifact."""
    try:
        return file.read_bytes() if stat.S_ISREG(file.lstat().st_mode) else None
    except OSError:
        return None


def _find_read_only_folder() -> str:
    for folder in _UNWRITABLE_FOLDERS:
        probe = Path(folder, f"agentproc-{os.getpid()}")
        try:
            probe.touch()
        except OSError:
            if Path(folder).is_dir():
                return folder
        else:
            with suppress(OSError):
                probe.unlink()
    raise KitError(f"none of {', '.join(_UNWRITABLE_FOLDERS)} is a directory in which no file can be made")


class MemoryStore:
    """The reference supervisor's store in memory: it does what a `FolderStore` does in an `ArtifactDirectory`.

    Args:
        disk: how it fails; see `RunRequest`.
    """

    def __init__(self, disk: str = "") -> None:
        self.files: dict[str, bytes] = {}
        self._disk = disk
        self._parts: dict[str, bytearray] = {}

    def begin(self, name: str) -> None:
        """See `supervisor.FileStore`."""
        if self._disk == "read_only":
            raise PermissionError(13, "Permission denied", name)
        self._parts[name] = bytearray()

    def write(self, name: str, data: bytes) -> None:
        """See `supervisor.FileStore`."""
        if self._disk == "full":
            raise OSError(28, "No space left on device", name)
        self._parts[name] += data

    def finish(self, name: str) -> None:
        """See `supervisor.FileStore`."""
        self.files[name] = bytes(self._parts.pop(name))

    def drop(self, name: str) -> None:
        """See `supervisor.FileStore`."""
        self._parts.pop(name, None)


if TYPE_CHECKING:
    SubjectResult = RunReport | SubjectError | Declined

    AskSubject = Callable[[], Coroutine[Any, Any, SubjectResult]]


EMPTY_REPORT = RunReport()
"""The empty report for a caller that has left."""

_EXTRA_AFTERMATH_SECONDS = 1.0


async def run_until_caller_leaves(
    action: CallerAction, ask: AskSubject, leave: Callable[[], None], scale: float, backend: str
) -> SubjectResult:
    """Let a supervisor work, and cancel it at the instant of the caller's action if it is not done.

    Args:
        action: the instant at which the caller leaves, counted from now.
        ask: starts the supervisor.
        leave: called when the caller leaves.
        scale: the factor by which the event loop's time is faster than its own clock.
        backend: the event loop's name.

    Returns:
        The supervisor's answer, if it gave one. Its exception on cancellation is dropped.
    """
    seconds = compute_leave_instant(action) / NANOSECONDS_PER_SECOND / scale
    cancel_task = backend == "asyncio" and action.value == "task"
    return await (_run_and_cancel_task if cancel_task else _run_and_cancel_scope)(seconds, ask, leave)


def compute_leave_instant(action: CallerAction) -> int:
    """Give the nanoseconds from the beginning to an action that is the first after the prompt."""
    return action.at if action.at is not None else action.after or 0


def compute_aftermath_seconds(bound: BoundScenario, subject: Subject) -> float:
    """Give the seconds for which the event loop continues after a run that was abandoned.

    A supervisor that has killed may leave the reaping to its event loop. After TERM it may leave the rest to a task of
    its own. Both are done if a program continues. The reference supervisor leaves no work open.
    """
    if bound.abandoned is None or hasattr(subject, "deciders"):
        return 0
    policy = bound.policy
    graces = (policy.kill_grace, policy.linger_kill_grace, policy.leftover_kill_grace)
    return sum(grace or 0 for grace in graces) + _EXTRA_AFTERMATH_SECONDS


async def _run_until_program_is_ended(seconds: float, rest: float, ask: AskSubject) -> SubjectResult:
    """Let a program work until it is ended with its caller, and give up one that then lives on for too long.

    The program's adapter ends it, because it alone holds the program's stdin.
    """
    start, subject_result = anyio.current_time(), None
    with anyio.move_on_after(seconds + rest):
        subject_result = await ask()
    has_left = anyio.current_time() >= start + seconds
    return EMPTY_REPORT if has_left or subject_result is None else subject_result


async def _run_and_block_loop(
    action: CallerAction, ask: AskSubject, block: Callable[[CallerAction], None]
) -> SubjectResult:
    """Let a supervisor work, and have other code block its event loop at the instant of the action."""

    async def block_at_instant() -> None:
        await anyio.sleep((action.at or 0) / NANOSECONDS_PER_SECOND)
        block(action)

    async with anyio.create_task_group() as group:
        group.start_soon(block_at_instant)
        subject_result = await ask()
        group.cancel_scope.cancel()
    return subject_result


async def _run_and_cancel_task(seconds: float, ask: AskSubject, leave: Callable[[], None]) -> SubjectResult:
    loop = asyncio.get_running_loop()
    task = loop.create_task(ask())
    has_left = False

    def leave_and_cancel() -> None:
        nonlocal has_left
        has_left = True
        leave()
        task.cancel()

    timer = loop.call_at(loop.time() + seconds, leave_and_cancel)
    try:
        subject_result = await task
    except asyncio.CancelledError:
        if not has_left or not task.cancelled():
            raise
        return EMPTY_REPORT
    finally:
        timer.cancel()
    return EMPTY_REPORT if has_left and isinstance(subject_result, SubjectError | Declined) else subject_result


async def _run_and_cancel_scope(seconds: float, ask: AskSubject, leave: Callable[[], None]) -> SubjectResult:
    has_left = False
    subject_result: SubjectResult = EMPTY_REPORT
    async with anyio.create_task_group() as group:

        async def leave_and_cancel() -> None:
            nonlocal has_left
            await anyio.sleep(seconds)
            has_left = True
            leave()
            scope.cancel()

        group.start_soon(leave_and_cancel)
        with anyio.CancelScope() as scope:
            subject_result = await ask()
        group.cancel_scope.cancel()
    return EMPTY_REPORT if has_left and isinstance(subject_result, SubjectError | Declined) else subject_result


def explain_real_time_only(subject: Subject) -> str:
    """Say why a subject cannot be played in lockstep, so that it needs a process of its own; nothing if it can."""
    abilities = read_abilities(subject)
    return f"{subject.name} is a program" if abilities.needs_keeper else abilities.real_time_only


def explain_no_virtual_time(subject: Subject) -> str:
    """Say why a subject cannot be played in virtual time; nothing if it can, in lockstep or below a coordinator."""
    reason = explain_real_time_only(subject)
    missing = _explain_missing_coordinator() if reason else ""
    return f"{reason}, and {missing}" if missing else ""


@cache
def _explain_missing_coordinator() -> str:
    try:
        find_coordinator()
    except UsageError as error:
        return str(error)
    return ""


def supervise_in_virtual_time(
    subject: Subject,
    bound: BoundScenario,
    fakes: Sequence[FakeAgent],
    clock: VirtualClock,
    backend: str,
    artifacts: ArtifactDirectory,
) -> PlayResult:
    """Have a subject supervise a scenario's fakes in virtual time, and find the processes that are left.

    Raises:
        Declined: the subject did not take the order, and started no agent.
    """
    record = fakes[0].record
    order = _build_request_for_fakes(bound, fakes, clock, record.add)
    order = replace(order, artifacts=artifacts.path, disk=artifacts.disk)

    async def run_subject() -> SubjectResult:
        return await _run_subject(subject, order, bound, backend)

    def block_or_suspend(action: CallerAction) -> None:
        record.add(action.make_event(clock.instant()))
        (clock.suspend_machine if action.kind == "sleep" else clock.block)(action.value / NANOSECONDS_PER_SECOND)

    async def run() -> SubjectResult:
        with guard_signals(record.add, clock.instant, make_participant_finder(clock)):
            blocked, ask = bound.blocked, run_subject
            result = await (ask() if blocked is None else _run_and_block_loop(blocked, ask, block_or_suspend))
            _record_subject_end(record, clock, result)
            if rest := compute_aftermath_seconds(bound, subject):
                await anyio.sleep(rest)
            await pipes.count_dead_pipes()
        return result

    def record_clock_error(error: ClockError) -> None:
        record.add(FaultFound(clock.instant(), "supervisor", error.reason, str(error)))
        marks.append(record.flush_and_count_events())

    clock.hub.most_starts = MAX_AGENT_STARTS
    pipes = PipeCount(bound)
    marks: list[int] = []
    clock.on_fault(record_clock_error)
    answer: RunReport | None = None
    fault: SubjectError | ClockError | None = None
    with SideProcesses(fakes) as others, simulate_spawn_failures(fake.refusal for fake in fakes):
        try:
            result = clock.run(run, backend=backend)
            for fake in fakes:
                fake.watch.collect(record)
            report = _interpret_result(result, bound, record)
            answer, fault = (None, report) if isinstance(report, SubjectError) else (report, None)
        except ClockError as error:
            fault = _find_reach_error(error) or error
            if not marks:
                record_clock_error(error)
            record.truncate_events(marks[0])  # its actions after the cancel take real time, and belong to no verdict
        others.record_leftovers(record, clock.instant())
    return PlayResult(bound, record, answer, fault, artifacts.read_files(), pipes_left=pipes.left)


def _find_reach_error(error: ClockError) -> AdapterError | None:
    """Give the message for a supervisor that virtual time cannot follow; None: the error itself describes it.

    A part of it works in real time and is not visible: a thread that waits for the agent, or another program. Whether
    it would have ended is not known.
    """
    if not isinstance(error, Stall | ForeignProgram):
        return None
    words = str(error).partition("\n")[0]  # the remedy after it is for a test
    return AdapterError(f"virtual time cannot go with it: {error.reason}: {words}\n{_PLAY_IN_REAL_TIME_REMEDY}")


MAX_AGENT_STARTS = 50
"""An agent that crashes seldom may be restarted for ever; no caller's script lasts for so many starts."""
_PLAY_IN_REAL_TIME_REMEDY = (
    "this says nothing of the supervisor; play it in real time (--clock real; in pytest --agentproc-clock=real)"
)


def supervise_in_real_time(
    subject: Subject,
    bound: BoundScenario,
    fakes: Sequence[FakeAgent],
    pace: RealTimePace,
    backend: str,
    artifacts: ArtifactDirectory,
    wakes: CoordinatorWakes | None,
) -> PlayResult:
    """Have a subject supervise a scenario's fakes in real time, and find the processes that are left.

    Raises:
        Declined: the subject did not take the order, and started no agent.
    """
    require_backend(backend)
    record, clock = fakes[0].record, fakes[0].watch.clock
    assert isinstance(clock, SystemClock)
    order = _build_request_for_fakes(bound, fakes, clock, record.add)
    sessions = tuple(replace(session, scale=pace.scale) for session in order.sessions)
    order = replace(order, artifacts=artifacts.path, disk=artifacts.disk, scale=pace.scale, sessions=sessions)
    results: list[SubjectResult] = []
    faults: list[EndlessWait | Spin] = []

    async def run_subject() -> SubjectResult:
        return await _run_subject(subject, order, bound, backend)

    def suspend(action: CallerAction) -> None:
        assert wakes is not None, "only below a coordinator the machine can sleep"
        record.add(action.make_event(clock.instant()))
        wakes.suspend_machine(action.value)

    async def run() -> None:
        if backend == "asyncio":
            silence_loop_warnings()
        clock.start()
        async with cancel_endless_run(pace, wakes, faults, fakes) as scope:
            with guard_signals(record.add, clock.instant):
                blocked, ask = bound.blocked, run_subject
                ended = await (ask() if blocked is None else _run_and_block_loop(blocked, ask, suspend))
                if not (scope.cancel_called and isinstance(ended, SubjectError | Declined)):
                    results.append(ended)
                    _record_subject_end(record, clock, ended)
                    if rest := compute_aftermath_seconds(bound, subject):
                        await anyio.sleep(rest / pace.scale)

    with (
        SideProcesses(fakes, adopts=True) as others,
        KeeperScope(fakes, wanted=read_abilities(subject).needs_keeper) as kept,
        simulate_spawn_failures(fake.refusal for fake in fakes),
    ):
        order = replace(order, keeper=kept.keeper)
        for fake in fakes:
            assert isinstance(fake.watch, FakeLog)
            fake.watch.is_child = others.has_started_process
        with raise_interrupt_alone():
            anyio.run(kept.run_guarded, run, backend=backend)
        fault = faults[0] if not results or (faults and isinstance(faults[0], Spin)) else None
        lateness = max(*(fake.watch.collect(record) for fake in fakes), _find_largest_timer_delay(record))
        answer = fault or _interpret_result(results[0], bound, record)
        kept.record_leftovers(record, clock.instant())
        others.record_leftovers(record, clock.instant())
    if isinstance(answer, ClockError):
        record.add(FaultFound(clock.instant(), "supervisor", answer.reason, str(answer)))
    if isinstance(answer, SubjectError | ClockError):
        return PlayResult(bound, record, None, answer, artifacts.read_files(), pace, lateness)
    return PlayResult(bound, record, answer, None, artifacts.read_files(), pace, lateness)


async def _run_subject(subject: Subject, order: RunRequest, bound: BoundScenario, backend: str) -> SubjectResult:
    left = bound.abandoned
    ends_program = left is not None and left.value in WAYS_TO_END_A_PROGRAM
    if ends_program:
        order = replace(order, left=left)

    async def ask_subject() -> SubjectResult:
        try:
            return await subject.run(order)
        except (SubjectError, Declined) as error:
            return error

    def record_leave() -> None:
        assert left is not None
        order.trace(left.make_event(order.clock.instant()))

    if left is None:
        return await ask_subject()
    if ends_program:
        seconds, rest = compute_leave_instant(left) / NANOSECONDS_PER_SECOND, compute_aftermath_seconds(bound, subject)
        return await _run_until_program_is_ended(seconds / order.scale, rest / order.scale, ask_subject)
    return await run_until_caller_leaves(left, ask_subject, record_leave, order.scale, backend)


def _interpret_result(subject_result: SubjectResult, bound: BoundScenario, record: Record) -> RunReport | SubjectError:
    """Read what a subject gave in the light of the record.

    A decline that came after the start of an agent is an adapter error. So is an exception out of the adapter alone, if
    no agent was started. A start that cannot succeed raises `OSError` there, and is the supervisor's own work.

    Raises:
        Declined: no agent was started, or the kit itself found that the session cannot be opened.
    """
    was_started = any(isinstance(event, ProcessStarted) for event in record.events)
    if isinstance(subject_result, SupervisorCrash) and subject_result.is_in_adapter and not was_started:
        is_failed_start = bound.scenario.cannot_spawn is not None and isinstance(subject_result.__cause__, OSError)
        return subject_result if is_failed_start else AdapterError(str(subject_result))
    if not isinstance(subject_result, Declined):
        return subject_result
    if was_started and not isinstance(subject_result, CannotContinue):
        reason = subject_result.reason()
        return AdapterError(f"it declined the order after it had started an agent: {reason}\n{_DECLINE_EARLIER_REMEDY}")
    raise subject_result


_DECLINE_EARLIER_REMEDY = "raise Declined before an agent is started, or give an answer"


def _record_subject_end(record: Record, clock: Clock, subject_result: SubjectResult) -> None:
    """Note that a subject was done, that it broke, or that it declined."""
    end: Event = Returned(clock.instant(), "supervisor")
    if isinstance(subject_result, Declined):
        end = FaultFound(end.at, "supervisor", "decline", subject_result.reason())
    if isinstance(subject_result, SubjectError):
        reason = (
            "exception" if isinstance(subject_result, SupervisorCrash) else subject_result.reason
        )  # whose it is follows from the record
        end = FaultFound(end.at, "supervisor", reason, str(subject_result).partition("\n")[0])
    record.add(end)


def _find_largest_timer_delay(record: Record) -> int:
    """Give the most nanoseconds by which a timer of the supervisor fired late."""
    armed: dict[tuple[str, str], int] = {}
    latest = 0
    for event in record.events:
        if isinstance(event, TimerArmed):
            armed[event.session, event.timer] = event.armed
        elif isinstance(event, TimerFired):
            latest = max(latest, event.at - armed.get((event.session, event.timer), event.at))
    return latest


def _build_request_for_fakes(
    bound: BoundScenario, fakes: Sequence[FakeAgent], clock: Clock, trace: Trace
) -> RunRequest:
    """Give the order for all fakes of a scenario, one for each session if it has several."""
    if not bound.parts:
        return build_run_request(bound, fakes[0], clock, trace)
    pairs = zip(bound.parts.items(), fakes, strict=True)
    sessions = tuple(replace(build_run_request(part, fake, clock, trace), name=name) for (name, part), fake in pairs)
    return RunRequest(
        argv=(),
        env={},
        cwd=SESSION_FOLDER,
        dialect="",
        mode="",
        prompt="",
        prompt_by="argv",
        policy=bound.policy,
        clock=clock,
        trace=trace,
        drive=bound.drive,
        sessions=sessions,
    )


def build_run_request(bound: BoundScenario, fake: FakeAgent, clock: Clock, trace: Trace) -> RunRequest:
    """Give the order for one run of a fake."""
    scenario = bound.scenario
    return RunRequest(
        argv=tuple(fake.argv),
        env=build_environment(scenario, fake.folder),
        cwd=SESSION_FOLDER if scenario.is_session else fake.folder,
        dialect=scenario.dialect,
        contributed=scenario.added_dialect,
        mode=scenario.mode,
        prompt=scenario.prompt,
        prompt_by=scenario.prompt_by,
        policy=bound.policy,
        clock=clock,
        trace=trace,
        model=find_requested_model(scenario),
        drive=bound.drive,
        handler=bound.handler,
        hooks=bound.hooks,
        continues=bound.continues,
    )
