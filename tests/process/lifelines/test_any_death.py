"""The net under every fake: within a second of any kind of death of any process, no fake is left."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest

from pytest_agentproc.errors import KitError
from pytest_agentproc.harness import ScenarioRunner, _runner
from pytest_agentproc.subjects import reference_supervisor
from tests.process.ends import await_ends, start_follower
from tests.process.stand import CEILING, build_scenario, is_gone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.process.stand import Stand

ROOT = Path(__file__).resolve().parents[3]

SUITE = """
import os, signal
import anyio
from pytest_agentproc.harness import ScenarioRunner
from tests.process.stand import Stand, make_spinning

DEAF = '''
- spawn: {id: child, ignores_signals: true, inherits: [stdout]}
- when: {signal: TERM}
  do: []
- silence: for ever
'''

def test_that_is_killed_in_its_middle():
    with ScenarioRunner() as runner:
        stand = Stand(runner, guard=60)
        deaf = stand.fake(DEAF)
        stopped = stand.fake("- spawn: child\\n- silence: for ever")
        spinning = make_spinning(stand.fake("- silence: 1s"))

        async def host():
            async with await anyio.open_process(deaf), await anyio.open_process(stopped) as second:
                await anyio.sleep(1)
                for pid in stand.pids()[2:]:
                    os.kill(pid, signal.SIGSTOP)
                async with await anyio.open_process(spinning):
                    print("STARTED", *stand.pids(), runner._broker.pid, flush=True)
                    await anyio.sleep(3600)

        stand.run(host)
