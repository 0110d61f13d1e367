"""Scenarios in real time, with real processes: a right supervisor is green, a wrong one red, no process is left."""

from __future__ import annotations

import asyncio
import gc
import subprocess
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from pytest_agentproc import defects, subjects
from pytest_agentproc.harness import NotForRealTime, ScenarioRunner, _pace, forecast_run
from pytest_agentproc.harness._pace import choose_pace
from pytest_agentproc.harness.fakes._fake_log import FakeLog
from pytest_agentproc.scenario import loads
from pytest_agentproc.verdict import Verdict, choose_overall_verdict, explain_play, judge_all_expectations
from pytest_agentproc.verdict._facts import find_gone_at, list_agent_starts, list_leaks
from tests.bundled import load_bundled
from tests.event_lines import list_lines
from tests.process.stand import CEILING, SECOND, build_scenario, is_gone, start_with_used_pid

if TYPE_CHECKING:
    from pytest_agentproc.plays import PlayResult
    from pytest_agentproc.scenario import Scenario
    from pytest_agentproc.vocabulary import RunReport, RunRequest, Subject

SCALE = 40
NAMED = (
    "big-prompt-late-reader",
    "byte-a-minute",
    "cannot-be-executed[pi]",
    "closes-stdout-talks-on",
    "exits-without-a-result",
    "gemini-batch-of-25",
    "gemini-json-answer",
    "gemini-json-cut-anywhere",
    "gemini-stream-without-result",
    "gemini-text-killed",
    "killed-from-outside",
    "last-line-without-newline",
    "line-as-long-as-can-be",
    "one-number-is-silence",
    "stderr-only",
    "stdin-ends-with-the-prompt[raw]",
)
"""Scenarios that real time can judge at that scale; the checks of a release play them all."""


def load_scenario(name: str) -> Scenario:
    """Load a scenario of the corpus."""
    return load_bundled(name)


def play_real(
    runner: ScenarioRunner, reported: Scenario, subject: Subject | None = None, backend: str = "asyncio"
) -> PlayResult:
    """Play in real time, as fast as can be."""
    return runner.play_real(reported, subject or subjects.reference_supervisor(), backend=backend)


def test_the_named_scenarios_suit_real_time() -> None:
    """All of them together within ninety seconds."""
    reference_supervisor = subjects.reference_supervisor()
    seconds = 0.0
    for name in NAMED:
        told = load_scenario(name)
        foreseen = forecast_run(told, told.request_limits(reference_supervisor))
        assert choose_pace(foreseen, SCALE, 300).scale == SCALE
        seconds += foreseen.duration / 1e9 / SCALE
    assert seconds < 90


@pytest.mark.parametrize(
    "name",
    [
        "exits-3-after-a-good-result",
        "gemini-json-cut-anywhere",
        "killed-from-outside",
        "lingers-and-ignores-term",
        "one-write-of-noise-and-the-answer[codex]",
    ],
)
def test_a_scenario_is_green_in_real_time(runner: ScenarioRunner, name: str, backend: str) -> None:
    """Every check of it, times too: not before, and not long after."""
    run = play_real(runner, load_scenario(name), backend=backend)
    rows = judge_all_expectations(run)
    assert choose_overall_verdict(rows) is Verdict.PASSED, explain_play(run, rows)


def test_a_tie_is_not_for_real_time(runner: ScenarioRunner) -> None:
    """The event that is faster by chance would win."""
    with pytest.raises(NotForRealTime, match="at the same time"):
        play_real(runner, load_scenario("exits-at-the-deadline"))


def list_failed_keys(run: PlayResult) -> list[str]:
    """List the keys of the rows that failed."""
    return [row.key for row in judge_all_expectations(run) if row.verdict is Verdict.FAILED]


@pytest.mark.parametrize(
    ("defect", "name", "key"),
    [
        ("raw-exit-code", "exits-3-after-a-good-result", "exit_code"),
        ("one-grace", "lingers-and-ignores-term", "returned"),
    ],
)
def test_a_defect_is_red_in_real_time(runner: ScenarioRunner, defect: str, name: str, key: str) -> None:
    """On the key on which it is red in virtual time."""
    told = load_scenario(name)
    assert told.catches[defect] == key
    assert key in list_failed_keys(
        play_real(runner, told, subjects.ReferenceSupervisor(defect, defects.find_defect(defect).deciders))
    )


