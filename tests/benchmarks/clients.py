"""`python -m tests.benchmarks.clients`: real Python clients close a fake, and every instant is as it was before.

Each run starts a process, closes it as the client does, and compares each instant of its end in nanoseconds. The
agents: a cooperative one, another that ignores the end of its stdin, and a third that ignores TERM, too. Run by hand;
it is no test.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import statistics
import sys
import time
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pytest_agentproc.harness import ScenarioRunner
from pytest_agentproc.scenario import loads
from tests.benchmarks._burners import burn_all_cores
from tests.clients.acp_py import AcpPy
from tests.clients.claude_py import ClaudePy
from tests.clients.endings import COOPERATES, IGNORES_ALL, IGNORES_EOF
from tests.clients.packages import install_from_pypi

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_agentproc.clock import VirtualClock
    from pytest_agentproc.harness import FakeAgent

    Steps = list[tuple[int, str]]

CLIENTS = ("claude-agent-sdk asyncio", "claude-agent-sdk trio", "agent-client-protocol asyncio")
SCRIPTS = (COOPERATES, IGNORES_EOF, IGNORES_ALL)

_LONGEST = 3600.0
_SECOND = 1_000_000_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; return the exit code: 1 if a run deviates."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.clients", description=__doc__)
    parser.add_argument("--runs", type=int, default=200, metavar="N", help="runs of each client (default: 200)")
    parser.add_argument("--burn", action="store_true", help="keep every core busy meanwhile")
    options = parser.parse_args(arguments)
    sys.path.append(str(install_from_pypi()))
    modules = {name: import_module(name) for name in ("claude_agent_sdk", "acp")}
    deviations = 0
    with ScenarioRunner() as runner, burn_all_cores(_LONGEST) if options.burn else contextlib.nullcontext():
        for client in CLIENTS:
            taken: list[float] = []
            deviating = 0
            for script in itertools.islice(itertools.cycle(SCRIPTS), options.runs):
                start = time.perf_counter()
                seen = _start_and_close_agent(runner, modules, client, script)
                taken.append((time.perf_counter() - start) * 1e3)
                if seen != _compute_expected_steps(client, script):
                    deviating += 1
                    print(f"{client}: {seen} instead of {_compute_expected_steps(client, script)}", flush=True)
            middle, longest = statistics.median(taken), max(taken)
            figures = f"{len(taken)} runs, {deviating} deviations, {middle:.0f} ms a run, {longest:.0f} ms at most"
            print(f"{client}: {figures}", flush=True)
            deviations += deviating
    return 1 if deviations else 0


def _start_and_close_agent(runner: ScenarioRunner, modules: dict[str, Any], client: str, script: str) -> Steps:
    """Start and close one agent, under a clock of its own."""
    name, backend = client.split()
    with runner.virtual_clock() as clock:
        fakes: list[FakeAgent] = []
        try:
            if name == "agent-client-protocol":
                return AcpPy(modules["acp"], lambda text: _make_fake(runner, clock, text, fakes), clock).close_after(
                    script
                )
            sdk = modules["claude_agent_sdk"]
            return ClaudePy(sdk, lambda text: _make_fake(runner, clock, text, fakes), clock).close_after(
                script, backend
            )
        finally:
            for fake in fakes:
                fake.finish()


def _make_fake(runner: ScenarioRunner, clock: VirtualClock, text: str, fakes: list[FakeAgent]) -> FakeAgent:
    fakes.append(runner.make_fake(loads(text), clock=clock))
    return fakes[-1]


def _compute_expected_steps(client: str, script: str) -> Steps:
    """Give what ends the agent, and when the close returns."""
    grace = (2 if client.startswith("agent-client-protocol") else 5) * _SECOND
    if script == COOPERATES:
        return [(0, "EOF"), (0, "exits 0"), (0, "returns")]
    if script == IGNORES_EOF:
        return [(0, "EOF"), (grace, "dies of TERM"), (grace, "returns")]
    return [(0, "EOF"), (grace, "TERM"), (2 * grace, "dies of KILL"), (2 * grace, "returns")]


if __name__ == "__main__":
    sys.exit(main())
