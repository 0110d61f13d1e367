"""An agent with the test run's own stdout or stderr: the reader is outside, and takes no virtual time."""

from __future__ import annotations

import fcntl
import os
import select
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from pytest_agentproc.fake_agents.program import MAX_WRITE_BYTES
from pytest_agentproc.scenario import loads
from pytest_agentproc.subjects import Function
from pytest_agentproc.verdict import Verdict, choose_overall_verdict, judge_all_expectations
from tests.architecture.sources import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_agentproc.harness import ScenarioRunner
    from pytest_agentproc.vocabulary import RunRequest

_FLOOD = loads("""\
scenario: talks much
agent: raw
script:
  - flood: {stderr: 1 MiB}
  - silence: 2s
  - flood: {stderr: 100 KiB}
  - say: hello
expect: {outcome: completed, elapsed: 2s, signals: []}
""")


@contextmanager
def _drain_in_other_process(number: int, reader: int, writer: int) -> Iterator[list[int]]:
    """Have another process read a descriptor of this process, and give how much came of each read."""
    sizes: list[int] = []
    over, stop = os.pipe()  # the kit's running programs have a copy of the other end: no end of file comes

    def drain() -> None:
        while reader in select.select([reader, over], [], [])[0] and (part := os.read(reader, 65536)):
            sizes.append(len(part))

    kept = os.dup(number)
    os.dup2(writer, number)
    os.close(writer)
    thread = threading.Thread(target=drain)
    thread.start()
    try:
        yield sizes
    finally:
        os.dup2(kept, number)
        os.write(stop, b".")
        thread.join()
        for descriptor in (kept, reader, over, stop):
            os.close(descriptor)


def _make_small_pipe() -> tuple[int, int]:
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    return reader, writer


def _make_non_blocking_pipe() -> tuple[int, int]:
    reader, writer = _make_small_pipe()
    os.set_blocking(writer, False)
    return reader, writer


def _make_socket_pair() -> tuple[int, int]:
    reader, writer = socket.socketpair()
    return reader.detach(), writer.detach()


_POURS = """\
import os
from pytest_agentproc.fake_agents.program import MAX_WRITE_BYTES
from pytest_agentproc.fake_agents.stage import SideEffectStage
told = []
about = os.fstat(2)
stage = SideEffectStage(lambda code, notes: told.append((code, notes)), foreign=[(about.st_dev, about.st_ino)])
for size in (MAX_WRITE_BYTES, 10, MAX_WRITE_BYTES):
    stage.write_chunk("stderr", b"x" * size)
assert [code for code, _ in told] == ["N", "N"], told
assert [len(data) for _, notes in told for _, data in notes] == [MAX_WRITE_BYTES, 10, MAX_WRITE_BYTES], told
"""


def test_a_word_comes_after_each_chunk_that_may_have_taken_long() -> None:
    """A slow reader of a flood is no agent that runs on."""
    completed = subprocess.run(
        [sys.executable, "-c", _POURS], cwd=ROOT, stderr=subprocess.PIPE, check=False, timeout=60
    )
    assert (completed.returncode, completed.stderr) == (0, b"x" * (2 * MAX_WRITE_BYTES + 10))


async def _supervise_without_stderr(order: RunRequest) -> dict[str, Any]:
    """Keep no stderr, as many supervisors do to show it to the user, and give up on a long silent agent."""
    start = anyio.current_time()
    with anyio.move_on_after(60) as scope:
        completed = await anyio.run_process(order.argv, env=order.env, stderr=None, check=False, start_new_session=True)
    if scope.cancelled_caught:
        return {"outcome": "inactive"}
    return {"outcome": "completed", "text": completed.stdout.decode().strip(), "elapsed": anyio.current_time() - start}


@pytest.mark.parametrize("kind", [_make_small_pipe, _make_non_blocking_pipe, _make_socket_pair])
def test_a_stderr_that_somebody_else_reads_makes_nobody_late(runner: ScenarioRunner, backend: str, kind: Any) -> None:
    """`pytest -s 2>&1 | tee log`: a pipe that is full for a moment is no agent that is silent for a minute."""
    with _drain_in_other_process(2, *kind()) as sizes:
        rows = judge_all_expectations(runner.play(_FLOOD, Function(_supervise_without_stderr), backend=backend))
    assert choose_overall_verdict(rows) is Verdict.PASSED
    assert sum(sizes) == 1124 * 1024
