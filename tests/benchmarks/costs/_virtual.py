"""The cost of virtual time: a scenario, a step, a fake's start. Owns how each is measured."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio

from pytest_agentproc.scenario import loads
from pytest_agentproc.subjects import reference_supervisor
from pytest_agentproc.vocabulary import NANOSECONDS_PER_SECOND
from tests.benchmarks._figures import Samples, compute_ratios, summarize_values
from tests.benchmarks._plain import (
    ENVIRONMENT,
    PLACEMENTS,
    BareSteps,
    PingPong,
    measure_first_byte,
    measure_spawns,
    pin_to_cores,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_agentproc.harness import ScenarioRunner
    from pytest_agentproc.vocabulary import LimitsRequest, Policy, RunReport, RunRequest

__all__ = ["DRIP", "SPOKEN", "WARM_UP", "ScenarioPart", "StartPart", "StepPart", "Stopwatch"]

BACKENDS = ("asyncio", "trio")

SCENARIO = """
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

WITHOUT_SILENCE = SCENARIO.replace("  - silence: inactivity_timeout / 2\n", "")

DRIP = """
scenario: a byte a second
agent: raw
script:
  - drip: {{stdout: ".", every: 1s, for: {seconds}s}}
expect: {{outcome: completed}}
"""

FIRST_WORD = """
scenario: a byte at once, then silence
agent: {{dialect: {}, mode: {}}}
script:
  - raw: "x"
  - silence: for ever
"""

