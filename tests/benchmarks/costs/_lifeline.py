"""The cost of the verdict on a clean run: is no process left, no unrelated one harmed? Owns how it is measured."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING, Any

from pytest_agentproc.clock import VirtualClock
from pytest_agentproc.harness import PlayResult, build_run_request
from pytest_agentproc.harness._signal_guard import guard_signals, make_participant_finder
from pytest_agentproc.record import Record
from pytest_agentproc.scenario import loads
from pytest_agentproc.subjects import reference_supervisor
from pytest_agentproc.verdict import Verdict
from pytest_agentproc.verdict._agent_checks import check_stray_signals
from pytest_agentproc.verdict._checks import check_leaks
from tests.benchmarks._figures import Samples, compute_ratios, summarize_values

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_agentproc.harness import ScenarioRunner

__all__ = ["LifelinePart"]

SCENARIO = """
scenario: an agent that says a word and exits
agent: pi
script: [{say: working}, {silence: 1s}, {answer: done}, {exit: 0}]
expect: {outcome: completed}
"""

_REPETITIONS = 300


class LifelinePart:
    """lifeline_verdict_us: after a clean run, from "all are inert" to "no process is left, none was harmed".

    It also gives the cost of watching a run's signals, with one of them judged. Beside it are the same round's bare
    settle poll and 100 system calls that do nothing.
    """

    name = "lifeline"

    def __init__(self, runner: ScenarioRunner) -> None:
        self._clock = VirtualClock()
        scenario, subject = loads(SCENARIO, "lifeline"), reference_supervisor()
        bound = scenario.bind(scenario.request_limits(subject))
        record = Record()
        self._fake = runner.make_fake(scenario, clock=self._clock, record=record)
        order = build_run_request(bound, self._fake, self._clock, record.add)
        self._played = PlayResult(bound, record, self._clock.run(subject.run, order), None)
        self._verdicts, self._watches, self._settles, self._calls = Samples(), Samples(), Samples(), Samples()

    def sample(self) -> None:
        self._calls.add(_measure_work(_call_getppid_100_times))
        self._settles.add(_measure_work(self._clock.hub.settle_participants))
        self._verdicts.add(_measure_work(self._verdict))
        self._watches.add(_measure_work(self._watch))

    def _verdict(self) -> None:
        self._fake.watch.collect(self._played.record)
        found = check_leaks(self._played, []), check_stray_signals(self._played, "unharmed")
        assert [check.verdict for check in found] == [Verdict.PASSED, Verdict.PASSED]

    def _watch(self) -> None:
        with guard_signals(_refuse_event, make_participant_finder(self._clock)):
            os.kill(os.getpid(), signal.SIGURG)

    def report(self) -> dict[str, Any]:
        return {
            "lifeline_verdict_us": _summarize_microseconds(self._verdicts),
            "signals_watched_us": _summarize_microseconds(self._watches),
            "settle_poll_us": _summarize_microseconds(self._settles),
            "lifeline_verdict_over_100_calls": summarize_values(compute_ratios(self._verdicts, self._calls)),
        }

    def close(self) -> None:
        self._clock.close()


def _refuse_event(data: dict[str, Any]) -> None:
    raise AssertionError(data)


def _summarize_microseconds(samples: Samples) -> dict[str, Any]:
    return summarize_values([1e6 * seconds for seconds in samples.rounds])


def _call_getppid_100_times() -> None:
    for _ in range(100):
        os.getppid()


def _measure_work(work: Callable[[], object]) -> list[float]:
    taken = []
    for _ in range(_REPETITIONS):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return taken
