"""The conversations with `opencode serve` over HTTP."""

from __future__ import annotations

from typing import Any

from tests.fidelity.conversation import FAILS, Conversation, write_tool
from tests.fidelity.model_server import Reply
from tests.fidelity.serve.client import ASKS_BEFORE_BASH

__all__ = ["OPENCODE_SERVE"]

_CREATE = ("", "POST", "/session", {"title": "t"})
_IDLE = ("1x session.idle", "", "", None)
_IDLE_TWICE = ("2x session.idle", "", "", None)
"""An error is told as the turn fails, and once more as its message ends."""
_ECHO = ("bash", {"command": "echo hi", "description": "d"})


def _prompt(words: str = "", way: str = "message") -> tuple[str, str, str, Any]:
    """Prompt the session after certain words."""
    return words, "POST", f"/session/<session>/{way}", {"parts": [{"type": "text", "text": "hi"}]}


def _permit(response: str) -> tuple[str, str, str, Any]:
    """Answer the question."""
    return "1x permission.asked", "POST", "/session/<session>/permissions/<permission>", {"response": response}


_SERVED: dict[str, Any] = {
    "cli": "opencode",
    "agent": "{dialect: opencode, mode: serve}",
    "argv": ("serve", "--port=0"),
}
_ASKED_TOOL = f"{{wait_for: prompt 1}}, {write_tool('t', *_ECHO)}, {{ask: {{permission: bash, "
OPENCODE_SERVE: list[Conversation] = [
    Conversation(
        **_SERVED,
        name="hello, over HTTP",
        requests=(_CREATE, _prompt(), ("1x session.idle", "GET", "/session/status", None)),
        script="[{wait_for: prompt 1}, {answer: hello}]",
    ),
    Conversation(
        **_SERVED,
        name="a thought and a tool, over HTTP",
        replies=(Reply(thought="hm", tools=[_ECHO]), Reply("done")),
        requests=(_CREATE, _prompt(way="prompt_async"), ("1x session.idle", "GET", "/session/<session>/message", None)),
        script=f"[{{wait_for: prompt 1}}, {{think: hm}}, {write_tool('t', *_ECHO)}, "
        '{tool_done: {id: t, output: "hi\\n"}}, {answer: done}]',
    ),
    Conversation(
        **_SERVED,
        name="a permission, over HTTP",
        environ=ASKS_BEFORE_BASH,
        replies=(Reply(tools=[_ECHO]), Reply("done")),
        requests=(_CREATE, _prompt(), _permit("once"), _IDLE),
        script=f'[{_ASKED_TOOL}allowed: [{{tool_done: {{id: t, output: "hi\\n"}}}}, {{answer: done}}]}}}}]',
    ),
    Conversation(
        **_SERVED,
        name="a rejected permission, over HTTP",
        environ=ASKS_BEFORE_BASH,
        replies=(Reply(tools=[_ECHO]),),
        requests=(_CREATE, _prompt(), _permit("reject"), _IDLE),
        script=f"[{_ASKED_TOOL}denied: [{{tool_done: {{id: t, error: x}}}}]}}}}]",
    ),
    Conversation(
        **_SERVED,
        name="an abort of a question, over HTTP",
        environ=ASKS_BEFORE_BASH,
        replies=(Reply(tools=[_ECHO]),),
        requests=(_CREATE, _prompt(), ("1x permission.asked", "POST", "/session/<session>/abort", None), _IDLE_TWICE),
        script=f"[{{when: cancel, do: [{{acknowledge: cancel}}]}}, {_ASKED_TOOL}allowed: []}}}}]",
    ),
    Conversation(
        **_SERVED,
        name="an abort of a text, over HTTP",
        replies=(Reply("hello", pause=5),),
        requests=(_CREATE, _prompt(), ("1x message.part.delta", "POST", "/session/<session>/abort", None), _IDLE_TWICE),
        script="[{wait_for: prompt 1}, {delta: hello}, {wait_for: cancel}, {acknowledge: cancel}]",
    ),
    Conversation(
        **_SERVED,
        name="an error, over HTTP",
        replies=FAILS,
        requests=(_CREATE, _prompt(), _IDLE_TWICE),
        script="[{wait_for: prompt 1}, {result: {text: refused, is_error: true}}]",
    ),
    Conversation(
        **_SERVED,
        name="two prompts at once, over HTTP",
        replies=(Reply("one", pause=3), Reply("two")),
        requests=(_CREATE, _prompt(), _prompt("1x message.part.delta"), _IDLE),
        script="[{wait_for: prompt 1}, {delta: one}, {wait_for: prompt 2}, {result: {}}, {answer: two}]",
    ),
    Conversation(
        **_SERVED,
        name="requests that are wrong, over HTTP",
        requests=(
            ("", "POST", "/session/ses_nosuch/message", {"parts": []}),
            ("", "POST", "/session/ses_nosuch/abort", None),
            ("1x session.idle", "POST", "/session", {}),
            ("", "POST", "/session/<session>/message", {}),
            ("", "POST", "/session/<session>/permissions/per_nosuch", {"response": "once"}),
            ("", "DELETE", "/session/<session>", None),
            ("1x session.deleted", "GET", "/session/<session>", None),
        ),
        script="[{wait_for: prompt 1}]",
    ),
]
