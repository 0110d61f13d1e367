"""Every kind of descendant, alone or with others, under an agent that ends in each way. Owns scripts alone."""

from __future__ import annotations

from pytest_agentproc.scenario import Scenario, loads

__all__ = ["ENDS", "KINDS", "load_kind"]

_HEAD = "scenario: {claim}\nagent: raw\npolicy: {{inactivity_timeout: 3s, kill_grace: 1s}}\nscript:\n"

KINDS = {
    "same group": "how: same_group",
    "own group": "how: own_group",
    "new session": "how: new_session",
    "double fork": "how: double_fork",
    "daemon": "how: daemon",
    "launcher": "how: launcher",
    "re-forking": "how: refork, every: 700ms",
    "re-forking with three heads for a time": "how: refork, heads: 3, every: 400ms, for: 2s",
    "re-forking with an empty environment": "how: refork, every: 1s, clear_env: true, closed_fds: true",
    "closed descriptors": "how: new_session, closed_fds: true",
    "an empty environment": "how: daemon, clear_env: true",
    "a deaf daemon with neither": (
        "how: daemon, clear_env: true, closed_fds: true, ignores_signals: true, inherits: [stdout]"
    ),
    "stopped": "stopped: true",
    "stopped in its own group": "how: own_group, stopped: true",
    "stopped and deaf in its own group": "how: own_group, stopped: true, ignores_signals: true",
    "stopped and deaf in its own session": "how: new_session, stopped: true, ignores_signals: true, clear_env: true",
    "a stopped orphan": "how: double_fork, stopped: true",
    "a zombie": "zombie: true, for: 500ms",
    "a killed zombie": "zombie: true, how: new_session, ignores_signals: true",
    "below a parent that exits": "how: own_group, script: [{spawn: {id: x, stopped: true}}, {silence: 1s}]",
    "two groups below a parent that exits": (
        "how: same_group, script: [{spawn: {id: x, how: own_group, stopped: true, script: [{say: x}]}}, "
        "{spawn: {id: y, how: own_group, script: [{spawn: {id: z, stopped: true}}, {silence: 2s}]}}, {silence: 1s}]"
    ),
    "below a subreaper": (
        "subreaper: true, script: [{spawn: {id: x, how: daemon}}, "
        "{spawn: {id: y, how: refork, every: 700ms, for: 2s}}, {silence: for ever}]"
    ),
    "below a subreaper that exits": (
        "subreaper: true, how: own_group, script: [{spawn: {id: x, how: own_group, stopped: true}}, "
        "{spawn: {id: y, how: double_fork, stopped: true}}, {silence: 1500ms}]"
    ),
}

ENDS = {
    "exits": "  - silence: 1s\n  - exit: 0\n",
    "is terminated": "  - silence: for ever\n",
    "is killed": "  - when: {signal: TERM}\n    do: []\n  - silence: for ever\n",
    "exits at once": "  - exit: 3\n",
}


def load_kind(claim: str, end: str) -> Scenario:
    """Load one kind under one end."""
    name = f"{claim}, the agent {end}"
    return loads(f"{_HEAD.format(claim=name)}  - spawn: {{id: k, {KINDS[claim]}}}\n{ENDS[end]}", name)
