"""A session as one pure machine: events and the caller's intents in, commands out. Knows no process and no loop.

`_status` draws its statuses and the order in which they follow each other. The status is computed from what is true,
after each
event: READY means a live agent that has done its handshake and can be written to. An unacknowledged cancel is a count
beside it (`OpenTurns`). One agent lives at a time, with its descendants. A start that never worked is not tried again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_agentproc.supervisor import _events as machine_events
from pytest_agentproc.supervisor._agent_lifecycle import AgentLifecycle, SessionStatus
from pytest_agentproc.supervisor._ending import EscalationStep
from pytest_agentproc.supervisor.dialects import (
    MEANINGS_OF_WORK,
    Asked,
    Failure,
    Finished,
    HandshakeDone,
    HandshakeRefused,
    HistoryReplayed,
    Hook,
    ImmediateReply,
    MalformedLine,
    Noise,
    Other,
    QuestionWithdrawn,
    Resumed,
    SwitchRefused,
    TaskBegun,
    TaskOver,
    TaskReported,
)
from pytest_agentproc.vocabulary import DIALECTS, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_agentproc.supervisor._agent_lifecycle import SessionDeciders, SessionSettings
    from pytest_agentproc.supervisor._events import CallerIntent, MachineCommand, MachineEvent
    from pytest_agentproc.supervisor.dialects import Meaning, WorkMeaning


_STATUSES_THAT_TAKE_PROMPTS = (SessionStatus.READY, SessionStatus.PROMPTING)


class Conversation(AgentLifecycle):
    """Supervise one session."""

    def __init__(self, task: SessionSettings, deciders: SessionDeciders | None = None) -> None:
        self.state = SessionStatus.STARTING
        self.session_id: str | None = None
        self.noise = 0
        self._news: list[machine_events.SessionEvent] = []
        self._now = 0
        super().__init__(task, deciders)
        self._status_rules = self._made.status_rules()
        self._wishes: dict[type[Any], Callable[[Any, int], list[MachineCommand]]] = {
            machine_events.QueuePrompt: self._handle_prompt,
            machine_events.CancelTurn: lambda wish, now: self.feeder.put(self.turns.cancel_turn(wish.number, now)),
            machine_events.SwitchSetting: self._handle_switch,
            machine_events.AnswerQuestion: lambda wish, now: self.feeder.put(
                self.turns.answer_question(wish.id, now, allowed=wish.allowed)
            ),
            machine_events.RegisterHook: self._handle_hook_registration,
            machine_events.DecideTool: lambda wish, _: self.feeder.put(
                self.hooks.decide(wish.id, allowed=wish.allowed)
            ),
            machine_events.StopAgent: self._handle_stop_intent,
            machine_events.CloseSession: self._handle_close_intent,
        }
        self._meanings: dict[type[Any], Callable[[Any, int], list[MachineCommand]]] = {
            HandshakeDone: self._handle_handshake_done,
            HandshakeRefused: self._handle_handshake_refused,
            HistoryReplayed: self._handle_replayed_history,
            MalformedLine: lambda malformed, now: self._reject_protocol_error(malformed.error, now),
            Noise: self._handle_noise_line,
            Failure: self._handle_failure,
            ImmediateReply: lambda reply, now: self._send_reply(reply.data, now),
            Hook: lambda hook, now: self._send_reply(self.hooks.handle_fired(hook, now), now),
            QuestionWithdrawn: self._handle_question_withdrawn,
            SwitchRefused: self._handle_refused_switch,
            **dict.fromkeys((Asked, TaskBegun, TaskOver, TaskReported), self._handle_work_beside_turns),
        }
        self._expiries: dict[str, Callable[[int], list[MachineCommand]]] = {
            "permission_timeout": lambda now: self.feeder.put(self.turns.deny_late_questions(now)),
            "cancel_grace": self._handle_cancel_timeout,
            "handshake_timeout": lambda now: self._give_up_agent("it did not answer in time", now),
            "restart_backoff": self._restart_agent,
        }

    def feed(self, event: MachineEvent, now: int) -> list[MachineCommand]:
        """Take one event at an instant (nanoseconds); return what to do about it, in order."""
        self._now = now
        commands = self._answers[type(event)](event, now)
        return (
            commands if type(event) is machine_events.StreamReady else self._deliver_and_publish(commands, now)
        )  # to read changes nothing yet

    def handle_intent(self, intent: CallerIntent, now: int) -> list[MachineCommand]:
        """Take one intent of the caller."""
        self._now = now
        return self._deliver_and_publish(self._wishes[type(intent)](intent, now), now)

    def can_switch(self, action: str) -> bool:
        """Say whether the protocol of the agent has an action of `SWITCH_BY_ACTION`."""
        dialect = self.task.dialect
        return action in (DIALECTS[dialect] if isinstance(dialect, str) else dialect).keys

    @property
    def deadlines(self) -> dict[str, int]:
        """Every timer that runs, by the name of its limit; at one instant the first is due first (A3)."""
        turns, escalation = self.turns, self.escalation
        deadlines = turns.watchdog.deadlines.copy()
        if (denied_at := turns.questions.deadline) is not None:
            deadlines["permission_timeout"] = denied_at
        if turns.cancel_deadline is not None:
            deadlines["cancel_grace"] = turns.cancel_deadline
        deadlines.update(self.hooks.deadlines)
        deadlines.update(self._timers)
        if escalation.deadline is not None:
            deadlines[escalation.timer] = escalation.deadline
        return deadlines

    @property
    def deadline(self) -> int | None:
        """The earliest timer."""
        return min(self.deadlines.values(), default=None)

    # After each event.

    def _deliver_and_publish(self, commands: list[MachineCommand], now: int) -> list[MachineCommand]:
        """Deliver what may be delivered, say what the status is, and tell the viewers."""
        self._update_status()
        if self.state in _STATUSES_THAT_TAKE_PROMPTS and (data := self.turns.deliver_next_prompt(now)):
            commands = [*commands, *self.feeder.put(data)]
            assert self.turns.flight is not None
            self.turns.flight.sent_to = self.feeder.put_in
            self._update_status()
        if not self._news:
            return commands
        reported, self._news = self._news, []
        return [*map(machine_events.PublishSessionEvent, reported), *commands]

    def _update_status(self) -> None:
        status = self._status_rules.judge_status(
            is_closing=self._is_closing,
            has_failed=self.failure is not None,
            is_asking=self.turns.flight is not None,
            is_able=self._is_greeted and self._is_steady and not self.feeder.is_closed,
            had_agent=self._was_ready or self._was_ended,
        )
        if status is not self.state:
            self.state = status
            self._publish("status", None, status.value)

    def _publish(self, kind: str, turn: int | None = None, text: str = "", **more: Any) -> None:
        if kind == "error":
            self.turns.end_messages()
        self._news.append(machine_events.SessionEvent(self._now, kind, turn, text, **more))

    # Streams.

    def _note_output(self, event: machine_events.OutputRead, now: int) -> None:
        if event.data and self.turns.flight is not None:
            self.turns.watchdog.note_activity(now, event.stream, len(event.data))

    def _handle_lines(self, lines: list[bytes], now: int) -> list[MachineCommand]:
        commands: list[MachineCommand] = []
        for line in lines:
            for meaning in self.protocol.decode(line):
                if due := self._handle_meaning(meaning, now):
                    commands += due
        if self.framing.is_overlong:
            commands += self._reject_protocol_error(f"a line of more than {self.framing.limit} bytes", now)
        return commands

    def _reject_protocol_error(self, why: str, now: int) -> list[MachineCommand]:
        """Give up on an agent that does not keep to the protocol (F3)."""
        if not self._is_steady:
            return []
        self.turns.lose_agent(Outcome.PROTOCOL_ERROR, now, why)
        return self._give_up_agent(why, now)

    def _handle_meaning(self, meaning: Meaning, now: int) -> list[MachineCommand]:
        """Take what a line means. A session waits for an end that the agent does not take back."""
        if isinstance(meaning, (Other, Resumed)) or (isinstance(meaning, Finished) and not meaning.final):
            return []
        understood = self._meanings.get(type(meaning))
        if understood is not None:
            return understood(meaning, now)
        data = self.turns.handle_turn_meaning(meaning, now)  # type: ignore[arg-type]  # all others are in the table
        if type(meaning) in MEANINGS_OF_WORK:
            data += self.turns.handle_work(meaning, now)  # type: ignore[arg-type]  # its type says so
        return self._send_reply(data, now)

    def _handle_handshake_done(self, welcome: HandshakeDone, now: int) -> list[MachineCommand]:
        is_first = not self._is_greeted
        self._is_greeted = self._is_steady
        self._was_ready = self._was_ready or self._is_greeted
        self.session_id = welcome.session_id or self.session_id
        self._timers.pop("handshake_timeout", None)
        return self.feeder.put(self.turns.encode_switches()) if is_first and self._is_greeted else []

    def _handle_handshake_refused(self, refusal: HandshakeRefused, now: int) -> list[MachineCommand]:
        """Give up on an agent that refuses the handshake; what it says of that later changes nothing."""
        return [] if self._is_greeted else self._give_up_agent(f"it refused: {refusal.error}", now)

    def _handle_replayed_history(self, replayed: HistoryReplayed, now: int) -> list[MachineCommand]:
        """Show the session's past once: the agent of a restart replays what viewers have read."""
        if not self._was_ready:
            self.turns.show_replayed(replayed)
        return []

    def _handle_question_withdrawn(self, withdrawn: QuestionWithdrawn, now: int) -> list[MachineCommand]:
        self.hooks.withdraw(withdrawn.id)
        return self._send_reply(self.turns.handle_turn_meaning(withdrawn, now), now)

    def _handle_noise_line(self, noise: Noise, now: int) -> list[MachineCommand]:
        self.noise += 1
        return []

    def _handle_failure(self, failure: Failure, now: int) -> list[MachineCommand]:
        """Keep the words of an error that the agent tries to get over; they explain a turn that then times out."""
        self.turns.note_error(failure.error)
        return []

    def _handle_work_beside_turns(self, worked: WorkMeaning, now: int) -> list[MachineCommand]:
        """Take what is no progress of a turn: a message that asks for tools has been shown by then."""
        self.tasks.feed(worked)
        return self._send_reply(self.turns.handle_work(worked, now), now)

    def _send_reply(self, data: bytes, now: int) -> list[MachineCommand]:
        if not data:
            return []
        commands = self.feeder.put_reply(data)
        return commands + (
            self._reject_protocol_error("it asks and reads no answers", now) if self.feeder.is_ignored else []
        )

    # Deadlines.

    def _handle_deadline(self, event: machine_events.DeadlineReached, now: int) -> list[MachineCommand]:
        deadlines = self.deadlines
        name = min(deadlines, key=deadlines.__getitem__)
        if name in self.turns.watchdog.deadlines:
            return self.feeder.put(self.turns.cancel_expired(now))
        if name in self.hooks.deadlines:
            return self.feeder.put(self.hooks.expire_old(now))
        return self._expiries.get(name, self._take_escalation_step)(now)

    def _handle_cancel_timeout(self, now: int) -> list[MachineCommand]:
        self._publish("error", None, "the cancel was not acknowledged: the agent is forced to stop")
        return self._force_stop(now)

    def _restart_agent(self, now: int) -> list[MachineCommand]:
        self._timers = {}
        return self._prepare_new_agent()

    def _take_escalation_step(self, now: int) -> list[MachineCommand]:
        if self.escalation.escalation_step is EscalationStep.TERMINATE and not self._is_closing:
            turn, why = self.turns.flight, "stdin was closed, and the agent lives on"
            missing = turn is not None and turn.sent_to > self.feeder.taken
            self._why = self._report_failure(why)
            self.turns.lose_agent(Outcome.INPUT_FAILED if missing else Outcome.AGENT_LOST, now, why)
        return self._note_signal(self.escalation.take_due_step(now))

    # The caller.

    def _handle_prompt(self, wish: machine_events.QueuePrompt, now: int) -> list[MachineCommand]:
        self.turns.queue_prompt(wish.number, wish.text)
        if self._is_closing:
            self.turns.refuse_queued(Outcome.STOPPED, "the session is closed", now)
        elif self.failure is not None:
            self.turns.refuse_queued(*self.failure, now)
        return []

    def _handle_switch(self, wish: machine_events.SwitchSetting, now: int) -> list[MachineCommand]:
        """Switch the mode or the model; an agent that is not ready gets it after its handshake."""
        data = self.turns.switch_setting(wish.what, wish.name, now)
        return self.feeder.put(data) if self._is_greeted and self._is_steady else []

    def _handle_refused_switch(self, refusal: SwitchRefused, now: int) -> list[MachineCommand]:
        self._publish("warning", None, f"the agent refused the {refusal.what}: {refusal.error}")
        return []

    def _handle_hook_registration(self, wish: machine_events.RegisterHook, now: int) -> list[MachineCommand]:
        self.hooks.register(wish.name, now)
        return []

    def _handle_stop_intent(self, wish: machine_events.StopAgent, now: int) -> list[MachineCommand]:
        self._publish("stop")
        return self._force_stop(now)

    def _handle_close_intent(self, wish: machine_events.CloseSession, now: int) -> list[MachineCommand]:
        if self._is_closing:
            return []
        self._is_closing = True
        self._timers = {}
        self.turns.lose_agent(Outcome.STOPPED, now, "the session was closed")
        self.turns.refuse_queued(Outcome.STOPPED, "the session was closed", now)
        if not self.has_agent:
            return [machine_events.FinishRun()]
        if self._is_steady:
            self.escalation.start_close_grace(now)
        return self.feeder.end_input()
