"""What a session's caller holds in its hands: turns to wait for, viewers to read with. Judges nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from pytest_agentproc.supervisor import _intents as to

if TYPE_CHECKING:
    from collections.abc import Generator

    from pytest_agentproc.supervisor._intents import SessionEvent
    from pytest_agentproc.supervisor._session import Session
    from pytest_agentproc.supervisor._turn import TurnResult

__all__ = ["Turn", "Viewer"]


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
        """Wait for the turn's result; what the agent does is never raised.

        The outcomes of a turn, who caused them, and what can be done:

        - `completed`, `failed`: the agent; go on.
        - `cancelled`: the caller's `cancel`; go on. A good result that came all the same is `completed`.
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
        """Cancel this turn, also while it is queued; one that is over stays as it is."""
        self._session.tell(to.CancelIt(self.number))

    def finish(self, result: TurnResult) -> None:
        """Give it its result."""
        self.result = result
        if self._done is not None:
            self._done.set()


class Viewer:
    """An attached reader: an async iterator over everything from the session's beginning, until its end or `detach`."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._next = session.log.begin()
        self._is_attached = True

    def __aiter__(self) -> Viewer:
        return self

    async def __anext__(self) -> SessionEvent:
        while self._is_attached:
            event = self._read()
            if event is not None:
                return event
            if self._session.is_over:
                break
            await self._session.change()
        raise StopAsyncIteration

    def take(self) -> list[SessionEvent]:
        """Give what there is to be seen and was not yet, without waiting."""
        found: list[SessionEvent] = []
        while self._is_attached and (event := self._read()) is not None:
            found.append(event)
        return found

    def _read(self) -> SessionEvent | None:
        found = self._session.log.read(self._next)
        if found is None:
            return None
        event, self._next = found
        return event

    def detach(self) -> None:
        """See no more; whoever waits for the next event is let go at the session's next event."""
        self._is_attached = False
