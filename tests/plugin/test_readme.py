"""The README is true: its commands are the project's, its examples run as they stand, its failure is the real one."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_agentproc.subjects import Function
from pytest_agentproc.vocabulary import LimitsRequest
from tests.architecture.sources import ROOT
from tests.process.pi_scripts import PI
from tests.process.stand import CEILING

pytestmark = pytest.mark.once

COMMANDS = [
    "python3 -m venv .venv && .venv/bin/pip install -e . && .venv/bin/pytest scenarios",
    "python3 -m venv .venv && .venv/bin/pip install -e '.[test]' && .venv/bin/pytest -n auto",
]
README = (ROOT / "README.md").read_text("utf-8")


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def _with(words: str, language: str = "python") -> str:
    """Give the one block that has these words, wherever it stands."""
    [found] = [block for block in _blocks(language) if words in block]
    return found


LEFT = _with("(process_tree)")
TOYS = _with("def test_an_agent_of_ones_own")
EXAMPLES = [block for block in _blocks("python") if "def test_" in block and block not in (LEFT, TOYS)]
EXAMPLE_IDS = [re.findall(r"def test_\w+\((.*)\)", block)[-1].replace(", ", "-") or "marker" for block in EXAMPLES]


def test_the_first_screen_has_the_two_commands() -> None:
    """A user who clones the project pastes these; .ci/run does the same."""
    assert [block.strip() for block in _blocks("sh")] == COMMANDS


def test_the_scenario_fits_on_a_postcard() -> None:
    """The first example decides whether a QA person reads on."""
    [scenario] = _blocks("yaml")
    assert len(scenario.splitlines()) <= 12


@pytest.mark.slow
def test_the_scenario_passes(pytester: pytest.Pytester) -> None:
    """An example that fails as written is worse than none."""
    [scenario] = _blocks("yaml")
    pytester.path.joinpath("dots.scenario.yaml").write_text(scenario, "utf-8")
    pytester.runpytest_subprocess("dots.scenario.yaml").assert_outcomes(passed=1)


@pytest.mark.slow
def test_the_commands_print_what_is_shown(tmp_path: Path) -> None:
    """A shell's user pastes them one after the other."""
    session = re.findall(r"^\$ (.*)\n((?:[^$].*\n)*)", _with("agentproc new hang", "console"), re.MULTILINE)
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    for command, shown in session:
        done = subprocess.run(
            ["sh", "-c", command], cwd=tmp_path, env={"PATH": path}, capture_output=True, text=True, check=False
        )
        assert done.stdout + done.stderr == shown, command


@pytest.mark.slow
def test_the_failure_is_printed_as_shown(pytester: pytest.Pytester) -> None:
    """The text of a failure is the product; the README shows the real one."""
    [scenario] = _blocks("yaml")
    [(command, shown)] = re.findall(r"\A\$ pytest (.*)\n((?:.*\n)*)\Z", _with("$ pytest dots.", "console"))
    pytester.path.joinpath("dots.scenario.yaml").write_text(scenario, "utf-8")
    result = pytester.runpytest_subprocess(*command.split())
    result.assert_outcomes(failed=1)
    assert shown in result.stdout.str()


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=EXAMPLE_IDS)
def test_the_python_examples_pass(pytester: pytest.Pytester, example: str) -> None:
    """They are copied before they are read."""
    pytester.makepyfile(example)
    pytester.runpytest_subprocess("-W", "error", "-p", "no:asyncio").assert_outcomes(passed=1)


@pytest.mark.slow
def test_the_process_that_is_left_is_named_as_shown(pytester: pytest.Pytester) -> None:
    """Pids differ, and nothing else."""
    [shown] = _blocks("text")
    pytester.makepyfile(test_server=LEFT)
    result = pytester.runpytest_subprocess("-W", "ignore")
    result.assert_outcomes(passed=1, errors=1)
    printed = re.sub(r"pid \d+", "pid 4711", re.sub(r"pytest \(\d+\)", "pytest (4700)", result.stdout.str()))
    assert shown in printed


@pytest.mark.slow
def test_a_supervisor_of_ones_own_is_judged_as_shown(pytester: pytest.Pytester) -> None:
    """Two short files, and the end of the output is the real one, but for the hashes."""
    mine, conftest = _with("async def supervise(argv, env)"), _with("from mine import supervise")
    assert (len(mine.splitlines()), len([line for line in conftest.splitlines() if line])) <= (14, 10)
    pytester.makepyfile(mine=mine, conftest=conftest)
    _prints_as_shown(pytester, _with("silent-past-the-limit or leftover", "console"))


def test_a_function_of_limits_is_asked_as_shown() -> None:
    """It gives other graces in a session, and the scenario's own values count."""
    written: dict[str, Any] = {}
    exec(_with("def limits(request)"), written)  # noqa: S102  # it is ours
    limits = written["limits"]
    assert limits(LimitsRequest({}, "raw")) == {"inactivity_timeout": 60, "kill_grace": 1}
    given = LimitsRequest({"kill_grace": 9}, "pi", "rpc", is_session=True)
    assert limits(given) == {"inactivity_timeout": 60, "kill_grace": 9}
    assert Function(print, limits=limits).policy(LimitsRequest({}, "pi", "rpc", is_session=True)).kill_grace == 5


@pytest.mark.slow
def test_a_client_of_ones_own_is_judged_as_shown(pytester: pytest.Pytester) -> None:
    """One short file shows a client that holds sessions; the scenario of a queue is reported as not its own."""
    conftest = _with("class Pi(Client)")
    assert len([line for line in conftest.splitlines() if line]) <= 30
    pytester.makepyfile(conftest=conftest)
    _prints_as_shown(pytester, _with("pi-session-cancel or", "console"))


def _prints_as_shown(pytester: pytest.Pytester, block: str) -> None:
    [(command, shown)] = re.findall(r"\A\$ pytest (.*)\n\.\.\.\n((?:.*\n)*)\Z", block)
    result = pytester.runpytest_subprocess("-p", "no:asyncio", *shlex.split(command))
    varies = re.compile(r"\b[0-9a-f]{12}\b|\d+ deselected in [\d.]+s.*")  # what the corpus and the machine say
    assert varies.sub("...", shown) in varies.sub("...", result.stdout.str() + "\n")


@pytest.mark.slow
def test_a_dialect_of_ones_own_is_added_as_shown(pytester: pytest.Pytester) -> None:
    """Four short files are all that there is to it."""
    encoder, decoder, conftest = (_with(words) for words in ("class Encoder", "class Decoder", "agentproc_dialects"))
    pytester.makepyfile(toy_encoder=encoder, toy_decoder=decoder, conftest=conftest, test_toy=TOYS)
    pytester.runpytest("-W", "error").assert_outcomes(passed=1)


@pytest.mark.slow
def test_the_session_runs_as_it_stands(tmp_path: Path) -> None:
    """It is the ten lines that a user tries in production."""
    program = tmp_path / "pi"
    program.write_text(f"#!{sys.executable}\n{PI}", "utf-8")
    program.chmod(0o755)
    env = {"PATH": str(tmp_path), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "error", "-c", _with("async with open_session")]
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False, timeout=CEILING)
    assert (done.stdout, done.stderr, done.returncode) == ("completed WHAT IS IN THIS FOLDER?\n", "", 0)


def test_every_link_leads_somewhere() -> None:
    """A map with a road that ends is no map."""
    assert [link for link in re.findall(r"\]\(([^)]+)\)", README) if not (ROOT / link).exists()] == []
