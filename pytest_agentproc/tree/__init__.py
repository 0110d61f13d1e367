"""Process trees: start an agent, end it with all its descendants, reap it.

Signals go through pidfds, or to unreaped children of a keeper; `Keeper` is the process that holds a whole tree. A
`LeakTracker` is for starts that are not the supervisor's: it knows which processes a part of a program has left.
"""

from __future__ import annotations

from pytest_agentproc.tree._child import Child
from pytest_agentproc.tree._keeper import Ended, Keeper, KeeperDied, Left
from pytest_agentproc.tree._kernel import pidfd_of
from pytest_agentproc.tree._leak_tracker import LeakTracker, disown
from pytest_agentproc.tree._ownership import OwnedProcess, Ownership
from pytest_agentproc.tree._prctl import adopting
from pytest_agentproc.tree._snapshots import ProcessSnapshot, check_proc, command_line, sight
from pytest_agentproc.tree._wakeup import Wakeup
from pytest_agentproc.tree._walk import descendants, group_of

__all__ = [
    "Child",
    "Ended",
    "Keeper",
    "KeeperDied",
    "LeakTracker",
    "Left",
    "OwnedProcess",
    "Ownership",
    "ProcessSnapshot",
    "Wakeup",
    "adopting",
    "check_proc",
    "command_line",
    "descendants",
    "disown",
    "group_of",
    "pidfd_of",
    "sight",
]
