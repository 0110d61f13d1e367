"""The table of the neighbours: the most used plugins of pytest, how users turn each on, and the exceptions. Runs none.

The pins are the newest releases that work with the newest and with the oldest pytest. A new release is one changed pin.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.neighbours.environments import OLDEST

__all__ = ["NEIGHBOURS", "Difference", "Neighbour", "Proof"]


@dataclass(frozen=True)
class Proof:
    """A session that shows what the user sees, or that what the user writes helps.

    Args:
        test: its test file; "": it runs the scenario that fails, and no test.
        options: the options of pytest; None: those of the plugin.
        fails: whether a test of it fails.
        says: a pattern that the output has.
        hides: a pattern that the output does not have.
        leaves: the name of a file that is there afterwards.
    """

    test: str = ""
    options: tuple[str, ...] | None = None
    fails: bool = False
    says: str = ""
    hides: str = ""
    leaves: str = ""


@dataclass(frozen=True)
class Difference:
    """An exception: what the plugin and the kit cannot do together, and what the user writes.

    Args:
        what: what the user sees.
        why: the cause.
        write: what the user writes, as Markdown.
        proofs: the sessions that show it. If one is missing, the test that uses the plugin shows what the user writes.
    """

    what: str
    why: str
    write: str
    proofs: tuple[Proof, ...]


@dataclass(frozen=True)
class Neighbour:
    """A plugin.

    Args:
        name: its package.
        release: the pin.
        options: the options of pytest that a user gives.
        shows: a pattern that the output has because the plugin is at work.
        beside: a test that uses the plugin and the kit; it passes.
        ini: lines of pytest.ini.
        files: other files that the plugin needs, by name.
        old_release: the pin for the oldest pytest, if it is another one.
        needs: other packages, which the plugin does not bring.
        needs_terminal: whether it is at work only in a terminal.
        differences: the exceptions.
    """

    name: str
    release: str
    options: tuple[str, ...] = ()
    shows: str = ""
    beside: str = ""
    ini: str = ""
    files: dict[str, str] = field(default_factory=dict)
    old_release: str = ""
    needs: tuple[str, ...] = ()
    needs_terminal: bool = False
    differences: tuple[Difference, ...] = ()

    def choose_release(self, pytest_version: str) -> str:
        """Give the pin for a release of pytest."""
        return self.old_release if self.old_release and pytest_version == OLDEST else self.release

    def pin(self, pytest_version: str) -> list[str]:
        """Give what pip installs."""
        return [f"{self.name}=={self.choose_release(pytest_version)}", *self.needs]


_PLAIN = """
import time

import pytest


@pytest.mark.virtual_time
def test_an_hour():
    time.sleep(3600)
"""

_ASYNCIO = """
import asyncio


def test_a_loop():
    asyncio.run(asyncio.sleep(0))
"""

_START = """
from datetime import datetime, timezone

import anyio
import pytest


@pytest.mark.virtual_time(start="2026-11-22T12:00:00Z")
async def test_a_date({fixture}):
    await anyio.sleep(3600)
    assert datetime.now(timezone.utc) == datetime(2026, 11, 22, 13, tzinfo=timezone.utc)
"""

_MOVES_ASYNC = """
from datetime import datetime, timezone

import pytest


@pytest.mark.virtual_time
async def test_a_date(time_machine):
    time_machine.move_to(datetime(2026, 11, 22, tzinfo=timezone.utc))
"""

_MOVES_PLAIN = """
import time
from datetime import datetime, timezone

import pytest


@pytest.mark.virtual_time
def test_a_date(time_machine):
    time_machine.move_to(datetime(2026, 11, 22, tzinfo=timezone.utc))
    time.sleep(3600)
    assert datetime.now(timezone.utc).date() == datetime(2026, 11, 22).date()
    assert datetime.now(timezone.utc).hour == 0
"""

_HOUR = """
import time

import pytest


@pytest.mark.virtual_time
def test_an_hour():
    while time.process_time() < 2:  # the display waits in real time until it is drawn for the first time
        pass
    begin = time.process_time()
    time.sleep(3600)
    assert {least} <= time.process_time() - begin < {most}
