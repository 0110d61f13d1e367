"""The defects that break a run, and their counterparts in sessions. Each breaks one rule in one decider.

The decorator of each class names the rule, and says what the defect does.
"""

from __future__ import annotations

from typing import Any

from pytest_agentproc.defects import (
    _background_defects,
    _ending_defects,
    _escalation_defects,
    _result_defects,
    _stream_defects,
    _tool_defects,
    _turn_defects,
    _watchdog_defects,
)
from pytest_agentproc.defects._defect import DESCRIPTION_BY_CLASS, Defect
from pytest_agentproc.supervisor import Deciders, Policy, SessionDeciders

_RUN_DEFECT_CLASSES: dict[str, dict[str, type]] = {
    "watchdog": {
        "duration-timeout": _watchdog_defects.InactivityLimitIsDurationDefect,
        "timer-beats-output": _watchdog_defects.TimerIgnoresUnreadOutputDefect,
        "stderr-blind": _watchdog_defects.StderrIsNoActivityDefect,
        "own-writes-are-activity": _watchdog_defects.OwnWritesAreActivityDefect,
        "line-only-activity": _watchdog_defects.OnlyWholeLinesAreActivityDefect,
        "first-output-starts-the-clock": _watchdog_defects.FirstOutputHasNoLimitDefect,
        "polls-once-a-second": _watchdog_defects.ChecksLimitOncePerSecondDefect,
        "silence-has-no-limit": _watchdog_defects.SilenceHasNoLimitDefect,
        "no-hard-cap": _watchdog_defects.RunHasNoMaxRuntimeDefect,
        "double-timer": _watchdog_defects.SecondTimerNeverRestartsDefect,
        "harsher-limit-first": _watchdog_defects.PrefersHarsherLimitDefect,
        "closed-output-is-exit": _watchdog_defects.StdoutEndStopsTimersDefect,
        "noise-is-progress": _watchdog_defects.NoiseIsProgressDefect,
        "bytes-are-progress": _watchdog_defects.BytesAreProgressInRunDefect,
        "only-messages-are-progress": _watchdog_defects.OnlyMessagesAreProgressDefect,
        "any-event-is-progress": _watchdog_defects.StatusLineIsProgressDefect,
        "watches-in-the-grace": _watchdog_defects.SilenceLimitAfterCompletionDefect,
        "closed-output-is-activity": _watchdog_defects.StreamEndIsActivityDefect,
        "tools-run-for-ever": _tool_defects.ToolsHaveNoLimitInRunDefect,
        "tool-limit-is-duration": _tool_defects.ToolLimitIsDurationDefect,
    },
    "tools": {
        "internal-tools-ignored": _tool_defects.ToolsKeepShortLimitDefect,
        "subagent-restores-limit": _tool_defects.SubagentRestoresShortLimitDefect,
        "subagent-tools-count": _tool_defects.CountsSubagentToolsDefect,
        "first-end-restores-limit": _tool_defects.FirstToolEndRestoresLimitDefect,
        "background-agent-forgotten": _tool_defects.LaunchEndsBackgroundAgentDefect,
        "compaction-is-silence": _tool_defects.CompactionKeepsShortLimitDefect,
        "compaction-never-ends": _tool_defects.LimitStaysLongAfterCompactionDefect,
        "long-limit-stays": _tool_defects.LongLimitOutlivesToolDefect,
        "any-tool-is-hosts": _tool_defects.AnyToolGoesToHostDefect,
        "host-tool-waits": _tool_defects.HostToolNeverEndsRunDefect,
        "subagent-asks-host": _tool_defects.SubagentToolGoesToHostDefect,
        "host-tool-cuts-message": _tool_defects.HostToolCutsMessageDefect,
    },
    "completion": {
        "any-stop-reason": _ending_defects.ToolStopEndsRunDefect,
        "first-message-is-the-answer": _ending_defects.FirstMessageIsAnswerDefect,
        "answer-is-its-tail": _ending_defects.KeepsTailOfAnswerDefect,
        "answer-is-stripped": _ending_defects.StripsAnswerDefect,
        "never-withdraws": _ending_defects.CompletionIsNeverWithdrawnDefect,
        "last-word-is-withdrawn": _ending_defects.WithdrawsFinalCompletionDefect,
        "stop-alone-is-the-end": _ending_defects.OnlyStopMessageEndsRunDefect,
        "cut-message-is-no-end": _ending_defects.CutMessageNeverEndsRunDefect,
        "last-result-wins": _ending_defects.SecondResultUndoesCompletionDefect,
        "last-word-moves-the-end": _ending_defects.DatesOutcomeByLastEventDefect,
        "any-result-ends-the-run": _ending_defects.BackgroundResultEndsRunDefect,
        "any-result-is-good": _ending_defects.ErrorResultCompletesRunDefect,
        "subagent-speaks-for-all": _ending_defects.SubagentWordsBecomeAnswerDefect,
        "error-is-the-end": _ending_defects.RecoveredErrorEndsRunDefect,
        "noise-is-fatal": _ending_defects.NoiseEndsRunDefect,
        "keeps-everything": _ending_defects.TranscriptHasNoLimitDefect,
        "noise-uncounted": _ending_defects.NoiseUnreportedDefect,
    },
    "ending": {
        "timer-beats-exit": _ending_defects.TimerBeatsExitDefect,
        "late-result-counts": _ending_defects.AcceptsAnswerAfterTimeoutDefect,
        "exit-overrules-result": _ending_defects.ExitCodeOverridesRunResultDefect,
        "reported-error-dropped": _ending_defects.DropsReportedErrorDefect,
        "raw-exit-code": _ending_defects.CopiesAgentExitCodeDefect,
        "every-code-contradicts": _ending_defects.WarnsOfEveryExitCodeDefect,
        "exit-0-is-success": _ending_defects.ExitZeroCompletesRunDefect,
        "signal-is-exit-0": _ending_defects.RunTreatsSignalAsExitZeroDefect,
        "exit-code-unread": _ending_defects.EveryExitCompletesRunDefect,
        "run-exit-unexplained": _ending_defects.RunExitUnexplainedDefect,
        "waits-for-eof": _ending_defects.ExitWaitsForStdoutEndDefect,
        "epipe-is-fatal": _ending_defects.BrokenStdinFailsRunDefect,
        "start-error-is-failed": _ending_defects.ReportsStartErrorAsFailedDefect,
        "always-not-found": _ending_defects.EveryStartErrorIsMissingFileDefect,
    },
    "escalation": {
        "direct-child-only": _escalation_defects.SignalsOnlyAgentProcessDefect,
        "group-only": _escalation_defects.SignalsOnlyProcessGroupDefect,
        "holds-the-group-only": _escalation_defects.IgnoresRequestedContainmentDefect,
        "waits-for-exit": _escalation_defects.LingerHasNoLimitDefect,
        "output-prolongs-the-grace": _escalation_defects.OutputProlongsLingerDefect,
        "tasks-hold-the-run": _escalation_defects.TasksProlongLingerDefect,
        "tasks-have-no-grace": _escalation_defects.TasksGetNoGraceDefect,
        "no-grace": _escalation_defects.TerminatesAtCompletionDefect,
        "one-grace": _escalation_defects.AlwaysUsesLongGraceDefect,
        "kill-without-term": _escalation_defects.KillsWithoutTermDefect,
        "no-kill-after-term": _escalation_defects.NeverKillsAfterTermDefect,
        "killed-flag": _escalation_defects.TermCountsAsDeathDefect,
        "exit-ends-the-escalation": _escalation_defects.NeverKillsDescendantsDefect,
        "crash-repeats-the-run": _escalation_defects.StartsCrashedAgentAgainDefect,
        "leaves-zombie": _escalation_defects.NeverReapsAgentDefect,
        "leftovers-stay": _escalation_defects.LeavesDescendantsAfterExitDefect,
    },
    "framing": {
        "per-chunk-utf8": _stream_defects.DecodesChunksSeparatelyDefect,
        "drops-unfinished-line": _stream_defects.DropsUnfinishedLineDefect,
        "first-object-only": _stream_defects.ReadsOnlyFirstObjectDefect,
        "error-item-is-fatal": _stream_defects.ErrorItemIsFatalDefect,
        "endless-line": _stream_defects.LineLengthHasNoLimitDefect,
        "lines-are-short": _stream_defects.LineLimitTooSmallDefect,
        "line-end-counts": _stream_defects.CarriageReturnCountsInLimitDefect,
        "carriage-return-is-text": _stream_defects.KeepsCarriageReturnDefect,
        "any-break-ends-a-line": _stream_defects.SplitsAtAnyLineBreakDefect,
        "escape-costs-the-frame": _stream_defects.DropsEscapedEventDefect,
        "unknown-type-ends-the-reading": _stream_defects.UnknownEventStopsReadingDefect,
        "noise-ends-the-reading": _stream_defects.NoiseStopsReadingDefect,
        "other-json-ends-the-reading": _stream_defects.OtherJsonStopsReadingDefect,
        "noise-costs-the-read": _stream_defects.NoiseCostsReadDefect,
        "bom-is-data": _stream_defects.KeepsByteOrderMarkDefect,
    },
    "tasks": {
        "agents-are-tasks": _background_defects.TracksBackgroundAgentsAsCommandsDefect,
    },
    "feeder": {
        "closed-output-spins": _stream_defects.WatchesEndedStreamDefect,
        "stderr-unread": _stream_defects.NeverReadsStderrDefect,
        "writes-before-reading": _stream_defects.WritesPromptBeforeReadingDefect,
        "prompt-is-stripped": _stream_defects.StripsPromptDefect,
        "stdin-left-open": _stream_defects.NeverClosesStdinDefect,
        "stdin-inherited": _stream_defects.InheritsStdinDefect,
    },
    "artifacts": {
        "artifacts-fatal": _stream_defects.ArtifactErrorFailsRunDefect,
        "artifacts-unmentioned": _stream_defects.ArtifactErrorUnreportedDefect,
        "result-lost": _stream_defects.ResultOmitsForcedReportDefect,
        "no-result-unless-started": _stream_defects.UnstartedAgentHasNoResultDefect,
        "log-is-text": _stream_defects.LogsDecodedBytesDefect,
    },
    "abandonment": {
        "cancelled-run-goes-on": _escalation_defects.CancelLeavesAgentAliveDefect,
        "cancelled-run-only-asks": _escalation_defects.CancelOnlySendsTermDefect,
    },
}
"""The wrong judgements of runs by the decider that they replace, each by the name of its defect."""

