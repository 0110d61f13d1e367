"""`python -m tests.benchmarks.cost`: the cost of the kit, as ratios of CPU time to the cost without it.

All parts are measured in turn, round by round, and the median over the rounds counts. Exit code 1: a ratio is over its
limit. Run by hand; a test runs it with `--small`, and looks only whether its figures are possible.
"""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from tests.benchmarks.costs._agents import measure_agents, measure_steps
from tests.benchmarks.costs._below import measure_below_coordinator
from tests.benchmarks.costs._collection import measure_collection
from tests.benchmarks.costs._model import measure_model
from tests.benchmarks.costs._starts import measure_scenarios, measure_starts
from tests.benchmarks.costs._unused import measure_unused

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from tests.benchmarks._figures import Part

PARTS: dict[str, Callable[..., AbstractContextManager[Part]]] = {
    "unused": measure_unused,
    "start": measure_starts,
    "scenario": measure_scenarios,
    "step": measure_steps,
    "agents": measure_agents,
    "collection": measure_collection,
    "model": measure_model,
    "below": measure_below_coordinator,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure; return the exit code: 1 if a ratio is over its limit."""
    options = _parse_options(arguments)
    with ExitStack() as stack:
        parts = {name: stack.enter_context(PARTS[name](is_small=options.small)) for name in options.only}
        for number in range(options.rounds):
            for part in parts.values():
                part.run_round()
            print(f"round {number + 1} of {options.rounds}", file=sys.stderr, flush=True)
        report = {name: _build_report(part) for name, part in parts.items()}
    print(json.dumps(report, indent=1) if options.json else _format_table(report))
    return 1 if any(ratio["is_over"] for each in report.values() for ratio in each["ratios"].values()) else 0


def _build_report(part: Part) -> dict[str, Any]:
    return {
        "ratios": {
            name: {"median": ratio, "limit": limit, "is_over": limit is not None and ratio > limit}
            for name, ratio, limit in part.get_median_ratios()
        },
        "cpu_ms": {name: seconds * 1000 for name, seconds in part.get_median_seconds()},
        "others": dict(part.count_facts()),
    }


def _format_table(report: dict[str, Any]) -> str:
    lines = [f"CPython {sys.version.split()[0]}"]
    for part, figures in report.items():
        lines.append(f"\n{part}")
        for name, ratio in figures["ratios"].items():
            limit = "" if ratio["limit"] is None else f"  limit {ratio['limit']:g}{'  OVER' * ratio['is_over']}"
            lines.append(f"  {name:40} {ratio['median']:9.4g}{limit}")
        lines += [f"  {name:40} {value:9.4g} ms" for name, value in figures["cpu_ms"].items()]
        lines += [f"  {name:40} {value:9.4g}" for name, value in figures["others"].items()]
    return "\n".join(lines)


def _parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.cost", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--rounds", type=int, default=11, metavar="N", help="default: 11")
    parser.add_argument("--small", action="store_true", help="the least of everything, to see that it works")
    parser.add_argument(
        "--only", type=_parse_part_names, default=[*PARTS], metavar="PARTS", help=f"some of {','.join(PARTS)}"
    )
    return parser.parse_args(arguments)


def _parse_part_names(text: str) -> list[str]:
    for name in (names := text.split(",")):
        if name not in PARTS:
            raise argparse.ArgumentTypeError(f"there is no part {name}; parts are {', '.join(PARTS)}")
    return names


if __name__ == "__main__":
    sys.exit(main())
