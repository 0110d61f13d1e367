"""A scenario as an ordinary test function: what pytest and an IDE see, and the failure that is the scenario's own."""

from __future__ import annotations

import pytest

FILES = {
    "good": "scenario: hello\nagent: raw\nscript: [say: hello]\nexpect: {text: hello}\n",
    "bad": "scenario: it exits with 0\nagent: raw\nscript: [exit: 3]\nexpect: {exit_code: 0}\n",
    "broken": "scenario: hello\nagent: raw\nscript: [sya: hello]\n",
}
TESTS = """
import pytest

@pytest.mark.agentproc("good.scenario.yaml")
def test_empty():
    pass

@pytest.mark.agentproc("good.scenario.yaml")
def test_result(agent_scenario, agent_timeline):
    assert (agent_scenario.text, agent_timeline.at("exit")) == ("hello", 0)

@pytest.mark.agentproc("good.scenario.yaml")
def test_body(agent_scenario):
    assert agent_scenario.text == "goodbye"

@pytest.mark.agentproc("good.scenario.yaml")
@pytest.mark.agentproc("silent-past-the-limit", "byte-a-minute")
@pytest.mark.parametrize("number", [1, 2])
def test_several(agent_scenario, number):
    assert agent_scenario.outcome in ("completed", "inactive")

@pytest.mark.agentproc("bad.scenario.yaml")
def test_red():
    raise SystemExit("never run")

@pytest.mark.agentproc("broken.scenario.yaml", "missing.scenario.yaml", "byte-a-minutes")
def test_mistakes():
    raise SystemExit("never run")

def test_unmarked(agent_scenario):
    pass
"""


@pytest.mark.slow
def test_a_marked_function_is_the_scenario(pytester: pytest.Pytester) -> None:
    """Green, red and broken ones are reported as scenario files are, and disturb no other tests."""
    for name, text in FILES.items():
        (pytester.path / f"{name}.scenario.yaml").write_text(text, "utf-8")
    pytester.makepyfile(test_mine=TESTS)
    result = pytester.runpytest("--strict-markers", "-v", "--junitxml=out.xml", "test_mine.py")
    result.assert_outcomes(passed=8, failed=5, errors=1)
    for lines in (
        ["test_mine.py::test_empty[[]good-asyncio[]] PASSED (0 s virtual, * real)*"],
        ["test_mine.py::test_several[[]byte-a-minute-asyncio-1[]] PASSED (300 s virtual, *"],
        ["bad.scenario.yaml:4: it exits with 0", "", "  exit_code: failed  bad.scenario.yaml:4"],
        ["*the run as a page*", "*test-red-bad-asyncio-*.html"],
        ['broken.scenario.yaml:3:10: unknown step "sya": did you mean "say"?'],
        ["missing.scenario.yaml:1:1: the file cannot be read: No such file or directory"],
        ["no bundled scenario is called byte-a-minutes, did you mean byte-a-minute?"],
        ["E*agent_scenario is for tests that are marked with a scenario"],
    ):
        result.stdout.fnmatch_lines(lines)
    assert "never run" not in result.stdout.str()


def test_a_marked_function_that_is_skipped_names_its_scenario(pytester: pytest.Pytester) -> None:
    """The reason stands at the function, because that is where its user looks."""
    script = "scenario: hello\nagent: raw\nscript: [silence: max_runtime]\nexpect: {outcome: completed}\n"
    (pytester.path / "limit.scenario.yaml").write_text(script, "utf-8")
    mark = '@pytest.mark.agentproc("limit.scenario.yaml")'
    pytester.makepyfile(test_mine=f"import pytest\n{mark}\ndef test_empty(): pass")
    result = pytester.runpytest("-rs")
    result.stdout.fnmatch_lines(["SKIPPED [[]1] test_mine.py:2: limit: not applicable: line 3 needs max_runtime, *"])


def test_a_marker_that_names_nothing_is_refused(pytester: pytest.Pytester) -> None:
    """It says where, and what to write."""
    pytester.makepyfile(test_mine="import pytest\n@pytest.mark.agentproc\ndef test_nothing(): pass")
    result = pytester.runpytest()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["test_mine.py::test_nothing: @pytest.mark.agentproc takes the names of scenarios: *"])
