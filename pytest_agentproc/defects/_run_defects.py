"""The defects that break a run, and their counterparts in sessions. Each breaks one rule in one decider.

The first line of each class says what the defect does, and names the rule.
"""

from __future__ import annotations

from typing import Any

from pytest_agentproc.defects import _ending_defects as ends
from pytest_agentproc.defects import _escalation_defects as ladders
from pytest_agentproc.defects import _result_defects as results
from pytest_agentproc.defects import _stream_defects as streams
from pytest_agentproc.defects import _tool_defects as tools
from pytest_agentproc.defects import _watchdog_defects as times
from pytest_agentproc.defects._defect import Defect, read_rule_and_story
from pytest_agentproc.supervisor import Deciders, Policy, SessionDeciders

_RUN_DEFECT_CLASSES: dict[str, dict[str, type]] = {
    "watchdog": {
        "duration-timeout": times.InactivityLimitIsDurationDefect,
        "timer-beats-output": times.TimerIgnoresUnreadOutputDefect,
        "stderr-blind": times.StderrIsNoActivityDefect,
        "own-writes-are-activity": times.OwnWritesAreActivityDefect,
        "line-only-activity": times.OnlyWholeLinesAreActivityDefect,
        "first-output-starts-the-clock": times.FirstOutputHasNoLimitDefect,
        "polls-once-a-second": times.ChecksLimitOncePerSecondDefect,
        "no-hard-cap": times.RunHasNoMaxRuntimeDefect,
        "double-timer": times.SecondTimerNeverRestartsDefect,
        "harsher-limit-first": times.PrefersHarsherLimitDefect,
        "closed-output-is-exit": times.StdoutEndStopsTimersDefect,
        "noise-is-progress": times.NoiseIsProgressDefect,
        "bytes-are-progress": times.BytesAreProgressInRunDefect,
        "only-messages-are-progress": times.OnlyMessagesAreProgressDefect,
        "any-event-is-progress": times.StatusLineIsProgressDefect,
        "watches-in-the-grace": times.SilenceLimitAfterCompletionDefect,
        "closed-output-is-activity": times.StreamEndIsActivityDefect,
        "tools-run-for-ever": tools.ToolsHaveNoLimitInRunDefect,
        "tool-limit-is-duration": tools.ToolLimitIsDurationDefect,
    },
    "tools": {
        "internal-tools-ignored": tools.ToolsKeepShortLimitDefect,
        "subagent-restores-limit": tools.SubagentRestoresShortLimitDefect,
        "subagent-tools-count": tools.CountsSubagentToolsDefect,
        "first-end-restores-limit": tools.FirstToolEndRestoresLimitDefect,
        "background-agent-forgotten": tools.LaunchEndsBackgroundAgentDefect,
        "compaction-is-silence": tools.CompactionKeepsShortLimitDefect,
        "compaction-never-ends": tools.LimitStaysLongAfterCompactionDefect,
        "long-limit-stays": tools.LimitStaysLongAfterToolDefect,
        "any-tool-is-hosts": tools.AnyToolGoesToHostDefect,
        "host-tool-waits": tools.HostToolNeverEndsRunDefect,
        "subagent-asks-host": tools.SubagentToolGoesToHostDefect,
        "host-tool-cuts-message": tools.HostToolCutsMessageDefect,
    },
    "completion": {
        "any-stop-reason": ends.ToolStopEndsRunDefect,
        "first-message-is-the-answer": ends.FirstMessageIsAnswerDefect,
        "never-withdraws": ends.CompletionIsNeverWithdrawnDefect,
        "last-word-is-withdrawn": ends.WithdrawsFinalCompletionDefect,
        "stop-alone-is-the-end": ends.OnlyStopMessageEndsRunDefect,
        "cut-message-is-no-end": ends.CutMessageNeverEndsRunDefect,
        "last-result-wins": ends.SecondResultUndoesCompletionDefect,
        "last-word-moves-the-end": ends.DatesOutcomeByLastEventDefect,
        "any-result-ends-the-run": ends.BackgroundResultEndsRunDefect,
        "any-result-is-good": ends.ErrorResultCompletesRunDefect,
        "subagent-speaks-for-all": ends.SubagentWordsBecomeAnswerDefect,
        "error-is-the-end": ends.RecoveredErrorEndsRunDefect,
        "noise-is-fatal": ends.NoiseEndsRunDefect,
        "keeps-everything": ends.TranscriptHasNoLimitDefect,
        "noise-uncounted": ends.NoiseUnreportedDefect,
    },
    "ending": {
        "timer-beats-exit": ends.TimerBeatsExitDefect,
        "late-result-counts": ends.AcceptsAnswerAfterTimeoutDefect,
        "exit-overrules-result": ends.ExitCodeOverridesRunResultDefect,
        "told-error-ignored": ends.DropsReportedErrorDefect,
        "raw-exit-code": ends.CopiesAgentExitCodeDefect,
        "every-code-contradicts": ends.WarnsOfEveryExitCodeDefect,
        "exit-0-is-success": ends.ExitZeroCompletesRunDefect,
        "signal-is-exit-0": ends.RunTreatsSignalAsExitZeroDefect,
        "exit-code-unread": ends.EveryExitCompletesRunDefect,
        "exit-says-nothing": ends.RunExitUnexplainedDefect,
        "waits-for-eof": ends.ExitWaitsForStdoutEndDefect,
        "epipe-is-fatal": ends.BrokenStdinFailsRunDefect,
        "unstarted-has-failed": ends.ReportsStartErrorAsFailedDefect,
        "always-not-found": ends.EveryStartErrorIsMissingFileDefect,
    },
    "ladder": {
        "direct-child-only": ladders.SignalsOnlyAgentProcessDefect,
        "group-only": ladders.SignalsOnlyProcessGroupDefect,
        "holds-the-group-only": ladders.IgnoresRequestedContainmentDefect,
        "waits-for-exit": ladders.LingerHasNoLimitDefect,
        "output-prolongs-the-grace": ladders.OutputProlongsLingerDefect,
        "tasks-hold-the-run": ladders.TasksProlongLingerDefect,
        "tasks-have-no-grace": ladders.TasksGetNoGraceDefect,
        "no-grace": ladders.TerminatesAtCompletionDefect,
        "one-grace": ladders.AlwaysUsesLongGraceDefect,
        "kill-without-term": ladders.KillsWithoutTermDefect,
        "no-kill-after-term": ladders.NeverKillsAfterTermDefect,
        "killed-flag": ladders.TermCountsAsDeathDefect,
        "exit-ends-the-ladder": ladders.NeverKillsDescendantsDefect,
        "leaves-zombie": ladders.NeverReapsAgentDefect,
        "leftovers-stay": ladders.LeavesDescendantsAfterExitDefect,
    },
    "framing": {
        "per-chunk-utf8": streams.DecodesChunksSeparatelyDefect,
        "drops-unfinished-line": streams.DropsUnfinishedLineDefect,
        "first-object-only": streams.ReadsOnlyFirstObjectDefect,
        "endless-line": streams.LineLengthHasNoLimitDefect,
        "lines-are-short": streams.LineLimitTooSmallDefect,
        "line-end-counts": streams.CarriageReturnCountsInLimitDefect,
        "carriage-return-is-text": streams.KeepsCarriageReturnDefect,
        "any-break-ends-a-line": streams.SplitsAtAnyLineBreakDefect,
        "escape-costs-the-frame": streams.DropsEscapedEventDefect,
        "unknown-type-ends-the-reading": streams.UnknownEventStopsReadingDefect,
        "bom-is-data": streams.KeepsByteOrderMarkDefect,
    },
    "feeder": {
        "closed-output-spins": streams.WatchesEndedStreamDefect,
        "stderr-unread": streams.NeverReadsStderrDefect,
        "writes-before-reading": streams.WritesPromptBeforeReadingDefect,
        "stdin-left-open": streams.NeverClosesStdinDefect,
    },
    "artifacts": {
        "artifacts-fatal": streams.ArtifactErrorFailsRunDefect,
        "artifacts-unmentioned": streams.ArtifactErrorUnreportedDefect,
        "result-lost": streams.ResultOmitsForcedReportDefect,
        "no-result-unless-started": streams.UnstartedAgentHasNoResultDefect,
        "log-is-text": streams.LogsDecodedBytesDefect,
    },
    "abandonment": {
        "cancelled-run-goes-on": ladders.CancelLeavesAgentAliveDefect,
        "cancelled-run-only-asks": ladders.CancelOnlySendsTermDefect,
    },
}
"""The wrong judgements of runs by the decider that they replace, each by the name of its defect."""