_SESSION_DECIDERS_BY_RUN_DEFECT: dict[str, dict[str, Any]] = {
    "tools-run-for-ever": {"watchdog": _tool_defects.ToolsHaveNoLimitInTurnDefect},
    **{name: {"tools": wrong} for name, wrong in _RUN_DEFECT_CLASSES["tools"].items()},
    "silence-has-no-limit": {"watchdog": _watchdog_defects.TurnSilenceHasNoLimitDefect},
    "stderr-unread": {"outbox": _stream_defects.SessionNeverReadsStderrDefect},
    "prompt-is-stripped": {"turns": _turn_defects.StripsPromptOfTurnDefect},
    "group-only": {"escalation": _escalation_defects.IgnoresGroupAfterAgentEndDefect},
    "closed-output-is-activity": {"watchdog": _watchdog_defects.StreamEndIsProgressDefect},
    "never-withdraws": {"turns": _result_defects.FirstStopEndsTurnDefect},
    "any-result-is-good": {"turns": _result_defects.ErrorResultCompletesTurnDefect},
    "exit-overrules-result": {"turns": _result_defects.ExitOverridesTurnResultDefect},
    "exit-0-is-success": {"turns": _result_defects.ExitZeroCompletesTurnDefect},
    "signal-is-exit-0": {"turns": _result_defects.TurnTreatsSignalAsExitZeroDefect},
    "run-exit-unexplained": {"turns": _result_defects.TurnExitUnexplainedDefect},
}
"""Judgements that are wrong in sessions as in runs, by the name of the defect."""

