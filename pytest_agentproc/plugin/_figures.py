"""Owns what a scenario's report carries beside its verdict: durations, outcome, digest. Judges and plays nothing.

They are properties of the report, so they reach a junit file and cross the wire of xdist; `-v` shows the durations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

    from pytest_agentproc.harness import Played
    from pytest_agentproc.vocabulary import Answer

__all__ = ["note", "pytest_report_teststatus", "pytest_sessionfinish"]

_VIRTUAL, _REAL = "agentproc_virtual_s", "agentproc_real_s"
_NANOSECONDS = 1_000_000_000
_IS_OVER: pytest.StashKey[bool] = pytest.StashKey()


def note(item: pytest.Item, played: Played, real: float) -> None:
    """Keep the figures of a play among the properties of its report.

    Args:
        item: the scenario's; what an earlier attempt of it left there goes.
        played: what was played.
        real: how many seconds it took in real time.
    """
    events, answer, fault = played.record.events, played.answer, played.fault
    figures = {
        _VIRTUAL: (events[-1].at if events else 0) / _NANOSECONDS,
        _REAL: round(real, 6),
        "agentproc_outcome": _outcome(answer) if answer is not None else getattr(fault, "reason", ""),
        "agentproc_digest": played.record.digest(),
    }
    item.user_properties[:] = [pair for pair in item.user_properties if pair[0] not in figures]
    item.user_properties.extend(figures.items())


def _outcome(answer: Answer) -> str:
    """Name the outcome, or those of a session's turns in their order."""
    if answer.sessions:
        return "; ".join(f"{name}: {_outcome(one)}" for name, one in answer.sessions.items())
    if answer.turns is None:
        return str(answer.outcome)
    return ", ".join(str(turn.outcome) for turn in answer.turns)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Leave the words of the summary alone: people and tools look there for `FAILED` and an id after it."""
    session.config.stash[_IS_OVER] = True


@pytest.hookimpl(wrapper=True)
def pytest_report_teststatus(report: pytest.TestReport, config: pytest.Config) -> Generator[None, Any, Any]:
    """Say with `-v` how long a scenario took, in virtual time and in real time."""
    status = yield
    figures = dict(getattr(report, "user_properties", ()))
    if report.when != "call" or _VIRTUAL not in figures or not status or _IS_OVER in config.stash:
        return status
    if config.get_verbosity(pytest.Config.VERBOSITY_TEST_CASES) <= 0:
        return status
    from pytest_agentproc.record import duration

    category, letter, word = status
    word, *markup = word if isinstance(word, tuple) else (word,)
    virtual = duration(round(figures[_VIRTUAL] * _NANOSECONDS))
    real = duration(round(figures[_REAL] * 1000) * 1_000_000)
    word = f"{word} ({virtual} virtual, {real} real)"
    return category, letter, (word, *markup) if markup else word
