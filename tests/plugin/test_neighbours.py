"""Beside other plugins: an inner run loads each, has scenarios and the kit's fixtures, and all do what they are for."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.plugin.scenarios import GREEN, RED
from tests.plugin.subjects.test_choice import MINE

if TYPE_CHECKING:
    from pathlib import Path

OWN = """\
import asyncio

def test_an_hour(virtual_clock):
    virtual_clock.run(asyncio.sleep, 3600)
    assert virtual_clock.now == 3600

def test_a_run(agent_run):
    assert agent_run({"agent": "raw", "script": [{"say": "hi"}]}).text == "hi"
"""

ENDINGS = """\
import os, time

async def hangs(order):
    time.sleep(1000)

async def dies(order):
    if order.dialect == "gemini":
        os._exit(3)
"""


def load_plugins(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Have the inner run load these plugins, which the others go without."""
    others = os.environ["PYTEST_ADDOPTS"].split()
    kept = [f"-p {word}" for word in others if word.startswith("no:") and word[3:] not in names]
    monkeypatch.setenv("PYTEST_ADDOPTS", " ".join(kept))


def write_scenarios(pytester: pytest.Pytester, **texts: str) -> None:
    """Write each as a file of its name."""
    for name, text in texts.items():
        pytester.path.joinpath(f"{name}.scenario.yaml").write_text(text)


def read_outputs(folder: Path) -> dict[str, Any]:
    """Read what a session left: results without what the machine took, known failures, pages."""
    found = json.loads(folder.joinpath("results.json").read_text("utf-8"))
    for result in found["results"]:
        del result["real_s"]
    index = folder.joinpath("pages", "index.html").read_text("utf-8")
    links = sorted(set(re.findall(r'href="([^"#]+)-[0-9a-f]{8}\.html', index)))
    return {**found, "baseline": folder.joinpath("agentproc-baseline.yaml").read_text("utf-8"), "pages": links}


GROUPED = """\
import pytest

@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.xdist_group("one"))
"""

FILES = ["--agentproc-results=results.json", "--agentproc-report=pages", "--agentproc-update-baseline"]


@pytest.mark.once
@pytest.mark.slow
def test_every_way_to_share_the_work_leaves_the_same_files(pytester: pytest.Pytester) -> None:
    """Other processes run the scenarios; the findings are the same, with a group after an id or without."""
    write_scenarios(pytester, one=GREEN, two=f"covers: [A1]\n{RED}")
    pytester.makepyfile(test_own=OWN, mine=MINE)
    pytester.makeconftest(GROUPED)
    arguments = [*FILES, "--agentproc-subject=mine:supervise,reference"]
    pytester.runpytest(*arguments).assert_outcomes(passed=4, xfailed=2)
    alone = read_outputs(pytester.path)
    assert len(alone["results"]) == 4
    assert len(alone["pages"]) == 5
    for mode in ("load", "loadscope", "loadfile", "loadgroup", "worksteal"):
        outcomes = pytester.runpytest("-n", "2", f"--dist={mode}", *arguments).parseoutcomes()
        assert outcomes == {"passed": 4, "xfailed": 2}, mode
        shared = read_outputs(pytester.path)
        for result, other in zip(shared["results"], alone["results"], strict=True):
            assert result == other, mode  # what differs is named before all else
        assert shared == alone, mode


