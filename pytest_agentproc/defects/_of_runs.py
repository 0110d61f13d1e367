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
        "line-only-activity": times.LineWatchdog,
        "first-output-starts-the-clock": times.FirstOutputWatchdog,
        "polls-once-a-second": times.PollingWatchdog,
        "no-hard-cap": times.UncappedWatchdog,
        "double-timer": times.DoubleTimerWatchdog,
        "harsher-limit-first": times.HarsherFirstWatchdog,
        "closed-output-is-exit": times.ClosedIsExitWatchdog,
        "noise-is-progress": times.NoiseIsProgressWatchdog,
        "bytes-are-progress": times.BytesAreProgressWatchdog,
        "only-messages-are-progress": times.MessagesOnlyWatchdog,
        "any-event-is-progress": times.AnyEventWatchdog,
        "watches-in-the-grace": times.CompletedIsSilentWatchdog,
        "closed-output-is-activity": times.ClosedIsActivityWatchdog,
        "tools-run-for-ever": tools.UnlimitedWatchdog,
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
        "any-tool-is-hosts": tools.AnyToolTools,
        "host-tool-waits": tools.NoHandOverTools,
        "subagent-asks-host": tools.NestedHostTools,
        "host-tool-cuts-message": tools.EarlyHandOverTools,
    },
    "completion": {
        "any-stop-reason": ends.AnyStopCompletion,
        "first-message-is-the-answer": ends.FirstMessageCompletion,
        "never-withdraws": ends.NeverWithdrawnCompletion,
        "last-word-is-withdrawn": ends.FinalUndoneCompletion,
        "stop-alone-is-the-end": ends.StopAloneCompletion,
        "cut-message-is-no-end": ends.CutMessageCompletion,
        "last-result-wins": ends.LastResultCompletion,
        "last-word-moves-the-end": ends.LateWordCompletion,
        "any-result-ends-the-run": ends.AnyResultEndsCompletion,
        "any-result-is-good": ends.AnyResultCompletion,
        "subagent-speaks-for-all": ends.NestedWordsCompletion,
        "error-is-the-end": ends.FatalErrorCompletion,
        "noise-is-fatal": ends.FatalNoiseCompletion,
        "keeps-everything": ends.UnlimitedCompletion,
        "noise-uncounted": ends.UncountedNoiseCompletion,
    },
    "ending": {
        "timer-beats-exit": ends.TimerFirstEnding,
        "late-result-counts": ends.LateResultEnding,
        "exit-overrules-result": ends.ExitOverResultEnding,
        "told-error-ignored": ends.DroppedErrorEnding,
        "raw-exit-code": ends.RawCodeEnding,
        "every-code-contradicts": ends.MismatchEnding,
        "exit-0-is-success": ends.ZeroIsGoodEnding,
        "signal-is-exit-0": ends.NullCodeEnding,
        "exit-code-unread": ends.AnyCodeEnding,
        "exit-says-nothing": ends.UnexplainedExitEnding,
        "waits-for-eof": ends.PipeEndEnding,
        "epipe-is-fatal": ends.FatalPipeEnding,
        "unstarted-has-failed": ends.StartFailureEnding,
        "always-not-found": ends.AlwaysMissingEnding,
    },
    "ladder": {
        "direct-child-only": ladders.DirectChildEscalation,
        "group-only": ladders.GroupEscalation,
        "holds-the-group-only": ladders.GroupContainmentEscalation,
        "waits-for-exit": ladders.NoLingerTimerEscalation,
        "output-prolongs-the-grace": ladders.ProlongedLingerEscalation,
        "tasks-hold-the-run": ladders.TaskBoundEscalation,
        "tasks-have-no-grace": ladders.TaskBlindEscalation,
        "no-grace": ladders.NoLingerGraceEscalation,
        "one-grace": ladders.OneGraceEscalation,
        "kill-without-term": ladders.KillOnlyEscalation,
        "no-kill-after-term": ladders.NoKillEscalation,
        "killed-flag": ladders.TermIsDeathEscalation,
        "exit-ends-the-ladder": ladders.UnkilledDescendantEscalation,
        "leaves-zombie": ladders.UnreapedAgentEscalation,
        "leftovers-stay": ladders.LeftDescendantEscalation,
    },
    "framing": {
        "per-chunk-utf8": streams.ChunkFraming,
        "drops-unfinished-line": streams.UnfinishedFraming,
        "first-object-only": streams.FirstObjectFraming,
        "endless-line": streams.EndlessLineFraming,
        "lines-are-short": streams.ShortLineFraming,
        "line-end-counts": streams.WholeLineFraming,
        "carriage-return-is-text": streams.CarriageFraming,
        "any-break-ends-a-line": streams.BreakFraming,
        "escape-costs-the-frame": streams.EscapeFraming,
        "unknown-type-ends-the-reading": streams.StopAtUnknownFraming,
        "bom-is-data": streams.BomFraming,
    },
    "feeder": {
        "closed-output-spins": streams.EndlessFeeder,
        "stderr-unread": streams.StdoutFeeder,
        "writes-before-reading": streams.WriteFirstFeeder,
        "stdin-left-open": streams.NeverClosedFeeder,
    },
    "artifacts": {
        "artifacts-fatal": streams.FatalArtifacts,
        "artifacts-unmentioned": streams.SilentArtifacts,
        "result-lost": streams.ForgetfulArtifacts,
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
    "tools-run-for-ever": {"watchdog": tools.UnlimitedTurnWatchdog},
    **{name: {"tools": wrong} for name, wrong in _IN_RUNS["tools"].items()},
    "group-only": {"ladder": ladders.SessionGroupEscalation},
    "closed-output-is-activity": {"watchdog": times.ClosedIsProgressTurnWatchdog},
    "never-withdraws": {"turns": results.FirstStopTurns},
    "any-result-is-good": {"turns": results.AnyGoodTurns},
    "exit-overrules-result": {"turns": results.ExitOverResultTurns},
    "exit-0-is-success": {"turns": results.ZeroIsGoodTurns},
    "signal-is-exit-0": {"turns": results.NullCodeTurns},
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
