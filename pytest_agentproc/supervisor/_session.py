"""A session as its caller sees it: open it, prompt, wait, view, stop. Owns no judgement."""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from pytest_agentproc.clock import SystemClock, current_clock
from pytest_agentproc.errors import UsageError
from pytest_agentproc.foreign import is_exit_of_pytest
from pytest_agentproc.supervisor import _events as machine_events
from pytest_agentproc.supervisor._agent_lifecycle import SessionDeciders, SessionSettings
from pytest_agentproc.supervisor._conversation import Conversation
from pytest_agentproc.supervisor._events import SessionEvent, TurnResult
from pytest_agentproc.supervisor._router import MAX_KEPT_EVENT_CHARS, Transcript, count_result_characters
from pytest_agentproc.supervisor._session_driver import CallbackRunner, MissingWakeup, SessionDriver
from pytest_agentproc.supervisor._spawn import check_command, make_spawner
from pytest_agentproc.supervisor.dialects import Setting
from pytest_agentproc.tree import LoopWakeup
from pytest_agentproc.vocabulary import DIALECTS, SWITCH_BY_ACTION, ContinuedSession, Dialect, Outcome, Policy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine, Generator, Mapping, Sequence

    from anyio.abc import TaskGroup

    from pytest_agentproc.clock import Clock
    from pytest_agentproc.events import Trace
    from pytest_agentproc.supervisor.dialects import Hook, Question


class Turn:
    """One prompt, from the moment at which it was asked.

    `await turn` and `await turn.outcome()` give its result. Cancelling who waits cancels the waiting, not the turn.
    `result` is None until there is one.
    """

    def __init__(self, session: Session, number: int) -> None:
        self.number = number
        self.result: TurnResult | None = None
        self._session = session
        self._done: anyio.Event | None = None

    async def outcome(self) -> TurnResult:
        """Wait for the turn's result; it never raises for the agent's behaviour.

        The outcomes of a turn, who caused them, and what can be done:

        - `completed`, `failed`: the agent; prompt again.
        - `cancelled`: the caller's `cancel`; prompt again. A good result that came all the same is `completed`.
        - `timed_out`, `inactive`, `stalled`, `overran`: a limit of the policy; the turn was cancelled, the agent lives
          and the next prompt can be asked at once.
        - `stopped`: the caller's `stop` or `close`.
        - `agent_lost`, `input_failed`, `protocol_error`: the agent died, would not be talked to, or printed what is no
          line; a new one is started, and the prompt can be asked again if asking twice does no harm.
        - `spawn_failed`, `handshake_failed`: the session has failed; see `error`, and open another one.
        """
        if self._done is None:
            self._done = anyio.Event()
            if self.result is not None:
                self._done.set()
        await self._done.wait()
        assert self.result is not None
        return self.result

    def __await__(self) -> Generator[object, None, TurnResult]:
        return self.outcome().__await__()

    def cancel(self) -> None:
        """Cancel this turn, also while it is queued. A turn that is over stays as it is."""
        self._session.send_intent(machine_events.CancelTurn(self.number))

    def set_result(self, result: TurnResult) -> None:
        """Give it its result."""
        self.result = result
        if self._done is not None:
            self._done.set()


class Viewer:
    """An attached reader: an async iterator over everything from the session's beginning, until its end or `detach`."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._next = session.log.find_first_place()
        self._is_attached = True

    def __aiter__(self) -> Viewer:
        return self

    async def __anext__(self) -> SessionEvent:
        while self._is_attached:
            event = self._read_next()
            if event is not None:
                return event
            if self._session.is_over:
                break
            await self._session.wait_for_change()
        raise StopAsyncIteration

    def take(self) -> list[SessionEvent]:
        """Give what there is to be seen and was not yet, without waiting."""
        found: list[SessionEvent] = []
        while self._is_attached and (event := self._read_next()) is not None:
            found.append(event)
        return found

    def _read_next(self) -> SessionEvent | None:
        found = self._session.log.read_event(self._next)
        if found is None:
            return None
        event, self._next = found
        return event

    def detach(self) -> None:
        """See no more events. A caller that waits for the next event returns at the session's next event."""
        self._is_attached = False


