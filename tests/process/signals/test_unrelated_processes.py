"""A signal to an unrelated process is reported and stopped; the reference supervisor sends none."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import anyio.to_thread
import pytest

from pytest_agentproc.clock import VirtualClock
from pytest_agentproc.harness._signal_guard import _KnownProcess, guard_signals
from pytest_agentproc.harness._unrelated_processes import read_boot_ticks
from pytest_agentproc.procfs import read_stat
from pytest_agentproc.scenario import loads
from pytest_agentproc.subjects import TRIVIAL_SUBJECTS, NeverStartsAgent, StartsAgentAndReturns, reference_supervisor
from pytest_agentproc.subjects._trivial import _report_success, _start_agent
from pytest_agentproc.verdict import Verdict, explain_play, judge_all_expectations
from tests.event_lines import list_lines
from tests.process.stand import CEILING, build_scenario

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_agentproc.harness import ScenarioRunner
    from pytest_agentproc.plays import PlayResult
    from pytest_agentproc.verdict import CheckRow
    from pytest_agentproc.vocabulary import RunReport, RunRequest, Subject

    Process = subprocess.Popen[bytes]
    CallerAction = Callable[[Process, Process], object]

HERE = "tests/process/signals/test_unrelated_processes.py"
SCENARIO = build_scenario("- say: one\n- spawn: helper\n- silence: 5s")
PROGRAM = "import sys\nprint(flush=True)\nsys.stdin.read()"


class Faulty(NeverStartsAgent):
    """Kills its agent as it should, and does one thing more.

    Args:
        deed: the extra action; it is given the agent.
        is_reaped: whether the agent is reaped before.
    """

    name = "faulty"

    def __init__(self, action: Callable[[Process], object], *, is_reaped: bool = False) -> None:
        self.deed = action
        self.is_reaped = is_reaped

    async def run_one(self, order: RunRequest) -> RunReport:
        """Start it, perform the action, and leave no process."""
        process = _start_agent(order)
        if not self.is_reaped:
            self.deed(process)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if self.is_reaped:
            self.deed(process)
        return _report_success(order)


def start_other() -> Process:
    """Start a process that is part of no run, like one of another test or of another worker."""
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, "-IS", "-c", PROGRAM], stdin=pipe, stdout=pipe, start_new_session=True)
    assert process.stdout is not None
    process.stdout.readline()
    seen = read_stat(process.pid)
    while seen is not None and read_boot_ticks() <= seen.started:
        pass  # a process as old as a run, by the kernel's ticks of 10 ms, does not count as older than it
    return process


@pytest.fixture
def other() -> Iterator[Process]:
    """Give a process that was there before, and that must be there afterwards."""
    with start_other() as process:
        yield process
        is_alive = process.poll() is None
        process.kill()
    assert is_alive, "the bystander is dead"


def find_bystander_check(played: PlayResult) -> CheckRow | None:
    """Give the row, if there is one."""
    return next((row for row in judge_all_expectations(played) if row.key == "unrelated_processes"), None)


def signal_by_pidfd(pid: int, signum: int) -> None:
    """Signal a process through a pidfd."""
    pidfd = os.pidfd_open(pid)
    try:
        signal.pidfd_send_signal(pidfd, signum)
    finally:
        os.close(pidfd)


WRONG: dict[str, tuple[CallerAction, str]] = {
    "its own group": (lambda _agent, _other: os.killpg(os.getpgrp(), 15), "TERM to the process group of pytest"),
    "group 0": (lambda _agent, _other: os.kill(0, 9), "KILL to the process group of pytest"),
    "minus its group": (lambda _agent, _other: os.kill(-os.getpgrp(), 1), "HUP to the process group of pytest"),
    "minus 1": (lambda _agent, _other: os.kill(-1, 9), "KILL to every process there is"),
    "group 1": (lambda _agent, _other: os.killpg(1, 9), "KILL to every process there is"),
    "itself": (lambda _agent, _other: os.kill(os.getpid(), 15), "TERM to pytest itself"),
    "itself, INT": (lambda _agent, _other: os.kill(os.getpid(), 2), "INT to pytest itself"),
    "itself, KILL": (lambda _agent, _other: os.kill(os.getpid(), 9), "KILL to pytest itself"),
    "one named alike": (lambda _agent, other: os.kill(other.pid, 9), "KILL to process {other} ({name})"),
    "by pidfd": (lambda _agent, other: signal_by_pidfd(other.pid, 9), "KILL to process {other} ({name})"),
    "its parent": (lambda _agent, _other: os.kill(os.getppid(), 40), "signal 40 to process {parent} ("),
    "another's group": (lambda _agent, other: os.killpg(other.pid, 9), "KILL to process group {other} ({name})"),
}


def read_process_name(pid: int) -> str:
    """Give the kernel's name of a process."""
    with open(f"/proc/{pid}/comm", encoding="utf-8") as file:  # noqa: PTH123  # one line of the kernel's
        return file.read().strip()


