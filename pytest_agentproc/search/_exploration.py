"""Owns one setting of a scenario without open values: what is moved in it, whether that counts, and who breaks it.

A setting counts if the reference meets every expectation of the file in it. Instants are the exception: they move with
what is moved, and are those of the reference. So nothing is asked of a supervisor that the file does not ask, and on
which side of a limit each time lies is decided by the reference alone. The reference supervisor itself is asked for
less: what must hold of every run, and that a slight move turns nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_agentproc.errors import Deadlock, ScenarioError
from pytest_agentproc.events import CallerActed, CallerWaits, ProcessStarted, StatusReported, StepBegun
from pytest_agentproc.harness import forecast_run, run_in_model
from pytest_agentproc.scenario import NotApplicable, apply_moves, find_movable_pieces, loads, replace_expected_times
from pytest_agentproc.search._finding import FailingSetting, describe_check, find_unmet_check
from pytest_agentproc.search._finding_file import remove_file_keys
from pytest_agentproc.search._invariants import find_broken_invariant
from pytest_agentproc.search._trials import ScenarioSettings
from pytest_agentproc.verdict import Verdict, find_instants, judge_play, replace_instants

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_agentproc.harness import ScenarioRunner
    from pytest_agentproc.plays import PlayResult
    from pytest_agentproc.scenario import Scenario
    from pytest_agentproc.vocabulary import Subject


MIN_MARGIN_PER_SLIGHT_MOVE = 1024
"""A move is slight if the distance between the nearest competing instants is at least this many times its length."""
_KEYS_OF_PARALLEL_STEPS = ("meanwhile:", "do:")
"""Words of a script by which one process does two things at a time, whose instants are not competing ones."""

_MICROSECOND_NS = 1000
PieceTexts = tuple[str, ...]
"""The text of each movable, in the order of the file."""


@dataclass(frozen=True, slots=True)
class _ReferencePlay:
    """A setting and what the reference makes of it: its play, with the instants of the expectations its own.

    `times` has the times that differ from the file's, by key; `trouble` names the broken or unmet expectation, "" if
    there is none.
    """

    played: PlayResult
    times: Mapping[str, list[int | None]]
    trouble: str


class MovedSettings(ScenarioSettings[PieceTexts]):
    """The settings of one scenario without open values; see `ScenarioSettings`.

    Raises:
        NotApplicable: the supervisor lacks a limit without which the scenario has no meaning.
    """

    def __init__(
        self, scenario: Scenario, subject: Subject, runner: ScenarioRunner | None = None, backend: str = "asyncio"
    ) -> None:
        super().__init__(scenario, subject, runner, backend)
        self.limits, self.names = self.get_limits_and_time_names()
        self.scenario = self._load_text(scenario, remove_file_keys(scenario.text, ("catches",)))
        self.movables = find_movable_pieces(self.scenario)
        self._margin = forecast_run(scenario, scenario.request_limits(subject)).margin
        has_tracks = any(word in scenario.text for word in _KEYS_OF_PARALLEL_STEPS)
        self._room = 0 if self._margin is None or has_tracks else self._margin // MIN_MARGIN_PER_SLIGHT_MOVE
        self._known: dict[PieceTexts, bool] = {}

    @property
    def unmoved_texts(self) -> PieceTexts:
        """The setting in which nothing is moved."""
        return tuple(movable.text for movable in self.movables)

    @property
    def slight_move_limit(self) -> int:
        """How far the reference's times may be moved, a few of them at a time, so that it is slight; 0: not at all."""
        return self._room // (4 * _MICROSECOND_NS) * _MICROSECOND_NS if self._is_reference else 0

    def is_within_expectations(self, setting: PieceTexts) -> bool:
        """Say whether the reference meets the file's expectations in a setting."""
        if setting not in self._known:
            reached = self._play_reference(setting)
            self._known[setting] = reached is not None and not reached.trouble
        return self._known[setting]

    def try_setting(self, setting: PieceTexts) -> FailingSetting | None:
        """Play one setting; None: it does not count, or every promise holds there."""
        self.runs += 1
        reached = self._play_reference(setting)
        if reached is None:
            return None
        if self._is_reference:
            return self._find_reference_fault(setting, reached)
        scenario = reached.played.bound.scenario
        if reached.trouble or (not self._is_of_kit and self._has_new_tie(scenario)):
            return None
        self.counted += 1
        own = replace(self._play(scenario), bound=reached.played.bound)
        return None if find_unmet_check(own) is None else self._make_failing_setting(setting, reached)

    def _has_new_tie(self, scenario: Scenario) -> bool:
        """Say whether two instants compete that do not in the file: who is first then, the file does not promise."""
        return self._margin != 0 and forecast_run(scenario, scenario.request_limits(self._subject)).margin == 0

    def _play_reference(self, setting: PieceTexts) -> _ReferencePlay | None:
        """Have the reference play a setting; None: it is none that can be played."""
        try:
            text = apply_moves(self.scenario.text, zip(self.movables, setting, strict=True))
            scenario = self._load_text(self.scenario, text)
            return _read_reference_play(run_in_model(scenario, self._reference))
        except (NotApplicable, ScenarioError):
            return None

    @staticmethod
    def _load_text(scenario: Scenario, text: str) -> Scenario:
        """Load another text in a scenario's place.

        Without `catches`: there every expectation of the file decides, and a value that the reference does not report
        is not met.
        """
        path = scenario.path
        return loads(text, path, None if path.startswith("<") else Path(path).parent, scenario.language)

    def _find_reference_fault(self, setting: PieceTexts, reached: _ReferencePlay) -> FailingSetting | None:
        """Make a find of what the reference supervisor itself breaks."""
        if _is_waiting_in_vain(reached.played):
            return None
        is_slight = self._is_slight_move(setting)
        self.counted += is_slight or not reached.trouble
        if find_broken_invariant(reached.played) or (is_slight and reached.trouble):
            return self._make_failing_setting(setting, reached)
        return None

    def _is_slight_move(self, setting: PieceTexts) -> bool:
        """Say whether the times of a setting together are hardly moved, and nothing else is.

        A pause where there was none is never slight: what is said to happen at one instant no longer does. How often
        something happens may turn with the least of moves.
        """
        far = 0
        for movable, text in zip(self.movables, setting, strict=True):
            if text != movable.text:
                before, after = movable.evaluate_time(self.limits), movable.evaluate_replacement_time(text, self.limits)
                if movable.kind != "time" or movable.repeats or before is None or after is None:
                    return False
                far += abs(after - before)
        return 0 < far <= self._room

    def _make_failing_setting(self, setting: PieceTexts, reached: _ReferencePlay) -> FailingSetting:
        """Make a find: a file that says what the reference did, played by itself."""
        scenario = self._load_text(self.scenario, replace_expected_times(reached.played.bound.scenario, reached.times))
        played = self._play(scenario)
        key, reason = find_unmet_check(played) or ("", find_broken_invariant(played) or reached.trouble)
        return FailingSetting(setting, scenario, key, reason, played)


