"""The table of defects that break a run, and of what sessions judge as wrongly. Each breaks one rule in one decider."""

from __future__ import annotations

from typing import Any

from pytest_agentproc.defects import _endings as ends
from pytest_agentproc.defects import _ladders as ladders
from pytest_agentproc.defects import _results as results
from pytest_agentproc.defects import _streams as streams
from pytest_agentproc.defects import _tools as tools
from pytest_agentproc.defects import _watchdogs as times
from pytest_agentproc.defects._defect import Defect
from pytest_agentproc.supervisor import Deciders, Policy, SessionDeciders

_TIMES = (
    ("duration-timeout", "A1", "applies the inactivity limit to the whole duration", times.DurationWatchdog),
    ("timer-beats-output", "A4", "ends an agent whose output waits to be read", times.ExpiredWatchdog),
    ("stderr-blind", "A1", "does not count bytes on stderr as activity", times.StderrBlindWatchdog),
    ("own-writes-are-activity", "A1", "counts its own writes as activity", times.OwnWritesWatchdog),
    ("line-only-activity", "A1", "counts bytes as activity only when their line ends", times.LineWatchdog),
    (
        "first-output-starts-the-clock",
        "A1",
        "waits without limit for the first output",
        times.FirstOutputWatchdog,
    ),
    ("polls-once-a-second", "A1", "checks only once a second whether the limit is over", times.PollingWatchdog),
    ("no-hard-cap", "A2", "lets an agent that prints run for ever", times.UncappedWatchdog),
    ("double-timer", "A3", "has a second timer that no activity restarts", times.DoubleTimerWatchdog),
    ("harsher-limit-first", "A3", "prefers the harsher of two limits at one instant", times.HarsherFirstWatchdog),
    ("closed-output-is-exit", "A5", "stops its timers when stdout ends", times.ClosedIsExitWatchdog),
    ("noise-is-progress", "A8", "counts a line that is no event as progress", times.NoiseIsProgressWatchdog),
    ("bytes-are-progress", "A8", "counts every byte as progress", times.BytesAreProgressWatchdog),
    (
        "only-messages-are-progress",
        "A8",
        "does not count pieces, tools and sub-agents as progress",
        times.WordsWatchdog,
    ),
    ("any-event-is-progress", "A8", "counts a status line as progress", times.AnyEventWatchdog),
    ("watches-in-the-grace", "A1", "applies the silence limit to an agent that has completed", times.RestlessWatchdog),
    ("closed-output-is-activity", "A5", "counts the end of a stream as output", times.ClosedIsActivityWatchdog),
    ("tools-run-for-ever", "A6", "waits without limit while a tool runs", tools.UnlimitedWatchdog),
    (
        "tool-limit-is-duration",
        "A6",
        "applies the limit on a tool's silence to the tool's whole time",
        tools.DurationWatchdog,
    ),
)
_TOOLS = (
    ("internal-tools-ignored", "A6", "keeps the short limit while the agent runs a tool", tools.IgnorantTools),
    ("subagent-restores-limit", "A6", "restores the short limit when a sub-agent speaks", tools.NestedRestoresTools),
    ("subagent-tools-count", "A6", "counts a sub-agent's tools as the agent's own", tools.NestedCountTools),
    ("first-end-restores-limit", "A6", "restores the short limit when the first tool ends", tools.FirstEndTools),
    (
        "background-agent-forgotten",
        "A6",
        "treats a launched background agent as a tool that has ended",
        tools.ForgetfulTools,
    ),
    ("compaction-is-silence", "A6", "keeps the short limit while the agent compacts", tools.SilentCompactionTools),
    ("compaction-never-ends", "A6", "keeps the long limit after a compaction", tools.EndlessCompactionTools),
    ("long-limit-stays", "A6", "keeps the long limit when the tool has ended", tools.EndlessTools),
    ("any-tool-is-hosts", "A7", "ends at every tool, also at the agent's own", tools.AnyToolTools),
    ("host-tool-waits", "A7", "waits on when the agent has asked for a host tool", tools.WaitingTools),
    ("subagent-asks-host", "A7", "treats a sub-agent's tool as a host tool", tools.NestedHostTools),
    ("host-tool-cuts-message", "A7", "ends inside the message that asks for the tool", tools.HastyTools),
)
_COMPLETIONS = (
    ("any-stop-reason", "C2", "treats a stop for a tool as the last word", ends.AnyStopCompletion),
    ("never-withdraws", "C1", "keeps a result although the agent continues after it", ends.StubbornCompletion),
    ("last-word-is-withdrawn", "C1", "keeps waiting when a turn begins after the end", ends.FickleCompletion),
    ("stop-alone-is-the-end", "C1", "accepts no end except a message that stops", ends.StopAloneCompletion),
    ("cut-message-is-no-end", "C1", "keeps waiting after a message that was cut or aborted", ends.CutMessageCompletion),
    ("last-result-wins", "C1", "lets a second result in the grace undo the first", ends.LastResultCompletion),
    ("last-word-moves-the-end", "C1", "dates the end of the run by the last event of the end", ends.LateWordCompletion),
    ("any-result-ends-the-run", "B1", "ends the run at a background turn's result", ends.AnyResultEndsCompletion),
    ("any-result-is-good", "C1", "treats an error result as a good one", ends.AnyResultCompletion),
    ("subagent-speaks-for-all", "A6", "reports a sub-agent's words as the agent's", ends.NestedWordsCompletion),
    ("error-is-the-end", "C1", "gives up at an error that the agent recovers from", ends.FatalErrorCompletion),
    ("noise-is-fatal", "F2", "gives up at a line that is no event", ends.FatalNoiseCompletion),
    ("keeps-everything", "F6", "keeps everything that the agent ever said", ends.HoardingCompletion),
    ("noise-uncounted", "F2", "drops a line that is no event, and does not report it", ends.UncountedNoiseCompletion),
)
_ENDINGS = (
    (
        "timer-beats-exit",
        "A4",
        "reports inactive when the agent exits at the very instant of the limit",
        ends.TimerFirstEnding,
    ),
    ("late-result-counts", "A1", "accepts an answer that comes while it ends a silent agent", ends.LateResultEnding),
    ("exit-overrules-result", "C1", "throws a good result away for an exit code", ends.ExitOverResultEnding),
    ("told-error-ignored", "C1", "drops the error that an agent reported before it exited", ends.DeafEnding),
    ("raw-exit-code", "C1", "exits with the agent's own code, forced or not", ends.RawCodeEnding),
    ("every-code-contradicts", "C1", "reports each code that does not fit as a contradiction", ends.MismatchEnding),
    ("exit-0-is-success", "C2", "treats exit 0 as a good result", ends.ZeroIsGoodEnding),
    ("signal-is-exit-0", "C4", "treats a death by signal as exit 0", ends.NullCodeEnding),
    ("exit-code-unread", "C4", "treats every exit as a good one", ends.BlindCodeEnding),
    ("exit-says-nothing", "C4", "reports a death without a result, but not how the agent died", ends.SilentEnding),
    ("waits-for-eof", "C4", "accepts an exit only when stdout has ended", ends.PipeEndEnding),
    ("epipe-is-fatal", "F5", "fails the run when stdin breaks", ends.FatalPipeEnding),
    ("unstarted-has-failed", "P6", "reports an agent that never started as failed", ends.UnstartedEnding),
    ("always-not-found", "P6", "treats every failure to start as a missing file", ends.MissingEnding),
)
_LADDERS = (
    ("direct-child-only", "T1", "signals the agent itself and never its descendants", ladders.DirectChildLadder),
    ("group-only", "T1", "signals the agent's process group, but no process that left it", ladders.GroupLadder),
    (
        "holds-the-group-only",
        "T6",
        "holds the tree by its group, whatever containment was asked for",
        ladders.LooseLadder,
    ),
    ("waits-for-exit", "C1", "waits for the exit however long an agent lingers", ladders.PatientLadder),
    (
        "output-prolongs-the-grace",
        "C1",
        "restarts the grace when the agent prints after its result",
        ladders.ProlongedLadder,
    ),
    (
        "tasks-hold-the-run",
        "C1",
        "waits for the exit while the agent's background commands run",
        ladders.TaskBoundLadder,
    ),
    ("tasks-have-no-grace", "C1", "gives an agent no time for its background commands", ladders.TaskBlindLadder),
    ("no-grace", "C1", "terminates at the instant of the completion", ladders.HastyLadder),
    ("one-grace", "C1", "waits for the long grace also after a good end", ladders.OneGraceLadder),
    ("kill-without-term", "T1", "kills where it should terminate", ladders.KillOnlyLadder),
    ("no-kill-after-term", "T1", "waits for ever for an agent that ignores TERM", ladders.NoKillLadder),
    ("killed-flag", "T1", "treats 'a signal was sent' as 'the agent is dead'", ladders.DeadFlagLadder),
    ("exit-ends-the-ladder", "T1", "kills no descendant once the terminated agent has ended", ladders.ContentLadder),
    ("leaves-zombie", "T3", "never reaps the agent", ladders.ZombieLadder),
    ("leftovers-stay", "T6", "leaves the processes that an exited agent has started", ladders.LeavingLadder),
)
_FRAMINGS = (
    ("per-chunk-utf8", "F1", "decodes each chunk by itself", streams.ChunkFraming),
    ("drops-unfinished-line", "F1", "drops a last line without an end", streams.UnfinishedFraming),
    ("first-object-only", "F1", "reads only the first object of a line", streams.FirstObjectFraming),
    ("endless-line", "F3", "waits for the end of a line however long it grows", streams.EndlessLineFraming),
    ("lines-are-short", "F3", "refuses a line of more than 64 KiB", streams.ShortLineFraming),
    ("line-end-counts", "F3", "counts a CRLF as part of the line before it", streams.WholeLineFraming),
    ("carriage-return-is-text", "F1", "treats the carriage return at a line's end as text", streams.CarriageFraming),
    ("any-break-ends-a-line", "F1", "ends a line at every character that may break a line", streams.BreakFraming),
    ("escape-costs-the-frame", "F1", "drops an event that follows a terminal escape sequence", streams.EscapeFraming),
    ("bom-is-data", "F1", "treats a byte order mark as text", streams.BomFraming),
)
_FEEDERS = (
    ("closed-output-spins", "A5", "keeps watching a stream that has ended", streams.EndlessFeeder),
    ("stderr-unread", "F4", "never reads stderr", streams.StdoutFeeder),
    ("writes-before-reading", "F5", "reads no output until the whole prompt is written", streams.WriteFirstFeeder),
    ("stdin-left-open", "C1", "never closes stdin", streams.OpenFeeder),
)
_KEEPERS = (
    ("artifacts-fatal", "C3", "fails a run because an artifact could not be written", streams.FatalArtifacts),
    ("artifacts-unmentioned", "C3", "does not report an artifact that it could not write", streams.SilentArtifacts),
    ("result-lost", "C3", "leaves out of result.json what a forced agent had reported", streams.ForgetfulArtifacts),
    ("no-result-unless-started", "C3", "writes no result.json if the agent never started", streams.StartedArtifacts),
    ("log-is-text", "C3", "decodes the bytes that it writes to the logs", streams.DecodingArtifacts),
)
_ABANDONMENTS = (
    ("cancelled-run-goes-on", "T4", "leaves the agent alive when it is cancelled itself", ladders.LeavingAbandonment),
    (
        "cancelled-run-only-asks",
        "T4",
        "sends TERM when it is cancelled, and does not wait",
        ladders.AskingAbandonment,
    ),
)
_IN_SESSIONS: dict[str, dict[str, Any]] = {
    "tools-run-for-ever": {"watchdog": tools.UnlimitedTurnWatchdog},
    **{name: {"tools": wrong} for name, _, _, wrong in _TOOLS},
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


def _of_run(name: str, rule: str, story: str, part: str, wrong: Any) -> Defect:
    of_session = _IN_SESSIONS.get(name, {part: wrong} if part in _ALIKE else {})
    return Defect(name, rule, story, Deciders(**{part: wrong}), SessionDeciders(**of_session))


OF_RUNS = (
    *(_of_run(*row[:3], "watchdog", row[3]) for row in _TIMES),
    *(_of_run(*row[:3], "tools", row[3]) for row in _TOOLS),
    *(_of_run(*row[:3], "completion", row[3]) for row in _COMPLETIONS),
    *(_of_run(*row[:3], "ending", row[3]) for row in _ENDINGS),
    *(_of_run(*row[:3], "ladder", row[3]) for row in _LADDERS),
    *(_of_run(*row[:3], "framing", row[3]) for row in _FRAMINGS),
    *(_of_run(*row[:3], "feeder", row[3]) for row in _FEEDERS),
    *(_of_run(*row[:3], "artifacts", row[3]) for row in _KEEPERS),
    *(_of_run(*row[:3], "abandonment", row[3]) for row in _ABANDONMENTS),
    Defect(
        "timeout-is-duration",
        "A9",
        "applies the one number to the whole runtime",
        Deciders(one_number=lambda seconds: Policy(inactivity_timeout=None, max_runtime=seconds)),
    ),
)
