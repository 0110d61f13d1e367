"""Owns scenario files and their items as pytest sees them. Loading, running and judging happen elsewhere."""

from __future__ import annotations

from itertools import product
from time import perf_counter
from typing import TYPE_CHECKING, Any

import pytest

from pytest_agentproc.errors import AgentprocError, ScenarioError
from pytest_agentproc.plugin._figures import note
from pytest_agentproc.plugin._options import backends_of, clocks_of
from pytest_agentproc.plugin._play import NotGreen, judge, play, play_real
from pytest_agentproc.plugin._scripts import shown_path
from pytest_agentproc.scenario import Scenario, load

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["ScenarioFile", "ScenarioItem"]

_TRIES = 3


class ScenarioFile(pytest.File):
    """A file with one scenario; a malformed one is an error of its own, with all its problems, and of nobody else."""

    def collect(self) -> Iterator[ScenarioItem]:
        """Load the scenario, and give it once for each clock and backend."""
        try:
            scenario = load(shown_path(self.path))
        except ScenarioError as problems:
            raise self.CollectError(str(problems)) from None
        for clock, backend in product(clocks_of(self.config), backends_of(self.config)):
            name = f"{scenario.id}[{backend}]" if clock == "virtual" else f"{scenario.id}[{backend}-{clock}]"
            nodeid = f"{self.nodeid}::{name}"  # as text, so that pytest reads [backend] as it does for functions
            how: dict[str, Any] = {"backend": backend, "clock": clock}
            yield ScenarioItem.from_parent(self, name=name, nodeid=nodeid, scenario=scenario, **how)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], _style: Any = None) -> Any:
        """Show the located problems alone, with --full-trace too."""
        if isinstance(excinfo.value, self.CollectError):
            return str(excinfo.value)
        return super().repr_failure(excinfo)


class ScenarioItem(pytest.Item):
    """One scenario on one backend under one clock."""

    def __init__(self, *, scenario: Scenario, backend: str, clock: str, **others: Any) -> None:
        super().__init__(**others)
        self.scenario = scenario
        self.backend = backend
        self.clock = clock

    def runtest(self) -> None:
        """Play the scenario and judge what was seen.

        A red play in real time during which the machine was late by half of what the scenario bears says nothing of
        the subject: it is played again.
        """
        for _ in range(_TRIES):
            begun = perf_counter()
            played = (play if self.clock == "virtual" else play_real)(self, self.scenario, self.backend)
            note(self, played, perf_counter() - begun)
            try:
                return judge(self, played)
            except NotGreen:
                if not played.was_starved:
                    raise
        pytest.skip(f"undecided: in real time the machine was too slow {_TRIES} times")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show the explanation of a red scenario, or the sentence of an error; a stack only of our own mistakes."""
        if isinstance(excinfo.value, (NotGreen, AgentprocError)):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Point at the line of the scenario's claim."""
        lines = self.scenario.text.splitlines()
        line = next((index for index, text in enumerate(lines) if text.startswith("scenario:")), 0)
        return self.path, line, self.name
