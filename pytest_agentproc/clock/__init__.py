"""Time: the clock protocol, the real clock, and the virtual clock that spans real child processes.

    _protocol       the clock protocol, the current clock, the real clock, and virtual time in seconds
    _jump           the rule that decides which side moves next, and when time moves; pure
    _hub            the lockstep that obeys the rule
    _hub_socket     the socket where a process enters the lockstep
    _participants   the processes that time waits for, each a `_participant`; `_waiting_words` says what one waits for
    _wrappers       programs around an agent
    _runs           the supervised runs of the host
    _guards         signs that the host hangs, spins or polls; `_debugger` says whether they count
    _blockage       a host whose loop is blocked for a while
    loops/          the event loops of asyncio and trio; `_warnings` is about their end, `_host_hooks` about the
                    starts and signals of the host that the hub must see at once
    _virtual        the virtual clock as users see it
    _wall           Python's own clocks, which follow it
    preload/        virtual time for any program; `_popen` has the limits of `subprocess` be exact in it

Heavy parts load when they are used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_agentproc.clock._debugger import is_debugged, record_debugger, register_debugger_listener
from pytest_agentproc.clock._guards import LONGEST_POLLING_PERIOD_NS, WAKE_GAP_TOLERANCE_NS, PollingDetector
from pytest_agentproc.clock._jump import HostState, JumpRule, NextMove, SpawnPath
from pytest_agentproc.clock._note_translation import convert_note_to_event
from pytest_agentproc.clock._protocol import Clock, SystemClock, WatchedRun, current_clock
from pytest_agentproc.clock._waiting_words import describe_endless_wait, describe_waiting_fake

if TYPE_CHECKING:
    from pytest_agentproc.clock._hub_socket import bind_socket_in
    from pytest_agentproc.clock._popen import make_popen_limits_exact
    from pytest_agentproc.clock._virtual import VirtualClock, is_in_loop, raise_interrupt_alone, require_backend
    from pytest_agentproc.clock.loops._warnings import silence_loop_warnings

__all__ = [
    "LONGEST_POLLING_PERIOD_NS",
    "WAKE_GAP_TOLERANCE_NS",
    "Clock",
    "HostState",
    "JumpRule",
    "NextMove",
    "PollingDetector",
    "SpawnPath",
    "SystemClock",
    "VirtualClock",
    "WatchedRun",
    "bind_socket_in",
    "convert_note_to_event",
    "current_clock",
    "describe_endless_wait",
    "describe_waiting_fake",
    "is_debugged",
    "is_in_loop",
    "make_popen_limits_exact",
    "raise_interrupt_alone",
    "record_debugger",
    "register_debugger_listener",
    "require_backend",
    "silence_loop_warnings",
]


def __getattr__(name: str) -> Any:
    if name in ("VirtualClock", "is_in_loop", "raise_interrupt_alone", "require_backend"):
        from pytest_agentproc.clock import _virtual

        return getattr(_virtual, name)
    if name == "make_popen_limits_exact":
        from pytest_agentproc.clock._popen import make_popen_limits_exact

        return make_popen_limits_exact
    if name == "bind_socket_in":
        from pytest_agentproc.clock._hub_socket import bind_socket_in

        return bind_socket_in
    if name == "silence_loop_warnings":
        from pytest_agentproc.clock.loops._warnings import silence_loop_warnings

        return silence_loop_warnings
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