def test_who_does_not_return_is_given_up(runner: ScenarioRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    """That fails the outcome, and ends the agent."""
    monkeypatch.setattr(_pace, "_SECONDS_AFTER_EXPECTED_END", 0.5)
    run = play_real(
        runner,
        load_scenario("lingers-and-ignores-term"),
        subjects.ReferenceSupervisor("w", defects.find_defect("waits-for-exit").deciders),
    )
    (outcome,) = [row for row in judge_all_expectations(run) if row.key == "outcome"]
    assert (outcome.verdict, outcome.seen) == (
        Verdict.FAILED,
        "endless wait: the supervisor did not return within 2 real seconds",
    )


def test_leftovers_of_a_supervisor_reach_no_later_test(
    runner: ScenarioRunner, caplog: pytest.LogCaptureFixture
) -> None:
    """The garbage collector runs at any time: its finds from an ended run belong to no later test."""
    gc.disable()
    try:
        run = runner.play_real(build_scenario("- say: ready"), LeavesFailedFuture())
    finally:
        gc.enable()
    gc.collect()
    assert run.fault is None
    assert caplog.records == []


def test_what_was_left_is_named_and_ended(runner: ScenarioRunner) -> None:
    """A supervisor that looks away leaves an agent that lives, and a verdict that says so."""
    forgetful = subjects.StartsAgentAndReturns()
    run = runner.play_real(build_scenario("- say: ready\n- silence: for ever"), forgetful, scale=4)
    rows = {row.key: row for row in judge_all_expectations(run)}
    assert (rows["leaks"].verdict, rows["leaks"].seen) == (Verdict.FAILED, "agent (still alive)")
    (agent,) = forgetful.forgotten
    assert is_gone(agent.pid)
    agent.wait()


class Twice(subjects.ReferenceSupervisor):
    """Starts the agent a second time, whatever the first one did."""

    async def run(self, order: RunRequest) -> RunReport:
        """Run, and run again."""
        await super().run(order)
        return await super().run(order)


class LeavesFailedFuture(subjects.ReferenceSupervisor):
    """Leaves a future with an exception that no code retrieves."""

    async def run(self, order: RunRequest) -> RunReport:
        """Leave it to the garbage collector."""
        future = asyncio.get_running_loop().create_future()
        future.set_exception(BrokenPipeError("nobody looks"))
        own: list[object] = [future]
        own.append(own)
        return await super().run(order)


class StartsTwoAgents(subjects.ReferenceSupervisor):
    """Starts two agents at once."""

    async def run(self, order: RunRequest) -> RunReport:
        """Run both to their ends."""
        answers: list[RunReport] = []

        async def run() -> None:
            answers.append(await super(StartsTwoAgents, self).run(order))

        async with anyio.create_task_group() as group:
            group.start_soon(run)
            group.start_soon(run)
        return answers[-1]


def test_each_of_two_that_live_at_once_has_its_own_end(runner: ScenarioRunner) -> None:
    """The running one is not mistaken for the one whose exit was seen first."""
    told = loads("scenario: a\nagent: raw\nscripts:\n  - [{silence: 3s}]\n  - [{silence: 30s}]\n")
    record = runner.play_real(told, StartsTwoAgents("both"), scale=100).record
    ends = {
        event.data["process"]: event.at for event in list_lines(record) if event.code == "x" and "by" not in event.data
    }
    lines = {
        event.data["process"]: event.data["line"] for event in list_lines(record) if event.data.get("step") == "sleep"
    }
    assert {lines[name]: ends[name] >= 30 * SECOND for name in ends} == {4: False, 5: True}


def test_a_second_start_ends_after_it_began(runner: ScenarioRunner) -> None:
    """The supervisor's sight of the first exit says nothing of the second."""
    told = loads("scenario: a\nagent: raw\nscripts:\n  - [{say: one}, {exit: 3}]\n  - [{say: two}]\n")
    record = play_real(runner, told, Twice("twice")).record
    ((_, first), (name, second)) = list_agent_starts(record)
    ended, ended_too = find_gone_at(record, "agent"), find_gone_at(record, name)
    assert ended is not None
    assert ended_too is not None
    assert first < ended <= second < ended_too


def test_a_zombie_that_a_thread_is_about_to_reap_is_none(
    runner: ScenarioRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loops reap in threads of theirs: it has the time in which a process may still go."""
    fake = runner.make_fake(loads("scenario: a\nagent: raw\nscript: [{say: bye}]\n"))
    state, reap = vars(FakeLog)["_find_leftover_state"], Event()

    def seen(logs: FakeLog, participant: Any) -> str | None:
        told: str | None = state(logs, participant)
        if told == "zombie":
            reap.set()
        return told

    monkeypatch.setattr(FakeLog, "_find_leftover_state", seen)
    with subprocess.Popen(fake.argv, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.read() == b"bye\n"
        with ThreadPoolExecutor(1) as pool:
            done = pool.submit(lambda: reap.wait(CEILING) and process.wait())
            left = list_leaks(fake.finish())
            reap.set()
            assert done.result() == 0
    assert left == []


def test_a_real_time_fake_keeps_a_record(runner: ScenarioRunner) -> None:
    """With any starter: its input and actions, counted from its own start."""
    fake = runner.make_fake(
        build_scenario(
            "- when: {signal: TERM}\n  do: [{exit: 5}]\n- wait_for: {stdin: go}\n- say: ready\n- silence: for ever"
        )
    )
    with subprocess.Popen(fake.argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"go\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"ready\n"
        process.terminate()
        assert process.wait() == 5
        record = fake.finish()
    lines = [
        (event.code, event.data.get("bytes") or event.data.get("signal") or event.data.get("code"))
        for event in list_lines(record)
    ]
    assert [event for event in lines if event[1] is not None] == [
        ("i", b"go\n"),
        ("o", b"ready\n"),
        ("s", "TERM"),
        ("x", 5),
    ]
    assert record.events[0].at == 0
    assert [event.at for event in list_lines(record)] == sorted(event.at for event in list_lines(record))


def test_each_start_of_a_real_time_fake_has_its_own_name(runner: ScenarioRunner) -> None:
    """As in virtual time, and each with its own words."""
    fake = runner.make_fake(loads("scenario: a\nagent: raw\nscripts:\n  - [{say: one}, {exit: 3}]\n  - [{say: two}]\n"))
    codes = [subprocess.run(fake.argv, check=False, capture_output=True).returncode for _ in range(2)]
    lines = [(event.data["process"], event.data["bytes"]) for event in list_lines(fake.finish()) if event.code == "o"]
    assert (codes, lines) == ([3, 0], [("agent", b"one\n"), ("agent 2", b"two\n")])


def test_a_real_time_fake_whose_pid_comes_again_is_somebody_new(runner: ScenarioRunner) -> None:
    """The kernel gives a number again after a full cycle; both are reported, each with its own end."""
    fake = runner.make_fake(loads("scenario: a\nagent: raw\nscripts:\n  - [{say: one}, {exit: 3}]\n  - [{say: two}]\n"))

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(fake.argv, stdout=subprocess.PIPE)

    with start() as first:
        first.communicate()
    with start_with_used_pid(first.pid, start) as second:
        second.communicate()
    events = list_lines(fake.finish())
    assert [(event.data["process"], event.data["bytes"]) for event in events if event.code == "o"] == [
        ("agent", b"one\n"),
        ("agent 2", b"two\n"),
    ]
    ends = [(event.at, event.data["process"], event.data["code"]) for event in events if event.code == "x"]
    (births,) = {tuple(event.at for event in events if event.data.get("seen"))}
    assert [end[1:] for end in ends] == [("agent", 3), ("agent 2", 0)]
    assert births[0] <= ends[0][0] <= births[1] <= ends[1][0]
    assert [event for event in events if "leaked" in event.data] == []
