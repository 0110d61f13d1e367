"""Known failures of a supervisor under test: the file beside the ini file, what it excuses, how it is written."""

from __future__ import annotations

import os

import pytest

from tests.plugin.reports.test_summary import find_sentences
from tests.plugin.scenarios import GREEN, RED
from tests.plugin.subjects.test_choice import MINE

FILE = "agentproc-baseline.yaml"
KNOWN = "# Ours.\n- scenario: two\n  check: exit_code\n  reason: it has none\n"
FAILS = """
async def fails(order):
    await supervise(order)
    return {"outcome": "failed", "text": "hello", "elapsed": 0}
"""


@pytest.fixture(autouse=True)
def _scenarios(pytester: pytest.Pytester) -> None:
    """Have a scenario that `supervise` passes, one that it fails, and its name in the ini file."""
    (pytester.path / "one.scenario.yaml").write_text(GREEN)
    (pytester.path / "two.scenario.yaml").write_text(RED)
    (pytester.path / "mine.py").write_text(MINE + FAILS)
    pytester.makeini("[pytest]\nagentproc_subject = mine:supervise\n")


def test_a_baseline_that_is_no_file_is_refused_unread(pytester: pytest.Pytester) -> None:
    """A pipe under its name would hold up the whole run, before any test."""
    os.mkfifo(pytester.path / FILE)
    result = pytester.runpytest_subprocess(timeout=60)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{FILE} cannot be read: it is a named pipe, and not a regular file:*"])


def test_a_known_failure_is_an_expected_one(pytester: pytest.Pytester) -> None:
    """The file is found beside the ini file; the reason stands where pytest shows reasons."""
    (pytester.path / FILE).write_text(KNOWN)
    result = pytester.runpytest("-rx")
    result.assert_outcomes(passed=1, xfailed=1)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["XFAIL two.scenario.yaml::two*exit_code: it has none"])
    assert [parts[1:3] for parts in find_sentences(result)] == [
        ("is conformant", "must: 0 failed, should: 0 failed, undecided: 0; 1 passed, 0 not applicable, 1 known")
    ]


def test_the_default_file_counts_for_a_defect_too(pytester: pytest.Pytester) -> None:
    """An entry names the defect as its supervisor; an entry of others does not stay behind unseen."""
    own = KNOWN.replace("  check", "  subject: one-grace\n  check")
    (pytester.path / FILE).write_text(own + own.replace("exit_code", "outcome"))
    pytester.makeini("[pytest]\n")
    pytester.runpytest("--agentproc-defect=one-grace").assert_outcomes(passed=1, xfailed=1)
    (pytester.path / FILE).write_text(KNOWN.replace("two", "tow"))
    result = pytester.runpytest("--agentproc-defect=one-grace")
    result.stderr.fnmatch_lines([f"*{FILE}:2: there is no scenario tow: did you mean two?"])


def test_another_failure_of_the_same_scenario_still_fails_it(pytester: pytest.Pytester) -> None:
    """An entry excuses one check."""
    (pytester.path / FILE).write_text(KNOWN)
    result = pytester.runpytest("--agentproc-subject=mine:fails", "two.scenario.yaml")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["  outcome: failed  two.scenario.yaml:9", "  passed: leaks", "  known: exit_code"])


def test_a_listed_check_that_passes_fails_the_scenario(pytester: pytest.Pytester) -> None:
    """With the line that is to go."""
    (pytester.path / FILE).write_text("- {scenario: one, check: text, reason: x}\n")
    result = pytester.runpytest("one.scenario.yaml")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "  text: failed  one.scenario.yaml:7",
            f"              (listed in {FILE}:1, but it passes: remove the entry)",
        ]
    )


def test_a_listed_key_that_does_not_exist_fails_it_too(pytester: pytest.Pytester) -> None:
    """With the nearest that does."""
    (pytester.path / FILE).write_text(KNOWN.replace("exit_code", "exitcode"))
    result = pytester.runpytest("two.scenario.yaml")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*listed in *:2, but the scenario has no such check: did you mean exit_code?)"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (KNOWN.replace("two", "tow"), f"{FILE}:2: there is no scenario tow: did you mean two?"),
        (KNOWN.replace("reason", "raeson"), f"{FILE}:2:3: the entry has no reason: write reason: ..."),
    ],
)
def test_a_mistake_in_the_file_is_reported_before_anything_is_collected(
    pytester: pytest.Pytester, text: str, message: str
) -> None:
    """With its place; a bundled scenario need not be collected to be known."""
    (pytester.path / FILE).write_text(text + "- {scenario: silent-then-output, check: outcome, reason: x}\n")
    result = pytester.runpytest("one.scenario.yaml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.errlines[0] == f"ERROR: {message}"


def test_a_file_that_was_named_must_be_there(pytester: pytest.Pytester) -> None:
    """The option and the ini value name another one; the ini file's names are seen from its folder."""
    result = pytester.runpytest("--agentproc-baseline=nowhere.yaml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.errlines[0] == (
        "ERROR: the baseline nowhere.yaml cannot be read: No such file or directory: "
        "--agentproc-update-baseline writes one"
    )
    (pytester.path / "known.yaml").write_text(KNOWN)
    pytester.runpytest("--agentproc-baseline=known.yaml").assert_outcomes(passed=1, xfailed=1)
    pytester.makeini("[pytest]\nagentproc_subject = mine:supervise\nagentproc_baseline = known.yaml\n")
    pytester.runpytest().assert_outcomes(passed=1, xfailed=1)


def test_the_reference_is_excused_by_no_list_of_others(pytester: pytest.Pytester) -> None:
    """A comparison with the reference supervisor shows the reference supervisor."""
    (pytester.path / FILE).write_text(KNOWN)
    pytester.runpytest("--agentproc-subject=reference").assert_outcomes(passed=1, failed=1)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [[], pytest.param(["-n", "2"], marks=pytest.mark.once)], ids=["alone", "workers"])
def test_the_file_is_written_and_the_next_session_is_green(pytester: pytest.Pytester, workers: list[str]) -> None:
    """An entry that is listed already keeps its words; the session that writes is green, too."""
    mended = "# Mended long ago.\n- {scenario: one, check: text, reason: x}\n"
    (pytester.path / FILE).write_text(f"{KNOWN}{mended}- scenario: gone\n  check: a\n  reason: b\n")
    how = ["--agentproc-subject=mine:fails", *workers]
    result = pytester.runpytest("--agentproc-update-baseline", *how)
    result.assert_outcomes(xfailed=2)
    result.stdout.fnmatch_lines([f"agentproc: {FILE} lists 3 known failures"])
    assert (pytester.path / FILE).read_text() == (
        KNOWN
        + "- scenario: one\n  check: outcome\n  reason: not looked at yet\n"
        + "- scenario: two\n  check: outcome\n  reason: not looked at yet\n"
    )
    pytester.runpytest(*how).assert_outcomes(xfailed=2)


def test_a_file_that_is_not_there_yet_is_made(pytester: pytest.Pytester) -> None:
    """Where it is looked for."""
    pytester.runpytest("--agentproc-update-baseline").assert_outcomes(passed=1, xfailed=1)
    assert (pytester.path / FILE).read_text() == KNOWN.replace("# Ours.\n", "").replace(
        "it has none", "not looked at yet"
    )
