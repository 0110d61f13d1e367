"""Scenario files that plugin tests write into their own folders. Knows nothing of pytest."""

from __future__ import annotations

__all__ = ["BROKEN", "GREEN", "RED"]

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

BROKEN = """\
scenario: nothing in here is right
agent: rawr
script:
  - sya: hello
"""
