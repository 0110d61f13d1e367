"""The steps that only an ACP agent has, and the program that the fake gets for each."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.scenario.test_compile import compile_step

CASES: list[tuple[str, list[tuple[str, tuple[Any, ...]]]]] = [
    (
        "request: {method: fs/read_text_file, params: {path: /a, limit: 3}, refused: [{exit: 1}]}",
        [
            (
                "ask",
                (
                    {"kind": "request", "name": "fs/read_text_file", "id": None, "params": {"path": "/a", "limit": 3}},
                    *([], [(4, "exit", (1,))], []),
                ),
            )
        ],
    ),
    (
        "plan: [{content: look}, {content: mend, status: completed, priority: low}]",
        [("event", ("plan", ["look", {"content": "mend", "status": "completed", "priority": "low"}]))],
    ),
    (
        "{handshake: {history: [{prompt: hi}, {think: hm}, {answer: hello}, {event: {sessionUpdate: plan}}]}}",
        [
            (
                "handshake",
                (
                    "history",
                    [("prompt", "hi"), ("think", "hm"), ("answer", "hello"), ("event", {"sessionUpdate": "plan"})],
                ),
            )
        ],
    ),
    (
        "{handshake: {modes: [ask, code]}}",
        [("handshake", ("modes", ["ask", "code"]))],
    ),
    (
        "{handshake: {options: [{id: model, values: [fast, deep]}]}}",
        [("handshake", ("options", {"model": ["fast", "deep"]}))],
    ),
    (
        "tool: {id: t, name: acp, kind: read, locations: [/a, {path: /b, line: 3}]}",
        [
            (
                "event",
                (
                    "tool",
                    {
                        "id": "t",
                        "name": "acp",
                        "input": {},
                        "kind": "read",
                        "locations": [{"path": "/a"}, {"path": "/b", "line": 3}],
                    },
                ),
            )
        ],
    ),
]


@pytest.mark.parametrize(("step", "wanted"), CASES, ids=[step for step, _ in CASES])
def test_a_step_of_acp_compiles_to_its_program(step: str, wanted: list[tuple[str, tuple[Any, ...]]]) -> None:
    """The encoder fills in the keys that the file leaves out."""
    assert compile_step(step, "acp")["steps"] == [(4, op, args) for op, args in wanted]
