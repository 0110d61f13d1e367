"""The PyPI package agent-client-protocol in the hands of its tests: a client that answers its agent, and its log.

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

__all__ = ["AcpClientHost", "AcpPy"]


class AcpClientHost:
    """The requests of an agent to its client: a permission, two files, a terminal.

    Args:
        acp: the module.
        take: gets in words what it heard.
    """

    def __init__(self, acp: Any, take: Callable[[str], None]) -> None:
        self._acp = acp
        self._take = take
        self.choice: str | None = "allow-once"
        self.files = {"/w/notes.txt": "one\ntwo\n"}

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        """Take an update."""
        self._take(_describe_update(update))

    async def request_permission(self, **_: Any) -> Any:
        """Choose the option, or none."""
        chosen = {"outcome": "selected", "optionId": self.choice}
        return {"outcome": chosen if self.choice else {"outcome": "cancelled"}}

    async def read_text_file(self, path: str, **_: Any) -> Any:
        """Give a file."""
        if path not in self.files:
            raise self._acp.RequestError.resource_not_found(path)
        return {"content": self.files[path]}

    async def write_text_file(self, path: str, content: str, **_: Any) -> Any:
        """Take a file."""
        self.files[path] = content

    async def create_terminal(self, command: str, **_: Any) -> Any:
        """Have a command run."""
        self._take(f"runs {command}")
        return {"terminalId": "t1"}

    async def wait_for_terminal_exit(self, **_: Any) -> Any:
        """Have it end well."""
        return {"exitCode": 0}

    async def terminal_output(self, **_: Any) -> Any:
        """Give its output."""
        return {"output": "built", "truncated": False}

    async def kill_terminal(self, **_: Any) -> Any:
        """End it."""

    async def release_terminal(self, **_: Any) -> Any:
        """Forget it."""
        self._take("releases it")


class AcpPy:
    """The SDK, and one fake for it.

    Args:
        acp: the module.
        fake_agent: makes a fake.
        clock: the virtual clock.
    """

    def __init__(self, acp: Any, fake_agent: Callable[[Any], FakeAgent], clock: VirtualClock) -> None:
        self.acp = acp
        self.clock = clock
        self.given: list[str] = []
        self.host: Any = AcpClientHost(acp, self.take)
        self._fake_agent = fake_agent

    def play_script(self, script: str) -> AcpPy:
        """Have the fake play these steps."""
        steps = textwrap.indent(textwrap.dedent(script).strip(), "  ")
        self.fake = self._fake_agent(f"scenario: an ACP agent\nagent: acp\nscript:\n{steps}\n")
        return self

    @property
    def record(self) -> Record:
        """The actions of the fake."""
        return self.fake.record

    def take(self, words: str) -> None:
        """Keep an update or a question, with its instant."""
        self.given.append(f"{self.clock.now:g} s: {words}")

    def connect(self, caller: Callable[[Any], Awaitable[Any]]) -> list[str]:
        """Have a caller use a connection from the start of the agent to its end."""

        async def whole() -> None:
            async with self.acp.spawn_agent_process(self.host, *self.fake.argv) as (connection, _):
                await caller(connection)

        self.clock.run(whole)
        return self.given

    def talk(self, caller: Callable[[Any, str], Awaitable[Any]]) -> list[str]:
        """Have a caller use a new session."""

        async def whole(connection: Any) -> None:
            await connection.initialize(protocol_version=1)
            session = await connection.new_session(cwd="/w")
            await caller(connection, session.session_id)

        return self.connect(whole)

    async def prompt(self, connection: Any, session: str, text: str = "hi") -> None:
        """Ask, and keep why the turn ended."""
        response = await connection.prompt(session_id=session, prompt=[self.acp.text_block(text)])
        self.take(response.stop_reason)

    def ask(self) -> list[str]:
        """Ask once, in a new session."""
        return self.talk(self.prompt)

    def close_after(self, script: str) -> list[tuple[int, str]]:
        """Open and close a session; give what ended the agent, and `returns` with the instant of the close."""

        async def nothing(_connection: Any, _session: str) -> None:
            pass

        self.play_script(script).talk(nothing)
        return [*list_end_events(self.record), (self.clock.now_ns, "returns")]


def _describe_update(update: Any) -> str:
    """Say the content of an update; one without words of its own is its name."""
    kind = update.session_update
    if kind == "plan":
        return "plan: " + ", ".join(f"{entry.content} {entry.status}" for entry in update.entries)
    if kind.startswith("tool_call"):
        return f"{update.kind} {update.title}: {update.status}"
    verbs = {"agent_message_chunk": "says", "agent_thought_chunk": "thinks", "user_message_chunk": "was asked"}
    return f"{verbs[kind]} {update.content.text}" if kind in verbs else str(kind)
