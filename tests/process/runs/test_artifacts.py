"""Artifacts of real runs on real directories: whole, private, and without any weight on a run when the disk fails."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from pytest_agentproc.supervisor import Outcome, Policy, Result, run_once
from pytest_agentproc.vocabulary import ARTIFACT_TEXTS
from tests.process.runs.test_once import PYTHON, QUICK, run_command_once, run_shell_line, run_with_ceiling
from tests.process.stand import CEILING, is_gone, list_open_descriptors

if TYPE_CHECKING:
    from tests.process.stand import Stand

ROOT = Path(__file__).resolve().parents[3]


def list_files(folder: Path) -> list[str]:
    """List the files in a folder."""
    return sorted(file.name for file in folder.iterdir())


def read_result_file(folder: Path) -> dict[str, Any]:
    """Read a run's result.json."""
    fields: dict[str, Any] = json.loads((folder / "result.json").read_bytes())
    return fields


def test_a_run_leaves_its_five_files(backend: str, tmp_path: Path) -> None:
    """In a directory that was not there, for its owner alone, and nothing beside them."""
    folder = tmp_path / "runs" / "1"
    line = r"printf 'one\n\377'; printf 'oops\n' >&2; exit 3"
    result = run_shell_line(backend, line, artifacts=folder, run_id="run 1", model="m0", cwd=str(tmp_path))
    assert list_files(folder) == sorted(ARTIFACT_TEXTS)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {0o600}
    assert (folder / "stdout.log").read_bytes() == b"one\n\xff"
    assert (folder / "stderr.log").read_bytes() == b"oops\n"
    assert (folder / "transcript.log").read_text("utf-8") == f"{result.text}\n"
    fields = read_result_file(folder)
    assert (fields["run_id"], fields["requested_model"], fields["cwd"]) == ("run 1", "m0", str(tmp_path))
    assert fields["argv"] == ["/bin/sh", "-c", line]
    assert (fields["outcome"], fields["exit_code"], fields["agent_status"]) == ("failed", 3, 3)
    assert 0 < fields["elapsed"] <= fields["returned"] == result.returned / 1e9 < CEILING
    assert fields["started_at"] < fields["ended_at"]
    assert (result.warnings, result.unwritten) == ((), {})


def test_an_agent_that_cannot_start_leaves_a_result(backend: str, tmp_path: Path) -> None:
    """The reader of a result wants to know the attempt and the reason of its failure; a run without a name gets one."""
    run_command_once(backend, "/nope/agent", artifacts=str(tmp_path))
    assert list_files(tmp_path) == sorted(ARTIFACT_TEXTS)
    fields = read_result_file(tmp_path)
    assert (fields["outcome"], fields["exit_code"], fields["agent_status"]) == ("spawn_failed", 127, None)
    assert fields["error"] == "/nope/agent: /nope/agent: No such file or directory (errno 2)"
    assert len(fields["run_id"]) == 32


@pytest.mark.parametrize("place", ["/sys", "/proc", "file/below"])
def test_a_directory_that_takes_no_file_changes_nothing_but_the_warnings(
    backend: str, place: str, tmp_path: Path
) -> None:
    """The kernel's own refuse root too; a file is no directory."""
    (tmp_path / "file").write_bytes(b"")
    result = run_shell_line(backend, "echo done; exit 3", artifacts=tmp_path / place)
    assert (result.outcome, result.exit_code, result.text) == (Outcome.FAILED, 3, "done")
    assert result.warnings == ("artifacts_incomplete",)
    assert sorted(result.unwritten) == sorted(ARTIFACT_TEXTS)
    assert list_files(tmp_path) == ["file"]