"""

_BENCHMARK = """
import time

import pytest


@pytest.mark.virtual_time
def test_an_hour(benchmark):
    benchmark(time.sleep, 3600)
    assert round(benchmark.stats.stats.min, 6) == 3600  # it subtracts two floats
"""

_DEFERRED = """
import pytest
from twisted.internet.task import deferLater


@pytest.mark.virtual_time
async def test_an_hour():
    from twisted.internet import reactor

    await deferLater(reactor, 3600)
"""

_GIVEN = """
from hypothesis import given
from hypothesis.strategies import integers


@given(integers(0, 255))
def test_codes(fake_agent, code):
    fake_agent(f"- exit: {code}")
"""

NEIGHBOURS = (
    Neighbour("pytest-cov", "7.1.0", ("--cov=.", "--cov-report=term-missing"), r"(?m)^test_suite\.py +\d+ +0 +100%"),
    Neighbour(
        "pytest-xdist",
        "3.8.0",
        ("-n", "2", "--agentproc-virtual-sync"),
        r"2 workers \[",
        differences=(
            Difference(
                "a plain function in virtual time fails in each worker, and the message names the option",
                "virtual time for a plain function begins before the process; a worker cannot start again",
                "`--agentproc-virtual-sync`, or `agentproc_virtual_sync = true` in the ini file",
                (
                    Proof(_PLAIN, ("-n", "1"), fails=True, says="--agentproc-virtual-sync"),
                    Proof(_PLAIN, ("-n", "1", "--agentproc-virtual-sync")),
                    Proof(_PLAIN, ("-n", "1", "-o", "agentproc_virtual_sync=true")),
                ),
            ),
        ),
    ),
    Neighbour(
        "pytest-asyncio",
        "1.5.0",
        old_release="1.3.0",
        ini="asyncio_mode = auto",
        beside="""
import asyncio

import pytest
import pytest_asyncio


@pytest_asyncio.fixture
async def ready():
    await asyncio.sleep(0)
    return True


async def test_in_real_time(fake_agent, ready):
    agent = fake_agent("- answer: done")
    process = await asyncio.create_subprocess_exec(*agent.argv, stdin=-1, stdout=-1)
    assert (await process.communicate(b"")) == (b"done\\n", None)
    assert ready


@pytest.mark.virtual_time
async def test_in_virtual_time(fake_agent, ready):
    agent = fake_agent("- silence: 1h\\n- answer: done")
    process = await asyncio.create_subprocess_exec(*agent.argv, stdin=-1, stdout=-1)
    assert (await process.communicate(b"")) == (b"done\\n", None)
    assert asyncio.get_running_loop().time() == 3600
    assert ready
""",
    ),
    Neighbour(
        "pytest-mock",
        "3.17.0",
        beside="""
import subprocess

import pytest


@pytest.mark.virtual_time
def test_a_spy(fake_agent, mocker):
    spy = mocker.spy(subprocess, "run")
    agent = fake_agent("- silence: 1h\\n- answer: done")
    assert subprocess.run(agent.argv, capture_output=True).stdout == b"done\\n"
    spy.assert_called_once_with(agent.argv, capture_output=True)


def test_a_patched_module(fake_agent, mocker):
    mocker.patch("time.sleep")
    mocker.patch("os.getcwd", return_value="/nowhere")
    agent = fake_agent("- answer: done")
    assert subprocess.run(agent.argv, capture_output=True).stdout == b"done\\n"
""",
    ),
    Neighbour("pytest-timeout", "2.4.0", ("--timeout=60",), r"timeout: 60\.0s"),
    Neighbour("pytest-randomly", "5.1.0", ("--randomly-seed=1",), r"Using --randomly-seed=1"),
    Neighbour("pytest-rerunfailures", "16.7", ("--reruns=1",), r"\d rerun"),
    Neighbour(
        "pytest-django",
        "4.14.0",
        ("--ds=settings",),
        r"django: version: .*settings: settings",
        needs=("django",),
        files={
            "settings.py": """
