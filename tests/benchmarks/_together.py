"""Several supervised runs at once under one clock, for real and in the model. Owns the identities in one record.

Every event of the supervisor's side carries the number of its run, so that a timeline tells whose it is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import anyio
import anyio.abc

from pytest_agentproc.events import Returned
from pytest_agentproc.harness import InMemoryModel, add_run_to_model, build_run_request
from pytest_agentproc.record import Record
from pytest_agentproc.subjects import reference_supervisor
from tests.event_lines import add_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_agentproc.clock import VirtualClock, WatchedRun
    from pytest_agentproc.events import Event, Trace
    from pytest_agentproc.harness import ScenarioRunner
    from pytest_agentproc.scenario import BoundScenario, Scenario
    from pytest_agentproc.vocabulary import RunReport


__all__ = ["bind_all", "play_together", "play_together_in_model"]


class _NumberedRecord(Record):
    """Writes into another record, each event with the number of its run."""

    __slots__ = ("_number", "_shared", "_trace")

    def __init__(self, shared: Record, number: int, trace: Trace | None = None) -> None:
        super().__init__()
        self._shared = shared
        self._number = number
        self._trace = trace

    def add(self, event: Event) -> None:
        self._shared.add(replace(event, session=f"run {self._number}"))
        if self._trace is not None:
            self._trace(event)


class _DeclaringClock:
    """The virtual clock, saying when a run was declared: start order would else be the backend's, which trio draws."""

    name = "virtual"

    def __init__(self, clock: VirtualClock, declared: Callable[[], None]) -> None:
        self._clock = clock
        self._declared = declared

    def instant(self) -> int:
        return self._clock.instant()

    def await_child(self, pid: int) -> None:
        self._clock.await_child(pid)

    async def drive(self, watched: WatchedRun) -> None:
        self._declared()
        await self._clock.drive(watched)


def bind_all(scenarios: Sequence[Scenario]) -> list[BoundScenario]:
    """Bind each scenario to the reference supervisor's limits, and name its agent after its number."""
    bounds = [scenario.bind(scenario.request_limits(reference_supervisor())) for scenario in scenarios]
    return [
        replace(bound, program={**bound.program, "name": f"agent{number}"}) for number, bound in enumerate(bounds, 1)
    ]


def play_together_in_model(
    bounds: Sequence[BoundScenario], model_type: type[InMemoryModel] = InMemoryModel
) -> tuple[Record, list[RunReport | None]]:
    """Play all at once in the model, or in a broken one.

    Returns:
        One record of all, and each run's answer.
    """
    record = Record()
    model = model_type(record)
    tagged = [_NumberedRecord(record, number) for number in range(len(bounds))]
    machines = []
    for bound, own in zip(bounds, tagged, strict=True):
        model.record = own  # the driver's side of the record is handed over now
        machines.append(add_run_to_model(model, bound, reference_supervisor()))
    model.record = record
    answers: list[RunReport | None] = [None] * len(bounds)

    def over() -> None:
        number = next(number for number in model.over if answers[number] is None)
        answers[number] = machines[number].build_result(0).to_report()
        tagged[number].add(Returned(model.now(), "supervisor"))

    model.on_over = over
    model.run()
    return record, answers


def play_together(
    runner: ScenarioRunner, bounds: Sequence[BoundScenario], backend: str, trace: Trace | None = None
) -> tuple[Record, list[RunReport | None]]:
    """Play all at once with real processes under one virtual clock.

    Args:
        runner: where the fakes are made.
        bounds: what the agents play, one run each, declared in this order.
        backend: "asyncio" or "trio".
        trace: called with each event of a supervisor besides.

    Returns:
        One record of all, and each run's answer.
    """
    record = Record()
    answers: list[RunReport | None] = [None] * len(bounds)
    with runner.virtual_clock() as clock:
        fakes = [
            runner.make_fake(bound.scenario, clock=clock, name=bound.program["name"], record=record) for bound in bounds
        ]

        async def run(number: int, *, task_status: anyio.abc.TaskStatus[None]) -> None:
            own = _NumberedRecord(record, number, trace)
            order = build_run_request(
                bounds[number], fakes[number], _DeclaringClock(clock, task_status.started), own.add
            )
            answers[number] = await reference_supervisor().run(order)
            add_line(own, clock.instant(), "m", {"process": "supervisor", "returned": True})

        async def run_all() -> None:
            async with anyio.create_task_group() as group:
                for number in range(len(bounds)):
                    await group.start(run, number)

        clock.run(run_all, backend=backend)
        for fake in fakes:
            fake.finish()
    return record, answers
