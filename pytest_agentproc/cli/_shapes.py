"""Owns the shapes of `agentproc new`: a whole behaviour each, with its checks. Writes no file."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pytest_agentproc.vocabulary import DIALECTS

if TYPE_CHECKING:
    from collections.abc import Mapping

_RUN_MODE_BY_DIALECT = {name: dialect.default_mode for name, dialect in DIALECTS.items() if dialect.decoders}
_SESSION_MODE_BY_DIALECT = {name: mode for name, dialect in DIALECTS.items() for mode in dialect.session_protocols}


class ScenarioTemplate(NamedTuple):
    """A scenario to begin with.

    Args:
        claim: what must be true, in one sentence.
        agent: the dialect of the agent that shows it if the user names none.
        modes: the mode by every dialect that can show it.
        body: the file below its agent.
    """

    claim: str
    agent: str
    modes: Mapping[str, str]
    body: str


SCENARIO_TEMPLATE_BY_SHAPE = {
    "partial": ScenarioTemplate(
        "half a line of output is activity",
        "raw",
        _RUN_MODE_BY_DIALECT,
        """\
script:
  - raw: {text: "half a line, and the rest\\n", cut: [11], gap: inactivity_timeout - 1s}
  - answer: done
expect:
  outcome: completed
  signals: []""",
    ),
    "ignore-term": ScenarioTemplate(
        "an agent that ignores TERM is killed after the grace",
        "raw",
        _RUN_MODE_BY_DIALECT,
        """\
script:
  - when: {signal: TERM}
    do: []
  - silence: for ever
expect:
  outcome: inactive
  signals: [{TERM: inactivity_timeout}, {KILL: inactivity_timeout + kill_grace}]""",
    ),
    "grandchild": ScenarioTemplate(
        "a child that keeps stdout open does not hold up the end of its agent",
        "pi",
        _RUN_MODE_BY_DIALECT,
        """\
script:
  - spawn: {id: server, inherits: [stdout]}
  - answer: done
expect:
  outcome: completed
  returned: 0s
  leaks: []""",
    ),
    "flood": ScenarioTemplate(
        "an agent that floods stderr is not blocked",
        "pi",
        _RUN_MODE_BY_DIALECT,
        """\
script:
  - flood: {stderr: 10 MiB}
  - answer: done
expect:
  outcome: completed
  text: done""",
    ),
    "crash": ScenarioTemplate(
        "a session whose agent crashes goes on with a new agent",
        "claude",
        _SESSION_MODE_BY_DIALECT,
        """\
drive: [{prompt: one}, {wait_for: turn 1}, {wait_for: status restarting}, {prompt: two}]
scripts:
  - [{wait_for: prompt 1}, {answer: first}, {exit: 3}]
  - [{wait_for: prompt 1}, {answer: second}]
expect:
  turns: [{text: first}, {text: second}]""",
    ),
    "permission": ScenarioTemplate(
        "an agent that may use a tool goes on",
        "claude",
        {name: mode for name, mode in _SESSION_MODE_BY_DIALECT.items() if name != "pi"},  # a pi has no permissions
        """\
handler: {permission: allow, after: 2s}
script:
  - wait_for: prompt 1
  - tool: {id: t1, name: Edit}
  - ask: {permission: Edit, allowed: [{tool_done: t1}, {answer: edited}]}
expect:
  turns: [{text: edited}]
  asked: [{permission: Edit, answer: allow, after: 2s}]""",
    ),
    "cancel": ScenarioTemplate(
        "a turn that its caller cancels ends, and the agent lives on",
        "acp",
        _SESSION_MODE_BY_DIALECT,
        """\
drive: [{prompt: work}, {cancel: {}, at: 5s}, {wait_for: turn 1}, {prompt: again}]
script:
  - wait_for: prompt 1
  - wait_for: cancel
  - acknowledge: cancel
  - wait_for: prompt 2
  - answer: done
expect:
  turns: [{outcome: cancelled}, {text: done}]
  signals: []""",
    ),
    "queue": ScenarioTemplate(
        "a prompt waits until the turn before it is over",
        "pi",
        _SESSION_MODE_BY_DIALECT,
        """\
drive: [{prompt: one}, {prompt: two}]
script:
  - wait_for: prompt 1
  - silence: 5s
  - answer: first
  - wait_for: prompt 2
  - answer: second
expect:
  turns: [{text: first}, {text: second}]""",
    ),
    "background": ScenarioTemplate(
        "the answer of a background task is no answer to a prompt",
        "claude",
        {"claude": "session"},
        """\
drive: [{prompt: build}, {wait_for: turn 1}, {wait_for: background 1}]
script:
  - wait_for: prompt 1
  - task: b
  - answer: started
  - silence: 5s
  - task_done: b
  - background_turn: {task: b, answer: finished}
expect:
  turns: [{text: started}]
  background: [{text: finished}]""",
    ),
}
"""Every shape by its name."""
