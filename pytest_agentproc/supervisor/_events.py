"""What goes into the machine and what comes out of it. Values only; the machine and the driver meet here.

Nobody changes one. They are not frozen all the same: making a frozen one costs three times as much, at every look.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_agentproc.supervisor._intents import SessionEvent

__all__ = [
    "Broken",
    "Close",
    "Command",
    "Due",
    "Eof",
    "Event",
    "Exited",
    "Finish",
    "Output",
    "Publish",
    "Read",
    "Ready",
    "Reap",
    "Signal",
    "Signalled",
    "Spawn",
    "SpawnFailed",
    "Spawned",
    "Start",
    "Sweep",
    "Swept",
    "Watch",
    "Write",
    "Wrote",
]

# Events: what happened.


@dataclass(slots=True)
class Start:
    """The run begins."""


@dataclass(slots=True)
class Spawned:
    """The agent was started."""

    pid: int


@dataclass(slots=True)
class SpawnFailed:
    """The agent could not be started: the system's error number and words."""

    errno: int
    reason: str


@dataclass(slots=True)
class Ready:
    """A stream can be read, or stdin written."""

    stream: str


@dataclass(slots=True)
class Output:
    """Bytes came; `drained` says that a further read would block."""

    stream: str
    data: bytes
    drained: bool


@dataclass(slots=True)
class Eof:
    """A stream ended."""

    stream: str


@dataclass(slots=True)
class Wrote:
    """So many bytes of the prompt were taken; 0: none now."""

    count: int


@dataclass(slots=True)
class Broken:
    """Nobody reads stdin any more."""


@dataclass(slots=True)
class Exited:
    """The agent is gone: a code, or minus a signal's number."""

    status: int


@dataclass(slots=True)
class Swept:
    """Whether no descendant is left."""

    alone: bool


@dataclass(slots=True)
class Signalled:
    """Signals have gone out: a grace counts from now."""


@dataclass(slots=True)
class Due:
    """The machine's deadline has come."""


# Commands: what to do. Its answer, if it has one, is fed before the next command is carried out.


@dataclass(slots=True)
class Spawn:
    """Start the agent, with its tree held as a containment says; answered by Spawned or SpawnFailed."""

    containment: str = "group"


@dataclass(slots=True)
class Watch:
    """Tell when a stream is ready, or no longer."""

    stream: str
    wanted: bool


@dataclass(slots=True)
class Read:
    """Read a stream; answered by Output or Eof, or by nothing if it would block."""

    stream: str
    limit: int


@dataclass(slots=True)
class Write:
    """Write to stdin; answered by Wrote or Broken."""

    data: memoryview


@dataclass(slots=True)
class Close:
    """Close stdin."""


@dataclass(slots=True)
class Signal:
    """Terminate (TERM and CONT) or kill: the whole tree, the agent's process group, or the agent alone.

    Answered by Signalled. `reach` is "tree", "group" or "agent".
    """

    name: str
    reach: str = "tree"


@dataclass(slots=True)
class Sweep:
    """Look for descendants that are left; answered by Swept."""


@dataclass(slots=True)
class Reap:
    """Take the agent's exit status."""


@dataclass(slots=True)
class Publish:
    """Tell a session's caller and its viewers."""

    event: SessionEvent


@dataclass(slots=True)
class Finish:
    """Nothing is left to be done."""


Event = Start | Spawned | SpawnFailed | Ready | Output | Eof | Wrote | Broken | Exited | Swept | Signalled | Due
Command = Spawn | Watch | Read | Write | Close | Signal | Sweep | Reap | Publish | Finish