SPOKEN = (
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
"""Every dialect in every mode: each loads modules of its own."""

_PRIMARY = "free"
"""The limits are on processes that are not pinned, as the words of the figure say.

The ping-pong then has two prices, one core shared or a core each, and the scheduler decides between them. Both are
printed beside it; on one shared core, which is pure work, a step is far over the limits.
"""

_BARE = ("polling", "blocking", "floor")
"""The bases to which a step is compared: two ping-pongs, and its own system calls."""

WARM_UP = 5
"""Virtual seconds of a drip that are not counted: the births are over by then."""


class Stopwatch:
    """Measures the real time between two virtual instants, by the first thing that a supervisor reads at each."""

    def __init__(self, begin: int, end: int) -> None:
        self._begin = begin
        self._end = end
        self._started = self.stopped = 0.0

    def trace(self, at: int, code: str, data: Mapping[str, Any]) -> None:
        """See `RunRequest.trace`."""
        if code != "o":
            return
        if not self._started and at >= self._begin:
            self._started = time.perf_counter()
        if not self.stopped and at >= self._end:
            self.stopped = time.perf_counter()

    @property
    def elapsed(self) -> float:
        """The seconds."""
        assert self._started
        assert self.stopped
        return self.stopped - self._started


class _TracedSupervisor:
    """The reference supervisor, with one more listener to its trace."""

    name = "reference"
    keeps_artifacts = True
    holds_sessions = True

    def __init__(self, trace: Callable[[int, str, Mapping[str, Any]], None]) -> None:
        self._trace = trace
        self.started = 0.0

    def policy(self, request: LimitsRequest) -> Policy:
        return reference_supervisor().policy(request)

    async def run(self, order: RunRequest) -> RunReport:
        record = order.trace

        def trace(at: int, code: str, data: dict[str, Any]) -> None:
            record(at, code, data)
            self._trace(at, code, data)

        self.started = time.perf_counter()
        return await reference_supervisor().run(replace(order, trace=trace))


class ScenarioPart:
    """scenario_ratio: `ScenarioRunner.play` of a scenario with one agent over a plain spawn-and-wait in a running loop.

    A play is everything: the fake's files, a loop of its own, the spawn, all steps, the exit, the verdict's record.
    There are ten of each a round, so 200 in the 20 rounds of a whole run. `scenario_over_same_agent` compares with the
    least work of a test without the kit. That test starts the same agent in a loop of its own and waits for it. The
    agent runs the same steps in real time but for its silence.
    """

    name = "scenario"

    def __init__(self, runner: ScenarioRunner, interpreter: str) -> None:
        self._runner = runner
        self._interpreter = interpreter
        self._scenario = loads(SCENARIO, "scenario")
        self._plays = {backend: Samples() for backend in BACKENDS}
        self._spawns = {backend: Samples() for backend in BACKENDS}
        self._same = {backend: Samples() for backend in BACKENDS}
        self._fake = runner.make_fake(loads(WITHOUT_SILENCE, "scenario"))

    def sample(self) -> None:
        for backend in BACKENDS:
            taken = measure_spawns(self._interpreter, 5, backend)
            plays = [self._play(backend) for _ in range(10)]
            self._spawns[backend].add(taken + measure_spawns(self._interpreter, 5, backend))
            self._plays[backend].add(plays)
            self._same[backend].add([self._run(backend) for _ in range(10)])

    def _run(self, backend: str) -> float:
        start = time.perf_counter()
        spawn = partial(
            anyio.run_process,
            self._fake.argv,
            stdin=subprocess.DEVNULL,
            env={**ENVIRONMENT, "PATH": self._fake.folder},
        )
        process = anyio.run(spawn, backend=backend)
        taken = time.perf_counter() - start
        assert b"still here" in process.stdout
        return taken

    def _play(self, backend: str) -> float:
        start = time.perf_counter()
        played = self._runner.play(self._scenario, reference_supervisor(), backend=backend)
        taken = time.perf_counter() - start
        assert played.answer is not None
        assert played.answer.outcome == "completed"
        return taken

    def report(self) -> dict[str, Any]:
        return {
            "scenario_ratio": {
                name: summarize_values(compute_ratios(self._plays[name], self._spawns[name])) for name in BACKENDS
            },
            "scenario_over_same_agent": {
                name: summarize_values(compute_ratios(self._plays[name], self._same[name])) for name in BACKENDS
            },
            "scenario_ms": {
                name: summarize_values([seconds * 1e3 for seconds in self._plays[name].rounds]) for name in BACKENDS
            },
            "spawn_ms": {
                name: summarize_values([seconds * 1e3 for seconds in self._spawns[name].rounds]) for name in BACKENDS
            },
        }

    def close(self) -> None:
        """Nothing is left."""


class StepPart:
    """step_ratio: one virtual step (an agent writes a byte, its supervisor reads it) over one bare round trip.

    The step's time is that of a thousand virtual seconds of a drip, divided; start and end are left out. Both sides of
    the ratio are placed alike. Across cores both sides mostly wait for a core to wake up; on one core they only work.
    If a process is not pinned, as in `step_ratio` itself, chance decides which it is for its whole life.
    `step_floor_ratio` is the cost of the step's bare system calls over the same ping-pong. A step can cost less than
    either: where a core is free, its two sides look out for one another awake, and the ping-pong's sleep.
    """

    name = "step"
    steps = 1000

    def __init__(self, runner: ScenarioRunner, interpreter: str) -> None:
        self._runner = runner
        self._scenario = loads(DRIP.format(seconds=self.steps + WARM_UP + 1), "drip")
        self._interpreter = interpreter
        self._bare = {(place, kind): Samples() for place in PLACEMENTS for kind in _BARE}
        self._steps = {(place, backend): Samples() for place in PLACEMENTS for backend in BACKENDS}

    def sample(self) -> None:
        for place in PLACEMENTS:
            bare: dict[str, list[float]] = {kind: [] for kind in _BARE}
            for backend in BACKENDS:
                for kind, taken in bare.items():
                    taken.append(self._measure_round_trip(place, kind))
                self._steps[place, backend].add([self._measure_step(place, backend)])
            for kind, taken in bare.items():
                taken.append(self._measure_round_trip(place, kind))
                self._bare[place, kind].add(taken)

    def _measure_round_trip(self, place: str, kind: str) -> float:
        """Measure with a pair of its own: where the kernel put it once, it stays."""
        if kind == "floor":
            bare = BareSteps(self._interpreter, place)
            taken = bare.measure_step(self.steps)
            bare.close()
            return taken
        pair = PingPong(self._interpreter, place, polls=kind == "polling")
        taken = pair.measure_round_trip(self.steps)
        pair.close()
        return taken

    def _measure_step(self, place: str, backend: str) -> float:
        here, there = PLACEMENTS[place]
        begin = WARM_UP * NANOSECONDS_PER_SECOND
        watch = Stopwatch(begin, begin + self.steps * NANOSECONDS_PER_SECOND)

        def trace(at: int, code: str, data: Mapping[str, Any]) -> None:
            if at == 0:
                os.sched_setaffinity(0, here)  # the agent, just born, stays where it is
            watch.trace(at, code, data)

        with pin_to_cores(there):
            self._runner.play(self._scenario, _TracedSupervisor(trace), backend=backend)
        return watch.elapsed / self.steps

    def report(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for place in PLACEMENTS:
            for kind, name in (("polling", "step_ratio"), ("blocking", "step_ratio_to_blocking")):
                found[name if place == _PRIMARY else f"{name}_{place}"] = {
                    backend: summarize_values(compute_ratios(self._steps[place, backend], self._bare[place, kind]))
                    for backend in BACKENDS
                }
            floor = compute_ratios(self._bare[place, "floor"], self._bare[place, "polling"])
            found["step_floor_ratio" if place == _PRIMARY else f"step_floor_ratio_{place}"] = summarize_values(floor)
        times = {**self._steps, **self._bare}
        for place in PLACEMENTS:
            found[f"step_us_{place}"] = {
                key[1]: summarize_values([seconds * 1e6 for seconds in taken.rounds])
                for key, taken in times.items()
                if key[0] == place
            }
        return found

    def close(self) -> None:
        """Nothing is left."""


class StartPart:
    """fake_start_ratio: spawn of a fake of each dialect to its first byte over a bare interpreter that writes one byte.

    The fake keeps real time and has its lifeline. `fake_start_in_lockstep_ratio` is the same under a virtual clock,
    from the call of `run_once` to its first read. So it holds the spawn window and the first grants.
    """

    name = "start"

    def __init__(self, runner: ScenarioRunner, interpreter: str) -> None:
        self._runner = runner
        self._scenario = loads(FIRST_WORD.format("raw", "text"), "first-word")
        self._fakes = {
            f"{dialect} {mode}": runner.make_fake(loads(FIRST_WORD.format(dialect, mode))) for dialect, mode in SPOKEN
        }
        self._bare = [interpreter, "-I", "-S", "-c", "import posix; posix.write(1, b'x')"]
        self._taken = {name: Samples() for name in ("bare", *self._fakes, "lockstep")}

    def sample(self) -> None:
        taken: dict[str, list[float]] = {name: [] for name in self._taken}
        for _ in range(5):
            taken["bare"].append(measure_first_byte(self._bare))
            for name, fake in self._fakes.items():
                taken[name].append(measure_first_byte(fake.argv, {**ENVIRONMENT, "PATH": fake.folder}))
            taken["lockstep"].append(self._measure_start_in_lockstep())
        for name, samples in self._taken.items():
            samples.add(taken[name])

    def _measure_start_in_lockstep(self) -> float:
        watch = Stopwatch(0, 0)
        subject = _TracedSupervisor(watch.trace)
        self._runner.play(self._scenario, subject)
        return watch.stopped - subject.started

    def report(self) -> dict[str, Any]:
        taken = self._taken
        return {
            "fake_start_ratio": {
                name: summarize_values(compute_ratios(taken[name], taken["bare"])) for name in self._fakes
            },
            "fake_start_in_lockstep_ratio": summarize_values(compute_ratios(taken["lockstep"], taken["bare"])),
            "start_ms": {
                name: summarize_values([seconds * 1e3 for seconds in samples.rounds]) for name, samples in taken.items()
            },
        }

    def close(self) -> None:
        """The runner removes the fake."""
