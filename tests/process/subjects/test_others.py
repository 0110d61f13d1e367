"""Supervisors that start other programs beside their agents: their leftovers are leaks, unrelated processes are not."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import anyio
import pytest

from pytest_agentproc import subjects
from pytest_agentproc.verdict import Verdict, explain_play, judge_all_expectations
from pytest_agentproc.vocabulary import RunReport
from tests.event_lines import list_lines
from tests.process.stand import build_scenario, is_gone

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_agentproc.harness import ScenarioRunner
    from pytest_agentproc.plays import PlayResult
    from pytest_agentproc.vocabulary import LimitsRequest, Policy, RunRequest

SLEEP = ["sleep", "1000"]
DAEMON = "import os; os.fork() and os._exit(0); os.setsid(); os.execve('/bin/sleep', ['sleep', '1000'], {})"


class SupervisorWithHelpers(subjects.ReferenceSupervisor):
    """The reference supervisor, which runs its agent and has some help besides."""

    def __init__(self, help_me: Callable[[], object]) -> None:
        super().__init__("helped")
        self._help_me = help_me
        self.kept: object = None

    async def run(self, order: RunRequest) -> RunReport:
        """Get help, and run the agent."""
        self.kept = self._help_me()
        return await super().run(order)


def judge_leaks(played: PlayResult) -> tuple[Verdict, str]:
    """Give the verdict on leaks, and the leaks seen."""
    [row] = [row for row in judge_all_expectations(played) if row.key == "leaks"]
    return row.verdict, row.seen


WAYS: dict[str, Callable[[], object]] = {
    "child": lambda: subprocess.Popen(SLEEP, start_new_session=True),
    "orphan": lambda: subprocess.run("sleep 1000 >/dev/null 2>&1 &", shell=True, check=True),
    "daemon": lambda: subprocess.run([sys.executable, "-IS", "-c", DAEMON], env={}, check=True),
}


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_another_program_that_is_left_in_real_time_is_a_leak(runner: ScenarioRunner, way: str) -> None:
    """A supervisor that cleans up its agents only is no clean supervisor; the program does not live on."""
    subject = SupervisorWithHelpers(WAYS[way])
    run = runner.play_real(build_scenario("- say: hello"), subject)
    verdict, seen = judge_leaks(run)
    line = WAYS[way].__code__.co_firstlineno
    place = os.path.relpath(__file__)
    assert (verdict, seen) == (Verdict.FAILED, f"sleep 1000 started at {place}:{line} (still alive)")
    [pid] = [event.data["pid"] for event in list_lines(run.record) if "leaked" in event.data]
    assert is_gone(pid)
    assert "sleep 1000" in explain_play(run, judge_all_expectations(run))


SERVES = """
import signal, socket
signal.alarm(60)
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
signal.pause()
"""


@pytest.mark.slow
@pytest.mark.parametrize("is_real", [True, False])
def test_a_server_that_is_left_is_named_with_its_port(runner: ScenarioRunner, *, is_real: bool) -> None:
    """It is asked while it lives. The port is no part of the record that runs are compared by, nor of the timeline."""
    ports = []

    def serve() -> int:
        here, there = os.pipe()
        words = [sys.executable, "-c", SERVES]
        pid = os.posix_spawn(words[0], words, {}, file_actions=[(os.POSIX_SPAWN_DUP2, there, 1)])
        os.close(there)
        with os.fdopen(here) as said:
            ports.append(int(said.readline()))
        return pid

    subject = SupervisorWithHelpers(serve)
    play = runner.play_real if is_real else runner.play
    runs = [play(build_scenario("- say: hello"), subject) for _ in range(2)]
    for run, port in zip(runs, ports, strict=True):
        text = explain_play(run, judge_all_expectations(run))
        assert f"MiB of memory, listens on 127.0.0.1:{port}\n" in text
        assert text.count(f":{port}") == 1
    if not is_real:
        assert runs[0].record.digest() == runs[1].record.digest()


@pytest.mark.slow
def test_a_daemon_beside_the_process_for_programs_in_virtual_time_is_a_leak(runner: ScenarioRunner) -> None:
    """The runner keeps that process for its next play, and it starts no daemon of the supervisor."""
    runner.play(build_scenario("- say: hello"), subjects.Command(["timeout", "60", "{agent}"]))
    verdict, _ = judge_leaks(runner.play_real(build_scenario("- say: hello"), SupervisorWithHelpers(WAYS["daemon"])))
    assert verdict is Verdict.FAILED


def test_another_program_that_is_left_in_virtual_time_is_a_leak(runner: ScenarioRunner) -> None:
    """A program that the clock does not know is found among the children."""
    subject = SupervisorWithHelpers(lambda: os.posix_spawn("/bin/sleep", SLEEP, {}))
    verdict, seen = judge_leaks(runner.play(build_scenario("- say: hello"), subject))
    assert verdict is Verdict.FAILED
    assert seen.startswith("sleep 1000 started at ")
    assert is_gone(int(str(subject.kept)))


AROUND = "import signal, subprocess, sys; signal.alarm(60); subprocess.run(sys.argv[1:]); signal.pause()"


@pytest.mark.slow
def test_a_program_around_an_agent_that_is_left_in_virtual_time_is_a_leak(runner: ScenarioRunner) -> None:
    """One in Python, too, that has the fake's name among its words as the fake has."""
    kept = []

    def start(order: RunRequest) -> int:
        here, there = os.pipe()
        words = [sys.executable, "-c", AROUND, *order.argv]
        kept.append(os.posix_spawn(words[0], words, order.env, file_actions=[(os.POSIX_SPAWN_DUP2, there, 1)]))
        os.close(there)
        return here

    async def leaves(order: RunRequest) -> str:
        stdout = start(order)
        await anyio.wait_readable(stdout)
        os.close(stdout)
        return "completed"

    verdict, seen = judge_leaks(runner.play(build_scenario("- say: hello"), subjects.Function(leaves)))
    assert (verdict, seen.count("import signal")) == (Verdict.FAILED, 1)
    assert is_gone(kept[0])


