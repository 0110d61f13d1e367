"""The PyPI package agent-client-protocol as a subject: one session, one prompt at a time. Judges nothing."""

from __future__ import annotations

from contextlib import asynccontextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pytest_agentproc.subjects import Function
from tests.clients.driven import Driven

if TYPE_CHECKING:
    from pytest_agentproc.vocabulary import Order

acp: Any = import_module("acp")


class Client(Driven):  # noqa: D101  # what the agent may ask of its client, and say to it
    said = ""

    async def session_update(self, update: Any, **_: Any) -> None:  # noqa: D102
        self.said += update.content.text if update.session_update == "agent_message_chunk" else ""

    async def request_permission(self, options: Any, **_: Any) -> Any:  # noqa: D102
        kind = "allow" if await self.permit() else "reject"
        return {"outcome": {"outcome": "selected", "optionId": next(o.option_id for o in options if kind in o.kind)}}


async def agent_client_protocol(order: Order) -> Any:
    """Hold one session."""
    client = Client(order, unstartable=(FileNotFoundError, PermissionError), failures=acp.RequestError)

    @asynccontextmanager
    async def opens() -> Any:
        async with acp.spawn_agent_process(client, *order.argv, env=dict(order.env), cwd=order.cwd) as (agent, _):
            await agent.initialize(protocol_version=1)
            session = (await agent.new_session(cwd=order.cwd)).session_id

            async def ask(text: str) -> Any:
                client.said = ""
                ended = await agent.prompt(session_id=session, prompt=[acp.text_block(text)])
                outcome = {"end_turn": "completed", "cancelled": "cancelled"}.get(ended.stop_reason, "failed")
                return {"outcome": outcome, "text": client.said, "stop_reason": ended.stop_reason}

            yield ask, lambda: agent.cancel(session_id=session)

    return await client.run(opens)


# Its own limits: from the end of stdin to TERM, and to KILL; it has none on silence, a turn, a cancel or a handshake.
LIMITS = {"close_grace": 2, "kill_grace": 2}
SUBJECT = Function(agent_client_protocol, name="agent-client-protocol", limits=LIMITS, sessions=True, dialects=["acp"])
