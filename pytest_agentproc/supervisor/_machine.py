"""The supervisor as one pure machine: events in, commands out. Knows no process, no loop and no clock but `now`.

    STARTING --Spawned--> RUNNING --completion or a deadline--> ENDING --exit--> SWEEPING --alone--> DONE
    STARTING --SpawnFailed--> DONE      RUNNING --exit--> SWEEPING

ENDING and SWEEPING share one escalation: TERM to the tree, a grace, KILL. The outcome, once there, stands; only a
completion that the dialect may take back is withdrawn. Every judgement is a decider's, and a defect replaces one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from pytest_agentproc.supervisor import _events as machine_events
from pytest_agentproc.supervisor._agent_process import ProcessMachine
from pytest_agentproc.supervisor._artifact_files import Artifacts
from pytest_agentproc.supervisor._driver import Abandonment
from pytest_agentproc.supervisor._ending import (
    Completion,
    Escalation,
    EscalationStep,
    OutcomeRules,
    explain_exit,
    explain_silence,
    explain_start,
    prefix_command,
)
from pytest_agentproc.supervisor._result import Result
from pytest_agentproc.supervisor._streams import LineSplitter, StdinFeeder
from pytest_agentproc.supervisor._tools import BackgroundTaskTracker, ToolTracker
from pytest_agentproc.supervisor._watchdog import Watchdog
from pytest_agentproc.supervisor.dialects import MEANINGS_OF_WORK, make_decoder
from pytest_agentproc.vocabulary import UNKNOWN_EXIT_WARNING, Dialect, Outcome, Policy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pytest_agentproc.supervisor._artifact_files import FileStore, RunHeader
    from pytest_agentproc.supervisor._events import MachineCommand, MachineEvent
    from pytest_agentproc.supervisor.dialects import Meaning


_EXIT_STATUS_AFTER_KILL = -9


class RunState(Enum):
    """Where a run stands."""

    STARTING = "starting"
    RUNNING = "running"
    ENDING = "ending"
    SWEEPING = "sweeping"
    DONE = "done"


_STATE_RUNNING = RunState.RUNNING
_STATES_WITH_LIVING_AGENT = (RunState.RUNNING, RunState.ENDING)
_OUTCOME_TOOL_USE = Outcome.TOOL_USE
"""Members that are looked at for every line: until Python 3.12 naming one through its class costs a call."""


@dataclass(frozen=True, slots=True)
class RunSettings:
    """The settings of a run: its dialect and mode, the bytes for the agent's stdin, its limits.

    `argv` is the agent's command, for messages.
    """

    dialect: str | Dialect = "raw"
    prompt: bytes = b""
    policy: Policy = field(default_factory=Policy)
    mode: str = ""
    argv: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Deciders:
    """The judgements of a run, each replaceable."""

    watchdog: Callable[[Policy], Watchdog] = Watchdog
    tools: Callable[[Policy], ToolTracker] = ToolTracker
    tasks: Callable[[], BackgroundTaskTracker] = BackgroundTaskTracker
    completion: Callable[[], Completion] = Completion
    escalation: Callable[[Policy], Escalation] = Escalation
    framing: Callable[[], LineSplitter] = LineSplitter
    ending: Callable[[], OutcomeRules] = OutcomeRules
    feeder: Callable[[bytes], StdinFeeder] = StdinFeeder
    artifacts: Callable[[FileStore, RunHeader], Artifacts] = Artifacts
    abandonment: Callable[[], Abandonment] = Abandonment
    one_number: Callable[[float], Policy] = Policy.make_from_silence_limit

    def build_policy(self, overrides: Mapping[str, Any], dialect: str) -> Policy:
        """Give a dialect's limits but for the overrides; a limit of silence alone is the one-number form (A9)."""
        silence = overrides.get("inactivity_timeout")
        if silence is not None and len(overrides) == 1:
            return self.one_number(silence)
        return Policy.for_dialect(dialect, **overrides)


