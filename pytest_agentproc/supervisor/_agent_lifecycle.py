"""The agents of a session one after the other: start, streams, end, restart (P6). Pure.

STARTING --handshake--> READY --a prompt is delivered--> PROMPTING --its outcome--> READY
STARTING, READY, PROMPTING --the agent is gone, or forced to stop--> RESTARTING --handshake--> READY
STARTING, READY, PROMPTING, RESTARTING --no start, no handshake, or one crash too many--> FAILED
STARTING, READY, PROMPTING, RESTARTING, FAILED --close--> CLOSED

One agent lives at a time, with its descendants. Before the first handshake a failed start, a death or a refusal is
final: it is not tried again, and every prompt ends as `spawn_failed` or `handshake_failed`. After it, a death is a
crash, also that of a later agent before its own handshake: a restart follows (P6).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from pytest_agentproc.supervisor import _events as machine_events
from pytest_agentproc.supervisor._agent_process import ProcessMachine
from pytest_agentproc.supervisor._driver import Abandonment
from pytest_agentproc.supervisor._ending import (
    Escalation,
    OutcomeRules,
    append_stderr,
    explain_exit,
    explain_start,
    prefix_command,
)
from pytest_agentproc.supervisor._questions import HookTracker
from pytest_agentproc.supervisor._router import Transcript, TurnRouter
from pytest_agentproc.supervisor._streams import LineSplitter, Outbox
from pytest_agentproc.supervisor._tools import BackgroundTaskTracker, ToolTracker
from pytest_agentproc.supervisor._turns import OpenTurns
from pytest_agentproc.supervisor._watchdog import TurnWatchdog
from pytest_agentproc.supervisor.dialects import Setting, make_session_protocol
from pytest_agentproc.vocabulary import UNKNOWN_EXIT_WARNING, Dialect, Outcome, Policy, to_nanoseconds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_agentproc.supervisor._events import MachineCommand


_SECOND_NS = 1_000_000_000


class RestartCounter:
    """Count the restarts of one session."""

    MOST = 5
    """So many restarts within the window; the next crash is the end."""

    WINDOW = 600 * _SECOND_NS
    LONGEST = 60
    """Seconds between two starts at most."""

    def __init__(self, policy: Policy) -> None:
        self.backoff = policy.restart_backoff
        self._crashes: list[int] = []

    def is_given_up(self, *, was_ready: bool) -> bool:
        """Say whether another start is useless: so it is if no agent of the session has ever done its handshake."""
        return not was_ready

    def choose_session(self, session: str | None) -> str:
        """Give the session that a new agent continues, if its dialect can; "" for a new one."""
        return session or ""

    def plan_restart(self, now: int) -> int | None:
        """Take note of a crash; say how long to wait before the next start, or None: do not start again."""
        self._crashes = [at for at in self._crashes if now - at < self.WINDOW]
        if self.backoff is None or len(self._crashes) >= self.MOST:
            return None
        delay = min(self.backoff * 2 ** len(self._crashes), max(self.LONGEST, self.backoff))
        self._crashes.append(now)
        return to_nanoseconds(delay)


class SessionStatus(Enum):
    """Where a session stands."""

    STARTING = "starting"
    READY = "ready"
    PROMPTING = "prompting"
    RESTARTING = "restarting"
    FAILED = "failed"
    CLOSED = "closed"


ALLOWED_STATUS_CHANGES = {
    SessionStatus.STARTING: {SessionStatus.READY, SessionStatus.RESTARTING, SessionStatus.FAILED, SessionStatus.CLOSED},
    SessionStatus.READY: {
        SessionStatus.PROMPTING,
        SessionStatus.RESTARTING,
        SessionStatus.FAILED,
        SessionStatus.CLOSED,
    },
    SessionStatus.PROMPTING: {
        SessionStatus.READY,
        SessionStatus.RESTARTING,
        SessionStatus.FAILED,
        SessionStatus.CLOSED,
    },
    SessionStatus.RESTARTING: {SessionStatus.READY, SessionStatus.FAILED, SessionStatus.CLOSED},
    SessionStatus.FAILED: {SessionStatus.CLOSED},
    SessionStatus.CLOSED: set(),
}
"""The drawing as a table: which status follows which."""


class StatusRules:
    """Say where a session stands; nothing is remembered, so nothing can lie."""

    def judge_status(
        self, *, is_closing: bool, has_failed: bool, is_asking: bool, is_able: bool, had_agent: bool
    ) -> SessionStatus:
        """Give the status.

        Args:
            is_closing: whether the caller has closed it.
            has_failed: whether no agent will come any more.
            is_asking: whether a prompt is in flight.
            is_able: whether an agent lives that has done its handshake, can be written to, and is not being ended.
            had_agent: whether an agent was ready once, or has ended.
        """
        if is_closing:
            return SessionStatus.CLOSED
        if has_failed:
            return SessionStatus.FAILED
        if is_asking:
            return SessionStatus.PROMPTING
        if is_able:
            return SessionStatus.READY
        return SessionStatus.RESTARTING if had_agent else SessionStatus.STARTING


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """The settings of a session: the agent's command (for messages), its dialect, its beginning, its limits.

    `has_handler` says that the caller answers the agent's questions.
    """

    argv: Sequence[str]
    dialect: str | Dialect
    mode: str = ""
    policy: Policy = field(default_factory=Policy)
    setting: Setting = field(default_factory=Setting)
    has_handler: bool = False

    def describe_failure(self, why: str, stderr: bytes) -> str:
        """Tell what is wrong with an agent: its command, why, the end of its stderr."""
        return prefix_command(self.argv, append_stderr(why, stderr))


@dataclass(frozen=True, slots=True)
class SessionDeciders:
    """The judgements of a session, each replaceable."""

    router: Callable[..., TurnRouter] = TurnRouter
    watchdog: Callable[[Policy], TurnWatchdog] = TurnWatchdog
    tools: Callable[[Policy], ToolTracker] = ToolTracker
    tasks: Callable[[], BackgroundTaskTracker] = BackgroundTaskTracker
    hooks: Callable[..., HookTracker] = HookTracker
    escalation: Callable[[Policy], Escalation] = Escalation
    outbox: Callable[[], Outbox] = Outbox
    framing: Callable[[], LineSplitter] = LineSplitter
    restarts: Callable[[Policy], RestartCounter] = RestartCounter
    turns: Callable[..., OpenTurns] = OpenTurns
    status_rules: Callable[[], StatusRules] = StatusRules
    transcript: Callable[[], Transcript] = Transcript
    abandonment: Callable[[], Abandonment] = Abandonment


_EXIT_STATUS_AFTER_KILL = -9


class AgentLifecycle(ProcessMachine):
    """Follow the agents of one session.

    `has_agent` says that an agent lives, or a descendant of it. `failure` is why none comes any more.
    `agent_status` and `was_forced` tell how the last one ended that did.
    """

    feeder: Outbox
    session_id: str | None

    def __init__(self, task: SessionSettings, deciders: SessionDeciders | None = None) -> None:
        chosen_deciders = self._made = deciders or SessionDeciders()
        self.task = task
        self.policy = task.policy.adapt_to_session()
        self.limits = self.policy.nanoseconds()
        self.failure: tuple[Outcome, str] | None = None
        self.agent_status: int | None = None
        self.was_forced = False
        self.turns = chosen_deciders.turns(
            self.policy, chosen_deciders.watchdog(self.policy), self._publish, has_handler=task.has_handler
        )
        self.turns.read_stderr = lambda: self.stderr_tail
        self.hooks = chosen_deciders.hooks(self.policy, self._publish)
        self.restarts = chosen_deciders.restarts(self.policy)
        self.abandonment = chosen_deciders.abandonment()
        self._was_ready = self._was_ended = self._is_greeted = self.has_agent = False
        self._is_closing = self._is_stopped = self._is_sweeping = False
        self._start_at: int | None = None
        self._why = ""
        self._timers: dict[str, int] = {}
        self._prepare_new_agent()
        self.register_handlers()

    @abstractmethod
    def _publish(self, kind: str, turn: int | None = None, text: str = "", **more: Any) -> None: ...

    # Beginning.

    def _prepare_new_agent(self) -> list[MachineCommand]:
        """Be ready for a new agent, and start it."""
        deciders = self._made
        self.prepare_process(
            deciders.outbox(), deciders.framing(), deciders.escalation(self.policy), self.policy.max_line_bytes
        )
        self._is_greeted = self._is_stopped = False
        self._start_at, self._why = None, ""
        setting = replace(self.task.setting, session=self.restarts.choose_session(self.session_id))
        self.protocol = make_session_protocol(self.task.dialect, self.task.mode, setting)
        self.turns.connect_to_agent(
            self.protocol, deciders.router(is_marked=self.protocol.is_marked), deciders.tools(self.policy)
        )
        self.hooks.connect_to_agent(self.protocol)
        self.tasks = deciders.tasks()
        return [machine_events.SpawnAgent(self.escalation.containment)]

    def _handle_start(self, event: machine_events.RunStarted, now: int) -> list[MachineCommand]:
        return [machine_events.SpawnAgent(self.escalation.containment)]

    def _handle_spawned(self, event: machine_events.AgentSpawned, now: int) -> list[MachineCommand]:
        limit = self.limits["handshake_timeout"]
        self.has_agent, self.spawned_at = True, now
        self._timers = {} if limit is None else {"handshake_timeout": now + limit}
        return [*self._watch_open_streams(), *self.feeder.put(self.protocol.encode_greeting())]

    def _handle_spawn_failed(self, event: machine_events.SpawnFailed, now: int) -> list[MachineCommand]:
        self.feeder.is_broken = True
        self.turns.ended_with = (None, False, OutcomeRules().is_missing(event.errno))
        self._decide_restart(Outcome.SPAWN_FAILED, self._report_failure(explain_start(event.reason, event.errno)), now)
        return self._continue_without_agent(now)

    # Streams.

    def _handle_eof(self, event: machine_events.StreamEnded, now: int) -> list[MachineCommand]:
        self.feeder.note_stream_end(event.stream)
        self.turns.watchdog.note_stream_end(now, event.stream)
        return self._watch_open_streams()

    def _handle_wrote(self, event: machine_events.StdinWritten, now: int) -> list[MachineCommand]:
        self.feeder.note_written(event.count)
        return self.feeder.watch_while_pending()

    def _handle_broken_stdin(self, event: machine_events.StdinBroken, now: int) -> list[MachineCommand]:
        """Give an agent that reads no more its grace to leave: it cannot be talked to (F5)."""
        self.feeder.is_broken = True
        if self._is_steady and self.escalation.deadline is None:
            self.escalation.start_close_grace(now)
        return self.feeder.end_input()

    # The end.

    def note_abandoned(self, status: int | None) -> None:
        """Take note of how the agent ended that the driver abandoned."""
        if not self.has_exited:
            self.agent_status, self.was_forced = status, self.forced or status == _EXIT_STATUS_AFTER_KILL

    @property
    def _is_steady(self) -> bool:
        """Whether an agent lives that is not being ended."""
        return self.has_agent and not self.has_exited and not self.escalation.has_signalled

    def _give_up_agent(self, why: str, now: int) -> list[MachineCommand]:
        """Give up on an agent that cannot be talked to; if none ever could, the handshake has failed (P6)."""
        self._timers.pop("handshake_timeout", None)
        if not self._is_steady:
            return []
        self._why = self._report_failure(why)
        if not self._was_ready:
            self._decide_restart(Outcome.HANDSHAKE_FAILED, self._why, now)
        return self._terminate_agent(now)

    def _force_stop(self, now: int) -> list[MachineCommand]:
        if not self._is_steady:
            return []
        self.turns.lose_agent(Outcome.STOPPED, now, "the agent was forced to stop")
        self._is_stopped = self._was_ended = True
        return self._terminate_agent(now)

    def _terminate_agent(self, now: int) -> list[MachineCommand]:
        self._timers = {}
        return self._note_signal(self.escalation.terminate(now))

    def _handle_exit(self, event: machine_events.AgentExited, now: int) -> list[MachineCommand]:
        self.has_exited, self.status = True, event.status
        self._handle_lines(self.framing.flush(), now)
        if not self.feeder.is_broken:
            self.turns.requeue_unread_prompt(self.feeder.taken)
        self.feeder.is_broken = True
        words = explain_exit(event.status, now, self.spawned_at, self.output_at)
        self.agent_status, self.was_forced = event.status, self.forced
        self.turns.ended_with = (event.status, self.forced, True)
        self.turns.lose_agent(Outcome.AGENT_LOST, now, append_stderr(words, self.stderr_tail))
        was_greeted, self._is_greeted, self._was_ended = self._is_greeted, False, True
        self._timers, self._is_sweeping = {}, True
        self.hooks.drop_waiting_hooks()
        for lost in (*self.tasks.describe_lost(), *([UNKNOWN_EXIT_WARNING] if event.status is None else [])):
            self._publish("warning", None, lost)
        if self._is_stopped and self.restarts.backoff is not None:
            self._start_at = now
        elif not self._is_closing:
            lost = Outcome.AGENT_LOST if was_greeted else Outcome.HANDSHAKE_FAILED
            self._decide_restart(lost, self._why or self._report_failure(words), now)
        return [machine_events.FindSurvivors()]

    def _report_failure(self, why: str) -> str:
        error = self.task.describe_failure(why, self.stderr_tail)
        self._publish("error", None, error)
        return error

    def _decide_restart(self, outcome: Outcome, error: str, now: int) -> None:
        """Decide about a next start: a first one that failed was the last; then come the restarts, until too many."""
        if self.failure is not None:
            return
        is_given_up = self.restarts.is_given_up(was_ready=self._was_ready)
        delay = None if is_given_up else self.restarts.plan_restart(now)
        if delay is None:
            self.failure = (Outcome.AGENT_LOST if self._was_ready else outcome, error)
            self.turns.refuse_queued(*self.failure, now)
        else:
            self._start_at = now + delay

    def _handle_swept(self, event: machine_events.TreeSwept, now: int) -> list[MachineCommand]:
        if not self._is_sweeping:
            return []
        if not event.alone:
            return self.escalation.end_leftovers(now)
        self._is_sweeping = self.has_agent = False
        self.escalation.deadline = None
        self._publish("exit", None, "not known" if self.status is None else str(self.status))
        return [machine_events.ReapAgent(), *self._continue_without_agent(now)]

    def _continue_without_agent(self, now: int) -> list[MachineCommand]:
        """Say what follows, now that no process lives."""
        if self._is_closing:
            return [machine_events.FinishRun()]
        if self._start_at is not None and self._start_at <= now:
            return self._prepare_new_agent()
        self._timers = {} if self._start_at is None else {"restart_backoff": self._start_at}
        return []
