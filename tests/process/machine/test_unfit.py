"""A machine on which fakes cannot work: one sentence before the first of them, and no verdict on any supervisor."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import subprocess
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from pytest_agentproc import subjects
from pytest_agentproc.errors import KitError, UsageError
from pytest_agentproc.harness import ScenarioRunner, require_startable_fakes
from pytest_agentproc.harness import _faults as _machine
from pytest_agentproc.scenario import loads
from tests.attacks.descriptors import leave_descriptors_free
from tests.process.stand import list_open_descriptors

if TYPE_CHECKING:
    from pathlib import Path

SOUND = "scenario: a\nagent: raw\nscript: [{answer: x}]\nexpect: {outcome: completed}\n"


@pytest.fixture(autouse=True)
def _anew() -> Any:
    """The sight of the machine is kept; here each test has one of its own."""
    _machine.require_startable_fakes_in.cache_clear()
    yield
    _machine.require_startable_fakes_in.cache_clear()


def _read_refusal() -> str:
    with ScenarioRunner() as runner, pytest.raises(UsageError) as error:
        runner.play(loads(SOUND), subjects.reference_supervisor())
    return str(error.value)


def test_a_sound_machine_is_no_trouble() -> None:
    """This one is."""
    require_startable_fakes()


def test_a_temporary_folder_without_execution_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Every fake would be a program that cannot be started, and 52 of 54 scenarios red."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_flag=os.ST_NOEXEC))
    assert _read_refusal() == (
        f"the folder for temporary files, {tmp_path}, is mounted noexec, and fake agents are started from there\n"
        "set TMPDIR to a folder from which programs may be started"
    )


def test_few_processes_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fork that fails is the machine's, and not the supervisor's."""
    limits = {resource.RLIMIT_NPROC: (10, 10), resource.RLIMIT_NOFILE: (resource.RLIM_INFINITY,) * 2}
    monkeypatch.setattr(resource, "getrlimit", limits.__getitem__)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(_machine, "count_tasks_of_this_user", lambda: 7)
    assert _read_refusal() == (
        "this user may have 10 processes and threads at most, and with a scenario there are up to 39\n"
        "raise the limit, such as with: ulimit -u 4096"
    )


def test_few_descriptors_are_said_by_the_command(tmp_path: Path) -> None:
    """A limit of 64 once made 52 of 54 scenarios red."""
    path = tmp_path / "x.scenario.yaml"
    path.write_text(SOUND, "utf-8")
    command = f'ulimit -n 64; exec "{sys.executable}" -m pytest_agentproc run "{path}"'
    completed = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, check=False)
    assert completed.returncode == 2
    assert completed.stderr == (
        "agentproc run: a process may open 64 files at most, and scenarios need 256\n"
        "raise the limit, such as with: ulimit -n 1024\n"
    )


def test_descriptors_that_were_used_up_meanwhile_are_said() -> None:
    """A test left files open: the next supervisor could start no agent, and was called wrong."""
    with ScenarioRunner() as runner:
        runner.play(loads(SOUND), subjects.reference_supervisor())
        with leave_descriptors_free(60, 300), pytest.raises(UsageError, match="a process may open 300 files at most"):
            runner.play(loads(SOUND), subjects.reference_supervisor())
        runner.play(loads(SOUND), subjects.reference_supervisor())


@pytest.mark.parametrize("free", range(1, 8))
def test_a_play_that_has_no_descriptors_keeps_none(free: int) -> None:
    """The copy of stdin stayed if there was none for the pipe that replaces it."""
    with ScenarioRunner() as runner:
        runner.play(loads(SOUND), subjects.reference_supervisor())
        before = list_open_descriptors()
        with leave_descriptors_free(free, 300), contextlib.suppress(KitError, UsageError):
            runner.play(loads(SOUND), subjects.reference_supervisor())
        assert list_open_descriptors() == before


def test_what_the_machine_refuses_to_the_kit_is_no_verdict() -> None:
    """The file of a fake cannot be written: its folder is gone, as with a disk that is full."""
    with ScenarioRunner() as runner:
        runner.play(loads(SOUND), subjects.reference_supervisor())
        shutil.rmtree(runner._workshop.folder)  # type: ignore[union-attr]  # noqa: SLF001
        with pytest.raises(KitError, match=r"the machine refused the kit something: .* No such file or directory"):
            runner.play(loads(SOUND), subjects.reference_supervisor())


def test_a_scenario_on_such_a_machine_is_an_error_and_no_failure(tmp_path: Path) -> None:
    """The report calls it so, and shows the sentence alone."""
    (tmp_path / "x.scenario.yaml").write_text(SOUND, "utf-8")
    command = f'ulimit -n 64; exec "{sys.executable}" -m pytest -p no:cacheprovider -q'
    completed = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert "1 error" in completed.stdout
    assert "a process may open 64 files at most, and scenarios need 256\n" in completed.stdout
    assert "Traceback" not in completed.stdout
