"""Interrupted sessions that only the kit has: scenarios, conversations, and what is written at the end."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.plugin.interruptions.sessions import run_session
from tests.plugin.scenarios import GREEN

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow]

_STOPPING = """\
import signal
import pytest

SEEN = []

def pytest_agentproc_record(nodeid):
    SEEN.append(nodeid)
    if len(SEEN) == 2:
        STOP
"""

_STOPS = {
    "interrupt": ("signal.raise_signal(signal.SIGINT)", 2),
    "terminate": ("signal.raise_signal(signal.SIGTERM)", 2),
    "exit": ("pytest.exit('stop', returncode=7)", 7),
}


@pytest.mark.parametrize("stop", _STOPS)
@pytest.mark.parametrize("is_bundled", [False, True], ids=["own", "corpus"])
def test_a_part_of_the_scenarios_gives_no_verdict(pytester: pytest.Pytester, stop: str, is_bundled: bool) -> None:
    """The results say that they are a part, whatever the exit code is. A baseline cannot say so, and is not written."""
    what, code = _STOPS[stop]
    pytester.makepyfile(stopper=_STOPPING.replace("STOP", what))
    for name in ("one", "two"):
        pytester.path.joinpath(f"{name}.scenario.yaml").write_text(GREEN)
    bundled = ["--agentproc-corpus", "-k", "half-a-line or two-events"]
    done = pytester.runpytest_subprocess(
        "-pstopper",
        *(bundled if is_bundled else ["--agentproc-subject=reference"]),
        "--agentproc-results=results.json",
        "--agentproc-update-baseline",
        "--agentproc-report=pages",
    )
    assert done.ret == code
    results = json.loads(pytester.path.joinpath("results.json").read_text("utf-8"))
    assert (results["whole"], len(results["results"])) == (False, 1)
    assert {(subject["conformant"], subject["conformance"]) for subject in results["subjects"]} == {
        (False, "was not judged")
    }
    assert not pytester.path.joinpath("agentproc-baseline.yaml").exists()
    assert pytester.path.joinpath("pages", "index.html").exists()
    if is_bundled and code == pytest.ExitCode.INTERRUPTED:  # pytest prints no summary with another code
        done.stdout.fnmatch_lines(["agentproc: reference was not judged to the end, as the session was interrupted: *"])


def test_files_that_cannot_be_written_lose_no_failure(pytester: pytest.Pytester) -> None:
    """They are written when pytest has not printed its summary yet."""
    pytester.path.joinpath("one.scenario.yaml").write_text(GREEN)
    pytester.path.joinpath("pages", "index.html").mkdir(parents=True)
    pytester.path.joinpath("file").write_text("")
    pytester.makepyfile("def test_first():\n    assert 1 == 2\n")
    done = pytester.runpytest_subprocess(
        "--agentproc-report=pages",
        "--agentproc-update-baseline",
        "--agentproc-baseline=file/known.yaml",
        "--agentproc-results=file/results.json",
    )
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(
        [
            "*test_first*",
            "*index.html: there is no index: Is a directory",
            "agentproc: file/known.yaml cannot be written: *",
            "agentproc: file/results.json cannot be written: *",
        ]
    )


_CONVERSATION = """\
import signal, threading
import pytest

def test_first():
    assert 1 == 2

@pytest.fixture
def torn_down():
    event = threading.Event()
    yield event
    event.set()

def test_second(agent_session, torn_down):
    session = agent_session("- silence: for ever")
    async def interrupt(_):
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        torn_down.wait(60)
    session.call(interrupt)
"""


def test_a_conversation_that_is_interrupted_is_closed(tmp_path: Path) -> None:
    """Its loop is in another thread, which is still at work when the end of the session closes it."""
    ended = run_session(tmp_path, "real", "none", "", text=_CONVERSATION)
    assert (ended.code, ended.lines[-1]) == (pytest.ExitCode.INTERRUPTED, "1 failed in N s")
    assert "FAILED test_stop.py::test_first - assert 1 == 2" in ended.lines
    assert (ended.left, ended.files) == ([], [])
