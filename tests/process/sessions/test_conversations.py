"""Fakes that hold a conversation, as processes: a client written by hand prompts, cancels and closes stdin."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import anyio

from tests.process.stand import build_scenario

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_agentproc.harness import ScenarioRunner
    from tests.process.stand import Stand


class Client:
    """A supervisor's use of an agent's pipes."""

    def __init__(self, process: anyio.abc.Process) -> None:
        self._process = process
        self._data = b""
        self.events: list[dict[str, Any]] = []

    async def send(self, **request: Any) -> None:
        """Write one request."""
        assert self._process.stdin is not None
        await self._process.stdin.send(json.dumps(request).encode() + b"\n")

    async def read(self, is_last: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Read until the event that is waited for, and give it."""
        assert self._process.stdout is not None
        while True:
            line, end, rest = self._data.partition(b"\n")
            if not end:
                self._data += await self._process.stdout.receive()
                continue
            self._data = rest
            self.events.append(json.loads(line))
            if is_last(self.events[-1]):
                return self.events[-1]

    async def close(self) -> int:
        """End stdin, and give the exit code."""
        assert self._process.stdin is not None
        await self._process.stdin.aclose()
        return await self._process.wait()


PI = """
- when: cancel
  do: [{silence: 2s}, {acknowledge: cancel}]
- wait_for: prompt 1
- silence: 10s
- answer: first
- wait_for: prompt 2
"""


async def talk_to_pi(argv: list[str]) -> tuple[list[str], list[str], int]:
    """Prompt, prompt again too early, prompt when it is time, abort, close."""
    async with await anyio.open_process(argv, stderr=None) as process:
        client = Client(process)
        await client.send(id=1, type="prompt", message="hi")
        await client.send(id=2, type="prompt", message="too early")
        await client.read(lambda event: event["type"] == "agent_end")
        await client.send(id=3, type="prompt", message="more")
        await client.send(id=4, type="abort")
        await client.read(lambda event: event.get("id") == 4)
        code = await client.close()
    lines = [f"{event['id']} {event['success']}" for event in client.events if event["type"] == "response"]
    ends = [event["messages"][-1]["stopReason"] for event in client.events if event["type"] == "agent_end"]
    return lines, ends, code


TALKED = (["1 True", "2 False", "3 True", "4 True"], ["stop", "aborted"])


def test_a_conversation_with_pi_takes_the_time_of_its_script(stand: Stand, backend: str) -> None:
    """Ten seconds for the answer and two for the abort; the early prompt is refused."""
    argv = stand.fake(PI, "{dialect: pi, mode: rpc}")

    async def host() -> tuple[Any, float]:
        return await talk_to_pi(argv), stand.seconds

    assert stand.run(host, backend=backend) == ((*TALKED, 0), 12.0)


CLAUDE = """
- wait_for: prompt 1
- task: b
- silence: 10s
- answer: first
- wait_for: prompt 2
- silence: 1s
- task_done: b
- wait_for: cancel
- acknowledge: cancel
- background_turn: {task: b, answer: finished}
- silence: 5s
"""


def _build_user_message(text: str) -> dict[str, Any]:
    message = {"role": "user", "content": text}
    return {"type": "user", "message": message, "parent_tool_use_id": None, "uuid": f"uuid of {text}"}


async def talk_to_claude(argv: list[str]) -> tuple[list[tuple[Any, ...]], int]:
    """Shake hands, prompt, prompt again, interrupt, wait for the background turn, close."""
    async with await anyio.open_process(argv, stderr=None) as process:
        client = Client(process)
        await client.send(type="control_request", request_id="a", request={"subtype": "initialize"})
        await client.read(lambda event: event["type"] == "control_response")
        await client.send(**_build_user_message("one"))
        await client.read(lambda event: event["type"] == "result")
        await client.send(**_build_user_message("two"))
        await client.read(lambda event: event.get("subtype") == "task_notification")
        await client.send(type="control_request", request_id="b", request={"subtype": "interrupt"})
        await client.read(lambda event: event["type"] == "result" and "origin" in event)
        code = await client.close()
    results = [event for event in client.events if event["type"] == "result"]
    return [(result.get("result"), result["is_error"], result.get("user_message_uuid")) for result in results], code


RESULTS = [("first", False, "uuid of one"), (None, True, "uuid of two"), ("finished", False, None)]


def test_a_conversation_with_claude_takes_the_time_of_its_script(stand: Stand, backend: str) -> None:
    """Answer, interrupt, background turn; five seconds later the script is over, and so is stdin."""
    argv = stand.fake(CLAUDE, "{dialect: claude, mode: session}")

    async def host() -> tuple[Any, float]:
        return await talk_to_claude(argv), stand.seconds

    assert stand.run(host, backend=backend) == ((RESULTS, 0), 16.0)


