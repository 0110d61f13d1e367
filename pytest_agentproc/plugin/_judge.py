"""Owns how an item is played, as often as is asked for, and what its verdict is to pytest. Collects nothing."""

from __future__ import annotations

import gc
from contextlib import contextmanager, nullcontext
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, cast

import pytest

from pytest_agentproc.errors import KitError
from pytest_agentproc.plugin._account import keep
from pytest_agentproc.plugin._baseline import read_by_baseline
from pytest_agentproc.plugin._figures import note
from pytest_agentproc.plugin._options import asked
from pytest_agentproc.plugin._play import NotGreen, play, play_in_model, play_real, settle
from pytest_agentproc.plugin._report import begin_pages, keep_page
from pytest_agentproc.plugin._search import look_for_more
from pytest_agentproc.plugin._subjects import is_core
from pytest_agentproc.verdict import Judgement, Verdict, confirmed, judged, repeated

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_agentproc.harness import CoreSubject, Played
    from pytest_agentproc.plugin._items import ScenarioItem

__all__ = ["judge"]

_TRIES = 3
_FROZEN = 5_000
"""So many objects an interpreter may have put aside by itself (3.12: 375), and nobody who has loaded pytest so few."""


def judge(item: ScenarioItem) -> None:
    """Play the scenario and judge what was seen.

    A red play in real time during which the machine was late by half of what the scenario bears says nothing of
    the subject: it is played again. A red of somebody else's supervisor in virtual time is played once more, too,
    and stands if the same happens again.
    """
    begin_pages(item)
    keep(item, Judgement(Verdict.KIT_ERROR))
    for _ in range(_TRIES):
        begun = perf_counter()
        item.played = played = _play(item)
        real = perf_counter() - begun
        note(item, played, real)
        is_reference = is_core(item.subject)
        judgement = judged(played, partial(read_by_baseline, item), is_reference=is_reference)
        if judgement.is_red and item.clock == "virtual" and not is_reference:
            judgement = confirmed(judgement, _play(item))
        judgement = _repeated(item, judgement)
        if not (judgement.is_red and played.was_starved):
            keep(item, judgement, real)
            keep_page(item, played, judgement.rows, judgement.verdict)
            settle(judgement, is_reference=is_reference)
            return None if item.clock == "real" else _searched(item)
    reason = f"in real time the machine was too slow {_TRIES} times"
    keep(item, Judgement(Verdict.UNDECIDED, reason=reason))
    pytest.skip(f"undecided: {reason}")


def _searched(item: ScenarioItem) -> None:
    """Look on in the scenario's open values, or move its times; what is found is a red of its own."""
    try:
        look_for_more(item, item.scenario, item.backend, item.subject)
    except NotGreen as broken:
        keep(item, Judgement(Verdict.FAILED, played=item.played, reason=str(broken).splitlines()[0]))
        raise


def _repeated(item: ScenarioItem, judgement: Judgement) -> Judgement:
    """Play it as often as the session asks for, and stop at the first play that goes another way."""
    times = 1 if item.clock == "real" else asked(item.config, "repeat")
    for _ in range(1, times):
        if judgement.verdict is not Verdict.KIT_ERROR:
            judgement = repeated(judgement, _play(item))
    return judgement


def _play(item: ScenarioItem) -> Played:
    """Play it once, and keep why it cannot be played."""
    try:
        if item.clock == "model":
            return play_in_model(item, item.scenario, _core(item))
        with nullcontext() if is_core(item.subject) else _collected():
            return (play if item.clock == "virtual" else play_real)(item, item.scenario, item.backend, item.subject)
    except NotGreen as broken:
        keep(item, Judgement(Verdict.ADAPTER_ERROR, reason=str(broken)))
        raise
    except KitError as error:
        keep(item, Judgement(Verdict.KIT_ERROR, reason=str(error)))
        raise
    except pytest.skip.Exception as reason:
        keep(item, Judgement(Verdict.NOT_APPLICABLE, reason=str(reason)))
        raise


@contextmanager
def _collected() -> Iterator[None]:
    """Have what somebody else's supervisor leaves to the collector go here, and not in the midst of a later test.

    What was there before the play is put aside meanwhile, as looking through all that a test run holds takes as long as
    a play does; unless somebody has put aside what he does not want to have back.
    """
    is_bare = gc.get_freeze_count() <= _FROZEN
    if is_bare:
        gc.freeze()
    try:
        yield
    finally:
        gc.collect()
        if is_bare:
            gc.unfreeze()


def _core(item: ScenarioItem) -> CoreSubject:
    """Give the subject, if the model can play it."""
    if not is_core(item.subject):
        pytest.skip("not applicable: the model plays the kit's own supervisor only")
    return cast("CoreSubject", item.subject)
