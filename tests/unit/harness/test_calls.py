"""Assertions on the calls of a fake: what fits, and what a failure says, word for word."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import ANY

import pytest

from pytest_agentproc.harness import MultiScriptFake
from pytest_agentproc.record import AgentStart

if TYPE_CHECKING:
    from collections.abc import Callable


class _FakeWithStarts(MultiScriptFake):
    """A claude with calls that were made up."""

    def __init__(self, *starts: AgentStart) -> None:
        self.name, self._starts = "claude", starts

    @property
    def starts(self) -> tuple[AgentStart, ...]:
        return self._starts


def build_start(*argv: str, stdin: bytes = b"", env: dict[str, str] | None = None) -> AgentStart:
    """Make up one call."""
    return AgentStart("agent", 0.0, argv, env or {}, Path("/work"), stdin, (), None, None)


@pytest.mark.parametrize(
    "argv",
    [
        ("-p", "--model", "opus"),
        ("-p", ANY, "opus"),
        (...,),
        (..., "opus"),
        ("-p", ...),
        ("-p", ..., "--model", "opus", ...),
        (..., "--model", ...),
    ],
)
def test_arguments_fit_by_equality_and_ellipsis(argv: tuple[Any, ...]) -> None:
    """A test names the words that it is about, and no others."""
    _FakeWithStarts(build_start("-p", "--model", "opus")).assert_called_once_with(*argv)


@pytest.mark.parametrize("argv", [(), ("-p",), ("--model", "opus"), (..., "-p"), (..., "opus", "--model", ...)])
def test_other_arguments_do_not_fit(argv: tuple[Any, ...]) -> None:
    """Order and number count."""
    with pytest.raises(AssertionError, match=r"\(different: argv\)"):
        _FakeWithStarts(build_start("-p", "--model", "opus")).assert_called_once_with(*argv)


def test_what_is_given_is_compared() -> None:
    """Stdin as text or bytes, some variables, the folder."""
    called = _FakeWithStarts(build_start(stdin=b"hi\xff", env={"A": "1", "B": "2"}))
    called.assert_called_once_with(stdin=b"hi\xff", env={"A": "1", "C": None}, cwd=Path("/work"))
    called.assert_any_call(stdin="hi\N{REPLACEMENT CHARACTER}")
    _FakeWithStarts().assert_not_called()


SEVERAL = (build_start("-p", "a"), build_start("-p", "b c"), build_start("--version"))
FAILURES: dict[str, tuple[Callable[[], None], str]] = {
    "never": (
        lambda: _FakeWithStarts().assert_called_once_with("-p", ..., stdin="hi", env={"A": None}, cwd="/"),
        """\
claude was never called
  expected  claude -p ...
            stdin: 'hi'
            env A: not set
            cwd: '/'""",
    ),
    "otherwise": (
        lambda: _FakeWithStarts(build_start("-p", env={"A": "1"})).assert_called_once_with(
            "-p", stdin=b"hi", env={"A": "1"}, cwd="/"
        ),
        """\
claude was called once, but with something else
  expected  claude -p
            stdin: b'hi'
            env A: '1'
            cwd: '/'
  seen      claude -p
            stdin: b''
            cwd: '/work'
            (different: stdin, cwd)
            (its script read nothing; `- wait_for: eof` as its first step reads all)""",
    ),
    "too often, the nearest first": (
        lambda: _FakeWithStarts(*SEVERAL).assert_called_once_with("-p", "b c"),
        """\
claude was called 3 times, not once
  expected  claude -p 'b c'
  seen      claude -p 'b c'
            (as expected)
  seen      claude -p a
            (different: argv)
  seen      claude --version
            (different: argv)""",
    ),
    "none of them": (
        lambda: _FakeWithStarts(*SEVERAL).assert_any_call("--version", ANY),
        """\
claude was called, but with something else
  expected  claude --version <ANY>
  seen      claude --version
            (different: argv)
  seen      claude -p a
            (different: argv)
  seen      claude -p 'b c'
            (different: argv)""",
    ),
    "none was wanted": (
        lambda: _FakeWithStarts(*[build_start("x" * 300)] * 7).assert_not_called(),
        "claude was called\n" + f"  seen      claude {'x' * 193}...\n" * 5 + "  and 2 more",
    ),
}


@pytest.mark.parametrize(("assertion", "text"), FAILURES.values(), ids=FAILURES)
def test_a_failure_shows_the_expected_call_and_those_that_came(assertion: Callable[[], None], text: str) -> None:
    """The reader sees what is different without a debugger."""
    with pytest.raises(AssertionError) as failed:
        assertion()
    assert str(failed.value) == text
