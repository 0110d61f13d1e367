"""Process trees: start an agent, end it with all its descendants, reap it.

Signals go through pidfds, or to unreaped children of a keeper's own; `Keeper` is the process that holds a whole tree.
"""

from __future__ import annotations

from pytest_agentproc.tree._bell import Bell
from pytest_agentproc.tree._child import Child
from pytest_agentproc.tree._keeper import Ended, Keeper, KeeperDied, Left
from pytest_agentproc.tree._walk import command_of

__all__ = ["Bell", "Child", "Ended", "Keeper", "KeeperDied", "Left", "command_of"]
