"""The conversations with `codex app-server`: several turns, steers, compactions, threads and interrupts."""

from __future__ import annotations

import json
from typing import Any

from tests.fidelity.conversation import FAILS, RUN_A, SHELL, Conversation
from tests.fidelity.model_server import Reply

__all__ = ["APP_SERVER"]


def _build_call(number: int, method: str, **params: Any) -> str:
    return json.dumps({"id": number, "method": method, "params": params})


def _build_turn_start(number: int) -> str:
    return _build_call(number, "turn/start", **_IN_THREAD, input=_TEXT)


_IN_THREAD = {"threadId": "<thread>"}
_TEXT = [{"type": "text", "text": "hi"}]
_APPROVAL = '"item/commandExecution/requestApproval"'


def _build_server_conversation(name: str, *talk: tuple[str, str], **more: Any) -> Conversation:
    """Make a conversation with the app server, from the handshake to the end of a turn."""
    about = more.pop("thread", {})
    begin = (
        ("", _build_call(0, "initialize", clientInfo={"name": "x", "title": None, "version": "1"})),
        ('"id":0', json.dumps({"method": "initialized"})),
        ("", _build_call(1, "thread/start", cwd="/", **about)),
        ('"thread/started"', _build_turn_start(2)),
    )
    end = (('"turn/completed"', ""),)
    whole = {"cli": "codex", "argv": ("app-server",), "agent": "{dialect: codex, mode: app-server}", **more}
    return Conversation(name=f"app-server: {name}", talk=(*begin, *talk, *end), **whole)


