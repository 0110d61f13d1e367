"""A project of its own: an empty directory, a fresh virtual environment, this package and what it requires."""

from __future__ import annotations

import os
import re
import subprocess
import venv
from importlib import metadata
from typing import TYPE_CHECKING

import pytest

from tests.architecture.sources import ROOT
from tests.process.stand import CEILING

if TYPE_CHECKING:
    from pathlib import Path

LONGEST_CONFTEST = 10


def _list_required_distributions() -> set[str]:
    """Name the distributions that this one requires, without its extras, and those that they require."""
    names, left = {"pytest-agentproc"}, ["pytest-agentproc"]
    while left:
        for line in metadata.requires(left.pop()) or ():
            name, condition = re.split(r"[^A-Za-z0-9._-]", line.strip(), maxsplit=1)[0], line.partition(";")[2]
            is_wanted = not condition or ("extra" not in condition and _is_there(name))
            if is_wanted and name not in names:
                names.add(name)
                left.append(name)
    return names


def _is_there(name: str) -> bool:
    """Say whether something is installed that is required on some systems only."""
    return next(iter(metadata.Distribution.discover(name=name)), None) is not None


def _link_distribution(distribution: metadata.Distribution, place: Path) -> None:
    """Have a virtual environment see what is installed in this one."""
    tops = {file.parts[0] for file in distribution.files or () if file.parts[0] not in ("..", "__pycache__")}
    for top in tops:
        if not place.joinpath(top).exists():
            place.joinpath(top).symlink_to(str(distribution.locate_file(top)))


@pytest.mark.slow
def test_a_conftest_of_ten_lines_is_all_that_an_empty_directory_needs(tmp_path: Path) -> None:
    """An undeclared requirement is missing here, and the failed rules are named."""
    home = tmp_path / "venv"
    venv.create(home, symlinks=True, with_pip=False)
    [place] = home.glob("lib/python*/site-packages")
    for name in _list_required_distributions():
        _link_distribution(metadata.distribution(name), place)
    place.joinpath("here.pth").write_text(f"{ROOT}\n", "utf-8")
    project = tmp_path / "project"
    project.mkdir()
    examples = ROOT / "tests" / "plugin" / "examples" / "asyncio_wait_for"
    for file in examples.glob("*.py"):
        project.joinpath(file.name).write_text(file.read_text("utf-8"), "utf-8")
    conftest = project.joinpath("conftest.py").read_text("utf-8")
    assert len([line for line in conftest.splitlines() if line]) <= LONGEST_CONFTEST
    completed = subprocess.run(
        [home / "bin" / "python", "-m", "pytest", "--agentproc-corpus", "-q", "--tb=no", "-rN", "-k", "byte-a-minute"],
        cwd=project,
        env={"PATH": os.environ["PATH"], "COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=False,
        timeout=CEILING,
    )
    assert "\nA1  any byte is activity; a run that is       1" in completed.stdout, completed.stdout + completed.stderr
    assert "agentproc: mine is not conformant: must: 1 failed, " in completed.stdout
    assert (completed.returncode, completed.stderr) == (pytest.ExitCode.TESTS_FAILED, "")
