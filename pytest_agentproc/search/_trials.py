"""Owns the trials of a search: settings of a scenario, each played once, up to a limit of time. Chooses no setting."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pytest_agentproc.harness import ScenarioRunner, run_in_model
from pytest_agentproc.originals import monotonic
from pytest_agentproc.search._draws import SearchTimeOver
from pytest_agentproc.subjects import ReferenceSupervisor
from pytest_agentproc.vocabulary import Policy, list_time_names

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pytest_agentproc.plays import PlayResult
    from pytest_agentproc.scenario import Scenario
    from pytest_agentproc.search._finding import FailingSetting
    from pytest_agentproc.vocabulary import LimitsRequest, Subject


SettingType = TypeVar("SettingType", bound="tuple[Any, ...]")


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The result of a search.

    Args:
        find: the find; None: nothing was found.
        runs: how many settings were looked at, including the shrinking.
        first: the number of the setting that failed first; 0: none did.
        seconds: its duration in real time.
        counted: the number of settings in which the supervisor was asked something. In a search, these are the valid
            files with agents that exist. In an exploration, the file's expectations hold in them.
    """

    find: FailingSetting | None
    runs: int
    first: int
    seconds: float
    counted: int


class ScenarioSettings(ABC, Generic[SettingType]):
    """The settings of one scenario for one supervisor.

    Args:
        scenario: the scenario.
        subject: the supervisor. The reference and its defects run in the model, all others with real processes.
        runner: the runner of all others. None: there is only the model.
        backend: their event loop.
    """

    def __init__(
        self, scenario: Scenario, subject: Subject, runner: ScenarioRunner | None = None, backend: str = "asyncio"
    ) -> None:
        self.scenario = scenario
        self.runs = 0
        self.counted = 0
        self._subject = subject
        self._runner = runner
        self._backend = backend
        self._is_of_kit = isinstance(subject, ReferenceSupervisor)
        self._is_reference = type(subject) is ReferenceSupervisor and subject.name == "reference"
        self._reference = _ReferenceWithSubjectLimits(subject)

    @abstractmethod
    def try_setting(self, setting: SettingType) -> FailingSetting | None:
        """Play one setting, and count it; None: every promise holds there, or it asks nothing."""

    def get_limits_and_time_names(self) -> tuple[Mapping[str, int | None], Sequence[str]]:
        """Give the limits, and the names of those about which times are tried; of several sessions the first one's.

        Times are tried about the limits that the file names; if it names none, about all of such an agent.
        """
        terms = self.scenario.request_limits(self._subject)
        whole = (terms if isinstance(terms, Policy) else next(iter(terms.values()))).to_whole_limits()
        names = list_time_names(is_session=self.scenario.is_session)
        return whole, [name for name in names if name in self.scenario.text] or names

    def _play(self, scenario: Scenario) -> PlayResult:
        if isinstance(self._subject, ReferenceSupervisor):
            return run_in_model(scenario, self._subject)
        assert self._runner is not None, "a supervisor that the model cannot play has a runner"
        return self._runner.play(scenario, self._subject, backend=self._backend)


class _ReferenceWithSubjectLimits(ReferenceSupervisor):
    """The reference supervisor with the limits that another supervisor states."""

    def __init__(self, subject: Subject) -> None:
        super().__init__("reference")
        self._subject = subject

    def policy(self, request: LimitsRequest) -> Policy:
        """Ask the other one."""
        return self._subject.policy(request)


class TrialsWithinTime(Generic[SettingType]):
    """Try settings until the time is over, each once.

    Args:
        settings: plays them.
        seconds: after this time nothing more is tried.
        shrinking: after this time from the first find, too.
        clock: gives the seconds.
        report: is told the number of settings after each of them.
    """

    def __init__(
        self,
        settings: ScenarioSettings[SettingType],
        seconds: float,
        shrinking: float,
        clock: Callable[[], float] = monotonic,
        report: Callable[[int], object] = str,
    ) -> None:
        self._settings = settings
        self._report = report
        self._clock = clock
        self._begun = clock()
        self._until = self._begun + seconds
        self._shrinking = shrinking
        self._first = 0
        self._tried: dict[SettingType, FailingSetting | None] = {}

    def require_time(self) -> None:
        """Raise `SearchTimeOver` if the time is over."""
        if self._clock() > self._until:
            raise SearchTimeOver

    def is_failing(self, setting: SettingType) -> bool:
        """Say whether a setting is a find; raises `SearchTimeOver` when the time is over."""
        if setting not in self._tried:
            self.require_time()
            find = self._tried[setting] = self._settings.try_setting(setting)
            self._report(self._settings.runs)
            if find is not None and not self._first:
                self._first = self._settings.runs
                self._until = self._clock() + self._shrinking
        return self._tried[setting] is not None

    def make_search_result(self, best: SettingType | None = None) -> SearchResult:
        """Say what came of it: the find of the best setting, or else the last find."""
        finds = [find for find in self._tried.values() if find is not None]
        found = self._tried[best] if best is not None else next(reversed(finds), None)
        settings = self._settings
        return SearchResult(found, settings.runs, self._first, self._clock() - self._begun, settings.counted)
