"""What the caller of a session does: values, and who plays them. Pure; knows no session, no clock and no loop.

One `Caller` plays the drive of a scenario against any supervisor: whoever owns the session does what `act` gives, tells
what the session told, and comes back at the deadline. So all subjects, and the model, are driven by the same rule.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["CallbackError", "Caller", "Deed", "Handler", "HookUse"]

_WAITS = frozenset({"wait", "turn", "background", "status", "settle"})
_HOPELESS = ("failed", "closed")
"""A session that stands there says and does nothing any more."""


@dataclass(frozen=True, slots=True)
class Deed:
    """One thing that the caller does.

    Args:
        line: where the scenario says so; 0: nowhere, it follows from the rest.
        kind: `prompt`, `cancel`, `stop`, `close`, `attach`, `detach`, `answer`, `register`, and the waits: `wait` (for
            a time), `turn`, `background`, `status`, `settle` (until every prompt has its outcome).
        value: the prompt's text; the number of a turn (None for `cancel`: the one in flight), of a background turn, of
            a question; the name of a status, a viewer or a hook; the time to wait in nanoseconds.
        at: the instant, in nanoseconds, before which it is not done.
        after: the same from the deed before.
    """

    line: int
    kind: str
    value: Any = None
    at: int | None = None
    after: int | None = None

    def show(self) -> dict[str, Any]:
        """Give what it says in plain values, for a record."""
        words = {"wait": "waits", "settle": "waits for every outcome"}.get(self.kind)
        if words is None and self.kind in _WAITS:
            words = f"waits for {self.kind} {self.value}"
        if words is None:
            value = "" if self.kind in ("prompt", "answer") or self.value is None else f" {self.value}"
            words = f"{self.kind}{value}"
        return {"process": "caller", "does": words, **({"line": self.line} if self.line else {})}


@dataclass(frozen=True, slots=True)
class Handler:
    """How the caller answers the agent's questions.

    Args:
        allowed: the answer; None: it never comes.
        after: nanoseconds from the question to it.
    """

    allowed: bool | None
    after: int = 0


@dataclass(frozen=True, slots=True)
class HookUse:
    """What the caller has a hook do.

    Args:
        name: the hook's.
        event: what it hears of: `PreToolUse`, `PostToolUse`.
        registers_at: the instant, in nanoseconds, at which its callback is registered; None: never.
        raises: whether the callback breaks.
        allowed: what the callback says, if it does not.
    """

    name: str
    event: str
    registers_at: int | None = 0
    raises: bool = False
    allowed: bool = True


class CallbackError(Exception):
    """What a callback raises that is to break."""


class Caller:
    """Play the caller's part in one session; a drive that is through waits for every outcome, and closes once.

    Args:
        drive: what to do, in order.
        handler: how questions are answered; None: the caller has no handler.
        hooks: whose callbacks are registered when.
        note: called with each deed when it is done, and with a wait when it begins.
    """

    def __init__(
        self,
        drive: Sequence[Deed],
        handler: Handler | None,
        note: Callable[[Deed], None],
        hooks: Sequence[HookUse] = (),
    ) -> None:
        self.handler = handler
        self.statuses = ["starting"]
        is_closed = any(deed.kind == "close" for deed in drive)
        self._left = deque([*drive, Deed(0, "settle"), *([] if is_closed else [Deed(0, "close")])])
        self._note = note
        self._noted: Deed | None = None
        self._since = 0
        self._last = 0
        self._prompts = 0
        self._outcomes: set[int] = set()
        self._background = 0
        self._questions = 0
        self._dues: deque[tuple[int, int]] = deque()
        registered = [(hook.registers_at, hook.name) for hook in hooks if hook.registers_at is not None]
        self._registers = deque(sorted(registered, key=lambda one: one[0]))

    @property
    def is_done(self) -> bool:
        """Whether there is nothing left to do."""
        return not self._left

    @property
    def deadline(self) -> int | None:
        """The instant at which to act whatever happened; None: never."""
        deed = self._left[0] if self._left else None
        dues = [None if deed is None else self._due(deed)]
        if self._left:
            dues += [pending[0][0] for pending in (self._dues, self._registers) if pending]
        return min((due for due in dues if due is not None), default=None)

    # What the session told.

    def hear(self, kind: str, turn: int | None, text: str) -> None:
        """Take note of a `status` (the text says which), of the `outcome` of a turn, of a `background` turn's end.

        A background turn without a word counts for none; other kinds say nothing to the caller.
        """
        if kind == "status":
            self.statuses.append(text)
        elif kind == "outcome" and turn is not None:
            self._outcomes.add(turn)
        elif kind == "background":
            self._background += bool(text)

    def saw_question(self, now: int) -> int:
        """Take note of a question that the handler must answer; give its number."""
        self._questions += 1
        if self.handler is not None and self.handler.allowed is not None:
            self._dues.append((now + self.handler.after, self._questions))
        return self._questions

    # What is to be done.

    def act(self, now: int) -> list[Deed]:
        """Give what is to be done now, in order."""
        deeds: list[Deed] = []
        while self._registers and self._registers[0][0] <= now:
            deeds.append(Deed(0, "register", self._registers.popleft()[1]))
            self._note(deeds[-1])
        while self._dues and self._dues[0][0] <= now:
            deeds.append(Deed(0, "answer", self._dues.popleft()[1]))
        while self._left:
            deed = self._left[0]
            if not self._is_due(deed, now):
                self._begin(deed)
                break
            self._left.popleft()
            self._last, self._since = now, len(self.statuses) - 1
            if deed.kind not in _WAITS:
                self._prompts += deed.kind == "prompt"
                self._note(deed)
                deeds.append(deed)
        return deeds

    def _begin(self, deed: Deed) -> None:
        if deed is not self._noted and deed.kind in _WAITS and deed.line:
            self._noted = deed
            self._note(deed)

    def _due(self, deed: Deed) -> int | None:
        if deed.kind == "wait":
            return self._last + int(deed.value)
        return deed.at if deed.after is None else self._last + deed.after

    def _is_due(self, deed: Deed, now: int) -> bool:
        due = self._due(deed)
        if due is not None and due > now:
            return False
        is_over = self.statuses[-1] in _HOPELESS
        if deed.kind == "turn":
            return deed.value in self._outcomes
        if deed.kind == "background":
            return self._background >= deed.value or is_over
        if deed.kind == "status":
            return deed.value in self.statuses[self._since :] or is_over
        return deed.kind != "settle" or len(self._outcomes) >= self._prompts
