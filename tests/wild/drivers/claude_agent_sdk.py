"""The client of the Python SDK of Claude Code, for one session."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
serve = import_module("acp_front").serve
sdk = import_module("claude_agent_sdk")
client = sdk.ClaudeSDKClient(sdk.ClaudeAgentOptions())
connected: list[object] = []


async def _ask(prompt: str) -> tuple[bool, str]:
    try:
        if not connected:
            await client.connect()
            connected.append(client)
        await client.query(prompt)
        async for message in client.receive_response():
            if isinstance(message, sdk.ResultMessage):
                return not message.is_error, message.result or ""
    except Exception as error:  # noqa: BLE001  # whatever it is, the turn has no answer
        return False, str(error)
    return False, "the stream has ended without a result"


serve(_ask, client.disconnect)
