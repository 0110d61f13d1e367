"""Owns the way of one scenario through lab and verdict, for items and fixtures alike. Knows nothing of files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.harness import NotForReal
from pytest_agentproc.plugin._options import asked, lab_of, subject_of
from pytest_agentproc.plugin._report import keep_page
from pytest_agentproc.scenario import NotApplicable
from pytest_agentproc.verdict import Row, Verdict, compare, conclude, explain

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_agentproc.harness import Played
    from pytest_agentproc.scenario import Scenario

__all__ = ["NotGreen", "judge", "play", "play_real"]


class NotGreen(Exception):
    """A scenario whose verdict is not `passed`; its text is the explanation, whole."""


def play(node: pytest.Item, scenario: Scenario, backend: str) -> Played:
    """Play a scenario in virtual time with the session's subject, and show the record to whoever wants it.

    Args:
        node: the test for which it is played.
        scenario: what is played.
        backend: the event loop: asyncio or trio.

    Raises:
        pytest.skip.Exception: the subject has none of the limits that the script needs.
    """
    config = node.config
    return _shown(node, lambda: lab_of(config).play(scenario, subject_of(config), backend=backend))


def play_real(node: pytest.Item, scenario: Scenario, backend: str) -> Played:
    """Play a scenario in real time, otherwise as `play`.

    Raises:
        pytest.skip.Exception: as there, or real time cannot judge the scenario.
    """
    config, scale = node.config, asked(node.config, "scale")
    try:
        return _shown(
            node, lambda: lab_of(config).play_real(scenario, subject_of(config), backend=backend, scale=scale)
        )
    except NotForReal as reason:
        pytest.skip(f"not applicable in real time: {reason}")


def _shown(node: pytest.Item, play: Callable[[], Played]) -> Played:
    try:
        played = play()
    except NotApplicable as limit:
        pytest.skip(f"not applicable: line {limit.line} needs {limit.name}, which the subject does not have")
    node.ihook.pytest_agentproc_record(nodeid=node.nodeid, record=played.record)
    return played


def judge(node: pytest.Item, played: Played) -> None:
    """Pass a verdict on what was played, and keep its page if it is to be kept.

    Args:
        node: the test for which it was played.
        played: what was played.

    Raises:
        NotGreen: a check failed, was not exercised or could not be decided.
        pytest.skip.Exception: no check is about a limit that the subject has, or the scenario is for information.
    """
    rows = compare(played)
    verdict = conclude(rows)
    keep_page(node, played, rows, verdict)
    if verdict is Verdict.NOT_APPLICABLE:
        pytest.skip(f"not applicable: {_reason(rows, verdict)}")
    if verdict is Verdict.PASSED:
        return
    text = explain(played, rows)
    if played.bound.scenario.tier == "info":
        pytest.skip(f"for information: {text.splitlines()[0]}")
    raise NotGreen(text)


def _reason(rows: tuple[Row, ...], verdict: Verdict) -> str:
    return next(row.seen for row in rows if row.verdict is verdict)