def test_help_that_is_waited_for_is_no_leak(runner: ScenarioRunner) -> None:
    """It may run beside the agents as long as it is over with them."""
    subject = SupervisorWithHelpers(lambda: os.waitpid(os.posix_spawn("/bin/true", ["true"], os.environ), 0))
    assert judge_leaks(runner.play(build_scenario("- say: hello"), subject)) == (Verdict.PASSED, "none")


@pytest.mark.slow
def test_a_bystander_is_neither_a_leak_nor_ended(runner: ScenarioRunner) -> None:
    """A process beside the run was there before, or belongs to another thread."""
    with subprocess.Popen(SLEEP) as bystander:
        for play in (runner.play, runner.play_real):
            assert judge_leaks(play(build_scenario("- say: hello"), subjects.reference_supervisor())) == (
                Verdict.PASSED,
                "none",
            )
            assert bystander.poll() is None
        bystander.kill()


@pytest.mark.slow
def test_an_orphan_of_a_fake_that_is_gone_is_nobodys_zombie(runner: ScenarioRunner) -> None:
    """The harness adopts it, so the harness reaps it; its supervisor returned when the pipe that it held was closed."""
    script = "- spawn: {id: helper, for: 1s, inherits: [stdout]}\n- say: hello"
    assert judge_leaks(runner.play_real(build_scenario(script), subjects.UsesSubprocessRun())) == (
        Verdict.PASSED,
        "none",
    )


class OrphaningSupervisor:
    """A supervisor that starts the agent through a program that ends before the agent does."""

    name, keeps_artifacts, holds_sessions = "orphaning", False, False

    def policy(self, request: LimitsRequest) -> Policy:
        """Have the limits of a bare `subprocess.run`."""
        return subjects.UsesSubprocessRun().policy(request)

    async def run(self, order: RunRequest) -> RunReport:
        """Wait for the end of the agent's stdout."""
        argv = ["/bin/sh", "-c", '"$@" & exit 0', "sh", *order.argv]
        completed = await anyio.run_process(argv, env=order.env, stdin=subprocess.DEVNULL, check=False)
        return RunReport(outcome="completed", text=completed.stdout.decode())


@pytest.mark.slow
def test_an_orphan_that_process_1_has_yet_to_reap_is_no_leak(runner: ScenarioRunner) -> None:
    """It has exited, and its supervisor is not its parent, so its zombie is no work of the supervisor."""
    played = runner.play_real(build_scenario("- silence: 1s\n- say: hello"), OrphaningSupervisor())
    assert judge_leaks(played) == (Verdict.PASSED, "none")