class RunMachine(ProcessMachine):
    """Supervise one run."""

    def __init__(self, task: RunSettings, deciders: Deciders | None = None) -> None:
        chosen_deciders = deciders or Deciders()
        self.state = RunState.STARTING
        self.task = task
        self.watchdog = chosen_deciders.watchdog(task.policy)
        self.tools = chosen_deciders.tools(task.policy)
        self.tasks = chosen_deciders.tasks()
        self.completion = chosen_deciders.completion()
        self.completion.limit_transcript(task.policy.max_transcript_bytes)
        self.ending = chosen_deciders.ending()
        self.abandonment = chosen_deciders.abandonment()
        self.prepare_process(
            chosen_deciders.feeder(task.prompt),
            chosen_deciders.framing(),
            chosen_deciders.escalation(task.policy),
            task.policy.max_line_bytes,
        )
        self.decoder = make_decoder(task.dialect, task.mode)
        self.decoder.limit = task.policy.max_transcript_bytes
        self._decode_all = getattr(self.decoder, "decode_all", self._decode_each)
        self.outcome: Outcome | None = None
        self.outcome_at: int | None = None
        self.error = ""
        self.executable = True
        self.register_handlers()

    def feed(self, event: MachineEvent, now: int) -> list[MachineCommand]:
        """Take one event at an instant (nanoseconds); return what to do about it, in order.

        `meanings` then says what it meant in the dialect.
        """
        if self.meanings:
            self.meanings = []
        return self._answers[type(event)](event, now)

    @property
    def deadlines(self) -> dict[str, int]:
        """Every timer that runs, by the name of its limit."""
        escalation = self.escalation
        if escalation.deadline is None:
            return self.watchdog.deadlines
        return {**self.watchdog.deadlines, escalation.timer: escalation.deadline}

    @property
    def deadline(self) -> int | None:
        """The earliest timer."""
        first, second = self.watchdog.deadline, self.escalation.deadline
        if first is None or second is None:
            return second if first is None else first
        return min(first, second)

    # Beginning.

    def _handle_start(self, event: machine_events.RunStarted, now: int) -> list[MachineCommand]:
        return [machine_events.SpawnAgent(self.escalation.containment)]

    def _handle_spawned(self, event: machine_events.AgentSpawned, now: int) -> list[MachineCommand]:
        self.state = RunState.RUNNING
        self.spawned_at = now
        self.watchdog.start(now)
        delivered = self.feeder.is_delivered
        return [
            *self._watch_open_streams(),
            *(self.feeder.end_input() if delivered else [machine_events.WatchStream("stdin", True)]),
        ]

    def _handle_spawn_failed(self, event: machine_events.SpawnFailed, now: int) -> list[MachineCommand]:
        self.executable = self.ending.is_missing(event.errno)
        why = explain_start(event.reason, event.errno)
        self._end_run_once(self.ending.unstarted, now, prefix_command(self.task.argv, why))
        self.state = RunState.DONE
        return [machine_events.FinishRun()]

    # Streams.

    def _handle_wrote(self, event: machine_events.StdinWritten, now: int) -> list[MachineCommand]:
        self.feeder.note_written(event.count)
        self.watchdog.note_own_write(now)
        return self._close_stdin() if self.feeder.is_delivered else []

    def _handle_broken_stdin(self, event: machine_events.StdinBroken, now: int) -> list[MachineCommand]:
        self.feeder.is_broken = True
        return [*self._close_stdin(), *self._fail_if_input_lost(now, silent=False)]

    def _handle_eof(self, event: machine_events.StreamEnded, now: int) -> list[MachineCommand]:
        self.feeder.note_stream_end(event.stream)
        self.watchdog.note_stream_end(now, event.stream)
        return [*self._watch_open_streams(), *self._handle_agent_gone(now)]

    def _note_output(self, event: machine_events.OutputRead, now: int) -> None:
        stream, data, watchdog = event.stream, event.data, self.watchdog
        if self.state is _STATE_RUNNING and watchdog.is_armed and watchdog.is_activity(stream, data):
            watchdog.note_activity(now, stream, len(data))
        elif self.state is RunState.ENDING:
            self.escalation.note_output(now)

    def _handle_lines(self, lines: list[bytes], now: int) -> list[MachineCommand]:
        commands: list[MachineCommand] = []
        mean = self._handle_meaning
        for meaning in self._decode_all(lines):
            if due := mean(meaning, now):
                commands += due
        return [*commands, *self._refuse_long_line(now)] if self.framing.is_overlong else commands

    def _decode_each(self, lines: list[bytes]) -> list[Meaning]:
        decode = self.decoder.decode
        return [meaning for line in lines for meaning in decode(line)]

    def _refuse_long_line(self, now: int) -> list[MachineCommand]:
        """Give up on an agent that prints a line without end (F3); what is completed stands."""
        if self.state is not RunState.RUNNING:
            return []
        return self._give_up_agent(Outcome.PROTOCOL_ERROR, f"a line of more than {self.framing.limit} bytes", now)

    def _handle_meaning(self, meaning: Meaning, now: int) -> list[MachineCommand]:
        """Follow the completion: it begins the linger, and ends it if it is taken back."""
        if self.outcome is _OUTCOME_TOOL_USE:
            return []
        completion, watchdog = self.completion, self.watchdog
        before, is_of_work = completion.at, type(meaning) in MEANINGS_OF_WORK
        self.meanings.append(meaning)
        completion.feed(meaning, now)
        if watchdog.last_progress != now and watchdog.is_progress(meaning):
            watchdog.note_progress(now)
        if is_of_work:
            self.tasks.feed(meaning)  # also what an agent says of them as it is ended
        if (
            (completion.at is before and not is_of_work)
            or self.state not in _STATES_WITH_LIVING_AGENT
            or self.escalation.has_signalled
        ):
            return []
        if is_of_work:
            self.tools.feed(meaning)
            watchdog.note_work(busy=self.tools.is_busy, doing=self.tools.current_work_text)
            if self.state is _STATE_RUNNING and self.tools.is_handed_over(meaning):
                return self._hand_tool_over_to_host(now)
        if before is None and completion.at is not None:
            self.state = RunState.ENDING
            watchdog.disarm()
            self.escalation.start_linger_grace(now, is_working=bool(self.tasks.running))
        elif before is not None and completion.at is None:
            self.state = _STATE_RUNNING
            self.escalation.stop_waiting()
            watchdog.last_activity = now
            watchdog.arm(now)
        return []

    def _hand_tool_over_to_host(self, now: int) -> list[MachineCommand]:
        """End at a message that asks for a tool of the host's (A7). Later lines belong to the next run."""
        self._end_run_once(Outcome.TOOL_USE, now)
        if self.has_exited:
            return []
        self.state = RunState.ENDING
        return self._note_signal(self.escalation.terminate(now))

    # Ending.

    def _handle_deadline(self, event: machine_events.DeadlineReached, now: int) -> list[MachineCommand]:
        if self.escalation.deadline is not None and self.escalation.deadline <= now:
            if self.escalation.escalation_step is EscalationStep.TERMINATE:
                self._set_outcome_of_result()
            return self._note_signal(self.escalation.take_due_step(now))
        due = self.watchdog.find_expired_limit(now)
        if due is None:
            return []
        name, outcome = due
        lost = self._fail_if_input_lost(now, silent=True) if outcome is Outcome.INACTIVE else []
        if lost:
            return lost
        why = self.watchdog.explain_expiry(name, now)
        if outcome in (Outcome.INACTIVE, Outcome.STALLED):
            why = explain_silence(why, self.completion.error, (), self.stderr_tail, self.framing.unfinished_line)
        return self._give_up_agent(outcome, why, now)

    def _fail_if_input_lost(self, now: int, *, silent: bool) -> list[MachineCommand]:
        """Give up on a prompt that the agent does not read, if it is time to (F5)."""
        if self.outcome is not None or not self.ending.is_input_lost(self.feeder, silent=silent):
            return []
        return self._give_up_agent(
            Outcome.INPUT_FAILED, f"stdin was closed with {len(self.feeder.unwritten_bytes)} bytes to write", now
        )

    def _give_up_agent(self, outcome: Outcome, message: str, now: int) -> list[MachineCommand]:
        self._end_run_once(outcome, now, message)
        self.state = RunState.ENDING
        return self._note_signal(self.escalation.terminate(now))

    def _handle_exit(self, event: machine_events.AgentExited, now: int) -> list[MachineCommand]:
        self.has_exited, self.status = True, event.status
        return self._handle_agent_gone(now)

    def _handle_agent_gone(self, now: int) -> list[MachineCommand]:
        """Conclude and sweep, once, when the agent has ended."""
        is_over = self.state in (RunState.SWEEPING, RunState.DONE)
        if is_over or not self.ending.is_gone(self.feeder.streams, has_exited=self.has_exited):
            return []
        self._handle_lines(self.framing.flush(), now)
        for meaning in self.decoder.end(self.stderr_tail):
            self._handle_meaning(meaning, now)
        if not self.ending.has_final_outcome(self.outcome, self.completion):
            self.outcome = None
            outcome = self._judge_exit(now)
            at = now if self.completion.at is None else self.completion.at
            self._end_run_once(outcome, at, "" if outcome is Outcome.COMPLETED else self._explain_agent_end(now))
        self.watchdog.disarm()
        self.state = RunState.SWEEPING
        return [machine_events.FindSurvivors()] if self.escalation.reach == "tree" else self._finish()

    def _judge_exit(self, now: int) -> Outcome:
        if self.status is None:
            return self.ending.judge_unseen_exit(self.completion)
        has = self.decoder.has_completion
        return self.ending.judge_exit(self.completion, self.status, self.watchdog, now, has_completion=has)

    def _explain_agent_end(self, now: int) -> str:
        """Give the agent's own words about a bad result; without a result say how it exited, too."""
        error = self.completion.error
        if self.completion.at is not None:
            return error
        words = explain_exit(self.status, now, self.spawned_at, self.output_at)
        return self.ending.explain_missing_result(error, words, self.stderr_tail)

    def _handle_swept(self, event: machine_events.TreeSwept, now: int) -> list[MachineCommand]:
        if self.state is not RunState.SWEEPING:
            return []
        return self._finish() if event.alone else self.escalation.end_leftovers(now)

    def _finish(self) -> list[MachineCommand]:
        self.state = RunState.DONE
        return self.escalation.finish()

    def stop(self, now: int, status: int | None, error: str) -> None:
        """Conclude a run that its caller gave up, after the agent has ended. A result that is there stands.

        Args:
            now: the instant.
            status: how the agent ended; None if it was never started, or if nobody saw how it ended.
            error: why the run was given up.
        """
        self.forced = self.forced or (not self.has_exited and status == _EXIT_STATUS_AFTER_KILL)
        self.status = status
        self.state = RunState.DONE
        if self.outcome is None and self.completion.at is not None:
            self._set_outcome_of_result()
        self._end_run_once(Outcome.STOPPED, now, error)

    def _set_outcome_of_result(self) -> None:
        assert self.completion.at is not None
        self._end_run_once(self.ending.judge_completion(self.completion), self.completion.at, self.completion.error)

    def _end_run_once(self, outcome: Outcome, at: int, error: str = "") -> None:
        if self.outcome is None:
            self.outcome, self.outcome_at = outcome, at
            self.error = error
        self.watchdog.disarm()

    def build_result(
        self, started: int, ended: int | None = None, leaks: Sequence[int] = (), containment: str | None = None
    ) -> Result:
        """Sum the finished run up.

        Args:
            started: the instant of the spawn.
            ended: that of the answer; None: of the outcome.
            leaks: pids that were left.
            containment: which one held; None: the agent never ran.
        """
        outcome, at = self.outcome, self.outcome_at
        assert outcome is not None
        assert at is not None
        completion, status, forced = self.completion, self.status, self.forced
        return Result(
            outcome=outcome,
            exit_code=self.ending.choose_exit_code(outcome, status, forced=forced, executable=self.executable),
            agent_status=status,
            forced=forced,
            text=completion.text,
            transcript=completion.transcript,
            stop_reason=completion.stop_reason,
            model=completion.model,
            usage=completion.usage,
            error=self.error,
            warnings=(
                *self.ending.find_warnings(outcome, status, forced=forced),
                *([] if status is not None or containment is None else [UNKNOWN_EXIT_WARNING]),
                *completion.warnings,
                *self.tasks.describe_lost(),
            ),
            noise=completion.noise,
            stderr_tail=self.stderr_tail,
            elapsed=at - started,
            returned=(at if ended is None else ended) - started,
            leaks=tuple(leaks),
            containment=containment,
        )
