"""Run one agent from spawn to verdict. The public door of one-shot supervision; owns no judgement."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from pytest_agentproc.clock import SystemClock, current_clock
from pytest_agentproc.errors import UsageError
from pytest_agentproc.supervisor._driver import Driver
from pytest_agentproc.supervisor._machine import Deciders, Machine, Task
from pytest_agentproc.supervisor._result import Result
from pytest_agentproc.tree import Child
from pytest_agentproc.vocabulary import Policy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pytest_agentproc.clock import Clock

__all__ = ["run_once"]


async def run_once(
    argv: Sequence[str],
    *,
    dialect: str = "raw",
    mode: str = "",
    prompt: str | bytes = b"",
    policy: Policy | None = None,
    timeout: float | None = None,  # noqa: ASYNC109  # it is no limit of this call, but of the agent's silence
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
    clock: Clock | None = None,
    deciders: Deciders | None = None,
    trace: Callable[[int, str, dict[str, Any]], None] | None = None,
) -> Result:
    """Run an agent to its end, with its whole process tree.

    What the agent does is never raised: it is the result's `outcome`. Cancelling this kills the tree and reaps the
    agent before the cancellation goes on.

    Args:
        argv: the agent's command, with the prompt if it goes by argv.
        dialect: its wire format: "raw", "claude", "pi", "codex" or "gemini".
        mode: the variant of the wire format: for gemini "text", "json" or "stream"; "" is the dialect's first.
        prompt: what to write to its stdin, which is then closed.
        policy: the limits; their units are seconds. None: `Policy.for_dialect(dialect)`.
        timeout: instead of a policy: seconds of silence (no byte on stdout or stderr) after which the run ends as
            `inactive`. It never limits the whole duration (A9).
        cwd: where it runs; None: here.
        env: its whole environment; None: ours.
        clock: whose time counts; None: the virtual clock that runs this code, or else real time.
        deciders: replaced judgements, for tests of tests.
        trace: called with (instant, code, data) for each thing that the supervisor does.

    Raises:
        UsageError: no command, an unknown dialect or mode, or both a timeout and a policy.
    """
    if not argv:
        raise UsageError("argv is empty, but must name the agent's command", 'write run_once(["pi", "--mode", "json"])')
    if timeout is not None:
        if policy is not None:
            raise UsageError(
                f"timeout is {timeout!r}, but there is a policy too",
                f"write policy=Policy(inactivity_timeout={timeout!r}, ...): a timeout means silence",
            )
        policy = (deciders or Deciders()).one_number(timeout)
    clock = clock or current_clock.get() or SystemClock()
    data = prompt.encode() if isinstance(prompt, str) else prompt
    machine = Machine(Task(dialect, data, policy or Policy.for_dialect(dialect), mode), deciders)
    driver = Driver(machine, partial(Child, argv, cwd, env), clock.instant, trace)
    started = clock.instant()
    try:
        await clock.drive(driver)
    except BaseException:
        if driver.ports is not None:
            driver.ports.abandon()
        raise
    if driver.ports is not None:
        driver.ports.close()
    return Result.of(machine, started)