PermissionHandler = Callable[["Question"], Awaitable[bool]]
HookCallback = Callable[["Hook"], Awaitable[bool | None]]

_RESULT_AFTER_CLOSE = TurnResult(Outcome.STOPPED, 130, error="the session is closed")
_MAX_WARNINGS = _MAX_WARNING_CHARS = 1000
_EVENT_KINDS_FOR_VIEWERS_ONLY = frozenset(
    {"delta", "late", "message", "past_message", "past_prompt", "prompt", "status", "tool"}
)
"""Events that are for viewers alone."""


class _PendingStop:
    """The caller's word to stop, and how many agents had gone when it was heard."""

    def __init__(self) -> None:
        self.after: int | None = None


class Session:
    """A conversation with one agent after the other; made by `open_session`.

    An agent that cannot start, dies, or refuses before the session's first handshake is not started again. The session
    has then failed: every prompt, later ones too, ends as `spawn_failed` or `handshake_failed`; `error` says
    why. Once a handshake is done, a death is a crash: the prompt in flight is `agent_lost`, queued prompts wait, and a
    new agent starts after `restart_backoff`. A later agent that dies before its own handshake has crashed, too.

    `transcript` holds the events from the beginning, `background` the results of the background turns in their order.
    Each keeps its last 16 Mi characters, and always its last entry. An event counts as 200 characters more than its
    words.
    """

    def __init__(
        self, machine: Conversation, clock: Clock, permission: PermissionHandler | None, log: Transcript | None = None
    ) -> None:
        self.log = log or Transcript()
        self.background: deque[TurnResult] = deque()
        self.is_over = False
        self._machine = machine
        self._clock = clock
        self._permission = permission
        self._driver: SessionDriver
        self._turns: dict[int, Turn] = {}
        self._count = 0
        self._background_size = 0
        self._exits = 0
        self._stops: deque[_PendingStop] = deque()
        self._attendant = CallbackRunner()
        self._callbacks: dict[str, HookCallback] = {}
        self._warnings: deque[str] = deque(maxlen=_MAX_WARNINGS)
        self._changed: anyio.Event | None = None
        self._mute: MissingWakeup | None = None

    # The caller's requests and questions.

    @property
    def transcript(self) -> deque[SessionEvent]:
        """The events from the beginning."""
        return self.log.events

    @property
    def status(self) -> str:
        """Where it stands: starting, ready, prompting, restarting, failed or closed."""
        return "closed" if self.is_over else self._machine.state.value

    @property
    def unacknowledged_cancels(self) -> int:
        """How many cancels the agent has not acknowledged: 0 or 1. Until it has, prompts are queued."""
        return int(self._machine.turns.unacknowledged is not None)

    @property
    def session_id(self) -> str | None:
        """The agent's own name for the conversation, once it told."""
        return self._machine.session_id

    @property
    def error(self) -> str:
        """Why the session has failed: the command, errno or exit code, the end of stderr; "" if it has not."""
        return self._machine.failure[1] if self._machine.failure else ""

    @property
    def tasks(self) -> tuple[str, ...]:
        """The ids of the commands that the agent runs in the background, and whose end it has not told (B2)."""
        return tuple(self._machine.tasks.running)

    @property
    def noise(self) -> int:
        """How many lines of all its agents meant nothing (F2)."""
        return self._machine.noise

    @property
    def stderr_tail(self) -> bytes:
        """The last 64 KiB that the agent wrote to stderr, also after its end, until another one is started (F4)."""
        return self._machine.stderr_tail

    @property
    def agent_status(self) -> int | None:
        """The exit code of the last agent that ended, or minus the number of its signal; None while none has."""
        return self._machine.agent_status

    @property
    def forced(self) -> bool:
        """Whether a signal of the session ended that agent."""
        return self._machine.was_forced

    @property
    def containment(self) -> str | None:
        """Which containment holds the tree of the agent, or held that of the last one; None while none was started."""
        return self._driver.containment

    @property
    def warnings(self) -> tuple[str, ...]:
        """Oddities that changed no outcome, in order: the last 1000, of each the first 1000 characters."""
        return tuple(self._warnings)

    def prompt(self, text: str) -> Turn:
        """Ask the agent; return at once.

        Prompts are delivered in order, one at a time. In a session that has failed or is closed the turn has its
        outcome soon.
        """
        self._count += 1
        turn = self._turns[self._count] = Turn(self, self._count)
        if self.is_over:
            self._turns.pop(turn.number).set_result(_RESULT_AFTER_CLOSE)
        else:
            self.send_intent(machine_events.QueuePrompt(turn.number, text))
        return turn

    def cancel(self) -> None:
        """Cancel the turn in flight; the agent lives on.

        If none is in flight, the first prompt that waits is cancelled, such as one that waits for the handshake.
        """
        flight = self._machine.turns.flight
        self.send_intent(machine_events.CancelTurn(None if flight is None else flight.number))

    def set_mode(self, name: str) -> None:
        """Switch the agent to a mode, such as `plan`, by its own name for it; it lives on, and so does a turn.

        An agent that is not ready yet gets it after its handshake, and so does each later agent. A refusal is a
        warning.

        Raises:
            UsageError: the protocol of the agent's dialect switches no mode.
        """
        self._switch_setting("set_mode", name)

    def set_model(self, name: str) -> None:
        """Switch the agent to a model, by its own name for it; see `set_mode`.

        Raises:
            UsageError: the protocol of the agent's dialect switches no model.
        """
        self._switch_setting("set_model", name)

    def _switch_setting(self, action: str, name: str) -> None:
        what = SWITCH_BY_ACTION[action]
        if not self._machine.can_switch(action):
            known = ", ".join(dialect.name for dialect in DIALECTS.values() if action in dialect.keys)
            raise UsageError(f"the agent's protocol switches no {what}", f"a session has {what}s with {known}")
        self.send_intent(machine_events.SwitchSetting(what, name))

    def stop(self) -> Coroutine[Any, Any, None]:
        """Terminate the agent with its whole tree, and kill it if it does not go within `kill_grace`.

        The call takes effect at once; awaiting it waits until no process of the agent is left. A new agent is started,
        to which the queued prompts go.
        """
        stop = _PendingStop()
        if not self.is_over:
            self._stops.append(stop)
            self.send_intent(machine_events.StopAgent())
        return self._wait_until(lambda: self._is_stopped(stop))

    def close(self) -> Coroutine[Any, Any, None]:
        """End the session: the end of stdin, `close_grace`, TERM, `kill_grace`, KILL.

        The call takes effect at once; awaiting it waits until no process is left.
        """
        self.send_intent(machine_events.CloseSession())
        return self._wait_until(lambda: self.is_over)

    async def _wait_until(self, is_true: Callable[[], bool]) -> None:
        while not is_true():
            await self.wait_for_change()

    def _is_stopped(self, stop: _PendingStop) -> bool:
        is_gone = stop.after is not None and (self._exits > stop.after or not self._machine.has_agent)
        return self.is_over or is_gone

    def on_hook(self, name: str, callback: HookCallback) -> None:
        """Have a hook that `open_session` announced call back, from now on (B4).

        A hook that fired before is not lost. One that may forbid a tool (`PreToolUse`) has been waiting since it fired,
        and the tool with it: the callback forbids it by returning False, or by raising. All others were answered at
        once with nothing, and the callback is called with each that is no older than 5 minutes. In either case the
        callback is called once. If it raises, that is a warning.

        Args:
            name: the hook's, as announced.
            callback: called with the hook, in a task of its own; until `hook_timeout` after a `PreToolUse` fired, when
                the tool is denied and the callback is cancelled.
        """
        self._callbacks[name] = callback
        self.send_intent(machine_events.RegisterHook(name))

    def attach(self) -> Viewer:
        """Attach a viewer, which sees everything from the beginning."""
        return Viewer(self)

    # The methods that the door and the driver call.

    def set_driver(self, driver: SessionDriver) -> None:
        """Get the driver, which in its turn tells this session."""
        self._driver = driver

    def make_missing_wakeup(self, error: OSError) -> MissingWakeup:
        """Give what stands for the session's descriptor, if there is none left."""
        self._mute = MissingWakeup(error)
        self._mute.wake = self._wake_waiters
        return self._mute

    async def run(self) -> None:
        """Drive the session to its end; cancelled, kill and reap whoever lives, at once (T4)."""
        try:
            if self._mute is None:
                await self._clock.drive(self._driver)
            while self._mute is not None and not self._driver.look():
                await self.wait_for_change()
        finally:
            self._driver.abandon()
            self.is_over = True
            while self._turns:
                self._turns.popitem()[1].set_result(_RESULT_AFTER_CLOSE)
            self._wake_waiters()

    async def answer_agent(self, group: TaskGroup) -> None:
        """Have the caller's handler and callbacks answer what the agent asks, each in a task of its own (P7, B4)."""
        while not self.is_over:
            self._attendant.start_waiting(group)
            await self.wait_for_change()

    async def _ask_permission_handler(self, question: Question) -> None:
        assert self._permission is not None
        allowed = False
        try:
            allowed = await self._permission(question) is True
        except Exception as error:  # a handler that breaks refuses, and the agent goes on
            if is_exit_of_pytest(error):
                raise
            self._warn(f"the permission handler broke: {error!r}")
        finally:
            if self._attendant.is_running(question):
                self.send_intent(machine_events.AnswerQuestion(question.id, allowed))

    async def _call_hook(self, hook: Hook) -> None:
        allowed = False
        try:
            allowed = await self._callbacks[hook.callback](hook) is not False
        except Exception as error:  # a callback that breaks forbids, and the agent goes on
            if is_exit_of_pytest(error):
                raise
            self._warn(f"the callback of hook {hook.callback} broke: {error!r}")
        finally:
            if hook.is_question and self._attendant.is_running(hook):
                self.send_intent(machine_events.DecideTool(hook.id, allowed))

    def _warn(self, words: str) -> None:
        self.receive_event(machine_events.SessionEvent(self._clock.instant(), "warning", text=words))

    def send_intent(self, intent: machine_events.CallerIntent) -> None:
        """Pass an intent on."""
        if not self.is_over:
            self._driver.queue_intent(intent)

    async def wait_for_change(self) -> None:
        """Wait for the next event or the end."""
        self._changed = self._changed or anyio.Event()
        await self._changed.wait()

    def receive_event(self, event: SessionEvent) -> None:
        """Take what the driver publishes."""
        self.log.add(event)
        if event.kind not in _EVENT_KINDS_FOR_VIEWERS_ONLY:
            self._handle_event(event)
        self._wake_waiters()

    def _handle_event(self, event: SessionEvent) -> None:
        if event.kind == "warning":
            self._warnings.append(event.text[:_MAX_WARNING_CHARS])
        if event.kind == "outcome" and event.turn in self._turns and event.result is not None:
            self._turns.pop(event.turn).set_result(event.result)
        elif event.kind == "background" and event.result is not None:
            self._keep_background_result(event.result)
        elif event.kind == "exit":
            self._exits += 1
        elif event.kind == "stop" and self._stops:
            self._stops.popleft().after = self._exits
        elif event.kind == "withdrawn":
            self._attendant.cancel(event.question or event.hook)
        elif event.question is not None and self._permission is not None:
            self._attendant.schedule(event.question, partial(self._ask_permission_handler, event.question))
        elif event.hook is not None and event.hook.callback in self._callbacks:
            self._attendant.schedule(event.hook, partial(self._call_hook, event.hook))

    def _keep_background_result(self, result: TurnResult) -> None:
        self.background.append(result)
        self._background_size += count_result_characters(result)
        while self._background_size > MAX_KEPT_EVENT_CHARS and len(self.background) > 1:
            self._background_size -= count_result_characters(self.background.popleft())

    def _wake_waiters(self) -> None:
        changed, self._changed = self._changed, None
        if changed is not None:
            changed.set()


