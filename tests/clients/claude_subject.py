"""The PyPI package claude-agent-sdk as a subject: a `ClaudeSDKClient`, one prompt at a time. Judges nothing."""

from __future__ import annotations

from contextlib import asynccontextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pytest_agentproc.subjects import Function
from tests.clients.driven import Driven

if TYPE_CHECKING:
    from pytest_agentproc.vocabulary import Order

sdk: Any = import_module("claude_agent_sdk")
# Its own limits: a control request's, those of its close (stdin, TERM, KILL), its buffer; it has none on silence.
LIMITS = {"handshake_timeout": 60, "cancel_grace": 60, "close_grace": 5, "kill_grace": 5, "max_line_bytes": 1024**2}


async def claude_agent_sdk(order: Order) -> Any:
    """Hold one session."""
    driven = Driven(order, unstartable=(sdk.CLINotFoundError, sdk.CLIConnectionError))

    async def permit(_name: str, given: Any, _context: Any) -> Any:
        is_allowed = await driven.permit()
        return sdk.PermissionResultAllow(updated_input=given) if is_allowed else sdk.PermissionResultDeny(message="no")

    @asynccontextmanager
    async def opens() -> Any:
        options = {"cli_path": order.argv[0], "env": dict(order.env), "cwd": order.cwd, "can_use_tool": permit}
        async with sdk.ClaudeSDKClient(sdk.ClaudeAgentOptions(**options)) as client:

            async def ask(text: str) -> Any:
                await client.query(text)
                async for one in client.receive_response():
                    if isinstance(one, sdk.ResultMessage):
                        return {"outcome": "failed" if one.is_error else "completed", "text": one.result or ""}
                raise EOFError

            yield ask, client.interrupt

    return await driven.run(opens)


SUBJECT = Function(claude_agent_sdk, name="claude-agent-sdk", limits=LIMITS, sessions=True, dialects=["claude"])
