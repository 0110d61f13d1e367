"""Cases that show a broken tie rule where most scenarios do not. Owns their scripts; knows no rule and no verdict."""

from __future__ import annotations

from pytest_agentproc.scenario import Scenario, loads

__all__ = ["CASES", "load_case", "load_pairs"]

_HEAD = "scenario: {claim}\nagent: {{dialect: raw, prompt: stdin}}\n"
_POLICY = "policy: {inactivity_timeout: 3s, kill_grace: 1s}\n"

CASES = {
    "five deaths at once": """
script:
  - when: {signal: TERM}
    do: []
  - spawn: {id: a, how: same_group}
  - spawn: {id: b, how: same_group, inherits: [stdout]}
  - spawn: {id: c, how: same_group, script: [{spawn: {id: d, how: same_group, ignores_signals: true}}, {silence: for
  ever}]}
  - silence: for ever
""",
    "a flood that ends in an exit at the deadline": """
script:
  - flood: {stdout: 100 KiB}
  - flood: {stderr: 70 KiB}
  - silence: inactivity_timeout
  - exit: 0
""",
    "a parent that ends a group, of which one is stopped, one has left, and one has ended before": """
script:
  - spawn:
      id: gone
      how: own_group
      for: 500ms
      zombie: true
  - spawn:
      id: shell
      how: new_session
      script:
        - when: {signal: TERM}
          do: []
        - spawn: {id: inner, script: [{spawn: {id: deep, ignores_signals: true}}, {silence: 2s}]}
        - spawn: {id: asleep, stopped: true}
        - spawn: {id: away, how: own_group}
        - silence: for ever
  - silence: 1s
  - kill: gone
  - kill: shell
  - say: they are gone
  - kill: shell
  - silence: for ever
""",
    "a child that traps a signal while another dies of it": """
script:
  - spawn:
      id: trap
      how: same_group
      inherits: [stdout]
      script:
        - when: {signal: TERM}
          do: [{say: saved}, {silence: kill_grace}, {exit: 3}]
        - silence: for ever
  - spawn: {id: soft, how: same_group}
  - silence: for ever
""",
    "writes of 3,000 bytes fill a pipe before its bytes are used up": """
script:
  - raw: {text: "0123456789", repeat: 300}
  - raw: {text: "0123456789", repeat: 300}
  - raw: {text: "0123456789", repeat: 300}
  - raw: {text: "0123456789", repeat: 300}
  - raw: {text: "0123456789", repeat: 300}
  - raw: {text: "0123456789", repeat: 300}
  - raw: {text: "0123456789", repeat: 300}
  - raw: {text: "0123456789", repeat: 300}
  - raw: {text: "0123456789", repeat: 300}
  - raw: {text: "0123456789", repeat: 300}
  - raw: {text: "0123456789", repeat: 300}
  - raw: {text: "0123456789", repeat: 300}
  - raw: {text: "0123456789", repeat: 300}
  - raw: {text: "0123456789", repeat: 300}
  - raw: {text: "0123456789", repeat: 300}
  - raw: {text: "0123456789", repeat: 300}
  - raw: {text: "0123456789", repeat: 300}
  - exit: 0
""",
    "both streams and a reader of stdin at one instant": """
drive: [{prompt: {repeat: "y", size: 200 KiB}}]
script:
  - meanwhile: [{drip: {stderr: "!", every: 1s, for: 2s}}]
  - meanwhile: [{drip: {stdout: "?", every: 1s, for: 2s}}]
  - stdin: stop
  - silence: 1s
  - stdin: read
  - silence: 1s
  - exit: 4
""",
    "a parent and its child talk at the same instants": """
script:
  - spawn:
      id: kid
      how: same_group
      inherits: [stdout, stderr]
      script: [{drip: {stdout: "k", every: 1s, for: 4s}}, {raw: {text: "x", to: stderr}}]
  - drip: {stdout: "p", every: 1s, for: 4s}
  - silence: inactivity_timeout
""",
    "a reader that wakes at the instant of another's timer": """
drive: [{prompt: {repeat: "y", size: 200 KiB}}]
script:
  - spawn: {id: kid, how: same_group, inherits: [stdout], script: [{drip: {stdout: "k", every: 1s, for: 3s}}]}
  - stdin: stop
  - silence: 2s
  - stdin: read
  - wait_for: eof
  - say: thanks
  - exit: 0
""",
    "a launcher that follows its child, whose tools end in three ways": """
script:
  - when: {signal: TERM}
    do: [{kill: {id: node, signal: TERM}}]
  - spawn:
      id: node
      inherits: [stdout]
      script:
        - when: {signal: TERM}
          do: [{say: saved}, {kill: group}, {silence: 500ms}, {exit: 7}]
        - spawn: {id: group, how: new_session, script: [{spawn: {id: a, ignores_signals: true}}, {spawn: b}, {silence:
        for ever}]}
        - spawn:
            id: deaf
            how: own_group
            ignores_signals: true
            script: [{spawn: {id: c, script: [{wait_for: {exit: parent}}, {die: TERM}]}}, {wait_for: {exit: parent}}]
        - meanwhile: [{wait_for: {exit: group}}, {say: no group}, {wait_for: {exit: group}}, {say: none yet}]
        - spawn: {id: short, for: 2s}
        - wait_for: {exit: short}
        - kill: {id: short, signal: TERM}
        - kill: {id: deaf, signal: HUP}
        - say: no tool
        - silence: for ever
  - wait_for: {exit: node}
  - say: followed
  - exit: 3
""",
    "a child that is gone before anybody waits": """
script:
  - spawn:
      id: a
      how: own_group
      script: [{spawn: {id: b, clear_env: true, script: [{wait_for: {exit: parent}}, {say: x}]}}]
  - silence: 1s
  - wait_for: {exit: a}
  - silence: 1s
  - exit: 0
""",
    "two steps of an agent at the instant of a limit": """
policy: {inactivity_timeout: 30s, max_runtime: 5s, kill_grace: 3s}
script:
  - spawn: {id: tool, for: 5s}
  - silence: 5s
  - say: a word
  - wait_for: {exit: tool}
  - exit: 3
""",
    "a reaction beside tracks that are due with it": """
policy: {inactivity_timeout: 30s, max_runtime: 5s, kill_grace: 3s}
script:
  - meanwhile: [{drip: {stderr: "m", every: 1s, for: 10s}}]
  - when: {signal: TERM}
    do: [{say: one}, {silence: 1s}, {say: two}, {silence: 1s}, {exit: 5}]
  - silence: for ever
""",
}


def load_case(claim: str) -> Scenario:
    """Load one case."""
    text = CASES[claim].lstrip()
    policy = "" if text.startswith("policy") else _POLICY
    return loads(_HEAD.format(claim=claim) + policy + text + "expect: {outcome: completed}\n", claim)


def load_pairs() -> list[tuple[Scenario, Scenario]]:
    """Give cases to be run two at a time under one clock."""
    talk, trap, both = (
        load_case("a parent and its child talk at the same instants"),
        load_case("a child that traps a signal while another dies of it"),
        load_case("both streams and a reader of stdin at one instant"),
    )
    return [(talk, both), (both, talk), (trap, trap)]
