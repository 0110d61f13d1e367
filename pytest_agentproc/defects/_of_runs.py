"""The defects that break a run, and their counterparts in sessions. Each breaks one rule in one decider.

The first line of each class says what the defect does, and names the rule.
"""

from __future__ import annotations

from typing import Any

from pytest_agentproc.defects import _endings as ends
from pytest_agentproc.defects import _ladders as ladders
from pytest_agentproc.defects import _results as results
from pytest_agentproc.defects import _streams as streams
from pytest_agentproc.defects import _tools as tools
from pytest_agentproc.defects import _watchdogs as times
from pytest_agentproc.defects._defect import Defect, read_rule_and_story
from pytest_agentproc.supervisor import Deciders, Policy, SessionDeciders

_IN_RUNS: dict[str, dict[str, type]] = {
    "watchdog": {
        "duration-timeout": times.DurationWatchdog,
        "timer-beats-output": times.IgnoresUnreadOutputWatchdog,
        "stderr-blind": times.StderrBlindWatchdog,
        "own-writes-are-activity": times.OwnWritesWatchdog,
        "line-only-activity": times.OnlyWholeLinesCountWatchdog,
        "first-output-starts-the-clock": times.FirstOutputWatchdog,
        "polls-once-a-second": times.PollingWatchdog,
        "no-hard-cap": times.NoRuntimeLimitWatchdog,
        "double-timer": times.DoubleTimerWatchdog,
        "harsher-limit-first": times.HarsherFirstWatchdog,
        "closed-output-is-exit": times.ClosedIsExitWatchdog,
        "noise-is-progress": times.NoiseIsProgressWatchdog,
        "bytes-are-progress": times.BytesAreProgressWatchdog,
        "only-messages-are-progress": times.MessagesOnlyWatchdog,
        "any-event-is-progress": times.StatusIsProgressWatchdog,
        "watches-in-the-grace": times.CompletedIsSilentWatchdog,
        "closed-output-is-activity": times.ClosedIsActivityWatchdog,
        "tools-run-for-ever": tools.NoToolLimitWatchdog,
        "tool-limit-is-duration": tools.DurationWatchdog,
    },
    "tools": {
        "internal-tools-ignored": tools.UncountedTools,
        "subagent-restores-limit": tools.NestedRestoresTools,
        "subagent-tools-count": tools.NestedCountTools,
        "first-end-restores-limit": tools.FirstEndTools,
        "background-agent-forgotten": tools.LaunchEndsAgentTools,
        "compaction-is-silence": tools.SilentCompactionTools,
        "compaction-never-ends": tools.EndlessCompactionTools,
        "long-limit-stays": tools.NeverEndedTools,
        "any-tool-is-hosts": tools.HandsOverAnyTool,
        "host-tool-waits": tools.NoHandOverTools,
        "subagent-asks-host": tools.NestedHostTools,
        "host-tool-cuts-message": tools.EarlyHandOverTools,
    },
    "completion": {
        "any-stop-reason": ends.ToolStopEndsCompletion,
        "first-message-is-the-answer": ends.FirstMessageCompletion,
        "never-withdraws": ends.NeverWithdrawnCompletion,
        "last-word-is-withdrawn": ends.UndoesFinalCompletion,
        "stop-alone-is-the-end": ends.OnlyStopMessageEndsCompletion,
        "cut-message-is-no-end": ends.IgnoresCutMessageCompletion,
        "last-result-wins": ends.SecondResultUndoesCompletion,
        "last-word-moves-the-end": ends.DatedByLastEventCompletion,
        "any-result-ends-the-run": ends.AnyResultEndsCompletion,
        "any-result-is-good": ends.ErrorResultIsGoodCompletion,
        "subagent-speaks-for-all": ends.SubAgentWordsCompletion,
        "error-is-the-end": ends.FatalErrorCompletion,
        "noise-is-fatal": ends.FatalNoiseCompletion,
        "keeps-everything": ends.UnlimitedTranscriptCompletion,
        "noise-uncounted": ends.UncountedNoiseCompletion,
    },
    "ending": {
        "timer-beats-exit": ends.TimerBeforeExitEnding,
        "late-result-counts": ends.LateResultEnding,
        "exit-overrules-result": ends.ExitOverResultEnding,
        "told-error-ignored": ends.DroppedErrorEnding,
        "raw-exit-code": ends.AgentExitCodeEnding,
        "every-code-contradicts": ends.WarnsOfEveryMismatchEnding,
        "exit-0-is-success": ends.ExitZeroIsGoodEnding,
        "signal-is-exit-0": ends.SignalDeathIsZeroEnding,
        "exit-code-unread": ends.EveryExitIsGoodEnding,
        "exit-says-nothing": ends.UnexplainedExitEnding,
        "waits-for-eof": ends.ExitOnlyAfterStdoutEnding,
        "epipe-is-fatal": ends.BrokenStdinFailsEnding,
        "unstarted-has-failed": ends.StartFailureEnding,
        "always-not-found": ends.EveryStartErrorIsMissingEnding,
    },
    "ladder": {
        "direct-child-only": ladders.DirectChildEscalation,
        "group-only": ladders.GroupEscalation,
        "holds-the-group-only": ladders.GroupContainmentEscalation,
        "waits-for-exit": ladders.NoLingerTimerEscalation,
        "output-prolongs-the-grace": ladders.ProlongedLingerEscalation,
        "tasks-hold-the-run": ladders.LingersWithTasksEscalation,
        "tasks-have-no-grace": ladders.NoTimeForTasksEscalation,
        "no-grace": ladders.NoLingerGraceEscalation,
        "one-grace": ladders.AlwaysLongGraceEscalation,
        "kill-without-term": ladders.KillOnlyEscalation,
        "no-kill-after-term": ladders.NoKillEscalation,
        "killed-flag": ladders.TermIsDeathEscalation,
        "exit-ends-the-ladder": ladders.UnkilledDescendantEscalation,
        "leaves-zombie": ladders.UnreapedAgentEscalation,
        "leftovers-stay": ladders.LeavesDescendantsEscalation,
    },
    "framing": {
        "per-chunk-utf8": streams.DecodesEachChunkFraming,
        "drops-unfinished-line": streams.DropsUnfinishedLineFraming,
        "first-object-only": streams.FirstObjectFraming,
        "endless-line": streams.EndlessLineFraming,
        "lines-are-short": streams.ShortLineFraming,
        "line-end-counts": streams.CountsCarriageReturnFraming,
        "carriage-return-is-text": streams.KeepsCarriageReturnFraming,
        "any-break-ends-a-line": streams.SplitsAtAnyBreakFraming,
        "escape-costs-the-frame": streams.DropsEscapedEventFraming,
        "unknown-type-ends-the-reading": streams.StopAtUnknownFraming,
        "bom-is-data": streams.KeepsByteOrderMarkFraming,
    },
    "feeder": {
        "closed-output-spins": streams.WatchesEndedStreamFeeder,
        "stderr-unread": streams.NeverReadsStderrFeeder,
        "writes-before-reading": streams.WriteFirstFeeder,
        "stdin-left-open": streams.NeverClosedFeeder,
    },
    "artifacts": {
        "artifacts-fatal": streams.WriteErrorFailsRunArtifacts,
        "artifacts-unmentioned": streams.UnreportedWriteErrorArtifacts,
        "result-lost": streams.ForgetsForcedReportArtifacts,
        "no-result-unless-started": streams.StartedOnlyArtifacts,
        "log-is-text": streams.DecodingArtifacts,
    },
    "abandonment": {
        "cancelled-run-goes-on": ladders.LeftAgentAbandonment,
        "cancelled-run-only-asks": ladders.TermOnlyAbandonment,
    },
}
"""The wrong judgements of runs by the decider that they replace, each by the name of its defect."""