@pytest.mark.parametrize("action", WRONG)
def test_a_signal_for_an_unrelated_process_is_reported_and_not_delivered(
    runner: ScenarioRunner, other: Process, action: str
) -> None:
    """Red on `unrelated_processes`, with the victim and the line of the supervisor's own code; this test survives."""
    does, words = WRONG[action]
    played = runner.play(SCENARIO, Faulty(lambda agent: does(agent, other)))
    row = find_bystander_check(played)
    assert row is not None
    assert (row.verdict, row.wanted) == (Verdict.FAILED, "unharmed")
    assert row.seen.startswith(words.format(other=other.pid, name=read_process_name(other.pid), parent=os.getppid()))
    line = (signal_by_pidfd if action == "by pidfd" else does).__code__.co_firstlineno
    assert row.seen.endswith(f", sent by {HERE}:{line + 4 if action == 'by pidfd' else line}")
    assert row.hint
    assert [row.key for row in judge_all_expectations(played) if row.verdict is Verdict.FAILED] == [
        "unrelated_processes"
    ]


@pytest.mark.parametrize("is_real", [False, True], ids=["virtual", "real"])
def test_the_group_of_an_agent_that_leads_none_is_that_of_pytest(
    runner: ScenarioRunner, backend: str, *, is_real: bool
) -> None:
    """The oldest mistake with groups: the agent was started without a session of its own."""

    class Grouped(NeverStartsAgent):
        async def run_one(self, order: RunRequest) -> RunReport:
            process = subprocess.Popen(order.argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, cwd=order.cwd)
            os.killpg(os.getpgid(process.pid), signal.SIGTERM)
            process.kill()
            process.wait()
            return _report_success(order)

    played = (runner.play_real if is_real else runner.play)(build_scenario("- silence: 5s"), Grouped(), backend=backend)
    row = find_bystander_check(played)
    assert row is not None
    assert row.seen.startswith("TERM to the process group of pytest, sent by " + HERE)
    told = explain_play(played, judge_all_expectations(played))
    assert "TERM ==> the process group of pytest, held back (" in told
    assert "start the agent in a session of its own" in told


@pytest.mark.parametrize("send", [os.kill, os.killpg], ids=["kill", "killpg"])
def test_a_pid_that_is_free_by_now_is_noted_and_fails_nothing(
    runner: ScenarioRunner, send: Callable[[int, int], None]
) -> None:
    """It harmed no process this time; the timeline shows its reader that it could have."""

    def late(agent: Process) -> None:
        with pytest.raises(ProcessLookupError):
            # The sender's own name is looked up in `os`, as a supervisor's is.
            getattr(os, send.__name__)(agent.pid, signal.SIGTERM)

    scenario = build_scenario("- say: one\n- silence: 5s")
    played = runner.play(scenario, Faulty(late, is_reaped=True))
    assert find_bystander_check(played) is None
    (note,) = [event.data for event in list_lines(played.record) if "stray" in event.data]
    assert (note["stray"], note["to"], note["who"]) == ("TERM", "freed", "agent")
    assert f"TERM ==> {note['pid']}, the pid that agent had ({HERE}:" in explain_play(
        played, judge_all_expectations(played)
    )


def test_a_pid_that_is_somebody_elses_by_now_is_an_unrelated_processes(other: Process) -> None:
    """Its agent had that number, has ended and is reaped, and the kernel gave the number away."""
    notes: list[Any] = []
    with guard_signals(notes.append, int, lambda _pid: _KnownProcess("agent", is_reaped=True, is_agent=True)):
        os.kill(other.pid, signal.SIGKILL)
    assert [(note.to, note.who) for note in notes] == [("reused", f"{read_process_name(other.pid)}, once agent")]


def signal_own_process(signum: signal.Signals) -> None:
    """Signal this very process, as a program with a handler for the signal may."""
    heard: list[int] = []
    before = signal.signal(signum, lambda number, _frame: heard.append(number))
    try:
        os.kill(os.getpid(), signum)
    finally:
        signal.signal(signum, before)
    assert heard == [signum]


