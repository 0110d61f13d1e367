"""`--agentproc-clock=model` plays without a process; `--agentproc-repeat=N` holds every play against the first."""

from __future__ import annotations

import pytest

from tests.plugin.scenarios import GREEN, RED

MINE = """\
import anyio

PLAYS = []

async def steady(order):
    PLAYS.append(order)
    await anyio.run_process(order.argv, env=order.env, check=False, start_new_session=True)
    return "completed"

async def tiring(order):
    await anyio.sleep(len(PLAYS) // 2)
    return await steady(order)
"""


def test_the_model_plays_what_processes_play(pytester: pytest.Pytester) -> None:
    """Its timeline is the same, so its verdicts are; a scenario has one play there, whatever the loops are."""
    for name, text in {"one": GREEN, "two": RED}.items():
        (pytester.path / f"{name}.scenario.yaml").write_text(text)
    told = {}
    for clock in ("virtual", "model"):
        result = pytester.runpytest("-v", f"--agentproc-clock={clock}")
        result.assert_outcomes(passed=1, failed=1)
        told[clock] = [line for line in result.outlines if line.startswith(("  outcome", "    seen", "    expected"))]
    assert told["model"] == told["virtual"] != []
    result = pytester.runpytest("-v", "--agentproc-clock=model", "--agentproc-backend=both")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["one.scenario.yaml::one?model? PASSED (* virtual, * real)*"])


def test_the_model_does_not_play_other_peoples_supervisors(pytester: pytest.Pytester) -> None:
    """It holds the reference supervisor alone; no supervisor is reported conformant without a run."""
    (pytester.path / "one.scenario.yaml").write_text(GREEN)
    result = pytester.runpytest("-rs", "--agentproc-clock=model", "--agentproc-subject=null")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(
        [
            "SKIPPED *not applicable: the model plays the reference supervisor only",
            "agentproc: null was not judged because no check passed: *",
        ]
    )


def test_repeating_reports_the_first_play_that_is_another_one(pytester: pytest.Pytester) -> None:
    """A green that comes and goes is no green, and it says where the two part."""
    (pytester.path / "one.scenario.yaml").write_text(GREEN)
    (pytester.path / "mine.py").write_text(MINE)
    pytester.makeconftest("def pytest_unconfigure():\n    import mine\n    print('PLAYED', len(mine.PLAYS))\n")
    result = pytester.runpytest("-s", "--agentproc-repeat=4", "--agentproc-subject=mine:tiring")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "  repeat: kit error",
            "    expected  the same record",
            "    seen      once  0 s *starts",
            "              then  ~~~ 1 s pass ~~~",
            "*(virtual time plays the same twice; if its own choices *",
            "agentproc: tiring has no verdict because of 1 kit error: must: 0 failed, *",
            "  1 kit error, 0 passed, *",
            "PLAYED 3",
        ]
    )


@pytest.mark.parametrize("clock", ["virtual", "model"])
def test_repeating_the_reference_finds_nothing(pytester: pytest.Pytester, clock: str) -> None:
    """It is a service for those who doubt it."""
    (pytester.path / "one.scenario.yaml").write_text(GREEN)
    pytester.runpytest("--agentproc-repeat=3", f"--agentproc-clock={clock}").assert_outcomes(passed=1)


def test_a_count_that_is_none_is_refused(pytester: pytest.Pytester) -> None:
    """Before anything is played."""
    result = pytester.runpytest("--agentproc-repeat=0")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --agentproc-repeat=0: must be a whole number from 1"])