_IN_SESSIONS: dict[str, dict[str, Any]] = {
    "tools-run-for-ever": {"watchdog": tools.NoToolLimitTurnWatchdog},
    **{name: {"tools": wrong} for name, wrong in _IN_RUNS["tools"].items()},
    "group-only": {"ladder": ladders.SessionGroupEscalation},
    "closed-output-is-activity": {"watchdog": times.ClosedIsProgressTurnWatchdog},
    "never-withdraws": {"turns": results.FirstStopEndsTurns},
    "any-result-is-good": {"turns": results.ErrorResultIsGoodTurns},
    "exit-overrules-result": {"turns": results.ExitOverResultTurns},
    "exit-0-is-success": {"turns": results.ExitZeroIsGoodTurns},
    "signal-is-exit-0": {"turns": results.SignalDeathIsZeroTurns},
    "exit-says-nothing": {"turns": results.UnexplainedExitTurns},
}
"""Judgements that are wrong in sessions as in runs, by the name of the defect."""

_ALIKE = ("ladder", "framing")
"""Judgements that runs and sessions have in common."""


def _make_defect(name: str, part: str, wrong: type) -> Defect:
    of_session = _IN_SESSIONS.get(name, {part: wrong} if part in _ALIKE else {})
    return Defect(name, *read_rule_and_story(wrong), Deciders(**{part: wrong}), SessionDeciders(**of_session))


OF_RUNS = (
    *(_make_defect(name, part, wrong) for part, those in _IN_RUNS.items() for name, wrong in those.items()),
    Defect(
        "timeout-is-duration",
        "A9",
        "applies the one number to the whole runtime",
        Deciders(one_number=lambda seconds: Policy(inactivity_timeout=None, max_runtime=seconds)),
    ),
)
