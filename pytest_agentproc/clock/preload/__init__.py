"""Virtual time for any program: a shim in C that LD_PRELOAD puts into it, and a coordinator that moves its clock.

Two programs, each in its folder, and what they share in `shared`: the page of memory (`page.c`), and a look into the
files of programs (`image.c`).

- `library` is the shim. It is loaded into every program: its clocks and timed waits follow the page.
- `coordinator` starts the program (`coordinator.c`), walks the tree below it (`tree.c`), and lets the next waiter go
  (`slots.c`) when every thread is blocked. It traces programs that the shim cannot enter (`tracer.c` and its parts;
  `launch.c` is what such a program begins with). It names what neither reaches (`strangers.c`), and what somebody
  outside can end (`outside.c`, `holders.c`). `waits.c` reads what a thread waits for, `explain.c` is the table.

`_build` finds or compiles them.

Why two ways: a call that the shim serves costs no switch to another process, so what uses glibc is not traced. Go, Bun,
static and musl programs call the kernel by themselves; only a tracer sees that. A signal handler within the process
(SECCOMP_RET_TRAP) would be cheaper, but it is inherited by programs that have no such handler, and kills them.
"""

from __future__ import annotations

from pytest_agentproc.clock.preload._build import find_coordinator

__all__ = ["find_coordinator"]
