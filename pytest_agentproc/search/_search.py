"""Owns the search: settings of a scenario's open values, each played and judged, and the one that breaks a promise."""

from __future__ import annotations

import re
from bisect import bisect
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_agentproc.errors import ScenarioError
from pytest_agentproc.harness import ScenarioRunner, run_in_model
from pytest_agentproc.originals import monotonic
from pytest_agentproc.scenario import NotApplicable, OpenValueChoice, Scenario, loads
from pytest_agentproc.search._draws import find_smallest_failure
from pytest_agentproc.search._finding import FailingSetting, find_unmet_check
from pytest_agentproc.search._finding_file import replace_expectations
from pytest_agentproc.search._invariants import find_broken_invariant
from pytest_agentproc.search._result_expectations import collect_expect_keys
from pytest_agentproc.search._trials import ScenarioSettings, SearchResult, TrialsWithinTime

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_agentproc.plays import PlayResult
    from pytest_agentproc.vocabulary import Subject


class OpenValueSettings(ScenarioSettings[tuple[OpenValueChoice, ...]]):
    """The settings of one scenario with open values; see `ScenarioSettings`."""

    _refused: NotApplicable | None = None

    def list_tracks(self) -> list[int]:
        """Give for each open value the part of the file, by the number of its key, in which it is."""
        heads = [head.start() for head in re.finditer("^[a-z]", self.scenario.text, re.MULTILINE)]
        return [bisect(heads, opening.start) for opening in self.scenario.openings]

    def try_setting(self, choices: tuple[OpenValueChoice, ...]) -> FailingSetting | None:
        """Play one setting; None: every promise holds there, or it is none that can be played."""
        self.runs += 1
        text = self.scenario.fill_open_values(choices)
        try:
            closed = _load_closed_scenario(text, self.scenario)
            reference = run_in_model(closed, self._reference)
            if not self._is_of_kit and has_output_after_end(reference):
                return None
            played = reference if self._is_reference else self._play(closed)
        except NotApplicable as reason:
            self._refused = self._refused or reason
            return None
        except ScenarioError:
            return None
        self.counted += 1
        return self._find_broken_promise(choices, text, reference, played)

    def require_playable_setting(self) -> None:
        """See that a setting could be played.

        Raises:
            NotApplicable: none could be, for what the supervisor lacks.
        """
        if self._refused is not None and not self.counted:
            raise self._refused

    def _find_broken_promise(
        self, choices: tuple[OpenValueChoice, ...], text: str, reference: PlayResult, played: PlayResult
    ) -> FailingSetting | None:
        reason, own = find_broken_invariant(played), find_unmet_check(played)
        if self._is_reference:
            if own is None and not reason:
                return None
            key, broken = own or ("", "")
            return FailingSetting(choices, played.bound.scenario, key, reason or broken, played)
        if find_broken_invariant(reference) or find_unmet_check(reference) is not None:
            return None  # that is the reference supervisor's fault, and a search over the reference supervisor finds it
        must = collect_expect_keys(reference, of_others=not self._is_of_kit)
        scenario, again = played.bound.scenario, played
        if must is not None and must != collect_expect_keys(played, of_others=not self._is_of_kit):
            scenario = _load_closed_scenario(replace_expectations(text, must), self.scenario)
            again = replace(played, bound=scenario.bind(scenario.request_limits(self._subject)))
            own = find_unmet_check(again)
        return None if own is None else FailingSetting(choices, scenario, own[0], reason or own[1], again)


def _load_closed_scenario(text: str, scenario: Scenario) -> Scenario:
    return loads(text, scenario.path, None, scenario.language)


def search(
    scenario: Scenario,
    subject: Subject,
    *,
    runs: int,
    seed: int,
    seconds: float = 3600.0,
    shrinking: float = 20.0,
    runner: ScenarioRunner | None = None,
    backend: str = "asyncio",
    clock: Callable[[], float] = monotonic,
    report: Callable[[int], object] = str,
) -> SearchResult:
    """Look for a setting of a scenario's open values under which a supervisor breaks a promise, and make it small.

    Args:
        scenario: with open values; without them there is one setting.
        subject: the supervisor.
        runs: the most settings that are drawn.
        seed: the same seed draws the same settings.
        seconds: after this real time the search ends.
        shrinking: the real time for making a find smaller.
        runner: the runner of every supervisor but the reference supervisor.
        backend: its event loop, "asyncio" or "trio".
        clock: gives the seconds. `time.process_time` does not count the seconds of other programs.
        report: is told the number of settings after each of them.

    Raises:
        NotApplicable: the supervisor lacks a limit without which the scenario has no meaning; or in no setting it can
            play it.
    """
    looked = OpenValueSettings(scenario, subject, runner, backend)
    trials = TrialsWithinTime(looked, seconds, shrinking, clock, report)
    best = find_smallest_failure(
        scenario.openings,
        *looked.get_limits_and_time_names(),
        looked.list_tracks(),
        trials.is_failing,
        runs=runs,
        seed=seed,
    )
    looked.require_playable_setting()
    return trials.make_search_result(best)


_STEPS_THAT_END_A_RUN = ("answer", "result")
_STEPS_THAT_PRINT_WORDS = ("say", *_STEPS_THAT_END_A_RUN)
_BACKGROUND_TASK_EVENTS = ("event", "task", "task_done")
"""Events with which a task in the background begins and ends, by the step that has them or as they are."""


def has_output_after_end(played: PlayResult) -> bool:
    """Say whether the agent of a run speaks on after its last word, without background work.

    A real agent that gets one prompt is over with its last word: pi's `agent_end`, codex's `turn.completed`, the result
    of claude and gemini. Its supervisor may listen on or not, and both are right. Only what claude has begun in the
    background brings it to speak again. An agent of plain text has no last word: its exit is its result.

    Args:
        played: a run, or a session, whose agent speaks on with each prompt.
    """
    bound = played.bound
    if bound.scenario.is_session or bound.parts or not bound.scenario.dialect_record.has_completion_event:
        return False
    has_tasks = "task" in bound.scenario.language.list_dialect_steps(bound.scenario.dialect, bound.scenario.mode)
    is_over = False
    for _line, kind, arguments in bound.program["steps"]:
        if kind == "event" and arguments[0] in _BACKGROUND_TASK_EVENTS and has_tasks:
            return False
        speaks = kind in _STEPS_THAT_PRINT_WORDS or kind == "event" or (kind == "drip" and arguments[1] is None)
        if is_over and speaks:
            return True
        is_over = is_over or kind in _STEPS_THAT_END_A_RUN
    return False
