"""The defects that break a session. Each breaks one rule in one decider.

The decorator of each class names the rule, and says what the defect does.
"""

from __future__ import annotations

from pytest_agentproc.defects import (
    _agent_defects,
    _background_defects,
    _crossing_defects,
    _question_defects,
    _stream_defects,
    _tool_defects,
    _turn_defects,
    _watchdog_defects,
)
from pytest_agentproc.defects._defect import DESCRIPTION_BY_CLASS, Defect
from pytest_agentproc.supervisor import Deciders, SessionDeciders

_SESSION_DEFECT_CLASSES: dict[str, dict[str, type]] = {
    "turns": {
        "timeout-kills-the-agent": _turn_defects.TimeoutKillsAgentDefect,
        "timeout-cancels-nothing": _turn_defects.TimeoutSendsNoCancelDefect,
        "drops-prompts-after-timeout": _turn_defects.DropsPromptsAfterTimeoutDefect,
        "timeout-drops-the-queue": _turn_defects.TimeoutDropsQueueDefect,
        "timeout-reaches-no-viewer": _turn_defects.TimeoutReachesNoViewerDefect,
        "outcome-before-words": _turn_defects.OutcomeBeforeWordsDefect,
        "cancel-stops-the-agent": _turn_defects.CancelEndsAgentDefect,
        "words-alone-are-progress": _turn_defects.ToolsAreNoProgressDefect,
        "pieces-are-no-progress": _turn_defects.DeltasAreNoProgressDefect,
        "callers-cancel-waits-for-ever": _turn_defects.CallerCancelWaitsForeverDefect,
        "cancel-waits-for-ever": _turn_defects.CancelWaitsForeverDefect,
        "cancel-grace-is-short": _turn_defects.CancelUsesKillGraceDefect,
        "cancel-grace-outlives-its-cancel": _turn_defects.EndsAcknowledgedAgentDefect,
        "background-result-acknowledges": _background_defects.AnyResultAcknowledgesCancelDefect,
        "close-completes-the-queue": _turn_defects.CloseCompletesQueueDefect,
        "delivers-before-acknowledgement": _turn_defects.DeliversBeforeAcknowledgementDefect,
        "first-word-acknowledges": _turn_defects.AnyWordAcknowledgesCancelDefect,
        "good-result-does-not-acknowledge": _turn_defects.GoodResultAcknowledgesNothingDefect,
        "age-counts-from-the-cancel": _turn_defects.PromptTimeCountsFromTimeoutDefect,
        "prompts-go-out-at-once": _turn_defects.DeliversWhileTurnRunsDefect,
        "last-prompt-first": _turn_defects.DeliversNewestPromptFirstDefect,
        "cancel-hits-the-turn-in-flight": _turn_defects.CancelHitsTurnInFlightDefect,
        "result-completes-the-queue": _turn_defects.ResultCompletesQueueDefect,
        "error-drops-the-queue": _turn_defects.FailedTurnDropsQueueDefect,
        "late-words-go-to-the-next-turn": _crossing_defects.LateWordsGoToNextTurnDefect,
        "cancel-is-not-sent": _turn_defects.SendsNoCancelDefect,
        "queued-cancel-is-lost": _turn_defects.QueuedCancelIsLostDefect,
        "failure-ends-no-turn": _turn_defects.FailureEndsNoTurnDefect,
        "mode-switch-ends-agent": _turn_defects.ModeSwitchEndsAgentDefect,
        "mode-is-not-sent": _turn_defects.SendsNoModeDefect,
        "timeout-repeats-the-prompt": _turn_defects.TimeoutRepeatsPromptDefect,
        "cancels-twice": _turn_defects.WritesCancelTwiceDefect,
        "early-cancel-is-lost": _turn_defects.EarlyCancelIsLostDefect,
        "history-answers-the-next-prompt": _crossing_defects.HistoryAnswersNextPromptDefect,
        "resume-waits-for-history": _crossing_defects.ResumeWaitsForHistoryDefect,
        "cancel-beats-the-result": _crossing_defects.CancelOverridesGoodResultDefect,
        "subagent-ends-the-turn": _crossing_defects.SubagentEndsTurnDefect,
        "idle-cancel-hits-the-next": _crossing_defects.IdleCancelHitsNextTurnDefect,
        "queue-goes-with-the-agent": _crossing_defects.LosesQueueWithAgentDefect,
        "crash-repeats-the-prompt": _crossing_defects.ResendsPromptAfterCrashDefect,
        "session-outlives-its-agent": _crossing_defects.PromptsGoToDeadSessionDefect,
        "failed-session-keeps-the-prompts": _crossing_defects.LeavesPromptsWithoutOutcomeDefect,
        "unhandled-questions-wait": _question_defects.UnhandledQuestionUnansweredDefect,
        "allows-without-a-handler": _question_defects.AllowsWithoutHandlerDefect,
        "question-is-a-response": _question_defects.QuestionTakenForResponseDefect,
        "idle-questions-wait": _question_defects.IdleQuestionUnansweredDefect,
        "question-is-denied": _question_defects.AllowBecomesDenialDefect,
        "reader-awaits-the-answer": _question_defects.ReaderAwaitsAnswerDefect,
        "permission-by-position": _question_defects.ChoosesOptionByPositionDefect,
        "answers-twice": _question_defects.AnswersQuestionTwiceDefect,
        "questions-wait-for-ever": _question_defects.QuestionWaitsForeverDefect,
        "denial-allows": _question_defects.DenialBecomesAllowDefect,
        "silence-allows": _question_defects.AllowsLateQuestionDefect,
        "cancel-leaves-the-question": _question_defects.CancelledQuestionUnansweredDefect,
        "result-drops-the-question": _question_defects.EndedTurnQuestionUnansweredDefect,
        "late-word-answers-again": _question_defects.AnswersLateQuestionTwiceDefect,
        "question-cannot-be-taken-back": _question_defects.WaitsForWithdrawnQuestionDefect,
        "stale-turn-answers-the-next": _background_defects.AnswersWithEarlierWordsDefect,
        "leaks-late-notification": _background_defects.MergesBackgroundIntoPromptDefect,
        "background-words-join-the-prompt": _background_defects.ShowsBackgroundWordsInPromptDefect,
        "any-result-ends-the-prompt": _background_defects.BackgroundResultEndsPromptDefect,
        "empty-result-ends-the-prompt": _background_defects.EmptyBackgroundResultEndsPromptDefect,
        "background-tool-ends-the-prompt": _background_defects.BackgroundToolEndsPromptDefect,
        "background-words-are-progress": _background_defects.BackgroundWordsAreProgressDefect,
        "expects-one-background-turn": _background_defects.SecondBackgroundTurnEndsPromptDefect,
        "drains-after-success-only": _background_defects.MergesBackgroundAfterBadResultDefect,
    },
    "watchdog": {
        "prompts-never-time-out": _watchdog_defects.PromptTimeHasNoLimitDefect,
        "prompt-timeout-is-duration": _watchdog_defects.ProgressMovesNoDeadlineDefect,
        "timer-beats-progress": _watchdog_defects.TimerIgnoresUnreadProgressDefect,
        "bytes-move-the-deadline": _watchdog_defects.BytesAreProgressInTurnDefect,
        "deadline-runs-while-asked": _watchdog_defects.TimeRunsDuringQuestionDefect,
        "words-end-the-rest": _watchdog_defects.WordsRestartPausedDeadlineDefect,
        "deadline-rests-for-ever": _watchdog_defects.QuestionRemovesDeadlineDefect,
        "closed-output-loses-the-turn": _watchdog_defects.StdoutEndIsAgentExitDefect,
        "words-alone-are-activity": _watchdog_defects.NoiseIsNoActivityDefect,
        "session-uses-run-silence-limit": _watchdog_defects.SessionUsesRunSilenceLimitDefect,
        "idle-time-counts": _watchdog_defects.SilenceCountsBeforeTurnDefect,
        "turns-have-no-cap": _watchdog_defects.TurnHasNoMaxRuntimeDefect,
        "cap-is-of-the-session": _watchdog_defects.TurnRuntimeSpansSessionDefect,
        "turns-never-stall": _watchdog_defects.TurnStallHasNoLimitDefect,
    },
    "restarts": {
        "restarts-at-once": _agent_defects.RestartsWithoutDelayDefect,
        "backoff-does-not-double": _agent_defects.RestartDelayStaysConstantDefect,
        "restart-delay-grows-endlessly": _agent_defects.RestartDelayGrowsEndlesslyDefect,
        "restarts-for-ever": _agent_defects.RestartsWithoutLimitDefect,
        "first-start-is-tried-again": _agent_defects.RestartsAfterFailedHandshakeDefect,
        "restart-begins-a-new-session": _agent_defects.RestartsInNewSessionDefect,
        "never-restarts": _agent_defects.NeverRestartsAgentDefect,
        "crashes-count-for-ever": _agent_defects.NeverForgetsCrashesDefect,
    },
    "escalation": {
        "close-is-terminate": _agent_defects.CloseWithoutGraceDefect,
        "close-starts-an-agent": _agent_defects.CloseStartsAgentDefect,
        "close-waits-for-the-exit": _agent_defects.CloseWaitsForeverDefect,
    },
    "framing": {
        "repeated-line-is-dropped": _stream_defects.DropsRepeatedLineDefect,
    },
    "outbox": {
        "other-bytes-on-stdin": _stream_defects.WritesForeignBytesDefect,
    },
    "hooks": {
        "early-hook-lost": _question_defects.DropsUnregisteredHookDefect,
        "hook-runs-twice": _question_defects.CallsHookTwiceDefect,
        "hook-blocks-the-agent": _question_defects.HookBlocksAgentDefect,
        "unregistered-hook-allows": _question_defects.AllowsToolWithoutCallbackDefect,
        "hook-denial-ignored": _question_defects.IgnoresHookDenialDefect,
        "hook-waits-for-ever": _question_defects.HookWaitsForeverDefect,
        "stale-hook-runs": _question_defects.CallsExpiredHookDefect,
    },
    "tools": {
        "tool-outlives-its-turn": _tool_defects.LimitStaysLongAfterTurnDefect,
    },
    "router": {
        "routes-by-order": _background_defects.AssignsTurnsByBeginOrderDefect,
        "results-go-by-order": _crossing_defects.AssignsResultsByOrderDefect,
    },
    "tasks": {
        "ended-tasks-stay-running": _background_defects.EndedTasksStayRunningDefect,
        "stopped-task-unmentioned": _background_defects.StoppedTasksUnreportedDefect,
        "unfinished-task-unmentioned": _background_defects.LostTasksUnreportedDefect,
    },
    "status_rules": {
        "ready-without-agent": _turn_defects.ReadyAfterAgentEndDefect,
    },
    "transcript": {
        "viewer-misses-the-past": _turn_defects.LateViewerMissesPastDefect,
    },
}
"""The wrong judgements of sessions by the decider that they replace, each by the name of its defect."""


