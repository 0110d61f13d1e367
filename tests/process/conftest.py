"""The runner of all process tests, and a stand for each. Owns their lifetimes; knows no expectation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_agentproc.harness import ScenarioRunner
from tests.process.stand import Stand

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture(scope="session")
def runner() -> Iterator[ScenarioRunner]:
    """Give one runner to all tests: its broker starts once."""
    with ScenarioRunner() as runner:
        yield runner


@pytest.fixture
def make_stand(runner: ScenarioRunner) -> Iterator[Callable[..., Stand]]:
    """Give a maker of stands; each ends with the test, and no fake of any may outlive it."""
    stands: list[Stand] = []

    def make(**options: Any) -> Stand:
        stands.append(Stand(runner, **options))
        return stands[-1]

    yield make
    for stand in stands:
        stand.close()


@pytest.fixture
def stand(make_stand: Callable[..., Stand]) -> Stand:
    """Give a stand with a short guard: a test that hangs fails soon."""
    return make_stand(guard=10.0)


@pytest.fixture(params=["asyncio", "trio"])
def backend(request: pytest.FixtureRequest) -> str:
    """Run the test on both event loops."""
    return str(request.param)
