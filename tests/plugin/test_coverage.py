"""Beside coverage and pytest-cov: all passes, and each line that ran is counted, in both kinds of virtual time too."""

from __future__ import annotations

import json
import sys

import pytest

pytestmark = pytest.mark.slow

PYTHON = (sys.executable, "-m")
MONITOR = pytest.param("sysmon", marks=pytest.mark.skipif(sys.version_info < (3, 12), reason="it is new in 3.12"))
UNCOUNTED = ['raise AssertionError("this line is not counted")']

COUNTED = """\
import subprocess, sys, time
import anyio

def ask(argv):
    before = time.monotonic()
    text = subprocess.run(argv, stdout=subprocess.PIPE, text=True, timeout=3600).stdout
    if time.monotonic() - before == 600:
        return "after ten minutes " + text
    return text

async def ask_async(argv):
    before = anyio.current_time()
    text = (await anyio.run_process(argv)).stdout.decode()
    if anyio.current_time() - before == 600:
        return "after ten minutes " + text
    raise AssertionError("this line is not counted")

def sleep_in_child():
    before = time.monotonic()
    code = "import counted, time; time.sleep(600); counted.is_called_by_child()"
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.monotonic() - before

def is_called_by_child():
    return True
"""

SUPERVISOR = """\
import subprocess

def supervise(order):
    done = subprocess.run(order.argv, env=order.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    return {"outcome": "completed", "text": done.stdout.decode().strip()}
"""

TESTS = """\
import pytest
from counted import ask, ask_async, sleep_in_child

LATE = "- silence: 10m\\n- answer: done"

def test_real(fake_agent):
    assert ask(fake_agent("- answer: done").argv) == "done\\n"

@pytest.mark.virtual_time
async def test_async(fake_agent):
    assert await ask_async(fake_agent(LATE).argv) == "after ten minutes done\\n"

@pytest.mark.virtual_time
def test_sync(fake_agent):
    assert ask(fake_agent(LATE).argv) == "after ten minutes done\\n"

@pytest.mark.virtual_time
def test_child():
    assert sleep_in_child() == 600
"""

SCENARIO = """\
scenario: an agent answers late
agent: raw
script:
  - silence: 10m
  - answer: done
expect: {outcome: completed}
"""

CONFTEST = """\
from supervisor import supervise
from pytest_agentproc.subjects import Function

def pytest_agentproc_subjects():
    return [Function(supervise, dialects=["raw"])]
"""


def write_suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, core: str) -> None:
    """Write code that is counted, with a test of each kind, and have a core of coverage count it."""
    monkeypatch.setenv("COVERAGE_CORE", core)
    monkeypatch.setenv("PYTHONPATH", str(pytester.path))
    pytester.makepyfile(counted=COUNTED, test_all=TESTS)
    pytester.path.joinpath(".coveragerc").write_text(
        "[run]\nsource_pkgs = counted\nparallel = true\npatch = subprocess\n"
    )


def list_uncounted_lines(pytester: pytest.Pytester, *, combine: bool = False) -> list[str]:
    """List the lines that nothing ran, as coverage says."""
    for words in (("combine", "-q"), ("json", "-q"))[not combine :]:
        assert pytester.run(*PYTHON, "coverage", *words, timeout=60).ret == 0
    found = json.loads(pytester.path.joinpath("coverage.json").read_text())["files"]
    return [
        pytester.path.joinpath(name).read_text().splitlines()[number - 1].strip()
        for name, file in found.items()
        for number in file["missing_lines"]
    ]


@pytest.mark.parametrize(
    ("core", "option"),
    [
        ("ctrace", ""),
        ("ctrace", "--agentproc-virtual-sync"),
        ("pytrace", ""),
        pytest.param("sysmon", "", marks=MONITOR.marks),
    ],
)
def test_pytest_cov_counts_all_that_ran(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, core: str, option: str
) -> None:
    """The C tracer has no `__module__`, and once failed each test with a fake."""
    write_suite(pytester, monkeypatch, core)
    words = ("-p", "pytest_cov", "--cov", *filter(None, [option]))
    pytester.run(*PYTHON, "pytest", *words, timeout=120).assert_outcomes(passed=4)
    assert list_uncounted_lines(pytester) == UNCOUNTED


@pytest.mark.parametrize("core", ["ctrace", MONITOR])
def test_coverage_run_counts_all_that_ran(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, core: str
) -> None:
    """Each process leaves a file of its own, and so does the pytest that has started once more."""
    write_suite(pytester, monkeypatch, core)
    pytester.run(*PYTHON, "coverage", "run", "-m", "pytest", timeout=120).assert_outcomes(passed=4)
    assert list_uncounted_lines(pytester, combine=True) == UNCOUNTED


def test_pytest_cov_counts_in_workers(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker of pytest-xdist below a coordinator sends what it counted to the session."""
    write_suite(pytester, monkeypatch, "ctrace")
    words = ("-p", "pytest_cov", "--cov", "-n", "2", "--agentproc-virtual-sync")
    pytester.run(*PYTHON, "pytest", *words, timeout=120).assert_outcomes(passed=4)
    assert list_uncounted_lines(pytester) == UNCOUNTED


@pytest.mark.parametrize(
    "words",
    [("pytest", "-p", "pytest_cov", "--cov=supervisor"), ("coverage", "run", "--source=supervisor", "-m", "pytest")],
)
def test_a_plain_supervisor_in_virtual_time_is_counted(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """It runs in a process of its own, which ends as a program does, and before pytest-cov looks for its file."""
    write_suite(pytester, monkeypatch, "ctrace")
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(supervisor=SUPERVISOR)
    pytester.path.joinpath("late.scenario.yaml").write_text(SCENARIO)
    pytester.path.joinpath(".coveragerc").write_text("[run]\nparallel = true\npatch = subprocess\n")
    pytester.run(*PYTHON, *words, "late.scenario.yaml", timeout=120).assert_outcomes(passed=1)
    assert list_uncounted_lines(pytester, combine=words[0] == "coverage") == []


@pytest.mark.parametrize("profiler", [("cProfile", "-o", "figures"), ("trace", "--count", "--coverdir=figures")])
def test_a_profiler_around_pytest_breaks_nothing(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, profiler: tuple[str, ...]
) -> None:
    """`cProfile` sets a profile function, and `trace` a trace function in Python."""
    write_suite(pytester, monkeypatch, "ctrace")
    words = "--module" if profiler[0] == "trace" else "-m"
    pytester.run(*PYTHON, *profiler, words, "pytest", timeout=120).assert_outcomes(passed=4)
