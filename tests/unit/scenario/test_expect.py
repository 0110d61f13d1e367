"""The expectations of a scenario, in the normal form that the verdict compares."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_agentproc.scenario import Expectation, loads
from pytest_agentproc.scenario._expect import EXPECT_KEY_BY_NAME
from pytest_agentproc.vocabulary import Outcome, Policy

SECOND = 1_000_000_000

CASES: list[tuple[str, Any]] = [
    *((f"outcome: {outcome}", str(outcome)) for outcome in Outcome),
    ("outcome: {not: completed}", {"not": "completed"}),
    ("outcome: {any_of: [completed, failed]}", {"any_of": ["completed", "failed"]}),
    ("exit_code: 124", 124),
    ("text: 5", {"exact": "5"}),
    ("transcript: {contains: a}", {"contains": "a"}),
    ("stderr_tail: {matches: a+b}", {"matches": "a+b"}),
    ("error: no", {"exact": "no"}),
    ("stop_reason: stop", "stop"),
    ("model: m1", "m1"),
    ("usage: {input: 3}", {"input": 3}),
    ("elapsed: kill_grace", 2 * SECOND),
    ("returned: 0", 0),
    ("agent_status: 3", {"code": 3, "signal": None, "forced": None}),
    ("agent_status: {signal: KILL}", {"code": None, "signal": "KILL", "forced": None}),
    ("agent_status: {code: 0, forced: false}", {"code": 0, "signal": None, "forced": False}),
    ("agent_status: {signal: TERM, forced: true}", {"code": None, "signal": "TERM", "forced": True}),
    ("signals: []", []),
    ("signals: [{TERM: 1s}, {KILL: 1s + kill_grace}]", [("TERM", SECOND), ("KILL", 3 * SECOND)]),
    ("warnings: [exit_contradicts_result, {contains: a}]", [{"exact": "exit_contradicts_result"}, {"contains": "a"}]),
    ("noise: 2", 2),
    ("spawns: [0s, 1s + kill_grace]", [0, 3 * SECOND]),
    ("spawns: []", []),
    (
        "asked: [{permission: Bash, answer: deny, after: 1s + kill_grace}, {hook: h}]",
        [
            {"kind": "permission", "name": "Bash", "answer": "deny", "after": 3 * SECOND},
            {"kind": "hook", "name": "h", "answer": None, "after": None},
        ],
    ),
    (
        "asked: [{request: fs/read_text_file, answer: refused}]",
        [{"kind": "request", "name": "fs/read_text_file", "answer": "refused", "after": None}],
    ),
    ("asked: []", []),
    ("alive_at_once: 1", 1),
    ("pipes_left: 0", 0),
    ("leaks: [helper]", ["helper"]),
    ("leaks: [agent 2, helper 12]", ["agent 2", "helper 12"]),
    ("unrelated_processes: unharmed", "unharmed"),
]


def bind_expectations(expect: str) -> tuple[Expectation, ...]:
    """Bind an `expect`, whose first key stands in line 5, under a policy with every limit."""
    text = f"scenario: a\nagent: raw\nscript: [{{spawn: helper}}, {{spawn: tool}}]\nexpect:\n  {expect}\n"
    return loads(text).bind(Policy(progress_timeout=9, max_runtime=9)).expect


@pytest.mark.parametrize(("expect", "wanted"), CASES, ids=[expect for expect, _ in CASES])
def test_a_key_has_one_normal_form(expect: str, wanted: Any) -> None:
    """However an author writes it, the verdict compares one form."""
    first = bind_expectations(expect)[0]
    assert first == Expectation(expect.partition(":")[0], 5, 3, wanted)


def test_every_key_of_the_table_is_bound_here() -> None:
    """A key that is added to the table is added to these cases, or to those of a session."""
    elsewhere = {"artifacts", "processes", "received", "sessions", "turns", "background", "status", "viewers", "called"}
    assert {expect.partition(":")[0] for expect, _ in CASES} | elsewhere == set(EXPECT_KEY_BY_NAME)


def test_processes_become_one_expectation_for_each_leaf() -> None:
    """`catches` names a leaf, and a row of the verdict is one."""
    found = bind_expectations("processes: {tool: {gone_at: 1s, alive_at: 0}, helper: {signals: [{HUP: 2s}]}}")
    assert [(check.key, check.line, check.column, check.wanted) for check in found[:-1]] == [
        ("processes.tool.gone_at", 5, 22, SECOND),
        ("processes.tool.alive_at", 5, 35, 0),
        ("processes.helper.signals", 5, 58, [("HUP", 2 * SECOND)]),
    ]


def test_a_later_process_of_a_name_is_named_with_its_number() -> None:
    """The second invocation of an agent is a process of its own."""
    (found, _) = bind_expectations("processes: {agent 2: {gone_at: 1s}}")
    assert (found.key, found.wanted) == ("processes.agent 2.gone_at", SECOND)


def test_nobody_may_leak_unless_the_file_says_so() -> None:
    """The most important check needs no line in a scenario."""
    assert bind_expectations("noise: 0")[-1] == Expectation("leaks", 0, 0, [])
    assert [check.key for check in bind_expectations("leaks: [tool]")] == ["leaks"]


def test_expectations_keep_the_order_of_the_file() -> None:
    """Rows are read beside the file."""
    keys = [check.key for check in bind_expectations("noise: 0\n  outcome: completed\n  elapsed: 0")]
    assert keys == ["noise", "outcome", "elapsed", "leaks"]
