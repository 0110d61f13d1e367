"""When a supervisor below a coordinator that does not return is given up: its looks cost the machine time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest

from pytest_agentproc.clock import VirtualClock
from pytest_agentproc.harness._endless_waits import cancel_endless_run
from pytest_agentproc.harness._pace import RunForecast, make_exact_pace

if TYPE_CHECKING:
    from pytest_agentproc.errors import EndlessWait, Spin

LIMITS = 7200
"""Of a supervisor with a long `max_runtime`, in seconds."""


class FakeWakes:
    """The looks of a supervisor, in place of those on the coordinator's page."""

    def __init__(self, count: int, slow_at: float) -> None:
        self._count, self.slow_at = count, slow_at

    def count_wakes(self) -> int:
        """Give how many there were."""
        return self._count

    def have_taken_long(self) -> bool:
        """Say so from an instant on."""
        return anyio.current_time() >= self.slow_at


@pytest.mark.parametrize(
    ("count", "slow_at", "seconds"),
    [(10_000, 0, 70), (10_000, 600, 610), (10_000, 10**6, 3610), (10, 0, 3610)],
    ids=["slow at once", "slow later", "never slow", "no looks"],
)
def test_a_supervisor_whose_looks_take_the_machine_long_is_given_up_sooner(
    count: int, slow_at: float, seconds: float
) -> None:
    """An hour of such looks would take more of the machine than a play may, and would end as a kit error."""
    pace = make_exact_pace(RunForecast(None, 10_000_000_000), LIMITS, 0)
    faults: list[EndlessWait | Spin] = []
    looks: Any = FakeWakes(count, slow_at)

    async def supervise() -> None:
        looks.slow_at += anyio.current_time()
        async with cancel_endless_run(pace, looks, faults, ()):
            await anyio.sleep_forever()

    with VirtualClock() as clock:
        clock.run(supervise)
    assert [str(fault) for fault in faults] == [f"the supervisor did not return within {seconds} virtual seconds"]
