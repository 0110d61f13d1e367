"""Fakes without a virtual clock: plain programs on the machine's own time, for any program that starts them."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.supervisor import Completion, LineSplitter
from pytest_agentproc.supervisor.dialects import make_decoder
from tests.process.stand import CEILING, build_scenario, is_gone

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_agentproc.harness import ScenarioRunner


def run_fake(
    runner: ScenarioRunner, script: str, stdin: bytes = b"", agent: str = "raw"
) -> subprocess.CompletedProcess[bytes]:
    """Run a fake as a shell would, from nowhere and without an environment."""
    argv = runner.make_fake(build_scenario(script, agent)).argv
    return subprocess.run(argv, check=False, input=stdin, capture_output=True, cwd="/", env={}, timeout=CEILING)


@contextmanager
def start_fake(
    runner: ScenarioRunner, script: str, stdin: int = subprocess.DEVNULL, process_group: int | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a fake and give it once it has said its first line; it is ended at the latest here."""
    argv = runner.make_fake(build_scenario(script)).argv
    with subprocess.Popen(argv, stdin=stdin, stdout=subprocess.PIPE, process_group=process_group) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield process
        finally:
            process.kill()


def test_a_fake_prints_what_its_script_says(runner: ScenarioRunner) -> None:
    """Without a clock it is an executable like any other."""
    completed = run_fake(runner, "- say: one\n- raw: {text: err, to: stderr}\n- say: two\n- exit: 3")
    assert (completed.returncode, completed.stdout, completed.stderr) == (3, b"one\ntwo\n", b"err")


def test_a_script_that_ends_is_a_good_exit(runner: ScenarioRunner) -> None:
    """And a signal that it dies of is a real one."""
    assert run_fake(runner, "- say: one").returncode == 0
    assert run_fake(runner, "- die: SEGV").returncode == -signal.SIGSEGV


def test_a_fake_speaks_its_dialect(runner: ScenarioRunner) -> None:
    """The bytes of the wire format are the same in both times, for clients that scrub the environment too."""
    completion, reader = Completion(), make_decoder("pi")
    for line in LineSplitter().feed(run_fake(runner, "- answer: done", agent="pi").stdout):
        for meaning in reader.decode(line):
            completion.feed(meaning, 0)
    assert (completion.ok, completion.text) == (True, "done")


def test_a_fake_reads_its_stdin(runner: ScenarioRunner) -> None:
    """It waits for lines and for the end, as a real program does."""
    completed = run_fake(
        runner, '- wait_for: {stdin: "go*"}\n- say: went\n- wait_for: eof\n- say: over', b"wait\ngo on\n"
    )
    assert (completed.returncode, completed.stdout) == (0, b"went\nover\n")


def test_a_fake_whose_output_nobody_reads_yet_waits(runner: ScenarioRunner) -> None:
    """A full pipe parks the fake, and it continues when there is room: no byte is lost."""
    completed = run_fake(runner, "- flood: {stdout: 300 KiB}\n- flood: {stderr: 300 KiB}\n- exit: 5")
    assert (completed.returncode, len(completed.stdout), len(completed.stderr)) == (5, 307_200, 307_200)


def test_a_silence_takes_its_real_time(runner: ScenarioRunner) -> None:
    """No shorter than it says; how much longer is the machine's business."""
    start = time.monotonic()
    assert run_fake(runner, "- silence: 30ms\n- say: late").stdout == b"late\n"
    assert time.monotonic() - start >= 0.03


def test_a_reaction_to_a_signal_runs(runner: ScenarioRunner) -> None:
    """A parked fake gets the signal at once and continues with its script."""
    script = "- when: {signal: TERM}\n  do: [{say: bye}, {exit: 9}]\n- say: ready\n- silence: for ever"
    with start_fake(runner, script) as process:
        process.terminate()
        assert process.stdout is not None
        assert process.stdout.read() == b"bye\n"
        assert process.wait() == 9


def test_a_signal_that_is_not_caught_kills_by_itself(runner: ScenarioRunner) -> None:
    """The status is the kernel's, as for a real agent."""
    with start_fake(runner, "- say: ready\n- silence: for ever") as process:
        process.send_signal(signal.SIGHUP)
        assert process.wait(CEILING) == -signal.SIGHUP


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_lingering_until_a_signal_ends_with_it(runner: ScenarioRunner, signum: signal.Signals) -> None:
    """A server's life: any of the polite signals ends the step, and the script continues."""
    script = "- meanwhile: [say: ready]\n- wait_for: signal\n- exit: 4"  # it is ready once it lingers
    with start_fake(runner, script) as process:
        process.send_signal(signum)
        assert process.wait() == 4


@pytest.mark.parametrize("output", ["flood: {stdout: 1 MiB}", "drip: {stdout: x, every: 1ms}"])
def test_a_fake_that_lost_its_reader_dies_of_it(runner: ScenarioRunner, output: str) -> None:
    """As any program that leaves the pipe signal alone: while it waits for room, and when it writes again."""
    with start_fake(runner, f"- say: ready\n- {output}") as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(CEILING) == -signal.SIGPIPE


def test_a_descendant_holds_the_stream_it_was_given(runner: ScenarioRunner) -> None:
    """The agent has ended, its child process keeps stdout open, and ends at its own time or with the runner."""
    script = "- spawn: {id: helper, inherits: [stdout], ignores_signals: true}\n- say: ready\n- exit: 0"
    with start_fake(runner, script, process_group=0) as process:
        assert process.stdout is not None
        assert process.wait(CEILING) == 0
        poll = select.poll()
        poll.register(process.stdout, select.POLLIN)
        assert poll.poll(0) == []
        os.killpg(process.pid, signal.SIGTERM)
        assert poll.poll(0) == []
        os.killpg(process.pid, signal.SIGKILL)
        assert process.stdout.read() == b""


def test_spawned_helpers_leave_no_zombie(runner: ScenarioRunner) -> None:
    """A fake reaps its helpers by itself: its own tree is clean while it lives."""
    script = "- spawn: {id: helper, for: 1ms}\n- say: ready\n- wait_for: eof"
    with start_fake(runner, script, stdin=subprocess.PIPE) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        assert all(is_gone(int(pid)) for pid in children.read_text("ascii").split())
        assert children.read_text("ascii").split() == []
        process.communicate(timeout=CEILING)
