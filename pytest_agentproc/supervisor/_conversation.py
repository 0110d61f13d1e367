"""A session as one pure machine: events and the caller's intents in, commands out. Knows no process and no loop.

`_status` draws its statuses and the order in which they follow each other. The status is computed from what is true,
after each
event: READY means a live agent that has done its handshake and can be written to. An unacknowledged cancel is a count
beside it (`Turns`). One agent lives at a time, with its descendants. A start that never worked is not tried again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_agentproc.supervisor import _events as on
from pytest_agentproc.supervisor import _events as to
from pytest_agentproc.supervisor._ending import EscalationStep
from pytest_agentproc.supervisor._lifecycle import AgentLifecycle, Status
from pytest_agentproc.supervisor.dialects import (
    Asked,
    Compaction,
    Hook,
    Malformed,
    Nested,
    Noise,
    Other,
    Refusal,
    Replayed,
    Reply,
    TaskBegun,
    TaskOver,
    ToolEnded,
    ToolStarted,
    Welcome,
    Withdrawn,
)
from pytest_agentproc.vocabulary import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_agentproc.supervisor._events import Command, Event, Intent
    from pytest_agentproc.supervisor._lifecycle import SessionDeciders, SessionTask
    from pytest_agentproc.supervisor.dialects import Spoken, Tasked


_READY = Status.READY
_OF_WORK = (Asked, Compaction, Nested, ToolEnded, ToolStarted)


class Conversation(AgentLifecycle):
    """Supervise one session.

    Args:
        task: what to do.
        deciders: the judgements; a defect replaces one.
    """

    def __init__(self, task: SessionTask, deciders: SessionDeciders | None = None) -> None:
        self.state = Status.STARTING
        self.session_id: str | None = None
        self.noise = 0
        self._news: list[to.SessionEvent] = []
        self._now = 0
        super().__init__(task, deciders)
        self._standing = self._made.standing()
        self._wishes: dict[type[Any], Callable[[Any, int], list[Command]]] = {
            to.Prompt: self._prompt,
            to.CancelTurn: lambda wish, now: self.feeder.put(self.turns.cancel(wish.number, now)),
            to.AnswerQuestion: lambda wish, now: self.feeder.put(self.turns.answer(wish.id, now, allowed=wish.allowed)),
            to.RegisterHook: self._register,
            to.DecideTool: lambda wish, _: self.feeder.put(self.hooks.decide(wish.id, allowed=wish.allowed)),
            to.StopAgent: self._stop,
            to.CloseSession: self._close,
        }
        self._meanings: dict[type[Any], Callable[[Any, int], list[Command]]] = {
            Welcome: self._welcome,
            Refusal: self._refused,
            Replayed: self._replayed,
            Malformed: lambda malformed, now: self._reject(malformed.error, now),
            Noise: self._noted,
            Reply: lambda reply, now: self._reply(reply.data, now),
            Hook: lambda hook, now: self._reply(self.hooks.fire(hook, now), now),
            Withdrawn: self._withdrawn,
            TaskBegun: self._followed,
            TaskOver: self._followed,
        }
        self._expiries: dict[str, Callable[[int], list[Command]]] = {
            "permission_timeout": lambda now: self.feeder.put(self.turns.deny_due(now)),
            "cancel_grace": self._unacknowledged,
            "handshake_timeout": lambda now: self._part("it did not answer in time", now),
            "restart_backoff": self._restart,
        }

    def feed(self, event: Event, now: int) -> list[Command]:
        """Take one event at an instant (nanoseconds); return what to do about it, in order."""
        self._now = now
        commands = self._answers[type(event)](event, now)
        return commands if type(event) is on.Ready else self._follow(commands, now)  # to read changes nothing yet

    def hear(self, intent: Intent, now: int) -> list[Command]:
        """Take one intent of the caller."""
        self._now = now
        return self._follow(self._wishes[type(intent)](intent, now), now)

    @property
    def deadlines(self) -> dict[str, int]:
        """Every timer that runs, by the name of its limit; at one instant the first is due first (A3)."""
        turns, ladder = self.turns, self.ladder
        deadlines = turns.watchdog.deadlines.copy()
        if (denied_at := turns.questions.deadline) is not None:
            deadlines["permission_timeout"] = denied_at
        if turns.cancel_deadline is not None:
            deadlines["cancel_grace"] = turns.cancel_deadline
        deadlines.update(self.hooks.deadlines)
        deadlines.update(self._timers)
        if ladder.deadline is not None:
            deadlines[ladder.timer] = ladder.deadline
        return deadlines

    @property
    def deadline(self) -> int | None:
        """The earliest timer."""
        return min(self.deadlines.values(), default=None)

    # After each event.

    def _follow(self, commands: list[Command], now: int) -> list[Command]:
        """Deliver what may be delivered, say what the status is, and tell the viewers."""
        self._stand()
        if self.state is _READY and (data := self.turns.deliver(now)):
            commands = [*commands, *self.feeder.put(data)]
            assert self.turns.flight is not None
            self.turns.flight.sent_to = self.feeder.put_in
            self._stand()
        if not self._news:
            return commands
        told, self._news = self._news, []
        return [*map(on.Publish, told), *commands]

    def _stand(self) -> None:
        status = self._standing.judge(
            is_closing=self._is_closing,
            has_failed=self.failure is not None,
            is_asking=self.turns.flight is not None,
            is_able=self._is_greeted and self._is_steady and not self.feeder.is_closed,
            had_agent=self._was_ready or self._was_ended,
        )
        if status is not self.state:
            self.state = status
            self._tell("status", None, status.value)

    def _tell(self, kind: str, turn: int | None = None, text: str = "", **more: Any) -> None:
        if kind == "error":
            self.turns.seal()
        self._news.append(to.SessionEvent(self._now, kind, turn, text, **more))

    # Streams.

    def _stir(self, event: on.Output, now: int) -> None:
        if event.data and self.turns.flight is not None:
            self.turns.watchdog.activity(now, event.stream, len(event.data))

    def _understand(self, lines: list[bytes], now: int) -> list[Command]:
        commands: list[Command] = []
        for line in lines:
            for meaning in self.talk.decode(line):
                if due := self._mean(meaning, now):
                    commands += due
        if self.framing.is_overlong:
            commands += self._reject(f"a line of more than {self.framing.limit} bytes", now)
        return commands

    def _reject(self, why: str, now: int) -> list[Command]:
        """Give up on an agent that does not keep to the protocol (F3)."""
        if not self._is_steady:
            return []
        self.turns.lose(Outcome.PROTOCOL_ERROR, now, why)
        return self._part(why, now)

    def _mean(self, meaning: Spoken, now: int) -> list[Command]:
        if isinstance(meaning, Other):
            return []
        understood = self._meanings.get(type(meaning))
        if understood is not None:
            return understood(meaning, now)
        if isinstance(meaning, _OF_WORK):
            return self._reply(self.turns.work(meaning, now), now)
        return self._reply(self.turns.hear(meaning, now), now)  # type: ignore[arg-type]  # all others are in the table

    def _welcome(self, welcome: Welcome, now: int) -> list[Command]:
        self._is_greeted = self._is_steady
        self._was_ready = self._was_ready or self._is_greeted
        self.session_id = welcome.session_id or self.session_id
        self._timers.pop("handshake_timeout", None)
        return []

    def _refused(self, refusal: Refusal, now: int) -> list[Command]:
        """Give up on an agent that refuses the handshake; what it says of that later changes nothing."""
        return [] if self._is_greeted else self._part(f"it refused: {refusal.error}", now)

    def _replayed(self, replayed: Replayed, now: int) -> list[Command]:
        """Show the session's past once: the agent of a restart replays what viewers have read."""
        if not self._was_ready:
            self.turns.replay(replayed)
        return []

    def _withdrawn(self, withdrawn: Withdrawn, now: int) -> list[Command]:
        self.hooks.withdraw(withdrawn.id)
        return self._reply(self.turns.hear(withdrawn, now), now)

    def _noted(self, noise: Noise, now: int) -> list[Command]:
        self.noise += 1
        return []

    def _followed(self, task: Tasked, now: int) -> list[Command]:
        self.tasks.feed(task)
        return []

    def _reply(self, data: bytes, now: int) -> list[Command]:
        if not data:
            return []
        commands = self.feeder.reply(data)
        return commands + (self._reject("it asks and reads no answers", now) if self.feeder.is_ignored else [])

    # Deadlines.

    def _due(self, event: on.Due, now: int) -> list[Command]:
        deadlines = self.deadlines
        name = min(deadlines, key=deadlines.__getitem__)
        if name in self.turns.watchdog.deadlines:
            return self.feeder.put(self.turns.expire(now))
        if name in self.hooks.deadlines:
            return self.feeder.put(self.hooks.due(now))
        return self._expiries.get(name, self._climb)(now)

    def _unacknowledged(self, now: int) -> list[Command]:
        self._tell("error", None, "the cancel was not acknowledged: the agent is forced to stop")
        return self._force_stop(now)

    def _restart(self, now: int) -> list[Command]:
        self._timers = {}
        return self._renew()

    def _climb(self, now: int) -> list[Command]:
        if self.ladder.rung is EscalationStep.TERMINATE and not self._is_closing:
            turn, why = self.turns.flight, "stdin was closed, and the agent lives on"
            missing = turn is not None and turn.sent_to > self.feeder.taken
            self._why = self._complain(why)
            self.turns.lose(Outcome.INPUT_FAILED if missing else Outcome.AGENT_LOST, now, why)
        return self._signal(self.ladder.due(now))

    # The caller.

    def _prompt(self, wish: to.Prompt, now: int) -> list[Command]:
        self.turns.ask(wish.number, wish.text)
        if self._is_closing:
            self.turns.refuse(Outcome.STOPPED, "the session is closed", now)
        elif self.failure is not None:
            self.turns.refuse(*self.failure, now)
        return []

    def _register(self, wish: to.RegisterHook, now: int) -> list[Command]:
        self.hooks.register(wish.name, now)
        return []

    def _stop(self, wish: to.StopAgent, now: int) -> list[Command]:
        self._tell("stop")
        return self._force_stop(now)

    def _close(self, wish: to.CloseSession, now: int) -> list[Command]:
        if self._is_closing:
            return []
        self._is_closing = True
        self._timers = {}
        self.turns.lose(Outcome.STOPPED, now, "the session was closed")
        self.turns.refuse(Outcome.STOPPED, "the session was closed", now)
        if not self.has_agent:
            return [on.Finish()]
        if self._is_steady:
            self.ladder.close(now)
        return self.feeder.end()
