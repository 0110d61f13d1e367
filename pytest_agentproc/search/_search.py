"""Owns the search: settings of a scenario's open values, each played and judged, and the one that breaks a promise."""

from __future__ import annotations

import re
from bisect import bisect
from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING

from pytest_agentproc.errors import ScenarioError
from pytest_agentproc.harness import ScenarioRunner, model_play
from pytest_agentproc.scenario import NotApplicable, Scenario, loads
from pytest_agentproc.search._draws import Enough, smallest
from pytest_agentproc.search._find import Find, not_met
from pytest_agentproc.search._invariants import broken
from pytest_agentproc.search._reference import Reference
from pytest_agentproc.search._stories import speaks_past_its_end
from pytest_agentproc.search._told import told
from pytest_agentproc.search._written import expecting
from pytest_agentproc.subjects import ReferenceSupervisor
from pytest_agentproc.vocabulary import Policy, time_names

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pytest_agentproc.harness import Played
    from pytest_agentproc.scenario import Choice
    from pytest_agentproc.vocabulary import Subject


@dataclass(frozen=True, slots=True)
class Searched:
    """The result of a search.

    Args:
        find: the find; None: nothing was found.
        runs: how many settings were looked at, including the shrinking.
        first: the number of the setting that failed first; 0: none did.
        seconds: its duration in real time.
        counted: the number of settings in which the supervisor was asked something. In a search, these are the valid
            files with agents that exist. In an exploration, the file's expectations hold in them.
    """

    find: Find | None
    runs: int
    first: int
    seconds: float
    counted: int


class Search:
    """The settings of one scenario for one supervisor.

    Args:
        scenario: with open values.
        subject: the supervisor. The reference and its defects run in the model, all others with real processes.
        lab: the runner of all others. None: there is only the model.
        backend: their event loop.
    """

    def __init__(
        self, scenario: Scenario, subject: Subject, lab: ScenarioRunner | None = None, backend: str = "asyncio"
    ) -> None:
        self.scenario = scenario
        self._subject = subject
        self._lab = lab
        self._backend = backend
        self._is_reference = type(subject) is ReferenceSupervisor and subject.name == "reference"
        self._reference = Reference(subject)
        self.runs = 0
        self.first = 0
        self.counted = 0
        self._refused: NotApplicable | None = None

    def limits(self) -> tuple[Mapping[str, int | None], Sequence[str]]:
        """Give the limits, and the names of those about which times are drawn; of several sessions the first one's.

        Times are drawn about the limits that the file names; if it names none, about all of such an agent.
        """
        terms = self.scenario.terms(self._subject)
        whole = (terms if isinstance(terms, Policy) else next(iter(terms.values()))).whole()
        names = time_names(is_session=self.scenario.is_session)
        return whole, [name for name in names if name in self.scenario.text] or names

    def tracks(self) -> list[int]:
        """Give for each open value the part of the file, by the number of its key, in which it is."""
        heads = [head.start() for head in re.finditer("^[a-z]", self.scenario.text, re.MULTILINE)]
        return [bisect(heads, opening.start) for opening in self.scenario.openings]

    def look(self, choices: tuple[Choice, ...]) -> Find | None:
        """Play one setting; None: every promise holds there, or it is none that can be played."""
        self.runs += 1
        text = self.scenario.closed_text(choices)
        try:
            closed = _load(text, self.scenario)
            reference = model_play(closed, self._reference)
            if not isinstance(self._subject, ReferenceSupervisor) and speaks_past_its_end(reference):
                return None
            played = reference if self._is_reference else self._play(closed)
        except NotApplicable as reason:
            self._refused = self._refused or reason
            return None
        except ScenarioError:
            return None
        self.counted += 1
        return self._breach(choices, text, reference, played)

    def require_play(self) -> None:
        """See that a setting could be played.

        Raises:
            NotApplicable: none could be, for what the supervisor lacks.
        """
        if self._refused is not None and not self.counted:
            raise self._refused

    def _play(self, scenario: Scenario) -> Played:
        if isinstance(self._subject, ReferenceSupervisor):
            return model_play(scenario, self._subject)
        assert self._lab is not None, "a supervisor that the model cannot play has a runner"
        return self._lab.play(scenario, self._subject, backend=self._backend)

    def _breach(self, choices: tuple[Choice, ...], text: str, reference: Played, played: Played) -> Find | None:
        reason, own = broken(played), not_met(played)
        if self._is_reference:
            if own is None and not reason:
                return None
            key, said = own or ("", "")
            return Find(choices, played.bound.scenario, key, reason or said, played)
        if broken(reference) or not_met(reference) is not None:
            return None  # that is the reference supervisor's fault, and a search over the reference supervisor finds it
        of_others = not isinstance(self._subject, ReferenceSupervisor)
        must = told(reference, of_others=of_others)
        scenario, again = played.bound.scenario, played
        if must is not None and must != told(played, of_others=of_others):
            scenario = _load(expecting(text, must), self.scenario)
            again = replace(played, bound=scenario.bind(scenario.terms(self._subject)))
            own = not_met(again)
        return None if own is None else Find(choices, scenario, own[0], reason or own[1], again)


def _load(text: str, scenario: Scenario) -> Scenario:
    return loads(text, scenario.path, None, scenario.language)


def search(
    scenario: Scenario,
    subject: Subject,
    *,
    runs: int,
    seed: int,
    seconds: float = 3600.0,
    shrinking: float = 20.0,
    lab: ScenarioRunner | None = None,
    backend: str = "asyncio",
    clock: Callable[[], float] = monotonic,
) -> Searched:
    """Look for a setting of a scenario's open values under which a supervisor breaks a promise, and make it small.

    Args:
        scenario: with open values; without them there is one setting.
        subject: the supervisor.
        runs: the most settings that are drawn.
        seed: the same seed draws the same settings.
        seconds: after this real time the search ends.
        shrinking: the real time for making a find smaller.
        lab: the runner of every supervisor but the reference supervisor.
        backend: its event loop, "asyncio" or "trio".
        clock: gives the seconds. `time.process_time` does not count the seconds of other programs.

    Raises:
        NotApplicable: the supervisor lacks a limit without which the scenario has no meaning; or in no setting it can
            play it.
    """
    begun = clock()
    until = [begun + seconds]
    looked = Search(scenario, subject, lab, backend)
    finds: dict[tuple[Choice, ...], Find] = {}
    sound: set[tuple[Choice, ...]] = set()

    def fails(choices: tuple[Choice, ...]) -> bool:
        if choices in finds or choices in sound:
            return choices in finds
        if clock() > until[-1]:
            raise Enough
        find = looked.look(choices)
        if find is None:
            sound.add(choices)
            return False
        if not looked.first:
            looked.first = looked.runs
            until.append(clock() + shrinking)
        finds[choices] = find
        return True

    best = smallest(scenario.openings, *looked.limits(), looked.tracks(), fails, runs=runs, seed=seed)
    looked.require_play()
    found = finds.get(best) if best is not None else next(reversed(finds.values()), None)
    return Searched(found, looked.runs, looked.first, clock() - begun, looked.counted)
