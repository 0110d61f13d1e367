"""Owns the way of one scenario through lab and verdict, for items and fixtures alike. Knows nothing of files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.harness import NotForReal
from pytest_agentproc.plugin._options import lab_of, scale_of, subject_of
from pytest_agentproc.scenario import NotApplicable, Scenario
from pytest_agentproc.verdict import Row, Verdict, compare, conclude, explain

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_agentproc.harness import Played

__all__ = ["NotGreen", "play", "play_real"]


class NotGreen(Exception):
    """A scenario whose verdict is not `passed`; its text is the explanation, whole."""


def play(node: pytest.Item, scenario: Scenario, backend: str) -> Played:
    """Play a scenario in virtual time with the session's subject and judge it.

    Args:
        node: the test for which it is played.
        scenario: what is played.
        backend: the event loop: asyncio or trio.

    Raises:
        NotGreen: a check failed, was not exercised or could not be decided.
        pytest.skip.Exception: the subject has none of the limits that the scenario is about.
    """

    def once() -> Played:
        return lab_of(node.config).play(scenario, subject_of(node.config), backend=backend)

    return _judge(node, scenario, once)


def play_real(node: pytest.Item, scenario: Scenario, backend: str) -> Played:
    """Play a scenario in real time and judge it; raises as `play`, and skips what real time cannot judge.

    A red one during which the machine was late by half the scenario's margin says nothing of the subject: it is played
    again, three times in all, and then skipped.
    """
    scale = scale_of(node.config)

    def once() -> Played:
        try:
            return lab_of(node.config).play_real(scenario, subject_of(node.config), backend=backend, scale=scale)
        except NotForReal as reason:
            pytest.skip(f"not applicable in real time: {reason}")

    for _ in range(_REAL_TRIES):
        starved: list[Played] = []
        try:
            return _judge(node, scenario, once, starved)
        except NotGreen:
            if not starved:
                raise
    pytest.skip(f"undecided: in real time the machine was too slow {_REAL_TRIES} times")


_REAL_TRIES = 3


def _judge(
    node: pytest.Item, scenario: Scenario, once: Callable[[], Played], starved: list[Played] | None = None
) -> Played:
    """Play once and judge; a red play of a starved machine is kept in `starved`."""
    try:
        played = once()
    except NotApplicable as limit:
        pytest.skip(f"not applicable: line {limit.line} needs {limit.name}, which the subject does not have")
    node.ihook.pytest_agentproc_record(nodeid=node.nodeid, record=played.record)
    rows = compare(played)
    verdict = conclude(rows)
    if verdict is Verdict.NOT_APPLICABLE:
        pytest.skip(f"not applicable: {_reason(rows, verdict)}")
    if verdict is Verdict.PASSED:
        return played
    text = explain(played, rows)
    if scenario.tier == "info":
        pytest.skip(f"for information: {text.splitlines()[0]}")
    if played.was_starved and starved is not None:
        starved.append(played)
    raise NotGreen(text)


def _reason(rows: tuple[Row, ...], verdict: Verdict) -> str:
    return next(row.seen for row in rows if row.verdict is verdict)
