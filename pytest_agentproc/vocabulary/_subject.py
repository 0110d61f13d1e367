"""The order that a supervisor under test gets, and its report. Values and a protocol; knows no subject."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pytest_agentproc.events import Trace
    from pytest_agentproc.vocabulary._caller_actions import CallerAction, ContinuedSession, Handler, HookReaction
    from pytest_agentproc.vocabulary._dialect import Dialect
    from pytest_agentproc.vocabulary._policy import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """One run, one session, or several sessions at a time, that a subject is to supervise.

    Args:
        argv: the fake agent's command, with the prompt if it goes by argv.
        env: the agent's whole environment; its PATH holds fakes only.
        cwd: where the agent runs.
        dialect: the agent's wire format.
        mode: its variant.
        prompt: what the agent is asked.
        prompt_by: "argv" or "stdin".
        policy: the limits that count.
        clock: whose time counts.
        trace: called with (instant, code, data) for each thing that the supervisor does, if the subject can call it.
        scale: how many times faster `clock` is than the machine's own clock. A subject that keeps real time by
            itself divides its limits by it. 1 in virtual time.
        artifacts: the directory for the run's artifacts; None: none are asked for.
        disk: the state of that directory. "": as any other. "read_only": no file can be made in it. "full": nothing can
            be written to a file of an artifact's name. A subject that writes under other names must bring that about.
        model: the model that the command line asks for; None: it names none.
        drive: what the caller of a session does; empty: it is a run of one prompt. A subject that plays it by a
            `Caller`, and notes that in the trace, plays it as all others do.
        handler: how the caller of a session answers the agent's questions; None: not at all.
        hooks: the reactions of the session's hooks.
        continues: the session that is loaded or resumed; None: a new one is made.
        name: what the session is called, where there are several: its trace goes through `record.add_session_to_trace`.
        left: how and when the caller ends a program of its own; None: not at all. Only a subject with a keeper gets it.
        keeper: starts programs that no clock knows, and finds all processes that they leave. A subject that is a
            program of its own says `needs_keeper`, and has one in real time.
        sessions: several sessions, opened in this order, each with its own actions as its drive. This order then says
            nothing of an agent itself, and its drive is the drive of all sessions.
        contributed: the dialect itself, where another package adds it; None: it is one of the kit's.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    dialect: str
    mode: str
    prompt: str
    prompt_by: str
    policy: Policy
    clock: Any
    trace: Trace
    scale: float = 1
    artifacts: str | None = None
    disk: str = ""
    model: str | None = None
    drive: tuple[CallerAction, ...] = ()
    handler: Handler | None = None
    hooks: tuple[HookReaction, ...] = ()
    continues: ContinuedSession | None = None
    name: str = ""
    left: CallerAction | None = None
    keeper: Any = None
    sessions: tuple[RunRequest, ...] = ()
    contributed: Dialect | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """A subject's report on a run, a turn, a session or several of them; None: it does not say.

    Args:
        outcome: one of the glossary's, such as completed, failed or inactive.
        exit_code: the supervisor's own: 0 for completed, 124 for a limit that was over, the
            agent's for failed, 128 + n where a signal n was not its own. How the agent ended is `agent_status`.
        text: the final message; of an agent that prints plain text, what it printed.
        transcript: all messages, each on a line of its own.
        stop_reason: the agent's own word for why it stopped.
        model: which model answered.
        usage: tokens and costs, as far as the agent tells them.
        elapsed: nanoseconds from the first spawn, or the prompt's delivery, to the outcome; of a background turn, from
            its first event to its end.
        agent_status: the agent's exit code, or minus a signal's number.
        forced: whether the supervisor's signals brought that about.
        error: what went wrong, in words; an empty text, or None: nothing did.
        warnings: what is odd, and changes no outcome.
        noise: how many lines on stdout were no messages.
        stderr_tail: the last bytes of stderr.
        turns: of a session: what each prompt came to, in their order.
        background: of a session: its background turns, in their order.
        statuses: of a session: where it stood, one after the other.
        viewers: of a session: what each viewer saw last.
        called: of a session: the hooks whose callbacks were called, with the instants in nanoseconds.
        sessions: of several sessions: what each came to, by name.
    """

    outcome: str | None = None
    exit_code: int | None = None
    text: str | None = None
    transcript: str | None = None
    stop_reason: str | None = None
    model: str | None = None
    usage: Mapping[str, Any] | None = None
    elapsed: int | None = None
    agent_status: int | None = None
    forced: bool | None = None
    error: str | None = None
    warnings: tuple[str, ...] | None = None
    noise: int | None = None
    stderr_tail: bytes | None = None
    turns: tuple[RunReport, ...] | None = None
    background: tuple[RunReport, ...] | None = None
    statuses: tuple[str, ...] | None = None
    viewers: Mapping[str, View] | None = None
    called: tuple[tuple[str, int], ...] | None = None
    sessions: Mapping[str, RunReport] | None = None


