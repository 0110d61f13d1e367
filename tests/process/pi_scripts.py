"""The words of pi in a session: as steps of a fake's script, and as a program of its own. Knows no expectation."""

from __future__ import annotations

import json

__all__ = ["ENDS", "GREETS", "PI", "hears", "prints", "says", "settles", "takes"]


def prints(value: dict[str, object]) -> str:
    """Give the step that prints a JSON line."""
    return f"- raw: {json.dumps(json.dumps(value) + chr(10))}\n"


def hears(name: str) -> str:
    """Give the step that waits for an intent, by a part of its id."""
    return f"- wait_for: {{stdin: '*\"{name}*'}}\n"


def _responds(name: str, command: str) -> str:
    return prints({"id": name, "type": "response", "command": command, "success": True})


GREETS = hears("greet-0") + _responds("greet-0", "get_state")
ENDS = prints({"type": "agent_end"})


def takes(number: int) -> str:
    """Give the steps that take a prompt."""
    return hears(f"prompt-{number}") + _responds(f"prompt-{number}", "prompt") + prints({"type": "agent_start"})


def says(text: str, stop: str = "stop") -> str:
    """Give the step that ends a message."""
    return prints({"type": "message_end", "message": {"role": "assistant", "content": text, "stopReason": stop}})


def settles(number: int) -> str:
    """Give the step that answers an abort."""
    return _responds(f"abort-{number}", "abort")


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
