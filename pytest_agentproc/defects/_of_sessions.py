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
from pytest_agentproc.defects._defect import Defect, described
from pytest_agentproc.supervisor import Deciders, SessionDeciders

_IN_SESSIONS: dict[str, dict[str, type]] = {
    "turns": {
        "timeout-kills-the-agent": turns.KillingTurns,
        "timeout-cancels-nothing": turns.SoftTimeoutTurns,
        "zombie-ready": turns.ZombieTurns,
        "timeout-drops-the-queue": turns.DroppingTurns,
        "timeout-is-told-to-nobody": turns.SilentTimeoutTurns,
        "cancel-stops-the-agent": turns.StoppingCancelTurns,
        "words-alone-are-progress": turns.WordsAloneTurns,
        "pieces-are-no-progress": turns.WholeWordsTurns,
        "callers-cancel-waits-for-ever": turns.CallerWaitsTurns,
        "cancel-waits-for-ever": turns.TimidTurns,
        "cancel-grace-is-short": turns.HastyCancelTurns,
        "cancel-grace-outlives-its-cancel": turns.LeakingCancelTurns,
        "background-result-acknowledges": back.AcknowledgingTurns,
        "close-completes-the-queue": turns.GenerousTurns,
        "delivers-before-acknowledgement": turns.EagerTurns,
        "first-word-acknowledges": turns.HearingTurns,
        "good-result-does-not-acknowledge": turns.NamedCancelTurns,
        "age-counts-from-the-cancel": turns.AgeingTurns,
        "prompts-go-out-at-once": turns.BusyQueueTurns,
        "last-prompt-first": turns.NewestFirstTurns,
        "cancel-hits-the-turn-in-flight": turns.MisaimedCancelTurns,
        "error-drops-the-queue": turns.StuckQueueTurns,
        "late-words-go-to-the-next-turn": crossings.LateWordsTurns,
        "cancels-twice": turns.DoubleCancelTurns,
        "early-cancel-is-lost": turns.EarlyCancelTurns,
        "history-answers-the-next-prompt": crossings.HistoryTurns,
        "resume-waits-for-history": crossings.PastFirstTurns,
        "cancel-beats-the-result": crossings.CancelFirstTurns,
        "subagent-ends-the-turn": crossings.SubagentEndsTurns,
        "idle-cancel-hits-the-next": crossings.PoisonedTurns,
        "queue-goes-with-the-agent": crossings.FragileQueueTurns,
        "crash-repeats-the-prompt": crossings.RepeatingTurns,
        "failed-session-keeps-the-prompts": crossings.UnrefusingTurns,
        "unhandled-questions-wait": questions.DeafTurns,
        "allows-without-a-handler": questions.TrustingTurns,
        "idle-questions-wait": questions.IdleDeafTurns,
        "question-is-denied": questions.DenyingTurns,
        "answers-twice": questions.TwiceTurns,
        "questions-wait-for-ever": questions.WaitingTurns,
        "denial-allows": questions.OverrulingTurns,
        "silence-allows": questions.LenientTurns,
        "cancel-leaves-the-question": questions.AbandoningTurns,
        "result-drops-the-question": questions.ForgettingTurns,
        "late-word-answers-again": questions.RepeatingTurns,
        "question-cannot-be-taken-back": questions.HoldingTurns,
        "stale-turn-answers-the-next": back.StaleTurns,
        "leaks-late-notification": back.DrainingTurns,
        "background-words-join-the-prompt": back.MixingTurns,
        "any-result-ends-the-prompt": back.AnyResultTurns,
        "empty-result-ends-the-prompt": back.EmptyResultTurns,
        "background-tool-ends-the-prompt": back.AnyMessageTurns,
        "background-words-are-progress": back.RestlessTurns,
        "expects-one-background-turn": back.OnceTurns,
        "drains-after-success-only": back.SuccessTurns,
    },
    "watchdog": {
        "prompts-never-time-out": times.NeverOverTurnWatchdog,
        "prompt-timeout-is-duration": times.DurationTurnWatchdog,
        "timer-beats-progress": times.ExpiredTurnWatchdog,
        "bytes-move-the-deadline": times.BytesMoveTurnWatchdog,
        "deadline-runs-while-asked": times.RestlessTurnWatchdog,
        "words-end-the-rest": times.TalkedOutTurnWatchdog,
        "deadline-rests-for-ever": times.SleepingTurnWatchdog,
        "closed-output-loses-the-turn": times.ClosedIsExitTurnWatchdog,
        "words-alone-are-activity": times.WordyTurnWatchdog,
        "session-silence-has-a-default": times.ImpatientTurnWatchdog,
        "idle-time-counts": times.IdleCountsTurnWatchdog,
        "silent-turns-go-on": times.NeverStillTurnWatchdog,
        "turns-have-no-cap": times.UncappedTurnWatchdog,
        "cap-is-of-the-session": times.SessionCapTurnWatchdog,
        "turns-never-stall": times.NeverStallsTurnWatchdog,
    },
    "restarts": {
        "restarts-at-once": agents.HastyRestarts,
        "backoff-does-not-double": agents.SteadyRestarts,
        "backoff-has-no-end": agents.BoundlessRestarts,
        "restarts-for-ever": agents.EndlessRestarts,
        "first-start-is-tried-again": agents.HopefulRestarts,
        "restart-begins-a-new-session": agents.ForgetfulRestarts,
        "never-restarts": agents.NoRestarts,
        "crashes-count-for-ever": agents.UnforgettingRestarts,
    },
    "ladder": {
        "close-is-terminate": agents.AbruptLadder,
        "close-waits-for-the-exit": agents.TrustingLadder,
        "close-waits-for-tasks": back.WaitingLadder,
    },
    "hooks": {
        "early-hook-lost": questions.LosingHooks,
        "hook-runs-twice": questions.RepeatingHooks,
        "hook-blocks-the-agent": questions.BlockingHooks,
        "unregistered-hook-allows": questions.AllowingHooks,
        "hook-word-ignored": questions.DeafHooks,
        "hook-waits-for-ever": questions.EndlessHooks,
        "stale-hook-runs": questions.StaleHooks,
    },
    "tools": {
        "tool-outlives-its-turn": tools.UnsettledTools,
    },
    "router": {
        "routes-by-order": back.OrderRouter,
        "results-go-by-order": crossings.OrderRouter,
    },
    "tasks": {
        "agents-are-tasks": back.AgentTasks,
        "task-ends-unheard": back.EndlessTasks,
        "stopped-task-unmentioned": back.UnconcernedTasks,
        "unfinished-task-unmentioned": back.SilentTasks,
    },
    "standing": {
        "ready-without-agent": turns.ZombieStanding,
    },
    "transcript": {
        "viewer-misses-the-past": turns.ForgetfulTranscript,
    },
}
"""The wrong judgements of sessions by the decider that they replace, each by the name of its defect."""


def _of_session(name: str, part: str, wrong: type) -> Defect:
    of_run = {part: wrong} if part == "tasks" else {}
    return Defect(name, *described(wrong), Deciders(**of_run), SessionDeciders(**{part: wrong}))


OF_SESSIONS = tuple(
    _of_session(name, part, wrong) for part, those in _IN_SESSIONS.items() for name, wrong in those.items()
)
