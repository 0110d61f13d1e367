"""The table of defects. Each breaks one rule in one decider; production code knows nothing of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pytest_agentproc.defects import _agents as agents
from pytest_agentproc.defects import _crossings as crossings
from pytest_agentproc.defects import _endings as ends
from pytest_agentproc.defects import _keepers as keepers
from pytest_agentproc.defects import _patience as patiences
from pytest_agentproc.defects import _questions as questions
from pytest_agentproc.defects import _streams as streams
from pytest_agentproc.defects import _tools as tools
from pytest_agentproc.defects import _turns as turns
from pytest_agentproc.defects import _watchdogs as times
from pytest_agentproc.errors import UsageError
from pytest_agentproc.supervisor import Deciders, Policy, SessionDeciders

__all__ = ["DEFECTS", "NAMES", "Defect", "defect"]


@dataclass(frozen=True, slots=True)
class Defect:
    """One wrong behaviour.

    Args:
        name: what scenarios call it.
        breaks: the rule that it breaks.
        story: what it does, in a clause.
        deciders: the judgements of a run with the wrong one in place.
        session_deciders: those of a session.
    """

    name: str
    breaks: str
    story: str
    deciders: Deciders = field(default_factory=Deciders)
    session_deciders: SessionDeciders = field(default_factory=SessionDeciders)


def _of_session(name: str, rule: str, story: str, **wrong: Any) -> Defect:
    return Defect(name, rule, story, session_deciders=SessionDeciders(**wrong))


_TIMES = (
    ("duration-timeout", "A1", "takes the inactivity limit for a limit of the whole duration", times.DurationWatchdog),
    ("stderr-blind", "A1", "takes bytes on stderr for no activity", times.StderrBlindWatchdog),
    ("line-only-activity", "A1", "takes bytes for activity only once their line ends", times.LineWatchdog),
    ("polls-once-a-second", "A1", "looks once a second whether the limit is over", times.PollingWatchdog),
    ("no-hard-cap", "A2", "lets an agent that prints run for ever", times.UncappedWatchdog),
    ("double-timer", "A3", "has a second timer that no activity winds up", times.DoubleTimerWatchdog),
    ("harsher-limit-first", "A3", "prefers the harsher of two limits at one instant", times.HarsherFirstWatchdog),
    ("closed-output-is-exit", "A5", "stops its timers when stdout ends", times.ClosedIsExitWatchdog),
    ("noise-is-progress", "A8", "takes a line that is no event for progress", times.NoiseIsProgressWatchdog),
    ("bytes-are-progress", "A8", "takes every byte for progress", times.BytesAreProgressWatchdog),
    ("closed-output-is-activity", "A5", "takes the end of a stream for output", times.ClosedIsActivityWatchdog),
    ("tools-run-for-ever", "A6", "waits without limit while a tool runs", tools.UnlimitedWatchdog),
)
_TOOLS = (
    ("internal-tools-ignored", "A6", "keeps the short limit while the agent executes a tool", tools.IgnorantTools),
    ("subagent-restores-limit", "A6", "restores the short limit when a sub-agent speaks", tools.NestedRestoresTools),
    ("first-end-restores-limit", "A6", "restores the short limit when the first tool ends", tools.FirstEndTools),
    ("background-agent-forgotten", "A6", "takes a launched agent for a tool that is done", tools.ForgetfulTools),
    ("long-limit-stays", "A6", "keeps the long limit when the tool has ended", tools.EndlessTools),
    ("any-tool-is-hosts", "A7", "ends at every tool, also at the agent's own", tools.AnyToolTools),
    ("host-tool-waits", "A7", "waits on when the agent has asked for a tool of the host's", tools.WaitingTools),
    ("subagent-asks-host", "A7", "takes a sub-agent's tool for one that the host executes", tools.NestedHostTools),
    ("host-tool-cuts-message", "A7", "ends inside the message that asks for the tool", tools.HastyTools),
)
_COMPLETIONS = (
    ("any-stop-reason", "C2", "takes a stop for a tool for the last word", ends.AnyStopCompletion),
    ("never-withdraws", "C1", "holds on to a result that the agent goes on from", ends.StubbornCompletion),
    ("any-result-is-good", "C1", "takes an error result for a good one", ends.AnyResultCompletion),
    ("error-is-the-end", "C1", "gives up at an error that the agent gets over", ends.FatalErrorCompletion),
    ("noise-is-fatal", "F2", "gives up at a line that is no event", ends.FatalNoiseCompletion),
    ("keeps-everything", "F6", "keeps all that the agent ever said", ends.HoardingCompletion),
    ("noise-uncounted", "F2", "drops a line that is no event, and tells nobody", ends.UncountedNoiseCompletion),
)
_ENDINGS = (
    (
        "timer-beats-exit",
        "A4",
        "calls an agent inactive that exits at the very instant of the deadline",
        ends.TimerFirstEnding,
    ),
    ("exit-overrules-result", "C1", "throws a good result away for an exit code", ends.ExitOverResultEnding),
    ("told-error-ignored", "C1", "drops the error that an agent told before it exited", ends.DeafEnding),
    ("raw-exit-code", "C1", "answers with the agent's own code, forced or not", ends.RawCodeEnding),
    ("exit-0-is-success", "C2", "takes exit 0 for a good result", ends.ZeroIsGoodEnding),
    ("signal-is-exit-0", "C4", "takes a death by signal for exit 0", ends.NullCodeEnding),
    ("waits-for-eof", "C4", "believes an exit only once stdout has ended", ends.PipeEndEnding),
    ("epipe-is-fatal", "F5", "fails the run when stdin breaks", ends.FatalPipeEnding),
    ("always-not-found", "P6", "takes every failure to start for a missing file", ends.MissingEnding),
)
_LADDERS = (
    ("direct-child-only", "T1", "signals the agent itself and never its descendants", ends.DirectChildLadder),
    ("waits-for-exit", "C1", "waits for the exit however long an agent lingers", ends.PatientLadder),
    ("no-grace", "C1", "terminates at the very completion", ends.HastyLadder),
    ("one-grace", "C1", "waits for the long grace also after a good end", ends.OneGraceLadder),
    ("kill-without-term", "T1", "kills where it should terminate", ends.KillOnlyLadder),
    ("no-kill-after-term", "T1", "waits for ever for an agent that ignores TERM", ends.NoKillLadder),
    ("killed-flag", "T1", "takes 'a signal was sent' for 'it is dead'", ends.DeadFlagLadder),
    ("leaves-zombie", "T3", "never reaps the agent", ends.ZombieLadder),
    ("leftovers-stay", "T6", "lets what an exited agent has started live on", ends.LeavingLadder),
)
_FRAMINGS = (
    ("per-chunk-utf8", "F1", "decodes each chunk by itself", streams.ChunkFraming),
    ("drops-unfinished-line", "F1", "drops a last line without an end", streams.UnfinishedFraming),
    ("first-object-only", "F1", "takes one object from a line", streams.FirstObjectFraming),
    ("endless-line", "F3", "waits for the end of a line however long it grows", streams.EndlessLineFraming),
    ("bom-is-data", "F1", "takes a byte order mark for text", streams.BomFraming),
)
_FEEDERS = (
    ("closed-output-spins", "A5", "goes on reading a stream that has ended", streams.EndlessFeeder),
    ("stderr-unread", "F4", "never reads stderr", streams.StdoutFeeder),
    ("writes-before-reading", "F5", "reads only once the prompt is through", streams.WriteFirstFeeder),
    ("stdin-left-open", "C1", "never closes stdin", streams.OpenFeeder),
)
_KEEPERS = (
    ("artifacts-fatal", "C3", "fails a run because an artifact could not be written", keepers.FatalArtifacts),
    ("artifacts-unmentioned", "C3", "says nothing of an artifact that it could not write", keepers.SilentArtifacts),
    ("result-lost", "C3", "forgets in result.json what a forced agent had reported", keepers.ForgetfulArtifacts),
    ("no-result-unless-started", "C3", "writes no result.json if the agent never started", keepers.StartedArtifacts),
    ("log-is-text", "C3", "decodes what it writes to the logs of bytes", keepers.DecodingArtifacts),
)
_TURNS = (
    ("timeout-kills-the-agent", "P1", "kills the agent whose turn takes too long", turns.KillingTurns),
    ("timeout-cancels-nothing", "P1", "gives a turn up and leaves its agent at work", turns.SoftTimeoutTurns),
    ("zombie-ready", "P1", "is ready after a timeout, and drops every prompt without a word", turns.ZombieTurns),
    ("timeout-drops-the-queue", "P1", "throws away what waits when a turn times out", turns.DroppingTurns),
    ("timeout-is-told-to-nobody", "P1", "tells no viewer that a prompt timed out", turns.SilentTimeoutTurns),
    ("cancel-stops-the-agent", "P1", "ends the agent where its caller cancels a turn", turns.StoppingCancelTurns),
    ("words-alone-are-progress", "P2", "takes what tools do for no progress", turns.WordsAloneTurns),
    ("cancel-waits-for-ever", "P3", "never forces an agent to stop that acknowledges nothing", turns.TimidTurns),
    ("cancel-grace-is-short", "P3", "takes the grace before a kill for that of a cancel", turns.HastyCancelTurns),
    ("delivers-before-acknowledgement", "P3", "delivers while a cancel is unacknowledged", turns.EagerTurns),
    ("first-word-acknowledges", "P3", "takes any word after a cancel for its acknowledgement", turns.HearingTurns),
    ("age-counts-from-the-cancel", "P3", "counts a prompt's time before its delivery", turns.AgeingTurns),
    ("prompts-go-out-at-once", "P9", "writes every prompt although one is in flight", turns.BusyQueueTurns),
    ("last-prompt-first", "P9", "delivers the newest prompt first", turns.NewestFirstTurns),
    ("cancel-hits-the-turn-in-flight", "P9", "cancels what is in flight for what waits", turns.MisaimedCancelTurns),
    ("error-drops-the-queue", "P9", "gives up what waits when a turn fails", turns.StuckQueueTurns),
    ("late-words-go-to-the-next-turn", "P5", "gives a cancelled turn's late words away", crossings.LateWordsTurns),
    ("cancel-beats-the-result", "P5", "calls a turn cancelled whose good result came", crossings.CancelFirstTurns),
    ("idle-cancel-hits-the-next", "P5", "remembers a cancel of nothing for the next turn", crossings.PoisonedTurns),
    ("queue-goes-with-the-agent", "P6", "loses with an agent what it never got", crossings.FragileQueueTurns),
    ("crash-repeats-the-prompt", "P6", "sends a prompt again whose agent died of it", crossings.RepeatingTurns),
    ("failed-session-keeps-the-prompts", "P6", "leaves prompts without an outcome", crossings.UnrefusingTurns),
    ("unhandled-questions-wait", "P7", "answers nothing where there is no handler", questions.DeafTurns),
    ("allows-without-a-handler", "P7", "allows everything where there is no handler", questions.TrustingTurns),
    ("idle-questions-wait", "P7", "answers nothing that is asked behind the result", questions.IdleDeafTurns),
    ("question-is-denied", "P7", "denies what the caller allows", questions.DenyingTurns),
    ("questions-wait-for-ever", "P7", "waits without limit for the caller's answer", questions.WaitingTurns),
    ("silence-allows", "P7", "allows what nobody answered in time", questions.LenientTurns),
    ("cancel-leaves-the-question", "P7", "answers no question of a cancelled turn", questions.AbandoningTurns),
)
_PATIENCES = (
    ("prompts-never-time-out", "P1", "knows no limit on the time of a prompt", patiences.NeverOverPatience),
    ("prompt-timeout-is-duration", "P2", "lets no progress move the deadline", patiences.DurationPatience),
    ("bytes-move-the-deadline", "P2", "takes every byte of a turn for progress", patiences.BytesMovePatience),
    ("deadline-runs-while-asked", "P2", "times out while the caller owes an answer", patiences.RestlessPatience),
    ("deadline-rests-for-ever", "P2", "knows no deadline once a question was asked", patiences.SleepingPatience),
    ("words-alone-are-activity", "A1", "takes bytes that are no event for silence", patiences.WordyPatience),
    ("session-silence-has-a-default", "A1", "keeps a run's limit on silence in sessions", patiences.ImpatientPatience),
    ("idle-time-counts", "A1", "counts the silence before a turn", patiences.IdleCountsPatience),
    ("silent-turns-go-on", "A1", "knows no limit on the silence of a turn", patiences.NeverStillPatience),
    ("turns-have-no-cap", "A2", "lets a turn that talks run for ever", patiences.UncappedPatience),
    ("cap-is-of-the-session", "A2", "counts a turn's runtime from the first prompt", patiences.SessionCapPatience),
    ("turns-never-stall", "A8", "takes a turn's bytes for enough", patiences.NeverStallsPatience),
)
_RESTARTS = (
    ("restarts-at-once", "P6", "starts a crashed agent again without a pause", agents.HastyRestarts),
    ("backoff-does-not-double", "P6", "waits the same time before every restart", agents.SteadyRestarts),
    ("backoff-has-no-end", "P6", "doubles the time before a restart without end", agents.BoundlessRestarts),
    ("restarts-for-ever", "P6", "starts an agent again however often it crashes", agents.EndlessRestarts),
    ("never-restarts", "P6", "gives up at the first crash", agents.NoRestarts),
    ("crashes-count-for-ever", "P6", "counts crashes of long ago", agents.UnforgettingRestarts),
)
_CLOSES = (
    ("close-is-terminate", "P8", "terminates the agent at the very close", agents.AbruptLadder),
    ("close-waits-for-the-exit", "P8", "waits for ever for an agent whose stdin has ended", agents.TrustingLadder),
)


def _of_both(rows: tuple[tuple[str, str, str, Any], ...], part: str) -> list[Defect]:
    """Make defects of what runs and sessions have in common."""
    return [
        Defect(name, rule, story, Deciders(**{part: wrong}), SessionDeciders(**{part: wrong}))
        for name, rule, story, wrong in rows
    ]


DEFECTS: dict[str, Defect] = {
    made.name: made
    for made in (
        *(Defect(name, rule, story, Deciders(watchdog=wrong)) for name, rule, story, wrong in _TIMES),
        *(Defect(name, rule, story, Deciders(tools=wrong)) for name, rule, story, wrong in _TOOLS),
        *(Defect(name, rule, story, Deciders(completion=wrong)) for name, rule, story, wrong in _COMPLETIONS),
        *(Defect(name, rule, story, Deciders(ending=wrong)) for name, rule, story, wrong in _ENDINGS),
        *_of_both(_LADDERS, "ladder"),
        *_of_both(_FRAMINGS, "framing"),
        *(Defect(name, rule, story, Deciders(feeder=wrong)) for name, rule, story, wrong in _FEEDERS),
        *(Defect(name, rule, story, Deciders(artifacts=wrong)) for name, rule, story, wrong in _KEEPERS),
        *(_of_session(name, rule, story, turns=wrong) for name, rule, story, wrong in _TURNS),
        *(_of_session(name, rule, story, patience=wrong) for name, rule, story, wrong in _PATIENCES),
        *(_of_session(name, rule, story, restarts=wrong) for name, rule, story, wrong in _RESTARTS),
        *(_of_session(name, rule, story, ladder=wrong) for name, rule, story, wrong in _CLOSES),
        _of_session("results-go-by-order", "P5", "looks at no name of a result", router=crossings.OrderRouter),
        Defect(
            "timeout-is-duration",
            "A9",
            "takes the one number for the longest runtime",
            Deciders(one_number=lambda seconds: Policy(inactivity_timeout=None, max_runtime=seconds)),
        ),
    )
}
NAMES = tuple(DEFECTS)


def defect(name: str) -> Defect:
    """Give a defect by its name.

    Raises:
        UsageError: there is none of that name.
    """
    if name not in DEFECTS:
        raise UsageError(f"defect is {name!r}, but must be one of {', '.join(NAMES)}")
    return DEFECTS[name]
