"""Where /proc shows no processes, or those of another pid namespace, supervision is refused with one sentence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_agentproc.clock.preload import find_coordinator
from pytest_agentproc.errors import UsageError
from pytest_agentproc.tree import require_own_proc

ROOT = Path(__file__).parents[3]
INNER = ["unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child"]
REMEDY = "mount one in this pid namespace: `mount -t proc proc /proc`, `bwrap --proc /proc`, `unshare --mount-proc`"
PROGRAM = """
import anyio
from functools import partial
from pytest_agentproc.clock.preload import find_coordinator
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
    """A normal /proc is not refused."""
    require_own_proc()


def test_a_folder_without_processes_is_refused(tmp_path: Path) -> None:
    """Nothing is mounted there."""
    with pytest.raises(UsageError) as caught:
        require_own_proc(str(tmp_path))
    assert str(caught.value) == f"{tmp_path} shows no processes, but a tree is found there\n{REMEDY}"


def test_a_proc_in_which_this_process_has_another_number_is_refused(tmp_path: Path) -> None:
    """A pid names another process there."""
    (tmp_path / "self").symlink_to("1234567")
    with pytest.raises(UsageError) as caught:
        require_own_proc(str(tmp_path))
    expected = f"{tmp_path} shows another pid namespace: process {os.getpid()} is 1234567 there"
    assert str(caught.value) == f"{expected}\n{REMEDY}"


def test_a_proc_in_which_the_number_is_the_same_by_chance_is_refused(tmp_path: Path) -> None:
    """The kernel lists a second pid for a process of an inner namespace."""
    number = str(os.getpid())
    (tmp_path / number).mkdir()
    (tmp_path / number / "status").write_text(f"Name:\tx\nNSpid:\t{number}\t{number}\n")
    (tmp_path / "self").symlink_to(number)
    with pytest.raises(UsageError, match="shows another pid namespace"):
        require_own_proc(str(tmp_path))


def _run_in_pid_namespace(script: str, *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a shell in another pid namespace, where /proc is still the outer one."""
    probe = subprocess.run([*INNER, "true"], check=False, timeout=60)
    if probe.returncode != 0:
        pytest.skip(f"this kernel does not permit {' '.join(INNER)}")
    return subprocess.run(
        [*INNER, "sh", "-c", script, *words],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "words"),
    [("", "/proc shows another pid namespace: process "), ("mount -t tmpfs none /proc &&", "/proc shows no processes")],
)
def test_a_run_and_a_session_are_refused_there(before: str, words: str) -> None:
    """A run never ended there, or reported an empty tree while processes lived."""
    completed = _run_in_pid_namespace(f'{before} exec "$0" -c "$1"', sys.executable, PROGRAM)
    assert completed.returncode == 0, completed.stderr
    lines = completed.stdout.splitlines()
    assert len(lines) == 4
    assert all(line.startswith(words) for line in lines), lines


@pytest.mark.slow
def test_a_keeper_is_refused_there() -> None:
    """It would hold a tree that it cannot see."""
    completed = _run_in_pid_namespace(
        'exec "$0" -c "$1"', sys.executable, "from pytest_agentproc.tree import Keeper; Keeper()"
    )
    assert "UsageError: /proc shows another pid namespace: process " in completed.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "words"),
    [
        ("", "/proc shows another pid namespace: process "),
        ("mount -t tmpfs none /proc &&", "/proc does not show the processes of this pid namespace"),
    ],
)
def test_virtual_time_is_refused_there_and_nobody_is_killed(before: str, words: str) -> None:
    """The coordinator took the processes with the numbers of its own tree, and sent them KILL."""
    with subprocess.Popen(["sleep", "100"]) as bystander:
        completed = _run_in_pid_namespace(
            f'{before} exec "$0" "$@"', str(find_coordinator()), "sh", "-c", "echo; sleep 1"
        )
        alive = bystander.poll() is None
        bystander.kill()
    assert (completed.returncode, completed.stdout, alive) == (2, "", True)
    assert completed.stderr.startswith(f"agentproc time: {words}")
    assert completed.stderr.endswith(f"agentproc time: {REMEDY}\n")


@pytest.mark.slow
def test_a_recording_is_refused_there(tmp_path: Path) -> None:
    """It would say that the program had no descendants."""
    command = 'exec "$0" -m pytest_agentproc record --yes --out x.scenario.yaml -- echo hi'
    completed = _run_in_pid_namespace(command, sys.executable, cwd=tmp_path)
    assert completed.returncode == 2
    assert completed.stdout == ""
    assert completed.stderr.startswith("agentproc record: /proc shows another pid namespace: process ")
    assert completed.stderr.endswith(f" there\n{REMEDY}\n")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("option", ["", "--agentproc-process-tree"])
def test_a_process_tree_is_refused_there(tmp_path: Path, option: str) -> None:
    """Each test would leave nothing; where all are watched it is said once."""
    names = "process_tree" if not option else ""
    more = "" if not option else "def test_b():\n    pass\n"
    (tmp_path / "test_a.py").write_text(f"def test_a({names}):\n    pass\n{more}", "utf-8")
    command = f'exec "$0" -m pytest -p no:cacheprovider -q -rN {option}'
    completed = _run_in_pid_namespace(command, sys.executable, cwd=tmp_path)
    said = completed.stdout + completed.stderr
    assert "/proc shows another pid namespace: process " in said
    assert said.count(REMEDY) == 1
    assert "Traceback" not in said
    assert completed.returncode == (4 if option else 1)
