"""Owns `agentproc new`: the first lines of a scenario. Writes over nothing and runs on any platform."""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING

from pytest_agentproc.cli._calls import write_output_file
from pytest_agentproc.cli._shapes import SCENARIO_TEMPLATE_BY_SHAPE
from pytest_agentproc.corpus import SCENARIO_FILE_SUFFIX
from pytest_agentproc.errors import UsageError
from pytest_agentproc.scenario import SCHEMA_MODELINE_FORMAT, loads
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
  - linger: for ever                  # and then it stays
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
    claim = claim if _UNQUOTED_CLAIM_PATTERN.fullmatch(claim) else json.dumps(claim, ensure_ascii=False)
    text = text.format(modeline=SCHEMA_MODELINE_FORMAT.format(options.schema), claim=claim, agent=agent, body=body)
    loads(text, options.file or "<new>")
    if options.file is None:
        sys.stdout.write(text)
        return 0
    path = options.file if options.file.endswith(SCENARIO_FILE_SUFFIX) else options.file + SCENARIO_FILE_SUFFIX
    write_output_file(path, text)
    sys.stdout.write(f"{path}\n")
    return 0
