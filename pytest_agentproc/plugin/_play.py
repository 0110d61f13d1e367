"""Owns the way of one scenario through the lab, for items and fixtures, and how a test ends. Judges nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from pytest_agentproc.errors import AdapterError
from pytest_agentproc.harness import NotForReal, model_play, real_time_only
from pytest_agentproc.plugin._options import asked, lab_of
from pytest_agentproc.plugin._timelines import keep_record
from pytest_agentproc.record import Record
from pytest_agentproc.scenario import NotApplicable
from pytest_agentproc.verdict import NOT_IN_REAL_TIME, Verdict, explain, unmet

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_agentproc.harness import CoreSubject, Played
    from pytest_agentproc.scenario import Scenario
    from pytest_agentproc.verdict import Judgement
    from pytest_agentproc.vocabulary import Subject

__all__ = ["NotGreen", "play", "play_in_model", "play_real", "settle"]

_COUNTS = "it counts with a supervisor that is stated to be cancellable"


class NotGreen(Exception):
    """A scenario whose verdict is not `passed`; its text is the explanation, whole."""


def play(node: pytest.Item, scenario: Scenario, backend: str, subject: Subject) -> Played:
    """Play a scenario in virtual time, and show the record to whoever wants it.

    Args:
        node: the test for which it is played.
        scenario: what is played.
        backend: the event loop: asyncio or trio.
        subject: the supervisor under test.

    Raises:
        NotGreen: the subject broke when it was asked for its limits.
        pytest.skip.Exception: the subject has none of the limits that the script needs, declined the order, or is for
            real time only.
    """
    reason = real_time_only(subject)
    if reason:
        pytest.skip(f"not applicable: {reason}")
    record = Record()
    keep_record(node, record, scenario)
    return _shown(node, lambda: lab_of(node.config).play(scenario, subject, backend=backend, record=record))


def play_real(node: pytest.Item, scenario: Scenario, backend: str, subject: Subject) -> Played:
    """Play a scenario in real time, otherwise as `play`.

    Raises:
        pytest.skip.Exception: as there, or real time cannot judge the scenario.
    """
    config, scale = node.config, asked(node.config, "scale")
    try:
        return _shown(node, lambda: lab_of(config).play_real(scenario, subject, backend=backend, scale=scale))
    except NotForReal as reason:
        pytest.skip(f"{NOT_IN_REAL_TIME}: {reason}")


def play_in_model(node: pytest.Item, scenario: Scenario, subject: CoreSubject) -> Played:
    """Play a scenario in memory, without a process or an event loop, otherwise as `play`."""
    return _shown(node, lambda: model_play(scenario, subject))


def _shown(node: pytest.Item, play: Callable[[], Played]) -> Played:
    try:
        played = play()
    except AdapterError as error:
        raise NotGreen(f"{Verdict.ADAPTER_ERROR}: {error}") from error
    except NotApplicable as limit:
        pytest.skip(f"not applicable: {limit.reason()}")
    node.ihook.pytest_agentproc_record(nodeid=node.nodeid, record=played.record)
    return played


def settle(judgement: Judgement, *, is_reference: bool = True) -> None:
    """Have a test end as its judgement says.

    Args:
        judgement: what came of the scenario.
        is_reference: whether the supervisor is the kit's own; a scenario at level `info` binds no other one.

    Raises:
        NotGreen: a check failed, was not exercised or could not be decided.
        pytest.skip.Exception: no check is about a limit that the subject has, or the scenario is informational, or is
            undecided and need not be decided.
        pytest.xfail.Exception: what failed is known.
    """
    if judgement.verdict is Verdict.NOT_APPLICABLE:
        pytest.skip(f"not applicable: {judgement.reason}")
    if judgement.verdict is Verdict.KNOWN:
        pytest.xfail(judgement.reason)
    if not judgement.is_red:
        return
    assert judgement.played is not None, "what was not played is not red"
    text = explain(judgement.played, judgement.rows)
    level = judgement.played.bound.scenario.level
    if level == "info" and not is_reference:
        row = unmet(judgement.rows)[0]
        counts = "" if cast("Played", judgement.played).bound.abandoned is None else f" ({_COUNTS})"
        pytest.skip(f"informational: {text.splitlines()[0]}: {row.key} is {row.seen}, not {row.wanted}{counts}")
    if level == "should" and judgement.verdict is Verdict.UNDECIDED:
        keys = ", ".join(row.key for row in judgement.rows if row.verdict is Verdict.UNDECIDED)
        pytest.skip(f"undecided: the subject does not report {keys}")
    raise NotGreen(text)
