"""The machine sleeps below a coordinator: the wall clock of all programs jumps, and no other clock does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.subjects import Command, Function
from pytest_agentproc.verdict import Verdict, judge_play
from tests.bundled import load_bundled
from tests.process.preload.stand import require_program
from tests.process.preload.supervising import supervise_by_monotonic_clock, supervise_by_wall_clock

if TYPE_CHECKING:
    from pytest_agentproc.harness import ScenarioRunner
    from pytest_agentproc.vocabulary import Subject

pytestmark = [pytest.mark.once, pytest.mark.slow]

LIMITS = {"inactivity_timeout": 180, "max_runtime": 600, "kill_grace": None}
SAYS = {"outcome": {"exit_code": {0: "completed", 124: "inactive", "other": "failed"}}, "text": "stdout"}
BY_CLOCK = str(Path(__file__).parent / "programs" / "by_clock.mjs")


def _make_node_program(clock: str) -> Command:
    words = [require_program("node"), BY_CLOCK, clock, "{agent}"]
    return Command(words, name=clock, limits=LIMITS, says=SAYS, dialects=["raw"])


@pytest.mark.parametrize(
    "scenario", ["machine-sleeps-while-the-agent-works[raw]", "machine-sleeps-within-the-longest-runtime[raw]"]
)
@pytest.mark.parametrize(
    ("subject", "outcome"),
    [
        (Function(supervise_by_wall_clock, limits=LIMITS, dialects=["raw"]), Verdict.FAILED),
        (Function(supervise_by_monotonic_clock, limits=LIMITS, dialects=["raw"]), Verdict.PASSED),
        ("date", Verdict.FAILED),
        ("monotonic", Verdict.PASSED),
    ],
    ids=["function by the wall clock", "function", "program by the wall clock", "program"],
)
def test_a_supervisor_that_counts_by_the_wall_clock_ends_an_agent_at_work(
    runner: ScenarioRunner, subject: Subject | str, outcome: Verdict, scenario: str
) -> None:
    """Only supervisors on an event loop were tried, so one with threads, or in Node, was conformant."""
    tried = _make_node_program(subject) if isinstance(subject, str) else subject
    rows = {row.key: row.verdict for row in judge_play(runner.play(load_bundled(scenario), tried)).rows}
    assert rows["outcome"] is outcome
