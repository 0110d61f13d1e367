"""Judgements of background work that are wrong, each in one way. Pure; knows no stream and no process."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_agentproc.supervisor import BackgroundTaskTracker, Escalation, OpenTurns, Outcome, TurnRouter
from pytest_agentproc.supervisor.dialects import (
    BACKGROUND_TURN_MARK,
    Question,
    TaskBegun,
    TaskOver,
    ToolEnded,
    TurnEnded,
    TurnProgress,
)

if TYPE_CHECKING:
    from pytest_agentproc.supervisor.dialects import (
        Meaning,
        PromptNamed,
        SessionMeaning,
        TurnBegun,
        TurnMeaning,
        WorkMeaning,
    )


_HOUR_NS = 3_600_000_000_000


class AssignsTurnsByBeginOrderDefect(TurnRouter):
    """Assigns turns by the order in which they begin, whatever their lines name (B1)."""

    def find_turns(self, meaning: TurnBegun | TurnProgress | TurnEnded | Question | PromptNamed) -> tuple[int, ...]:
        self.is_marked = False
        return super().find_turns(replace(meaning, marks=()))


class AnswersWithEarlierWordsDefect(OpenTurns):
    """Answers the second prompt with what came between the two (B1)."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._unread: list[TurnProgress | TurnEnded | Question] = []

    def handle_turn_meaning(self, meaning: TurnMeaning, now: int) -> bytes:
        if self.flight is None:
            if isinstance(meaning, TurnProgress | TurnEnded | Question) and self.unacknowledged is None:
                self._unread.append(meaning)
                return b""
            return super().handle_turn_meaning(meaning, now)
        mine, (unread, self._unread) = (self.flight.number,), (self._unread, [])
        lines = [
            super(AnswersWithEarlierWordsDefect, self).handle_turn_meaning(replace(old, marks=mine), now)
            for old in unread
        ]
        return b"".join(lines) + super().handle_turn_meaning(meaning, now)


class MergesBackgroundAfterBadResultDefect(AnswersWithEarlierWordsDefect):
    """Keeps background turns apart only after a good result (B3)."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._was_good = True

    def handle_turn_meaning(self, meaning: TurnMeaning, now: int) -> bytes:
        return (
            OpenTurns.handle_turn_meaning(self, meaning, now)
            if self._was_good
            else super().handle_turn_meaning(meaning, now)
        )

    def _handle_end(self, ended: TurnEnded, number: int, now: int) -> None:
        super()._handle_end(ended, number, now)
        if number != BACKGROUND_TURN_MARK:
            self._was_good = ended.ok


class AnyResultAcknowledgesCancelDefect(OpenTurns):
    """Accepts any result as the acknowledgement (P3)."""

    def _end_background_turn(self, ended: TurnEnded, now: int) -> None:
        super()._end_background_turn(ended, now)
        self.unacknowledged = self.cancel_deadline = None


class MergesBackgroundIntoPromptDefect(OpenTurns):
    """Adds a background turn to the prompt's turn in which its notification came (B1)."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._owed = 0
        self._held: tuple[TurnEnded, int] | None = None

    def handle_work(self, worked: WorkMeaning, now: int) -> bytes:
        if isinstance(worked, ToolEnded) and worked.id.startswith("task ") and self.flight is not None:
            self._owed += 1
        return super().handle_work(worked, now)

    def _handle_progress(self, progress: TurnProgress, number: int, now: int) -> None:
        super()._handle_progress(progress, number, now)
        if number == BACKGROUND_TURN_MARK and self._held is not None and self.flight is not None:
            self.flight.answered.add_progress(progress)

    def _handle_end(self, ended: TurnEnded, number: int, now: int) -> None:
        if number != BACKGROUND_TURN_MARK and self._owed:
            self._held = (replace(ended, text=None), number)
            return
        super()._handle_end(ended, number, now)
        if number == BACKGROUND_TURN_MARK and self._held is not None:
            self._owed -= 1
            if not self._owed:
                held, self._held = self._held, None
                super()._handle_end(*held, now)


class ShowsBackgroundWordsInPromptDefect(OpenTurns):
    """Also shows the words of a background turn in the prompt's turn (B1)."""

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


class BackgroundResultEndsPromptDefect(OpenTurns):
    """Ends the prompt at a background turn's result (B1)."""

    def _handle_end(self, ended: TurnEnded, number: int, now: int) -> None:
        is_taken = number == BACKGROUND_TURN_MARK and self.flight is not None and self._ends_prompt(ended)
        super()._handle_end(ended, self.flight.number if is_taken and self.flight is not None else number, now)

    def _ends_prompt(self, ended: TurnEnded) -> bool:
        return True


class EmptyBackgroundResultEndsPromptDefect(BackgroundResultEndsPromptDefect):
    """Ends the prompt at the empty result of a background turn (B1)."""

    def _ends_prompt(self, ended: TurnEnded) -> bool:
        return not ended.text


class SecondBackgroundTurnEndsPromptDefect(BackgroundResultEndsPromptDefect):
    """Treats the second of two background turns as the prompt's (B2)."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._consumed = 0

    def _handle_end(self, ended: TurnEnded, number: int, now: int) -> None:
        super()._handle_end(ended, number, now)
        self._consumed = self._consumed + 1 if number == BACKGROUND_TURN_MARK else 0

    def _ends_prompt(self, ended: TurnEnded) -> bool:
        return self._consumed > 0


class BackgroundToolEndsPromptDefect(OpenTurns):
    """Ends the prompt's turn when a background turn asks for a host tool (B1)."""

    def handle_work(self, worked: WorkMeaning, now: int) -> bytes:
        data, turn = super().handle_work(worked, now), self.flight
        if turn is None or turn.cause is not None or not self._tools.is_handed_over(worked):
            return data
        data += self._cancel_with_outcome(turn, Outcome.TOOL_USE, now)
        self._conclude_turn(turn, Outcome.TOOL_USE, now)
        return data


class BackgroundWordsAreProgressDefect(OpenTurns):
    """Counts a background turn's words as progress of the prompt (B1)."""

    def _handle_progress(self, progress: TurnProgress, number: int, now: int) -> None:
        super()._handle_progress(progress, number, now)
        if number == BACKGROUND_TURN_MARK and self.flight is not None:
            self.watchdog.note_progress(now)


class TracksBackgroundAgentsAsCommandsDefect(BackgroundTaskTracker):
    """Tracks background agents as if they were commands (B2)."""

    def feed(self, meaning: Meaning | SessionMeaning) -> None:
        super().feed(replace(meaning, kind=self.KIND) if isinstance(meaning, TaskBegun) else meaning)


class EndedTasksStayRunningDefect(BackgroundTaskTracker):
    """Treats a task that has ended as running (B2)."""

    def feed(self, meaning: Meaning | SessionMeaning) -> None:
        if not isinstance(meaning, TaskOver):
            super().feed(meaning)


class LostTasksUnreportedDefect(BackgroundTaskTracker):
    """Does not report a task that never ended (B2)."""

    def describe_lost(self) -> list[str]:
        return [warning for warning in super().describe_lost() if "never ended" not in warning]


class StoppedTasksUnreportedDefect(BackgroundTaskTracker):
    """Does not report a task that was stopped (B2)."""

    def describe_lost(self) -> list[str]:
        return [warning for warning in super().describe_lost() if "were stopped" not in warning]


class CloseWaitsForTasksDefect(Escalation):
    """Waits at close for an agent that waits for its tasks (B2)."""

    def start_close_grace(self, now: int) -> None:
        super().start_close_grace(now)
        assert self.deadline is not None
        self.deadline += _HOUR_NS
