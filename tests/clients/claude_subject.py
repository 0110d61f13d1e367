"""The PyPI package claude-agent-sdk as a subject: a `ClaudeSDKClient`, one prompt at a time. Judges nothing."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pytest_agentproc.subjects import Client, Driven

sdk: Any = import_module("claude_agent_sdk")
# Its own limits: a control request's, those of its close (stdin, TERM, KILL), its buffer; it has none on silence.
LIMITS = {"handshake_timeout": 60, "cancel_grace": 60, "close_grace": 5, "kill_grace": 5, "max_line_bytes": 1024**2}


class Claude(Client):  # noqa: D101
    async def start(self) -> None:  # noqa: D102
        order = self.order
        options = {"cli_path": order.argv[0], "env": dict(order.env), "cwd": order.cwd, "can_use_tool": self.answer}
        self.client = await self.enter_context(sdk.ClaudeSDKClient(sdk.ClaudeAgentOptions(**options)))

    async def prompt(self, text: str) -> Any:  # noqa: D102
        await self.client.query(text)
        async for message in self.client.receive_response():
            if isinstance(message, sdk.ResultMessage):
                return {"outcome": "failed" if message.is_error else "completed", "text": message.result or ""}
        raise EOFError

    async def cancel(self) -> None:  # noqa: D102
        await self.client.interrupt()

    async def answer(self, _name: str, given: Any, _context: Any) -> Any:  # noqa: D102
        is_allowed = await self.ask_permission()
        return sdk.PermissionResultAllow(updated_input=given) if is_allowed else sdk.PermissionResultDeny(message="no")

    def outcome_of_start_error(self, error: Exception) -> str:  # noqa: D102
        is_absent = isinstance(error, (sdk.CLINotFoundError, sdk.CLIConnectionError))
        return "spawn_failed" if is_absent else "handshake_failed"

    def outcome_of_prompt_error(self, error: Exception) -> str:  # noqa: D102
        return "protocol_error" if "JSON" in str(error) else "agent_lost"


SUBJECT = Driven(Claude, name="claude-agent-sdk", limits=LIMITS, dialects=["claude"])
