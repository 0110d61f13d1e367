"""Hooks with real children on both event loops: B4 in exact virtual time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest

from pytest_agentproc.supervisor import Hook, open_session
from tests.process.pi_scripts import print_line_step
from tests.process.stand import SECOND

if TYPE_CHECKING:
    from tests.process.stand import Stand

WAITS = "- wait_for: eof\n"
GREETED: dict[str, object] = {
    "type": "control_response",
    "response": {"subtype": "success", "request_id": "greet-0", "response": {}},
}


def build_hook_step(event: str) -> str:
    """Give the step in which a hook fires."""
    fields = {"hook_event_name": event, "tool_name": "Bash"}
    request = {"subtype": "hook_callback", "callback_id": "mine", "input": fields}
    return print_line_step({"type": "control_request", "request_id": event, "request": request})


@pytest.mark.parametrize(
    ("says_it", "at", "answer", "seconds"),
    [
        (None, 30.0, "{}}}", 35.0),
        (False, 30.0, "deny", 35.0),
        (None, 70.0, "deny", 60.0),
    ],
)
def test_a_tool_waits_for_its_callback(
    stand: Stand, backend: str, says_it: bool | None, at: float, answer: str, seconds: float
) -> None:
    """Registered in time it decides, after its own five seconds; else the tool is denied at hook_timeout (B4)."""
    steps = [
        "- wait_for: {stdin: '*\"PreToolUse\"*mine*'}\n",
        print_line_step(GREETED),
        "- wait_for: {stdin: '*\"content\"*'}\n",
        build_hook_step("PostToolUse"),
        "- wait_for: {stdin: '*PostToolUse*{}}}*'}\n",
        build_hook_step("PreToolUse"),
        f"- wait_for: {{stdin: '*\"PreToolUse\"*{answer}*'}}\n",
        print_line_step({"type": "result", "subtype": "success", "result": "done"}),
        WAITS,
    ]
    argv = stand.fake("".join(steps))
    called: list[str] = []

    async def callback(hook: Hook) -> bool | None:
        called.append(hook.event)
        await anyio.sleep(5)
        return says_it

    async def host() -> list[Any]:
        async with open_session(argv, dialect="claude", hooks={"mine": "PreToolUse"}) as session:
            turn = session.prompt("one")
            await anyio.sleep(at)
            session.on_hook("mine", callback)
            result = await turn
            await anyio.sleep(1)
            return [result.outcome.value, result.text, result.elapsed / SECOND]

    assert stand.run(host, backend=backend) == ["completed", "done", seconds]
    assert called == (["PostToolUse", "PreToolUse"] if at < 60 else ["PostToolUse"])
