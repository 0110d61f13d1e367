"""An ACP agent that holds one session of a Python program: the kit is its editor, and prompts one at a time."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ["serve"]


def serve(ask: Callable[[str], Awaitable[tuple[bool, str]]], close: Callable[[], Awaitable[None]]) -> None:
    """Read requests until stdin ends; `ask` gives whether the answer is good, and its text."""
    asyncio.run(_serve(ask, close))


async def _serve(ask: Callable[[str], Awaitable[tuple[bool, str]]], close: Callable[[], Awaitable[None]]) -> None:
    reader = asyncio.StreamReader(limit=1 << 24)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    answers: dict[str, Any] = {"initialize": {"protocolVersion": 1}, "session/new": {"sessionId": "1"}}
    while line := await reader.readline():
        message = json.loads(line)
        if message.get("method") == "session/prompt":
            is_good, text = await ask(message["params"]["prompt"][0]["text"])
            update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
            _send({"method": "session/update", "params": {"sessionId": "1", "update": update}})
            end = {"result": {"stopReason": "end_turn"}} if is_good else {"error": {"code": 1, "message": text}}
            _send({"id": message["id"], **end})
        elif "id" in message:
            _send({"id": message["id"], "result": answers.get(message["method"], {})})
    await close()


def _send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()
