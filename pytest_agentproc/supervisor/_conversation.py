"""A session as one pure machine: events and the caller's intents in, commands out. Knows no process and no loop.

What its status is and what follows what is drawn in `_status`. The status is computed from what is true, after each
event: READY means a live agent that has done its handshake and can be written to. An unacknowledged cancel is a count
beside it (`Turns`). One agent lives at a time, with its descendants. A start that never worked is not tried again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_agentproc.supervisor import _events as on
from pytest_agentproc.supervisor import _intents as to
from pytest_agentproc.supervisor._ending import Ending
from pytest_agentproc.supervisor._ladder import Rung
from pytest_agentproc.supervisor._life import Life
from pytest_agentproc.supervisor._outbox import Outbox
from pytest_agentproc.supervisor._session_task import SessionDeciders
from pytest_agentproc.supervisor._status import Status
from pytest_agentproc.supervisor.dialects import Malformed, Noise, Other, Refusal, Reply, Welcome, talk
from pytest_agentproc.vocabulary import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_agentproc.supervisor._events import Command, Event
    from pytest_agentproc.supervisor._intents import Intent
    from pytest_agentproc.supervisor._session_task import SessionTask
    from pytest_agentproc.supervisor.dialects import Spoken

__all__ = ["Conversation"]


class Conversation(Life):
    """Supervise one session.

    Args:
        task: what to do.
        deciders: the judgements; a defect replaces one.
    """

    feeder: Outbox

    def __init__(self, task: SessionTask, deciders: SessionDeciders | None = None) -> None:
        made = self._made = deciders or SessionDeciders()
        self.task = task
        self.policy = task.policy.in_session()
        self.limits = self.policy.nanoseconds()
        self.state = Status.STARTING
        self.session_id: str | None = None
        self.failure: tuple[Outcome, str] | None = None
        self.noise = 0
        self.turns = made.turns(self.policy, made.patience(self.policy), self._tell, has_handler=task.has_handler)
        self.restarts = made.restarts(self.policy)
        self._news: list[to.SessionEvent] = []
        self._now = 0
        self._was_ready = self._was_ended = self._is_greeted = self.has_agent = False
        self._is_closing = self._is_stopped = self._is_sweeping = False
        self._start_at: int | None = None
        self._why = ""
        self._timers: dict[str, int] = {}
        self._wishes: dict[type[Any], Callable[[Any, int], list[Command]]] = {
            to.Prompt: self._prompt,
            to.CancelIt: lambda wish, now: self.feeder.put(self.turns.cancel(wish.number, now)),
            to.AnswerIt: lambda wish, now: self.feeder.put(self.turns.answer(wish.id, now, allowed=wish.allowed)),
            to.StopIt: self._stop,
            to.CloseIt: self._close,
        }
        self._renew()
        self.listen()

    def feed(self, event: Event, now: int) -> list[Command]:
        """Take one event at an instant (nanoseconds); return what to do about it, in order."""
        self._now = now
        return self._follow(super().feed(event, now), now)

    def hear(self, intent: Intent, now: int) -> list[Command]:
        """Take one intent of the caller."""
        self._now = now
        return self._follow(self._wishes[type(intent)](intent, now), now)

    @property
    def deadlines(self) -> dict[str, int]:
        """Every timer that runs, by the name of its limit; at one instant the first is due first (A3)."""
        turns, ladder = self.turns, self.ladder
        others = {
            "permission_timeout": turns.question_deadline,
            "cancel_grace": turns.cancel_deadline,
            **self._timers,
            ladder.timer: ladder.deadline,
        }
        return {**turns.patience.deadlines, **{name: at for name, at in others.items() if at is not None}}

    @property
    def deadline(self) -> int | None:
        """The earliest timer."""
        return min(self.deadlines.values(), default=None)

    # After each event.

    def _follow(self, commands: list[Command], now: int) -> list[Command]:
        """Deliver what may be delivered, say what the status is, and tell the viewers."""
        self._stand()
        if self.state is Status.READY and (data := self.turns.deliver(now)):
            commands = [*commands, *self.feeder.put(data)]
            assert self.turns.flight is not None
            self.turns.flight.sent_to = self.feeder.put_in
            self._stand()
        told, self._news = self._news, []
        return [*(on.Publish(event) for event in told), *commands]

    def _stand(self) -> None:
        status = self._status_now()
        if status is not self.state:
            self.state = status
            self._tell("status", None, status.value)

    def _status_now(self) -> Status:
        if self._is_closing:
            return Status.CLOSED
        if self.failure is not None:
            return Status.FAILED
        if self.turns.flight is not None:
            return Status.PROMPTING
        if self._is_greeted and self._is_steady and not self.feeder.is_closed:
            return Status.READY
        return Status.RESTARTING if self._was_ready or self._was_ended else Status.STARTING

    @property
    def _is_steady(self) -> bool:
        """Whether an agent lives that nobody is ending."""
        return self.has_agent and self.status is None and not self.ladder.has_signalled

    def _tell(self, kind: str, turn: int | None = None, text: str = "", **more: Any) -> None:
        self._news.append(to.SessionEvent(self._now, kind, turn, text, **more))

    # Beginning.

    def _renew(self) -> list[Command]:
        """Be ready for a new agent, and start it."""
        made = self._made
        self.begin(Outbox(), made.framing(), made.ladder(self.policy), self.policy.max_line_bytes)
        self._is_greeted = self._is_stopped = False
        self._start_at, self._why = None, ""
        self.talk = talk(self.task.dialect, self.task.mode, self.task.setting)
        self.turns.connect(self.talk, made.router(is_marked=self.talk.is_marked))
        return [on.Spawn()]

    def _start(self, event: on.Start, now: int) -> list[Command]:
        return [on.Spawn()]

    def _spawned(self, event: on.Spawned, now: int) -> list[Command]:
        limit = self.limits["handshake_timeout"]
        assert limit is not None
        self.has_agent = True
        self._timers = {"handshake_timeout": now + limit}
        return [*self._watch(), *self.feeder.put(self.talk.greet())]

    def _spawn_failed(self, event: on.SpawnFailed, now: int) -> list[Command]:
        self.turns.ended_with = (None, False, Ending().is_missing(event.errno))
        self._lament(Outcome.SPAWN_FAILED, self._complain(f"{event.reason} (errno {event.errno})"), now)
        return self._next(now)

    # Streams.

    def _stir(self, event: on.Output, now: int) -> None:
        if event.data and self.turns.flight is not None:
            self.turns.patience.activity(now)

    def _eof(self, event: on.Eof, now: int) -> list[Command]:
        self.feeder.ended(event.stream)
        return self._watch()

    def _wrote(self, event: on.Wrote, now: int) -> list[Command]:
        self.feeder.wrote(event.count)
        return self.feeder.pause()

    def _broken(self, event: on.Broken, now: int) -> list[Command]:
        """Give an agent that reads no more its grace to leave: it cannot be talked to (F5)."""
        self.feeder.is_broken = True
        if self._is_steady and self.ladder.deadline is None:
            self.ladder.close(now)
        return self.feeder.end()

    def _understand(self, lines: list[bytes], now: int) -> list[Command]:
        commands: list[Command] = []
        for line in lines:
            for meaning in self.talk.decode(line):
                commands += self._mean(meaning, now)
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
        if isinstance(meaning, Welcome):
            self._is_greeted = self._is_steady
            self._was_ready = self._was_ready or self._is_greeted
            self.session_id = meaning.session_id or self.session_id
            self._timers.pop("handshake_timeout", None)
        elif isinstance(meaning, Refusal):
            return self._part(f"it refused: {meaning.error}", now)
        elif isinstance(meaning, Malformed):
            return self._reject(meaning.error, now)
        elif isinstance(meaning, Noise):
            self.noise += 1
        elif isinstance(meaning, Reply):
            return self._reply(meaning.data, now)
        elif not isinstance(meaning, Other):
            return self._reply(self.turns.hear(meaning, now), now)
        return []

    def _reply(self, data: bytes, now: int) -> list[Command]:
        commands = self.feeder.reply(data)
        return commands + (self._reject("it asks and reads no answers", now) if self.feeder.is_ignored else [])

    # Deadlines.

    def _due(self, event: on.Due, now: int) -> list[Command]:
        deadlines = self.deadlines
        name = min(deadlines, key=deadlines.__getitem__)
        if name in self.turns.patience.deadlines:
            return self.feeder.put(self.turns.expire(now))
        if name == "permission_timeout":
            return self.feeder.put(self.turns.deny_due(now))
        if name == "cancel_grace":
            self._tell("error", None, "the cancel was not acknowledged: the agent is forced to stop")
            return self._force_stop(now)
        if name == "handshake_timeout":
            return self._part("it did not answer in time", now)
        if name == "restart_backoff":
            self._timers = {}
            return self._renew()
        return self._climb(now)

    def _climb(self, now: int) -> list[Command]:
        if self.ladder.rung is Rung.TERMINATE and not self._is_closing:
            turn, why = self.turns.flight, "stdin was closed, and the agent lives on"
            missing = turn is not None and turn.sent_to > self.feeder.taken
            self._why = self._complain(why)
            self.turns.lose(Outcome.INPUT_FAILED if missing else Outcome.AGENT_LOST, now, why)
        return self._signal(self.ladder.due(now))

    def _part(self, why: str, now: int) -> list[Command]:
        """Give up on an agent that cannot be talked to; if none ever could, the handshake has failed (P6)."""
        self._timers.pop("handshake_timeout", None)
        if not self._is_steady:
            return []
        self._why = self._complain(why)
        if not self._was_ready:
            self._lament(Outcome.HANDSHAKE_FAILED, self._why, now)
        return self._force(now)

    def _force(self, now: int) -> list[Command]:
        self._timers = {}
        return self._signal(self.ladder.terminate(now))

    # The end of an agent.

    def _exited(self, event: on.Exited, now: int) -> list[Command]:
        self.status = event.status
        self._understand(self.framing.flush(), now)
        if not self.feeder.is_broken:
            self.turns.take_back(self.feeder.taken)
        words = f"it exited with {event.status}" if event.status >= 0 else f"signal {-event.status} ended it"
        self.turns.ended_with = (event.status, self.forced, True)
        self.turns.lose(Outcome.AGENT_LOST, now, words)
        was_greeted, self._is_greeted, self._was_ended = self._is_greeted, False, True
        self._timers, self._is_sweeping = {}, True
        if self._is_stopped:
            self._start_at = now
        elif not self._is_closing:
            lost = Outcome.AGENT_LOST if was_greeted else Outcome.HANDSHAKE_FAILED
            self._lament(lost, self._why or self._complain(words), now)
        return [on.Sweep()]

    def _complain(self, why: str) -> str:
        error = self.task.complaint(why, self.stderr_tail)
        self._tell("error", None, error)
        return error

    def _lament(self, outcome: Outcome, error: str, now: int) -> None:
        """Decide about a next start: a first one that failed was the last; then come the restarts, until too many."""
        if self.failure is not None:
            return
        delay = self.restarts.crash(now) if self._was_ready else None
        if delay is None:
            self.failure = (Outcome.AGENT_LOST if self._was_ready else outcome, error)
            self.turns.refuse(*self.failure, now)
        else:
            self._start_at = now + delay

    def _swept(self, event: on.Swept, now: int) -> list[Command]:
        if not self._is_sweeping:
            return []
        if not event.alone:
            return self.ladder.leftovers(now)
        self._is_sweeping = self.has_agent = False
        self.ladder.deadline = None
        self._tell("exit", None, str(self.status))
        return [on.Reap(), *self._next(now)]

    def _next(self, now: int) -> list[Command]:
        """Say what follows, now that nobody lives."""
        if self._is_closing:
            return [on.Finish()]
        if self._start_at is not None and self._start_at <= now:
            return self._renew()
        self._timers = {} if self._start_at is None else {"restart_backoff": self._start_at}
        return []

    # The caller.

    def _prompt(self, wish: to.Prompt, now: int) -> list[Command]:
        self.turns.ask(wish.number, wish.text)
        if self._is_closing:
            self.turns.refuse(Outcome.STOPPED, "the session is closed", now)
        elif self.failure is not None:
            self.turns.refuse(*self.failure, now)
        return []

    def _stop(self, wish: to.StopIt, now: int) -> list[Command]:
        self._tell("stop")
        return self._force_stop(now)

    def _force_stop(self, now: int) -> list[Command]:
        if not self._is_steady:
            return []
        self.turns.lose(Outcome.STOPPED, now, "the agent was forced to stop")
        self._is_stopped = self._was_ended = True
        return self._force(now)

    def _close(self, wish: to.CloseIt, now: int) -> list[Command]:
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
