"""Makes docs/reference/waits.md: which calls about time are exact, in which kinds of programs.

`python -m tests.process.preload.waits` compiles `programs/waits.c` in each way, runs it, and writes the page. Owns the
list of what is not exact, each with its reason.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from tests.process.preload.stand import LIMIT, require_program, run_in_virtual_time

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs/reference/waits.md"
SOURCE = Path(__file__).parent / "programs/waits.c"

COMPILERS = {
    "glibc": ["cc", "-DNO_OWN_CALLS"],
    "glibc, own calls": ["cc"],
    "static": ["cc", "-static"],
    "musl": ["musl-gcc"],
}
"""The kinds of programs. The first one carries the library; the others are traced."""

PLACES = ("main", "thread", "vfork", "handler")
"""Where a call is made: `main`, another thread, a child of `vfork`, the handler of a signal."""

_READ = "A traced program limits reads by `SO_RCVTIMEO`."
_WRITE = "The kernel ends a write that `SO_SNDTIMEO` limits."
_DATAGRAMS = "The kernel looks at the limit of `recvmmsg` from datagram to datagram."
_WAYS = ("libc", "syscall", "own")
NAMED = {
    ("glibc", "futex_lock_pi", "syscall"): "No signal ends the kernel's wait for a lock with priorities.",
    ("glibc", "pthread_rwlock_timedrdlock", "libc"): "libc's lock for readers and writers waits by itself.",
    ("glibc, own calls", "read_so_rcvtimeo", "own"): _READ,
    **{(kind, "read_so_rcvtimeo", way): _READ for kind in ("static", "musl") for way in _WAYS},
    **{
        (kind, name, way): reason
        for name, reason in {"write_so_sndtimeo": _WRITE, "recvmmsg": _DATAGRAMS}.items()
        for kind in COMPILERS
        for way in _WAYS
        if (kind, way) != ("glibc", "own")
    },
}
"""Calls that end by the machine's clock: the program is named, and is not judged in virtual time."""

_HEAD = """\
# Calls about time

These calls of Linux read a clock, wait with a limit or arm a timer. A program makes a call in three ways. It uses a
function of libc. It gives the number of the call to `syscall()`. Or it has the instruction itself, as Go, Bun and some
crates of Rust have.

"Exact" means that the call takes its time to the nanosecond in
[virtual time](../explanation/virtual-time-for-programs.md). "Named" means that the call ends by the machine's clock.
Then the kit prints the program's name, and does not judge it in virtual time. This command makes the page from runs of
one program: `python -m tests.process.preload.waits`.

- **glibc**: the program carries the library.
- **glibc, own calls**: it carries the library, and makes system calls itself. It is traced, too.
- **static, musl**: the library cannot enter it. It is traced.

"""


_FOOT = """\
An empty cell: there is no such function. Each cell is the same in `main`, in another thread, in a child of `vfork`, and
in the handler of a signal. The locks and conditions of `pthread` must not be used in a child of `vfork`."""


def build(kind: str, folder: Path) -> Path:
    """Compile the program for a kind; skip the test if the compiler is not here."""
    words = COMPILERS[kind]
    program = folder / kind.replace(", ", "-").replace(" ", "-")
    command = [require_program(words[0]), *words[1:], "-O1", str(SOURCE), "-o", str(program), "-lpthread"]
    if words[0] != "musl-gcc":
        command.append("-lrt")
    subprocess.run(command, check=True, timeout=LIMIT)
    return program


def run_calls(program: Path, place: str, *names: str) -> tuple[dict[tuple[str, str], bool], list[str]]:
    """Run the calls with these names in one of the places, and say of each way whether it was exact.

    Returns:
        Call and way, each with whether it took its time; and what the coordinator said.
    """
    run = run_in_virtual_time(program, place, *names)
    if run.code:
        raise AssertionError(run.out + run.err)
    lines = [line.split() for line in run.out.splitlines()]
    return {(line[0], line[1]): line[2] == line[3] for line in lines}, run.notes


def list_names(kind: str, place: str = "main") -> tuple[list[str], list[str]]:
    """List the calls that are exact in each way, and those that are named in one."""
    text = SOURCE.read_text("utf-8").partition("} calls[] = {")[2].partition("};")[0]
    names = [line.split('"')[1] for line in text.splitlines() if '"' in line]
    names = [name for name in names if place != "vfork" or not name.startswith("pthread_")]
    named = [name for name in names if any(key[:2] == (kind, name) for key in NAMED)]
    return [name for name in names if name not in named], named


def _render() -> str:
    cells: dict[tuple[str, str, str], str] = {}
    with tempfile.TemporaryDirectory() as folder:
        for kind in COMPILERS:
            program = build(kind, Path(folder))
            exact, named = list_names(kind)
            results = run_calls(program, "main", *exact)[0]
            for name in named:
                results |= run_calls(program, "main", name)[0]
            keys = [(kind, name, way) for name, way in results]
            cells |= {key: "named" if key in NAMED or not results[key[1:]] else "exact" for key in keys}
    calls = list(dict.fromkeys(name for _, name, _ in cells))
    order = [name for name in [*list_names("")[0]] if name in calls]
    columns = [(kind, way) for kind in COMPILERS for way in _WAYS if (kind, way) != ("glibc", "own")]
    lines = [
        "| call | " + " | ".join(f"{kind}: {way}" for kind, way in columns) + " |",
        "|---" * (len(columns) + 1) + "|",
    ]
    for name in order:
        row = [cells.get((kind, name, way), "") for kind, way in columns]
        lines.append(f"| `{name}` | " + " | ".join(row) + " |")
    reasons = [f"- {reason}" for reason in dict.fromkeys(NAMED.values())]
    foot = ["", _FOOT, "", "## Why some are named", "", *reasons]
    return _HEAD + "\n".join([*lines, *foot]) + "\n"


if __name__ == "__main__":
    PAGE.write_text(_render(), "utf-8")
