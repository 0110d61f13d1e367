"""Owns whether a pattern fits a text, within a bound of real time: some patterns take longer than a human life.

A repetition inside a repetition, such as `(a+)+$`, can try every way of cutting a text. Such a pattern, or a long text,
is tried in a process of its own, which is ended after a while; all others are tried here.
"""

from __future__ import annotations

import marshal
import re
import subprocess
import sys

from pytest_agentproc.errors import UsageError

MAX_MATCH_SECONDS = 5.0
"""Real seconds that one pattern may take."""

_MAX_STEPS_IN_PROCESS = 10**8
"""So many steps are taken at once."""

_REPETITION_PATTERN = re.compile(r"[*+]|\{\d*,?\d*\}")
_UNBOUNDED_REPETITION_PATTERN = re.compile(r"[*+]|\{\d*,\}")
_CHARACTER_CLASS_PATTERN = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]?", re.DOTALL)
_MATCHING_PROGRAM_SOURCE = (
    "import marshal, re, sys, warnings; warnings.simplefilter('ignore'); "
    "pattern, text = marshal.loads(sys.stdin.buffer.read()); sys.exit(10 + (re.search(pattern, text) is not None))"
)
_EXIT_CODE_WITHOUT_MATCH, _EXIT_CODE_WITH_MATCH = 10, 11


class SlowPattern(UsageError):
    """A pattern did not come to an end."""


def has_match(pattern: str, text: str) -> bool:
    """Say whether a pattern fits somewhere in a text.

    Raises:
        SlowPattern: it did not come to an end within the bound.
    """
    count, is_nested = _count_pattern_repeats(pattern)
    if not is_nested and len(text) ** (count + 1) <= _MAX_STEPS_IN_PROCESS:
        return re.search(pattern, text) is not None
    return _has_match_in_subprocess(pattern, text)


def _has_match_in_subprocess(pattern: str, text: str) -> bool:
    given = marshal.dumps((pattern, text))
    try:
        completed = subprocess.run(
            [sys.executable, "-ISc", _MATCHING_PROGRAM_SOURCE], input=given, timeout=MAX_MATCH_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise SlowPattern(
            f"the pattern {pattern[:60]!r} does not come to an end within {MAX_MATCH_SECONDS:g} s "
            f"on {len(text)} characters",
            "write it without a repetition inside a repetition, such as a+ for (a+)+",
        ) from None
    if completed.returncode not in (
        _EXIT_CODE_WITHOUT_MATCH,
        _EXIT_CODE_WITH_MATCH,
    ):  # that process had no room: nothing bounds it then, as nothing did before
        return re.search(pattern, text) is not None
    return completed.returncode == _EXIT_CODE_WITH_MATCH


def _count_pattern_repeats(pattern: str) -> tuple[int, bool]:
    """Count the repetitions without an upper bound, and say whether one repeats what may be cut in several ways."""
    groups, count, is_nested, at = [False], 0, False, 0
    while at < len(pattern):
        char = pattern[at]
        at = (
            found.end()
            if char == "[" and (found := _CHARACTER_CLASS_PATTERN.match(pattern, at))
            else at + (2 if char == "\\" else 1)
        )
        if char == "(":
            groups.append(False)
        elif char == ")" and len(groups) > 1:
            is_varied = groups.pop()
            is_nested = is_nested or (is_varied and _REPETITION_PATTERN.match(pattern, at) is not None)
            groups[-1] = groups[-1] or is_varied
        elif char in "|?" or (char in "*+{" and _REPETITION_PATTERN.match(pattern, at - 1)):
            groups[-1] = groups[-1] or char != "?" or pattern[at - 2 : at - 1] != "("
            count += _UNBOUNDED_REPETITION_PATTERN.match(pattern, at - 1) is not None
    return count, is_nested
