"""Each call about time is exact, or its program is named: in each kind of program, place and way to call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.process.preload.stand import require_tracing
from tests.process.preload.waits import COMPILERS, NAMED, PLACES, build, list_names, run_calls

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.once]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", COMPILERS)
def test_each_call_takes_its_time_or_its_program_is_named(kind: str, place: str, tmp_path: Path) -> None:
    """What is not exact stands in the list of those that are named, and nothing else does."""
    require_tracing()
    program = build(kind, tmp_path)
    exact, named = list_names(kind, place)
    results, notes = run_calls(program, place, *exact)
    assert (notes, [cell for cell, is_exact in results.items() if not is_exact]) == ([], [])
    for name in named:
        results, notes = run_calls(program, place, name)
        assert {(kind, *cell) for cell, is_exact in results.items() if not is_exact} <= {*NAMED}  # exact by chance
        assert all(note.startswith("time passes as on the machine while ") for note in notes)
        assert notes
