"""Fakes in tests with many examples: each example has its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.plugin.first_contact.errors import list_error_lines

if TYPE_CHECKING:
    import pytest

TEST = """
import anyio
from hypothesis import given, settings, strategies as st

from pytest_agentproc.plugin import FakeAgents


def command(words):
    return ["claude", "-p", "hi", *words]


@settings(max_examples=10, deadline=None, derandomize=True, database=None)
@given(words=st.lists(st.sampled_from(["a", "--verbose", "b"]), max_size=2))
def test_every_word_arrives(words):
    with FakeAgents() as agents:
        agents.on_path("claude")
        agents.virtual_clock.run(anyio.run_process, command(words))
        agents["claude"].assert_called_once_with("-p", "hi", *words)
"""


def test_each_example_has_its_own_fakes(pytester: pytest.Pytester) -> None:
    """A call of one example is no call of the next one."""
    pytester.makepyfile(TEST)
    pytester.runpytest().assert_outcomes(passed=1)


def test_the_smallest_example_that_fails_is_shown(pytester: pytest.Pytester) -> None:
    """The twin: a command line that drops a word."""
    pytester.makepyfile(TEST.replace("*words]", "*(word for word in words if word[0] != '-')]"))
    result = pytester.runpytest()
    result.assert_outcomes(failed=1)
    assert [line.strip() for line in list_error_lines(result)[:4]] == [
        "AssertionError: claude was called once, but with something else",
        "expected  claude -p hi --verbose",
        "seen      claude -p hi",
        "(different: argv)",
    ]
    assert "words=['--verbose']," in result.stdout.str()