_WHY_SESSIONS_ONLY_BY_PART = {
    "turns": "A run has one prompt, no turns and no questions.",
    "watchdog": "A run has a watchdog of its own, with defects of its own.",
    "restarts": "A run starts its agent once.",
    "escalation": "Only a session is closed.",
    "framing": "In a run a last message has the whole text of the pieces.",
    "outbox": "A run writes its prompt and then ends the input.",
    "hooks": "Only a session has hooks.",
    "tools": "A run has one turn.",
    "router": "A run has one turn.",
    "status_rules": "A run has no status.",
    "transcript": "A run has no viewers.",
}
"""Why a defect has no like in runs, by the decider that it replaces."""


def _make_session_defect(name: str, part: str, wrong: type) -> Defect:
    of_run = {part: wrong} if part == "tasks" else {}
    return Defect(
        name,
        *DESCRIPTION_BY_CLASS[wrong],
        one_kind="" if of_run else _WHY_SESSIONS_ONLY_BY_PART[part],
        deciders=Deciders(**of_run),
        session_deciders=SessionDeciders(**{part: wrong}),
    )


SESSION_DEFECTS = tuple(
    _make_session_defect(name, part, wrong)
    for part, those in _SESSION_DEFECT_CLASSES.items()
    for name, wrong in those.items()
)
