"""Fakes without a virtual clock: plain programs on the machine's own time."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.harness import Lab
from tests.process.stand import CEILING, is_gone, scenario_of

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def own_lab() -> Iterator[Lab]:
    """Give a lab that has no virtual clock."""
    with Lab() as lab:
        yield lab


def command(lab: Lab, script: str, agent: str = "raw") -> list[str]:
    """Make a fake for real time."""
    return lab.fake(scenario_of(script, agent)).argv


def test_a_conversation_works_as_with_any_program(own_lab: Lab) -> None:
    """Plain subprocess code needs to know nothing of us."""
    argv = command(own_lab, "- wait_for: {stdin: 'hello*'}\n- say: hello back\n- raw: {text: e, to: stderr}\n- exit: 4")
    done = subprocess.run(argv, input=b"hello you\n", capture_output=True, timeout=CEILING, check=False)
    assert (done.stdout, done.stderr, done.returncode) == (b"hello back\n", b"e", 4)


def test_it_is_silent_for_as_long_as_its_script_says(own_lab: Lab) -> None:
    """Not before: how much later is the machine's business."""
    argv = command(own_lab, "- silence: 60ms\n- say: done")
    begun = time.monotonic()
    done = subprocess.run(argv, capture_output=True, timeout=CEILING, check=False)
    assert done.stdout == b"done\n"
    assert 0.06 <= time.monotonic() - begun <= CEILING


def test_it_works_without_any_environment_and_from_anywhere(own_lab: Lab) -> None:
    """Several clients scrub the environment and change the folder."""
    argv = command(own_lab, "- answer: done", "pi")
    done = subprocess.run(argv, env={}, cwd="/", capture_output=True, timeout=CEILING, check=False)
    assert done.stdout.splitlines()[-1].startswith(b'{"type":"agent_end"')
    assert done.returncode == 0


def test_a_caught_signal_starts_its_reaction(own_lab: Lab) -> None:
    """A signal interrupts a wait without any end."""
    argv = command(
        own_lab, "- when: {signal: TERM}\n  do: [{say: heard}, {exit: 143}]\n- say: ready\n- linger: for ever"
    )
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.terminate()
        assert process.stdout.readline() == b"heard\n"
        assert process.wait(CEILING) == 143


def test_a_signal_that_is_not_caught_kills_by_itself(own_lab: Lab) -> None:
    """The status is the kernel's, as for a real agent."""
    argv = command(own_lab, "- say: ready\n- linger: for ever")
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGHUP)
        assert process.wait(CEILING) == -signal.SIGHUP


def test_a_flood_against_a_slow_reader_is_whole(own_lab: Lab) -> None:
    """A full pipe parks the fake, and it goes on when there is room: no byte is lost."""
    argv = command(own_lab, "- flood: {stdout: 300KiB}\n- flood: {stderr: 300KiB}")
    done = subprocess.run(argv, capture_output=True, timeout=CEILING, check=False)
    assert (len(done.stdout), len(done.stderr), done.returncode) == (300 << 10, 300 << 10, 0)


def test_a_reader_that_goes_away_ends_it_by_sigpipe(own_lab: Lab) -> None:
    """As it ends any program that does not ask for anything else."""
    argv = command(own_lab, "- say: ready\n- wait_for: {stdin: go}\n- drip: {stdout: x, every: 1ms}")
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        process.stdin.write(b"go\n")
        process.stdin.flush()
        assert process.wait(CEILING) == -signal.SIGPIPE


def test_a_descendant_holds_the_stream_it_was_given(own_lab: Lab) -> None:
    """The agent is gone, its helper keeps stdout open, and goes at its own time or with the lab."""
    argv = command(own_lab, "- spawn: {id: helper, holds: [stdout], deaf: true}\n- say: bye\n- exit: 0")
    with subprocess.Popen(argv, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        assert process.wait(CEILING) == 0
        assert process.stdout.readline() == b"bye\n"
        poll = select.poll()
        poll.register(process.stdout, select.POLLIN)
        assert poll.poll(0) == []
        os.killpg(process.pid, signal.SIGTERM)
        assert poll.poll(0) == []
        os.killpg(process.pid, signal.SIGKILL)
        assert process.stdout.read() == b""


def test_spawned_helpers_leave_no_zombie(own_lab: Lab) -> None:
    """A fake reaps its helpers by itself: its own tree is clean while it lives."""
    argv = command(own_lab, "- spawn: {id: helper, for: 1ms}\n- say: ready\n- linger: until eof")
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        assert all(is_gone(int(pid)) for pid in children.read_text("ascii").split())
        assert children.read_text("ascii").split() == []
        process.communicate(timeout=CEILING)
