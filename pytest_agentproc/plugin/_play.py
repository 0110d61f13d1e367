"""Owns the way of one scenario through lab and verdict, for items and fixtures alike. Knows nothing of files."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest

from pytest_agentproc.errors import AdapterError
from pytest_agentproc.harness import NotForReal, real_time_only
from pytest_agentproc.plugin._options import asked, lab_of
from pytest_agentproc.plugin._timelines import keep_record
from pytest_agentproc.record import Record
from pytest_agentproc.scenario import NotApplicable
from pytest_agentproc.verdict import Row, Verdict, compare, conclude, differing, explain

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_agentproc.harness import Played
    from pytest_agentproc.scenario import Scenario
    from pytest_agentproc.vocabulary import Subject

__all__ = ["Judgement", "NotGreen", "confirmed", "judged", "play", "play_real", "settle"]


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
        pytest.skip.Exception: the subject has none of the limits that the script needs, or is for real time only.
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
        pytest.skip(f"not applicable in real time: {reason}")


def _shown(node: pytest.Item, play: Callable[[], Played]) -> Played:
    try:
        played = play()
    except AdapterError as error:
        raise NotGreen(f"{Verdict.ADAPTER_ERROR}: {error}") from error
    except NotApplicable as limit:
        pytest.skip(f"not applicable: line {limit.line} needs {limit.name}, which the subject does not have")
    node.ihook.pytest_agentproc_record(nodeid=node.nodeid, record=played.record)
    return played


class Judgement(NamedTuple):
    """What came of a scenario.

    Args:
        verdict: over all of it.
        rows: its checks.
        played: what was played; None: nothing was.
        reason: why it is not applicable or known, if it is.
    """

    verdict: Verdict
    rows: tuple[Row, ...] = ()
    played: Played | None = None
    reason: str = ""

    @property
    def is_red(self) -> bool:
        """Whether it fails its test."""
        return self.verdict not in (Verdict.PASSED, Verdict.NOT_APPLICABLE, Verdict.KNOWN)


def judged(played: Played, read: Callable[[tuple[Row, ...]], tuple[Row, ...]] | None = None) -> Judgement:
    """Pass a verdict on what was played.

    Args:
        played: what was played.
        read: gives the rows as they are to be read in the light of what is known; None: as they are.
    """
    rows = compare(played)
    rows = rows if read is None else read(rows)
    verdict = conclude(rows)
    deciding = [row for row in rows if row.verdict is verdict]
    reason = ""
    if verdict is Verdict.NOT_APPLICABLE:
        reason = deciding[0].seen
    elif verdict is Verdict.KNOWN:
        reason = "; ".join(f"{row.key}: {row.hint}" for row in deciding)
    return Judgement(verdict, rows, played, reason)


def confirmed(first: Judgement, again: Played) -> Judgement:
    """Give a red judgement, if a second play of the same went the same way; else it says nothing of the subject."""
    assert first.played is not None, "a second play has a first one"
    if first.played.record.digest() == again.record.digest():
        return first
    row = Row("replay", 0, "the same record", differing(first.played, again), Verdict.KIT_ERROR, _REPLAY)
    return first._replace(verdict=Verdict.KIT_ERROR, rows=(row, *first.rows))


_REPLAY = (
    "virtual time plays the same twice, so this red says nothing of the supervisor; unless its own choices are random, "
    "or depend on the real clock, on threads or on an order of sets, please report it"
)


def settle(judgement: Judgement) -> None:
    """Have a test end as its judgement says.

    Raises:
        NotGreen: a check failed, was not exercised or could not be decided.
        pytest.skip.Exception: no check is about a limit that the subject has, or the scenario is for information.
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
    if judgement.played.bound.scenario.tier == "info":
        pytest.skip(f"for information: {text.splitlines()[0]}")
    raise NotGreen(text)
