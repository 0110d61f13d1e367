"""Beside each of the most used plugins of pytest, every test has the outcome that it has without the plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.neighbours.environments import NEWEST, OLDEST
from tests.neighbours.measuring import measure
from tests.neighbours.plugins import NEIGHBOURS, Neighbour, Proof
from tests.neighbours.sessions import disprove

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pytest_version", "neighbour"),
    [
        # Each release of pytest has one worker: the run without a plugin, which all others need, is made there once.
        pytest.param(version, neighbour, id=f"{neighbour.name}-{version}", marks=pytest.mark.xdist_group(version))
        for neighbour in NEIGHBOURS
        for version in (NEWEST, OLDEST)
    ],
)
def test_nothing_changes_beside(pytest_version: str, neighbour: Neighbour) -> None:
    """A user has it installed already; the exceptions are in its line of the table."""
    found = measure(pytest_version, neighbour)
    assert found.wrong == (), "\n".join(found.wrong)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pytest_version", "neighbour", "proof"),
    [
        pytest.param(
            version,
            neighbour,
            proof,
            id=f"{neighbour.name}-{number}.{part}-{version}",
            marks=pytest.mark.xdist_group(version),
        )
        for neighbour in NEIGHBOURS
        for number, difference in enumerate(neighbour.differences, 1)
        for part, proof in enumerate(difference.proofs, 1)
        for version in (NEWEST, OLDEST)
    ],
)
def test_an_exception_of_the_page_is_true(
    tmp_path: Path, pytest_version: str, neighbour: Neighbour, proof: Proof
) -> None:
    """The user sees what the page says, and what the user then writes helps."""
    problems = disprove(tmp_path, pytest_version, neighbour, proof)
    assert problems == [], "\n".join(problems)
