"""Inner sessions that stop themselves at a known point, with the kit and without it. Owns their text, judges nothing.

The same test file runs twice. Without the kit a plain process takes the place of the fake. Both print the same.
"""

from __future__ import annotations

import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

__all__ = ["MODES", "Ended", "run_session"]

_CONFTEST = """
import asyncio, inspect, os, signal
from types import SimpleNamespace
import pytest

KIND, POINTS = os.environ["STOP_KIND"], os.environ["STOP_POINTS"].split(",")

def stop_at(point):
    if point not in POINTS:
        return
    POINTS.remove(point)
    if KIND == "interrupt":
        signal.raise_signal(signal.SIGINT)
    elif KIND == "exit":
        pytest.exit("stop", returncode=7)
    elif KIND == "fail":
        pytest.fail("stop", pytrace=False)
    elif KIND == "busy":
        while True:
            pass
    elif KIND == "waiting":
        while True:  # the end of a child is a signal, too
            signal.pause()
    elif KIND == "worker exits":
        os._exit(3)
    elif KIND == "worker is killed":
        os.kill(os.getpid(), signal.SIGKILL)

@pytest.fixture
def stop():
    return stop_at

def pytest_runtest_logreport(report):
    if "test_second" in report.nodeid and report.when == "call":
        stop_at("report hook")

@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item):
    if "test_second" in item.nodeid:
        stop_at("teardown hook")

def pytest_keyboard_interrupt():
    stop_at("interrupt hook")
"""

_KIT_CONFTEST = """
from pytest_agentproc.plugin import FakeAgents

@pytest.hookimpl(optionalhook=True)
def pytest_agentproc_record():
    stop_at("teardown of the kit")

@pytest.fixture(scope="module")
def module_agent():
    with FakeAgents() as agents:
        agents.on_path(helper="- say: started\\n- silence: for ever", keep_path=True)
        yield "helper"
"""

_PLAIN_CONFTEST = """
PLAIN = ["sh", "-c", "echo started; exec sleep 300"]

@pytest.fixture
def fake_agent():
    return lambda script: SimpleNamespace(argv=PLAIN)

@pytest.fixture
def process_tree():
    pass

@pytest.fixture(scope="module")
def module_agent(tmp_path_factory):
    file = tmp_path_factory.mktemp("plain") / "helper"
    file.write_text("#!/bin/sh\\necho started\\nexec sleep 300\\n")
    file.chmod(0o755)
    yield str(file)

def pytest_configure(config):
    config.addinivalue_line("markers", "virtual_time: the kit's")

@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    if inspect.iscoroutinefunction(pyfuncitem.obj):
        asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}))
        return True
"""

_BLOCKING = """
import subprocess
import pytest

def test_first():
    assert 1 == 2

@pytest.fixture
def process(fake_agent, stop):
    agent = fake_agent("- say: started\\n- spawn: {id: mcp}\\n- silence: for ever")
    started = subprocess.Popen(agent.argv, stdout=subprocess.PIPE)
    assert started.stdout.readline() == b"started\\n"
    stop("setup")
    yield started
    stop("teardown")

MARK
def test_second(process, stop):
    stop("body")

def test_third():
    pass
"""

_ASYNC = """
import asyncio, subprocess
import pytest

def test_first():
    assert 1 == 2

@pytest.fixture
def argv(fake_agent, stop):
    agent = fake_agent("- say: started\\n- spawn: {id: mcp}\\n- silence: for ever")
    stop("setup")
    yield agent.argv
    stop("teardown")

@pytest.mark.virtual_time
async def test_second(argv, stop):
    process = await asyncio.create_subprocess_exec(*argv, stdout=subprocess.PIPE)
    assert await process.stdout.readline() == b"started\\n"
    stop("body")

def test_third():
    pass
"""

_MODULE_WIDE = """
import subprocess

def test_first():
    assert 1 == 2

def test_second(module_agent, stop):
    started = subprocess.Popen([module_agent], stdout=subprocess.PIPE)
    assert started.stdout.readline() == b"started\\n"
    stop("body")

def test_third(module_agent):
    pass
"""

_TREE = """
import subprocess
import pytest

@pytest.fixture
def other(stop):
    yield
    stop("teardown")

def test_first():
    assert 1 == 2

def test_second(process_tree, other, stop):
    subprocess.Popen(["sleep", "300"])
    stop("body")

def test_third():
    pass
"""