@pytest.mark.once
@pytest.mark.slow
def test_a_scenario_whose_worker_dies_is_missing_from_nobodys_count(pytester: pytest.Pytester) -> None:
    """A scenario that was not judged must not look like one that was not asked for; its known failures stay listed."""
    write_scenarios(pytester, one=GREEN, die=f"level: should\ncovers: [A1]\n{GREEN.replace('raw', 'gemini')}")
    pytester.makepyfile(mine=ENDINGS)
    known = pytester.path / "agentproc-baseline.yaml"
    known.write_text("- {scenario: die, check: text, reason: it says nothing}\n")
    subject = ["--agentproc-subject=mine:dies", "--agentproc-results=results.json"]
    result = pytester.runpytest("-n", "1", "--agentproc-update-baseline", *subject)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.re_match_lines(
        [
            r"A1  any byte is .* +- +- +1 +- +- +- +-",
            r"agentproc: dies has no verdict because of 1 kit error: must: 0 failed, .*",
            r"  .*; virtual clock",
            r"agentproc: there is no verdict on dies in die: worker 'gw0' crashed",
        ]
    )
    found = json.loads((pytester.path / "results.json").read_text("utf-8"))["results"]
    assert [(entry["scenario"], entry["verdict"]) for entry in found if entry["rows"] == []] == [("die", "kit error")]
    assert "scenario: die" in known.read_text("utf-8")


FLAKY = """\
import anyio

COUNT = []

def pytest_agentproc_subjects():
    from pytest_agentproc.subjects import Function

    async def second(order):
        COUNT.append(order)
        done = await anyio.run_process(order.argv, env=order.env)
        return {"outcome": "completed", "text": done.stdout.decode().strip() if len(COUNT) > 2 else "", "elapsed": 0}

    return [Function(second, name="second")]
"""

TWICE = """\
TRIES = []

def test_twice(agent_run):
    TRIES.append(agent_run({"agent": "raw", "script": [{"say": "hi"}]}))
    assert len(TRIES) == 2
"""


@pytest.mark.slow
def test_rerunfailures_plays_a_red_scenario_again(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last attempt is the one that counts, in summary, properties and pages; fixtures are made anew for it."""
    load_plugins(monkeypatch, "rerunfailures")
    write_scenarios(pytester, one=GREEN)
    pytester.makeconftest(FLAKY)
    pytester.makepyfile(test_twice=TWICE)
    result = pytester.runpytest("--reruns=1", "--agentproc-report=pages")
    assert result.parseoutcomes() == {"passed": 2, "rerun": 2}
    result.stdout.fnmatch_lines(["2 runs as pages: *", "agentproc: second is conformant: *", "  1 passed, *"])
    assert len([*(pytester.path / "pages").iterdir()]) == 3


LIMITED = """\
import pytest

def pytest_collection_modifyitems(items):
    for item in items:
        if item.name.startswith("one"):
            item.add_marker(pytest.mark.timeout(0.5))
"""


@pytest.mark.slow
def test_timeout_ends_a_supervisor_that_blocks(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """A marker is for scenarios, too; the next test has the runner as it was."""
    load_plugins(monkeypatch, "timeout")
    write_scenarios(pytester, one=GREEN)
    pytester.makepyfile(mine=ENDINGS, test_own=OWN)
    pytester.makeconftest(LIMITED)
    result = pytester.runpytest("--timeout=300", "--agentproc-subject=mine:hangs")
    assert result.parseoutcomes() == {"passed": 2, "failed": 1}
    result.stdout.fnmatch_lines(["*Timeout (>0.5s) from pytest-timeout.*", "agentproc: hangs has no verdict *: *"])


BESIDE = """\
import asyncio, os
import pytest
from anyio import sleep

{mark}
async def test_with_a_fake(fake_agent, process_tree):
    agent = fake_agent("- say: hello")
    await {sleep}(0)
    assert agent.argv

{mark}
async def test_that_leaves_a_process(process_tree):
    os.posix_spawn("/bin/sleep", ["sleep", "1000"], os.environ)
    await {sleep}(0)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plugin", "mode", "mark", "sleep"),
    [
        ("asyncio", "-oasyncio_mode=auto", "", "asyncio.sleep"),
        ("asyncio", "-oasyncio_mode=strict", "@pytest.mark.asyncio", "asyncio.sleep"),
        ("trio", "-otrio_mode=true", "", "sleep"),
        ("trio", "-otrio_mode=false", "@pytest.mark.trio", "sleep"),
        ("anyio", "-oanyio_mode=strict", "@pytest.mark.anyio", "sleep"),
    ],
)
def test_async_tests_of_others_use_the_fixtures(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, plugin: str, mode: str, mark: str, sleep: str
) -> None:
    """Their event loops run their tests, ours run what is supervised, and neither is in the other's way."""
    load_plugins(monkeypatch, plugin)
    write_scenarios(pytester, one=GREEN)
    pytester.makepyfile(test_own=OWN, test_beside=BESIDE.format(mark=mark, sleep=sleep))
    if plugin == "anyio":
        pytester.makeconftest("import pytest\n\n@pytest.fixture\ndef anyio_backend():\n    return 'trio'\n")
    scope = ["-oasyncio_default_fixture_loop_scope=function"] if plugin == "asyncio" else []  # else it warns
    result = pytester.runpytest(mode, *scope, "--strict-markers", "--agentproc-backend=both")
    result.assert_outcomes(passed=6, errors=1)
    result.stdout.fnmatch_lines(["the test left 1 process behind; it has been ended:", "  sleep 1000"])