def test_a_name_that_is_taken_by_a_directory_costs_one_file(backend: str, tmp_path: Path) -> None:
    """The others are whole, and result.json says which one is missing and why."""
    (tmp_path / "stdout.log").mkdir()
    result = run_shell_line(backend, "echo done", artifacts=tmp_path)
    assert list_files(tmp_path) == sorted(ARTIFACT_TEXTS)
    assert result.unwritten == {"stdout.log": "Is a directory"}
    assert (read_result_file(tmp_path)["unwritten"], read_result_file(tmp_path)["warnings"]) == (
        result.unwritten,
        ["artifacts_incomplete"],
    )


def test_a_directory_that_the_agent_removes_costs_the_files(backend: str, tmp_path: Path) -> None:
    """An agent that cleans up too much is still supervised; only the result, which comes last, has a place again."""
    folder = tmp_path / "run"
    result = run_shell_line(backend, f"echo done; rm -r {folder}", artifacts=folder)
    assert (result.outcome, result.text) == (Outcome.COMPLETED, "done")
    assert sorted(result.unwritten) == sorted(set(ARTIFACT_TEXTS) - {"result.json"})
    assert list_files(folder) == ["result.json"]


LIMITED = """
import anyio, json, resource, sys
from pytest_agentproc.supervisor import run_once
resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))
line = "for i in 1 2 3; do head -c 4000 /dev/zero >&2; done; echo done"
result = anyio.run(lambda: run_once(["/bin/sh", "-c", line], artifacts=sys.argv[1]))
print(json.dumps([result.outcome, len(result.stderr_tail), result.warnings, result.unwritten]))
"""


@pytest.mark.slow
def test_a_file_that_cannot_grow_on_is_not_left_in_part(tmp_path: Path) -> None:
    """The kernel refuses in the middle of a file: the written part is removed, the other files stay."""
    completed = subprocess.run(
        [PYTHON, "-c", LIMITED, str(tmp_path)], capture_output=True, text=True, timeout=CEILING, check=False, cwd=ROOT
    )
    unwritten = {"stderr.log": "File too large"}
    assert (completed.stderr, json.loads(completed.stdout)) == (
        "",
        ["completed", 12000, ["artifacts_incomplete"], unwritten],
    )
    assert list_files(tmp_path) == sorted(set(ARTIFACT_TEXTS) - {"stderr.log"})
    assert read_result_file(tmp_path)["unwritten"] == unwritten


@pytest.mark.slow
def test_a_failing_disk_costs_no_descriptor(backend: str, tmp_path: Path) -> None:
    """Ten runs on a failing disk leave as many descriptors open as ten runs on a good disk."""
    (tmp_path / "stdout.log").mkdir()
    run_shell_line(backend, "exit 0", artifacts=tmp_path)
    before = list_open_descriptors()
    for folder in (tmp_path, Path("/sys"), tmp_path / "other") * 5:
        run_shell_line(backend, "echo x; echo y >&2", artifacts=folder)
        run_command_once(backend, "/nope/agent", artifacts=folder)
    assert list_open_descriptors() == before


def test_an_agent_gets_no_descriptor_of_a_file(backend: str, tmp_path: Path) -> None:
    """The agent could write to an inherited descriptor, and hold it open beyond its run."""
    result = run_shell_line(backend, "ls -l /proc/self/fd", artifacts=tmp_path)
    assert "part" not in result.transcript


PRINTS = {
    "stopped": "trap '' TERM; echo begun; echo $$ >{pids}; sleep 60",
    "completed": (
        """echo '{{"type":"message_end","message":{{"role":"assistant","content":"ok","stopReason":"stop"}}}}';"""
        "echo $$ >{pids}; sleep 60"
    ),
}


