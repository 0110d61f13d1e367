"""The cost of a step among many agents, and of its bare system calls there. Owns how both are measured."""

from __future__ import annotations

import contextlib
import resource
from typing import TYPE_CHECKING, Any

from pytest_agentproc.scenario import loads
from pytest_agentproc.vocabulary import NANOSECONDS_PER_SECOND
from tests.benchmarks._figures import Samples, compute_ratios, summarize_values
from tests.benchmarks._plain import BareSteps
from tests.benchmarks._together import bind_all, play_together
from tests.benchmarks.costs._virtual import DRIP, WARM_UP, Stopwatch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_agentproc.harness import ScenarioRunner

__all__ = ["AgentsPart"]


class AgentsPart:
    """agent_step_us: microseconds of one agent's step when many agents drip at once, each due at the same instants.

    `floor_100_over_5` is the same ratio of the bare system calls of a step. Its processes do nothing else: each comes
    back to caches that all the others have used since.
    """

    name = "agents"
    sizes = (1, 5, 20, 100)
    agent_steps = 1500

    def __init__(self, runner: ScenarioRunner, interpreter: str) -> None:
        self._runner = runner
        self._interpreter = interpreter
        self._bare = {size: Samples() for size in (5, 100)}
        self._taken = {size: Samples() for size in self.sizes}
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, most) if most > 0 else 4096, most))

    def sample(self) -> None:
        for size, samples in self._taken.items():
            steps = self.agent_steps // size
            begin = WARM_UP * NANOSECONDS_PER_SECOND
            watch = Stopwatch(begin, begin + steps * NANOSECONDS_PER_SECOND)
            scenario = loads(DRIP.format(seconds=steps + WARM_UP + 1), "drip")
            _, answers = play_together(self._runner, bind_all([scenario] * size), "asyncio", watch.trace)
            assert all(answer is not None and answer.outcome == "completed" for answer in answers)
            samples.add([watch.elapsed / steps / size])
            if size in self._bare:
                bare = BareSteps(self._interpreter, "free", size)
                self._bare[size].add([bare.measure_step(self.agent_steps)])
                bare.close()

    def report(self) -> dict[str, Any]:
        return {
            "agent_step_us": _summarize_microseconds(self._taken),
            "floor_agent_step_us": _summarize_microseconds(self._bare),
            "agents_100_over_5": summarize_values(compute_ratios(self._taken[100], self._taken[5])),
            "floor_100_over_5": summarize_values(compute_ratios(self._bare[100], self._bare[5])),
        }

    def close(self) -> None:
        """Nothing is left."""


def _summarize_microseconds(taken: Mapping[int, Samples]) -> dict[str, Any]:
    return {
        str(size): summarize_values([seconds * 1e6 for seconds in samples.rounds]) for size, samples in taken.items()
    }
