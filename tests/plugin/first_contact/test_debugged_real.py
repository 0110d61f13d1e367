"""No limit of real time ends a fake or a run during debugging; each twin shows that the limit counts otherwise."""

from __future__ import annotations

import sys

import pytest

PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
LIMITS = """
from pytest_agentproc.harness import _pace, _runner
from pytest_agentproc.plugin import _fakes

_fakes.FAKE_LIFETIME_SECONDS, _runner.FAKE_LIFETIME_SECONDS = {lifetime}, {broker}
_pace._SECONDS_AFTER_EXPECTED_END = 0.3
"""
BLOCK = """
import select, subprocess, sys
import pydevd_tracing
from pytest_agentproc.plugin import FakeAgents

def test_it():
    {before}
    with FakeAgents() as agents:
        agents.on_path(claude={{"agent": "raw", "script": [{{"say": "hi"}}, {{"wait_for": "eof"}}]}})
        with subprocess.Popen(["claude"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            {debugger}
            assert process.stdout.readline() == b"hi\\n"
            assert not select.select([process.stdout], [], [], 1.5)[0]
"""
NONE, PDB, EDITOR = ("pass", "pass"), ("pass", "breakpoint()"), ("sys.settrace(pydevd_tracing.trace)", "pass")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "lifetime", "broker"),
    [(NONE, 0.3, 60), (NONE, 60, 0.3), (PDB, 0.3, 0.3), (EDITOR, 0.3, 0.3)],
    ids=["none, its own limit", "none, that of the broker", "pdb", "editor"],
)
def test_a_fake_of_a_block_lives_on_while_somebody_debugs(
    pytester: pytest.Pytester, place: tuple[str, str], lifetime: float, broker: float
) -> None:
    """Neither its own limit nor that of the broker ends it."""
    pytester.makeconftest(LIMITS.format(lifetime=lifetime, broker=broker))
    pytester.makepyfile(pydevd_tracing="def trace(frame, event, arg):\n    return trace\n")
    pytester.makepyfile(test_it=BLOCK.format(before=place[0], debugger=place[1]))
    result = pytester.run(*PYTEST, timeout=30, stdin=b"continue\n")
    result.assert_outcomes(passed=place is not NONE, failed=place is NONE)
    if place is NONE:
        result.stdout.re_match_lines([r"E +assert not \[.*BufferedReader.*"])


SUPERVISOR = """
import anyio, time
from pytest_agentproc.harness import _pace, _runner
from pytest_agentproc.subjects import Function

async def supervise(order):
    {first}
    time.sleep(1)
    done = await anyio.run_process(order.argv, env=order.env, cwd=order.cwd)
    return {{"outcome": "completed", "text": done.stdout.decode().strip()}}

def pytest_agentproc_subjects():
    return [Function(supervise, dialects=["raw"], limits={{}})]
"""
SCENARIO = "scenario: it answers\nagent: raw\nscript: [{answer: hi}]\nexpect: {outcome: completed}\n"


@pytest.mark.slow
@pytest.mark.parametrize("is_debugged", [False, True])
def test_a_run_in_real_time_is_not_given_up_while_somebody_debugs(pytester: pytest.Pytester, is_debugged: bool) -> None:
    """Its limit passes at the prompt, and the supervisor continues."""
    first = "breakpoint()" if is_debugged else "pass"
    pytester.makeconftest(LIMITS.format(lifetime=60, broker=300) + SUPERVISOR.format(first=first))
    pytester.path.joinpath("it.scenario.yaml").write_text(SCENARIO)
    command = (*PYTEST, "it.scenario.yaml", "--agentproc-clock=real")
    result = pytester.run(*command, timeout=30, stdin=b"continue\n")
    result.assert_outcomes(passed=is_debugged, failed=not is_debugged)
    if not is_debugged:
        result.stdout.fnmatch_lines(["*the supervisor did not return within 0 real seconds*"])