_WHY_RUNS_ONLY = {
    "watchdog": "A turn of a session has a watchdog of its own, with defects of its own.",
    "completion": "A turn of a session ends by the response of its protocol, not by the agent's last message.",
    "ending": "The exit of an agent ends a run, while a session starts its next agent.",
    "feeder": "A session keeps stdin open and writes every prompt to it.",
    "artifacts": "Only a run keeps files.",
    "tasks": "A session gives background work no grace.",
    "error-item-is-fatal": "codex app-server writes an item of the type error in another event.",
    "line-end-counts": "A session reads its lines in the same way, so one run shows it.",
    "carriage-return-is-text": "The agent of a session prints JSON, where a carriage return is blank.",
    "crash-repeats-the-run": "A session starts its next agent; crash-repeats-the-prompt sends it the same prompt.",
    "leaves-zombie": "In a session the reference always reaps the agent: no judgement can leave that out.",
    **dict.fromkeys(
        ("waits-for-exit", "output-prolongs-the-grace", "tasks-hold-the-run", "tasks-have-no-grace", "no-grace"),
        "A session gives its agent no grace after a turn, as the agent lives on.",
    ),
}
"""Why a defect has no like in sessions, by its name or by the decider that it replaces."""

_DECIDERS_IN_RUNS_AND_SESSIONS = ("escalation", "framing", "abandonment")
"""Judgements that runs and sessions have in common."""


def _make_run_defect(name: str, part: str, wrong: type) -> Defect:
    why = _WHY_RUNS_ONLY.get(name, "")
    of_both = {part: wrong} if part in _DECIDERS_IN_RUNS_AND_SESSIONS else {}
    of_session = {} if why else _SESSION_DECIDERS_BY_RUN_DEFECT.get(name, of_both)
    return Defect(
        name,
        *DESCRIPTION_BY_CLASS[wrong],
        one_kind="" if of_session else why or _WHY_RUNS_ONLY[part],
        deciders=Deciders(**{part: wrong}),
        session_deciders=SessionDeciders(**of_session),
    )


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
        one_kind="A session has no limit on silence unless the caller states it.",
        deciders=Deciders(one_number=lambda seconds: Policy(inactivity_timeout=None, max_runtime=seconds)),
    ),
)
