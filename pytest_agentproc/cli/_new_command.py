"""Owns `agentproc new`: the first lines of a scenario. Writes over nothing and runs on any platform."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, NamedTuple

from pytest_agentproc.cli._calls import write_output_file
from pytest_agentproc.corpus import SCENARIO_FILE_SUFFIX
from pytest_agentproc.errors import UsageError
from pytest_agentproc.scenario import SCHEMA_MODELINE_FORMAT, loads, quote_yaml_text
from pytest_agentproc.vocabulary import DIALECTS

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from pytest_agentproc.vocabulary import Dialect


HELP_TEXT = """\
The first line names the language's schema, which `agentproc schema` writes, for editors that speak YAML.

exit codes:
  0  the file is written, or its text printed
  2  there is such a file already, or it cannot be written

examples:
  agentproc new hang                        # writes hang.scenario.yaml
  agentproc new hang --agent claude --claim 'a claude that hangs after its answer is ended'
  agentproc new ignores-term --shape ignore-term    # a behaviour with its checks, to change
  agentproc new                             # prints it
"""

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

_PLAIN_SCENARIO_FORMAT = """\
{modeline}
scenario: {claim}
agent: {agent}
script:                               # what the fake agent does
{body}
"""
_TEMPLATE_SCENARIO_FORMAT = """\
{modeline}
scenario: {claim}
agent: {agent}
{body}
"""
_LINGERING_AGENT_BODY = """\
  - answer: done                      # its text, and that it is done
  - silence: for ever                 # and then it stays
expect:                               # what must be true of its supervisor
  outcome: completed
  text: done
  returned: linger_grace"""
_HANGING_AGENT_BODY = """\
  - say: almost done                  # some output
  - silence: inactivity_timeout + 1m  # then nothing more
expect:                               # what must be true of its supervisor
  outcome: inactive
  elapsed: inactivity_timeout"""
_SESSION_AGENT_BODY = """\
  - wait_for: prompt 1
  - say: almost done                  # some output
  - wait_for: cancel                  # then nothing more, until it is cancelled
  - acknowledge: cancel
policy: {prompt_timeout: 60s}         # limits of the supervisor
expect:                               # what must be true of it
  turns: [{outcome: timed_out}]"""
_CLAIM_BY_BODY = {
    _LINGERING_AGENT_BODY: "an agent that stays after its answer is ended, and the answer stands",
    _HANGING_AGENT_BODY: "an agent that says nothing more is ended as inactive",
    _SESSION_AGENT_BODY: "a prompt that takes too long is cancelled",
}
_UNQUOTED_CLAIM_PATTERN = re.compile(r"[A-Za-z][\w ,;()./-]*")
"""A claim that YAML takes as it stands."""

_DEFAULT_SCHEMA_FILE = "agentproc.schema.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "file", nargs="?", metavar="FILE", help=f"its path; *{SCENARIO_FILE_SUFFIX} is added; printed without it"
    )
    parser.add_argument("--agent", choices=tuple(DIALECTS), help="its dialect; raw without it, or that of the shape")
    parser.add_argument("--shape", choices=tuple(SCENARIO_TEMPLATE_BY_SHAPE), help="the behaviour that it begins with")
    parser.add_argument("--claim", help="what must be true, in one sentence")
    parser.add_argument(
        "--schema", default=_DEFAULT_SCHEMA_FILE, help=f"where the schema is; {_DEFAULT_SCHEMA_FILE} without it"
    )


def _choose_script_body(dialect: Dialect) -> str:
    """Choose the steps that an agent in the first mode of a dialect can play."""
    if dialect.default_mode in dialect.session_protocols:
        return _SESSION_AGENT_BODY
    return (
        _LINGERING_AGENT_BODY if dialect.steps.get(dialect.default_mode) else _HANGING_AGENT_BODY
    )  # plain text has no last word


def _format_agent(shape: str, dialect: str, modes: Mapping[str, str]) -> str:
    """Write the agent of a shape in one line of YAML.

    Raises:
        UsageError: no agent of this dialect can show the behaviour.
    """
    if dialect not in modes:
        raise UsageError(f"the shape {shape} cannot be for {dialect}", f"it can be for {', '.join(modes)}")
    mode = modes[dialect]
    return dialect if mode == DIALECTS[dialect].default_mode else f"{{dialect: {dialect}, mode: {mode}}}"


def run_command(options: argparse.Namespace) -> int:
    """Write the file, or print it.

    Raises:
        UsageError: it is there already, or cannot be written, or the shape is not for this agent.
        ScenarioError: the claim makes no scenario.
    """
    if options.shape:
        claim, agent, modes, body = SCENARIO_TEMPLATE_BY_SHAPE[options.shape]
        agent = _format_agent(options.shape, options.agent or agent, modes)
        text = _TEMPLATE_SCENARIO_FORMAT
    else:
        agent, text = options.agent or "raw", _PLAIN_SCENARIO_FORMAT
        body = _choose_script_body(DIALECTS[agent])
        claim = _CLAIM_BY_BODY[body]
    claim = options.claim or claim
    claim = claim if _UNQUOTED_CLAIM_PATTERN.fullmatch(claim) else quote_yaml_text(claim)
    text = text.format(modeline=SCHEMA_MODELINE_FORMAT.format(options.schema), claim=claim, agent=agent, body=body)
    loads(text, options.file or "<new>")
    if options.file is None:
        sys.stdout.write(text)
        return 0
    path = options.file if options.file.endswith(SCENARIO_FILE_SUFFIX) else options.file + SCENARIO_FILE_SUFFIX
    write_output_file(path, text)
    sys.stdout.write(f"{path}\n")
    return 0
