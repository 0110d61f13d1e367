"""A script for each invocation: which one plays which script, its name in the record, and the checks of a retry."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import anyio

from pytest_agentproc.clock import HostState, NextMove
from pytest_agentproc.harness import InMemoryModel
from pytest_agentproc.record import Record, compute_normal_form
from pytest_agentproc.scenario import Scenario, loads
from pytest_agentproc.subjects import ReferenceSupervisor
from pytest_agentproc.verdict import Verdict, judge_all_expectations
from pytest_agentproc.vocabulary import Policy
from tests.bundled import load_bundled
from tests.event_lines import list_lines
from tests.process.stand import CEILING

if TYPE_CHECKING:
    from pytest_agentproc.harness import FakeAgent, ScenarioRunner
    from pytest_agentproc.vocabulary import RunReport, RunRequest
    from tests.process.stand import Stand

THREE = (
    "scenario: a\nagent: raw\nscripts:\n  - [{say: one}, {exit: 3}]\n  - [{say: two}, {exit: 4}]\n  - [{say: more}]\n"
)
LONG = "scenario: a\nagent: raw\nscripts:\n  - [{silence: 5s}, {exit: 1}]\n  - [{spawn: kid}, {silence: 7s}]\n"


class Retrying(ReferenceSupervisor):
    """Sends the prompt again after a second, once, if nothing came of it."""

    async def run(self, order: RunRequest) -> RunReport:
        """Run, and run again."""
        answer = await super().run(order)
        if answer.outcome == "completed":
            return answer
        await anyio.sleep(1)
        return await super().run(order)


class Impatient(ReferenceSupervisor):
    """Starts a second agent beside a first that says nothing for a second."""

    async def run(self, order: RunRequest) -> RunReport:
        """Start one, and another one."""
        answers: list[RunReport] = []

        async def run(delay: float) -> None:
            await anyio.sleep(delay)
            answers.append(await super(Impatient, self).run(order))

        async with anyio.create_task_group() as group:
            group.start_soon(run, 0)
            group.start_soon(run, 1)
        return answers[-1]


def load_corpus_file(name: str) -> Scenario:
    """Load one file of the corpus."""
    return load_bundled(name)


def list_failed_checks(
    runner: ScenarioRunner, scenario: Scenario, subject: ReferenceSupervisor, backend: str
) -> dict[str, str]:
    """Play, and give the seen values of the keys that failed."""
    rows = judge_all_expectations(runner.play(scenario, subject, backend=backend))
    return {row.key: row.seen for row in rows if row.verdict is Verdict.FAILED}


def make_fake(stand: Stand, runner: ScenarioRunner, text: str) -> FakeAgent:
    """Make a fake under the stand's clock."""
    return runner.make_fake(loads(text), clock=stand.clock)


def test_a_supervisor_that_tries_again_is_red_on_its_starts(runner: ScenarioRunner, backend: str) -> None:
    """And gets the answer that the second script has for it."""
    seen = list_failed_checks(runner, load_corpus_file("crashes-and-is-not-tried-again"), Retrying(), backend)
    status = seen.pop("agent_status")
    assert seen == {"outcome": "completed", "exit_code": "0", "text": '"done"', "elapsed": "0 s", "spawns": "0 s, 2 s"}
    assert status == "code 0, by itself", "of the agent that ended last"


def test_a_supervisor_that_starts_another_one_beside_the_first_is_red_on_those_alive(
    runner: ScenarioRunner, backend: str
) -> None:
    """The report is about two agents in one working copy."""
    seen = list_failed_checks(runner, load_corpus_file("silent-and-is-not-tried-again"), Impatient(), backend)
    assert (seen["spawns"], seen["alive_at_once"]) == ("0 s, 1 s", "2")


def test_each_invocation_plays_the_next_script_and_the_last_one_repeats(
    runner: ScenarioRunner, stand: Stand, backend: str
) -> None:
    """A program under a virtual clock that tries again gets on."""
    fake = make_fake(stand, runner, THREE)

    async def host() -> list[tuple[int, bytes]]:
        completed = [await anyio.run_process(fake.argv, check=False) for _ in range(4)]
        return [(process.returncode, process.stdout) for process in completed]

    assert stand.run(host, backend=backend) == [(3, b"one\n"), (4, b"two\n"), (0, b"more\n"), (0, b"more\n")]


