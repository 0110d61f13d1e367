"""A client of another author under the caller of a scenario. Owns the loop that follows the drive; knows no client.

The session of a client begins in `starting`. It becomes `ready` (`start` has returned) or `failed` (it raised). Then it
changes between `prompting` and `ready`, and ends in `closed`. One prompt is sent at a time, and the others wait here.
That is no ability of the client, so it has no `queue`. Nor is a client told of anything while it is in `start`: the
record notes a cancel or a close that comes then as `untold`, and the scenario does not apply.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import anyio

from pytest_agentproc.errors import AdapterError, UsageError
from pytest_agentproc.events import ClientNotTold, ClientTold, TurnEnded
from pytest_agentproc.subjects._checked_subject import find_adapter_module, unwrap_adapter_error
from pytest_agentproc.subjects._client import Client
from pytest_agentproc.subjects._function import Function, copy_without_scale_tracking
from pytest_agentproc.subjects._limit_statements import require_limits, require_limits_function
from pytest_agentproc.subjects._report_reading import describe_type
from pytest_agentproc.vocabulary import NANOSECONDS_PER_SECOND, SWITCH_BY_ACTION, Caller, CallerRole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from anyio.abc import TaskGroup

    from pytest_agentproc.subjects._function import StatedLimits
    from pytest_agentproc.vocabulary import CallerAction, Dialect, LimitsRequest, RunRequest


ACTIONS_OF_DRIVEN_CLIENTS = ("prompt", "cancel", "close", "permission")
_OUTCOMES_THAT_FAIL_SESSION = ("agent_lost", "spawn_failed")


class Driven(Function):
    """A client that holds sessions, driven through the scenarios of its dialects.

    Some scenarios are not applicable, since no `Client` reports their events. These have agents that get one prompt and
    end, stops of an agent below its session, viewers, hooks, or several sessions at a time. The others have prompts
    that queue, or waits for a background turn or a restart. A turn's `elapsed` is the time that `prompt` takes, if it
    gives none. `prompt` may wait for an agent that still works on a turn whose time is over. A client that reports such
    a turn at once may hold the next prompt back for the same time.

    Args:
        client: a subclass of `Client`; an object of it is made for each session.
        name: what the verdict calls it; None: the name of the class.
        limits: see `Function`, also of what a client does with them in real time; a `restart_backoff` that is not named
            is 0, a new agent for the next prompt, if any; None: a session without its agent is of no more use.
        dialects: see `Function`.
        cancellable: whether its session may be cancelled and then leaves no process; see `Function`. The contexts that
            the client entered are left then; `close` is not called.
        outcomes: see `Function`.
        first_signal: see `Function`.
        cannot: what else it cannot do; see `Function`. Of `CAPABILITIES` a client has prompt, cancel, close and
            permission, those of its `continues`, and `set_mode` and `set_model` if it overrides these methods.

    Raises:
        UsageError: it is no subclass of `Client`, or there is no such limit, dialect or ability.
    """

    def __init__(
        self,
        client: type[Client],
        *,
        name: str | None = None,
        limits: StatedLimits | None = None,
        dialects: Iterable[str | Dialect] | str | None = None,
        cancellable: bool | Literal["task"] | None = None,
        cannot: Iterable[str] = (),
        outcomes: Iterable[str] = (),
        first_signal: str = "TERM",
    ) -> None:
        if not (isinstance(client, type) and issubclass(client, Client)):
            raise UsageError(f"{client!r} is no client", "write Driven(Mine), with `class Mine(Client):`")
        self.client = client
        if callable(limits):
            limits = _set_backoff_to_zero(require_limits_function(limits))
        else:
            limits = {"restart_backoff": 0, **require_limits({} if limits is None else limits)}
        fields: dict[str, Any] = {"name": name or client.__name__, "limits": limits, "dialects": dialects}
        fields |= {"cancellable": cancellable, "cannot": cannot, "outcomes": outcomes, "first_signal": first_signal}
        own = tuple(name for name in SWITCH_BY_ACTION if getattr(client, name) is not getattr(Client, name))
        sessions = (*ACTIONS_OF_DRIVEN_CLIENTS, *own, *client.continues)
        super().__init__(self._run_session, sessions=sessions, runs=False, **fields)
        self._module = find_adapter_module(client)

    async def _run_session(self, order: RunRequest) -> dict[str, Any]:
        return await SessionDriver(order, self.client).run()


def _set_backoff_to_zero(limits: Callable[[LimitsRequest], Any]) -> Callable[[LimitsRequest], Any]:
    """Give a function of limits that states a restart_backoff of 0, unless the given function states another."""

    def get_limits(request: LimitsRequest) -> Any:
        given = limits(request)
        return {"restart_backoff": 0, **given} if isinstance(given, Mapping) else given

    return get_limits


class SessionDriver:
    """One session of an order."""

    def __init__(self, order: RunRequest, client: Callable[..., Client]) -> None:
        self._order = copy_without_scale_tracking(order)
        self._client = client(order, self._ask_permission)
        self._caller = Caller(order.drive, self._record_action, {"": CallerRole(order.handler)})
        self._news = anyio.Event()
        self._prompts: list[str] = []
        self._turns: dict[int, dict[str, Any]] = {}
        self._cancelled: set[int] = set()
        self._answers: dict[int, anyio.Event] = {}
        self._switches: list[tuple[str, str]] = []
        self._switch_lock = anyio.Lock()
        self._is_starting = True
        self._is_started = False
        self._is_closed = False
        self._closed_at: int | None = None

    async def run(self) -> dict[str, Any]:
        """Hold the session, have its client do what the caller wants, and say what its turns came to."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._keep_session_open)
            while True:
                for action in self._caller.act(self._read_clock()):
                    self._do_action(action, group)
                if self._caller.is_done:
                    break
                due = self._caller.deadline
                left = (
                    math.inf if due is None else (due - self._read_clock()) / NANOSECONDS_PER_SECOND / self._order.scale
                )
                with anyio.move_on_after(left):
                    await self._news.wait()
        return {"turns": [self._turns[number] for number in sorted(self._turns)]}

    # Actions of the caller.

    def _do_action(self, action: CallerAction, group: TaskGroup) -> None:
        if action.kind == "prompt":
            self._prompts.append(action.value)
        elif action.kind == "answer":
            self._answers[action.value].set()
        elif action.kind == "close":
            self._is_closed = True
            if self._is_starting:
                self._closed_at = self._read_clock()
                self._order.trace(ClientNotTold(self._read_clock(), "supervisor", "close"))
        elif action.kind == "cancel":
            self._cancel(action.value, group)
        elif action.kind in SWITCH_BY_ACTION:
            self._switches.append((action.kind, action.value))
            if self._is_started:
                group.start_soon(self._switch_settings)
        self._wake_waiting_tasks()

    def _cancel(self, number: int | None, group: TaskGroup) -> None:
        """Cancel a prompt that the client has got; one that waits for the end of `start` is answered here."""
        asked = len(self._turns) + 1
        if number in self._turns or not (self._is_started or self._is_starting):
            return
        if asked <= len(self._prompts):
            self._cancelled.add(asked)
            if self._is_starting:
                self._order.trace(ClientNotTold(self._read_clock(), "supervisor", "cancel"))
        if self._is_started:
            group.start_soon(self._call_client_cancel)

    async def _call_client_cancel(self) -> None:
        """Have the client cancel; the result of the turn decides, even if the cancel fails."""
        try:
            await self._client.cancel()
        except Exception as error:  # noqa: BLE001  # what a cancel raises is ignored, unless the adapter refuses
            if (refusal := unwrap_adapter_error(error)) is not None:
                raise refusal from None

    async def _switch_settings(self) -> None:
        """Have the client switch one setting after the other; a lost agent is the business of the next prompt."""
        async with self._switch_lock:
            while self._switches:
                try:
                    action, name = self._switches.pop(0)
                    await getattr(self._client, action)(name)
                except Exception as error:
                    if (refusal := unwrap_adapter_error(error)) is not None:
                        raise refusal from None
                    if self._client.outcome_of_prompt_error(_unwrap_exception_group(error)) != "agent_lost":
                        raise

    async def _ask_permission(self) -> bool:
        number = self._caller.note_question(self._read_clock())
        answer = self._answers[number] = anyio.Event()
        self._wake_waiting_tasks()
        if self._order.handler is None:
            return False
        await answer.wait()
        return self._order.handler.allowed is True

    # Actions of the session.

    async def _keep_session_open(self) -> None:
        """Hold the session open from its start to the caller's close; that the agent is lost by then is no news."""
        try:
            async with self._client.stack:
                await self._start_client()
                self._is_started = True
                self._notify_caller("status", None, "ready")
                await self._run_turns_until_close()
                await self._client.close()
        except Exception as error:
            if (refusal := unwrap_adapter_error(error)) is not None:
                raise refusal from None
            if not self._is_started:
                await self._fail_all_prompts(_unwrap_exception_group(error))
            elif self._client.outcome_of_prompt_error(_unwrap_exception_group(error)) != "agent_lost":
                raise
        while len(self._turns) < len(self._prompts):
            self._finish_turn(len(self._turns) + 1, {"outcome": "stopped"})
        self._notify_caller("status", None, "closed")

    async def _start_client(self) -> None:
        """Have the client start; a close that came at this very instant is not too late for it."""
        try:
            await self._client.start()
        finally:
            self._is_starting = False
            if self._closed_at == self._read_clock():
                self._order.trace(ClientTold(self._read_clock(), "supervisor", "close"))

    async def _fail_all_prompts(self, error: Exception) -> None:
        """Answer every prompt with the error that kept the session from its start."""
        outcome = self._client.outcome_of_start_error(error)
        self._notify_caller("status", None, "failed")
        while not self._is_closed:
            while len(self._turns) < len(self._prompts):
                self._finish_turn(len(self._turns) + 1, {"outcome": outcome, "error": str(error)})
            await self._news.wait()

    async def _run_turns_until_close(self) -> None:
        """Send one prompt after the other until the session is closed."""
        while not self._is_closed:
            number = len(self._turns) + 1
            if self._switches or self._switch_lock.locked():
                await self._switch_settings()
            elif number > len(self._prompts):
                await self._news.wait()
            elif number in self._cancelled:
                self._finish_turn(number, {"outcome": "cancelled"})
            else:
                await self._run_turn(number)

    async def _run_turn(self, number: int) -> None:
        start = self._read_clock()
        self._notify_caller("status", None, "prompting")
        fields: dict[str, Any] = {"outcome": "stopped"}

        async def send_prompt() -> None:
            try:
                given = await self._client.prompt(self._prompts[number - 1])
                fields.update(_require_answer_mapping(given))
            except Exception as raised:  # noqa: BLE001  # which of them are an outcome, the client says
                if (refusal := unwrap_adapter_error(raised)) is not None:
                    raise refusal from None
                error = _unwrap_exception_group(raised)
                fields.update(outcome=self._client.outcome_of_prompt_error(error), error=str(error))
            turn.cancel_scope.cancel()

        async with anyio.create_task_group() as turn:
            turn.start_soon(send_prompt)
            while not self._is_closed:
                await self._news.wait()
            turn.cancel_scope.cancel()
        if fields["outcome"] == "failed" and number in self._cancelled:
            fields["outcome"] = "cancelled"
        self._finish_turn(
            number, {"elapsed": (self._read_clock() - start) / NANOSECONDS_PER_SECOND / self._order.scale, **fields}
        )
        self._notify_caller("status", None, "failed" if fields["outcome"] in _OUTCOMES_THAT_FAIL_SESSION else "ready")

    # Reports to the caller and the record.

    def _finish_turn(self, number: int, report: dict[str, Any]) -> None:
        self._turns[number] = report
        self._order.trace(TurnEnded(self._read_clock(), "supervisor", number, str(report["outcome"])))
        self._notify_caller("outcome", number, str(report["outcome"]))

    def _notify_caller(self, kind: str, turn: int | None, text: str) -> None:
        self._caller.note_event(kind, turn, text)
        self._wake_waiting_tasks()

    def _wake_waiting_tasks(self) -> None:
        self._news.set()
        self._news = anyio.Event()

    def _read_clock(self) -> int:
        return int(self._order.clock.instant())

    def _record_action(self, action: CallerAction) -> None:
        self._order.trace(action.make_event(self._read_clock()))


def _require_answer_mapping(given: Any) -> Mapping[str, Any]:
    if isinstance(given, str):
        return {"outcome": given}
    if isinstance(given, Mapping):
        return given
    raise AdapterError(
        f"its prompt gave {describe_type(given)}\ngive the name of an outcome, or a mapping of RunReport fields"
    )


def _unwrap_exception_group(error: Exception) -> Exception:
    """Give what a task group, of a client's own or one that it holds, has wrapped: a group of one says nothing else."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
