"""Judgements of background work that are wrong, each in one way. Pure; knows no stream and no process."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_agentproc.defects._defect import breaks
from pytest_agentproc.supervisor import BackgroundTaskTracker, OpenTurns, Outcome, TurnRouter
from pytest_agentproc.supervisor.dialects import (
    BACKGROUND_TURN_MARK,
    Finished,
    Question,
    TaskBegun,
    TaskOver,
    TaskReported,
    TurnProgress,
)

if TYPE_CHECKING:
    from pytest_agentproc.supervisor.dialects import (
        Meaning,
        PromptNamed,
        TurnBegun,
        TurnMeaning,
        WorkMeaning,
    )


@breaks("routes-by-order", "B1", "assigns turns by the order in which they begin, whatever their lines name")
class AssignsTurnsByBeginOrderDefect(TurnRouter):
    def find_turns(self, meaning: TurnBegun | TurnProgress | Finished | Question | PromptNamed) -> tuple[int, ...]:
        self.is_marked = False
        return super().find_turns(replace(meaning, marks=()))


@breaks("stale-turn-answers-the-next", "B1", "answers the second prompt with what came between the two")
class AnswersWithEarlierWordsDefect(OpenTurns):
    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._unread: list[TurnProgress | Finished | Question] = []

    def handle_turn_meaning(self, meaning: TurnMeaning, now: int) -> bytes:
        if self.flight is None:
            if isinstance(meaning, TurnProgress | Finished | Question) and self.unacknowledged is None:
                self._unread.append(meaning)
                return b""
            return super().handle_turn_meaning(meaning, now)
        mine, (unread, self._unread) = (self.flight.number,), (self._unread, [])
        lines = [
            super(AnswersWithEarlierWordsDefect, self).handle_turn_meaning(replace(old, marks=mine), now)
            for old in unread
        ]
        return b"".join(lines) + super().handle_turn_meaning(meaning, now)


@breaks("drains-after-success-only", "B3", "keeps background turns apart only after a good result")
class MergesBackgroundAfterBadResultDefect(AnswersWithEarlierWordsDefect):
    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._was_good = True

    def handle_turn_meaning(self, meaning: TurnMeaning, now: int) -> bytes:
        return (
            OpenTurns.handle_turn_meaning(self, meaning, now)
            if self._was_good
            else super().handle_turn_meaning(meaning, now)
        )

    def _handle_end(self, ended: Finished, number: int, now: int) -> None:
        super()._handle_end(ended, number, now)
        if number != BACKGROUND_TURN_MARK:
            self._was_good = bool(ended.ok)


@breaks("background-result-acknowledges", "P3", "accepts any result as the acknowledgement")
class AnyResultAcknowledgesCancelDefect(OpenTurns):
    def _end_background_turn(self, ended: Finished, now: int) -> None:
        super()._end_background_turn(ended, now)
        self.unacknowledged = self.cancel_deadline = None


@breaks("leaks-late-notification", "B1", "adds a background turn to the prompt's turn in which its notification came")
class MergesBackgroundIntoPromptDefect(OpenTurns):
    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._owed = 0
        self._held: tuple[Finished, int] | None = None

    def handle_work(self, worked: WorkMeaning, now: int) -> bytes:
        if isinstance(worked, TaskReported) and self.flight is not None:
            self._owed += 1
        return super().handle_work(worked, now)

    def _handle_progress(self, progress: TurnProgress, number: int, now: int) -> None:
        super()._handle_progress(progress, number, now)
        if number == BACKGROUND_TURN_MARK and self._held is not None and self.flight is not None:
            self.flight.answered.add_progress(progress)

    def _handle_end(self, ended: Finished, number: int, now: int) -> None:
        if number != BACKGROUND_TURN_MARK and self._owed:
            self._held = (replace(ended, text=None), number)
            return
        super()._handle_end(ended, number, now)
        if number == BACKGROUND_TURN_MARK and self._held is not None:
            self._owed -= 1
            if not self._owed:
                held, self._held = self._held, None
                super()._handle_end(*held, now)


@breaks("background-words-join-the-prompt", "B1", "also shows the words of a background turn in the prompt's turn")
class ShowsBackgroundWordsInPromptDefect(OpenTurns):
    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._stale: list[TurnProgress] = []

    def _handle_progress(self, progress: TurnProgress, number: int, now: int) -> None:
        turn = self.flight
        if number == BACKGROUND_TURN_MARK:
            self._stale.append(progress)
        elif turn is not None and turn.number == number:
            stale, self._stale = self._stale, []
            for old in stale:
                turn.answered.add_progress(old)
        super()._handle_progress(progress, number, now)


@breaks("any-result-ends-the-prompt", "B1", "ends the prompt at a background turn's result")
class BackgroundResultEndsPromptDefect(OpenTurns):
    def _handle_end(self, ended: Finished, number: int, now: int) -> None:
        is_taken = number == BACKGROUND_TURN_MARK and self.flight is not None and self._ends_prompt(ended)
        super()._handle_end(ended, self.flight.number if is_taken and self.flight is not None else number, now)

    def _ends_prompt(self, ended: Finished) -> bool:
        return True


@breaks("empty-result-ends-the-prompt", "B1", "ends the prompt at the empty result of a background turn")
class EmptyBackgroundResultEndsPromptDefect(BackgroundResultEndsPromptDefect):
    def _ends_prompt(self, ended: Finished) -> bool:
        return not ended.text


@breaks("expects-one-background-turn", "B2", "treats the second of two background turns as the prompt's")
class SecondBackgroundTurnEndsPromptDefect(BackgroundResultEndsPromptDefect):
    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._consumed = 0

    def _handle_end(self, ended: Finished, number: int, now: int) -> None:
        super()._handle_end(ended, number, now)
        self._consumed = self._consumed + 1 if number == BACKGROUND_TURN_MARK else 0

    def _ends_prompt(self, ended: Finished) -> bool:
        return self._consumed > 0


@breaks("background-tool-ends-the-prompt", "B1", "ends the prompt's turn when a background turn asks for a host tool")
class BackgroundToolEndsPromptDefect(OpenTurns):
    def handle_work(self, worked: WorkMeaning, now: int) -> bytes:
        data, turn = super().handle_work(worked, now), self.flight
        if turn is None or turn.cause is not None or not self._tools.is_handed_over(worked):
            return data
        data += self._cancel_with_outcome(turn, Outcome.TOOL_USE, now)
        self._conclude_turn(turn, Outcome.TOOL_USE, now)
        return data


@breaks(
    "background-words-are-progress",
    "B1",
    "counts a background turn's words as progress of the prompt",
    harmless="The agent is at work for the same user, and the prompt has its time after that.",
)
class BackgroundWordsAreProgressDefect(OpenTurns):
    def _handle_progress(self, progress: TurnProgress, number: int, now: int) -> None:
        super()._handle_progress(progress, number, now)
        if number == BACKGROUND_TURN_MARK and self.flight is not None:
            self.watchdog.note_progress(now)


@breaks(
    "agents-are-tasks",
    "B2",
    "tracks background agents as if they were commands",
    harmless="The agent is ended some seconds later, and its answer stands.",
    runs_only="A session gives background work no grace.",
)
class TracksBackgroundAgentsAsCommandsDefect(BackgroundTaskTracker):
    def feed(self, meaning: Meaning) -> None:
        super().feed(replace(meaning, kind=self.KIND) if isinstance(meaning, TaskBegun) else meaning)


@breaks(
    "ended-tasks-stay-running",
    "B2",
    "treats a task that has ended as running",
    harmless="It is a warning too many, or a grace that is some seconds longer.",
)
class EndedTasksStayRunningDefect(BackgroundTaskTracker):
    def feed(self, meaning: Meaning) -> None:
        if not isinstance(meaning, TaskOver):
            super().feed(meaning)


@breaks(
    "unfinished-task-unmentioned",
    "B2",
    "does not report a task that never ended",
    harmless="The answer is whole; only a warning is missing.",
)
class LostTasksUnreportedDefect(BackgroundTaskTracker):
    def describe_lost(self) -> list[str]:
        return [warning for warning in super().describe_lost() if "never ended" not in warning]


@breaks(
    "stopped-task-unmentioned",
    "B2",
    "does not report a task that was stopped",
    harmless="The answer is whole; only a warning is missing.",
)
class StoppedTasksUnreportedDefect(BackgroundTaskTracker):
    def describe_lost(self) -> list[str]:
        return [warning for warning in super().describe_lost() if "were stopped" not in warning]
