"""A host whose loop is blocked for a while: agents go on, and the loop meets all of that at once. Decides no order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_agentproc.clock._runs import Runs
from pytest_agentproc.errors import ClockError

if TYPE_CHECKING:
    from pytest_agentproc.clock._hub import Hub

__all__ = ["block"]


def block(hub: Hub, until: int) -> None:
    """Let time pass in a callback of the loop, as one that computes does; nothing is read and no timer fires.

    The next iteration of the loop is as it is in real time after such a callback: it takes what is readable, and fires
    the timers that are due, without a look in between.

    Args:
        hub: whose time passes.
        until: the instant, in nanoseconds, at which the callback is done.
    """
    hub.turns += 1
    hub.is_waiting = True
    deadline = (until, Runs.LOOP)
    try:
        hub.settle()
        while (process := hub.rule.first_process(deadline)) is not None:
            hub.rule.now, path = process
            hub.grant(hub.roll.participants[path])
            hub.settle()
        hub.rule.now = max(hub.rule.now, until)
        hub.is_late = True
    except ClockError as error:
        hub.fail(error)
    finally:
        hub.is_waiting = False
