"""With a stdin that stays open the fakes do what the real CLIs do; `real-stdin.txt` has the facts."""

from __future__ import annotations

import pytest

from tests.fidelity.stdin import CASES, MODES, measure_fake, measure_real, read_measured

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("cli", "mode"), MODES)
def test_a_fake_takes_an_open_stdin_as_the_real_cli_does(cli: str, mode: str) -> None:
    """Exit code, whether it waits for the end, and the first line on stderr."""
    measured = read_measured()
    assert {case: measure_fake(cli, mode, case) for case in CASES} == {
        case: measured[cli, mode, case] for case in CASES
    }


@pytest.mark.parametrize(("cli", "mode"), MODES)
def test_the_facts_about_stdin_are_those_of_the_pinned_releases(cli: str, mode: str) -> None:
    """Mended by `python -m tests.fidelity.stdin`, whose diff shows what a new release changes."""
    measured = read_measured()
    assert {case: measure_real(cli, mode, case) for case in CASES} == {
        case: measured[cli, mode, case] for case in CASES
    }
