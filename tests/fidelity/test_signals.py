"""On a signal the fakes do what the real CLIs do, in each mode and state; `real-signals.txt` has the facts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.fidelity.signals import PLACES, SIGNALS, measure_fake, measure_real, read_measured

if TYPE_CHECKING:
    from tests.fidelity.signals import Place

pytestmark = pytest.mark.slow

STATES = [(place, state) for place in PLACES for state in place.states]
RACES = {("claude", "session", "model", "INT"), ("claude", "session", "answering", "INT+INT")}
"""Rows in which the real claude prints its result, or exits before: both were seen."""


def _name(value: object) -> str:
    return value if isinstance(value, str) else f"{value.cli} {value.mode}"  # type: ignore[attr-defined]


@pytest.mark.parametrize(("place", "state"), [row for row in STATES if not row[0].package], ids=_name)
def test_a_fake_takes_a_signal_as_the_real_cli_does(place: Place, state: str) -> None:
    """Exit code, the running tool and the lines that are still printed; a second signal changes none of them."""
    measured = read_measured()
    rows = {signals: measured[place.cli, place.mode, state, signals] for signals in SIGNALS}
    seen = {signals: measure_fake(place, state, signals.partition("+")[0]) for signals in ("TERM", "INT", "HUP")}
    strict = {signals: row for signals, row in rows.items() if (place.cli, place.mode, state, signals) not in RACES}
    assert {signals: seen[signals.partition("+")[0]] for signals in strict} == strict


@pytest.mark.parametrize(("place", "state"), STATES, ids=_name)
def test_the_facts_are_those_of_the_pinned_releases(place: Place, state: str) -> None:
    """Mended by `python -m tests.fidelity.signals`, whose diff shows what a new release changes."""
    measured = {key: row for key, row in read_measured().items() if key[:3] == (place.cli, place.mode, state)}
    rows = {key: row for key, row in measured.items() if "+" not in key[3] and key not in RACES}
    assert {key: measure_real(place, state, key[3]) for key in rows} == rows
