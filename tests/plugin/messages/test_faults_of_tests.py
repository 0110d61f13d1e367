"""A mistake of the test is named so. It is no failure of the kit, and no traceback of the kit is shown for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

MODE = """
    import subprocess

    def test_mode(fake_agents):
        fake_agents.on_path(claude="- answer: done")
        words = ["--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]
        assert subprocess.run(["claude", "-p", *words], input=b"").returncode == 0

    def test_command(fake_agents):
        fake_agents.on_path(claude="- answer: done")
        subprocess.run(["claude", "mcp", "add", "files", "serve"])
"""


def test_a_script_that_cannot_answer_the_arguments_is_at_fault(pytester: pytest.Pytester) -> None:
    """It was a KitError with fifty lines of the kit's code. The failed test itself says it too."""
    pytester.makepyfile(test_it=MODE)
    result = pytester.runpytest("-q", "-rN")
    result.assert_outcomes(passed=1, failed=1, errors=2)
    start = next(place for place, line in enumerate(result.outlines) if "ERRORS" in line)
    words = (
        "a fake cannot play this script: its arguments ask for mode session, which is a session, but its script is for "
        "mode print, which is a run: write `agent: {dialect: claude, mode: session}` above `script:`, or `flags: any` "
        "in place of the mode"
    )
    assert result.outlines[start + 1 : start + 5] == [
        " ERROR at teardown of test_mode ".center(80, "_"),
        f"test_it.py:3:1: {words}",
        " ERROR at teardown of test_command ".center(80, "_"),
        (
            "test_it.py:8:1: a fake cannot play this script: the fake has no command mcp: "
            "with `flags: any` it plays its script all the same"
        ),
    ]
    assert f"E       agentproc: test_it.py:3:1: {words}" in result.outlines


SWAPPED = """
    def test_one(fake_agent):
        fake_agent.on_path(claude="- answer: done")

    def test_several(fake_agents):
        fake_agents("- answer: done")
"""


def test_the_fixture_of_the_similar_name_is_named(pytester: pytest.Pytester) -> None:
    """fake_agent and fake_agents differ by one letter."""
    pytester.makepyfile(SWAPPED)
    result = pytester.runpytest()
    result.assert_outcomes(failed=2)
    assert [line for line in result.outlines if line.startswith("E ")] == [
        "E       pytest_agentproc.errors.UsageError: fake_agent makes one fake, without a name on PATH",
        "E       write fake_agents.on_path(...)",
        "E       pytest_agentproc.errors.UsageError: fake_agents puts fakes on PATH, by their names",
        "E       write fake_agent(...) for a fake by itself",
    ]