SECRET_KEY = "no secret"
INSTALLED_APPS = ["django.contrib.contenttypes"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
USE_TZ = True
"""
        },
        beside="""
import subprocess

import pytest
from django.contrib.contenttypes.models import ContentType


@pytest.mark.django_db
@pytest.mark.parametrize("hour", [pytest.param(1, marks=pytest.mark.virtual_time), 0])
def test_a_database(fake_agent, settings, hour):
    settings.DEBUG = True
    agent = fake_agent(f"- silence: {hour}h\\n- answer: done")
    ContentType.objects.create(app_label=subprocess.run(agent.argv, capture_output=True).stdout.decode(), model="a")
    assert ContentType.objects.get(model="a").app_label == "done\\n"
""",
    ),
    Neighbour(
        "pytest-flask",
        "1.3.0",
        beside="""
import subprocess

import flask
import pytest


@pytest.fixture
def app(fake_agent):
    app = flask.Flask(__name__)
    agent = fake_agent("- answer: done")
    app.add_url_rule("/", view_func=lambda: subprocess.run(agent.argv, capture_output=True).stdout)
    return app


def test_a_client(client):
    assert client.get("/").data == b"done\\n"


@pytest.mark.virtual_time
def test_in_virtual_time(client):
    assert client.get("/").data == b"done\\n"
""",
    ),
    Neighbour(
        "pytest-httpx",
        "0.36.2",
        old_release="0.35.0",
        beside="""
import subprocess

import anyio
import httpx
import pytest


def test_a_mocked_answer(fake_agent, httpx_mock):
    httpx_mock.add_response(text="hi")
    agent = fake_agent("- wait_for: eof\\n- answer: done")
    prompt = httpx.get("http://localhost/").content
    assert subprocess.run(agent.argv, input=prompt, capture_output=True).stdout == b"done\\n"
    assert agent.starts[0].stdin == b"hi"


@pytest.mark.virtual_time
async def test_in_virtual_time(fake_agent, httpx_mock):
    httpx_mock.add_response(text="hi")
    agent = fake_agent("- wait_for: eof\\n- silence: 1h\\n- answer: done")
    async with httpx.AsyncClient() as client:
        prompt = (await client.get("http://localhost/")).content
    assert (await anyio.run_process(agent.argv, input=prompt)).stdout == b"done\\n"
""",
    ),
    Neighbour(
        "pytest-aiohttp",
        "1.1.1",
        ini="asyncio_mode = auto",
        beside="""
import asyncio

import pytest
from aiohttp import web


@pytest.mark.parametrize("silence", ["0s", pytest.param("1h", marks=pytest.mark.virtual_time)])
async def test_a_server(fake_agent, aiohttp_client, silence):
    agent = fake_agent(f"- silence: {silence}\\n- answer: done")

    async def answer(request):
        process = await asyncio.create_subprocess_exec(*agent.argv, stdout=-1)
        return web.Response(body=(await process.communicate())[0])

    app = web.Application()
    app.router.add_get("/", answer)
    client = await aiohttp_client(app)
    assert await (await client.get("/", timeout=None)).read() == b"done\\n"
""",
    ),
    Neighbour(
        "pytest-socket",
        "0.8.1",
        ("--disable-socket",),
        differences=(
            Difference(
                "`asyncio.run` in real time, and async tests without the marker, fail with `SocketBlockedError`",
                "asyncio wakes itself by a pair of sockets, also without the kit; in virtual time the kit makes them",
                "`--allow-unix-socket`, or the marker `virtual_time`",
                (
                    Proof(_ASYNCIO, fails=True, says="SocketBlockedError"),
                    Proof(_ASYNCIO, ("--disable-socket", "--allow-unix-socket")),
                    Proof(_START.format(fixture="")),
                ),
            ),
        ),
        beside="""
import socket

import pytest
import pytest_socket


def test_sockets_are_refused(fake_agent):
    assert fake_agent("- answer: done").argv
    with pytest.raises(pytest_socket.SocketBlockedError):
        socket.socket()
""",
    ),
    Neighbour(
        "pytest-freezer",
        "0.4.9",
        differences=(
            Difference(
                "an async test in virtual time that asks for `freezer` fails, and the message says what to write",
                "two of them would hold the same clocks",
                '`@pytest.mark.virtual_time(start="2026-11-22T12:00:00Z")` in place of `freezer`',
                (
                    Proof(_START.format(fixture="freezer"), fails=True, says=r"virtual_time\(start="),
                    Proof(_START.format(fixture="")),
                ),
            ),
        ),
        beside="""
import subprocess
import time
from datetime import datetime


def test_a_frozen_date(fake_agent, freezer):
    freezer.move_to("2026-11-22")
    agent = fake_agent("- silence: 50ms\\n- answer: done")
    assert subprocess.run(agent.argv, capture_output=True).stdout == b"done\\n"
    assert datetime.now() == datetime(2026, 11, 22)
""",
    ),
    Neighbour(
        "time-machine",
        "3.6.0",
        differences=(
            Difference(
                "in virtual time `move_to` fails in an async test, and the date stands still in a plain one",
                "two of them would hold the same clocks",
                '`@pytest.mark.virtual_time(start="2026-11-22T12:00:00Z")` in place of `time_machine`',
                (
                    Proof(_MOVES_ASYNC, fails=True, says="cannot start when freezegun is active"),
                    Proof(_MOVES_PLAIN),
                    Proof(_START.format(fixture="")),
                ),
            ),
        ),
        beside="""
import subprocess
from datetime import datetime

import pytest


def test_a_moved_date(fake_agent, time_machine):
    time_machine.move_to(datetime(2026, 11, 22), tick=False)
    agent = fake_agent("- silence: 50ms\\n- answer: done")
    assert subprocess.run(agent.argv, capture_output=True).stdout == b"done\\n"
    assert datetime.now() == datetime(2026, 11, 22)
""",
    ),
    Neighbour(
        "pytest-env",
        "1.8.5",
        old_release="1.1.3",
        ini="env =\n    MODEL=small",
        beside="""
import subprocess


def test_a_variable(fake_agent):
    agent = fake_agent("- answer: done")
    subprocess.run(agent.argv)
    assert agent.starts[0].env["MODEL"] == "small"
""",
    ),
    Neighbour("pytest-sugar", "1.1.1", ("--force-sugar",), r"✓"),
    Neighbour(
        "pytest-rich",
        "0.3.0",
        ("--rich",),
        r"╭─",
        needs_terminal=True,
        differences=(
            Difference(
                "the summary of the judged scenarios is not printed",
                "its terminal prints no summary of another plugin",
                "`--agentproc-results=results.json`",
                (
                    Proof(options=(), fails=True, says="what went wrong"),
                    Proof(
                        fails=True,
                        hides="what went wrong",
                        options=("--rich", "--agentproc-results=results.json"),
                        leaves="results.json",
                    ),
                ),
            ),
            Difference(
                "a plain function in virtual time is slow: some seconds for each hour",
                "the display is drawn ten times in each second, also in each second of virtual time",
                "no `--rich` for tests in which plain functions wait for hours",
                (
                    Proof(_HOUR.format(least=1, most=120)),
                    Proof(_HOUR.format(least=0, most=1), ()),
                ),
            ),
        ),
    ),
    Neighbour("pytest-html", "4.2.0", ("--html=report.html", "--self-contained-html"), r"Generated html report"),
    Neighbour("pytest-json-report", "1.5.0", ("--json-report",), r"\.report\.json"),
    Neighbour(
        "pytest-benchmark",
        "5.3.1",
        ("--benchmark-min-rounds=1", "--benchmark-max-time=0.1"),
        r"benchmark: 1 tests",
        differences=(
            Difference(
                "in a test in virtual time, `benchmark` measures virtual time",
                "it reads the clocks of the test",
                "no marker `virtual_time` for a benchmark",
                (Proof(_BENCHMARK),),
            ),
        ),
        beside="""
import subprocess


def test_a_start(fake_agent, benchmark):
    agent = fake_agent("- answer: done")
    assert benchmark(subprocess.run, agent.argv, capture_output=True).stdout == b"done\\n"
""",
    ),
    Neighbour(
        "pytest-subtests",
        "0.15.0",
        beside="""
import subprocess

import pytest


@pytest.mark.virtual_time
def test_parts(fake_agent, subtests):
    for code in (0, 3):
        with subtests.test(code=code):
            assert subprocess.run(fake_agent(f"- silence: 1h\\n- exit: {code}").argv).returncode == code
""",
    ),
    Neighbour(
        "syrupy",
        "7.0.2",
        ("--snapshot-update",),
        r"1 snapshot generated",
        beside="""
import subprocess


def test_a_snapshot(fake_agent, snapshot):
    agent = fake_agent("- answer: done")
    subprocess.run([*agent.argv, "--print"])
    assert agent.starts[0].argv == snapshot
""",
    ),
    Neighbour(
        "pytest-bdd",
        "9.0.1",
        files={
            "agents.feature": """
Feature: agents
    Scenario: an agent answers
        Given an agent that needs an hour
        When it is asked
        Then the answer is done
"""
        },
        beside="""
import subprocess

import pytest
from pytest_bdd import given, scenario, then, when


@pytest.mark.virtual_time
@scenario("agents.feature", "an agent answers")
def test_an_agent_answers():
    pass


@given("an agent that needs an hour", target_fixture="agent")
def _(fake_agent):
    return fake_agent("- silence: 1h\\n- answer: done")


@when("it is asked", target_fixture="answer")
def _(agent):
    return subprocess.run(agent.argv, capture_output=True).stdout


@then("the answer is done")
def _(answer):
    assert answer == b"done\\n"
""",
    ),
    Neighbour(
        "pytest-trio",
        "0.8.0",
        ini="trio_mode = true",
        beside="""
import pytest
import trio


@pytest.mark.parametrize("silence", ["0s", pytest.param("1h", marks=pytest.mark.virtual_time)])
async def test_an_agent(fake_agent, nursery, silence):
    agent = fake_agent(f"- silence: {silence}\\n- answer: done")
    nursery.start_soon(trio.sleep, 0)
    assert (await trio.run_process(agent.argv, capture_stdout=True)).stdout == b"done\\n"
""",
    ),
    Neighbour(
        "pytest-twisted",
        "1.14.3",
        ("--reactor=default",),
        differences=(
            Difference(
                "a coroutine function in virtual time fails: `Task got bad yield`",
                "an async test in virtual time is run by the loop of the kit, and not by the reactor",
                "`@pytest_twisted.inlineCallbacks`, whose test is a plain function, with the marker",
                (Proof(_DEFERRED, fails=True, says="Task got bad yield"),),
            ),
        ),
        needs=("twisted",),
        beside="""
import pytest
import pytest_twisted
from twisted.internet.utils import getProcessOutput


@pytest.mark.virtual_time
@pytest_twisted.inlineCallbacks
def test_an_hour(fake_agent):
    agent = fake_agent("- silence: 1h\\n- answer: done")
    assert (yield getProcessOutput(agent.argv[0], agent.argv[1:])) == b"done\\n"


@pytest_twisted.ensureDeferred
async def test_an_agent(fake_agent):
    agent = fake_agent("- answer: done")
    assert await getProcessOutput(agent.argv[0], agent.argv[1:]) == b"done\\n"
""",
    ),
    Neighbour(
        "hypothesis",
        "6.170.17",
        ("--hypothesis-seed=1", "--hypothesis-show-statistics"),
        r"max_examples=5",
        differences=(
            Difference(
                "`@given` with a fixture such as `fake_agent` fails: `uses a function-scoped fixture`",
                "all examples of a test share one fixture",
                "`with FakeAgents() as agents:` from `pytest_agentproc.plugin`, in the body of the test",
                (Proof(_GIVEN, fails=True, says="function-scoped fixture"),),
            ),
        ),
        beside="""
import subprocess

from hypothesis import given, settings
from hypothesis.strategies import integers
from pytest_agentproc.plugin import FakeAgents


@given(integers(0, 255))
@settings(max_examples=5, deadline=None)
def test_codes(code):
    with FakeAgents() as agents:
        agents.on_path(mine=f"- exit: {code}")
        assert subprocess.run(["mine"], stdin=subprocess.DEVNULL).returncode == code
""",
    ),
)
