"""Owns scenario files and their items as pytest sees them. Loading, running and judging happen elsewhere.

What runs and judges is loaded with the first item that is played: to collect is to know names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_agentproc.corpus import SUFFIX
from pytest_agentproc.errors import AgentprocError, ScenarioError
from pytest_agentproc.plugin._contributions import language_of
from pytest_agentproc.plugin._options import asked, ways_of
from pytest_agentproc.plugin._scripts import shown_path
from pytest_agentproc.plugin._sound import sound_of
from pytest_agentproc.plugin._subjects import is_core, subjects_of
from pytest_agentproc.scenario import BUNDLED, Scenario, loaded, source

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_agentproc.harness import Played
    from pytest_agentproc.vocabulary import Subject

__all__ = ["ScenarioFile", "ScenarioItem"]


class _Unread:
    """A scenario without mistake that is loaded when it is asked for, once for all items of its file."""

    def __init__(self, data: bytes, name: str) -> None:
        self._data = data
        self._name = name
        self._scenario: Scenario | None = None

    def read(self) -> Scenario:
        if self._scenario is None:
            self._scenario = loaded(self._data, self._name)
        return self._scenario


def _is_real(subject: Subject) -> bool:
    if is_core(subject):
        return False
    from pytest_agentproc.harness import real_time_only

    return bool(real_time_only(subject))


class ScenarioFile(pytest.File):
    """A file with one scenario; a malformed one is an error of its own, with all its problems, and of nobody else."""

    def collect(self) -> Iterator[ScenarioItem]:
        """Load the scenario, and give it once for each subject, clock and backend."""
        rules = asked(self.config, "rule")
        try:
            scenario = self._scenario(must_load=bool(rules))
        except ScenarioError as problems:
            raise self.CollectError(str(problems)) from None
        if isinstance(scenario, Scenario) and rules and not {*rules} & {*scenario.covers}:
            return
        subjects = subjects_of(self.config)
        for subject in subjects:
            yield from self._items(scenario, subject, [subject.name] if len(subjects) > 1 else [])

    def _scenario(self, *, must_load: bool) -> Scenario | _Unread:
        """Load the scenario, or leave it unread if an earlier session found no mistake in the same text."""
        name, language, sound = shown_path(self.path), language_of(self.config), sound_of(self.config)
        data = source(name)
        if language is not BUNDLED:  # what other packages add may look at anything
            return loaded(data, name, language)
        if not must_load and sound.knows(data):
            return _Unread(data, name)
        scenario = loaded(data, name)
        if scenario.stands_alone:
            sound.add(data)
        return scenario

    def _items(self, scenario: Scenario | _Unread, subject: Subject, names: list[str]) -> Iterator[ScenarioItem]:
        for clock, backend in ways_of(self.config, is_real=_is_real(subject)):
            axes = [*names, backend, *([clock] if clock == "real" else [])]
            name = f"{self.path.name.removesuffix(SUFFIX)}[{'-'.join(axes)}]"
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

    def __init__(
        self, *, scenario: Scenario | _Unread, subject: Subject, backend: str, clock: str, **others: Any
    ) -> None:
        super().__init__(**others)
        self._scenario = scenario
        self.subject = subject
        self.backend = backend
        self.clock = clock
        self.played: Played | None = None

    def speak_for(self, function: pytest.Function) -> None:
        """Let what is told of this item be told of a test function, in whose place it is run."""
        self.stash, self.user_properties = function.stash, function.user_properties
        self.fixturenames = function.fixturenames

    @property
    def scenario(self) -> Scenario:
        """Give the scenario; if it is known to be without mistake, it is loaded when somebody asks for it first."""
        return self._scenario.read() if isinstance(self._scenario, _Unread) else self._scenario

    def runtest(self) -> None:
        """Play the scenario and judge what was seen."""
        from pytest_agentproc.plugin._judge import judge

        judge(self)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show the explanation of a red scenario, or the sentence of an error; a stack only of our own mistakes."""
        from pytest_agentproc.plugin._by_hand import by_hand
        from pytest_agentproc.plugin._play import NotGreen

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
