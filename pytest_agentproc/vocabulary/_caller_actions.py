"""The actions of the caller of sessions: values, and the `Caller` that does them. Knows no session or clock.

One `Caller` plays the drive of a scenario against any supervisor. The owner of the sessions does the actions
of `act`, reports the sessions' events, and comes back at the deadline. So all subjects, and the model, are driven by
the same rule.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from pytest_agentproc.events import CallerActed, CallerWaits


CAPABILITIES = (
    "prompt",
    "queue",
    "cancel",
    "stop",
    "close",
    "attach",
    "detach",
    "set_mode",
    "set_model",
    "permission",
    "hook",
    "background",
    "restart",
    "several",
    "load",
    "resume",
    "tool",
    "message",
)
"""The actions that a subject may be able to do to its sessions, and the events that it may be able to report.

These are no actions of a drive: `queue` (a prompt while another is in flight, uncancelled), `permission` (a handler)
and `hook`. `background` and `restart` are waits: for a background turn, and for a new agent in place of a lost one, or
for none any more. `tool` and `message` are waits for what the session reports of its agent. `several` means several
sessions at a time. `load` and `resume` open one that the agent knows (see `ContinuedSession`). Every subject can do all
other waits.
"""

REPORTED_EVENT_TEXTS = {"question": "a question", "tool": "a tool", "message": "the agent's words"}
"""What the caller can wait for within a turn, each with its text for a record."""

SWITCH_BY_ACTION = {"set_mode": "mode", "set_model": "model"}
"""What the caller can switch in an agent that lives on, by the action."""

_DRIVE_ITEMS_THAT_WAIT = frozenset({"wait", "turn", "background", "status", "settle", *REPORTED_EVENT_TEXTS})
WAYS_TO_END_A_PROGRAM = {
    "hangup": ("closes the terminal of the supervisor", "a supervisor that is a program, whose terminal can close"),
    "kill": ("kills the supervisor", "a supervisor that is a program, which can be killed"),
}
"""How a caller goes away and takes the supervisor's program with it: the text for a record, and what it needs."""

_TEXT_BY_DRIVE_ITEM = {
    "wait": "",
    "settle": "for every outcome",
    **{kind: f"for {text}" for kind, text in REPORTED_EVENT_TEXTS.items()},
    "abandon": "goes away",
    "block": "keeps the event loop from running",
    "sleep": "wakes the machine, and the wall clock jumps",
}
_FINAL_SESSION_STATUSES = ("failed", "closed")
"""A session that stands there says and does nothing any more."""


@dataclass(frozen=True, slots=True)
class CallerAction:
    """One thing that the caller does.

    Args:
        line: where the scenario says so; 0: nowhere, it follows from the rest.
        kind: `prompt`, `cancel`, `stop`, `close`, `attach`, `detach`, `set_mode`, `set_model`, `answer`, `register`,
            `abandon` (of the supervisor itself), of other code in its program `block`, of its machine `sleep`, and the
            waits: `wait` (for a time), `turn`, `background`, `status`, `question`, `tool`, `message` (the next one
            since the action before), `settle` (until every prompt has its outcome).
        value: the prompt's text; how a caller goes away, `task`, `scope` or one of `WAYS_TO_END_A_PROGRAM`; the number
            of a turn (None for `cancel`: the one in flight), of a background turn, of a question; the name of a status,
            a viewer, a mode, a model or a hook; the time to wait, or for which the event loop is blocked or the machine
            sleeps, in nanoseconds.
        at: the instant, in nanoseconds, before which it is not done.
        after: the same from the deed before.
        session: in which session, where there are several.
        misses: why a cancel hits nothing; "": it hits a turn, or is none.
    """

    line: int
    kind: str
    value: Any = None
    at: int | None = None
    after: int | None = None
    session: str = ""
    misses: str = ""

    def make_event(self, at: int) -> CallerActed | CallerWaits:
        """Give what it says, for a record."""
        from pytest_agentproc.events import CallerActed, CallerWaits

        words = _TEXT_BY_DRIVE_ITEM.get(self.kind)
        if self.kind == "abandon" and self.value in WAYS_TO_END_A_PROGRAM:
            words = WAYS_TO_END_A_PROGRAM[self.value][0]
        if self.kind in _DRIVE_ITEMS_THAT_WAIT:
            waits = f"for {self.kind} {self.value}" if words is None else words
            return CallerWaits(at, "caller", waits, line=self.line, session=self.session)
        if words is None:
            value = "" if self.kind in ("prompt", "answer") or self.value is None else f" {self.value}"
            words = f"{self.kind}{value}" + (f" hits nothing: {self.misses}" if self.misses else "")
        return CallerActed(at, "caller", words, line=self.line, session=self.session)