_COLLECTED = (
    _BLOCKING.replace("MARK", "")
    + """
from conftest import stop_at
stop_at("collection")
"""
)

MODES = {
    "real": _BLOCKING.replace("MARK", ""),
    "async": _ASYNC,
    "sync": _BLOCKING.replace("MARK", "@pytest.mark.virtual_time"),
    "module": _MODULE_WIDE,
    "tree": _TREE,
    "collected": _COLLECTED,
}
"""Test files by what they use: real, async virtual and sync virtual time, a fake of a module, the process tree."""

_UNWANTED_PLUGINS = ("asyncio", "hypothesispytest", "random_order", "rerunfailures", "trio", "cacheprovider")
_DEATH_TIMEOUT_MS = 20_000


class Ended(NamedTuple):
    """How an inner session ended.

    Args:
        code: its exit code.
        lines: its output, without what differs from run to run.
        left: the commands of the processes that lived on.
        files: what it left in the folder of temporary files.
    """

    code: int
    lines: list[str]
    left: list[str]
    files: list[str]


def run_session(
    folder: Path, mode: str, kind: str, points: str, *options: str, has_kit: bool = True, text: str | None = None
) -> Ended:
    """Run the test file of a mode in a session of its own, which stops itself at these points.

    Args:
        folder: where its files are written.
        mode: a key of `MODES`.
        kind: what stops it.
        points: where, with commas; each stops it once.
        options: further words of pytest's command line.
        has_kit: whether the kit is loaded.
        text: another test file in place of the mode's.
    """
    mark = uuid.uuid4().hex
    place = folder / f"{'kit' if has_kit else 'plain'}-{mark}"
    place.mkdir()
    place.joinpath("conftest.py").write_text(_CONFTEST + (_KIT_CONFTEST if has_kit else _PLAIN_CONFTEST))
    place.joinpath("test_stop.py").write_text(MODES[mode] if text is None else text)
    place.joinpath("pytest.ini").write_text("[pytest]\n")
    unwanted = [*_UNWANTED_PLUGINS, *([] if has_kit else ["agentproc"])]
    words = [sys.executable, "-m", "pytest", "-q", *(f"-pno:{name}" for name in unwanted), *options]
    with tempfile.TemporaryDirectory() as temporary:
        files = {"TMPDIR": temporary, "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "80"}
        variables = {**os.environ, **files, "STOP_KIND": kind, "STOP_POINTS": points, "STOP_MARK": mark}
        variables.pop("PYTEST_ADDOPTS", None)
        try:
            done = subprocess.run(
                [*words, f"--basetemp={place / 'base'}"],
                cwd=place,
                env=variables,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
        finally:
            left = _end_marked(mark, _DEATH_TIMEOUT_MS if has_kit else 0)
        found = sorted(file.name for file in Path(temporary).iterdir())
    shutil.rmtree(place, ignore_errors=True)
    return Ended(done.returncode, _normalize(done.stdout), left, found)


def _normalize(output: str) -> list[str]:
    """Drop times, the note of a second start, and the place of an interrupt."""
    output = re.sub(r"in \d+\.\d+s( \([\d:]+\))?", "in N s", output)
    output = re.sub(r"\n?agentproc: \S+ a fake agent waits at .*\n.*\n", "", output)  # on a slow machine: it took 2 s
    lines = [
        line for line in output.splitlines() if not re.match(r"agentproc: \d+ sync test|\S+: KeyboardInterrupt", line)
    ]
    return [line.strip("=_!- ") for line in lines]


def _find_marked(mark: str) -> dict[int, str]:
    found = {}
    for process in Path("/proc").iterdir():
        with suppress(OSError):
            if process.name.isdigit() and mark.encode() in process.joinpath("environ").read_bytes():
                found[int(process.name)] = process.joinpath("cmdline").read_bytes().replace(b"\0", b" ").decode()
    return found


def _end_marked(mark: str, timeout: int) -> list[str]:
    """Wait so long for the processes of a session to end, and kill the rest; give its commands."""
    left = []
    for pid, command in _find_marked(mark).items():
        with ExitStack() as stack, suppress(ProcessLookupError):
            pidfd = os.pidfd_open(pid)
            stack.callback(os.close, pidfd)
            watched = select.poll()
            watched.register(pidfd, select.POLLIN)
            if not watched.poll(timeout):
                left.append(command)
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    return left