_QUESTIONS = (
    *("account/read", "getAuthStatus", "model/list", "account/rateLimits/read", "account/usage/read", "thread/list"),
    *("thread/loaded/list", "mcpServerStatus/list", "permissionProfile/list"),
)
_PLAN = {"collaborationMode": {"mode": "plan", "settings": {"model": "m1"}}}
_FREELY = {"sandbox": "danger-full-access", "approvalPolicy": "never"}
_ASKING = {"sandbox": "read-only", "approvalPolicy": "untrusted"}
APP_SERVER = [
    Conversation(
        cli="codex",
        name="app-server: questions about itself",
        argv=("app-server",),
        agent="{dialect: codex, mode: app-server}",
        talk=(
            ("", _build_call(0, "initialize", clientInfo={"name": "x", "title": None, "version": "1"})),
            ('"id":0', json.dumps({"method": "initialized"})),
            *(
                ("" if number == 1 else f'"id":{number - 1}', _build_call(number, method))
                for number, method in enumerate(_QUESTIONS, 1)
            ),
            (f'"id":{len(_QUESTIONS)}', ""),
        ),
        script="[{wait_for: prompt 1}, {answer: hello}]",
    ),
    _build_server_conversation("hello", script="[{wait_for: prompt 1}, {answer: hello}]"),
    _build_server_conversation(
        "a tool",
        thread=_FREELY,
        replies=(Reply("see", [SHELL]), Reply("done")),
        script=f"[{{wait_for: prompt 1}}, {{say: see}}, {RUN_A}, "
        '{tool_done: {id: a, output: "hi\\n"}}, {answer: done}]',
    ),
    _build_server_conversation(
        "a denied command",
        (_APPROVAL, json.dumps({"id": 0, "result": {"decision": "decline"}})),
        thread=_ASKING,
        replies=(Reply("see", [SHELL]), Reply("done")),
        script=f"[{{wait_for: prompt 1}}, {{say: see}}, {RUN_A}, {{ask: {{permission: echo hi, "
        "denied: [{tool_done: {id: a, error: no}}, {answer: done}]}}]",
    ),
    _build_server_conversation(
        "an interrupt",
        ('"item/completed"', _build_call(3, "turn/interrupt", **_IN_THREAD, turnId="<turn>")),
        replies=(Reply("too late", after=20),),
        script="[{wait_for: prompt 1}, {wait_for: cancel}, {acknowledge: cancel}]",
    ),
    _build_server_conversation(
        "an interrupt without the id of a turn",
        ('"item/completed"', _build_call(3, "turn/interrupt", **_IN_THREAD, turnId="")),
        replies=(Reply("too late", after=20),),
        script="[{wait_for: prompt 1}, {wait_for: cancel}, {acknowledge: cancel}]",
    ),
    _build_server_conversation(
        "a steer",
        ('"item/completed"', _build_call(3, "turn/steer", **_IN_THREAD, expectedTurnId="<turn>", input=_TEXT)),
        replies=(Reply("one", after=0.5), Reply("two")),
        script="[{wait_for: prompt 1}, {silence: 500ms}, {answer: two}]",
    ),
    _build_server_conversation(
        "a steer of another turn",
        ('"item/completed"', _build_call(3, "turn/steer", **_IN_THREAD, expectedTurnId="nosuch", input=_TEXT)),
        replies=(Reply("one", after=0.5),),
        script="[{wait_for: prompt 1}, {silence: 500ms}, {answer: one}]",
    ),
    _build_server_conversation(
        "two prompts at once",
        ("", _build_turn_start(3)),
        replies=(Reply("one", after=0.5), Reply("two")),
        script="[{wait_for: prompt 1}, {answer: two}]",
    ),
    _build_server_conversation(
        "a compaction",
        ('"turn/completed"', _build_call(3, "thread/compact/start", **_IN_THREAD)),
        ('"turn/started"', ""),
        script="[{wait_for: prompt 1}, {answer: hello}]",
    ),
    _build_server_conversation(
        "two threads",
        ('"turn/completed"', _build_call(3, "thread/start", cwd="/")),
        ('"thread/started"', _build_turn_start(4)),
        ('"turn/started"', ""),
        script="[{wait_for: prompt 1}, {answer: hello}, {wait_for: prompt 2}, {answer: hello}]",
    ),
    _build_server_conversation(
        "an API error",
        replies=FAILS,
        script="[{wait_for: prompt 1}, {result: {text: refused, is_error: true}}]",
    ),
    *(
        Conversation(
            cli="codex",
            name=f"app-server: modes and models are set, {name} the experimental part",
            argv=("app-server",),
            agent="{dialect: codex, mode: app-server}",
            replies=(Reply("hello"), Reply("hello")),
            talk=(
                ("", _build_call(0, "initialize", clientInfo={"name": "x", "title": None, "version": "1"}, **able)),
                ('"id":0', json.dumps({"method": "initialized"})),
                ("", _build_call(1, "thread/start", cwd="/")),
                ('"thread/started"', _build_call(2, "thread/settings/update", **_IN_THREAD, model="m1")),
                ('"id":2', _build_call(3, "thread/settings/update", **_IN_THREAD, **_PLAN)),
                (
                    '"thread/settings/updated"' if able else '"id":3',
                    _build_call(4, "thread/settings/update", **_IN_THREAD, collaborationMode={"mode": "fly"}),
                ),
                ('"id":4', _build_call(5, "turn/start", **_IN_THREAD, input=_TEXT, model=5)),
                ('"id":5', _build_call(6, "turn/start", **_IN_THREAD, input=_TEXT, **_PLAN)),
                ('"turn/completed"' if able else '"id":6', _build_call(7, "turn/start", **_IN_THREAD, input=_TEXT)),
                ('"id":7', ""),
                ('"turn/completed"', ""),
            ),
            script="[{wait_for: prompt 1}, {answer: hello}, {wait_for: prompt 2}, {answer: hello}]",
        )
        for name, able in (("without", {}), ("with", {"capabilities": {"experimentalApi": True}}))
    ),
    Conversation(cli="codex", name="app-server: a wrong flag", argv=("app-server", "--frobnicate")),
    Conversation(cli="codex", name="app-server: a word", argv=("app-server", "hi")),
]