"""


def read_fake_pids(process: subprocess.Popen[bytes]) -> list[int]:
    """Read the line in which a suite names its fakes, within the ceiling."""
    assert process.stdout is not None
    poll = select.poll()
    poll.register(process.stdout, select.POLLIN)
    line = b""
    deadline = time.monotonic() + CEILING
    while b"STARTED" not in line and poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
        line = process.stdout.readline()
        assert line or process.poll() is None, "the suite ended before its fakes ran"
    return [int(word) for word in line.partition(b"STARTED")[2].split()]


@pytest.mark.slow
def test_killing_pytest_leaves_no_process_be_it_deaf_spinning_or_stopped(tmp_path: Path) -> None:
    """SIGKILL gives pytest no chance to clean up: the broker removes the files and goes; the kernel does the rest.

    It takes less than a second. A busy machine is not held against it. Two plain processes, chained as the broker and
    the fakes are, show how long the same kill takes at least.
    """
    (tmp_path / "test_suite.py").write_text(SUITE, "utf-8")
    (tmp_path / "made").mkdir()
    env = {**os.environ, "TMPDIR": str(tmp_path / "made")}
    command = [sys.executable, "-m", "pytest", "-s", "-pno:cacheprovider", "-pno:hypothesispytest", "-c", os.devnull]
    command += ["--rootdir", str(tmp_path), str(tmp_path / "test_suite.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT, start_new_session=True, env=env) as suite:
        try:
            pids = read_fake_pids(suite)
            assert len(pids) == 6
            with start_follower(suite.pid) as first, start_follower(first) as second:
                pidfds = {os.pidfd_open(pid) for pid in pids}
                follower = os.pidfd_open(second)
                suite.kill()
                ends = await_ends({*pidfds, follower})
        finally:
            suite.kill()
    for pidfd in (*pidfds, follower):
        os.close(pidfd)
    assert set(ends) == {*pidfds, follower}
    assert max(ends[pidfd] for pidfd in pidfds) < ends[follower] + 1.0
    assert list((tmp_path / "made").iterdir()) == []


def start_broker(runner: ScenarioRunner) -> subprocess.Popen[bytes]:
    """Give the process that holds the lines, once it runs."""
    broker = runner._broker  # noqa: SLF001  # whom to kill is nothing that users ask a runner
    assert broker is not None
    return broker


@pytest.mark.parametrize("end", ["ignores_signals", "stopped"])
def test_killing_the_broker_kills_every_fake(end: str) -> None:
    """The kernel sends SIGKILL when a line's other end goes: no handler runs, and a stopped process dies too."""
    with ScenarioRunner() as runner:
        fake = runner.make_fake(build_scenario("- when: {signal: TERM}\n  do: []\n- say: ready\n- silence: for ever"))
        with subprocess.Popen(fake.argv, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            if end == "stopped":
                process.send_signal(signal.SIGSTOP)
            start_broker(runner).kill()
            assert is_gone(process.pid)
            assert process.wait() == -signal.SIGKILL


def test_a_broker_whose_harness_is_gone_before_it_starts_goes_without_a_word(tmp_path: Path) -> None:
    """A harness may be killed at any instant; its files are removed."""
    gone = subprocess.Popen(["true"])
    gone.wait()
    folder = tmp_path / "left"
    folder.mkdir()
    program = ROOT / "pytest_agentproc" / "harness" / "fakes" / "_broker.py"
    with socket.socket(socket.AF_UNIX) as listener:
        line = [sys.executable, "-S", str(program), str(gone.pid), "1", str(folder)]
        completed = subprocess.run(line, stdin=listener.fileno(), capture_output=True, check=False, timeout=CEILING)
    assert (completed.returncode, completed.stderr) == (0, b"")
    assert not folder.exists()


def test_a_broker_that_is_interrupted_leaves_the_folder_to_its_harness(tmp_path: Path) -> None:
    """The harness writes its next fake there."""
    program = str(ROOT / "pytest_agentproc" / "harness" / "fakes" / "_broker.py")
    heeds = "import runpy, signal, sys; signal.signal(2, signal.default_int_handler); del sys.argv[0]; "
    line = [sys.executable, "-c", f"{heeds}runpy.run_path({program!r}, run_name='__main__')", program]
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen()
        argv = [*line, str(os.getpid()), "1", str(tmp_path)]
        with subprocess.Popen(argv, stdin=listener.fileno(), stderr=subprocess.DEVNULL) as broker:
            while not (tmp_path / "deaths").exists():
                assert broker.poll() is None
            broker.send_signal(signal.SIGINT)
    assert tmp_path.exists()


def test_a_broker_whose_start_is_interrupted_does_not_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Ctrl-C most likely comes while the start waits for the new program; nobody knew of the process then."""
    pids: list[int] = []
    execute = subprocess.Popen._execute_child  # type: ignore[attr-defined]  # noqa: SLF001

    def execute_and_interrupt(process: subprocess.Popen[bytes], *arguments: object) -> None:
        execute(process, *arguments)
        pids.append(process.pid)
        raise KeyboardInterrupt

    with ScenarioRunner() as runner:
        with monkeypatch.context() as patch:
            patch.setattr(_runner._BrokerProcess, "_execute_child", execute_and_interrupt)  # noqa: SLF001
            with contextlib.suppress(KeyboardInterrupt):
                runner.make_fake(build_scenario("- silence: for ever"))
        assert is_gone(pids[0])


def test_a_play_whose_broker_is_killed_is_no_verdict(backend: str) -> None:
    """The agent's death was the harness's doing, not the subject's; the next play has a new broker."""
    scenario = build_scenario("- silence: 1h\n- answer: done", "pi")
    with ScenarioRunner() as runner:
        subject = reference_supervisor()
        plain = subject.run

        async def run(order: object) -> object:
            answers = []
            async with anyio.create_task_group() as group:
                group.start_soon(end_broker)
                answers.append(await plain(order))  # type: ignore[arg-type]
            return answers[0]

        async def end_broker() -> None:
            await anyio.sleep(60)
            start_broker(runner).kill()
            start_broker(runner).wait()

        subject.run = run  # type: ignore[method-assign,assignment]
        with pytest.raises(KitError, match="the lifeline broker ended during the play, and every fake with it"):
            runner.play(scenario, subject, backend=backend)
        again = runner.play(scenario, reference_supervisor(), backend=backend)
        assert again.answer is not None
        assert again.answer.outcome == "inactive"


@contextmanager
def start_stubborn_tree(runner: ScenarioRunner) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Start a fake that ignores signals with such a child process; give both, the child as its pid."""
    deaf = "- when: {signal: TERM}\n  do: []\n- spawn: {id: helper, ignores_signals: true}\n"
    script = f"{deaf}- say: ready\n- silence: for ever"
    with subprocess.Popen(runner.make_fake(build_scenario(script)).argv, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            [helper] = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text("ascii").split()
            yield process, int(helper)
        finally:
            process.kill()


def test_fakes_go_with_their_lab() -> None:
    """A fake that a test forgot ends with the runner that made it, even if it ignores signals, and its child too."""
    with ScenarioRunner() as runner, start_stubborn_tree(runner) as (process, helper):
        runner.close()
        assert process.wait(CEILING) == -signal.SIGKILL
        assert is_gone(helper)


@pytest.mark.slow
def test_a_fake_has_a_hard_lifetime(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if the broker and the runner are kept alive, no fake outlives its real-time limit; none ends before it."""
    monkeypatch.setattr(_runner, "FAKE_LIFETIME_SECONDS", 0.3)
    start = time.monotonic()
    with ScenarioRunner() as runner, start_stubborn_tree(runner) as (process, helper):
        assert process.wait(CEILING) == -signal.SIGKILL
        assert time.monotonic() - start >= 0.3
        assert is_gone(helper)


def test_a_fake_whose_broker_goes_while_it_takes_the_line_does_not_live() -> None:
    """Between connecting and asking for the signal the line may break: the kernel then has no receiver any more."""
    code = """
import sys, _socket
from pytest_agentproc.fake_agents import main
listener = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
listener.bind(b"")
listener.listen(8)
plain = main._connect_on_own_descriptor
def connect(address):
    line = plain(address)
    listener.close()
    return line
main._connect_on_own_descriptor = connect
main._connect_to_lifeline(listener.getsockname())
print("lives on")
"""
    completed = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=CEILING, check=False
    )
    assert completed.stdout == ""
    assert completed.returncode != 0


def test_nobody_without_the_token_gets_in(stand: Stand, make_stand: Callable[..., Stand]) -> None:
    """A fake of another run that finds the address by chance is turned away and takes part in nothing."""
    other = make_stand()
    other.fake("- silence: 1s")
    argv = stand.fake("- silence: 1s\n- exit: 3")

    async def host() -> int:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as stranger:
            stranger.connect(stand.clock.hub.registry.address)
            stranger.close()
        return int((await anyio.run_process(argv, check=False)).returncode)

    assert stand.run(host) == 3
    assert len(stand.pids()) == 1
