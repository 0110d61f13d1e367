"""Process trees: start an agent, end it with all its descendants, reap it. Signals go through pidfds only."""

from __future__ import annotations

from pytest_agentproc.tree._bell import Bell
from pytest_agentproc.tree._child import Child
from pytest_agentproc.tree._walk import command_of

__all__ = ["Bell", "Child", "command_of"]
