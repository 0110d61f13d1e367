"""Start an agent: what may be said to the system about a new process, and where the clock sees it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pytest_agentproc.errors import UsageError
from pytest_agentproc.tree import AgentChild, require_own_proc

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pytest_agentproc.clock import Clock


def check_command(argv: Sequence[str], cwd: str | None, env: Mapping[str, str] | None, example: str) -> None:
    """Refuse a command that no system call can be given.

    Args:
        argv: the command.
        cwd: where it is to run; None: here.
        env: its environment; None: ours.
        example: how a good call begins.

    Raises:
        UsageError: there is no command, or a text holds what cannot be passed on.
    """
    if not argv:
        raise UsageError("argv is empty, but must name the agent's command", f"write {example}")
    for number, text in enumerate(argv):
        _require_no_nul(f"argv[{number}]", text)
    _require_no_nul("cwd", cwd or "")
    for name, value in (env or {}).items():
        _require_no_nul(f"env name {name!r}", name)
        _require_no_nul(f"env {name!r}", value)
        if not name or "=" in name:
            raise UsageError(f"env name {name!r} is empty or holds '='", "leave it out")


def _require_no_nul(what: str, text: str) -> None:
    if "\0" in text:
        raise UsageError(f"{what} holds a NUL character, which no process can be given", "remove it")
    try:
        os.fsencode(text)
    except UnicodeEncodeError as error:
        raise UsageError(f"{what} holds what is no text: {error.reason}", "remove it") from None


def make_spawner(
    argv: Sequence[str], cwd: str | None, env: Mapping[str, str] | None, clock: Clock
) -> Callable[[str], AgentChild]:
    """Give what starts an agent, its tree held by a containment; it raises OSError if it cannot.

    Args:
        argv: the agent's command.
        cwd: where it runs; None: here.
        env: its whole environment; None: ours.
        clock: gets to know an agent that is no child of this process.

    Raises:
        UsageError: /proc does not show the pid namespace of this process.
    """
    require_own_proc()

    def spawn(containment: str) -> AgentChild:
        child = AgentChild(argv, cwd, env, containment)
        if not child.is_own_child:
            try:
                clock.await_child(child.pid)
            except BaseException:
                child.kill_and_reap()
                raise
        return child

    return spawn
