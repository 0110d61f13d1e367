"""An agent that writes files: below its own folder, and nowhere else."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.corpus import list_corpus_files
from pytest_agentproc.scenario import loads

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_agentproc.harness import ScenarioRunner

pytestmark = pytest.mark.slow


def run_writing_agent(runner: ScenarioRunner, folder: Path | str, path: str) -> tuple[int, str]:
    """Run an agent that writes one file in a folder; give its exit code, and what it prints on both streams."""
    text = f"scenario: a\nagent: raw\nscript: [{{write_file: {{path: {path}, text: done}}}}, {{say: written}}]\n"
    fake = runner.make_fake(loads(text))
    ran = subprocess.run(fake.argv, cwd=folder, capture_output=True, text=True, timeout=30, check=False)
    return ran.returncode, ran.stdout


def test_a_file_is_written_below_the_folder_of_the_agent(runner: ScenarioRunner, tmp_path: Path) -> None:
    """Folders on the way are made, and an earlier file is replaced."""
    (tmp_path / "notes.txt").write_text("a longer text from before")
    for path in ("notes.txt", "out/of/sight.md"):
        assert run_writing_agent(runner, tmp_path, path) == (0, "written\n")
        assert (tmp_path / path).read_text() == "done"


@pytest.mark.parametrize("path", ["linked.txt", "linked/notes.txt"])
def test_no_link_leads_out_of_the_folder(runner: ScenarioRunner, tmp_path: Path, path: str) -> None:
    """A test that writes over a file of its user is worse than one that fails."""
    (outside := tmp_path / "outside").mkdir()
    (outside / "notes.txt").write_text("mine")
    (inside := tmp_path / "inside").mkdir()
    (inside / "linked").symlink_to(outside)
    (inside / "linked.txt").symlink_to(outside / "notes.txt")
    code, printed = run_writing_agent(runner, inside, path)
    assert (code != 0, printed) == (True, "")
    assert {file.name: file.read_text() for file in outside.iterdir()} == {"notes.txt": "mine"}


def test_no_file_is_written_in_the_folder_of_all_folders(runner: ScenarioRunner) -> None:
    """The kit starts the agents of sessions there."""
    code, printed = run_writing_agent(runner, "/", "agentproc-notes.txt")
    assert (code != 0, printed) == (True, "")


def test_no_bundled_scenario_writes_a_file() -> None:
    """A supervisor may start its agent in the user's own folder."""
    assert [file.name for file in list_corpus_files() if "write_file:" in file.read_text("utf-8")] == []
