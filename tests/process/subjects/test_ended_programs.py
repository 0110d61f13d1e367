"""A program that is ended together with its caller: its terminal is closed, or it is killed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.scenario import NotApplicable, loads
from pytest_agentproc.subjects import Function, load_command_file, reference_supervisor
from pytest_agentproc.verdict import choose_overall_verdict, judge_all_expectations

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_agentproc.harness import ScenarioRunner
    from pytest_agentproc.subjects import Command
    from pytest_agentproc.vocabulary import RunRequest

pytestmark = pytest.mark.slow

FRONT = """\
import os, signal, subprocess, sys, threading
OWN = "own" in sys.argv[1]
agent = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=OWN)


def end(*_):
    agent.kill()
    os._exit(0)


def pass_on():
    for line in agent.stdout:
        sys.stdout.buffer.write(line)
        sys.stdout.flush()


if "ends-it" in sys.argv[1]:
    signal.signal(signal.SIGHUP, end)
if "deaf" in sys.argv[1]:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    os.dup(agent.stdin.fileno())
threading.Thread(target=pass_on, daemon=True).start()
for line in sys.stdin.buffer:
    agent.stdin.write(line)
    agent.stdin.flush()
if "listens" in sys.argv[1]:
    agent.kill()
if "deaf" in sys.argv[1]:
    threading.Event().wait()
"""
"""A program that passes the lines of an ACP agent on; its first word says how it holds that agent."""

REFERENCE = """\
import asyncio, json, os, signal, sys
from pytest_agentproc.supervisor import Policy, open_session

_, containment, *agent = sys.argv


async def serve():
    loop, lines = asyncio.get_running_loop(), asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    loop.add_signal_handler(signal.SIGHUP, asyncio.current_task().cancel)
    turns = set()

    async def answer(number, prompt):
        turn = await session.prompt(prompt)
        say(number, {"stopReason": "end_turn" if turn.outcome == "completed" else "cancelled"})

    async with open_session(agent, dialect="acp", policy=Policy(containment=containment)) as session:
        async for line in lines:
            message = json.loads(line)
            if message["method"] == "session/prompt":
                turns.add(asyncio.create_task(answer(message["id"], message["params"]["prompt"][0]["text"])))
            elif "id" in message:
                say(message["id"], {"sessionId": "s"})


def say(number, result):
    print(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}), flush=True)


asyncio.run(serve())
"""
"""The reference supervisor as a program: an ACP agent for its editor, which runs an ACP agent."""

SESSION = """\
scenario: the program that holds a session is ended
agent: acp
drive: [{{prompt: hi}}, {before}{{abandon: {{by: {by}}}, at: 5s}}]
script: [{{wait_for: prompt 1}}, {rest}]
expect: {{leaks: []}}
"""
STATES = {"idle": ("{wait_for: turn 1}, ", "{answer: done}"), "busy": ("", "{silence: for ever}")}


def describe_program(folder: Path, text: str, word: str, more: str = 'sessions = "acp"') -> Command:
    """Describe a program by a file, as a user does."""
    (folder / "program.py").write_text(text, "utf-8")
    file = folder / "mine.toml"
    file.write_text(f'command = "{sys.executable} {folder}/program.py {word} {{agent}}"\n{more}\n', "utf-8")
    return load_command_file(file)


def judge_ended_session(runner: ScenarioRunner, program: Command, state: str, by: str) -> str:
    """Play a session whose program is ended, and give the verdict."""
    before, rest = STATES[state]
    played = runner.play(loads(SESSION.format(before=before, rest=rest, by=by)), program)
    assert played.record.header["arm"] == "preload"
    return choose_overall_verdict(judge_all_expectations(played)).value


@pytest.mark.parametrize(
    ("word", "state", "by", "verdict"),
    [
        ("own", "idle", "kill", "passed"),
        ("own", "idle", "hangup", "passed"),
        ("own", "busy", "kill", "failed"),
        ("own", "busy", "hangup", "failed"),
        ("same", "busy", "kill", "failed"),
        ("same", "busy", "hangup", "passed"),
        ("own-ends-it", "busy", "hangup", "passed"),
        ("own-ends-it", "busy", "kill", "failed"),
        ("own-deaf-listens", "busy", "hangup", "passed"),
        ("own-deaf", "idle", "hangup", "failed"),
    ],
)
def test_a_program_that_is_ended_leaves_the_agents_that_it_does_not_end(
    runner: ScenarioRunner, tmp_path: Path, word: str, state: str, by: str, verdict: str
) -> None:
    """HUP goes to the group of the program, as a terminal sends it, and its stdin ends; KILL goes to it alone."""
    assert judge_ended_session(runner, describe_program(tmp_path, FRONT, word), state, by) == verdict


@pytest.mark.parametrize(
    ("containment", "state", "by", "verdict"),
    [
        ("group", "idle", "kill", "passed"),
        ("group", "busy", "kill", "failed"),
        ("keeper", "busy", "kill", "passed"),
        ("group", "busy", "hangup", "passed"),
    ],
)
def test_the_reference_supervisor_in_a_program_keeps_its_promises(
    runner: ScenarioRunner, tmp_path: Path, containment: str, state: str, by: str, verdict: str
) -> None:
    """Its task is cancelled at HUP; what holds its tree when it is killed is a keeper alone."""
    assert judge_ended_session(runner, describe_program(tmp_path, REFERENCE, containment), state, by) == verdict


RUN = """\
scenario: the program that runs an agent is ended
agent: raw
drive: [{{prompt: hi}}, {{abandon: {{by: {by}}}, at: 5s}}]
script: [{{silence: for ever}}]
expect: {{leaks: []}}
"""


@pytest.mark.parametrize(
    ("word", "by", "verdict"),
    [
        ("same", "hangup", "passed"),
        ("own", "hangup", "failed"),
        ("own-deaf-listens", "hangup", "passed"),
        ("same", "kill", "failed"),
    ],
)
def test_a_program_with_one_run_is_ended_in_the_same_way(
    runner: ScenarioRunner, tmp_path: Path, word: str, by: str, verdict: str
) -> None:
    """Its stdin is an open pipe until then, so that it can notice the end."""
    played = runner.play(loads(RUN.format(by=by)), describe_program(tmp_path, FRONT, word, 'dialects = ["raw"]'))
    assert choose_overall_verdict(judge_all_expectations(played)).value == verdict


async def do_nothing(_order: RunRequest) -> None:
    """Do nothing."""


@pytest.mark.parametrize("subject", [reference_supervisor(), Function(do_nothing)], ids=lambda subject: subject.name)
@pytest.mark.parametrize(
    ("by", "needs"),
    [
        ("kill", "needs a supervisor that is a program, which can be killed"),
        ("hangup", "needs a supervisor that is a program, whose terminal can close"),
    ],
)
def test_a_function_is_not_ended(runner: ScenarioRunner, subject: Function, by: str, needs: str) -> None:
    """It runs in the process of pytest, which must live on."""
    with pytest.raises(NotApplicable, match=needs):
        runner.play(loads(RUN.format(by=by)), subject)
