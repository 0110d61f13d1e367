"""SIGKILL of the whole test run leaves nothing behind: deaf, spinning and stopped fakes go with their lifelines."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT
from tests.process.stand import CEILING, is_gone

_VICTIM = '''
import json, os, signal, subprocess, threading
from pytest_agentproc.scenario import loads

DEAF = """
scenario: deaf with descendants of every kind
agent: raw
script:
  - spawn: {id: deaf, how: same_group, deaf: true}
  - spawn:
      id: stopped
      how: same_group
      script: [{spawn: {id: grandchild, how: same_group}}, {silence: for ever}]
  - when: {signal: TERM}
    do: []
  - say: ready
  - silence: for ever
"""
SPINNER = """
scenario: spins in real time
agent: raw
script:
  - when: {signal: TERM}
    do: []
  - drip: {stdout: ".", every: 1ns}
"""

def test_victim(fake_agent, virtual_clock):
    from pytest_agentproc.harness import Lab
    lab = Lab()
    spinner = subprocess.Popen(lab.fake(loads(SPINNER)).argv, stdout=subprocess.DEVNULL)
    agent = fake_agent(DEAF)

    async def start():
        import anyio
        child = subprocess.Popen(agent.argv, stdout=subprocess.PIPE, start_new_session=True)
        await anyio.wait_readable(child.stdout)
        pids = {event.data["process"]: event.data["pid"] for event in agent.record.events if event.data.get("seen")}
        os.kill(pids["stopped"], signal.SIGSTOP)
        print("PIDS " + json.dumps([spinner.pid, *pids.values()]), flush=True)
        threading.Event().wait()

    virtual_clock.run(start)
'''


def _pids(victim: subprocess.Popen[bytes]) -> list[int]:
    """Read the victim's output up to the line that names its processes."""
    assert victim.stdout is not None
    poll = select.poll()
    poll.register(victim.stdout, select.POLLIN)
    seen = b""
    while b"PIDS " not in seen or not seen.endswith(b"\n"):
        assert poll.poll(CEILING * 1000), seen.decode()
        data = os.read(victim.stdout.fileno(), 65536)
        assert data, seen.decode()
        seen += data
    pids: list[int] = json.loads(seen.partition(b"PIDS ")[2].splitlines()[0])
    return pids


def _brokers_of(pid: int) -> list[int]:
    """List the brokers that a process started."""
    children = (Path("/proc") / str(pid) / "task" / str(pid) / "children").read_text().split()
    return [int(child) for child in children if b"_broker.py" in (Path("/proc") / child / "cmdline").read_bytes()]


@pytest.mark.slow
@pytest.mark.parametrize("struck", ["pytest", "broker"])
def test_nothing_outlives_the_test_run(tmp_path: Path, struck: str) -> None:
    """A deaf fake that outlives its worker freezes a CI; the kernel ends each of them when its lifeline does."""
    (tmp_path / "test_victim.py").write_text(_VICTIM)
    command = [sys.executable, "-m", "pytest", "-s", "-p", "no:cacheprovider", "test_victim.py"]
    victim = subprocess.Popen(
        command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    try:
        pids = _pids(victim)
        brokers = _brokers_of(victim.pid)
        assert brokers
        assert all(Path(f"/proc/{pid}").exists() for pid in pids)
        for pid in [victim.pid] if struck == "pytest" else brokers:
            os.kill(pid, signal.SIGKILL)
        assert [pid for pid in pids if not is_gone(pid)] == []
    finally:
        victim.kill()
        victim.wait()
        assert victim.stdout is not None
        victim.stdout.close()
    assert [pid for pid in brokers if not is_gone(pid)] == []
