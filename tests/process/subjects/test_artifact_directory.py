"""The directory that a supervisor under test is given: how it fails, and whom a scenario about that applies to."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.errors import KitError
from pytest_agentproc.harness import _supervise as _room
from pytest_agentproc.harness._supervise import ArtifactDirectory
from pytest_agentproc.scenario import NotApplicable, Scenario
from pytest_agentproc.subjects import ReferenceSupervisor, reference_supervisor
from pytest_agentproc.verdict import Verdict, choose_overall_verdict, judge_all_expectations
from pytest_agentproc.vocabulary import ARTIFACT_TEXTS, RunReport, RunRequest
from tests.bundled import load_bundled

if TYPE_CHECKING:
    from pytest_agentproc.harness import ScenarioRunner

READ_ONLY = load_bundled("artifacts-on-a-read-only-disk")
FULL = load_bundled("artifacts-on-a-full-disk")
KEPT = load_bundled("artifacts-survive-a-forced-exit")


class WithoutArtifacts(ReferenceSupervisor):
    """The reference supervisor without artifacts: many supervisors keep none, and never said that they do."""

    keeps_artifacts = False

    async def run(self, order: RunRequest) -> RunReport:
        """Run with no directory."""
        assert order.artifacts is None
        return await super().run(order)


class WritesInPlace(WithoutArtifacts):
    """Writes one artifact under its own name, as most programs do, and warns if it cannot."""

    keeps_artifacts = True

    async def run(self, order: RunRequest) -> RunReport:
        """Run, then write."""
        answer = await super().run(replace(order, artifacts=None))
        assert order.artifacts is not None
        try:
            self.keep(Path(order.artifacts))
        except OSError:
            return replace(answer, warnings=("artifacts_incomplete",))
        return answer

    def keep(self, folder: Path) -> None:
        """Write the one file."""
        (folder / "stdout.log").write_bytes(b"line\n")


class WritesAndRenames(WritesInPlace):
    """Writes under another name first, and knows nothing of a disk that is played."""

    def keep(self, folder: Path) -> None:
        """Write, then rename."""
        (folder / "part").write_bytes(b"line\n")
        (folder / "part").replace(folder / "stdout.log")


def find_verdict(runner: ScenarioRunner, scenario: Scenario, subject: ReferenceSupervisor) -> Verdict:
    """Play a scenario, and conclude."""
    return choose_overall_verdict(judge_all_expectations(runner.play(scenario, subject)))


@pytest.mark.parametrize("scenario", [READ_ONLY, FULL], ids=lambda scenario: scenario.id)
def test_a_failing_disk_fails_a_supervisor_that_writes_in_place(runner: ScenarioRunner, scenario: Scenario) -> None:
    """A foreign supervisor meets the kernel's own refusal, and is judged by its reaction."""
    assert find_verdict(runner, scenario, WritesInPlace()) is Verdict.PASSED


def test_a_full_disk_that_takes_bytes_is_no_verdict_on_the_supervisor(runner: ScenarioRunner) -> None:
    """A writer with temporary file names cannot be given a full disk without its help; a red would be our mistake."""
    with pytest.raises(NotApplicable) as caught:
        runner.play(FULL, WritesAndRenames())
    assert (caught.value.name, caught.value.line) == ("files that meet the kit's full disk", 5)


@pytest.mark.parametrize("scenario", [READ_ONLY, FULL], ids=lambda scenario: scenario.id)
def test_a_scenario_about_the_disk_is_not_applicable_without_artifacts(
    runner: ScenarioRunner, scenario: Scenario
) -> None:
    """A warning about files that it never wrote cannot be asked of a supervisor."""
    with pytest.raises(NotApplicable) as caught:
        runner.play(scenario, WithoutArtifacts())
    assert (caught.value.name, caught.value.line) == ("artifacts", 5)


def test_checks_of_files_are_not_applicable_without_artifacts(runner: ScenarioRunner) -> None:
    """Everything else of the scenario is judged as always."""
    rows = judge_all_expectations(runner.play(KEPT, WithoutArtifacts()))
    of_files = {row.verdict for row in rows if row.key.startswith("artifacts")}
    others = {row.verdict for row in rows if not row.key.startswith("artifacts")}
    assert (of_files, others) == ({Verdict.NOT_APPLICABLE}, {Verdict.PASSED})


def test_a_play_leaves_no_directory(runner: ScenarioRunner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The files of one run are none of the next one's; a link to /dev/full is not read."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    room = ArtifactDirectory(FULL, tmp_path, keeps_artifacts=True)
    assert room.path is not None
    assert sorted(os.listdir(room.path)) == sorted(ARTIFACT_TEXTS)  # noqa: PTH208  # names
    assert room.read_files() == {}
    room.close()
    assert runner.play(KEPT, reference_supervisor()).artifacts is not None
    assert [*tmp_path.iterdir()] == []


def test_a_machine_on_which_every_directory_takes_files_is_a_kit_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A disk that is read-only in name only would make every supervisor look wrong."""
    monkeypatch.setattr(_room, "_UNWRITABLE_FOLDERS", (str(tmp_path), str(tmp_path / "not-there")))
    with pytest.raises(KitError, match="is a directory in which no file can be made"):
        ArtifactDirectory(READ_ONLY, tmp_path, keeps_artifacts=True)
    assert [*tmp_path.iterdir()] == []
