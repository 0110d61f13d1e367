"""`python -m tests.benchmarks.checker`: checking a file takes time as its length, and not as the square of it.

Each kind of file is checked with a number of lines and with four times as many, in turns. It prints how many times
longer the long one took, the median of five. A check that grows with the square takes sixteen times as long. Run by
hand; it is no test. The exit code is 1 if a ratio is above eight.
"""

from __future__ import annotations

import contextlib
import statistics
import sys
import time
from typing import TYPE_CHECKING

from pytest_agentproc.errors import ScenarioError
from pytest_agentproc.scenario import loads

if TYPE_CHECKING:
    from collections.abc import Callable

_HEAD = "scenario: a\nagent: raw\nscript:\n"
_SHORT = 1500
_TURNS = 5
_LARGEST_RATIO = 8.0


def repeat_line(line: str, count: int) -> str:
    """Write a line again and again, N in it as a number."""
    return "".join(line.replace("N", str(number)) for number in range(count))


LONG: dict[str, Callable[[int], str]] = {
    "spawns": lambda n: _HEAD + repeat_line("- spawn: {}\n", n),
    "leaks": lambda n: (
        f"{_HEAD}{repeat_line('- spawn: cN' + chr(10), n)}expect: {{leaks: [{repeat_line('cN, ', n)}]}}\n"
    ),
    "unknown leaks": lambda n: (
        f"{_HEAD}{repeat_line('- spawn: cN' + chr(10), n)}expect: {{leaks: [{repeat_line('dN, ', n)}]}}\n"
    ),
    "processes": lambda n: (
        f"{_HEAD}{repeat_line('- spawn: cN' + chr(10), n)}expect:\n  processes:\n"
        f"{repeat_line('    cN: {alive_at: 0}' + chr(10), n)}"
    ),
    "unknown tools": lambda n: (
        _HEAD.replace("raw", "pi") + repeat_line("- tool: {id: cN, name: x}\n- tool_done: dN\n", n)
    ),
    "unknown steps": lambda n: _HEAD + repeat_line("- qqqqqqN: x\n", n),
}


def measure_check_seconds(text: str) -> float:
    """Say how much processor time the checking of a text takes."""
    start = time.process_time()
    with contextlib.suppress(ScenarioError):
        loads(text)
    return time.process_time() - start


def main() -> int:
    """Measure each kind of file."""
    worst = 0.0
    for kind, make in LONG.items():
        short, long = make(_SHORT), make(4 * _SHORT)
        measure_check_seconds(short)
        ratio = statistics.median(measure_check_seconds(long) / measure_check_seconds(short) for _ in range(_TURNS))
        worst = max(worst, ratio)
        print(f"{kind:14} {4 * _SHORT} lines over {_SHORT}: {ratio:.1f} times as long")
    return 1 if worst > _LARGEST_RATIO else 0


if __name__ == "__main__":
    sys.exit(main())
