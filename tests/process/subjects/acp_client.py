"""A client of ACP, as short as it can be, for tests of what the kit says to a client. Knows no scenario."""

from __future__ import annotations

import json
from typing import Any

import anyio

from pytest_agentproc.subjects import Client


class Acp(Client):
    """A client without limits of its own: it sends each cancel, and waits for its caller as long as need be.

    Its fault: it reads nothing while it waits for its caller.
    """

    calls = 0

    async def start(self) -> None:
        """Start the agent, and make a session."""
        order = self.order
        self.agent = await self.enter_context(
            await anyio.open_process(order.argv, env=order.env, start_new_session=True)
        )
        self.lines = self.read_lines()
        await self.call("initialize", protocolVersion=1, clientCapabilities={})
        self.session = (await self.call("session/new", cwd="/", mcpServers=[]))["sessionId"]

    async def read_lines(self) -> Any:
        """Give each message of the agent."""
        assert self.agent.stdout is not None
        rest = b""
        while True:
            *lines, rest = (rest + await self.agent.stdout.receive()).split(b"\n")
            for line in lines:
                yield json.loads(line)

    async def call(self, method: str, **params: Any) -> Any:
        """Call a method and wait for its result; meanwhile take text, and ask the caller what the agent asks."""
        self.calls = number = self.calls + 1
        await self.send(id=number, method=method, params=params)
        self.text = ""
        async for message in self.lines:
            match message:
                case {"method": "session/update", "params": {"update": {"content": {"text": str(text)}}}}:
                    self.text += text
                case {"method": "session/request_permission", "params": {"options": options}, "id": question}:
                    kind = "allow_once" if await self.ask_permission() else "reject_once"
                    [choice] = [option["optionId"] for option in options if option["kind"] == kind]
                    await self.send(id=question, result={"outcome": {"outcome": "selected", "optionId": choice}})
                case {"id": int(answered), "result": result} if answered == number:
                    return result
        raise EOFError

    async def prompt(self, text: str) -> Any:
        """Ask."""
        end = await self.call("session/prompt", sessionId=self.session, prompt=[{"type": "text", "text": text}])
        return {"outcome": "cancelled" if end["stopReason"] == "cancelled" else "completed", "text": self.text}

    async def cancel(self) -> None:
        """Cancel."""
        await self.send(method="session/cancel", params={"sessionId": self.session})

    async def close(self) -> None:
        """Have the agent read the end of its stdin."""
        assert self.agent.stdin is not None
        await self.agent.stdin.aclose()

    async def send(self, **message: Any) -> None:
        """Write a message."""
        assert self.agent.stdin is not None
        await self.agent.stdin.send(f"{json.dumps({'jsonrpc': '2.0', **message})}\n".encode())
