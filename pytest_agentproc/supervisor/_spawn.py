"""Start an agent where the clock sees it. Owns the order of the two; knows no machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_agentproc.tree import Child

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pytest_agentproc.clock import Clock

__all__ = ["spawner"]


def spawner(
    argv: Sequence[str], cwd: str | None, env: Mapping[str, str] | None, containment: str, clock: Clock
) -> Callable[[], Child]:
    """Give what starts an agent; it raises OSError if it cannot.

    Args:
        argv: the agent's command.
        cwd: where it runs; None: here.
        env: its whole environment; None: ours.
        containment: how its tree is held.
        clock: is told of an agent that is no child of this process.
    """

    def spawn() -> Child:
        child = Child(argv, cwd, env, containment)
        if not child.is_own:
            try:
                clock.meet(child.pid, argv, cwd, env)
            except BaseException:
                child.abandon()
                raise
        return child

    return spawn
