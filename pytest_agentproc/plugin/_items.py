"""Owns scenario files and their items as pytest sees them. Loading, running and judging happen elsewhere."""

from __future__ import annotations

import gc
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

import pytest

from pytest_agentproc.errors import AgentprocError, ScenarioError
from pytest_agentproc.harness import real_time_only
from pytest_agentproc.plugin._account import keep
from pytest_agentproc.plugin._baseline import read_by_baseline
from pytest_agentproc.plugin._by_hand import by_hand
from pytest_agentproc.plugin._contributions import language_of
from pytest_agentproc.plugin._figures import note
from pytest_agentproc.plugin._options import asked, ways_of
from pytest_agentproc.plugin._play import NotGreen, play, play_in_model, play_real, settle
from pytest_agentproc.plugin._report import begin_pages, keep_page
from pytest_agentproc.plugin._scripts import shown_path
from pytest_agentproc.plugin._search import look_for_more
from pytest_agentproc.plugin._subjects import is_core, subjects_of
from pytest_agentproc.scenario import Scenario, load
from pytest_agentproc.verdict import Judgement, Verdict, confirmed, judged, repeated

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_agentproc.harness import CoreSubject, Played
    from pytest_agentproc.vocabulary import Subject

__all__ = ["ScenarioFile", "ScenarioItem"]

_TRIES = 3


class ScenarioFile(pytest.File):
    """A file with one scenario; a malformed one is an error of its own, with all its problems, and of nobody else."""

    def collect(self) -> Iterator[ScenarioItem]:
        """Load the scenario, and give it once for each subject, clock and backend."""
        try:
            scenario = load(shown_path(self.path), language_of(self.config))
        except ScenarioError as problems:
            raise self.CollectError(str(problems)) from None
        rules = asked(self.config, "rule")
        if rules and not {*rules} & {*scenario.covers}:
            return
        subjects = subjects_of(self.config)
        for subject in subjects:
            yield from self._items(scenario, subject, [subject.name] if len(subjects) > 1 else [])

    def _items(self, scenario: Scenario, subject: Subject, names: list[str]) -> Iterator[ScenarioItem]:
        for clock, backend in ways_of(self.config, is_real=bool(real_time_only(subject))):
            axes = [*names, backend, *([clock] if clock == "real" else [])]
            name = f"{scenario.id}[{'-'.join(axes)}]"
            nodeid = f"{self.nodeid}::{name}"  # as text, so that pytest reads [backend] as it does for functions
            how: dict[str, Any] = {"subject": subject, "backend": backend, "clock": clock}
            yield ScenarioItem.from_parent(self, name=name, nodeid=nodeid, scenario=scenario, **how)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], _style: Any = None) -> Any:
        """Show the located problems alone, with --full-trace too."""
        if isinstance(excinfo.value, self.CollectError):
            return str(excinfo.value)
        return super().repr_failure(excinfo)


class ScenarioItem(pytest.Item):
    """One scenario with one subject on one backend under one clock."""

    obj = None
    """There is no function, as with pytest's own items of doctests: pytest-trio asks every item for it."""

    def __init__(self, *, scenario: Scenario, subject: Subject, backend: str, clock: str, **others: Any) -> None:
        super().__init__(**others)
        self.scenario = scenario
        self.subject = subject
        self.backend = backend
        self.clock = clock
        self.played: Played | None = None

    def speak_for(self, function: pytest.Function) -> None:
        """Let what is told of this item be told of a test function, in whose place it is run."""
        self.stash, self.user_properties = function.stash, function.user_properties
        self.fixturenames = function.fixturenames

    def runtest(self) -> None:
        """Play the scenario and judge what was seen.

        A red play in real time during which the machine was late by half of what the scenario bears says nothing of
        the subject: it is played again. A red of somebody else's supervisor in virtual time is played once more, too,
        and stands if the same happens again.
        """
        begin_pages(self)
        keep(self, Judgement(Verdict.KIT_ERROR))
        for _ in range(_TRIES):
            begun = perf_counter()
            self.played = played = self._play()
            real = perf_counter() - begun
            note(self, played, real)
            judgement = judged(played, partial(read_by_baseline, self))
            if judgement.is_red and self.clock == "virtual" and not is_core(self.subject):
                judgement = confirmed(judgement, self._play())
            judgement = self._repeated(judgement)
            if not (judgement.is_red and played.was_starved):
                keep(self, judgement, real)
                keep_page(self, played, judgement.rows, judgement.verdict)
                settle(judgement)
                return None if self.clock == "real" else self._searched()
        reason = f"in real time the machine was too slow {_TRIES} times"
        keep(self, Judgement(Verdict.UNDECIDED, reason=reason))
        pytest.skip(f"undecided: {reason}")

    def _searched(self) -> None:
        """Look on in the scenario's open values; what is found is a red of its own."""
        try:
            look_for_more(self, self.scenario, self.backend, self.subject)
        except NotGreen as broken:
            keep(self, Judgement(Verdict.FAILED, played=self.played, reason=str(broken).splitlines()[0]))
            raise

    def _repeated(self, judgement: Judgement) -> Judgement:
        """Play it as often as the session asks for, and stop at the first play that goes another way."""
        times = 1 if self.clock == "real" else asked(self.config, "repeat")
        for _ in range(1, times):
            if judgement.verdict is not Verdict.KIT_ERROR:
                judgement = repeated(judgement, self._play())
        return judgement

    def _play(self) -> Played:
        """Play it once, and keep why it cannot be played.

        What somebody else's supervisor leaves to the collector goes here, and not in the midst of a later test.
        """
        try:
            if self.clock == "model":
                return play_in_model(self, self.scenario, self._core())
            return (play if self.clock == "virtual" else play_real)(self, self.scenario, self.backend, self.subject)
        except NotGreen as broken:
            keep(self, Judgement(Verdict.ADAPTER_ERROR, reason=str(broken)))
            raise
        except pytest.skip.Exception as reason:
            keep(self, Judgement(Verdict.NOT_APPLICABLE, reason=str(reason)))
            raise
        finally:
            if not is_core(self.subject):
                gc.collect()

    def _core(self) -> CoreSubject:
        """Give the subject, if the model can play it."""
        if not is_core(self.subject):
            pytest.skip("not applicable: the model plays the kit's own supervisor only")
        return cast("CoreSubject", self.subject)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show the explanation of a red scenario, or the sentence of an error; a stack only of our own mistakes."""
        if isinstance(excinfo.value, NotGreen):
            return f"{excinfo.value}\nby hand: {by_hand(self)}"
        if isinstance(excinfo.value, AgentprocError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Point at the line of the scenario's claim."""
        lines = self.scenario.text.splitlines()
        line = next((index for index, text in enumerate(lines) if text.startswith("scenario:")), 0)
        return self.path, line, self.name
