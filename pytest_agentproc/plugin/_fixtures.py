"""Owns the fixtures: their names, lifetimes and docs. Thin doors; what is behind them loads when a test uses one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_agentproc.plugin._options import lab_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_agentproc.clock import VirtualClock
    from pytest_agentproc.harness import FakeAgent
    from pytest_agentproc.plugin._run import AgentRun

__all__ = ["agent_run", "fake_agent", "pytest_collection_modifyitems", "virtual_clock", "wall_clock"]


@pytest.fixture
def virtual_clock(request: pytest.FixtureRequest) -> Iterator[VirtualClock]:
    """Run async code in virtual time: hours of silence pass in milliseconds, and every instant is exact.

    `virtual_clock.run(async_function, *args, backend="asyncio")` runs it to its end and gives its result; time moves
    only when it and every fake agent are blocked. `virtual_clock.now` is the time since the clock's start in seconds,
    `virtual_clock.now_ns` the same in nanoseconds.
    """
    with lab_of(request.config).virtual_clock() as clock:
        yield clock


@pytest.fixture
def wall_clock(request: pytest.FixtureRequest, virtual_clock: VirtualClock) -> Iterator[None]:
    """Have `datetime.now()` and `time.time()` of this test follow `virtual_clock`, code under test included.

    `@pytest.mark.wall_clock("2026-11-22T12:00:00Z")` does the same and says what the wall clock shows at the start;
    without a date that is 2026-01-01, midnight UTC. It counts in microseconds. `freeze_time` cannot be used beside it.
    """
    from pytest_agentproc.clock import wall_clock

    marker = request.node.get_closest_marker("wall_clock")
    with wall_clock(virtual_clock, *(marker.args if marker else ())):
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the wall clock to tests that carry its marker."""
    for item in items:
        names = getattr(item, "fixturenames", None)
        if names is not None and "wall_clock" not in names and item.get_closest_marker("wall_clock"):
            names.append("wall_clock")


@pytest.fixture
def fake_agent(request: pytest.FixtureRequest, virtual_clock: VirtualClock) -> Iterator[Callable[[Any], FakeAgent]]:
    """Make a fake agent: a real program that plays a script, to be started by your own code under `virtual_clock`.

    `fake_agent(script)` takes the text of a scenario, or just its list of steps (`- say: hello`), the path of a
    scenario file (relative to the test's), or a mapping of scenario keys. It gives `.argv`, the command to start, and
    `.path`, its executable. A fake or a descendant of one that is alive when the test ends fails it.
    """
    from pytest_agentproc.plugin._fakes import Fakes

    fakes = Fakes(request, virtual_clock)
    yield fakes.make
    fakes.finish()


@pytest.fixture
def agent_run(request: pytest.FixtureRequest) -> Callable[..., AgentRun]:
    """Run a scenario under the supervisor core in virtual time, and look at what came of it.

    `agent_run(scenario, inactivity_timeout=5, backend="asyncio")` takes a scenario as `fake_agent` does; other keywords
    are names of the policy: limits in seconds, None switches one off. It gives `outcome`, `exit_code`, `text`,
    `elapsed`, `returned` (seconds), `signals`, `record`. A leak, a deadlock or a failed `expect` of the scenario fails
    the test.
    """
    from pytest_agentproc.plugin._run import Runner

    return Runner(request)
