"""Fakes without a clock: they keep real time, serve any program, and go with the lab that made them."""

from __future__ import annotations

import signal
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.harness import Lab, _lab
from pytest_agentproc.supervisor import Completion, Framing
from pytest_agentproc.supervisor.dialects import decoder
from tests.process.stand import CEILING, is_gone, scenario_of

if TYPE_CHECKING:
    from collections.abc import Iterator

DEAF = """
- when: {signal: TERM}
  do: []
- spawn: {id: helper, how: same_group, deaf: true}
- say: ready
- silence: for ever
"""


def run(lab: Lab, script: str, stdin: bytes = b"", agent: str = "raw") -> subprocess.CompletedProcess[bytes]:
    """Run a fake as a shell would, from nowhere and without an environment."""
    argv = lab.fake(scenario_of(script, agent)).argv
    return subprocess.run(argv, check=False, input=stdin, capture_output=True, cwd="/", env={}, timeout=CEILING)


@contextmanager
def started(lab: Lab, script: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start a fake and give it once it has said its first line; it is ended at the latest here."""
    argv = lab.fake(scenario_of(script)).argv
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield process
        finally:
            process.kill()


def child_of(pid: int) -> int:
    """Give the pid of the only child of a process."""
    (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()
    return int(child)


def test_a_fake_prints_what_its_script_says(lab: Lab) -> None:
    """Without a clock it is an executable like any other."""
    done = run(lab, "- say: one\n- raw: {text: err, to: stderr}\n- say: two\n- exit: 3")
    assert (done.returncode, done.stdout, done.stderr) == (3, b"one\ntwo\n", b"err")


def test_a_script_that_ends_is_a_good_exit(lab: Lab) -> None:
    """And a signal that it dies of is a real one."""
    assert run(lab, "- say: one").returncode == 0
    assert run(lab, "- die: SEGV").returncode == -signal.SIGSEGV


def test_a_fake_speaks_its_dialect(lab: Lab) -> None:
    """The bytes of the wire format are the same in both times."""
    completion, reader = Completion(), decoder("pi")
    for line in Framing().feed(run(lab, "- answer: done", agent="pi").stdout):
        for meaning in reader.decode(line):
            completion.feed(meaning, 0)
    assert (completion.ok, completion.text) == (True, "done")


def test_a_fake_reads_its_stdin(lab: Lab) -> None:
    """It waits for lines and for the end, as a real program does."""
    done = run(lab, '- wait_for: {stdin: "go*"}\n- say: went\n- wait_for: eof\n- say: over', b"wait\ngo on\n")
    assert (done.returncode, done.stdout) == (0, b"went\nover\n")


def test_a_fake_whose_output_nobody_reads_yet_waits(lab: Lab) -> None:
    """A flood of more than a pipe holds comes through whole."""
    done = run(lab, "- flood: {stdout: 300 KiB}\n- flood: {stderr: 300 KiB}\n- exit: 5")
    assert (done.returncode, len(done.stdout), len(done.stderr)) == (5, 307_200, 307_200)


def test_a_silence_takes_its_real_time(lab: Lab) -> None:
    """No shorter than it says; how much longer is the machine's business."""
    begun = time.monotonic()
    assert run(lab, "- silence: 30ms\n- say: late").stdout == b"late\n"
    assert time.monotonic() - begun >= 0.03


def test_a_reaction_to_a_signal_runs(lab: Lab) -> None:
    """A parked fake hears the signal at once and goes on with what it was told to do."""
    script = "- when: {signal: TERM}\n  do: [{say: bye}, {exit: 9}]\n- say: ready\n- silence: for ever"
    with started(lab, script) as process:
        process.terminate()
        assert process.stdout is not None
        assert process.stdout.read() == b"bye\n"
        assert process.wait() == 9


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_lingering_until_a_signal_ends_with_it(lab: Lab, signum: signal.Signals) -> None:
    """A server's life: any of the polite signals ends it, and the script goes on."""
    script = "- meanwhile: [say: ready]\n- linger: until signal\n- exit: 4"  # it is ready once it lingers
    with started(lab, script) as process:
        process.send_signal(signum)
        assert process.wait() == 4


def test_a_fake_that_lost_its_reader_dies_of_it(lab: Lab) -> None:
    """As any program that leaves the pipe signal alone."""
    with started(lab, "- say: ready\n- flood: {stdout: 1 MiB}") as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait() == -signal.SIGPIPE


def test_fakes_go_with_their_lab() -> None:
    """A deaf fake and its deaf helper are killed by the kernel when the lab lets go."""
    lab = Lab()
    try:
        with started(lab, DEAF) as process:
            helper = child_of(process.pid)
            lab.close()
            assert process.wait() == -signal.SIGKILL
            assert is_gone(helper)
    finally:
        lab.close()


@pytest.mark.slow
def test_fakes_do_not_outlive_their_lifetime(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lab that is forgotten open does not keep a deaf fake for ever."""
    monkeypatch.setattr(_lab, "LIFETIME", 0.1)
    with Lab() as lab, started(lab, DEAF) as process:
        helper = child_of(process.pid)
        assert process.wait() == -signal.SIGKILL
        assert is_gone(helper)
