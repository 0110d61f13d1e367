"""What users do with the kit, once each: the tests that every plugin meets. All but the last pass."""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from datetime import datetime
from typing import TYPE_CHECKING

import anyio
import pytest

if TYPE_CHECKING:
    from pytest_agentproc.plugin import FakeAgents, Fakes, ProcessTree, Runner, Sessions

HOUR = "- wait_for: eof\n- silence: 1h\n- answer: done"


def test_in_real_time(fake_agent: Fakes) -> None:
    """A plain function starts a fake."""
    agent = fake_agent("- wait_for: eof\n- answer: done")
    done = subprocess.run([*agent.argv, "--print"], input=b"build it", capture_output=True, check=True, timeout=60)
    assert done.stdout == b"done\n"
    assert (agent.starts[0].argv, agent.starts[0].stdin) == (("--print",), b"build it")


@pytest.mark.virtual_time
async def test_async_in_virtual_time(fake_agent: Fakes) -> None:
    """The marker runs an async test, too."""
    begun = time.monotonic()
    done = await anyio.run_process(fake_agent(HOUR).argv, input=b"build it")
    await anyio.sleep(1800)
    assert (done.stdout, time.monotonic() - begun) == (b"done\n", 5400)


@pytest.mark.virtual_time
def test_sync_in_virtual_time(fake_agent: Fakes) -> None:
    """A plain function, with a thread and a limit of `subprocess`."""
    found: list[bytes] = []
    argv, begun = fake_agent(HOUR).argv, time.monotonic()

    def ask() -> None:
        found.append(subprocess.run(argv, input=b"build it", capture_output=True, check=True, timeout=4000).stdout)

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join(7200)
    assert (found, round(time.monotonic() - begun)) == ([b"done\n"], 3600)


@pytest.mark.virtual_time
async def test_a_limit_ends_a_silent_agent(fake_agent: Fakes) -> None:
    """The supervisor's own time-out, in virtual time."""
    agent = fake_agent("- silence: for ever")
    with pytest.raises(TimeoutError), anyio.fail_after(600):
        await anyio.run_process(agent.argv)
    assert agent.starts[0].ended_at == 600


@pytest.mark.virtual_time(start="2026-11-22T12:00:00Z")
async def test_the_date_follows() -> None:
    """All clocks show virtual time."""
    await anyio.sleep(3600)
    assert datetime.now().isoformat() == "2026-11-22T13:00:00"  # noqa: DTZ005  # as users read it


def test_on_path(fake_agents: FakeAgents) -> None:
    """A fake is found by its name, and the real agents are not."""
    fake_agents.on_path(codex="- answer: fine")
    done = subprocess.run(
        ["codex", "exec", "--yolo", "hi"], stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=60
    )
    assert b"fine" in done.stdout
    fake_agents["codex"].assert_called_once_with("exec", ...)
    assert shutil.which("claude") is None


def test_python_data(fake_agent: Fakes) -> None:
    """A script need not be text."""
    agent = fake_agent([{"answer": "caf\u00e9: #1"}, {"exit": 3}])
    done = subprocess.run(agent.argv, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=60)
    assert (done.stdout.decode(), done.returncode) == ("caf\u00e9: #1\n", 3)


def test_the_reference_supervisor(agent_run: Runner) -> None:
    """The kit's own supervisor runs an agent."""
    run = agent_run({"agent": "pi", "script": [{"answer": "done"}, {"silence": "for ever"}]})
    assert (run.outcome, run.text, run.signals) == ("completed", "done", (("TERM", 0.25),))


def test_a_session(agent_session: Sessions) -> None:
    """The kit's own supervisor talks to an agent."""
    talk = agent_session("- wait_for: prompt 1\n- silence: 5s\n- answer: hi")
    assert (talk.prompt("hello").text, talk.now) == ("hi", 5)


def test_that_leaves_a_process(process_tree: ProcessTree) -> None:
    """It passes, and its teardown fails."""
    subprocess.Popen(["sleep", "1000"])
    assert len(process_tree.processes) == 1
