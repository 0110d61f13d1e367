"""Measures a neighbour: the suite beside it, compared with the suite without it. Prints nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tests.neighbours.sessions import SessionResult, interrupt_session, run_suite

if TYPE_CHECKING:
    from tests.neighbours.plugins import Neighbour

__all__ = ["TESTS", "Measurement", "measure"]

TESTS = 15
"""The tests of the suite; both of `interrupt.py` are one."""
_FAILING_TESTS = {
    "red.scenario.yaml::red[supervise-asyncio]",
    "red.scenario.yaml::red[timeout-asyncio]",
    "test_suite.py::test_that_leaves_a_process",
}
"""The tests of the suite that are to fail. If another one failed without a plugin, nothing would be compared there."""
_INTERRUPTED = 2
"""The exit code of pytest after Ctrl-C."""


@dataclass(frozen=True)
class Measurement:
    """What was found beside a plugin.

    Args:
        equal: the number of tests with the outcome that they have without it.
        wrong: each difference, and all else that is not right, in words.
    """

    equal: int
    wrong: tuple[str, ...]


def measure(pytest_version: str, neighbour: Neighbour) -> Measurement:
    """Run the suite and the interrupted tests beside a plugin, and compare each with the run without it."""
    alone, alone_interrupted = _measure_alone(pytest_version)
    beside, interrupted = _run_both(pytest_version, neighbour)
    differing = [*_compare(alone, beside), *_compare(alone_interrupted, interrupted)]
    problems = [*_judge(beside), *_judge_interrupted(interrupted)]
    if alone.code != beside.code:
        problems.append(f"the exit code is {alone.code} without the plugin, {beside.code} with it")
    if neighbour.shows and not re.search(neighbour.shows, beside.output):
        problems.append(f"the plugin is not at work: {neighbour.shows} is not in the output:\n{beside.output}")
    if neighbour.beside and (not beside.beside or any(beside.beside.values())):
        problems.append(f"the tests that use the plugin: {beside.beside}\n{beside.output}")
    return Measurement(TESTS - len(differing), (*differing, *problems))


@cache
def _measure_alone(pytest_version: str) -> tuple[SessionResult, SessionResult]:
    alone, interrupted = _run_both(pytest_version, None)
    problems = [*_judge(alone), *_judge_interrupted(interrupted)]
    assert problems == [], "\n".join(problems)
    failed = {name: parts for name, parts in alone.notes.items() if parts}
    assert failed.keys() == _FAILING_TESTS, f"these tests failed without a plugin: {failed}"
    assert len(alone.notes) + 1 == TESTS, alone.output
    return alone, interrupted


def _run_both(pytest_version: str, neighbour: Neighbour | None) -> tuple[SessionResult, SessionResult]:
    with TemporaryDirectory(prefix="beside-") as first, TemporaryDirectory(prefix="beside-") as second:
        return (
            run_suite(Path(first), pytest_version, neighbour),
            interrupt_session(Path(second), pytest_version, neighbour),
        )


def _compare(alone: SessionResult, beside: SessionResult) -> list[str]:
    """Give each test whose outcome is not as it is without the plugin."""
    return [
        f"{name}: {alone.notes.get(name, 'no such test')} without the plugin, "
        f"{beside.notes.get(name, 'no such test')} with it"
        for name in sorted({*alone.notes, *beside.notes})
        if alone.notes.get(name) != beside.notes.get(name)
    ]


def _judge(result: SessionResult) -> list[str]:
    """Give what must be in no session: an error of pytest itself, a process that is left."""
    problems = [f"a process is left: {command}" for command in result.left]
    if "INTERNALERROR" in result.output:
        problems.append(f"pytest has an error of its own:\n{result.output}")
    return problems


def _judge_interrupted(result: SessionResult) -> list[str]:
    """Give what is wrong after Ctrl-C: the earlier failure is shown, then a summary."""
    problems = _judge(result)
    if result.code != _INTERRUPTED:
        problems.append(f"the exit code after Ctrl-C is {result.code}")
    if "an earlier failure" not in result.output or not re.search(r"\b1\W+failed", result.output, re.IGNORECASE):
        problems.append("the failure before Ctrl-C, or the summary, is not shown")
    return [f"{problem}\n{result.output}" for problem in problems]
