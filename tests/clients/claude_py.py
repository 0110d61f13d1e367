"""The PyPI package claude-agent-sdk in the hands of its tests: its input, and its output in words.

Asserts nothing. An instant is in seconds of the test's virtual clock.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from tests.clients.endings import list_end_events

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pytest_agentproc.clock import VirtualClock
    from pytest_agentproc.harness import FakeAgent
    from pytest_agentproc.record import Record

__all__ = ["ClaudePy"]


class ClaudePy:
    """The SDK, and one fake for it.

    Args:
        sdk: the module.
        fake_agent: makes a fake.
        clock: the virtual clock.
    """

    def __init__(self, sdk: Any, fake_agent: Callable[[Any], FakeAgent], clock: VirtualClock) -> None:
        self.sdk = sdk
        self.clock = clock
        self.given: list[str] = []
        self.backend = "asyncio"
        self._fake_agent = fake_agent

    def play_script(self, script: str) -> ClaudePy:
        """Have the fake play these steps."""
        steps = textwrap.indent(textwrap.dedent(script).strip(), "  ")
        self.fake = self._fake_agent(
            f"scenario: a claude\nagent: {{dialect: claude, mode: session}}\nscript:\n{steps}\n"
        )
        return self

    @property
    def record(self) -> Record:
        """The actions of the fake."""
        return self.fake.record

    def build_options(self, **more: Any) -> Any:
        """Make the SDK's options, with the fake as its CLI."""
        return self.sdk.ClaudeAgentOptions(cli_path=self.fake.path, **more)

    def run_query(self, prompt: str = "hi", **options: Any) -> list[str]:
        """Read `query()` to its end; its messages are `given` also if it raises."""

        async def host() -> None:
            async for message in self.sdk.query(prompt=prompt, options=self.build_options(**options)):
                self.take(message)

        self.clock.run(host, backend=self.backend)
        return self.given

    def talk(self, host: Callable[[Any], Awaitable[Any]], **options: Any) -> list[str]:
        """Have a caller use a `ClaudeSDKClient` from its opening to its close."""

        async def whole() -> None:
            async with self.sdk.ClaudeSDKClient(self.build_options(**options)) as client:
                await host(client)

        self.clock.run(whole, backend=self.backend)
        return self.given

    def close_after(self, script: str, backend: str) -> list[tuple[int, str]]:
        """Open and close a client; give what ended the agent, and `returns` with the instant at which the close did."""

        async def nothing(_client: Any) -> None:
            pass

        self.backend = backend
        self.play_script(script).talk(nothing)
        return [*list_end_events(self.record), (self.clock.now_ns, "returns")]

    async def run_turn(self, client: Any, prompt: str) -> None:
        """Ask, and take what `receive_response()` gives."""
        await client.query(prompt)
        async for message in client.receive_response():
            self.take(message)

    def take(self, message: Any) -> None:
        """Keep in words the SDK's messages, with their instants."""
        self.given += [f"{self.clock.now:g} s: {words}" for words in _describe_message(message)]


def _describe_message(message: Any) -> list[str]:
    """Say the content of a message, each block for itself; a message of the system is its subtype."""
    kind = type(message).__name__
    if kind == "ResultMessage":
        return [f"{'error' if message.is_error else 'result'} {message.result or message.subtype}"]
    if kind == "StreamEvent":
        delta = message.event.get("delta", {})
        return [f"delta {delta['text']}"] if "text" in delta else []
    if kind not in ("AssistantMessage", "UserMessage"):
        return [str(message.subtype)]
    inner = f" of {message.parent_tool_use_id}" if message.parent_tool_use_id else ""
    blocks = [message.content] if isinstance(message.content, str) else message.content
    return [_describe_block(block) + inner for block in blocks]


def _describe_block(block: Any) -> str:
    kind = type(block).__name__
    if kind == "ThinkingBlock":
        return f"thinks {block.thinking}"
    if kind == "ToolUseBlock":
        return f"tool {block.name}"
    if kind == "ToolResultBlock":
        return f"tool {'fails' if block.is_error else 'ends'} {block.content}"
    return f"says {getattr(block, 'text', block)}"