@asynccontextmanager
async def open_session(
    argv: Sequence[str],
    *,
    dialect: str | Dialect,
    mode: str = "",
    policy: Policy | None = None,
    permission: PermissionHandler | None = None,
    hooks: Mapping[str, str] | None = None,
    continues: ContinuedSession | None = None,
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
    clock: Clock | None = None,
    deciders: SessionDeciders | None = None,
    key: str | None = None,
    trace: Trace | None = None,
) -> AsyncIterator[Session]:
    """Open a session; its agent starts at once, and prompts can be asked before it is ready.

    The agent's behaviour is never raised: a turn's outcome or the session's status reports it. The end of the block
    closes the session as `Session.close` does. A cancellation at any point, also during the close, kills the tree and
    reaps the agent before it continues. A death before the first handshake is final; see `Session`.

    Args:
        argv: the agent's command, as the dialect needs it: `pi --mode rpc`; `codex app-server`; an ACP agent's flag;
            `claude --input-format stream-json --output-format stream-json --verbose`, for questions also
            `--permission-prompt-tool stdio`.
        dialect: its wire format: "pi", "acp", "codex" or "claude"; or a `vocabulary.Dialect` of your own.
        mode: the variant of the wire format; "" is the only one that holds sessions.
        policy: the limits; their units are seconds.
        permission: called with each question of the agent; it returns True to allow. Without one all are denied at
            once. It may take `permission_timeout`; one that raises denies.
        hooks: claude's hooks to announce: a name of yours for each, and the event that it hears of: `PreToolUse`,
            `PostToolUse`, `Stop` and so on, for every tool. `Session.on_hook` has it call back.
        continues: the session that an ACP agent or codex opens, also after a restart; None: a new one. claude reads it
            from `argv`: `--resume ID`.
        cwd: where the agent runs; None: here.
        env: its whole environment; None: ours.
        clock: whose time counts; None: the virtual clock that runs this code, or else real time.
        deciders: replaced judgements, for tests of tests.
        key: what makes this session's marks on its prompts unlike any other's; None: something random.
        trace: called with (instant, code, data) for each thing that the supervisor does.

    Raises:
        UsageError: no command that a process can be given, a dialect or mode without sessions, hooks or a session to
            continue in a dialect that has none, or a /proc that shows another pid namespace.
    """
    check_command(argv, cwd, env, 'open_session(["pi", ...])')
    name = _check_dialect(dialect, hooks, continues)
    clock = clock or current_clock() or SystemClock()
    own = uuid.uuid4().hex if key is None else key
    setting = Setting(str(Path.cwd() / (cwd or "")), own, tuple((hooks or {}).items()), continues=continues)
    limits = policy or Policy.for_dialect(name)
    task = SessionSettings(argv, dialect, mode, limits, setting, has_handler=permission is not None)
    chosen_deciders = deciders or SessionDeciders()
    machine = Conversation(task, chosen_deciders)
    session = Session(machine, clock, permission, chosen_deciders.transcript())
    spawn, wakeup = make_spawner(argv, cwd, env, clock), _open_wakeup(session)
    driver = SessionDriver(machine, spawn, wakeup, clock.instant, session.receive_event, trace)
    async with _drive_session(session, driver):
        yield session


