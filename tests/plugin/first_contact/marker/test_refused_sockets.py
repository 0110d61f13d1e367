"""A plugin refuses every socket, as pytest-socket does to keep tests off the network: the kit needs none of that class.

Each session is a new process: the modules of the kit load while sockets are refused.
"""

from __future__ import annotations

import pytest

from tests.plugin.scenarios import GREEN

pytestmark = pytest.mark.slow

REFUSING = """\
import socket

import pytest

class Refused(socket.socket):
    def __new__(cls, *args, **kwargs):
        raise RuntimeError("a socket was asked for")

plain = socket.socket

def pytest_runtest_setup():
    socket.socket = Refused

@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown():
    socket.socket = plain
"""

TESTS = """\
import socket
import subprocess

import anyio
import pytest

HOUR = "- wait_for: eof\\n- silence: 1h\\n- answer: done"

def test_real(fake_agent):
    agent = fake_agent("- answer: done")
    assert subprocess.run(agent.argv, capture_output=True).stdout == b"done\\n"

@pytest.mark.virtual_time
def test_sync(fake_agent):
    assert subprocess.run(fake_agent(HOUR).argv, input=b"", capture_output=True).stdout == b"done\\n"

@pytest.mark.virtual_time
@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_async(fake_agent, process_tree, anyio_backend):
    assert (await anyio.run_process(fake_agent(HOUR).argv, input=b"hi")).stdout == b"done\\n"

@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_clock(fake_agent, virtual_clock, backend):
    done = virtual_clock.run(anyio.run_process, fake_agent("- silence: 1h\\n- answer: done").argv, backend=backend)
    assert done.stdout == b"done\\n"

def test_supervisor(agent_run):
    assert agent_run({"agent": "raw", "script": [{"answer": "done"}]}).text == "done"

@pytest.mark.virtual_time
async def test_own_sockets_stay_refused():
    for make in (socket.socket, socket.socketpair):
        with pytest.raises(RuntimeError, match="a socket was asked for"):
            make()
"""

SUBJECTS = """

def pytest_agentproc_subjects():
    from pytest_agentproc.subjects import Command
    outcome = {"exit_code": {0: "completed", "other": "failed"}}
    return [Command(["timeout", "60", "{agent}"], says={"text": "stdout", "outcome": outcome})]
"""


def test_fakes_play_in_every_kind_of_time(pytester: pytest.Pytester) -> None:
    """The sockets of the kit, and of its event loops, reach no network."""
    pytester.makeconftest(REFUSING)
    pytester.makepyfile(TESTS)
    pytester.runpytest_subprocess().assert_outcomes(passed=8)


@pytest.mark.parametrize("containment", ["group", "keeper"])
def test_scenarios_play(pytester: pytest.Pytester, containment: str) -> None:
    """A keeper, and a program below the coordinator, are reached over sockets as well."""
    pytester.makeconftest(REFUSING + (SUBJECTS if containment == "group" else ""))
    text = GREEN.replace("  elapsed: 0\n", "") + f"policy: {{containment: {containment}}}\n"
    pytester.path.joinpath("one.scenario.yaml").write_text(text)
    pytester.runpytest_subprocess().assert_outcomes(passed=1)
