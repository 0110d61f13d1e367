"""Clients that give their agent a terminal: pexpect, ptyprocess and node-pty, against a fake that needs one.

All of it is in real time: these tests wait for what the agent prints, and for its end.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from unittest.mock import ANY

import pytest

from tests.clients.findings import mark_finding
from tests.clients.running import CEILING

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_agentproc.harness import FakeAgent
    from tests.clients.running import Client, Programs

    MakeFake = Callable[[Any], FakeAgent]

pytestmark = pytest.mark.slow

STEPS: list[dict[str, Any]] = [
    {"when": {"signal": "WINCH"}, "do": [{"raw": "drawn anew\n"}]},
    {"when": {"signal": "HUP"}, "do": [{"exit": 3}]},
    {"raw": "\x1b]0;my agent\x07\x1b[1mContinue?\x1b[0m [y/N] "},
    {"wait_for": {"stdin": "y"}},
    {"raw": "going on\n"},
    {"silence": "for ever"},
]
QUESTION = b"\x1b]0;my agent\x07\x1b[1mContinue?\x1b[0m "
"""What the terminal shows before the choices: the title of the window, and bold words."""


def build_terminal_scenario(steps: list[dict[str, Any]]) -> dict[str, Any]:
    """Give the scenario of an agent that needs a terminal."""
    return {"agent": {"dialect": "raw", "terminal": True}, "script": steps}


@mark_finding("pexpect", "asks y/n in a terminal", "matches the question with its escape sequences, and answers")
def test_pexpect_answers_a_question(pexpect: Any, fake_agent: MakeFake) -> None:
    """The terminal echoes the answer, and ends each line by a carriage return."""
    agent = fake_agent(build_terminal_scenario(STEPS))
    with pexpect.spawn(agent.path, env=agent.env, timeout=CEILING) as child:
        child.expect_exact("[y/N] ")
        assert child.before == QUESTION
        child.sendline("y")
        child.expect_exact("going on\r\n")
        assert child.before == b"y\r\n"
        child.setwinsize(50, 120)
        child.expect_exact("drawn anew\r\n")
    assert agent.starts[0].signals[:2] == (("WINCH", ANY), ("HUP", ANY))
    assert not child.isalive()


@mark_finding("pexpect", "is silent for longer than the limit of `expect`", "raises TIMEOUT, and the agent lives on")
def test_pexpect_gives_up_a_wait_and_the_agent_lives_on(pexpect: Any, fake_agent: MakeFake) -> None:
    """The limit is of one wait: the next one succeeds."""
    agent = fake_agent(build_terminal_scenario([{"wait_for": {"stdin": "more"}}, {"raw": "here\n"}, {"exit": 0}]))
    with pexpect.spawn(agent.path, env=agent.env, timeout=CEILING) as child:
        with pytest.raises(pexpect.TIMEOUT):
            child.expect_exact("here", timeout=0.1)
        assert child.isalive()
        child.sendline("more")
        child.expect_exact("here\r\n")
        child.expect_exact(pexpect.EOF)
        assert child.wait() == 0
    assert agent.starts[0].signals == ()


@mark_finding("ptyprocess", "lives as the terminal is closed", "gives the exit code that the agent has after HUP")
def test_ptyprocess_hangs_up(ptyprocess: Any, fake_agent: MakeFake) -> None:
    """The kernel sends HUP when the last descriptor of the terminal is closed."""
    agent = fake_agent(build_terminal_scenario(STEPS))
    child = ptyprocess.PtyProcess.spawn(agent.argv, env=agent.env)
    seen = b""
    while b"[y/N] " not in seen:
        seen += child.read()
    child.fileobj.close()
    assert child.wait() == 3
    assert agent.starts[0].signals == (("HUP", ANY),)


@pytest.fixture
def node_pty(programs: Programs) -> Client:
    """Give a Node program that has an agent in a terminal."""
    return programs.node("terminal.mjs", "node-pty", "{dialect: raw, terminal: true}")


@mark_finding("node-pty", "asks y/n in a terminal", "gives the question with its escape sequences, and HUP at `kill`")
def test_node_pty_answers_a_question(node_pty: Client) -> None:
    """Its own `kill` is a hang-up."""
    run = node_pty("answers", json.dumps(STEPS))
    assert run["asked"]["seen"] == QUESTION.decode() + "[y/N] "
    assert (run["ended"]["code"], run.stdin) == (3, "y\n")
    assert [signal for signal, _ in run.signals] == ["WINCH", "HUP"]


@mark_finding("node-pty", "lives as the terminal is closed", "reports the exit code that the agent has after HUP")
def test_node_pty_hangs_up(node_pty: Client) -> None:
    """`destroy` closes the terminal."""
    run = node_pty("closes", json.dumps(STEPS))
    assert run["ended"]["code"] == 3
    assert run.signals[0][0] == "HUP"
