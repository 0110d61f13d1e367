"""`--agentproc-search=N`: the values that a scenario leaves open are searched as a part of its test."""

from __future__ import annotations

import pytest

from tests.architecture.sources import ROOT

_OPEN = """\
scenario: an agent's exit is waited for
agent: raw
script:
  - say: a
  - one_of: [{silence: 1s}, {silence: 20s}]
  - exit: 0
expect: {outcome: completed}
"""

_IMPATIENT = """\
import anyio

async def run(order):
    with anyio.move_on_after(10) as scope:
        await anyio.run_process(order.argv, env=order.env, check=False, start_new_session=True)
    return "inactive" if scope.cancelled_caught else "completed"
"""


@pytest.mark.slow
def test_a_supervisor_of_ones_own_is_searched_with_real_processes(pytester: pytest.Pytester) -> None:
    """It passes the plain run and fails a slightly later setting; the scenario that shows it is printed."""
    (pytester.path / "one.scenario.yaml").write_text(_OPEN)
    (pytester.path / "mine.py").write_text(_IMPATIENT)
    pytester.runpytest("--agentproc-subject=mine:run").assert_outcomes(passed=1)
    pytester.runpytest("--agentproc-search=5").assert_outcomes(passed=1)
    result = pytester.runpytest("--agentproc-subject=mine:run", "--agentproc-search=5")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "one.scenario.yaml: the search broke a promise in setting * of *: outcome is inactive, not completed",
            "this is the scenario that shows it; keep it as found-one.scenario.yaml:",
            "scenario: an agent's exit is waited for",
            "  - {silence: 20s}",
            "  outcome: completed",
        ]
    )


_CLOSED = """\
scenario: an agent's exit is waited for
agent: raw
script:
  - say: a
  - silence: 1s
  - exit: 0
expect: {outcome: completed, elapsed: 1s}
catches: {no-such-defect: outcome}
"""


@pytest.mark.slow
def test_a_right_supervisor_stays_green_and_a_wrong_one_is_found_in_a_file_without_open_values(
    pytester: pytest.Pytester,
) -> None:
    """One run for both: whatever moves in the file, the careful one meets it; the impatient one does not know why."""
    (pytester.path / "one.scenario.yaml").write_text(_CLOSED)
    (pytester.path / "mine.py").write_text(_IMPATIENT)
    subjects = "--agentproc-subject=mine:run,tests.plugin.examples.careful:subject"
    result = pytester.runpytest_subprocess(subjects, "--agentproc-explore=12", "-o", f"pythonpath={ROOT}")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*__ one[[]run-asyncio[]] __*",
            "one.scenario.yaml: the search broke a promise in setting * of *: outcome is inactive, not completed",
            "this is the scenario that shows it; keep it as found-one.scenario.yaml:",
            "# found by agentproc search --explore --seed 0 in setting *",
            "scenario: an agent's exit is waited for",
            "expect: {outcome: completed, elapsed: 1*s}",
        ]
    )


def test_a_number_of_settings_that_is_none_is_refused(pytester: pytest.Pytester) -> None:
    """A search that silently did not happen would be taken for a green one."""
    result = pytester.runpytest("--agentproc-search=many")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*must be a whole number, at most 1000000; 0: no search*"])
