"""A foreign session under the caller of a scenario. Owns the loop that does what the drive wants; knows no client.

A client is opened by an async context manager, which gives two async functions: one asks, and returns what the turn
came to as a mapping of an answer's fields; one cancels. One prompt is asked at a time: the others wait for it here.
What a client raises where it opens, asks and cancels is an outcome; where it closes, it is an adapter error.
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import anyio

from pytest_agentproc.vocabulary import Caller, Role

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from contextlib import AbstractAsyncContextManager

    from pytest_agentproc.vocabulary import Deed, Order

    Raised = type[Exception] | tuple[type[Exception], ...]
    Ask = Callable[[str], Awaitable[Mapping[str, Any]]]
    Cancel = Callable[[], Awaitable[Any]]
    Opens = Callable[[], AbstractAsyncContextManager[tuple[Ask, Cancel]]]

__all__ = ["DEEDS", "Driven"]

DEEDS = frozenset({"prompt", "cancel", "close", "wait", "turn", "status"})
"""What can be done for a caller.

Not `stop` (an agent under a session that lives on), no viewers and no hooks; and nobody is told of a background turn.
"""


class Driven:
    """One session of an order.

    Args:
        order: the agent, the limits, and the drive.
        unstartable: what is raised where there is no agent to be started.
        failures: what is raised where a turn fails, and the agent lives.
    """

    def __init__(self, order: Order, unstartable: Raised, failures: Raised = ()) -> None:
        self._order = order
        self._unstartable = unstartable
        self._failures = failures
        self._caller = Caller(order.drive, self._note, {"": Role(order.handler)})
        self._news = anyio.Event()
        self._prompts: list[str] = []
        self._turns: dict[int, dict[str, Any]] = {}
        self._cancelled: set[int] = set()
        self._answers: dict[int, anyio.Event] = {}
        self._cancels: Cancel | None = None
        self._is_closed = False

    async def run(self, opens: Opens) -> dict[str, Any]:
        """Open the session, drive it, close it, and say what its turns came to."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._hold, opens())
            while True:
                for deed in self._caller.act(self._now()):
                    self._do(deed, group)
                if self._caller.is_done:
                    break
                due = self._caller.deadline
                with anyio.move_on_after(math.inf if due is None else (due - self._now()) / 1e9 / self._order.scale):
                    await self._news.wait()
        return {"turns": [self._turns[number] for number in sorted(self._turns)]}

    async def permit(self) -> bool:
        """Have the caller answer a question of the agent's, whenever that is."""
        number = self._caller.saw_question(self._now())
        answer = self._answers[number] = anyio.Event()
        self._ring()
        if self._order.handler is None:
            return False
        await answer.wait()
        return self._order.handler.allowed is True

    def _do(self, deed: Deed, group: Any) -> None:
        if deed.kind == "prompt":
            self._prompts.append(deed.value)
        elif deed.kind == "answer":
            self._answers[deed.value].set()
        elif deed.kind == "close":
            self._is_closed = True
        elif deed.kind == "cancel":
            self._cancel(deed.value, group)
        self._ring()

    def _cancel(self, number: int | None, group: Any) -> None:
        """Drop a prompt that waits; else have the client cancel, and whatever that does in vain is its own."""
        asked = len(self._turns) + 1
        waits = self._cancels is None or (number or asked) > asked
        if number in self._turns or (number is None and waits):
            return
        if asked <= len(self._prompts):
            self._cancelled.add(number or asked)
        if not waits:
            group.start_soon(self._through)

    async def _through(self) -> None:
        """Have the client cancel; what becomes of the turn is the turn's to say, also where this fails."""
        assert self._cancels is not None
        with suppress(Exception):
            await self._cancels()

    async def _hold(self, opening: AbstractAsyncContextManager[tuple[Ask, Cancel]]) -> None:
        """Hold the session open from its start to the caller's close."""
        is_open = False
        try:
            async with opening as (ask, self._cancels):
                is_open = True
                self._hear("status", None, "ready")
                await self._serve(ask)
        except Exception as error:
            if is_open:
                raise
            await self._give_up("spawn_failed" if isinstance(error, self._unstartable) else "handshake_failed")
        while len(self._turns) < len(self._prompts):
            self._end(len(self._turns) + 1, {"outcome": "stopped"})
        self._hear("status", None, "closed")

    async def _serve(self, ask: Ask) -> None:
        """Ask one prompt after the other until the session is closed; what is open then is stopped."""
        while not self._is_closed:
            number = len(self._turns) + 1
            if number > len(self._prompts):
                await self._wait()
            elif number in self._cancelled:
                self._end(number, {"outcome": "cancelled"})
            else:
                await self._turn(ask, number)

    async def _turn(self, asks: Ask, number: int) -> None:
        start = self._now()
        self._hear("status", None, "prompting")
        said: dict[str, Any] = {"outcome": "stopped"}

        async def ask() -> None:
            try:
                said.update(await asks(self._prompts[number - 1]))
            except Exception as error:  # noqa: BLE001  # a client has no class of its own for the loss of an agent
                said.update(outcome=self._lost(error), error=str(error))
            turn.cancel_scope.cancel()

        async with anyio.create_task_group() as turn:
            turn.start_soon(ask)
            while not self._is_closed:
                await self._wait()
            turn.cancel_scope.cancel()
        if said["outcome"] == "failed" and number in self._cancelled:
            said["outcome"] = "cancelled"
        self._end(number, {**said, "elapsed": (self._now() - start) / 1e9 / self._order.scale})
        self._hear("status", None, "failed" if said["outcome"] == "agent_lost" else "ready")

    def _lost(self, error: Exception) -> str:
        if isinstance(error, self._failures):
            return "failed"
        return "protocol_error" if "JSON" in str(error) else "agent_lost"

    async def _give_up(self, outcome: str) -> None:
        while not self._is_closed:
            while len(self._turns) < len(self._prompts):
                self._end(len(self._turns) + 1, {"outcome": outcome})
            await self._wait()

    def _end(self, number: int, said: dict[str, Any]) -> None:
        self._turns[number] = said
        self._order.trace(
            self._now(), "m", {"process": "supervisor", "event": "outcome", "turn": number, "text": said["outcome"]}
        )
        self._hear("outcome", number, str(said["outcome"]))

    def _hear(self, kind: str, turn: int | None, text: str) -> None:
        self._caller.hear(kind, turn, text)
        self._ring()

    async def _wait(self) -> None:
        await self._news.wait()

    def _ring(self) -> None:
        self._news.set()
        self._news = anyio.Event()

    def _now(self) -> int:
        return int(self._order.clock.instant())

    def _note(self, deed: Deed) -> None:
        self._order.trace(self._order.clock.instant(), "m", deed.show())
