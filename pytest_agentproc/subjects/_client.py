"""A client that holds a session with an agent, as its author shows it to the kit. Owns the methods; drives none."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

from pytest_agentproc.subjects._checked_subject import is_spawn_error

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from contextlib import AbstractAsyncContextManager

    from pytest_agentproc.vocabulary import RunRequest


_ContextValue = TypeVar("_ContextValue")


class Client:
    """One session with one agent, to be subclassed: `prompt` at least, and the client's other abilities.

    A method calls the client under test and nothing more: no limit, no retry, no other help for the client.
    A method that raises `Declined("reason")` before an agent is started makes the scenario not applicable.

    `Driven` calls `start`, then `prompt` for one prompt after the other, `cancel` beside it, and `close`; `start` and
    `close` run in one task. In virtual time all of them may wait for anything that an event loop can wait for.

    Args:
        order: the agent to be started (`argv`, `env`, `cwd`), and the limits.
        permit: has the caller answer a question.
    """

    continues: tuple[str, ...] = ()
    """How its `start` opens a session that `order.continues` names: `load`, `resume`."""

    def __init__(self, order: RunRequest, permit: Callable[[], Awaitable[bool]]) -> None:
        self.order = order
        self.ask_permission = permit
        """Wait for the caller's answer to a question of the agent's: whether it may. Without a handler it may not."""
        self.stack = AsyncExitStack()

    async def enter_context(self, context: AbstractAsyncContextManager[_ContextValue]) -> _ContextValue:
        """Enter a context in `start`; it is left after `close`, or when `start` has raised."""
        return await self.stack.enter_async_context(context)

    async def start(self) -> None:
        """Start the agent and shake hands with it."""

    async def prompt(self, text: str) -> Mapping[str, Any] | str:
        """Send a prompt, wait for the end of the turn, and give its outcome, or a mapping of `RunReport` fields.

        If the session is closed meanwhile, it is cancelled: the turn is `stopped` then. `failed` after a cancel counts
        as `cancelled`. An exception goes to `outcome_of_prompt_error`.
        """
        raise NotImplementedError

    async def cancel(self) -> None:
        """Cancel the turn in flight, if there is one; an exception of this is ignored: the turn has the outcome."""

    async def set_mode(self, name: str) -> None:
        """Switch the agent to a mode, also within a turn; if a subclass does not override this, it has no such action.

        The next prompt waits for its return. If it raises, see `outcome_of_prompt_error`.
        """
        raise NotImplementedError

    async def set_model(self, name: str) -> None:
        """Switch the agent to a model; see `set_mode`."""
        raise NotImplementedError

    async def close(self) -> None:
        """End the agent, unless a held context does so.

        If either raises, the client has crashed, unless `outcome_of_prompt_error` treats it as a lost agent: then there
        is no agent to end.
        """

    def outcome_of_start_error(self, error: Exception) -> str:
        """Give the outcome of every prompt where `start` raised: `spawn_failed` or `handshake_failed`.

        If a subclass does not override this, only a missing program and a lost connection are outcomes. Any other
        exception is a crash of the client, or a mistake in the adapter; see `Function`.
        """
        return _choose_outcome(error, "handshake_failed")

    def outcome_of_prompt_error(self, error: Exception) -> str:
        """Give the outcome of a turn whose `prompt` raised: `agent_lost` if the connection is lost; else see above.

        A client that starts its agent with the prompt has `spawn_failed` if the program is missing.
        """
        return _choose_outcome(error, "agent_lost")


def _choose_outcome(error: Exception, outcome: str) -> str:
    if isinstance(error, FileNotFoundError | PermissionError) or is_spawn_error(error):
        return "spawn_failed"
    if isinstance(error, OSError | EOFError | anyio.BrokenResourceError | anyio.EndOfStream):
        return outcome
    raise error
