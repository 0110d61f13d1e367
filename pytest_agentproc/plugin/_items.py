"""Owns scenario files and their items as pytest sees them. Loading, running and judging happen elsewhere.

The code that runs and judges is loaded with the first item that is run: collecting needs names alone.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from pytest_agentproc.corpus import SCENARIO_FILE_SUFFIX
from pytest_agentproc.errors import AgentprocError, KitError, ScenarioError, UsageError
from pytest_agentproc.files import read_text_file
from pytest_agentproc.plugin._contributions import (
    ScenarioTest,
    format_item_parameters,
    get_language,
    get_subjects,
    is_reference_supervisor,
)
from pytest_agentproc.plugin._options import format_rerun_command, get_option, list_clocks_and_backends
from pytest_agentproc.plugin._scripts import shorten_path

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

    from pytest_agentproc.scenario import Scenario, ScenarioLanguage
    from pytest_agentproc.vocabulary import Subject


_PROBLEM_REPORTER_PLUGIN_NAME = "agentproc-problems"
_MAX_SCENARIO_FILE_BYTES = 1 << 24
"""So many bytes of a file are looked through for the line of its claim."""


class ScenarioSource:
    """A file that is read and checked when its scenario is asked for, once for all items of it.

    Args:
        path: the file.
        name: its name at collection: a test may go to another folder.
        language: its steps, keys and dialects.
        agent: the agent to load it for, of a file that runs once for each of several.
        scenario: its content, if it is read already.
    """

    def __init__(
        self, path: Path, name: str, language: ScenarioLanguage, agent: str = "", scenario: Scenario | None = None
    ) -> None:
        self._path = path
        self._name = name
        self._language = language
        self.agent = agent
        self._scenario = scenario

    def load_scenario(self) -> Scenario:
        """Give the scenario.

        Raises:
            ScenarioError: every problem of the file at once.
        """
        if self._scenario is None:
            from pytest_agentproc.scenario import load

            self._scenario = load(self._path, self._language, self._name, self.agent)
        return self._scenario

    def find_claim_line(self) -> int:
        """Give the line in which the claim stands, from 0; the first one of a file that has none or is no text."""
        with suppress(OSError, UnicodeDecodeError):
            lines = read_text_file(self._path, _MAX_SCENARIO_FILE_BYTES).splitlines()
            return next((index for index, text in enumerate(lines) if text.startswith("scenario:")), 0)
        return 0


def _is_for_real_time(subject: Subject) -> bool:
    if is_reference_supervisor(subject):
        return False
    from pytest_agentproc.harness import explain_no_virtual_time

    return bool(explain_no_virtual_time(subject))


class ScenarioFile(pytest.File):
    """A file with a scenario, or one for each of its agents.

    A malformed file is an error of its own, with all its problems; the other tests run.
    """

    def collect(self) -> Iterator[ScenarioItem]:
        """Give the scenario once for each subject, clock and backend; read its content only if a rule is asked for."""
        if not self.config.pluginmanager.has_plugin(_PROBLEM_REPORTER_PLUGIN_NAME):
            self.config.pluginmanager.register(_ProblemReporter(), _PROBLEM_REPORTER_PLUGIN_NAME)
        from pytest_agentproc.scenario import read_agent_names

        rules = get_option(self.config, "rule")
        for agent in read_agent_names(self.path) or ("",):
            written = ScenarioSource(self.path, shorten_path(self.path), get_language(self.config), agent)
            if rules and not {*rules} & {*self._read_covers(written)}:
                return
            for subject in get_subjects(self.config):
                yield from self._make_items(written, subject)

    def _read_covers(self, written: ScenarioSource) -> tuple[str, ...]:
        try:
            return written.load_scenario().covers
        except ScenarioError as problems:
            raise self.CollectError(str(problems)) from None

    def _make_items(self, written: ScenarioSource, subject: Subject) -> Iterator[ScenarioItem]:
        for clock, backend in list_clocks_and_backends(self.config, is_real=_is_for_real_time(subject)):
            axes = format_item_parameters(self.config, subject, clock, backend)
            way = f"{written.agent}-{axes}" if written.agent else axes
            name = f"{self.path.name.removesuffix(SCENARIO_FILE_SUFFIX)}[{way}]"
            nodeid = f"{self.nodeid}::{name}"  # as text, so that pytest reads [backend] as it does for functions
            how: dict[str, Any] = {"subject": subject, "backend": backend, "clock": clock}
            yield ScenarioItem.from_parent(self, name=name, nodeid=nodeid, written=written, **how)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], _style: Any = None) -> Any:
        """Show the located problems alone, with --full-trace too."""
        if isinstance(excinfo.value, self.CollectError):
            return str(excinfo.value)
        return super().repr_failure(excinfo)


class _ProblemReporter:
    """Have reports of malformed files, or of a machine that lacks something, show that alone, with --full-trace too."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Show an error of set-up as what it is: pytest asks no item how it is shown."""
        report = yield
        if isinstance(item, ScenarioItem) and call.excinfo is not None:
            error = call.excinfo.value
            report.longrepr = str(error) if isinstance(error, ScenarioError | UsageError) else report.longrepr
        return report


class ScenarioItem(ScenarioTest):
    """One scenario with one subject on one backend under one clock."""

    obj = None
    """There is no function, as with pytest's own items of doctests: pytest-trio asks every item for it."""

    def __init__(self, *, written: ScenarioSource, subject: Subject, backend: str, clock: str, **others: Any) -> None:
        super().__init__(**others)
        self._written = written
        self.subject = subject
        self.backend = backend
        self.clock = clock
        self.played = None

    def report_as_test(self, function: pytest.Function) -> None:
        """Report this item as the test function that it stands for."""
        self.stash, self.user_properties = function.stash, function.user_properties
        self.fixturenames = function.fixturenames

    @property
    def scenario(self) -> Scenario:
        """Give the scenario; it is loaded when it is first asked for."""
        return self._written.load_scenario()

    def setup(self) -> None:
        """Check the scenario and the machine: a problem of either is an error of the test, and no verdict.

        Raises:
            ScenarioError: every problem of the file at once.
            UsageError: the machine cannot start fakes, or not enough of them.
        """
        self._written.load_scenario()
        if self.clock != "model":
            from pytest_agentproc.harness import require_startable_fakes

            require_startable_fakes()

    def runtest(self) -> None:
        """Play the scenario and judge what was seen. A skip stands at the scenario's own line."""
        from pytest_agentproc.plugin._judged_items import play_and_judge

        try:
            play_and_judge(self)
        except pytest.skip.Exception as reason:
            raise pytest.skip.Exception(str(reason), _use_item_location=True) from None

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show the explanation of a red scenario, or the sentence of an error; a stack only of our own mistakes."""
        from pytest_agentproc.plugin._judged_items import ScenarioFailed

        if isinstance(excinfo.value, ScenarioFailed):
            return f"{excinfo.value}\nrerun: {format_rerun_command(self)}"
        if isinstance(excinfo.value, AgentprocError):
            return f"{'kit error: ' if isinstance(excinfo.value, KitError) else ''}{excinfo.value}"
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Point at the line of the scenario's claim."""
        return self.path, self._written.find_claim_line(), self.name