def test_invocations_and_their_children_have_names_of_their_own(
    runner: ScenarioRunner, stand: Stand, backend: str
) -> None:
    """The second process of a name carries its number, in the order of the starts."""
    fake = make_fake(stand, runner, LONG)

    async def host() -> None:
        async with anyio.create_task_group() as group:
            for delay in range(3):
                group.start_soon(later, delay)

    async def later(delay: float) -> None:
        await anyio.sleep(delay)
        await anyio.run_process(fake.argv, check=False)

    stand.run(host, backend=backend)
    born = [(event.data["process"], event.at / 1e9) for event in list_lines(fake.record) if "seen" in event.data]
    assert born == [("agent", 0.0), ("agent 2", 1.0), ("kid", 1.0), ("agent 3", 2.0), ("kid 2", 2.0)]
    fake.finish()


def test_an_agent_without_scripts_of_its_own_is_numbered_too(
    runner: ScenarioRunner, stand: Stand, backend: str
) -> None:
    """The record tells invocations apart, whether or not they differ."""
    fake = make_fake(stand, runner, "scenario: a\nagent: raw\nscript: [{say: one}]\n")

    async def host() -> None:
        for _ in range(2):
            await anyio.run_process(fake.argv)

    stand.run(host, backend=backend)
    assert [event.data["process"] for event in list_lines(fake.record) if "seen" in event.data] == ["agent", "agent 2"]


def test_the_model_names_and_plays_invocations_as_the_lockstep_does(
    runner: ScenarioRunner, stand: Stand, backend: str
) -> None:
    """The agents' side of the record is the same, event for event."""
    fake = make_fake(stand, runner, LONG)

    async def host() -> None:
        started = [await anyio.open_process(fake.argv) for _ in range(3)]
        for process in started:
            await process.wait()
            await process.aclose()

    stand.run(host, backend=backend)
    model = InMemoryModel(Record())
    for _ in range(3):
        model.start_agent(loads(LONG).bind(Policy()).program, 0)
    model.settle_events()
    while (next_one := model.rule.choose_next_move(HostState()))[0] is NextMove.GRANT:
        model.grant(model.processes[next_one[1]])
        model.settle_events()
    assert compute_normal_form(fake.record) == compute_normal_form(model.record)


def test_real_time_counts_invocations_too(runner: ScenarioRunner) -> None:
    """A synchronous program without any clock of ours tries again, and gets the second script."""
    argv = runner.make_fake(loads(THREE)).argv

    def call() -> tuple[int, bytes]:
        completed = subprocess.run(argv, check=False, capture_output=True, cwd="/", env={}, timeout=CEILING)
        return completed.returncode, completed.stdout

    assert [call() for _ in range(4)] == [(3, b"one\n"), (4, b"two\n"), (0, b"more\n"), (0, b"more\n")]


def test_every_script_is_played_once_however_many_start_at_once(runner: ScenarioRunner) -> None:
    """Only the kernel hands out the numbers: it lets one process at a time append its byte."""
    scripts = "".join(f"  - [{{exit: {number}}}]\n" for number in range(24))
    argv = runner.make_fake(loads(f"scenario: a\nagent: raw\nscripts:\n{scripts}")).argv

    def call(_: Any) -> int:
        return subprocess.run(argv, check=False, timeout=CEILING).returncode

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(call, range(24))) == list(range(24))


def test_a_fake_that_is_made_anew_counts_from_one(runner: ScenarioRunner) -> None:
    """The runner uses the folders of fakes again, and none begins where another has stopped."""
    scenario = load_corpus_file("crashes-and-is-not-tried-again")
    for _ in range(2):
        assert {row.verdict for row in judge_all_expectations(runner.play(scenario, ReferenceSupervisor()))} == {
            Verdict.PASSED
        }


def test_a_fork_is_no_invocation(runner: ScenarioRunner) -> None:
    """A descendant is its parent's image: only a start counts."""
    scripts = "[{spawn: {inherits: [stdout], script: [{say: kid}]}}, {silence: 20ms}]"
    argv = runner.make_fake(loads(f"scenario: a\nagent: raw\nscripts: [{scripts}, [{{say: two}}]]\n")).argv
    calls = [subprocess.run(argv, check=True, capture_output=True, timeout=CEILING).stdout for _ in range(2)]
    assert calls == [b"kid\n", b"two\n"]
