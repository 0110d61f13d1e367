"""A program that holds an agent is killed: an agent that ends by itself is no leak."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.harness import FakeAgent
from tests.event_lines import list_lines
from tests.process.stand import CEILING, is_gone

if TYPE_CHECKING:
    from pytest_agentproc.plugin import FakeAgents, ProcessTree

pytestmark = pytest.mark.slow

PI = {"dialect": "pi", "mode": "rpc"}
LISTENS = {"agent": PI, "script": [{"wait_for": "prompt 1"}, {"say": "at work"}, {"wait_for": "prompt 2"}]}
IS_BUSY = {"agent": PI, "script": [{"wait_for": "prompt 1"}, {"say": "at work"}, {"silence": "for ever"}]}
HOLDS = """
import subprocess
pi = subprocess.Popen(["pi", "--mode", "rpc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
pi.stdin.write(b'{"type": "prompt", "id": "1", "message": "build it"}\\n')
pi.stdin.flush()
for line in pi.stdout:
    print(line.decode(), end="", flush=True)
"""
KEEPS = """
import anyio
from pytest_agentproc.supervisor import Policy, open_session

async def main():
    policy = Policy(containment="keeper")
    async with open_session(["pi", "--mode", "rpc"], dialect="pi", policy=policy) as session:
        session.prompt("build it")
        async for event in session.attach():
            print(event, flush=True)

anyio.run(main)
"""


def _kill_in_the_turn(program: str) -> None:
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        next(line for line in process.stdout if b"at work" in line)
        process.kill()


def _await_end(fake_agents: FakeAgents) -> None:
    pi = fake_agents["pi"]
    assert isinstance(pi, FakeAgent)
    assert pi.real_record is not None
    pid = next(event.data["pid"] for event in list_lines(pi.real_record) if "pid" in event.data)
    assert is_gone(pid)


def test_an_agent_of_a_killed_program_is_no_zombie_of_ours(fake_agents: FakeAgents, process_tree: ProcessTree) -> None:
    """`process_tree` adopts orphans, so the agent became a child of this process. It was once reported as a zombie."""
    fake_agents.on_path(pi=LISTENS)
    _kill_in_the_turn(HOLDS)
    _await_end(fake_agents)
    assert fake_agents["pi"].starts[0].status == 0
    assert process_tree.wait_gone(CEILING)


def test_a_keeper_ends_the_agents_of_a_killed_program(fake_agents: FakeAgents) -> None:
    """A busy agent does not see the end of its stdin."""
    fake_agents.on_path(pi=IS_BUSY)
    _kill_in_the_turn(KEEPS)
    _await_end(fake_agents)
    assert fake_agents["pi"].starts[0].status == -9
