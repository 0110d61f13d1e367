"""Scenario files that plugin tests write into their own folders. Knows nothing of pytest."""

from __future__ import annotations

from pathlib import Path

from pytest_agentproc.corpus import split_agent
from tests.architecture.sources import ROOT
from tests.bundled import load_all_bundled

__all__ = ["BROKEN", "CORPUS", "EXPLAINED", "GREEN", "RED"]

_FOLDER = ROOT / "scenarios"
CORPUS = [
    f"{Path(scenario.path).relative_to(_FOLDER).as_posix()}::{split_agent(scenario.id)[0]}"
    f"[{'-'.join(filter(None, (scenario.agent_name, 'asyncio')))}]"
    for scenario in load_all_bundled()
]
"""The node ids of the bundled ones, below their folder."""

GREEN = """\
scenario: an agent says hello and exits
agent: raw
script:
  - say: hello
expect:
  outcome: completed
  text: hello
  elapsed: 0
"""

RED = """\
# A comment, so that the claim is not on the first line.
scenario: an agent says hello and exits with code 3
agent: raw
script:
  - silence: 2s
  - say: hello
  - exit: 3
expect:
  outcome: completed
  exit_code: 0
"""

EXPLAINED = """\
two.scenario.yaml:9: an agent says hello and exits with code 3

  outcome: failed  two.scenario.yaml:9
    expected  completed
    seen      failed
  exit_code: failed  two.scenario.yaml:10
    expected  0
    seen      3
              (3 is how the agent ended, which agent_status reports; exit_code is the supervisor's own)
  passed: leaks
  the agent's last step: two.scenario.yaml:7: - exit: 3
"""
"""The report about RED, as two.scenario.yaml, before its timeline."""

BROKEN = """\
scenario: nothing in here is right
agent: rawr
script:
  - sya: hello
"""
