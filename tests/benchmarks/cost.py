"""`python -m tests.benchmarks.cost`: the cost of virtual time, as ratios to a machine's cost without it.

All parts are measured in turn, round by round, so that both sides of a ratio see the same machine. Each round gives a
ratio, and the median over the rounds counts. Exit code 1: a limit is passed. Run by hand; it is no test.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any

from pytest_agentproc.harness import ScenarioRunner
from tests.benchmarks.costs._below import BelowPart
from tests.benchmarks.costs._collection import CollectionPart
from tests.benchmarks.costs._corpus import CorpusPart
from tests.benchmarks.costs._crowd import AgentsPart
from tests.benchmarks.costs._help import HelpPart
from tests.benchmarks.costs._model import ModelPart
from tests.benchmarks.costs._plugin import PluginPart
from tests.benchmarks.costs._virtual import SPOKEN, ScenarioPart, StartPart, StepPart

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.benchmarks._figures import Part

PARTS = ("scenario", "step", "agents", "corpus", "start", "plugin", "help", "collection", "model", "below")

LIMITS = {
    "scenario_ratio asyncio": 1.3,
    "scenario_ratio trio": 1.3,
    "step_ratio asyncio": 1.5,
    "step_ratio trio": 2.0,
    "agents_100_over_5": 1.2,
    "corpus_spawns": 25.0,
    **{f"fake_start_ratio {dialect} {mode}": 1.3 for dialect, mode in SPOKEN},
    "plugin_import_ratio": 1.05,
    "help_ratio": 2.0,
    "collection_ratio": 3.0,
    "below_start_ratio": 1.5,
    "below_step_ratio": 3.0,
}

FLOORS = {"model_per_cpu_second": 1000.0}
"""Figures that must not be less."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure; return the exit code: 1 if a limit is passed."""
    options = _parse_options(arguments)
    with ScenarioRunner() as runner:
        parts = _build_parts(runner, options.only)
        try:
            for number in range(options.rounds):
                start = time.perf_counter()
                for part in parts:
                    part.sample()
                taken = time.perf_counter() - start
                print(f"round {number + 1} of {options.rounds}: {taken:.1f} s", file=sys.stderr, flush=True)
        finally:
            for part in parts:
                part.close()
    figures: dict[str, Any] = {"rounds": options.rounds, "python": sys.version.split()[0], "cores": os.cpu_count()}
    for part in parts:
        figures |= part.report()
    passed = _list_passed_limits(figures)
    print(json.dumps(figures, indent=1) if options.json else _format_table(figures))
    for name in passed:
        print(f"{'under its floor' if name in FLOORS else 'over its limit'}: {name}", file=sys.stderr)
    return 1 if passed else 0


def _build_parts(runner: ScenarioRunner, only: Sequence[str]) -> list[Part]:
    makers: dict[str, Callable[[], Part]] = {
        "scenario": lambda: ScenarioPart(runner, _find_interpreter()),
        "step": lambda: StepPart(runner, _find_interpreter()),
        "agents": lambda: AgentsPart(runner, _find_interpreter()),
        "corpus": lambda: CorpusPart(_find_interpreter()),
        "start": lambda: StartPart(runner, _find_interpreter()),
        "plugin": lambda: PluginPart(_find_interpreter()),
        "help": HelpPart,
        "collection": CollectionPart,
        "model": lambda: ModelPart(_find_interpreter()),
        "below": lambda: BelowPart(_find_interpreter()),
    }
    return [makers[name]() for name in PARTS if name in only]


def _find_interpreter() -> str:
    """Give the interpreter of the fakes, below any virtual environment."""
    return getattr(sys, "_base_executable", None) or sys.executable


def _list_figures(figures: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """List every figure that has a median, by a name of one or two words."""
    rows = []
    for name, figure in figures.items():
        if not isinstance(figure, dict):
            continue
        if "median" in figure:
            rows.append((name, figure))
        rows += [(f"{name} {key}", measured) for key, measured in figure.items() if isinstance(measured, dict)]
    return rows


def _list_passed_limits(figures: dict[str, Any]) -> list[str]:
    over = [name for name, figure in _list_figures(figures) if not _is_within(name, figure["median"])]
    loads = figures.get("plugin_loads", {}).get("heavy", [])
    return over + [f"the plugin loads {name}" for name in loads]


def _is_within(name: str, median: float) -> bool:
    return FLOORS.get(name, median) <= median <= LIMITS.get(name, median)


def _format_table(figures: dict[str, Any]) -> str:
    head = f"{'figure':38} {'median':>9} {'p10':>9} {'p90':>9} {'limit':>7}"
    lines = [f"CPython {figures['python']}, {figures['cores']} cores, {figures['rounds']} rounds", head]
    for name, measured in _list_figures(figures):
        limit, wrong = (FLOORS[name], "UNDER") if name in FLOORS else (LIMITS.get(name), "OVER")
        judged = "" if limit is None else f" {limit:7g} {'ok' if _is_within(name, measured['median']) else wrong}"
        lines.append(f"{name:38} {measured['median']:9.4g} {measured['p10']:9.4g} {measured['p90']:9.4g}{judged}")
    lines += [f"{name} = {row['formula']}" for name, row in _list_figures(figures) if "formula" in row]
    if "plugin_loads" in figures:
        loads = figures["plugin_loads"]
        heavy = ", ".join(loads["heavy"]) or "none"
        lines.append(f"of {', '.join(loads['must_not_load'])} the plugin loads: {heavy}")
    return "\n".join(lines)


def _parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.cost", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--rounds", type=int, default=20, metavar="N", help="default: 20, which is 40 plugin pairs")
    parser.add_argument(
        "--only",
        type=_parse_part_names,
        default=PARTS,
        metavar="PARTS",
        help=f"some of {','.join(PARTS)}; default: all",
    )
    return parser.parse_args(arguments)


def _parse_part_names(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    for name in names:
        if name not in PARTS:
            raise argparse.ArgumentTypeError(f"there is no part {name}; parts are {', '.join(PARTS)}")
    return names


if __name__ == "__main__":
    sys.exit(main())
