"""Files with several sessions: parts, drive and expectations as they are read and bound."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_agentproc.scenario import NotApplicable, Scenario, loads
from pytest_agentproc.vocabulary import CallerAction, Handler, HookReaction, LimitsRequest, Policy

SECOND = 1_000_000_000
TEXT = """
scenario: two at a time
sessions:
  left:
    agent: {dialect: claude, mode: session}
    policy: {prompt_timeout: 3s}
    handler: [{permission: allow, after: prompt_timeout}, {hook: lint}]
    scripts:
      - [{wait_for: prompt 1}, {silence: prompt_timeout}]
      - [{wait_for: prompt 1}]
  right:
    agent: {dialect: pi, mode: rpc}
    script: [{spawn: helper}, {wait_for: prompt 1}, {silence: prompt_timeout}]
drive:
  - {session: left, prompt: a}
  - {session: right, prompt: b, after: prompt_timeout}
  - {session: left, wait: prompt_timeout}
  - {session: right, cancel: {}, at: prompt_timeout + 1s}
expect:
  sessions:
    right: {turns: [{outcome: cancelled, elapsed: prompt_timeout}], received: {env: {A: unset}}}
    left: {signals: [{TERM: prompt_timeout}], viewers: {v: {status: ready}}, received: {cwd: /}}
  processes: {left 2: {gone_at: 1s}, helper: {alive_at: 0s}}
  returned: 9s
catches: {a-defect: sessions.left.signals}
"""
TERMS = {"left": Policy(prompt_timeout=3), "right": Policy(prompt_timeout=7)}


class SubjectWithLimits:
    """A subject that states limits, and remembers which sessions it was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[dict[str, Any], str]] = []

    def policy(self, request: LimitsRequest) -> Policy:
        """State the defaults."""
        self.asked.append((dict(request.limits), request.dialect))
        return Policy.for_dialect(request.dialect, **request.limits)


def load_scenario() -> Scenario:
    """Load the file of this page."""
    return loads(TEXT, "dir/two.scenario.yaml")


def test_each_session_is_a_scenario_of_its_own() -> None:
    """A subject that plays one agent can play the agent of a session, and the whole order names no agent."""
    whole = load_scenario()
    left, right = whole.parts.values()
    assert [*whole.parts] == ["left", "right"]
    assert (left.session, left.dialect, left.mode, dict(left.policy)) == (
        "left",
        "claude",
        "session",
        {"prompt_timeout": 3},
    )
    assert (right.session, right.dialect, right.mode, dict(right.policy)) == ("right", "pi", "rpc", {})
    assert [len(part.scripts) for part in (left, right)] == [2, 1]
    assert [[item.value for item in part.drive] for part in (left, right)] == [["a", left.drive[1].value], ["b", None]]
    assert {part.id for part in (whole, left, right)} == {"two"}
    assert whole.is_session
    assert (whole.dialect, whole.scripts, whole.prompt) == ("", (), "")


def test_a_file_with_one_agent_has_no_parts() -> None:
    """It is as it always was."""
    assert loads("scenario: a\nagent: pi\nscript: []\n").parts == {}


def test_limits_are_stated_for_each_session() -> None:
    """They follow its dialect and what the file overrides for it; a session has no limit of silence unless told one."""
    subject = SubjectWithLimits()
    terms = load_scenario().request_limits(subject)
    assert subject.asked == [({"prompt_timeout": 3}, "claude"), ({}, "pi")]
    assert isinstance(terms, dict)
    assert {name: policy.prompt_timeout for name, policy in terms.items()} == {"left": 3, "right": 3600}
    assert {policy.inactivity_timeout for policy in terms.values()} == {None}


def test_a_time_of_an_item_follows_the_limits_of_its_session() -> None:
    """The same name is another number in another session."""
    assert load_scenario().bind(TERMS).drive == (
        CallerAction(15, "prompt", "a", session="left"),
        CallerAction(16, "prompt", "b", after=7 * SECOND, session="right"),
        CallerAction(17, "wait", 3 * SECOND, session="left"),
        CallerAction(18, "cancel", at=8 * SECOND, session="right"),
    )


def test_an_expectation_keeps_its_whole_key_and_its_sessions_limits() -> None:
    """`catches` names the whole key, and a row of the verdict is one."""
    assert [
        (expectation.key, expectation.line, expectation.wanted) for expectation in load_scenario().bind(TERMS).expect
    ] == [
        ("sessions.right.turns.1.outcome", 21, "cancelled"),
        ("sessions.right.turns.1.elapsed", 21, 7 * SECOND),
        ("sessions.right.received.env", 21, {"A": None}),
        ("sessions.left.signals", 22, [("TERM", 3 * SECOND)]),
        ("sessions.left.viewers.v.status", 22, "ready"),
        ("sessions.left.received.cwd", 22, {"exact": "/"}),
        ("processes.left 2.gone_at", 23, SECOND),
        ("processes.helper.alive_at", 23, 0),
        ("returned", 24, 9 * SECOND),
        ("leaks", 0, []),
    ]


def test_a_part_has_its_own_program_caller_and_checks() -> None:
    """Its fake is called as the session is, and tells what it was given only if its own checks ask for it."""
    parts = load_scenario().bind(TERMS).parts
    left, right = parts["left"], parts["right"]
    assert [part.program["name"] for part in (left, right)] == ["left", "right"]
    assert left.program["steps"] == [
        (22, "report_start", ([],)),
        (9, "await_prompt", (1,)),
        (9, "sleep", (3 * SECOND,)),
    ]
    assert right.program["steps"][0] == (21, "report_start", (["A"],))
    assert right.program["steps"][-1] == (13, "sleep", (7 * SECOND,))
    assert (left.handler, left.hooks) == (
        Handler(allowed=True, after=3 * SECOND),
        (HookReaction("lint", "PostToolUse"),),
    )
    assert (right.handler, right.hooks) == (None, ())
    assert [expectation.key for expectation in left.expect] == ["signals", "viewers.v.status", "received.cwd", "leaks"]
    assert [action.kind for action in right.drive] == ["prompt", "cancel"]


def test_a_limit_that_one_session_lacks_excuses_its_checks_alone() -> None:
    """The subject is not blamed for what it does not have, and not excused for the rest."""
    text = TEXT.replace("{silence: prompt_timeout}", "{silence: 1s}").replace(", after: prompt_timeout}", "}")
    text = text.replace("at: prompt_timeout + 1s", "at: 1s")
    bound = loads(text).bind({**TERMS, "right": Policy(prompt_timeout=None)})
    assert [expectation.key for expectation in bound.expect if expectation.not_applicable] == [
        "sessions.right.turns.1.elapsed"
    ]


def test_a_script_that_needs_a_missing_limit_excuses_the_scenario() -> None:
    """One session of it cannot be played, so none is."""
    with pytest.raises(NotApplicable, match="prompt_timeout"):
        load_scenario().bind({**TERMS, "right": Policy(prompt_timeout=None)})


def test_one_policy_can_stand_for_all() -> None:
    """A test of the language need not name the sessions again."""
    assert {part.policy for part in load_scenario().bind(Policy(prompt_timeout=2)).parts.values()} == {
        Policy(prompt_timeout=2)
    }
