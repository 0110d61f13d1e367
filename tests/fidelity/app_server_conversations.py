"""The conversations with `codex app-server`: several turns, steers, compactions, threads and interrupts."""

from __future__ import annotations

import json
from typing import Any

from tests.fidelity.conversation import FAILS, RUN_A, SHELL, Conversation
from tests.fidelity.model_server import Reply

__all__ = ["APP_SERVER"]


def _rpc(number: int, method: str, **params: Any) -> str:
    return json.dumps({"id": number, "method": method, "params": params})


def _ask(number: int) -> str:
    return _rpc(number, "turn/start", **_IN_THREAD, input=_TEXT)


_IN_THREAD = {"threadId": "<thread>"}
_TEXT = [{"type": "text", "text": "hi"}]
_APPROVAL = '"item/commandExecution/requestApproval"'


def _server(name: str, *talk: tuple[str, str], **more: Any) -> Conversation:
    """Make a conversation with the app server, from the handshake to the end of a turn."""
    about = more.pop("thread", {})
    begin = (
        ("", _rpc(0, "initialize", clientInfo={"name": "x", "title": None, "version": "1"})),
        ('"id":0', json.dumps({"method": "initialized"})),
        ("", _rpc(1, "thread/start", cwd="/", **about)),
        ('"thread/started"', _ask(2)),
    )
    end = (('"turn/completed"', ""),)
    whole = {"cli": "codex", "argv": ("app-server",), "agent": "{dialect: codex, mode: app-server}", **more}
    return Conversation(name=f"app-server: {name}", talk=(*begin, *talk, *end), **whole)


_FREELY = {"sandbox": "danger-full-access", "approvalPolicy": "never"}
_ASKING = {"sandbox": "read-only", "approvalPolicy": "untrusted"}
APP_SERVER = [
    _server("hello", script="[{wait_for: prompt 1}, {answer: hello}]"),
    _server(
        "a tool",
        thread=_FREELY,
        replies=(Reply("see", [SHELL]), Reply("done")),
        script=f"[{{wait_for: prompt 1}}, {{say: see}}, {RUN_A}, "
        '{tool_done: {id: a, output: "hi\\n"}}, {answer: done}]',
    ),
    _server(
        "a denied command",
        (_APPROVAL, json.dumps({"id": 0, "result": {"decision": "decline"}})),
        thread=_ASKING,
        replies=(Reply("see", [SHELL]), Reply("done")),
        script=f"[{{wait_for: prompt 1}}, {{say: see}}, {RUN_A}, {{ask: {{permission: echo hi, "
        "denied: [{tool_done: {id: a, error: no}}, {answer: done}]}}]",
    ),
    _server(
        "an interrupt",
        ('"item/completed"', _rpc(3, "turn/interrupt", **_IN_THREAD, turnId="<turn>")),
        replies=(Reply("too late", after=20),),
        script="[{wait_for: prompt 1}, {wait_for: cancel}, {acknowledge: cancel}]",
    ),
    _server(
        "an interrupt without the id of a turn",
        ('"item/completed"', _rpc(3, "turn/interrupt", **_IN_THREAD, turnId="")),
        replies=(Reply("too late", after=20),),
        script="[{wait_for: prompt 1}, {wait_for: cancel}, {acknowledge: cancel}]",
    ),
    _server(
        "a steer",
        ('"item/completed"', _rpc(3, "turn/steer", **_IN_THREAD, expectedTurnId="<turn>", input=_TEXT)),
        replies=(Reply("one", after=0.5), Reply("two")),
        script="[{wait_for: prompt 1}, {silence: 500ms}, {answer: two}]",
    ),
    _server(
        "a steer of another turn",
        ('"item/completed"', _rpc(3, "turn/steer", **_IN_THREAD, expectedTurnId="nosuch", input=_TEXT)),
        replies=(Reply("one", after=0.5),),
        script="[{wait_for: prompt 1}, {silence: 500ms}, {answer: one}]",
    ),
    _server(
        "two prompts at once",
        ("", _ask(3)),
        replies=(Reply("one", after=0.5), Reply("two")),
        script="[{wait_for: prompt 1}, {answer: two}]",
    ),
    _server(
        "a compaction",
        ('"turn/completed"', _rpc(3, "thread/compact/start", **_IN_THREAD)),
        ('"turn/started"', ""),
        script="[{wait_for: prompt 1}, {answer: hello}]",
    ),
    _server(
        "two threads",
        ('"turn/completed"', _rpc(3, "thread/start", cwd="/")),
        ('"thread/started"', _ask(4)),
        ('"turn/started"', ""),
        script="[{wait_for: prompt 1}, {answer: hello}, {wait_for: prompt 2}, {answer: hello}]",
    ),
    _server(
        "an API error",
        replies=FAILS,
        script="[{wait_for: prompt 1}, {result: {text: refused, is_error: true}}]",
    ),
    Conversation(cli="codex", name="app-server: a wrong flag", argv=("app-server", "--frobnicate")),
    Conversation(cli="codex", name="app-server: a word", argv=("app-server", "hi")),
]
