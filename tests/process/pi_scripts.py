"""The words of pi in a session: as steps of a fake's script, and as a program of its own. Knows no expectation."""

from __future__ import annotations

import json

__all__ = [
    "ENDS",
    "GREETS",
    "PI",
    "answer_abort_step",
    "await_intent_step",
    "end_message_step",
    "print_line_step",
    "take_prompt_steps",
]


def print_line_step(value: dict[str, object]) -> str:
    """Give the step that prints a JSON line."""
    return f"- raw: {json.dumps(json.dumps(value) + chr(10))}\n"


def await_intent_step(name: str) -> str:
    """Give the step that waits for an intent, by a part of its id."""
    return f"- wait_for: {{stdin: '*\"{name}*'}}\n"


def _build_response_step(name: str, command: str) -> str:
    return print_line_step({"id": name, "type": "response", "command": command, "success": True})


GREETS = await_intent_step("greet-0") + _build_response_step("greet-0", "get_state")
ENDS = print_line_step({"type": "agent_end"})


def take_prompt_steps(number: int) -> str:
    """Give the steps that take a prompt."""
    return (
        await_intent_step(f"prompt-{number}")
        + _build_response_step(f"prompt-{number}", "prompt")
        + print_line_step({"type": "agent_start"})
    )


def end_message_step(text: str, stop: str = "stop") -> str:
    """Give the step that ends a message."""
    return print_line_step(
        {"type": "message_end", "message": {"role": "assistant", "content": text, "stopReason": stop}}
    )


def answer_abort_step(number: int) -> str:
    """Give the step that answers an abort."""
    return _build_response_step(f"abort-{number}", "abort")


PI = """
import json, sys
def tell(**words): print(json.dumps(words), flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    tell(id=asked["id"], type="response", command=asked["type"], success=True)
    if asked["type"] == "prompt":
        tell(type="agent_start")
        if asked["message"] == "die":
            sys.exit(3)
        if asked["message"] != "think":
            words = {"role": "assistant", "content": asked["message"].upper(), "stopReason": "stop"}
            tell(type="message_end", message=words)
            tell(type="agent_end")
    elif asked["type"] == "abort":
        tell(type="agent_end")
"""
"""A pi that answers in capitals; `think` never ends, `die` ends it."""
