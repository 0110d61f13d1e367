"""A caller that only asks for the installed version gets the real CLI's answer, and has started no agent."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import anyio
import pytest

from pytest_agentproc.events import ProcessStarted
from pytest_agentproc.scenario import loads

if TYPE_CHECKING:
    from pytest_agentproc.harness import ScenarioRunner

PROBES = [
    ("claude", "--version", "2.1.332 (Claude Code)\n"),
    ("claude", "-v", "2.1.332 (Claude Code)\n"),
    ("codex", "-V", "codex-cli 0.171.0\n"),
    ("gemini", "--version", "0.61.0\n"),
]
LOGIN = ["auth", "status", "--json"]
TWICE = "scenario: two starts\nagent: claude\nscripts: [[{answer: first}], [{answer: second}]]"


@pytest.mark.parametrize(("dialect", "flag", "answer"), PROBES)
def test_a_fake_reports_the_version_of_the_cli_that_it_stands_for(
    runner: ScenarioRunner, dialect: str, flag: str, answer: str
) -> None:
    """It plays nothing: an agent that never ends answers, too."""
    fake = runner.make_fake(loads(f"scenario: x\nagent: {dialect}\nscript: [{{silence: for ever}}]", "x"))
    completed = subprocess.run([fake.path, flag], capture_output=True, text=True, check=True, timeout=60)
    assert (completed.stdout, completed.stderr) == (answer, "")
    fake.finish()


@pytest.mark.parametrize(
    ("version", "out", "err"),
    [("", "1.6.0\n", ""), (", version: 1.6", "1.6.0\n", ""), (", version: 0.73", "", "0.73.1\n")],
)
def test_a_fake_reports_the_version_that_it_imitates(runner: ScenarioRunner, version: str, out: str, err: str) -> None:
    """A shell's `$(pi --version)` is empty with the real pi 0.73.1, and with its fake."""
    fake = runner.make_fake(
        loads(f"scenario: x\nagent: {{dialect: pi{version}}}\nscript: [{{silence: for ever}}]", "x")
    )
    command = [fake.path, "--version"]
    completed = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True, timeout=60
    )
    assert (completed.stdout, completed.stderr) == (out, err)
    fake.finish()


def test_a_program_that_ends_before_the_answer_breaks_nothing(runner: ScenarioRunner) -> None:
    """A client that asks on the side for the login may be stopped meanwhile, and then its pipe is closed."""
    fake = runner.make_fake(loads("scenario: x\nagent: claude\nscript: [{silence: for ever}]", "x"))
    answer, given = os.pipe()
    os.close(answer)
    with subprocess.Popen([fake.path, *LOGIN], stdin=subprocess.DEVNULL, stdout=given) as asked:
        os.close(given)
        assert asked.wait(60) == 0
    fake.finish()
    assert fake.first_fault is None


def test_a_probe_is_no_start_of_the_agent(runner: ScenarioRunner) -> None:
    """It takes no turn among the scripts, and leaves the record and virtual time alone."""
    with runner.virtual_clock() as clock:
        fake = runner.make_fake(loads(TWICE, "x"), clock=clock)

        async def ask() -> list[str]:
            asked = (["auth", "status"], ["-p", "hi"], ["--version"], ["-p", "hi"])
            commands = [[fake.path, *arguments] for arguments in asked]
            return [(await anyio.run_process(command)).stdout.decode() for command in commands]

        status, first, version, second = clock.run(ask)
        assert ('"loggedIn": true' in status, version) == (True, "2.1.332 (Claude Code)\n")
        assert ("first" in first, "second" in second) == (True, True)
        record = fake.finish()
    born = [event.process for event in record.events if isinstance(event, ProcessStarted)]
    assert born == ["agent", "agent 2"]