def _read_reference_play(played: PlayResult) -> _ReferencePlay:
    """Say what the reference makes of a moved scenario, the instants being its own."""
    times: dict[str, list[int | None]] = {}
    expect = []
    for expectation in played.bound.expect:
        seen = find_instants(played, expectation.key) if expectation.not_applicable is None else None
        own = expectation if seen is None else replace(expectation, wanted=replace_instants(expectation.wanted, seen))
        if seen is not None and own != expectation:
            times[expectation.key] = seen
        expect.append(own)
    met = replace(played, bound=replace(played.bound, expect=tuple(expect)))
    return _ReferencePlay(met, times, find_broken_invariant(met) or _describe_unmet_check(met))


def _is_waiting_in_vain(played: PlayResult) -> bool:
    """Say whether the caller waits in the end for what no supervisor can tell it.

    That status was reported before: no supervisor repeats a status for that. Or a background turn, where a restarted
    agent waits for a prompt: the prompt that would have come to that turn was lost.
    """
    reported: set[str] = set()
    awaited, is_late, agents, step = "", False, 0, ""
    for event in played.record.events if isinstance(played.fault, Deadlock) else ():
        match event:
            case CallerActed() | CallerWaits():
                awaited = event.waits if isinstance(event, CallerWaits) else ""
                is_late = awaited in reported
            case StatusReported():
                reported.add(f"for status {event.text}")
            case ProcessStarted():
                agents += event.is_agent
            case StepBegun():
                step = event.step
    return is_late or (awaited.startswith("for background") and agents > 1 and step == "await_prompt")


def _describe_unmet_check(played: PlayResult) -> str:
    """Say what keeps a play from being green; "" if nothing does."""
    judgement = judge_play(played)
    if judgement.verdict is Verdict.PASSED:
        return ""
    fits = (Verdict.PASSED, Verdict.NOT_APPLICABLE)
    return next((describe_check(row) for row in judgement.rows if row.verdict not in fits), str(judgement.verdict))