@pytest.mark.slow
def test_orders_of_others_are_kept(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chance, what failed last and where it stopped decide which scenario is played when; a plan plays none."""
    load_plugins(monkeypatch, "random_order")
    write_scenarios(pytester, one=GREEN, two=RED, zzz=GREEN)
    pytester.makepyfile(test_own=OWN)
    strict = ["--strict-markers", "--strict-config", "-v"]

    def played(*arguments: str) -> list[str]:
        lines = pytester.runpytest(*strict, *arguments).stdout.str()
        return re.findall(r"^(\S+)::\S+ (?:PASSED|FAILED)", lines, re.MULTILINE)

    files = ["one.scenario.yaml", "test_own.py", "test_own.py", "two.scenario.yaml", "zzz.scenario.yaml"]
    shuffled = played("--random-order", "--random-order-seed=4")
    assert sorted(shuffled) == files
    assert shuffled != files
    assert played("--sw") == files[:4]
    assert played("--sw") == files[3:4]
    assert played("--ff")[:1] == files[3:4]
    assert played("--setup-only") == []


LITTER = """\
class Litter:
    def __init__(self):
        self.me = self

    def __del__(self):
        GONE.append("litter")

GONE = []

async def litters(order):
    Litter()
"""


@pytest.mark.slow
def test_what_a_supervisor_leaves_to_the_collector_is_gone_before_the_next_test(pytester: pytest.Pytester) -> None:
    """A warning that it gives as it goes would fail a later test, which is innocent."""
    write_scenarios(pytester, one=GREEN)
    pytester.makepyfile(mine=LITTER)
    pytester.makepyfile(test_own="import gc, mine\ngc.enable()\ndef test_own(): assert mine.GONE == ['litter'] * 2\n")
    pytester.makeconftest("import gc\ndef pytest_collection_finish(): gc.disable()")
    result = pytester.runpytest("--agentproc-subject=mine:litters", "-v")
    assert "test_own.py::test_own PASSED" in result.stdout.str()


@pytest.mark.slow
@pytest.mark.parametrize(("done", "is_aside"), [("gc.freeze()", True), ("pass", False)])
def test_what_a_test_run_put_aside_stays_aside(pytester: pytest.Pytester, done: str, is_aside: bool) -> None:
    """Objects from before a run are put aside during the collection, and come back unless other code froze them."""
    write_scenarios(pytester, one=GREEN)
    pytester.makepyfile(mine=LITTER)
    own = f"assert mine.GONE and (gc.get_freeze_count() > 1000) == {is_aside}"
    pytester.makepyfile(test_own=f"import gc, mine\ndef test_own(): {own}\n")
    pytester.makeconftest(f"import gc\ndef pytest_collection_finish(): {done}")
    result = pytester.runpytest_subprocess("--agentproc-subject=mine:litters", "-v")
    assert "test_own.py::test_own PASSED" in result.stdout.str()
