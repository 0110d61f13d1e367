"""Run one agent from spawn to verdict. The public door of one-shot supervision; owns no judgement."""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_agentproc.clock import SystemClock, current_clock
from pytest_agentproc.errors import UsageError
from pytest_agentproc.supervisor._artifact_files import Artifacts, FolderStore, RunHeader
from pytest_agentproc.supervisor._driver import Driver
from pytest_agentproc.supervisor._machine import Deciders, RunMachine, RunSettings
from pytest_agentproc.supervisor._spawn import check_command, make_spawner
from pytest_agentproc.vocabulary import Dialect, Policy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_agentproc.clock import Clock
    from pytest_agentproc.events import Trace
    from pytest_agentproc.supervisor._artifact_files import FileStore
    from pytest_agentproc.supervisor._result import Result


async def run_once(
    argv: Sequence[str],
    *,
    dialect: str | Dialect = "raw",
    mode: str = "",
    prompt: str | bytes = b"",
    policy: Policy | None = None,
    timeout: float | None = None,  # noqa: ASYNC109  # it is no limit of this call, but of the agent's silence
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
    artifacts: str | os.PathLike[str] | FileStore | None = None,
    run_id: str | None = None,
    model: str | None = None,
    clock: Clock | None = None,
    deciders: Deciders | None = None,
    trace: Trace | None = None,
) -> Result:
    """Run an agent to its end, with its whole process tree.

    This function never raises for the agent's behaviour: the result's `outcome` reports it. A cancellation kills the
    tree and reaps the agent before it continues.

    Args:
        argv: the agent's command, with the prompt if it goes by argv.
        dialect: its wire format: "raw", "claude", "pi", "codex", "gemini" or "opencode"; or a `vocabulary.Dialect` of
            your own.
        mode: the variant of the wire format: for gemini "text", "json" or "stream"; "" is the dialect's first.
        prompt: what to write to its stdin, which is then closed.
        policy: the limits; their units are seconds. None: `Policy.for_dialect(dialect)`.
        timeout: instead of a policy: seconds of silence (no byte on stdout or stderr) after which the run ends as
            `inactive`. It never limits the whole duration (A9).
        cwd: where it runs; None: here.
        env: its whole environment; None: ours.
        artifacts: the directory for result.json and the logs, made if need be, or a store of your own; None: no files.
        run_id: what result.json calls the run; None: a random one.
        model: the model that `argv` asks for, for result.json only; the agent does not get it.
        clock: whose time counts; None: the virtual clock that runs this code, or else real time.
        deciders: replaced judgements, for tests of tests.
        trace: called with (instant, code, data) for each thing that the supervisor does.

    Raises:
        UsageError: no command or one that no process can be given, an unknown dialect or mode, both a timeout and a
            policy, or a /proc that shows another pid namespace.
    """
    chosen_deciders = deciders or Deciders()
    check_command(argv, cwd, env, 'run_once(["pi", "--mode", "json"])')
    policy = _make_run_policy(dialect, policy, timeout, chosen_deciders)
    clock = clock or current_clock() or SystemClock()
    data = prompt.encode() if isinstance(prompt, str) else prompt
    machine = RunMachine(RunSettings(dialect, data, policy, mode, argv), chosen_deciders)
    kept = None
    if artifacts is not None:
        store = FolderStore(artifacts) if isinstance(artifacts, (str, os.PathLike)) else artifacts
        kept = chosen_deciders.artifacts(store, _build_header(argv, cwd, run_id, model, clock.instant()))
    spawn = make_spawner(argv, cwd, env, clock)
    driver = Driver(machine, spawn, clock.instant, trace, kept.log_event if kept else None)
    return await _supervise(driver, machine, clock, kept)


async def _supervise(driver: Driver, machine: RunMachine, clock: Clock, kept: Artifacts | None) -> Result:
    """Drive a run to its end; whatever the end is, nothing of it stays but the artifacts."""
    started = clock.instant()

    def build_run_result() -> Result:
        leaks = driver.agent.list_survivors() if driver.agent is not None else ()
        result = machine.build_result(started, clock.instant(), leaks, driver.containment)
        return kept.finish(result) if kept else result

    try:
        await clock.drive(driver)
    except BaseException as error:
        status = machine.abandonment.end(driver.agent) if driver.agent is not None else None
        if kept:
            machine.stop(clock.instant(), status, f"the run was given up: {type(error).__name__}")
            build_run_result()
        raise
    finally:
        driver.release_handlers()
    if driver.agent is not None:
        machine.abandonment.release(driver.agent)
    return build_run_result()


def _make_run_policy(
    dialect: str | Dialect, policy: Policy | None, timeout: float | None, deciders: Deciders
) -> Policy:
    """Give the limits of a run, or refuse a caller's mistake."""
    if timeout is None:
        return policy or Policy.for_dialect(dialect)
    if policy is not None:
        raise UsageError(
            f"timeout is {timeout!r}, but there is a policy too",
            f"write policy=Policy(inactivity_timeout={timeout!r}, ...): a timeout means silence",
        )
    return deciders.one_number(timeout)


def _build_header(
    argv: Sequence[str], cwd: str | None, run_id: str | None, model: str | None, started: int
) -> RunHeader:
    place = Path(cwd or "")
    with contextlib.suppress(OSError):  # here is gone; the spawn will tell
        place = place.absolute()
    return RunHeader(
        run_id=run_id or uuid.uuid4().hex,
        argv=tuple(argv),
        cwd=str(place),
        requested_model=model,
        started_at=dt.datetime.now(dt.UTC),
        started=started,
    )
