"""Where /proc shows no processes, or those of another pid namespace, supervision is refused with one sentence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_agentproc.errors import UsageError
from pytest_agentproc.tree import check_proc

ROOT = Path(__file__).parents[2]
INNER = ["unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child"]
REMEDY = "mount one in this pid namespace: `mount -t proc proc /proc`, `bwrap --proc /proc`, `unshare --mount-proc`"
PROGRAM = """
import anyio
from functools import partial
from pytest_agentproc.errors import UsageError
from pytest_agentproc.supervisor import Policy, open_session, run_once

async def main():
    for containment in ("group", "subreaper", "keeper"):
        try:
            await run_once(["echo", "hi"], policy=Policy(containment=containment))
        except UsageError as error:
            print(error.message)
    try:
        async with open_session(["cat"], dialect="pi"):
            pass
    except UsageError as error:
        print(error.message)

anyio.run(main)
"""


def test_a_proc_of_ones_own_is_accepted() -> None:
    """Nobody else is refused."""
    check_proc()


def test_a_folder_without_processes_is_refused(tmp_path: Path) -> None:
    """Nothing is mounted there."""
    with pytest.raises(UsageError) as caught:
        check_proc(str(tmp_path))
    assert str(caught.value) == f"{tmp_path} shows no processes, but a tree is found there\n{REMEDY}"


def test_a_proc_in_which_this_process_has_another_number_is_refused(tmp_path: Path) -> None:
    """A pid names another process there."""
    (tmp_path / "self").symlink_to("1234567")
    with pytest.raises(UsageError) as caught:
        check_proc(str(tmp_path))
    expected = f"{tmp_path} shows another pid namespace: process {os.getpid()} is 1234567 there"
    assert str(caught.value) == f"{expected}\n{REMEDY}"


def test_a_proc_in_which_the_number_is_the_same_by_chance_is_refused(tmp_path: Path) -> None:
    """The kernel lists a second pid for a process of an inner namespace."""
    number = str(os.getpid())
    (tmp_path / number).mkdir()
    (tmp_path / number / "status").write_text(f"Name:\tx\nNSpid:\t{number}\t{number}\n")
    (tmp_path / "self").symlink_to(number)
    with pytest.raises(UsageError, match="shows another pid namespace"):
        check_proc(str(tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "words"),
    [("", "/proc shows another pid namespace: process "), ("mount -t tmpfs none /proc &&", "/proc shows no processes")],
)
def test_a_run_and_a_session_are_refused_there(before: str, words: str) -> None:
    """A run never ended there, or reported an empty tree while processes lived."""
    probe = subprocess.run([*INNER, "true"], check=False, timeout=60)
    if probe.returncode != 0:
        pytest.skip(f"this kernel does not permit {' '.join(INNER)}")
    done = subprocess.run(
        [*INNER, "sh", "-c", f'{before} exec "$0" -c "$1"', sys.executable, PROGRAM],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 4
    assert all(line.startswith(words) for line in lines), lines
