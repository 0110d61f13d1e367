"""What a session is to do, and who judges it. Values only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_agentproc.supervisor._diagnosis import with_command, with_stderr
from pytest_agentproc.supervisor._framing import Framing
from pytest_agentproc.supervisor._hooks import Hooks
from pytest_agentproc.supervisor._ladder import Ladder
from pytest_agentproc.supervisor._restarts import Restarts
from pytest_agentproc.supervisor._router import Router
from pytest_agentproc.supervisor._status import Standing
from pytest_agentproc.supervisor._tasks import Tasks
from pytest_agentproc.supervisor._tools import Tools
from pytest_agentproc.supervisor._transcript import Transcript
from pytest_agentproc.supervisor._turns import Turns
from pytest_agentproc.supervisor._watchdog import TurnWatchdog
from pytest_agentproc.supervisor.dialects import Setting
from pytest_agentproc.vocabulary import Dialect, Policy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["SessionDeciders", "SessionTask"]


@dataclass(frozen=True, slots=True)
class SessionTask:
    """What a session is to do: whom it starts (for messages), the dialect it speaks, what it begins with, its limits.

    `has_handler` says that the caller answers the agent's questions.
    """

    argv: Sequence[str]
    dialect: str | Dialect
    mode: str = ""
    policy: Policy = field(default_factory=Policy)
    setting: Setting = field(default_factory=Setting)
    has_handler: bool = False

    def complaint(self, why: str, stderr: bytes) -> str:
        """Tell what is wrong with an agent: its command, why, the end of its stderr."""
        return with_command(self.argv, with_stderr(why, stderr))


@dataclass(frozen=True, slots=True)
class SessionDeciders:
    """The judgements of a session, each replaceable."""

    router: Callable[..., Router] = Router
    watchdog: Callable[[Policy], TurnWatchdog] = TurnWatchdog
    tools: Callable[[Policy], Tools] = Tools
    tasks: Callable[[], Tasks] = Tasks
    hooks: Callable[..., Hooks] = Hooks
    ladder: Callable[[Policy], Ladder] = Ladder
    framing: Callable[[], Framing] = Framing
    restarts: Callable[[Policy], Restarts] = Restarts
    turns: Callable[..., Turns] = Turns
    standing: Callable[[], Standing] = Standing
    transcript: Callable[[], Transcript] = Transcript
