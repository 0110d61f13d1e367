"""Owns scenario files and their items as pytest sees them. Loading, running and judging happen elsewhere."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

import pytest

from pytest_agentproc.errors import AgentprocError, ScenarioError
from pytest_agentproc.plugin._figures import note
from pytest_agentproc.plugin._options import backends_of
from pytest_agentproc.plugin._play import NotGreen, judge, play
from pytest_agentproc.plugin._scripts import shown_path
from pytest_agentproc.scenario import Scenario, load

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["ScenarioFile", "ScenarioItem"]


class ScenarioFile(pytest.File):
    """A file with one scenario; a malformed one is an error of its own, with all its problems, and of nobody else."""

    def collect(self) -> Iterator[ScenarioItem]:
        """Load the scenario, and give it once for each backend."""
        try:
            scenario = load(shown_path(self.path))
        except ScenarioError as problems:
            raise self.CollectError(str(problems)) from None
        for backend in backends_of(self.config):
            name = f"{scenario.id}[{backend}]"
            nodeid = f"{self.nodeid}::{name}"  # as text, so that pytest reads [backend] as it does for functions
            yield ScenarioItem.from_parent(self, name=name, nodeid=nodeid, scenario=scenario, backend=backend)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], _style: Any = None) -> Any:
        """Show the located problems alone, with --full-trace too."""
        if isinstance(excinfo.value, self.CollectError):
            return str(excinfo.value)
        return super().repr_failure(excinfo)


class ScenarioItem(pytest.Item):
    """One scenario on one backend."""

    def __init__(self, *, scenario: Scenario, backend: str, **others: Any) -> None:
        super().__init__(**others)
        self.scenario = scenario
        self.backend = backend

    def runtest(self) -> None:
        """Play the scenario and judge what was seen."""
        begun = perf_counter()
        played = play(self, self.scenario, self.backend)
        note(self, played, perf_counter() - begun)
        judge(played)

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