_SESSION_DECIDERS_BY_RUN_DEFECT: dict[str, dict[str, Any]] = {
    "tools-run-for-ever": {"watchdog": tools.ToolsHaveNoLimitInTurnDefect},
    **{name: {"tools": wrong} for name, wrong in _RUN_DEFECT_CLASSES["tools"].items()},
    "group-only": {"ladder": ladders.IgnoresGroupAfterAgentEndDefect},
    "closed-output-is-activity": {"watchdog": times.StreamEndIsProgressDefect},
    "never-withdraws": {"turns": results.FirstStopEndsTurnDefect},
    "any-result-is-good": {"turns": results.ErrorResultCompletesTurnDefect},
    "exit-overrules-result": {"turns": results.ExitOverridesTurnResultDefect},
    "exit-0-is-success": {"turns": results.ExitZeroCompletesTurnDefect},
    "signal-is-exit-0": {"turns": results.TurnTreatsSignalAsExitZeroDefect},
    "exit-says-nothing": {"turns": results.TurnExitUnexplainedDefect},
}
"""Judgements that are wrong in sessions as in runs, by the name of the defect."""

_DECIDERS_IN_RUNS_AND_SESSIONS = ("ladder", "framing")
"""Judgements that runs and sessions have in common."""


def _make_run_defect(name: str, part: str, wrong: type) -> Defect:
    of_session = _SESSION_DECIDERS_BY_RUN_DEFECT.get(
        name, {part: wrong} if part in _DECIDERS_IN_RUNS_AND_SESSIONS else {}
    )
    return Defect(name, *read_rule_and_story(wrong), Deciders(**{part: wrong}), SessionDeciders(**of_session))


RUN_DEFECTS = (
    *(
        _make_run_defect(name, part, wrong)
        for part, those in _RUN_DEFECT_CLASSES.items()
        for name, wrong in those.items()
    ),
    Defect(
        "timeout-is-duration",
        "A9",
        "applies the one number to the whole runtime",
        Deciders(one_number=lambda seconds: Policy(inactivity_timeout=None, max_runtime=seconds)),
    ),
)
