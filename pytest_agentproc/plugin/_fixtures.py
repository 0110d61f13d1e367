"""Owns the fixtures: their names, lifetimes and docs. Their code loads when a test uses one."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.plugin._interruption import ended_at_teardown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_agentproc.clock import VirtualClock
    from pytest_agentproc.plugin._fakes import FakeAgents, Fakes
    from pytest_agentproc.plugin._process_tree import ProcessTree
    from pytest_agentproc.plugin._run_fixture import AgentRun, Runner
    from pytest_agentproc.plugin._session_fixture import Sessions
    from pytest_agentproc.plugin.reports._timelines import AgentTimeline

__all__ = [
    "agent_run",
    "agent_scenario",
    "agent_session",
    "agent_timeline",
    "fake_agent",
    "fake_agents",
    "process_tree",
    "virtual_clock",
]


@pytest.fixture
def virtual_clock(request: pytest.FixtureRequest) -> Iterator[VirtualClock]:
    """Run async code in virtual time: hours of silence pass in milliseconds, and every instant is exact.

    `virtual_clock.run(async_function, *args, backend="asyncio")` runs it to its end and returns its result; so does
    `virtual_clock.run(async_function(...))`. Time moves only when the code and every fake agent are blocked.
    `virtual_clock.now` is the time since the clock's start in seconds, `virtual_clock.now_ns` the same in nanoseconds.
    In a test that asks for this fixture, `time.monotonic()`, `time.perf_counter()`, `time.time()`, `datetime.now()` and
    their relatives show virtual time too. `@pytest.mark.virtual_time(start="2026-11-22T12:00:00Z")` sets the date at
    the start, which is 2026-01-01T00:00:00Z by default. With that marker alone the whole test runs in virtual time: an
    `async def` test, and a plain function that does not ask for this fixture. `freeze_time` cannot be used beside it. A
    program that is no fake, such as an MCP server, is allowed by `@pytest.mark.virtual_time(allow=["node"])` or
    `virtual_clock.allow("node")`, which says what that means.
    """
    from pytest_agentproc.plugin._virtual_time import open_virtual_clock

    parts = ExitStack()
    clock = parts.enter_context(open_virtual_clock(request))
    with ended_at_teardown(parts.close):
        yield clock


@pytest.fixture
def fake_agent(request: pytest.FixtureRequest, virtual_clock: VirtualClock) -> Iterator[Fakes]:
    """Make a fake agent: a real program that plays a script, to be started by your own code.

    `fake_agent(script)` takes the text of a scenario, its list of steps (`- say: hello`, or `[{"say": "hello"}]`), the
    path of a scenario file (relative to the test's), a bundled id (`silent-past-the-limit`), or a mapping of scenario
    keys. It gives `.argv`, the command to start, `.path`, its executable, and `.env`, an environment whose PATH leads
    to it alone; and `.starts`, each start so far with `argv`, `env`, `cwd`, `stdin`, `signals` and their times.
    `.starts[0].process` is its `psutil.Process` while it lives. If a fake or a descendant of a fake is alive when the
    test ends, the test fails.

    A start inside `virtual_clock.run` is in virtual time. Every other start is in real time: durations are as written,
    or divided by `scale` (`fake_agent(script, scale=60)`), and after 60 s of real time the fake is ended and the test
    fails. If it waits for something that does not come, pytest's output says so after 2 s, and so does the failure.
    """
    from pytest_agentproc.plugin._fakes import Fakes

    fakes = Fakes(request, virtual_clock)
    with ended_at_teardown(fakes.finish):
        yield fakes


@pytest.fixture
def fake_agents(fake_agent: Fakes) -> Iterator[FakeAgents]:
    """Put several fake agents by name on PATH, for code that finds its agents there.

    `fake_agents.on_path("claude", codex="- answer: hi")` puts these first on PATH until the test ends, and hides other
    agent CLIs; with `keep_path=False` nothing else is there. `fake_agents["claude"].starts` are its calls, and
    `fake_agents["claude"].assert_called_once_with("-p", ..., stdin="hi", env={"HOME": "/x"})` asserts one; `...` stands
    for any arguments. A leak fails the test. Without fixtures, or for a module: `with FakeAgents() as agents:`.
    """
    from pytest_agentproc.plugin._fakes import FakeAgents

    parts = ExitStack()
    agents = parts.enter_context(FakeAgents(fake_agent))
    with ended_at_teardown(parts.close):
        yield agents


@pytest.fixture
def agent_run(request: pytest.FixtureRequest) -> Runner:
    """Run a scenario under the reference supervisor in virtual time, and look at what came of it.

    `agent_run(scenario, inactivity_timeout=5, backend="asyncio")` takes a scenario as `fake_agent` does; other keywords
    are names of the policy: limits in seconds, None switches one off. It gives `outcome`, `exit_code`, `text`,
    `elapsed`, `returned` (seconds), `signals`, `record`. It serves sync and async tests. A leak, a deadlock or a failed
    `expect` of the scenario fails the test.
    """
    from pytest_agentproc.plugin._run_fixture import Runner

    return Runner(request)


@pytest.fixture
def agent_scenario(request: pytest.FixtureRequest) -> AgentRun:
    """Get what came of the scenario that the test is marked with: `@pytest.mark.agentproc("mine.scenario.yaml")`.

    The file is relative to the test's, or it is the id of a bundled scenario; several names or markers make several
    tests. The scenario is played and judged before the test's body runs, which may be empty, and fails the test as the
    scenario itself would. It gives what `agent_run` gives.
    """
    from pytest_agentproc.plugin._marked_tests import get_marked_run

    return get_marked_run(request)


@pytest.fixture
def agent_session(request: pytest.FixtureRequest) -> Iterator[Sessions]:
    """Talk to an agent through the reference supervisor in virtual time, one word after the other.

    `agent_session(scenario, permission=True, prompt_timeout=60, backend="asyncio")` takes what `agent_run` takes; steps
    alone are those of a pi. `prompt(text)` waits for the turn and gives its `outcome`, `text` and `elapsed`.
    `begin(text)` does not wait; `cancel()`, `wait(seconds)`, `wait_for(status)` and `stop()` are possible meanwhile.
    `now`, `status` and `events` report its state. `close()` gives what `agent_run` would. A leak or a deadlock fails
    the test. It serves sync and async tests: the test's own loop is not used.
    """
    from pytest_agentproc.plugin._session_fixture import Sessions

    sessions = Sessions(request)
    with ended_at_teardown(sessions.finish):
        yield sessions


@pytest.fixture
def agent_timeline(request: pytest.FixtureRequest) -> Iterator[AgentTimeline]:
    """Ask what happened when, and in which order: both sides of this test's runs, fakes and conversations.

    `agent_timeline.at("TERM") == 120`, `agent_timeline.order("completed", "TERM", "exit")`,
    `.not_before("TERM", "inactivity_timeout")`, `.never("KILL")`, `.times("stdout")`; a failure shows the timeline
    with what is wrong marked. Words: `start`, `exit`, `stdout`, `stderr`, `stdin` and names of signals for processes;
    outcomes, `returned` and names of limits for the supervisor; `prompt`, `cancel`, `stop`, `close` for the caller;
    `status ready`; `leak`; `line 7`. `child1: exit` and `turn 2: completed` are about one only. Of several runs
    `agent_timeline[1]` is the second.
    """
    from pytest_agentproc.plugin.reports._timelines import AgentTimeline

    timeline = AgentTimeline(request)
    yield timeline
    timeline.finish()


@pytest.fixture
def process_tree(request: pytest.FixtureRequest) -> Iterator[ProcessTree]:
    """Fail this test if it leaves a process behind: alive, stopped, or a child that was not waited for.

    The failure names each with its command, its ports and files, and the line that started it; they are killed and
    reaped, so that the next test starts clean. `@pytest.mark.process_tree` does the same, and
    `agentproc_process_tree = true` for every test. `process_tree.processes` lists those that live now, each as a
    `psutil.Process`, `process_tree.wait_gone(timeout)` waits until none does, and
    `process_tree.allow(pid, Popen or pattern of a command)` lets one outlive the test.
    """
    from pytest_agentproc.plugin._process_tree import ProcessTree

    tree = ProcessTree(request)
    with ended_at_teardown(tree.finish):
        yield tree
