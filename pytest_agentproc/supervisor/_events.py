"""Values between a machine, its driver and its caller: events, commands, intents, results of turns. Judges nothing.

Nobody changes one. They are not frozen all the same: making a frozen one costs three times as much, at every look.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_agentproc.events import SessionReport, make_report

if TYPE_CHECKING:
    from pytest_agentproc.supervisor.dialects import Hook, Question
    from pytest_agentproc.vocabulary import Outcome


# Events: what happened.


@dataclass(slots=True)
class RunStarted:
    """The run begins."""


@dataclass(slots=True)
class AgentSpawned:
    """The agent was started."""

    pid: int


@dataclass(slots=True)
class SpawnFailed:
    """The agent could not be started: the system's error number and words."""

    errno: int
    reason: str


@dataclass(slots=True)
class StreamReady:
    """A stream can be read, or stdin written."""

    stream: str


@dataclass(slots=True)
class OutputRead:
    """Bytes came; `drained` says that a further read would block."""

    stream: str
    data: bytes
    drained: bool


@dataclass(slots=True)
class StreamEnded:
    """A stream ended."""

    stream: str


@dataclass(slots=True)
class StdinWritten:
    """So many bytes of the prompt were taken; 0: none now."""

    count: int


@dataclass(slots=True)
class StdinBroken:
    """The agent no longer reads its stdin."""


@dataclass(slots=True)
class AgentExited:
    """The agent has ended: a code, or minus a signal's number; None: another part of this program reaped it."""

    status: int | None


@dataclass(slots=True)
class TreeSwept:
    """Whether no descendant is left."""

    alone: bool


@dataclass(slots=True)
class SignalsSent:
    """Signals have gone out: a grace counts from now."""


@dataclass(slots=True)
class DeadlineReached:
    """The machine's deadline has come."""


# Commands: what to do. Its answer, if it has one, is fed before the next command is carried out.


@dataclass(slots=True)
class SpawnAgent:
    """Start the agent, with its tree held as a containment says; answered by AgentSpawned or SpawnFailed."""

    containment: str = "group"


@dataclass(slots=True)
class WatchStream:
    """Tell when a stream is ready, or no longer."""

    stream: str
    wanted: bool


@dataclass(slots=True)
class ReadStream:
    """Read a stream; answered by OutputRead or StreamEnded, or by nothing if it would block."""

    stream: str
    limit: int


@dataclass(slots=True)
class WriteStdin:
    """Write to stdin; answered by StdinWritten or StdinBroken."""

    data: memoryview


@dataclass(slots=True)
class CloseStdin:
    """Close stdin."""


@dataclass(slots=True)
class SendSignal:
    """Terminate (TERM and CONT) or kill: the whole tree, the agent's process group, or the agent alone.

    Answered by Signalled. `reach` is "tree", "group" or "agent".
    """

    name: str
    reach: str = "tree"


@dataclass(slots=True)
class FindSurvivors:
    """Look for descendants that are left; answered by TreeSwept."""


@dataclass(slots=True)
class ReapAgent:
    """Take the agent's exit status."""


@dataclass(slots=True)
class PublishSessionEvent:
    """Tell a session's caller and its viewers."""

    event: SessionEvent


@dataclass(slots=True)
class FinishRun:
    """Nothing is left to be done."""


MachineEvent = (
    RunStarted
    | AgentSpawned
    | SpawnFailed
    | StreamReady
    | OutputRead
    | StreamEnded
    | StdinWritten
    | StdinBroken
    | AgentExited
    | TreeSwept
    | SignalsSent
    | DeadlineReached
)
MachineCommand = (
    SpawnAgent
    | WatchStream
    | ReadStream
    | WriteStdin
    | CloseStdin
    | SendSignal
    | FindSurvivors
    | ReapAgent
    | PublishSessionEvent
    | FinishRun
)


_MAX_SHOWN_TEXT_CHARS = 200
"""So many characters of a text are shown in a record."""


@dataclass(frozen=True, slots=True)
class QueuePrompt:
    """Ask; the number is the turn's."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class CancelTurn:
    """Cancel a turn; None: the one in flight."""

    number: int | None = None


@dataclass(frozen=True, slots=True)
class SwitchSetting:
    """Switch this agent, and each one after it, to a mode or a model: `what` is one of `SWITCH_BY_ACTION`."""

    what: str
    name: str


@dataclass(frozen=True, slots=True)
class AnswerQuestion:
    """Answer a question of the agent."""

    id: str
    allowed: bool


@dataclass(frozen=True, slots=True)
class RegisterHook:
    """Have a hook's callback called from now on."""

    name: str


@dataclass(frozen=True, slots=True)
class DecideTool:
    """Say whether a tool may run that a hook asks about."""

    id: str
    allowed: bool


@dataclass(frozen=True, slots=True)
class StopAgent:
    """Force the agent to stop; a new one follows."""


@dataclass(frozen=True, slots=True)
class CloseSession:
    """End the session."""


CallerIntent = (
    QueuePrompt | CancelTurn | SwitchSetting | AnswerQuestion | RegisterHook | DecideTool | StopAgent | CloseSession
)


@dataclass(frozen=True, slots=True)
class TurnResult:
    """How a turn ended.

    Args:
        outcome: the ending; never raised.
        exit_code: what a program that asked only this should exit with.
        text: the final message.
        stop_reason: the last one that the agent gave.
        model: the model that the agent named.
        usage: what the agent said that it used.
        error: why the ending is bad. If the agent is lost: the exit code or signal, the time since its last output, and
            the end of stderr.
        elapsed: nanoseconds from the prompt's delivery to the outcome; 0 if it was never delivered. For a background
            turn: from its first event to its end.
        transcript: all messages of the turn, each on a line of its own: the last `max_transcript_bytes` of them.
    """

    outcome: Outcome
    exit_code: int
    text: str | None = None
    stop_reason: str | None = None
    model: str | None = None
    usage: dict[str, Any] | None = None
    error: str = ""
    elapsed: int = 0
    transcript: str = ""


class SessionEvent(NamedTuple):
    """Something that viewers of a session see.

    Args:
        at: the instant, in nanoseconds of the session's clock.
        kind: `status` (text: the new one), `prompt`, `message` (a whole one, also of an agent that sends pieces only),
            `delta` (a piece of one), `tool`, `question`, `outcome` (text: which), `background` (a background turn is
            over), `late` (words of a turn whose outcome was there), `past_prompt` and
            `past_message` (pieces of a loaded session's past), `hook` (the callback of one is called),
            `withdrawn` (a question or a hook's needs no answer of the caller's any more), `error`, `warning`, `stop`
            (the caller's word was heard) or `exit` (the agent and all its descendants are gone).
        turn: the number of the turn, 0 for a background turn, None for the session itself.
        text: what was said.
        result: with an `outcome` or a `background`: the result.
        question: with a `question`: what is asked; None where it was denied before the caller's handler heard of it.
        hook: with a `hook`: which.
    """

    at: int
    kind: str
    turn: int | None = None
    text: str = ""
    result: TurnResult | None = None
    question: Question | None = None
    hook: Hook | None = None

    def make_report(self) -> SessionReport:
        """Give what it says, for a record; of a long text the beginning.

        The text of an error is a message. It names commands and files, so it may differ between runs that are otherwise
        equal.
        """
        text = (
            self.text
            if len(self.text) <= _MAX_SHOWN_TEXT_CHARS
            else f"{self.text[:_MAX_SHOWN_TEXT_CHARS]}... ({len(self.text)} characters)"
        )
        return make_report(self.at, self.kind, self.turn, text)
