"""The table of defects that break a session. Each breaks one rule in one decider."""

from __future__ import annotations

from typing import Any

from pytest_agentproc.defects import _agents as agents
from pytest_agentproc.defects import _background as back
from pytest_agentproc.defects import _crossings as crossings
from pytest_agentproc.defects import _questions as questions
from pytest_agentproc.defects import _tools as tools
from pytest_agentproc.defects import _turns as turns
from pytest_agentproc.defects import _watchdogs as times
from pytest_agentproc.defects._defect import Defect
from pytest_agentproc.supervisor import Deciders, SessionDeciders

_TURNS = (
    ("timeout-kills-the-agent", "P1", "kills the agent whose turn takes too long", turns.KillingTurns),
    ("timeout-cancels-nothing", "P1", "gives a turn up and sends the agent no cancel", turns.SoftTimeoutTurns),
    ("zombie-ready", "P1", "says ready after a timeout, and drops every prompt without a word", turns.ZombieTurns),
    ("timeout-drops-the-queue", "P1", "drops the prompts that wait when a turn times out", turns.DroppingTurns),
    ("timeout-is-told-to-nobody", "P1", "reports a timeout to no viewer", turns.SilentTimeoutTurns),
    ("cancel-stops-the-agent", "P1", "ends the agent when the caller cancels a turn", turns.StoppingCancelTurns),
    ("words-alone-are-progress", "P2", "does not count tool events as progress", turns.WordsAloneTurns),
    ("pieces-are-no-progress", "P2", "does not count the pieces of a message as progress", turns.WholeWordsTurns),
    (
        "callers-cancel-waits-for-ever",
        "P3",
        "waits without limit for the acknowledgement of the caller's cancel",
        turns.CallerWaitsTurns,
    ),
    ("cancel-waits-for-ever", "P3", "waits without limit for the acknowledgement of any cancel", turns.TimidTurns),
    (
        "cancel-grace-is-short",
        "P3",
        "waits kill_grace instead of cancel_grace for an acknowledgement",
        turns.HastyCancelTurns,
    ),
    (
        "cancel-grace-outlives-its-cancel",
        "P3",
        "ends agents that have acknowledged the cancel",
        turns.LeakingCancelTurns,
    ),
    ("background-result-acknowledges", "P3", "accepts any result as the acknowledgement", back.AcknowledgingTurns),
    ("close-completes-the-queue", "P3", "reports the prompts that wait as completed at a close", turns.GenerousTurns),
    ("delivers-before-acknowledgement", "P3", "delivers while a cancel is unacknowledged", turns.EagerTurns),
    ("first-word-acknowledges", "P3", "accepts any word after a cancel as its acknowledgement", turns.HearingTurns),
    (
        "age-counts-from-the-cancel",
        "P3",
        "counts a waiting prompt's time from the timeout before it",
        turns.AgeingTurns,
    ),
    ("prompts-go-out-at-once", "P9", "writes every prompt although one is in flight", turns.BusyQueueTurns),
    ("last-prompt-first", "P9", "delivers the newest prompt first", turns.NewestFirstTurns),
    (
        "cancel-hits-the-turn-in-flight",
        "P9",
        "cancels the turn in flight instead of the prompt that waits",
        turns.MisaimedCancelTurns,
    ),
    ("error-drops-the-queue", "P9", "drops the prompts that wait when a turn fails", turns.StuckQueueTurns),
    (
        "late-words-go-to-the-next-turn",
        "P5",
        "adds a cancelled turn's late words to the next turn",
        crossings.LateWordsTurns,
    ),
    (
        "cancel-beats-the-result",
        "P5",
        "reports a turn as cancelled although its good result came",
        crossings.CancelFirstTurns,
    ),
    ("idle-cancel-hits-the-next", "P5", "keeps a cancel that hit nothing for the next turn", crossings.PoisonedTurns),
    ("queue-goes-with-the-agent", "P6", "loses the waiting prompts with the agent", crossings.FragileQueueTurns),
    ("crash-repeats-the-prompt", "P6", "sends the prompt again when its agent has crashed", crossings.RepeatingTurns),
    ("failed-session-keeps-the-prompts", "P6", "leaves prompts without an outcome", crossings.UnrefusingTurns),
    ("unhandled-questions-wait", "P7", "answers nothing where there is no handler", questions.DeafTurns),
    ("allows-without-a-handler", "P7", "allows everything where there is no handler", questions.TrustingTurns),
    ("idle-questions-wait", "P7", "does not answer a question that comes after the result", questions.IdleDeafTurns),
    ("question-is-denied", "P7", "denies what the caller allows", questions.DenyingTurns),
    ("answers-twice", "P7", "writes the caller's answer twice", questions.TwiceTurns),
    ("questions-wait-for-ever", "P7", "waits without limit for the caller's answer", questions.WaitingTurns),
    ("denial-allows", "P7", "allows what the caller denies", questions.OverrulingTurns),
    ("silence-allows", "P7", "allows a question that got no answer in time", questions.LenientTurns),
    (
        "cancel-leaves-the-question",
        "P7",
        "does not answer the open question of a cancelled turn",
        questions.AbandoningTurns,
    ),
    ("result-drops-the-question", "P7", "does not answer a question whose turn is over", questions.ForgettingTurns),
    ("late-word-answers-again", "P7", "answers a second time when the caller decides late", questions.RepeatingTurns),
    (
        "question-cannot-be-taken-back",
        "P2",
        "waits for an answer that the agent has withdrawn",
        questions.HoldingTurns,
    ),
)
_TURN_TIMES = (
    ("prompts-never-time-out", "P1", "has no limit on the time of a prompt", times.NeverOverTurnWatchdog),
    ("prompt-timeout-is-duration", "P2", "moves the deadline at no progress", times.DurationTurnWatchdog),
    ("timer-beats-progress", "A4", "times out though progress waits to be read", times.ExpiredTurnWatchdog),
    ("bytes-move-the-deadline", "P2", "counts every byte of a turn as progress", times.BytesMoveTurnWatchdog),
    ("deadline-runs-while-asked", "P2", "times out while the caller owes an answer", times.RestlessTurnWatchdog),
    (
        "words-end-the-rest",
        "P2",
        "restarts a resting deadline when the agent says something",
        times.TalkedOutTurnWatchdog,
    ),
    ("deadline-rests-for-ever", "P2", "has no deadline after a question was asked", times.SleepingTurnWatchdog),
    ("closed-output-loses-the-turn", "A5", "treats the end of stdout as the exit", times.ClosedIsExitTurnWatchdog),
    ("words-alone-are-activity", "A1", "counts bytes that are no event as silence", times.WordyTurnWatchdog),
    ("session-silence-has-a-default", "A1", "keeps a run's limit on silence in sessions", times.ImpatientTurnWatchdog),
    ("idle-time-counts", "A1", "counts the silence before a turn", times.IdleCountsTurnWatchdog),
    ("silent-turns-go-on", "A1", "has no limit on the silence of a turn", times.NeverStillTurnWatchdog),
    ("turns-have-no-cap", "A2", "lets a turn that prints run for ever", times.UncappedTurnWatchdog),
    ("cap-is-of-the-session", "A2", "counts a turn's runtime from the first prompt", times.SessionCapTurnWatchdog),
    (
        "turns-never-stall",
        "A8",
        "has no limit on a turn without progress except prompt_timeout",
        times.NeverStallsTurnWatchdog,
    ),
)
_RESTARTS = (
    ("restarts-at-once", "P6", "starts a crashed agent again without a pause", agents.HastyRestarts),
    ("backoff-does-not-double", "P6", "waits the same time before every restart", agents.SteadyRestarts),
    ("backoff-has-no-end", "P6", "doubles the time before a restart without end", agents.BoundlessRestarts),
    ("restarts-for-ever", "P6", "starts an agent again however often it crashes", agents.EndlessRestarts),
    ("first-start-is-tried-again", "P6", "starts an agent again that never did its handshake", agents.HopefulRestarts),
    ("never-restarts", "P6", "gives up at the first crash", agents.NoRestarts),
    ("crashes-count-for-ever", "P6", "never forgets old crashes", agents.UnforgettingRestarts),
)
_CLOSES = (
    ("close-is-terminate", "P8", "terminates the agent at the instant of the close", agents.AbruptLadder),
    ("close-waits-for-the-exit", "P8", "waits for ever for an agent whose stdin has ended", agents.TrustingLadder),
)
_HOOKS = (
    ("early-hook-lost", "B4", "drops a hook that fires before its callback is registered", questions.LosingHooks),
    ("hook-runs-twice", "B4", "calls the callback twice for one hook", questions.RepeatingHooks),
    ("hook-blocks-the-agent", "B4", "makes the agent wait for a callback that may never come", questions.BlockingHooks),
    ("unregistered-hook-allows", "B4", "lets a tool run whose hook has no callback yet", questions.AllowingHooks),
    ("hook-word-ignored", "B4", "lets a tool run that its hook forbids", questions.DeafHooks),
    ("hook-waits-for-ever", "B4", "waits without limit for a callback", questions.EndlessHooks),
    ("stale-hook-runs", "B4", "calls the callback for a hook that is too old", questions.StaleHooks),
)
_OTHERS: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
    (
        "tool-outlives-its-turn",
        "A6",
        "keeps the long limit for a tool whose turn is over",
        {"tools": tools.UnsettledTools},
    ),
    (
        "routes-by-order",
        "B1",
        "assigns turns by the order in which they begin, whatever their lines name",
        {"router": back.OrderRouter},
    ),
    (
        "stale-turn-answers-the-next",
        "B1",
        "answers the second prompt with what came between the two",
        {"turns": back.StaleTurns},
    ),
    (
        "leaks-late-notification",
        "B1",
        "adds a background turn to the prompt's turn in which its notification came",
        {"turns": back.DrainingTurns},
    ),
    (
        "background-words-join-the-prompt",
        "B1",
        "also shows the words of a background turn in the prompt's turn",
        {"turns": back.MixingTurns},
    ),
    (
        "any-result-ends-the-prompt",
        "B1",
        "ends the prompt at a background turn's result",
        {"turns": back.AnyResultTurns},
    ),
    (
        "empty-result-ends-the-prompt",
        "B1",
        "ends the prompt at the empty result of a background turn",
        {"turns": back.EmptyResultTurns},
    ),
    (
        "background-tool-ends-the-prompt",
        "B1",
        "ends the prompt's turn when a background turn asks for a host tool",
        {"turns": back.AnyMessageTurns},
    ),
    (
        "background-words-are-progress",
        "B1",
        "counts a background turn's words as progress of the prompt",
        {"turns": back.RestlessTurns},
    ),
    (
        "expects-one-background-turn",
        "B2",
        "treats the second of two background turns as the prompt's",
        {"turns": back.OnceTurns},
    ),
    ("agents-are-tasks", "B2", "tracks background agents as if they were commands", {"tasks": back.AgentTasks}),
    ("task-ends-unheard", "B2", "treats a task that has ended as running", {"tasks": back.EndlessTasks}),
    ("stopped-task-unmentioned", "B2", "does not report a task that was stopped", {"tasks": back.UnconcernedTasks}),
    ("unfinished-task-unmentioned", "B2", "does not report a task that never ended", {"tasks": back.SilentTasks}),
    (
        "close-waits-for-tasks",
        "B2",
        "waits at close for an agent that waits for its tasks",
        {"ladder": back.WaitingLadder},
    ),
    (
        "drains-after-success-only",
        "B3",
        "keeps background turns apart only after a good result",
        {"turns": back.SuccessTurns},
    ),
    (
        "ready-without-agent",
        "P1",
        "calls a session ready after its agent has ended",
        {"standing": turns.ZombieStanding},
    ),
    (
        "viewer-misses-the-past",
        "P4",
        "shows a viewer nothing from before it attached",
        {"transcript": turns.ForgetfulTranscript},
    ),
    (
        "results-go-by-order",
        "P5",
        "assigns results by their order, not by their names",
        {"router": crossings.OrderRouter},
    ),
)


def _of_session(name: str, rule: str, story: str, **wrong: Any) -> Defect:
    of_run = {part: judge for part, judge in wrong.items() if part == "tasks"}
    return Defect(name, rule, story, Deciders(**of_run), SessionDeciders(**wrong))


OF_SESSIONS = (
    *(_of_session(name, rule, story, turns=wrong) for name, rule, story, wrong in _TURNS),
    *(_of_session(name, rule, story, watchdog=wrong) for name, rule, story, wrong in _TURN_TIMES),
    *(_of_session(name, rule, story, restarts=wrong) for name, rule, story, wrong in _RESTARTS),
    *(_of_session(name, rule, story, ladder=wrong) for name, rule, story, wrong in _CLOSES),
    *(_of_session(name, rule, story, hooks=wrong) for name, rule, story, wrong in _HOOKS),
    *(_of_session(name, rule, story, **wrong) for name, rule, story, wrong in _OTHERS),
)
