"""The defects that break a session. Each breaks one rule in one decider.

The first line of each class says what the defect does, and names the rule.
"""

from __future__ import annotations

from pytest_agentproc.defects import _agents as agents
from pytest_agentproc.defects import _background as back
from pytest_agentproc.defects import _crossings as crossings
from pytest_agentproc.defects import _questions as questions
from pytest_agentproc.defects import _tools as tools
from pytest_agentproc.defects import _turns as turns
from pytest_agentproc.defects import _watchdogs as times
from pytest_agentproc.defects._defect import Defect, read_rule_and_story
from pytest_agentproc.supervisor import Deciders, SessionDeciders

_IN_SESSIONS: dict[str, dict[str, type]] = {
    "turns": {
        "timeout-kills-the-agent": turns.TimeoutKillsTurns,
        "timeout-cancels-nothing": turns.TimeoutWithoutCancelTurns,
        "zombie-ready": turns.DropsPromptsAfterTimeoutTurns,
        "timeout-drops-the-queue": turns.TimeoutDropsQueueTurns,
        "timeout-is-told-to-nobody": turns.SilentTimeoutTurns,
        "cancel-stops-the-agent": turns.CancelEndsAgentTurns,
        "words-alone-are-progress": turns.NoToolProgressTurns,
        "pieces-are-no-progress": turns.NoDeltaProgressTurns,
        "callers-cancel-waits-for-ever": turns.NoCallerCancelLimitTurns,
        "cancel-waits-for-ever": turns.NoCancelLimitTurns,
        "cancel-grace-is-short": turns.ShortCancelGraceTurns,
        "cancel-grace-outlives-its-cancel": turns.EndsAcknowledgedTurns,
        "background-result-acknowledges": back.BackgroundAcknowledgesTurns,
        "close-completes-the-queue": turns.CloseCompletesTurns,
        "delivers-before-acknowledgement": turns.EarlyDeliveryTurns,
        "first-word-acknowledges": turns.AnyWordAcknowledgesTurns,
        "good-result-does-not-acknowledge": turns.SecondAcknowledgeTurns,
        "age-counts-from-the-cancel": turns.AgeFromTimeoutTurns,
        "prompts-go-out-at-once": turns.BusyQueueTurns,
        "last-prompt-first": turns.NewestFirstTurns,
        "cancel-hits-the-turn-in-flight": turns.MisaimedCancelTurns,
        "error-drops-the-queue": turns.FailureDropsQueueTurns,
        "late-words-go-to-the-next-turn": crossings.LateWordsInNextTurns,
        "cancels-twice": turns.DoubleCancelTurns,
        "early-cancel-is-lost": turns.UnrepeatedCancelTurns,
        "history-answers-the-next-prompt": crossings.HistoryAnswerTurns,
        "resume-waits-for-history": crossings.WaitsForHistoryTurns,
        "cancel-beats-the-result": crossings.CancelledDespiteResultTurns,
        "subagent-ends-the-turn": crossings.SubagentEndsTurns,
        "idle-cancel-hits-the-next": crossings.KeepsCancelForNextTurns,
        "queue-goes-with-the-agent": crossings.LosesQueueWithAgentTurns,
        "crash-repeats-the-prompt": crossings.ResentPromptTurns,
        "session-outlives-its-agent": crossings.StaleSessionTurns,
        "failed-session-keeps-the-prompts": crossings.UnrefusedPromptTurns,
        "unhandled-questions-wait": questions.UnansweredQuestionTurns,
        "allows-without-a-handler": questions.AllowAllTurns,
        "idle-questions-wait": questions.UnansweredIdleTurns,
        "question-is-denied": questions.AllowIsDenyTurns,
        "answers-twice": questions.AnswerTwiceTurns,
        "questions-wait-for-ever": questions.UnlimitedQuestionTurns,
        "denial-allows": questions.DenyIsAllowTurns,
        "silence-allows": questions.LateIsAllowedTurns,
        "cancel-leaves-the-question": questions.UnansweredCancelTurns,
        "result-drops-the-question": questions.UnansweredEndTurns,
        "late-word-answers-again": questions.SecondLateAnswerTurns,
        "question-cannot-be-taken-back": questions.WaitsForWithdrawnTurns,
        "stale-turn-answers-the-next": back.AnswersWithEarlierWordsTurns,
        "leaks-late-notification": back.MergedBackgroundTurns,
        "background-words-join-the-prompt": back.BackgroundWordsInPromptTurns,
        "any-result-ends-the-prompt": back.AnyResultEndsPromptTurns,
        "empty-result-ends-the-prompt": back.EmptyResultEndsPromptTurns,
        "background-tool-ends-the-prompt": back.BackgroundToolEndsPromptTurns,
        "background-words-are-progress": back.BackgroundProgressTurns,
        "expects-one-background-turn": back.SecondBackgroundEndsPromptTurns,
        "drains-after-success-only": back.GoodResultOnlyTurns,
    },
    "watchdog": {
        "prompts-never-time-out": times.UnlimitedTimeTurnWatchdog,
        "prompt-timeout-is-duration": times.DurationTurnWatchdog,
        "timer-beats-progress": times.IgnoresUnreadProgressTurnWatchdog,
        "bytes-move-the-deadline": times.BytesAreProgressTurnWatchdog,
        "deadline-runs-while-asked": times.RunsWhileAskedTurnWatchdog,
        "words-end-the-rest": times.WordsResumeTurnWatchdog,
        "deadline-rests-for-ever": times.NeverResumedTurnWatchdog,
        "closed-output-loses-the-turn": times.ClosedIsExitTurnWatchdog,
        "words-alone-are-activity": times.NoiseIsSilenceTurnWatchdog,
        "session-silence-has-a-default": times.RunLimitTurnWatchdog,
        "idle-time-counts": times.IdleCountsTurnWatchdog,
        "silent-turns-go-on": times.UnlimitedSilenceTurnWatchdog,
        "turns-have-no-cap": times.NoRuntimeLimitTurnWatchdog,
        "cap-is-of-the-session": times.SessionRuntimeTurnWatchdog,
        "turns-never-stall": times.UnlimitedStallTurnWatchdog,
    },
    "restarts": {
        "restarts-at-once": agents.ImmediateRestarts,
        "backoff-does-not-double": agents.ConstantDelayRestarts,
        "backoff-has-no-end": agents.UncappedDelayRestarts,
        "restarts-for-ever": agents.UnlimitedRestarts,
        "first-start-is-tried-again": agents.HandshakelessRestarts,
        "restart-begins-a-new-session": agents.NewSessionRestarts,
        "never-restarts": agents.NoRestarts,
        "crashes-count-for-ever": agents.NeverResetRestarts,
    },
    "ladder": {
        "close-is-terminate": agents.NoCloseGraceEscalation,
        "close-waits-for-the-exit": agents.NoCloseTimerEscalation,
        "close-waits-for-tasks": back.TaskWaitingEscalation,
    },
    "hooks": {
        "early-hook-lost": questions.DroppedEarlyHooks,
        "hook-runs-twice": questions.TwiceCalledHooks,
        "hook-blocks-the-agent": questions.BlockingHooks,
        "unregistered-hook-allows": questions.AllowingHooks,
        "hook-word-ignored": questions.IgnoredDenialHooks,
        "hook-waits-for-ever": questions.NoTimeLimitHooks,
        "stale-hook-runs": questions.CallsTooOldHooks,
    },
    "tools": {
        "tool-outlives-its-turn": tools.UnsettledTools,
    },
    "router": {
        "routes-by-order": back.BeginOrderRouter,
        "results-go-by-order": crossings.ResultOrderRouter,
    },
    "tasks": {
        "agents-are-tasks": back.AgentsAsTasks,
        "task-ends-unheard": back.NeverEndedTasks,
        "stopped-task-unmentioned": back.UnreportedStopTasks,
        "unfinished-task-unmentioned": back.UnreportedLostTasks,
    },
    "standing": {
        "ready-without-agent": turns.ReadyWhenDeadStatus,
    },
    "transcript": {
        "viewer-misses-the-past": turns.LateViewerTranscript,
    },
}
"""The wrong judgements of sessions by the decider that they replace, each by the name of its defect."""


def _make_defect(name: str, part: str, wrong: type) -> Defect:
    of_run = {part: wrong} if part == "tasks" else {}
    return Defect(name, *read_rule_and_story(wrong), Deciders(**of_run), SessionDeciders(**{part: wrong}))


OF_SESSIONS = tuple(
    _make_defect(name, part, wrong) for part, those in _IN_SESSIONS.items() for name, wrong in those.items()
)
