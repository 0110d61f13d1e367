"""Start an agent where the clock sees it. Owns the order of the two; knows no machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_agentproc.tree import Child, check_proc

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pytest_agentproc.clock import Clock

__all__ = ["spawner"]


def spawner(
    argv: Sequence[str], cwd: str | None, env: Mapping[str, str] | None, clock: Clock
) -> Callable[[str], Child]:
    """Give what starts an agent, its tree held by a containment; it raises OSError if it cannot.

    Args:
        argv: the agent's command.
        cwd: where it runs; None: here.
        env: its whole environment; None: ours.
        clock: is told of an agent that is no child of this process.

    Raises:
        UsageError: /proc does not show the pid namespace of this process.
    """
    check_proc()

    def spawn(containment: str) -> Child:
        child = Child(argv, cwd, env, containment)
        if not child.is_own:
            try:
                clock.meet(child.pid)
            except BaseException:
                child.abandon()
                raise
        return child

    return spawn
