"""The defects that break a session. Each breaks one rule in one decider.

The first line of each class says what the defect does, and names the rule.
"""

from __future__ import annotations

from pytest_agentproc.defects import _agent_defects as agents
from pytest_agentproc.defects import _background_defects as back
from pytest_agentproc.defects import _crossing_defects as crossings
from pytest_agentproc.defects import _question_defects as questions
from pytest_agentproc.defects import _tool_defects as tools
from pytest_agentproc.defects import _turn_defects as turns
from pytest_agentproc.defects import _watchdog_defects as times
from pytest_agentproc.defects._defect import Defect, read_rule_and_story
from pytest_agentproc.supervisor import Deciders, SessionDeciders

_SESSION_DEFECT_CLASSES: dict[str, dict[str, type]] = {
    "turns": {
        "timeout-kills-the-agent": turns.TimeoutKillsAgentDefect,
        "timeout-cancels-nothing": turns.TimeoutSendsNoCancelDefect,
        "zombie-ready": turns.DropsPromptsAfterTimeoutDefect,
        "timeout-drops-the-queue": turns.TimeoutDropsQueueDefect,
        "timeout-is-told-to-nobody": turns.TimeoutReachesNoViewerDefect,
        "cancel-stops-the-agent": turns.CancelEndsAgentDefect,
        "words-alone-are-progress": turns.ToolsAreNoProgressDefect,
        "pieces-are-no-progress": turns.DeltasAreNoProgressDefect,
        "callers-cancel-waits-for-ever": turns.CallerCancelWaitsForeverDefect,
        "cancel-waits-for-ever": turns.CancelWaitsForeverDefect,
        "cancel-grace-is-short": turns.CancelUsesKillGraceDefect,
        "cancel-grace-outlives-its-cancel": turns.EndsAcknowledgedAgentDefect,
        "background-result-acknowledges": back.AnyResultAcknowledgesCancelDefect,
        "close-completes-the-queue": turns.CloseCompletesQueueDefect,
        "delivers-before-acknowledgement": turns.DeliversBeforeAcknowledgementDefect,
        "first-word-acknowledges": turns.AnyWordAcknowledgesCancelDefect,
        "good-result-does-not-acknowledge": turns.GoodResultAcknowledgesNothingDefect,
        "age-counts-from-the-cancel": turns.PromptTimeCountsFromTimeoutDefect,
        "prompts-go-out-at-once": turns.DeliversWhileTurnRunsDefect,
        "last-prompt-first": turns.DeliversNewestPromptFirstDefect,
        "cancel-hits-the-turn-in-flight": turns.CancelHitsTurnInFlightDefect,
        "error-drops-the-queue": turns.FailedTurnDropsQueueDefect,
        "late-words-go-to-the-next-turn": crossings.LateWordsGoToNextTurnDefect,
        "cancels-twice": turns.WritesCancelTwiceDefect,
        "early-cancel-is-lost": turns.EarlyCancelIsLostDefect,
        "history-answers-the-next-prompt": crossings.HistoryAnswersNextPromptDefect,
        "resume-waits-for-history": crossings.ResumeWaitsForHistoryDefect,
        "cancel-beats-the-result": crossings.CancelOverridesGoodResultDefect,
        "subagent-ends-the-turn": crossings.SubagentEndsTurnDefect,
        "idle-cancel-hits-the-next": crossings.IdleCancelHitsNextTurnDefect,
        "queue-goes-with-the-agent": crossings.LosesQueueWithAgentDefect,
        "crash-repeats-the-prompt": crossings.ResendsPromptAfterCrashDefect,
        "session-outlives-its-agent": crossings.PromptsGoToDeadSessionDefect,
        "failed-session-keeps-the-prompts": crossings.LeavesPromptsWithoutOutcomeDefect,
        "unhandled-questions-wait": questions.UnhandledQuestionUnansweredDefect,
        "allows-without-a-handler": questions.AllowsWithoutHandlerDefect,
        "idle-questions-wait": questions.IdleQuestionUnansweredDefect,
        "question-is-denied": questions.AllowBecomesDenialDefect,
        "answers-twice": questions.AnswersQuestionTwiceDefect,
        "questions-wait-for-ever": questions.QuestionWaitsForeverDefect,
        "denial-allows": questions.DenialBecomesAllowDefect,
        "silence-allows": questions.AllowsLateQuestionDefect,
        "cancel-leaves-the-question": questions.CancelledQuestionUnansweredDefect,
        "result-drops-the-question": questions.EndedTurnQuestionUnansweredDefect,
        "late-word-answers-again": questions.AnswersLateQuestionTwiceDefect,
        "question-cannot-be-taken-back": questions.WaitsForWithdrawnQuestionDefect,
        "stale-turn-answers-the-next": back.AnswersWithEarlierWordsDefect,
        "leaks-late-notification": back.MergesBackgroundIntoPromptDefect,
        "background-words-join-the-prompt": back.ShowsBackgroundWordsInPromptDefect,
        "any-result-ends-the-prompt": back.BackgroundResultEndsPromptDefect,
        "empty-result-ends-the-prompt": back.EmptyBackgroundResultEndsPromptDefect,
        "background-tool-ends-the-prompt": back.BackgroundToolEndsPromptDefect,
        "background-words-are-progress": back.BackgroundWordsAreProgressDefect,
        "expects-one-background-turn": back.SecondBackgroundTurnEndsPromptDefect,
        "drains-after-success-only": back.MergesBackgroundAfterBadResultDefect,
    },
    "watchdog": {
        "prompts-never-time-out": times.PromptTimeHasNoLimitDefect,
        "prompt-timeout-is-duration": times.ProgressMovesNoDeadlineDefect,
        "timer-beats-progress": times.TimerIgnoresUnreadProgressDefect,
        "bytes-move-the-deadline": times.BytesAreProgressInTurnDefect,
        "deadline-runs-while-asked": times.TimeRunsDuringQuestionDefect,
        "words-end-the-rest": times.WordsRestartPausedDeadlineDefect,
        "deadline-rests-for-ever": times.QuestionRemovesDeadlineDefect,
        "closed-output-loses-the-turn": times.StdoutEndIsAgentExitDefect,
        "words-alone-are-activity": times.NoiseIsNoActivityDefect,
        "session-silence-has-a-default": times.SessionKeepsRunSilenceLimitDefect,
        "idle-time-counts": times.SilenceCountsBeforeTurnDefect,
        "silent-turns-go-on": times.TurnSilenceHasNoLimitDefect,
        "turns-have-no-cap": times.TurnHasNoMaxRuntimeDefect,
        "cap-is-of-the-session": times.TurnRuntimeSpansSessionDefect,
        "turns-never-stall": times.TurnStallHasNoLimitDefect,
    },
    "restarts": {
        "restarts-at-once": agents.RestartsWithoutDelayDefect,
        "backoff-does-not-double": agents.RestartDelayStaysConstantDefect,
        "backoff-has-no-end": agents.RestartDelayGrowsEndlesslyDefect,
        "restarts-for-ever": agents.RestartsWithoutLimitDefect,
        "first-start-is-tried-again": agents.RestartsAfterFailedHandshakeDefect,
        "restart-begins-a-new-session": agents.RestartsInNewSessionDefect,
        "never-restarts": agents.NeverRestartsAgentDefect,
        "crashes-count-for-ever": agents.NeverForgetsCrashesDefect,
    },
    "ladder": {
        "close-is-terminate": agents.CloseWithoutGraceDefect,
        "close-waits-for-the-exit": agents.CloseWaitsForeverDefect,
        "close-waits-for-tasks": back.CloseWaitsForTasksDefect,
    },
    "hooks": {
        "early-hook-lost": questions.DropsUnregisteredHookDefect,
        "hook-runs-twice": questions.CallsHookTwiceDefect,
        "hook-blocks-the-agent": questions.HookBlocksAgentDefect,
        "unregistered-hook-allows": questions.AllowsToolWithoutCallbackDefect,
        "hook-word-ignored": questions.IgnoresHookDenialDefect,
        "hook-waits-for-ever": questions.HookWaitsForeverDefect,
        "stale-hook-runs": questions.CallsExpiredHookDefect,
    },
    "tools": {
        "tool-outlives-its-turn": tools.LimitStaysLongAfterTurnDefect,
    },
    "router": {
        "routes-by-order": back.AssignsTurnsByBeginOrderDefect,
        "results-go-by-order": crossings.AssignsResultsByOrderDefect,
    },
    "tasks": {
        "agents-are-tasks": back.TracksBackgroundAgentsAsCommandsDefect,
        "task-ends-unheard": back.EndedTasksStayRunningDefect,
        "stopped-task-unmentioned": back.StoppedTasksUnreportedDefect,
        "unfinished-task-unmentioned": back.LostTasksUnreportedDefect,
    },
    "standing": {
        "ready-without-agent": turns.ReadyAfterAgentEndDefect,
    },
    "transcript": {
        "viewer-misses-the-past": turns.LateViewerMissesPastDefect,
    },
}
"""The wrong judgements of sessions by the decider that they replace, each by the name of its defect."""


def _make_session_defect(name: str, part: str, wrong: type) -> Defect:
    of_run = {part: wrong} if part == "tasks" else {}
    return Defect(name, *read_rule_and_story(wrong), Deciders(**of_run), SessionDeciders(**{part: wrong}))


SESSION_DEFECTS = tuple(
    _make_session_defect(name, part, wrong)
    for part, those in _SESSION_DEFECT_CLASSES.items()
    for name, wrong in those.items()
)
