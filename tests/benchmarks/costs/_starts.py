"""The cost of a fake's start and of a whole scenario, over that of a bare interpreter."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from pytest_agentproc.harness import ScenarioRunner
from pytest_agentproc.scenario import loads
from pytest_agentproc.subjects import reference_supervisor
from tests.benchmarks._figures import Part, Ratio, measure_mean
from tests.benchmarks.costs._bare import ENVIRONMENT, INTERPRETER, spawn_bare_interpreter, start_and_kill

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["BACKENDS", "measure_scenarios", "measure_starts"]

BACKENDS = ("asyncio", "trio")

_SPOKEN = (
    ("raw", "text"),
    ("claude", "print"),
    ("claude", "session"),
    ("pi", "json"),
    ("pi", "rpc"),
    ("codex", "exec"),
    ("gemini", "text"),
    ("gemini", "json"),
    ("gemini", "stream"),
    ("acp", "session"),
)
"""Dialects in their modes: each loads modules of its own."""

_FIRST_WORD = """
scenario: a byte at once, then silence
agent: {{dialect: {}, mode: {}}}
script:
  - raw: "x"
  - silence: for ever
"""

_FEW_STEPS = """
scenario: an agent with a few steps, one of them half the limit of silence
agent: pi
script:
  - say: let me look
  - silence: inactivity_timeout / 2
  - say: still here
  - answer: done
  - exit: 0
expect: {outcome: completed}
"""


@contextmanager
def measure_starts(*, is_small: bool) -> Iterator[Part]:
    """Measure a fake of each dialect, in real time, up to its first byte, and a bare interpreter that writes one."""
    times = 1 if is_small else 5
    bare = partial(start_and_kill, [INTERPRETER, "-I", "-S", "-c", "import posix; posix.write(1, b'x')"])
    measures: dict[str, Callable[[], float]] = {"bare start": partial(measure_mean, bare, times)}
    ratios = {}
    with ScenarioRunner() as runner:
        for dialect, mode in _SPOKEN:
            name = f"start {dialect} {mode}"
            fake = runner.make_fake(loads(_FIRST_WORD.format(dialect, mode)))
            start = partial(start_and_kill, fake.argv, {**ENVIRONMENT, "PATH": fake.folder})
            measures[name] = partial(measure_mean, start, times)
            ratios[f"{name} over bare"] = Ratio(name, "bare start", 2.2)
        yield Part(measures, ratios)


@contextmanager
def measure_scenarios(*, is_small: bool) -> Iterator[Part]:
    """Measure a play of a scenario with one agent: the files, the loop, the fake, all steps and the record."""
    times = 1 if is_small else 10
    scenario = loads(_FEW_STEPS, "scenario")
    with ScenarioRunner() as runner:

        def play(backend: str) -> None:
            played = runner.play(scenario, reference_supervisor(), backend=backend)
            assert played.answer is not None
            assert played.answer.outcome == "completed"

        measures = {"bare spawn": partial(measure_mean, spawn_bare_interpreter, times)}
        ratios = {}
        for backend in BACKENDS:
            play(backend)  # it imports what it needs
            measures[f"play {backend}"] = partial(measure_mean, partial(play, backend), times)
            ratios[f"play {backend} over spawn"] = Ratio(f"play {backend}", "bare spawn", 4.0)
        yield Part(measures, ratios)
