"""Additions of other packages: a dialect, steps, a defect; in one session, and in no other of the same process."""

from __future__ import annotations

import pytest

from tests.plugin.scenarios import GREEN
from tests.plugin.toy import CHAT, PACKAGE, SCENARIO, TESTS


@pytest.fixture(autouse=True)
def _toy(pytester: pytest.Pytester) -> None:
    """Have the package in a folder where packages are installed, and a scenario that uses it."""
    for name, text in PACKAGE.items():
        path = pytester.path / "site" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    pytester.path.joinpath("beats.scenario.yaml").write_text(SCENARIO)


@pytest.mark.slow
def test_an_installed_package_adds_a_dialect_two_steps_and_a_defect(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is a package like any other: installed, it works under both clocks, in fixtures, and without pytest."""
    monkeypatch.setenv("PYTHONPATH", str(pytester.path / "site"))
    pytester.makepyfile(test_toy=TESTS)
    result = pytester.runpytest_subprocess("-v", "--agentproc-clock=both", "--agentproc-scale=8")
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["*beats.scenario.yaml::beats*asyncio-real* PASSED*"])


@pytest.mark.slow
def test_a_contributed_dialect_holds_sessions(pytester: pytest.Pytester) -> None:
    """A dialect that hears requests has a host for an encoder, and a talk for a decoder."""
    pytester.syspathinsert(pytester.path / "site")
    pytester.path.joinpath("chat.scenario.yaml").write_text(CHAT)
    pytester.runpytest("chat.scenario.yaml", "--agentproc-backend=both").assert_outcomes(passed=2)


@pytest.mark.slow
def test_a_contributed_defect_fails_the_scenario_on_the_key_that_it_names(pytester: pytest.Pytester) -> None:
    """The line is the one on which the contributed step stands, though others were played in its place."""
    pytester.syspathinsert(pytester.path / "site")
    result = pytester.runpytest("--agentproc-defect=beats-are-noise")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "  outcome: failed  beats.scenario.yaml:8",
            "    expected  completed",
            "    seen      stalled",
            "  the agent's last step: beats.scenario.yaml:5: - pulse: {every: 5s, times: 3}",
            '*stdout, 5 B "~lub?n"  [[]line 5]',
            "rerun: pytest 'beats.scenario.yaml::beats[[]beats-are-noise-asyncio[]]' --agentproc-defect=*-are-noise",
        ]
    )


@pytest.mark.slow
def test_what_is_added_stays_in_its_session(pytester: pytest.Pytester) -> None:
    """Two sessions of one process share modules, and must share nothing else."""
    pytester.syspathinsert(pytester.path / "site")
    pytester.runpytest().assert_outcomes(passed=1)
    pytester.path.joinpath("one.scenario.yaml").write_text(GREEN)
    result = pytester.runpytest("-p", "no:toy", "--continue-on-collection-errors")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        [
            'beats.scenario.yaml:2:18: unknown dialect "toy": known are raw, claude, pi, codex, gemini, opencode, acp',
            'beats.scenario.yaml:5:5: unknown step "pulse": *',
        ]
    )


@pytest.mark.parametrize(
    ("hook", "given", "message"),
    [
        ("dialects", "[3]", "it gave 3: give pytest_agentproc.vocabulary.Dialect objects"),
        ("dialects", "1 / 0", "raised ZeroDivisionError: division by zero at conftest.py:3: mend that first"),
        (
            "dialects",
            "[v.Dialect(name='pi', encoder='a', decoders={'text': 'a:B'})]",
            "dialect pi: the name is taken, the kit has it: choose another name",
        ),
        (
            "dialects",
            "[v.Dialect(name='toy', encoder='a/b', decoders={'text': 'a:B'})]",
            "conftest.py:3: dialect toy: encoder is 'a/b': it must be a module's dotted name, *",
        ),
        (
            "steps",
            "[v.ScriptStep(name='a', value='text', doc='x')] * 2",
            "step a: the name is taken, conftest.py adds one, too: choose another name",
        ),
        (
            "steps",
            "[v.ScriptStep(name='a', value='txt', doc='x')]",
            "conftest.py:3: step a: value is 'txt': it must be one of text, time, *",
        ),
        ("defects", "[d.Defect('Bad', 'A1', 'x')]", "defect 'Bad': that is no name: write small letters *"),
        (
            "defects",
            "[d.Defect('no-grace', 'A1', 'x')]",
            "defect no-grace: the name is taken, the kit has it: *",
        ),
        ("defects", "[d.Defect('bad', 'Z1', 'x')]", "defect bad: it breaks 'Z1': rules are A1, A2, *"),
        ("defects", "[d.Defect('bad', 'A1', 'x')]", None),
    ],
)
def test_a_wrong_contribution_is_refused_with_the_name_of_its_plugin(
    pytester: pytest.Pytester, hook: str, given: str, message: str | None
) -> None:
    """The reader has many plugins, and has written none of them."""
    pytester.makeconftest(
        "import pytest_agentproc.vocabulary as v, pytest_agentproc.defects as d\n"
        f"def pytest_agentproc_{hook}(config):\n    return {given}\n"
    )
    wanted = ["--agentproc-defect=bade"] if hook == "defects" else []
    result = pytester.runpytest("--collect-only", *wanted)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    text = f"pytest_agentproc_{hook} of conftest.py: {message}"
    if message is None:
        text = "--agentproc-defect=bade: there is no such defect, did you mean bad[?]"
    result.stderr.fnmatch_lines([f"ERROR: {text}"])
    assert len([line for line in result.errlines if line]) == 1
