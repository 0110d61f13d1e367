"""Supervisors that do next to nothing. A scenario that they pass does not test enough. They know no dialect.

They claim every limit of the default policy and make every possible report, so that nothing is excused.
"""

from __future__ import annotations

import subprocess
from dataclasses import replace
from typing import Any

import anyio

from pytest_agentproc.originals import Popen
from pytest_agentproc.vocabulary import LimitsRequest, Outcome, Policy, RunReport, RunRequest, View, compute_exit_code


class NeverStartsAgent:
    """Starts nothing and calls it completed."""

    name = "null"
    keeps_artifacts = True
    holds_sessions = True

    def policy(self, request: LimitsRequest) -> Policy:
        """Claim the default limits of the dialect, but for those of the request."""
        return Policy.for_dialect(request.dialect, **request.limits)

    async def run(self, order: RunRequest) -> RunReport:
        """Do the same with each session of an order, one after the other."""
        if not order.sessions:
            return await self.run_one(order)
        return RunReport(sessions={session.name: await self.run_one(session) for session in order.sessions})

    async def run_one(self, order: RunRequest) -> RunReport:
        """Say that it went well, in every way in which that can be said."""
        return _report_success(order)


class StartsAgentAndReturns(NeverStartsAgent):
    """Starts the agent, calls it completed, and never looks back."""

    name = "spawn-and-forget"

    def __init__(self) -> None:
        self.forgotten: list[Popen[bytes]] = []

    async def run_one(self, order: RunRequest) -> RunReport:
        """Start it and be done."""
        try:
            self.forgotten.append(_start_agent(order))
        except OSError as error:
            return _repeat_for_turns(_report_start_failure(error), order)
        return _report_success(order)


class KillsAgentAtOnce(NeverStartsAgent):
    """Start the agent and kill only it: no leak, no late exit, no work done."""

    name = "kill-at-once"

    async def run_one(self, order: RunRequest) -> RunReport:
        """Start it, kill it, reap it."""
        try:
            process = _start_agent(order)
        except OSError as error:
            return _repeat_for_turns(_report_start_failure(error), order)
        process.kill()
        process.wait()
        return _report_success(order)


class UsesSubprocessRun(NeverStartsAgent):
    """Does what `subprocess.run(..., timeout=...)` does: waits for exit and pipes, then kills the agent alone."""

    name = "subprocess.run"

    async def run_one(self, order: RunRequest) -> RunReport:
        """Wait for the given silence limit, whatever the agent does meanwhile."""
        return _repeat_for_turns(await self._run_agent(order), order)

    async def _run_agent(self, order: RunRequest) -> RunReport:
        start = order.clock.instant()
        prompt = order.prompt if order.prompt_by == "stdin" else ""
        prompt += "".join(f"{action.value}\n" for action in order.drive if action.kind == "prompt")
        fields: dict[str, Any] = {"cwd": order.cwd, "env": order.env, "start_new_session": True}
        try:
            limit = order.policy.inactivity_timeout
            with anyio.fail_after(None if limit is None else limit / order.scale):
                completed = await anyio.run_process(order.argv, input=prompt.encode(), check=False, **fields)
        except TimeoutError:
            elapsed = order.clock.instant() - start
            return RunReport(outcome="inactive", exit_code=124, elapsed=elapsed, error="it timed out", warnings=())
        except OSError as error:
            return _report_start_failure(error)
        except ExceptionGroup as error:
            if error.split(anyio.BrokenResourceError)[1] is not None:
                raise
            return RunReport(outcome="failed", exit_code=1, error="stdin broke", warnings=())
        outcome = Outcome.FAILED if completed.returncode > 0 else Outcome.INCOMPLETE
        outcome = outcome if completed.returncode else Outcome.COMPLETED
        return RunReport(
            outcome=outcome.value,
            exit_code=compute_exit_code(outcome, completed.returncode),
            text=completed.stdout.decode(errors="replace").strip(),
            elapsed=order.clock.instant() - start,
            agent_status=completed.returncode,
            forced=False,
            error="",
            warnings=(),
            noise=0,
            stderr_tail=completed.stderr,
        )


TRIVIAL_SUBJECTS = (NeverStartsAgent, StartsAgentAndReturns, UsesSubprocessRun, KillsAgentAtOnce)


def _start_agent(order: RunRequest) -> Popen[bytes]:
    """Start the agent, in a session of its own, without any pipe."""
    none = subprocess.DEVNULL
    return Popen(order.argv, stdin=none, stdout=none, stderr=none, cwd=order.cwd, env=order.env, start_new_session=True)


def _report_success(order: RunRequest) -> RunReport:
    well = RunReport(
        outcome="completed",
        exit_code=0,
        text="",
        transcript="",
        stop_reason="stop",
        elapsed=0,
        agent_status=0,
        forced=False,
        error="",
        warnings=(),
        noise=0,
        stderr_tail=b"",
    )
    return _repeat_for_turns(well, order)


def _repeat_for_turns(answer: RunReport, order: RunRequest) -> RunReport:
    """Repeat the answer for every turn, if the order is for a session."""
    if not order.drive and not order.name:
        return answer
    prompts = sum(action.kind == "prompt" for action in order.drive)
    statuses = ("starting", *("ready", "prompting") * prompts, "ready", "closed")
    views = {action.value: View("ready", "") for action in order.drive if action.kind == "attach"}
    return replace(answer, turns=(answer,) * prompts, background=(), statuses=statuses, viewers=views)


def _report_start_failure(error: OSError) -> RunReport:
    return RunReport(
        outcome="spawn_failed", exit_code=126 if isinstance(error, PermissionError) else 127, error=str(error)
    )
