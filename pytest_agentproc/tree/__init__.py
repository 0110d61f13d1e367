"""Process trees: start an agent, end it with all its descendants, reap it.

Signals go through pidfds, or to unreaped children of a keeper; `Keeper` is the process that holds a whole tree. A
`LeakTracker` is for starts that are not the supervisor's: it knows which processes a part of a program has left.
"""

from __future__ import annotations

from pytest_agentproc.tree._child import AgentChild
from pytest_agentproc.tree._keeper import Keeper, KeeperDied, find_interpreter
from pytest_agentproc.tree._kernel import open_pidfd
from pytest_agentproc.tree._leak_tracker import LeakTracker, exclude_from_tracking
from pytest_agentproc.tree._ownership import OwnedProcess, Ownership
from pytest_agentproc.tree._prctl import adopt_orphans_in_block, die_with_parent
from pytest_agentproc.tree._snapshots import ProcessState, read_command_line, require_own_proc, take_snapshot
from pytest_agentproc.tree._starts import COMMAND_TEXT_OF_FORK, ProcessStart, listen_to_starts
from pytest_agentproc.tree._wakeup import LoopWakeup
from pytest_agentproc.tree._walk import list_descendants, read_group

__all__ = [
    "COMMAND_TEXT_OF_FORK",
    "AgentChild",
    "Keeper",
    "KeeperDied",
    "LeakTracker",
    "LoopWakeup",
    "OwnedProcess",
    "Ownership",
    "ProcessStart",
    "ProcessState",
    "adopt_orphans_in_block",
    "die_with_parent",
    "exclude_from_tracking",
    "find_interpreter",
    "list_descendants",
    "listen_to_starts",
    "open_pidfd",
    "read_command_line",
    "read_group",
    "require_own_proc",
    "take_snapshot",
]
