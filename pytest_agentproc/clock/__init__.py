"""Time: the clock protocol, the real clock, and the virtual clock that spans real child processes.

`_jump` is the rule that decides who moves next, `_hub` the lockstep that obeys it, `_door` where a process comes into
it, `_participant` such a process, `_wrappers` what may be around it, `_waits` who of that
counts in real time, `_runs` the host's side, `_window` what the host does, `_sentry` a
host that never comes back, `_blockage` one that comes back late, `_pulse` one that looks in turns, `_asyncio` and
`_trio` the loops, `_quiet` their end, `_wall` Python's clocks, `_debugger` whether guards count. Heavy parts load when
used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_agentproc.clock._debugger import note_debugger
from pytest_agentproc.clock._events import signal_name, told
from pytest_agentproc.clock._jump import Host, JumpRule, Move, Path
from pytest_agentproc.clock._protocol import Clock, Watched, current_clock
from pytest_agentproc.clock._pulse import LONGEST, ROUNDING, Pulse
from pytest_agentproc.clock._system import SystemClock

if TYPE_CHECKING:
    from pytest_agentproc.clock._door import bind_in
    from pytest_agentproc.clock._quiet import hush_at_end
    from pytest_agentproc.clock._virtual import VirtualClock, is_in_loop, require_backend

__all__ = [
    "LONGEST",
    "ROUNDING",
    "Clock",
    "Host",
    "JumpRule",
    "Move",
    "Path",
    "Pulse",
    "SystemClock",
    "VirtualClock",
    "Watched",
    "bind_in",
    "current_clock",
    "hush_at_end",
    "is_in_loop",
    "note_debugger",
    "require_backend",
    "signal_name",
    "told",
]


def __getattr__(name: str) -> Any:
    if name in ("VirtualClock", "is_in_loop", "require_backend"):
        from pytest_agentproc.clock import _virtual

        return getattr(_virtual, name)
    if name == "bind_in":
        from pytest_agentproc.clock._door import bind_in

        return bind_in
    if name == "hush_at_end":
        from pytest_agentproc.clock._quiet import hush_at_end

        return hush_at_end
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