@dataclass(frozen=True, slots=True)
class ContinuedSession:
    """The session that the caller opens in place of a new one.

    Args:
        how: `load`: the agent replays its history; `resume`: it does not.
        id: the agent's name for the session.
    """

    how: str
    id: str


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
class HookReaction:
    """The reaction of a hook's callback.

    Args:
        name: the hook's.
        event: its event: `PreToolUse`, `PostToolUse`.
        registers_at: the instant, in nanoseconds, at which its callback is registered. None: never.
        raises: whether the callback breaks.
        allowed: what the callback says, if it does not.
    """

    name: str
    event: str
    registers_at: int | None = 0
    raises: bool = False
    allowed: bool = True


def find_needed_capabilities(drive: Sequence[CallerAction]) -> dict[str, int]:
    """Give the `CAPABILITIES` that a drive needs, each with the line of its last use."""
    needed: dict[str, int] = {}
    open_turns: dict[str, set[int]] = {}
    prompts: dict[str, int] = {}
    for action in drive:
        left = open_turns.setdefault(action.session, set())
        if action.kind in CAPABILITIES:
            needed[action.kind] = action.line
        if action.kind == "question":
            needed["permission"] = action.line
        if action.kind == "status" and action.value in ("restarting", "failed"):
            needed["restart"] = action.line
        if action.kind == "prompt":
            needed |= {"queue": action.line} if left else {}
            prompts[action.session] = prompts.get(action.session, 0) + 1
            left.add(prompts[action.session])
        elif action.kind == "turn":
            left -= set(range(action.value + 1))
        elif action.kind in ("cancel", "stop"):
            left -= left if action.value is None else {action.value}
    return needed


class CallbackError(Exception):
    """The error of a callback that has to break."""


@dataclass(frozen=True, slots=True)
class CallerRole:
    """The caller's part for one session beside the drive.

    Args:
        handler: how it answers the agent's questions; None: it has no handler.
        hooks: whose callbacks it registers when.
    """

    handler: Handler | None = None
    hooks: tuple[HookReaction, ...] = ()


@dataclass(slots=True)
class _SessionEvents:
    """The events of one session, and its questions; `since` is the status at its item before, `seen` what came then."""

    statuses: list[str] = field(default_factory=lambda: ["starting"])
    since: int = 0
    seen: set[str] = field(default_factory=set)
    prompts: int = 0
    outcomes: set[int] = field(default_factory=set)
    background: int = 0
    questions: int = 0
    dues: deque[tuple[int, int]] = field(default_factory=deque)

    @property
    def is_over(self) -> bool:
        return self.statuses[-1] in _FINAL_SESSION_STATUSES


def explain_idle_cancel(number: int | None, prompts: int, over: Collection[int]) -> str:
    """Say why a cancel hits nothing; "" if it hits a turn.

    Args:
        number: the turn that it is for; None: any turn that is open.
        prompts: how many prompts were given.
        over: the numbers of the turns that have their outcome.
    """
    if number is None:
        return "" if len(over) < prompts else "no turn is open"
    if number > prompts:
        return f"there is no turn {number} yet"
    return f"turn {number} is over" if number in over else ""


