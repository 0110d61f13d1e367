"""Virtual time for any program: a shim in C that LD_PRELOAD puts into it, and a coordinator that moves its clock.

`page.h` is what the two share. The shim (`shim*.c`) is in every program: its clocks and timed waits follow the page.
The coordinator (`coordinator.c`) starts the program, walks the tree below it (`tree.c`), names programs that the shim
cannot reach (`strangers.c`), and lets the next waiter go (`slots.c`) when every thread is blocked. `_build` finds or
compiles them.
"""

from __future__ import annotations

from pytest_agentproc.clock.preload._build import find_coordinator

__all__ = ["find_coordinator"]
