"""Questions and hooks of an agent that its caller owes an answer (P7, B4). Pure; answers none itself.

A hook that may forbid a tool waits until its callback is registered and has answered. It waits for at most
`hook_timeout` in all; then the tool is denied. Everything else is answered at once, and kept until a callback for it is
registered, or until it is too old.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_agentproc.vocabulary import add_limit

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_agentproc.supervisor.dialects import Hook, Question, SessionProtocol
    from pytest_agentproc.vocabulary import Policy


@dataclass(frozen=True, slots=True)
class _OpenQuestion:
    """A question, the turns that it belongs to, and the instant at which it is denied; None: never."""

    question: Question
    owners: tuple[int, ...]
    deadline: int | None


class OpenQuestions:
    """Hold what is open. A question that the agent withdraws, or answers itself, is `withdrawn` for viewers."""

    MOST = 1000
    """This number of questions may be open. A further question is denied at once (F6)."""

    def __init__(self, policy: Policy, report_event: Callable[..., None]) -> None:
        self._limit = policy.nanoseconds()["permission_timeout"]
        self._report_event = report_event
        self._open: dict[str, _OpenQuestion] = {}

    def __len__(self) -> int:
        return len(self._open)

    @property
    def deadline(self) -> int | None:
        """The instant at which the oldest open question is denied."""
        due = [question.deadline for question in self._open.values() if question.deadline is not None]
        return min(due, default=None)

    @property
    def is_full(self) -> bool:
        """Whether no more can be asked."""
        return len(self._open) >= self.MOST

    def ask(self, question: Question, owners: tuple[int, ...], now: int) -> None:
        """Take a question; one of the same name is withdrawn."""
        self.withdraw(question.id)
        self._open[question.id] = _OpenQuestion(question, owners, add_limit(now, self._limit))

    def take_answered(self, name: str) -> Question | None:
        """Give the question that its caller answers, if it is open still."""
        open_question = self._open.pop(name, None)
        return None if open_question is None else open_question.question

    def withdraw(self, name: str) -> None:
        """Forget a question."""
        open_question = self._open.pop(name, None)
        if open_question is not None:
            self._report_event(
                "withdrawn",
                next(iter(open_question.owners), None),
                open_question.question.title,
                question=open_question.question,
            )

    def withdraw_of_turn(self, number: int) -> list[Question]:
        """Forget the questions of a turn. The questions of a background turn stay, as it continues."""
        return self._withdraw_each(
            [open_question for open_question in self._open.values() if number in open_question.owners]
        )

    def withdraw_late(self, now: int) -> list[Question]:
        """Forget the questions that were not answered in time."""
        return self._withdraw_each(
            [
                open_question
                for open_question in self._open.values()
                if open_question.deadline is not None and open_question.deadline <= now
            ]
        )

    def withdraw_all(self) -> None:
        """Forget everything, because the agent that asked has ended."""
        self._withdraw_each(list(self._open.values()))

    def _withdraw_each(self, gone: list[_OpenQuestion]) -> list[Question]:
        for open_question in gone:
            self.withdraw(open_question.question.id)
        return [open_question.question for open_question in gone]

    def list_titles_of_turn(self, number: int) -> list[str]:
        """Say what the agent asks in a turn and has no answer to."""
        return [one.question.title for one in self._open.values() if number in one.owners]

    def has_open_in_turn(self, number: int) -> bool:
        """Say whether a question of a turn is open."""
        return any(number in open_question.owners for open_question in self._open.values())


_SECOND_NS = 1_000_000_000


class HookTracker:
    """Hold what fired and has not been called. The caller of a method writes the returned bytes to the agent.

    Args:
        policy: its `hook_timeout`.
        report_event: reports events to the viewers, and to the code that calls the callbacks.
    """

    LIFE = 300 * _SECOND_NS
    """A hook that was kept longer than this is never called."""

    SWEEP = 60 * _SECOND_NS
    MOST = 1000
    """At most this number may wait, and at most this number are kept (F6)."""

    MAX_SIZE = 16 * 1024**2
    """So many characters of what is kept, where the newest stays always."""

    def __init__(self, policy: Policy, report_event: Callable[..., None]) -> None:
        self._limit = policy.nanoseconds()["hook_timeout"]
        self._report_event = report_event
        self._registered: set[str] = set()
        self._waiting: dict[str, tuple[Hook, int | None]] = {}
        self._kept: deque[tuple[Hook, int, int]] = deque()
        self._size = 0
        self._sweep_at: int | None = None
        self._protocol: SessionProtocol

    def connect_to_agent(self, protocol: SessionProtocol) -> None:
        """Speak to a new agent process; what waited in the old one waits no more."""
        self._protocol = protocol

    def drop_waiting_hooks(self) -> None:
        """Note that the agent has ended: no question waits for an answer any more."""
        for name in tuple(self._waiting):
            self.withdraw(name)

    @property
    def deadlines(self) -> dict[str, int]:
        """When the oldest tool that waits is denied, and when what is too old is thrown away."""
        if not self._waiting and self._sweep_at is None:
            return {}
        due = [at for _, at in self._waiting.values() if at is not None]
        waiting = {"hook_timeout": min(due)} if due else {}
        return waiting if self._sweep_at is None else {**waiting, "hook_sweep": self._sweep_at}

    # Lines of the agent.

    def handle_fired(self, hook: Hook, now: int) -> bytes:
        """Take a hook."""
        is_registered = hook.callback in self._registered
        if hook.is_question:
            if len(self._waiting) >= self.MOST:
                return self._protocol.encode_hook_answer(hook, "too many hooks wait")
            self.withdraw(hook.id)
            self._waiting[hook.id] = (hook, add_limit(now, self._limit))
        elif not is_registered:
            self._keep_fired_hook(hook, now)
        if is_registered:
            self._request_callback(hook)
        return b"" if hook.is_question else self._protocol.encode_hook_answer(hook)

    def withdraw(self, name: str) -> None:
        """Take note that the agent wants no answer to a hook any more."""
        hook, _ = self._waiting.pop(name, (None, 0))
        if hook is not None:
            self._report_event("withdrawn", None, _format_hook_title(hook), hook=hook)

    # Calls of the caller.

    def register(self, name: str, now: int) -> None:
        """Have a callback called from now on, with what fired before too: once, and if it is not too old."""
        self._registered.add(name)
        before, self._kept, self._size = self._kept, deque(), 0
        for hook, at, size in before:
            if hook.callback != name:
                self._kept.append((hook, at, size))
                self._size += size
            elif now - at <= self.LIFE:
                self._request_callback(hook)
        self._sweep_at = self._sweep_at if self._kept else None
        for hook, _ in self._waiting.values():
            if hook.callback == name:
                self._request_callback(hook)

    def decide(self, name: str, *, allowed: bool) -> bytes:
        """Let a tool run that waits, or deny it, as its callback said."""
        hook, _ = self._waiting.pop(name, (None, 0))
        if hook is None:
            return b""
        return self._protocol.encode_hook_answer(hook, "" if allowed else "denied by the supervising program")

    # Time.

    def expire_old(self, now: int) -> bytes:
        """Deny what waited for too long, and throw away what was kept for too long."""
        late = [hook for hook, at in self._waiting.values() if at is not None and at <= now]
        for hook in late:
            self.withdraw(hook.id)
        if self._sweep_at is not None and self._sweep_at <= now:
            while self._kept and now - self._kept[0][1] > self.LIFE:
                self._drop_oldest_hook()
            self._sweep_at = now + self.SWEEP if self._kept else None
        return b"".join(self._protocol.encode_hook_answer(hook, "nobody answered the hook in time") for hook in late)

    def _keep_fired_hook(self, hook: Hook, now: int) -> None:
        size = self._measure_hook(hook)
        self._kept.append((hook, now, size))
        self._size += size
        while len(self._kept) > self.MOST or (self._size > self.MAX_SIZE and len(self._kept) > 1):
            self._drop_oldest_hook()
        if self._sweep_at is None:
            self._sweep_at = now + self.SWEEP

    def _measure_hook(self, hook: Hook) -> int:
        try:
            return len(repr(hook))
        except RecursionError:  # nested so deeply that it can be read, but not be written
            return self.MAX_SIZE

    def _drop_oldest_hook(self) -> None:
        self._size -= self._kept.popleft()[2]

    def _request_callback(self, hook: Hook) -> None:
        self._report_event("hook", None, _format_hook_title(hook), hook=hook)


def _format_hook_title(hook: Hook) -> str:
    return f"{hook.event} {hook.title}".strip()