def run_own_program(_agent: Process, _other: Process) -> None:
    """Start a program of one's own, without `subprocess`, and end it."""
    pid = os.posix_spawn("/bin/sleep", ["sleep", "60"], {}, setsid=True)
    os.killpg(pid, signal.SIGCONT)
    os.kill(pid, signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL


def signal_group_of_reaped_leader(agent: Process, _other: Process) -> None:
    """End an agent alone, then its leftovers in its group, whose number is taken while the group has a member."""
    agent.kill()
    agent.wait()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(agent.pid, signal.SIGKILL)


RIGHT: dict[str, CallerAction] = {
    "a probe": lambda _agent, other: os.kill(other.pid, 0),
    "a group's probe": lambda _agent, _other: os.killpg(os.getpgrp(), 0),
    "the agent": lambda agent, _other: os.kill(agent.pid, signal.SIGTERM),
    "the agent by pidfd": lambda agent, _other: signal_by_pidfd(agent.pid, signal.SIGTERM),
    "the agent's group": lambda agent, _other: os.killpg(agent.pid, signal.SIGTERM),
    "a handle of an older process": lambda _agent, other: other.send_signal(signal.SIGCONT),
    "a program of its own": run_own_program,
    "itself, USR1": lambda _agent, _other: signal_own_process(signal.SIGUSR1),
    "itself, TERM": lambda _agent, _other: signal_own_process(signal.SIGTERM),
    "itself, CHLD": lambda _agent, _other: os.kill(os.getpid(), signal.SIGCHLD),
}


@pytest.mark.parametrize("is_real", [False, True], ids=["virtual", "real"])
@pytest.mark.parametrize("action", RIGHT)
def test_what_a_supervisor_may_signal_is_no_bystander(
    runner: ScenarioRunner, other: Process, action: str, *, is_real: bool
) -> None:
    """Allowed: its agent, its own programs, itself if it listens, signal 0 to any one: an accusation must be right."""
    does = RIGHT[action]
    played = (runner.play_real if is_real else runner.play)(SCENARIO, Faulty(lambda agent: does(agent, other)))
    assert [event.data for event in list_lines(played.record) if "stray" in event.data] == []


def test_what_a_dead_agent_left_in_its_group_may_be_signalled(runner: ScenarioRunner) -> None:
    """The number of a group is taken while the group has a member."""

    class Patient(NeverStartsAgent):
        async def run_one(self, order: RunRequest) -> RunReport:
            process = _start_agent(order)
            await anyio.sleep(1)
            signal_group_of_reaped_leader(process, process)
            return _report_success(order)

    played = runner.play(SCENARIO, Patient())
    assert [event.data["process"] for event in list_lines(played.record) if event.data.get("signal") == "KILL"] == [
        "agent",
        "helper",
    ]
    assert [event for event in list_lines(played.record) if "stray" in event.data] == []


def test_a_thread_that_was_there_before_is_not_the_supervisors(runner: ScenarioRunner, other: Process) -> None:
    """A plugin's watchdog may signal whom it likes; a thread of the supervisor's may not."""
    ask, done = threading.Event(), threading.Event()

    def send() -> None:
        os.kill(other.pid, signal.SIGCONT)

    def watchdog() -> None:
        ask.wait(CEILING)
        send()
        done.set()

    def through_the_watchdog(_agent: Process) -> None:
        ask.set()
        assert done.wait(CEILING)

    class Threaded(NeverStartsAgent):
        async def run_one(self, order: RunRequest) -> RunReport:
            await anyio.to_thread.run_sync(send)
            return await KILLER.run_one(order)

    thread = threading.Thread(target=watchdog)
    thread.start()
    try:
        assert find_bystander_check(runner.play(SCENARIO, Faulty(through_the_watchdog))) is None
    finally:
        ask.set()
        thread.join()
    row = find_bystander_check(runner.play(SCENARIO, Threaded()))
    assert row is not None
    assert (
        row.seen
        == f"CONT to process {other.pid} ({read_process_name(other.pid)}), sent by {HERE}:{_find_first_line(send) + 1}"
    )


KILLER = Faulty(lambda _agent: None)


def _find_first_line(function: Callable[..., object]) -> int:
    return function.__code__.co_firstlineno


def test_only_a_subjects_run_is_watched() -> None:
    """A test of ^C under the virtual clock is not the run of a supervisor under test, and gets its signal."""
    plain = os.kill

    async def host() -> None:
        signal_own_process(signal.SIGINT)

    with VirtualClock() as clock:
        clock.run(host)
    assert os.kill is plain


@pytest.mark.parametrize(
    "subject", [reference_supervisor(), *(make() for make in TRIVIAL_SUBJECTS)], ids=lambda subject: str(subject.name)
)
def test_who_signals_nobody_else_passes(runner: ScenarioRunner, subject: Subject) -> None:
    """The check is stated here, so that it has a row; null never started an agent."""
    scenario = loads(
        "scenario: a\nagent: pi\nscript: [{say: a}, {silence: 5s}]\nexpect: {unrelated_processes: unharmed}\n"
    )
    played = runner.play(scenario, subject)
    row = find_bystander_check(played)
    assert row is not None
    assert row.verdict is (Verdict.NOT_EXERCISED if subject.name == "null" else Verdict.PASSED)
    for process in subject.forgotten if isinstance(subject, StartsAgentAndReturns) else ():
        process.wait()
