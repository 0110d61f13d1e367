"""The README is short, and has the project's commands; tests/docs runs its blocks."""

from __future__ import annotations

import pytest

from tests.architecture.sources import ROOT
from tests.docs.blocks import find_blocks

pytestmark = pytest.mark.once

COMMANDS = [
    "python3 -m venv .venv && .venv/bin/pip install -e . && .venv/bin/pytest scenarios\n",
    "python3 -m venv .venv && .venv/bin/pip install -e '.[test]' && .venv/bin/pytest -n auto\n",
]
README = (ROOT / "README.md").read_text("utf-8")


def _find_blocks(language: str) -> list[str]:
    return [block.text for block in find_blocks(README) if block.language == language]


def test_it_has_the_install_line_and_the_two_commands() -> None:
    """A user installs by the first, and who clones the project pastes the others; .ci/run does the same."""
    assert _find_blocks("sh") == ["pip install pytest-agentproc\n", *COMMANDS]


def test_the_scenario_fits_on_a_postcard() -> None:
    """The first example decides whether a QA person reads on."""
    [scenario] = _find_blocks("yaml")
    assert len(scenario.splitlines()) <= 12


def test_it_is_read_in_five_minutes() -> None:
    """All else stands in docs/, one page a task."""
    assert len(README.splitlines()) <= 150
