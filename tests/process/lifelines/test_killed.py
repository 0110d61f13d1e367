"""A supervisor killed without a chance to clean up: within a second none of its processes is left."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

from tests.process.ends import await_ends, start_follower
from tests.process.stand import CEILING

ROOT = Path(__file__).resolve().parents[3]

FAKES = """
import os
import anyio
from pytest_agentproc.harness import ScenarioRunner
from tests.process.stand import Stand

SCRIPT = (
    "- spawn: {id: deaf, ignores_signals: true, how: new_session}\\n"
    "- spawn: {id: lost, how: daemon, closed_fds: true, clear_env: true}\\n"
    "- spawn: {id: still, how: launcher, stopped: true}\\n- when: {signal: TERM}\\n  do: []\\n- silence: for ever"
)

def test_that_is_killed_in_its_middle():
    with ScenarioRunner() as runner:
        stand = Stand(runner, guard=60)
        argv = stand.fake(SCRIPT)

        async def host():
            async with await anyio.open_process(argv):
                await anyio.sleep(1)
                with open(PAGE, "w") as page:
                    print(os.getpid(), *stand.pids(), file=page)
                os.read(os.pipe()[0], 1)

        stand.run(host)
"""

AT_ONCE = """
import os, signal, subprocess
from pytest_agentproc.harness import ScenarioRunner
from tests.process.stand import Stand

def test_that_is_killed_in_its_middle():
    with ScenarioRunner() as runner:
        stand = Stand(runner, guard=60)
        argv = stand.fake("- silence: for ever")

        async def host():
            agents = []
            for _ in range(8):
                agents.append(subprocess.Popen(argv, stdin=subprocess.DEVNULL, start_new_session=True))
                os.kill(agents[-1].pid, signal.SIGSTOP)
            with open(PAGE, "w") as page:
                print(os.getpid(), *(agent.pid for agent in agents), file=page)
            os.read(os.pipe()[0], 1)

        stand.run(host)
"""

COMMAND = """
import sys
from pytest_agentproc.harness import ScenarioRunner
from pytest_agentproc.subjects import Command
from tests.process.stand import build_scenario

PROGRAM = '''
import os, subprocess, sys
helper = subprocess.Popen(["sleep", "600"], start_new_session=True, env={})
agent = subprocess.Popen(sys.argv[2:])
with open(sys.argv[1], "w") as page:
    print(os.getppid(), os.getpid(), helper.pid, agent.pid, file=page)
agent.wait()
'''

def test_that_is_killed_in_its_middle():
    with ScenarioRunner() as runner:
        scenario = build_scenario("- spawn: {id: lost, how: daemon, clear_env: true}\\n- silence: 15s")
        runner.play_real(scenario, Command([sys.executable, "-c", PROGRAM, PAGE, "{agent}"]), scale=1)
"""


def _check_nothing_is_left_after_kill(tmp_path: Path, suite: str, *options: str, victim: int | None = None) -> None:
    """Run a suite until it has printed its pids, kill pytest or one process, and see the others end within a second."""
    page = tmp_path / "page"
    os.mkfifo(page)
    (tmp_path / "test_suite.py").write_text(f"PAGE = {str(page)!r}\n{suite}", "utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-pno:cacheprovider",
        "-pno:hypothesispytest",
        "-c",
        os.devnull,
        *options,
    ]
    command += ["--rootdir", str(tmp_path), str(tmp_path / "test_suite.py")]
    told = os.open(page, os.O_RDONLY | os.O_NONBLOCK)
    quiet = subprocess.DEVNULL
    try:
        with subprocess.Popen(command, stdout=quiet, stderr=quiet, cwd=ROOT, start_new_session=True) as main:
            try:
                news = select.poll()
                news.register(told, select.POLLIN)
                assert news.poll(2 * CEILING * 1000), "the suite told nothing"
                pids = [int(word) for word in os.read(told, 4096).split()]
                killed = os.pidfd_open(main.pid if victim is None else pids.pop(victim))
                pidfds = {os.pidfd_open(pid): pid for pid in pids}
                who = main.pid if victim is None else _read_pid_of_pidfd(killed)
                with start_follower(who) as first, start_follower(first) as second:
                    follower = os.pidfd_open(second)
                    os.kill(who, 9)
                    ends = await_ends({*pidfds, follower})
            finally:
                main.kill()
    finally:
        os.close(told)
    for pidfd in (*pidfds, follower, killed):
        os.close(pidfd)
    assert {pidfds[pidfd] for pidfd in pidfds if pidfd not in ends} == set()
    assert max(ends[pidfd] for pidfd in pidfds) < ends[follower] + 1.0


def _read_pid_of_pidfd(pidfd: int) -> int:
    lines = Path(f"/proc/self/fdinfo/{pidfd}").read_text("utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pid:"))


@pytest.mark.slow
def test_killing_a_worker_of_xdist_ends_its_fakes_wherever_they_are(tmp_path: Path) -> None:
    """Each worker has a broker of its own, which outlives it just long enough."""
    _check_nothing_is_left_after_kill(tmp_path, FAKES, "-n", "1", victim=0)


@pytest.mark.slow
def test_an_agent_that_is_stopped_at_once_has_its_lifeline(tmp_path: Path) -> None:
    """It holds it before it says hello: a stopped process cannot notice that its supervisor has ended."""
    _check_nothing_is_left_after_kill(tmp_path, AT_ONCE)


@pytest.mark.slow
def test_killing_pytest_ends_a_command_under_test_with_all_that_it_started(tmp_path: Path) -> None:
    """A program that is no fake has no lifeline: its keeper sees that the host has ended."""
    _check_nothing_is_left_after_kill(tmp_path, COMMAND)


@pytest.mark.slow
def test_killing_the_keeper_of_a_command_ends_all_that_it_held(tmp_path: Path) -> None:
    """Pytest is a subreaper too while a keeper lives, and knows adopted processes by the mark that they carry."""
    _check_nothing_is_left_after_kill(tmp_path, COMMAND, victim=0)
