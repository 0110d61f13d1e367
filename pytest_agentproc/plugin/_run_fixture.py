"""Owns a supervised run inside a test: the call, and its result in seconds. Judges nothing itself."""

from __future__ import annotations

import dataclasses
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from pytest_agentproc.errors import UsageError, suggest_known_word
from pytest_agentproc.plugin._contributions import get_reference_subject
from pytest_agentproc.plugin._judged_items import ScenarioFailed, finish_test_by_judgement, play_in_virtual_time
from pytest_agentproc.plugin._options import get_backends
from pytest_agentproc.plugin._scripts import find_test_place, load_given_scenario
from pytest_agentproc.plugin._virtual_time import refuse_nested_clock
from pytest_agentproc.plugin.reports._pages import add_run_page, forget_earlier_pages
from pytest_agentproc.record import Record, render_text
from pytest_agentproc.verdict import find_returned_at, judge_play, list_signals
from pytest_agentproc.vocabulary import ALL_LIMIT_NAMES, NANOSECONDS_PER_SECOND, find_remedy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pytest_agentproc.plays import PlayResult
    from pytest_agentproc.scenario import Scenario
    from pytest_agentproc.vocabulary import RunReport


@dataclasses.dataclass(frozen=True, slots=True)
class AgentTurn:
    """The result of a prompt in a session, or of a background turn. Its time is in seconds of the virtual clock.

    Args:
        outcome: how it ended: `completed`, `timed_out`, ...
        exit_code: the supervisor's answer for it.
        text: the final message.
        error: one sentence about a bad ending.
        elapsed: from the delivery of the prompt to the outcome.
    """

    outcome: str | None
    exit_code: int | None
    text: str | None
    error: str | None
    elapsed: float | None


@dataclasses.dataclass(frozen=True, slots=True)
class AgentRun:
    """The result of a run or a session. Times are seconds since the agent was started, on the virtual clock.

    Outcome, exit code, text and elapsed are a run's; a session has them in each of its turns.

    Args:
        outcome: how it ended: `completed`, `inactive`, ...
        exit_code: the supervisor's answer.
        text: the final message.
        elapsed: from the start to the outcome.
        returned: from the start until the supervisor was done with the tree.
        signals: the agent's signals and their times: [("TERM", 120.0), ...].
        warnings: the supervisor's notes beside the outcome.
        turns: of a session: one for each prompt.
        background: of a session: those that the agent began by itself.
        statuses: of a session: where it stood, one after the other.
        record: both sides, every event.
        timeline: the record as text.
    """

    outcome: str | None
    exit_code: int | None
    text: str | None
    elapsed: float | None
    returned: float | None
    signals: tuple[tuple[str, float], ...]
    warnings: tuple[str, ...]
    record: Record = dataclasses.field(repr=False)
    timeline: str = dataclasses.field(repr=False)
    turns: tuple[AgentTurn, ...] = ()
    background: tuple[AgentTurn, ...] = ()
    statuses: tuple[str, ...] = ()


class Runner:
    """Runs scenarios for one test."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._request = request
        forget_earlier_pages(request.node)

    def __call__(self, scenario: Any, *, backend: str | None = None, **policy: Any) -> AgentRun:
        """Run one scenario to its end.

        Args:
            scenario: as `fake_agent` takes it.
            backend: asyncio or trio; default: the first of the session's.
            policy: limits in seconds, and `host_tools`, that the supervisor gets beside those of the scenario.

        Raises:
            pytest.fail.Exception: a check failed, a process was left, or the clock was stuck.
            UsageError: there is no such limit, or the scenario has several sessions, each with limits of its own; or
                virtual time runs already.
        """
        refuse_nested_clock(self._request.node, "agent_run")
        given = load_given_scenario(scenario, find_test_place(self._request), "raw", ("scenario",))
        asked = add_scenario_limits(given, policy)
        with fail_test_on_red():
            config = self._request.config
            played = _play_outside_loop(
                lambda: play_in_virtual_time(
                    self._request.node, asked, backend or get_backends(config)[0], get_reference_subject(config)
                )
            )
            judgement = judge_play(played)
            add_run_page(self._request.node, played, judgement.rows, judgement.verdict)
            finish_test_by_judgement(judgement)
        return make_agent_run(played)


def _play_outside_loop(play: Callable[[], PlayResult]) -> PlayResult:
    """Play in another thread if an event loop runs in this one, as in an async test."""
    from pytest_agentproc.clock import is_in_loop

    if not is_in_loop():
        return play()
    with ThreadPoolExecutor(1) as other:
        return other.submit(play).result()


@contextmanager
def fail_test_on_red() -> Iterator[None]:
    """Turn a red scenario into a failure of the test, with its explanation and no stack of the kit."""
    try:
        yield
    except ScenarioFailed as red:
        raise pytest.fail.Exception(str(red), pytrace=False) from None


def add_scenario_limits(scenario: Scenario, policy: Mapping[str, Any]) -> Scenario:
    """Add limits to those that a scenario gives its supervisor.

    Raises:
        UsageError: there is no such limit, or the scenario has several sessions, each with limits of its own.
    """
    for name in policy:
        if name not in ALL_LIMIT_NAMES:
            remedy = find_remedy("limit", name)
            hint = "" if remedy else suggest_known_word(name, ALL_LIMIT_NAMES, "", ", ")
            raise UsageError(f"there is no limit {name}{hint}", remedy or f"limits are {', '.join(ALL_LIMIT_NAMES)}")
    if policy and scenario.parts:
        raise UsageError("the limits of several sessions are their own", "give them under sessions: NAME: policy")
    return dataclasses.replace(scenario, policy={**scenario.policy, **policy})


def make_agent_run(played: PlayResult) -> AgentRun:
    """Make the result that a test gets of a green play."""
    answer, record = played.answer, played.record
    assert answer is not None, "a run without an answer is red"
    return AgentRun(
        outcome=None if answer.outcome is None else str(answer.outcome),
        exit_code=answer.exit_code,
        text=answer.text,
        elapsed=convert_to_seconds(answer.elapsed),
        returned=convert_to_seconds(find_returned_at(record)),
        signals=tuple((name, at / NANOSECONDS_PER_SECOND) for name, at in list_signals(record)),
        warnings=tuple(answer.warnings or ()),
        record=record,
        timeline=render_text(record, played.bound.scenario),
        turns=_make_turns(answer.turns),
        background=_make_turns(answer.background),
        statuses=answer.statuses or (),
    )


def _make_turns(answers: Sequence[RunReport] | None) -> tuple[AgentTurn, ...]:
    return tuple(
        AgentTurn(answer.outcome, answer.exit_code, answer.text, answer.error, convert_to_seconds(answer.elapsed))
        for answer in answers or ()
    )


def convert_to_seconds(ns: int | None) -> float | None:
    """Give nanoseconds as seconds."""
    return None if ns is None else ns / NANOSECONDS_PER_SECOND
