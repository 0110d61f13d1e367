"""A host whose loop is blocked: agents run on, and the loop meets all their events at once. Decides no order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_agentproc.clock._runs import HostRuns
from pytest_agentproc.errors import ClockError

if TYPE_CHECKING:
    from pytest_agentproc.clock._hub import Hub


def block_loop(hub: Hub, until: int) -> None:
    """Let time pass in a callback of the loop, as a long computation does; nothing is read and no timer fires.

    The next iteration of the loop is the one that follows such a callback in real time. It takes all readable data and
    fires all due timers, without a look in between.

    Args:
        hub: its time passes.
        until: the instant, in nanoseconds, at which the callback is done.
    """
    hub.turns += 1
    hub.is_waiting = True
    deadline = (until, HostRuns.LOOP)
    try:
        # Agents run in the same order as in a turn, but the host gets no look in between. Before this existed, a
        # supervisor whose timer beats output that waits to be read was always green.
        hub.settle_participants()
        while (process := hub.rule.find_first_process(deadline)) is not None:
            hub.rule.now, path = process
            hub.grant(hub.registry.participants[path])
            hub.settle_participants()
        hub.rule.now = max(hub.rule.now, until)
        # The loop has to meet events and timers in one iteration. Two looks would give the output the advantage that
        # virtual time gives it everywhere else.
        hub.is_late = True
    except ClockError as error:
        hub.abort_with(error)
    finally:
        hub.is_waiting = False