@pytest.mark.parametrize("outcome", PRINTS)
def test_a_run_that_is_cancelled_leaves_its_files_whole(backend: str, outcome: str, tmp_path: Path) -> None:
    """A caller that cancels gets no result, so result.json is the only report: the outcome reached, or `stopped`."""
    fifo, folder = tmp_path / "pids", tmp_path / "run"
    os.mkfifo(fifo)
    begin = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    argv = ["/bin/sh", "-c", PRINTS[outcome].format(pids=fifo)]
    policy = Policy(inactivity_timeout=CEILING, linger_grace=CEILING, kill_grace=CEILING)

    async def host() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(supervise)
            await anyio.wait_readable(begin)
            for _ in range(100):  # the looks of these rounds read the bytes printed before
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()

    async def supervise() -> None:
        await run_once(argv, dialect="pi", policy=policy, artifacts=folder)

    run_with_ceiling(backend, host)
    pid = int(os.read(begin, 100))
    os.close(begin)
    assert is_gone(pid)
    assert list_files(folder) == sorted(ARTIFACT_TEXTS)
    fields = read_result_file(folder)
    assert (fields["outcome"], fields["agent_status"], fields["forced"]) == (outcome, -9, True)
    if outcome == "stopped":
        assert fields["exit_code"] == 130
        assert fields["error"].startswith("the run was given up: Cancel")
    else:
        assert (fields["exit_code"], fields["text"], fields["error"]) == (0, "ok", "")


KILLED = """
import anyio, os, signal, sys
from pytest_agentproc.supervisor import Artifacts, Deciders, run_once

class Dying(Artifacts):
    def log_event(self, event, meanings, now):
        super().log_event(event, meanings, now)
        if meanings:
            os.kill(os.getpid(), signal.SIGKILL)

argv = ["/bin/sh", "-c", "echo $$; read line"]
anyio.run(lambda: run_once(argv, artifacts=sys.argv[1], deciders=Deciders(artifacts=Dying)))
"""


@pytest.mark.slow
def test_a_supervisor_that_is_killed_leaves_no_result_and_no_half_file(tmp_path: Path) -> None:
    """The lines that it had read are there, under names that no reader mistakes for the files."""
    completed = subprocess.run([PYTHON, "-c", KILLED, str(tmp_path)], timeout=CEILING, check=False, cwd=ROOT)
    assert completed.returncode == -signal.SIGKILL
    parts = {name.rsplit(".", 2)[0]: tmp_path / name for name in list_files(tmp_path) if name.endswith(".part")}
    assert sorted(parts) == sorted(set(ARTIFACT_TEXTS) - {"result.json"})
    assert len(list_files(tmp_path)) == len(parts)
    assert is_gone(int(parts["stdout.log"].read_bytes()))


def test_runs_that_share_a_directory_leave_one_runs_files_each_whole(backend: str, tmp_path: Path) -> None:
    """A caller's mistake, but nothing is torn by it."""

    async def supervise(number: int) -> None:
        await run_once(["/bin/echo", str(number) * 2000], policy=QUICK, artifacts=tmp_path)

    async def host() -> None:
        async with anyio.create_task_group() as group:
            for number in range(8):
                group.start_soon(supervise, number)

    run_with_ceiling(backend, host)
    assert list_files(tmp_path) == sorted(ARTIFACT_TEXTS)
    log = (tmp_path / "stdout.log").read_text("utf-8")
    assert (len(log), len(set(log.strip()))) == (2001, 1)
    assert read_result_file(tmp_path)["outcome"] == "completed"


@pytest.mark.slow
def test_dates_are_the_wall_clocks_and_durations_the_runs(stand: Stand, tmp_path: Path) -> None:
    """In virtual time a run of two hours ends two hours later, on the wall clock that follows it too."""
    argv = stand.fake("- silence: 2h\n- exit: 0")

    async def supervise() -> Result:
        return await run_once(argv, policy=Policy(inactivity_timeout=None), artifacts=tmp_path)

    result = stand.run(supervise)
    assert result.returned == 7200 * 1_000_000_000
    fields = read_result_file(tmp_path)
    assert (fields["started_at"], fields["ended_at"]) == ("2026-01-01T00:00:00.000000Z", "2026-01-01T02:00:00.000000Z")
    assert (fields["elapsed"], fields["returned"]) == (7200.0, 7200.0)
