"""`python -m tests.benchmarks.memory`: the memory cost of a supervised flood, on the supervisor's side.

A real fake prints without end in one virtual instant, the reference reads it, and both sides are recorded.
Each case is played in a process of its own, whose largest resident size is compared with that of the same play with 1
KiB. The record is measured as its JSON lines and as its content in memory. Exit code 1: a limit is passed. Run by
hand; it is no test.
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_agentproc.harness import ScenarioRunner, build_run_request
from pytest_agentproc.record import Record
from pytest_agentproc.scenario import loads
from pytest_agentproc.subjects import reference_supervisor
from pytest_agentproc.vocabulary import Policy
from tests.architecture.sources import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_agentproc.vocabulary import RunReport

MIB = 1 << 20
MAX_GROWTH = 64 * MIB
MAX_RECORD = MIB

SCENARIO = """
scenario: an agent prints very much at once
agent: pi
script:
  - flood: {{{stream}: {size}}}
  - exit: 0
expect: {{outcome: {outcome}}}
"""

CASES: Mapping[str, tuple[str, bool, str]] = {
    "lines on stdout": ("stdout", True, "incomplete"),
    "lines on stderr": ("stderr", True, "incomplete"),
    "one line on stdout": ("stdout", False, "protocol_error"),
    "one line on stderr": ("stderr", False, "incomplete"),
}
"""Where it is printed, whether as lines, and how that must end; of 1 KiB no line is too long."""

_IN_LINES = """
def flood(player, stream, size):
    line = b"x" * 1023 + b"\\n"
    return player._write_chunks(stream, (line * (min(65536, size - start) // 1024) for start in range(0, size, 65536)))
sys.modules["pytest_agentproc.fake_agents.player"].ScriptPlayer._play_flood_step = flood
module.main("""
"""An addition to a fake that gives its flood lines, which no scenario can do."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure; return the exit code: 1 if a limit is passed."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.memory", description=__doc__)
    parser.add_argument("--size", default="1 GiB", help="what is printed; default: 1 GiB")
    parser.add_argument("--backend", default="asyncio", choices=("asyncio", "trio"))
    parser.add_argument("--play", choices=CASES, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.play:
        print(json.dumps(_play_case(options.play, options.size, options.backend)))
        return 0
    passed = False
    print(f"{'case':20} {'seconds':>8} {'growth':>10} {'record, as lines':>18} {'and in memory':>14}")
    for case in CASES:
        little, much = (_play_in_own_process(case, size, options.backend) for size in ("1 KiB", options.size))
        growth = much["peak"] - little["peak"]
        is_over = growth >= MAX_GROWTH or max(much["lines"], much["held"]) >= MAX_RECORD
        passed |= is_over
        words = [_format_kib(growth), _format_kib(much["lines"]), _format_kib(much["held"])]
        print(
            "{:20} {:8.1f} {:>10} {:>18} {:>14}".format(case, much["seconds"], *words) + " OVER" * is_over, flush=True
        )
    return int(passed)


def _format_kib(size: int) -> str:
    return f"{size / 1024:.0f} KiB"


def _play_in_own_process(case: str, size: str, backend: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.benchmarks.memory", "--play", case, "--size", size, "--backend", backend]
    completed = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True, timeout=600)
    figures: dict[str, Any] = json.loads(completed.stdout)
    expected = "incomplete" if size == "1 KiB" else CASES[case][2]
    if figures["outcome"] != expected:
        raise RuntimeError(f"{case}, {size}: {figures['outcome']} and not {expected}")
    return figures


def _play_case(case: str, size: str, backend: str) -> dict[str, Any]:
    stream, has_lines, outcome = CASES[case]
    scenario = loads(SCENARIO.format(stream=stream, size=size, outcome=outcome))
    bound, record = scenario.bind(Policy.for_dialect("pi")), Record()
    start = time.perf_counter()
    with ScenarioRunner() as runner, runner.virtual_clock() as clock:
        fake = runner.make_fake(scenario, clock=clock, record=record)
        if has_lines:
            launcher = Path(fake.path)
            launcher.write_text(_IN_LINES.join(launcher.read_text("utf-8").split("\nmodule.main(")), "utf-8")
        order = build_run_request(bound, fake, clock, record.add)
        answer: RunReport = clock.run(reference_supervisor().run, order, backend=backend)
        fake.finish()
    taken = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "seconds": taken,
        "peak": peak,
        "outcome": str(answer.outcome),
        "lines": sum(len(line.encode()) + 1 for line in record.lines()),
        "held": _sum_held_sizes(record.events),
    }


def _sum_held_sizes(root: object) -> int:
    """Sum the sizes of everything that the events of a record hold."""
    seen: dict[int, object] = {}
    found = [root]
    while found:
        item = found.pop()
        if id(item) not in seen and not isinstance(item, type):
            seen[id(item)] = item
            found += gc.get_referents(item)
    return sum(sys.getsizeof(value) for value in seen.values())


if __name__ == "__main__":
    sys.exit(main())
