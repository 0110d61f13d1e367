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
from pytest_agentproc.defects._defect import Defect, described
from pytest_agentproc.supervisor import Deciders, Policy, SessionDeciders

_IN_RUNS: dict[str, dict[str, type]] = {
    "watchdog": {
        "duration-timeout": times.DurationWatchdog,
        "timer-beats-output": times.ExpiredWatchdog,
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
        "only-messages-are-progress": times.WordsWatchdog,
        "any-event-is-progress": times.AnyEventWatchdog,
        "watches-in-the-grace": times.RestlessWatchdog,
        "closed-output-is-activity": times.ClosedIsActivityWatchdog,
        "tools-run-for-ever": tools.UnlimitedWatchdog,
        "tool-limit-is-duration": tools.DurationWatchdog,
    },
    "tools": {
        "internal-tools-ignored": tools.IgnorantTools,
        "subagent-restores-limit": tools.NestedRestoresTools,
        "subagent-tools-count": tools.NestedCountTools,
        "first-end-restores-limit": tools.FirstEndTools,
        "background-agent-forgotten": tools.ForgetfulTools,
        "compaction-is-silence": tools.SilentCompactionTools,
        "compaction-never-ends": tools.EndlessCompactionTools,
        "long-limit-stays": tools.EndlessTools,
        "any-tool-is-hosts": tools.AnyToolTools,
        "host-tool-waits": tools.WaitingTools,
        "subagent-asks-host": tools.NestedHostTools,
        "host-tool-cuts-message": tools.HastyTools,
    },
    "completion": {
        "any-stop-reason": ends.AnyStopCompletion,
        "never-withdraws": ends.StubbornCompletion,
        "last-word-is-withdrawn": ends.FickleCompletion,
        "stop-alone-is-the-end": ends.StopAloneCompletion,
        "cut-message-is-no-end": ends.CutMessageCompletion,
        "last-result-wins": ends.LastResultCompletion,
        "last-word-moves-the-end": ends.LateWordCompletion,
        "any-result-ends-the-run": ends.AnyResultEndsCompletion,
        "any-result-is-good": ends.AnyResultCompletion,
        "subagent-speaks-for-all": ends.NestedWordsCompletion,
        "error-is-the-end": ends.FatalErrorCompletion,
        "noise-is-fatal": ends.FatalNoiseCompletion,
        "keeps-everything": ends.HoardingCompletion,
        "noise-uncounted": ends.UncountedNoiseCompletion,
    },
    "ending": {
        "timer-beats-exit": ends.TimerFirstEnding,
        "late-result-counts": ends.LateResultEnding,
        "exit-overrules-result": ends.ExitOverResultEnding,
        "told-error-ignored": ends.DeafEnding,
        "raw-exit-code": ends.RawCodeEnding,
        "every-code-contradicts": ends.MismatchEnding,
        "exit-0-is-success": ends.ZeroIsGoodEnding,
        "signal-is-exit-0": ends.NullCodeEnding,
        "exit-code-unread": ends.BlindCodeEnding,
        "exit-says-nothing": ends.SilentEnding,
        "waits-for-eof": ends.PipeEndEnding,
        "epipe-is-fatal": ends.FatalPipeEnding,
        "unstarted-has-failed": ends.UnstartedEnding,
        "always-not-found": ends.MissingEnding,
    },
    "ladder": {
        "direct-child-only": ladders.DirectChildLadder,
        "group-only": ladders.GroupLadder,
        "holds-the-group-only": ladders.LooseLadder,
        "waits-for-exit": ladders.PatientLadder,
        "output-prolongs-the-grace": ladders.ProlongedLadder,
        "tasks-hold-the-run": ladders.TaskBoundLadder,
        "tasks-have-no-grace": ladders.TaskBlindLadder,
        "no-grace": ladders.HastyLadder,
        "one-grace": ladders.OneGraceLadder,
        "kill-without-term": ladders.KillOnlyLadder,
        "no-kill-after-term": ladders.NoKillLadder,
        "killed-flag": ladders.DeadFlagLadder,
        "exit-ends-the-ladder": ladders.ContentLadder,
        "leaves-zombie": ladders.ZombieLadder,
        "leftovers-stay": ladders.LeavingLadder,
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
        "unknown-type-ends-the-reading": streams.StrictFraming,
        "bom-is-data": streams.BomFraming,
    },
    "feeder": {
        "closed-output-spins": streams.EndlessFeeder,
        "stderr-unread": streams.StdoutFeeder,
        "writes-before-reading": streams.WriteFirstFeeder,
        "stdin-left-open": streams.OpenFeeder,
    },
    "artifacts": {
        "artifacts-fatal": streams.FatalArtifacts,
        "artifacts-unmentioned": streams.SilentArtifacts,
        "result-lost": streams.ForgetfulArtifacts,
        "no-result-unless-started": streams.StartedArtifacts,
        "log-is-text": streams.DecodingArtifacts,
    },
    "abandonment": {
        "cancelled-run-goes-on": ladders.LeavingAbandonment,
        "cancelled-run-only-asks": ladders.AskingAbandonment,
    },
}
"""The wrong judgements of runs by the decider that they replace, each by the name of its defect."""

_IN_SESSIONS: dict[str, dict[str, Any]] = {
    "tools-run-for-ever": {"watchdog": tools.UnlimitedTurnWatchdog},
    **{name: {"tools": wrong} for name, wrong in _IN_RUNS["tools"].items()},
    "group-only": {"ladder": ladders.GroupOfSessionLadder},
    "closed-output-is-activity": {"watchdog": times.ClosedIsProgressTurnWatchdog},
    "never-withdraws": {"turns": results.FirstStopTurns},
    "any-result-is-good": {"turns": results.AnyGoodTurns},
    "exit-overrules-result": {"turns": results.ExitOverTurns},
    "exit-0-is-success": {"turns": results.ZeroIsGoodTurns},
    "signal-is-exit-0": {"turns": results.NullCodeTurns},
    "exit-says-nothing": {"turns": results.SilentTurns},
}
"""Judgements that are wrong in sessions as in runs, by the name of the defect."""

_ALIKE = ("ladder", "framing")
"""Judgements that runs and sessions have in common."""


def _of_run(name: str, part: str, wrong: type) -> Defect:
    of_session = _IN_SESSIONS.get(name, {part: wrong} if part in _ALIKE else {})
    return Defect(name, *described(wrong), Deciders(**{part: wrong}), SessionDeciders(**of_session))


OF_RUNS = (
    *(_of_run(name, part, wrong) for part, those in _IN_RUNS.items() for name, wrong in those.items()),
    Defect(
        "timeout-is-duration",
        "A9",
        "applies the one number to the whole runtime",
        Deciders(one_number=lambda seconds: Policy(inactivity_timeout=None, max_runtime=seconds)),
    ),
)
