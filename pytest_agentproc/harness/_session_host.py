"""Sessions and their caller in the model: what doors, bells and the caller's loop are for real. Decides nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_agentproc.clock import SystemClock
from pytest_agentproc.supervisor import AnswerIt, DecideIt, Session, SessionDriver, SessionEvent, report, view
from pytest_agentproc.vocabulary import Answer, CallbackError, Caller, Role

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pytest_agentproc.harness._actors import World
    from pytest_agentproc.scenario import Bound
    from pytest_agentproc.supervisor import Conversation, Hook, Question, Transcript, Turn, Viewer
    from pytest_agentproc.vocabulary import Deed

__all__ = ["CALLER", "CallerHost", "SessionHost"]

CALLER = "caller"
"""What makes the marks on prompts unlike any other session's."""


class _Bell:
    """A session's bell in memory."""

    descriptor = -1

    def __init__(self) -> None:
        self.rung = False

    def ring(self) -> None:
        self.rung = True

    def hush(self) -> None:
        self.rung = False

    def follow(self, descriptor: int) -> None:
        """Nothing else rings it: the model asks the agent's pipes itself."""

    def leave(self, descriptor: int) -> None:
        """See `follow`."""

    def close(self) -> None:
        """Nothing is open."""


class SessionHost:
    """One session.

    Args:
        machine: who decides.
        transcript: what viewers read.
        bound: the scenario, or the session's part of it.
        spawn: starts an agent.
        now: the clock.
        trace: takes the record's supervisor side.
    """

    def __init__(
        self,
        machine: Conversation,
        transcript: Transcript,
        bound: Bound,
        spawn: Callable[[str], World],
        now: Callable[[], int],
        trace: Callable[[int, str, dict[str, Any]], None],
    ) -> None:
        self._session = Session(machine, SystemClock(), None, transcript)
        self.bell = _Bell()
        """Rung by what the caller said, and the session has not heard."""
        self.role = Role(bound.handler, bound.hooks)
        self._hooks = {hook.name: hook for hook in bound.hooks}
        self._registered: set[str] = set()
        self._called: list[tuple[str, int]] = []
        self._events: list[SessionEvent] = []
        self.caller: CallerHost | None = None
        """Who is to hear what the session tells."""
        self._turns: list[Turn] = []
        self._questions: list[Question | None] = []
        """What the handler was asked, in order; None: it was withdrawn, and another may have its id."""
        self._viewers: dict[str, Viewer] = {}
        self._seen: dict[str, list[SessionEvent]] = {}
        self.driver = SessionDriver(machine, spawn, self.bell, now, self._hear, trace)
        self._session.drive_by(self.driver)

    def tell(self, caller: Caller, name: str, now: int) -> None:
        """Tell the caller what the session told since it was asked last, and call the callbacks."""
        heard, self._events = self._events, []
        for event in heard:
            caller.hear(event.kind, event.turn, event.text, name)
            if event.kind == "withdrawn":
                self._questions = [None if one is event.question else one for one in self._questions]
            elif event.question is not None and self.role.handler is not None:
                caller.saw_question(event.at, name)
                self._questions.append(event.question)
            if event.kind == "hook" and event.hook is not None and event.hook.callback in self._registered:
                self._call(event.hook, now)

    def answer(self) -> Answer:
        """Sum it up, as the core does."""
        for name in self._viewers:
            self._read(name)
        views = {name: view(seen) for name, seen in self._seen.items()}
        return report(self._session, turns=len(self._turns), views=views, called=self._called)

    def _call(self, hook: Hook, now: int) -> None:
        """Do what the session's door does about a callback, which takes no time."""
        use = self._hooks[hook.callback]
        self._called.append((use.name, now))
        if use.raises:
            words = f"the callback of hook {use.name} broke: {CallbackError()!r}"
            self._session.hear(SessionEvent(now, "warning", text=words))
        if hook.is_question:
            self.driver.tell(DecideIt(hook.id, use.allowed and not use.raises))

    def _hear(self, event: SessionEvent) -> None:
        self._events.append(event)
        if self.caller is not None:
            self.caller.has_news = True
        self._session.hear(event)

    def _read(self, name: str) -> None:
        self._seen[name] += self._viewers[name].take()

    def do(self, deed: Deed) -> None:
        """Do what the caller wants."""
        value, session = deed.value, self._session
        if deed.kind == "prompt":
            self._turns.append(session.prompt(value))
        elif deed.kind == "cancel":
            (session if value is None else self._turns[value - 1]).cancel()
        elif deed.kind == "answer":
            handler, question = self.role.handler, self._questions[value - 1]
            assert handler is not None
            if question is not None:
                self.driver.tell(AnswerIt(question.id, handler.allowed is True))
        elif deed.kind == "register":
            self._registered.add(value)
            session.on_hook(value, _nothing)
        elif deed.kind == "attach":
            self._viewers[value] = session.attach()
            self._seen[value] = []
        elif deed.kind == "detach":
            self._read(value)
            del self._viewers[value]
        else:
            (session.stop() if deed.kind == "stop" else session.close()).close()  # nobody waits for it


class CallerHost:
    """The caller of all sessions of a scenario.

    Args:
        drive: what it does.
        hosts: the sessions by name, in the order of their declaration.
        now: the clock.
        trace: takes what the caller does.
    """

    def __init__(
        self,
        drive: Sequence[Deed],
        hosts: Mapping[str, SessionHost],
        now: Callable[[], int],
        trace: Callable[[int, str, dict[str, Any]], None],
    ) -> None:
        self._hosts = hosts
        for host in hosts.values():
            host.caller = self
        self.has_news = False
        """Whether a session told something that the caller has not heard."""
        roles = {name: host.role for name, host in hosts.items()}
        self._caller = Caller(drive, lambda deed: trace(now(), "m", deed.show()), roles)
        self.deadline: int | None = None
        """The instant at which the caller acts whatever happens; what it is told and what it does may move it."""
        self.act(now())

    @property
    def is_busy(self) -> bool:
        """Whether there is anything left to do."""
        return not self._caller.is_done

    def act(self, now: int) -> bool:
        """Tell the caller what the sessions told, and do what it wants; return whether it wanted something."""
        self.has_news = False
        for name, host in self._hosts.items():
            host.tell(self._caller, name, now)
        deeds = self._caller.act(now)
        self.deadline = self._caller.deadline
        for deed in deeds:
            self._hosts[deed.session].do(deed)
        return bool(deeds)

    def answer(self) -> Answer:
        """Sum it up, as the core does."""
        answers = {name: host.answer() for name, host in self._hosts.items()}
        return answers[""] if "" in answers else Answer(sessions=answers)


async def _nothing(_hook: Hook) -> None:
    """Stand for a callback: the model does itself what that would do."""
