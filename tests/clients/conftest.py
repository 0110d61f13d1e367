"""The Python clients where a test can import them, and programs that use the others. Knows no client."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

from pytest_agentproc.harness import ScenarioRunner
from tests.clients.acp_py import AcpPy
from tests.clients.claude_py import ClaudePy
from tests.clients.packages import install_from_pypi
from tests.clients.running import Programs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_agentproc.clock import VirtualClock
    from pytest_agentproc.harness import FakeAgent


@pytest.fixture(scope="session")
def _pypi() -> Iterator[None]:
    """Have the Python clients importable, after the packages that are installed already."""
    folder = str(install_from_pypi())
    sys.path.append(folder)
    yield
    sys.path.remove(folder)


@pytest.fixture(scope="session")
def claude_sdk(_pypi: None) -> Any:
    """Give the module `claude_agent_sdk`."""
    return import_module("claude_agent_sdk")


@pytest.fixture(scope="session")
def acp(_pypi: None) -> Any:
    """Give the module `acp`."""
    return import_module("acp")


@pytest.fixture(scope="session")
def pexpect(_pypi: None) -> Any:
    """Give the module `pexpect`."""
    return import_module("pexpect")


@pytest.fixture(scope="session")
def ptyprocess(_pypi: None) -> Any:
    """Give the module `ptyprocess`."""
    return import_module("ptyprocess")


@pytest.fixture
def claude(claude_sdk: Any, fake_agent: Callable[[Any], FakeAgent], virtual_clock: VirtualClock) -> ClaudePy:
    """Give claude-agent-sdk, ready to be given its agent's script."""
    return ClaudePy(claude_sdk, fake_agent, virtual_clock)


@pytest.fixture
def acp_client(acp: Any, fake_agent: Callable[[Any], FakeAgent], virtual_clock: VirtualClock) -> AcpPy:
    """Give agent-client-protocol's client side, ready to be given its agent's script."""
    return AcpPy(acp, fake_agent, virtual_clock)


@pytest.fixture(params=["asyncio", "trio"])
def backend(request: pytest.FixtureRequest) -> str:
    """Play the test on each event loop."""
    return str(request.param)


@pytest.fixture(scope="session")
def runner() -> Iterator[ScenarioRunner]:
    """Give one runner of scenarios to all tests."""
    with ScenarioRunner() as runner:
        yield runner


@pytest.fixture(scope="session")
def programs(runner: ScenarioRunner, tmp_path_factory: pytest.TempPathFactory) -> Programs:
    """Give the programs that use Node clients, with fakes that play in real time."""
    return Programs(runner, tmp_path_factory.mktemp("programs"))