VIEWED_KINDS = ("prompt", "message", "tool", "question", "error", "outcome")
"""The kinds of events whose order a viewer may report."""


@dataclass(frozen=True, slots=True)
class View:
    """The events that a viewer of a session saw before it was detached, or the session ended.

    Args:
        status: the last status.
        transcript: messages and errors, each on a line of its own.
        saw: the `VIEWED_KINDS` in the order of arrival, repeats in a row once. None: it does not say.
    """

    status: str
    transcript: str
    saw: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class LimitsRequest:
    """For which agents a supervisor is asked to state its limits.

    Args:
        limits: the limits that the scenario gives it, by name: seconds, bytes or words; None switches one off.
        dialect: the wire format of the agent.
        mode: its variant.
        is_session: whether the agent lives on for further prompts.
    """

    limits: Mapping[str, Any]
    dialect: str
    mode: str = ""
    is_session: bool = False


@dataclass(frozen=True, slots=True)
class Abilities:
    """What a supervisor under test can do; a subject may have an attribute of each of these names.

    Args:
        takes_runs: False if it takes only drives.
        dialects: the dialects of the agents that it can run, or modes such as `gemini stream`. None: all.
        actions: the `CAPABILITIES` that it can have done to its sessions. None: all.
        cannot: the `TEXTS_OF_OTHER_NEEDS` that it lacks.
        outcomes: the outcomes that it can distinguish. Empty: all.
        first_signal: the signal with which it begins to end an agent.
        needs_keeper: whether it starts programs of its own, which a keeper holds, and virtual time cannot see.
        real_time_only: why its virtual time needs a process of its own, below a coordinator. "": it does not.
        is_scaled: False if its limits do not follow the scale of real time, so that it is right at scale 1 only.
        cancellable: whether it may be cancelled without a left process. None: unknown. "task": by `Task.cancel` only.
    """

    takes_runs: bool = True
    dialects: Collection[str] | None = None
    actions: Collection[str] | None = None
    cannot: Collection[str] = ()
    outcomes: Collection[str] = ()
    first_signal: str = "TERM"
    needs_keeper: bool = False
    real_time_only: str = ""
    is_scaled: bool = True
    cancellable: bool | str | None = None


def read_abilities(subject: object) -> Abilities:
    """Give what a subject says that it can do: its `abilities`, or its attributes of their names."""
    found = getattr(subject, "abilities", None)
    if isinstance(found, Abilities):
        return found
    own: dict[str, Any] = {part.name: getattr(subject, part.name, part.default) for part in fields(Abilities)}
    return Abilities(**own)


class Subject(Protocol):
    """A supervisor under test.

    `keeps_artifacts` says whether it writes the files of C3; where it does not, checks of them are not applicable.
    `holds_sessions` says whether it can be given a drive.

    `policy` and `run` may raise `subjects.Declined` for what it cannot take: the scenario is then not applicable.

    It may have an attribute for each of the `Abilities`.
    """

    name: str
    keeps_artifacts: bool
    holds_sessions: bool

    def policy(self, request: LimitsRequest) -> Policy:
        """State the limits that hold for the agents of a request, once it was given those of the request.

        A whole `Policy` states all of them. A mapping of names to values states those alone; see `subjects.Function`.
        """

    async def run(self, order: RunRequest) -> RunReport:
        """Supervise one run, or one session, or all sessions of an order, to their end."""