class Caller:
    """Play the caller's part in all sessions; a drive that is through waits for every outcome, and closes each once.

    Args:
        drive: its items, in order.
        note: called with each action when it is done, and with a wait when it begins.
        roles: the sessions by name, in the order of their closing. A single session without a name has the name "".
    """

    def __init__(
        self,
        drive: Sequence[CallerAction],
        note: Callable[[CallerAction], None],
        roles: Mapping[str, CallerRole] | None = None,
    ) -> None:
        self._roles = roles or {"": CallerRole()}
        self._events_by_session = {name: _SessionEvents() for name in self._roles}
        closed = {action.session for action in drive if action.kind == "close"}
        closes = (CallerAction(0, "close", session=name) for name in self._roles if name not in closed)
        self._left = deque([*drive, CallerAction(0, "settle"), *closes])
        self._note = note
        self._noted: CallerAction | None = None
        self._last = 0
        uses = ((name, hook) for name, role in self._roles.items() for hook in role.hooks)
        registered = [(use.registers_at, name, use.name) for name, use in uses if use.registers_at is not None]
        self._registers = deque(sorted(registered, key=lambda entry: entry[0]))

    @property
    def is_done(self) -> bool:
        """Whether there is nothing left to do."""
        return not self._left

    @property
    def deadline(self) -> int | None:
        """The instant at which to act whatever happened; None: never."""
        if not self._left:
            return None
        dues = [events.dues[0][0] for events in self._events_by_session.values() if events.dues]
        if (due := self._find_due_instant(self._left[0])) is not None:
            dues.append(due)
        if self._registers:
            dues.append(self._registers[0][0])
        return min(dues) if dues else None

    # The sessions' events.

    def note_event(self, kind: str, turn: int | None, text: str, session: str = "") -> None:
        """Take note of a `status` (the text says which), of the `outcome` of a turn, of a `background` turn's end.

        A `question`, a `tool`, and the words of a `message` or a `delta` are noted, too. A background turn without a
        word counts for none; other kinds say nothing to the caller.
        """
        events = self._events_by_session[session]
        if kind == "status":
            events.statuses.append(text)
        elif kind == "outcome" and turn is not None:
            events.outcomes.add(turn)
        elif kind == "background":
            events.background += bool(text)
        elif kind in REPORTED_EVENT_TEXTS or (kind == "delta" and text):
            events.seen.add("message" if kind == "delta" else kind)

    def note_question(self, now: int, session: str = "") -> int:
        """Take note of a question that the session's handler must answer; give its number in that session."""
        events, handler = self._events_by_session[session], self._roles[session].handler
        events.questions += 1
        events.seen.add("question")
        if handler is not None and handler.allowed is not None:
            events.dues.append((now + handler.after, events.questions))
        return events.questions

    # The caller's next actions.

    def act(self, now: int) -> list[CallerAction]:
        """Give what is to be done now, in order: callbacks, the drive, answers session by session.

        A handler that answers now is a task of its own, which continues when this one waits again.
        """
        actions: list[CallerAction] = []
        while self._registers and self._registers[0][0] <= now:
            _, session, name = self._registers.popleft()
            actions.append(CallerAction(0, "register", name, session=session))
            self._note(actions[-1])
        actions += self._advance_drive(now)
        for session, events in self._events_by_session.items():
            while events.dues and events.dues[0][0] <= now:
                actions.append(CallerAction(0, "answer", events.dues.popleft()[1], session=session))
        return actions

    def _advance_drive(self, now: int) -> list[CallerAction]:
        actions: list[CallerAction] = []
        while self._left:
            action = self._left[0]
            if not self._is_due(action, now):
                self._note_wait_once(action)
                break
            self._left.popleft()
            self._last = now
            if action.kind == "settle":
                continue
            own = self._events_by_session[action.session]
            own.since = len(own.statuses) - 1
            own.seen.clear()
            if action.kind not in _DRIVE_ITEMS_THAT_WAIT:
                own.prompts += action.kind == "prompt"
                if action.kind == "cancel":
                    action = replace(action, misses=explain_idle_cancel(action.value, own.prompts, own.outcomes))
                self._note(action)
                actions.append(action)
        return actions

    def _note_wait_once(self, action: CallerAction) -> None:
        if action is not self._noted and action.kind in _DRIVE_ITEMS_THAT_WAIT and action.line:
            self._noted = action
            self._note(action)

    def _find_due_instant(self, action: CallerAction) -> int | None:
        if action.kind == "wait":
            return self._last + int(action.value)
        return action.at if action.after is None else self._last + action.after

    def _is_due(self, action: CallerAction, now: int) -> bool:
        due = self._find_due_instant(action)
        if due is not None and due > now:
            return False
        if action.kind == "settle":
            return all(len(events.outcomes) >= events.prompts for events in self._events_by_session.values())
        own = self._events_by_session[action.session]
        if action.kind == "turn":
            return action.value in own.outcomes
        if action.kind in REPORTED_EVENT_TEXTS:
            has_turn = len(own.outcomes) < own.prompts
            return action.kind in own.seen or own.is_over or not has_turn
        if action.kind == "background":
            return own.background >= action.value or own.is_over
        return action.kind != "status" or action.value in own.statuses[own.since :] or own.is_over


TEXTS_OF_OTHER_NEEDS = {
    "argv": "start a one-shot agent with the command line of the order: it makes the command line itself",
    "env": "start an agent with the environment and in the folder of the order: it has its own",
    "stdin": "write the prompt of a one-shot agent to its stdin: the prompt is always an argument",
    "pause": "wait between two prompts of a session: it is given all prompts at once, as a batch client is",
    "deny": "deny the agent anything, or let it wait for an answer: the caller allows everything at once",
}
"""The needs that a scenario may have beside `CAPABILITIES`, each with the meaning of its lack."""