def test_a_conversation_with_claude_is_the_same_in_real_time(runner: ScenarioRunner) -> None:
    """The same fake without a virtual clock keeps time itself."""
    script = CLAUDE.replace("10s", "50ms").replace("1s", "50ms").replace("5s", "50ms")
    fake = runner.make_fake(build_scenario(script, "{dialect: claude, mode: session}"))
    try:
        assert anyio.run(talk_to_claude, fake.argv) == (RESULTS, 0)
    finally:
        fake.finish()


def test_a_line_that_claude_cannot_read_ends_it(stand: Stand) -> None:
    """It says so on stderr and exits 1, as the real CLI does."""
    argv = stand.fake("- wait_for: prompt 1", "{dialect: claude, mode: session}")

    async def host() -> Any:
        return await anyio.run_process(argv, input=b"hello\n", check=False)

    done = stand.run(host)
    told = b"Error parsing streaming input line (type=unknown, 5 chars): SyntaxError\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, b"", told)


def test_a_conversation_with_pi_is_the_same_in_real_time(runner: ScenarioRunner) -> None:
    """The same fake without a virtual clock keeps time itself."""
    script = PI.replace("10s", "50ms").replace("2s", "50ms")
    fake = runner.make_fake(build_scenario(script, "{dialect: pi, mode: rpc}"))
    try:
        assert anyio.run(talk_to_pi, fake.argv) == (*TALKED, 0)
    finally:
        fake.finish()


ACP = """
- when: cancel
  do: [{silence: 2s}, {acknowledge: cancel}]
- wait_for: prompt 1
- silence: 10s
- answer: first
- wait_for: prompt 2
- silence: 1s
- tool: {id: t, name: ls}
"""


async def talk_to_acp(argv: list[str]) -> tuple[list[Any], int]:
    """Shake hands, prompt, prompt again, cancel, close."""
    async with await anyio.open_process(argv, stderr=None) as process:
        client = Client(process)
        await client.send(id=0, method="initialize", params={"protocolVersion": 1})
        await client.send(id=1, method="session/new", params={"cwd": "/", "mcpServers": []})
        made = await client.read(lambda event: event.get("id") == 1)
        session = made["result"]["sessionId"]
        await client.send(id=2, method="session/prompt", params={"sessionId": session, "prompt": []})
        await client.read(lambda event: event.get("id") == 2)
        await client.send(id=3, method="session/prompt", params={"sessionId": session, "prompt": []})
        await client.read(lambda event: "tool_call" in str(event))
        await client.send(method="session/cancel", params={"sessionId": session})
        await client.read(lambda event: event.get("id") == 3)
        code = await client.close()
    return [event["result"].get("stopReason") for event in client.events if "id" in event], code


def test_a_conversation_in_acp_takes_the_time_of_its_script(stand: Stand, backend: str) -> None:
    """Ten seconds, one, and two for the cancel."""
    argv = stand.fake(ACP, "acp")

    async def host() -> tuple[Any, float]:
        return await talk_to_acp(argv), stand.seconds

    assert stand.run(host, backend=backend) == (([None, None, "end_turn", "cancelled"], 0), 13.0)


def test_a_conversation_in_acp_is_the_same_in_real_time(runner: ScenarioRunner) -> None:
    """The same fake without a virtual clock keeps time itself."""
    fake = runner.make_fake(
        build_scenario(ACP.replace("10s", "50ms").replace("1s", "50ms").replace("2s", "50ms"), "acp")
    )
    try:
        assert anyio.run(talk_to_acp, fake.argv) == ([None, None, "end_turn", "cancelled"], 0)
    finally:
        fake.finish()


def test_a_fake_of_a_session_starts_without_json_and_re(runner: ScenarioRunner) -> None:
    """A start costs milliseconds; the scanner alone reads requests."""
    fake = runner.make_fake(build_scenario("- wait_for: prompt 1\n- answer: hi", "{dialect: pi, mode: rpc}"))
    stub = fake.path
    code = f"import sys, atexit; sys.argv = {fake.argv!r}; source = open({stub!r}).read()\n"
    code += "import posix; end = posix._exit\n"
    code += "posix._exit = lambda code: (print(*sys.modules, file=sys.stderr, flush=True), end(code))\nexec(source)"
    told = json.dumps({"id": 1, "type": "prompt", "message": "hi"}).encode() + b"\n"
    completed = subprocess.run(
        [sys.executable, "-IS", "-c", code], input=told, capture_output=True, timeout=20, check=True
    )
    fake.finish()
    assert b'"agent_end"' in completed.stdout
    assert not {"json", "re", "enum", "threading"} & set(completed.stderr.decode().split())