def _open_wakeup(session: Session) -> LoopWakeup | MissingWakeup:
    """Give the session its descriptor, or what stands for one if none is left."""
    try:
        return LoopWakeup()
    except OSError as error:
        return session.make_missing_wakeup(error)


def _check_dialect(dialect: str | Dialect, hooks: Mapping[str, str] | None, continues: ContinuedSession | None) -> str:
    """Give the dialect's name, if it has the hooks that are asked for, and opens sessions by name if one is named."""
    name = dialect.name if isinstance(dialect, Dialect) else dialect
    record = dialect if isinstance(dialect, Dialect) else DIALECTS.get(dialect)
    if hooks and (record is None or "hook" not in record.keys):
        raise UsageError(f"there are hooks, but dialect {name!r} has none", 'leave them out, or use "claude"')
    if continues is not None and (record is None or "continues" not in record.keys):
        raise UsageError(
            f"dialect {name!r} continues no session", 'leave continues out, or use "acp", "codex" or "claude"'
        )
    return name


@asynccontextmanager
async def _drive_session(session: Session, driver: SessionDriver) -> AsyncIterator[None]:
    """Drive a session for as long as a block lasts, and close it then."""
    session.set_driver(driver)
    broken: Exception | None = None
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(session.run)
            group.start_soon(session.answer_agent, group)
            try:
                yield
            except Exception as error:  # noqa: BLE001  # it goes on below, as itself and not within a group
                broken = error
            await session.close()
            group.cancel_scope.cancel()
    finally:
        driver.abandon()
    if broken is not None:
        raise broken
