"""The page of the comparison equals the scenarios' verdicts on each client today, played afresh."""

from __future__ import annotations

import pytest

from tests.clients.comparison import ADAPTERS, PAGE, write_page_text

_LONGEST = 40


def test_an_adapter_is_short() -> None:
    """A user with a supervisor of their own writes no more than this."""
    lines = {path.name: len([line for line in path.read_text("utf-8").splitlines() if line]) for path in ADAPTERS}
    assert len(lines) == 3
    assert {name: count for name, count in lines.items() if count > _LONGEST} == {}


# Some of these clients leave pipes open when they are cancelled. The page shows what follows for their users.
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.slow
def test_the_page_is_what_the_scenarios_say() -> None:
    """A red that comes or goes is news for its readers: write it again with `python -m tests.clients.comparison`."""
    assert write_page_text() == PAGE.read_text("utf-8")
