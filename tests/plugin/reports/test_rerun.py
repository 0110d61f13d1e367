"""Each printed command and node id runs the same test again: same supervisor, same clock, from the same directory."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.corpus import list_corpus_files
from pytest_agentproc.plugin import _corpus
from tests.bundled import load_all_bundled

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("small_heap")

MINE = """
import asyncio

from pytest_agentproc.subjects import Function


async def mine(order):
    agent = await asyncio.create_subprocess_exec(*order.argv, env=order.env, stdout=asyncio.subprocess.PIPE)
    try:
        await asyncio.wait_for(agent.communicate(), 60 / order.scale)
    except TimeoutError:
        agent.kill()
        await agent.wait()
        return "inactive"
    return "completed"


def subject():
    return Function(mine, limits={"inactivity_timeout": 60}, dialects=["raw"])
"""
CONFTEST = """
from supervising import subject


def pytest_agentproc_subjects():
    return [subject()]
"""
OWN = "scenario: one byte a minute\nagent: raw\nscript:\n  - drip: {stdout: ., every: 30s, for: 150s}\n"
OWN += "expect: {outcome: completed}\n"
MARKED = """
import pytest


@pytest.mark.agentproc("own.scenario.yaml", "byte-a-minute")
def test_marked(agent_scenario):
    pass
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> Path:
    """Make a project with a supervisor that is wrong about silence, where the reference supervisor passes all."""
    pytester.makeini("[pytest]\npythonpath = .\n")
    pytester.path.joinpath("supervising.py").write_text(MINE)
    pytester.path.joinpath("conftest.py").write_text(CONFTEST)
    for folder in ("checks", "sub"):
        pytester.path.joinpath(folder).mkdir()
    pytester.path.joinpath("checks/own.scenario.yaml").write_text(OWN)
    pytester.path.joinpath("checks/test_marked.py").write_text(MARKED)
    return pytester.path


def find_digests(result: pytest.RunResult) -> list[str]:
    """Give what identifies each failed run: the digest of its record."""
    return re.findall(r", record ([0-9a-f]{64})$", result.stdout.str(), re.MULTILINE)


def find_rerun_commands(result: pytest.RunResult) -> list[list[str]]:
    """Give the words of each printed command after `pytest`."""
    found = [shlex.split(line.removeprefix("rerun: ")) for line in result.outlines if line.startswith("rerun: ")]
    assert {words.pop(0) for words in found} <= {"pytest"}
    return found


BYTE = ("--agentproc-corpus", "-k", "byte-a-minute")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("folder", "named", "options"),
    [
        (".", BYTE, ()),
        (".", BYTE, ("-n", "1")),
        (".", BYTE, ("--agentproc-backend=both",)),
        (".", BYTE, ("--agentproc-subject=reference,kill-at-once", "--agentproc-defect", "duration-timeout")),
        (".", BYTE, ("--agentproc-subject", "null")),
        (".", BYTE, ("--agentproc-subject=supervising:subject",)),
        (".", BYTE, ("--agentproc-defect=duration-timeout", "--agentproc-clock=model")),
        (".", ("checks",), ()),
        ("sub", BYTE, ()),
        ("sub", ("../checks",), ()),
        ("checks", (), ()),
        ("sub", BYTE, ("-c", "../other.ini", "-p", "plug", "-o", "agentproc_backend=trio")),
    ],
    ids=str,
)
def test_each_printed_command_and_node_id_shows_the_same_failures_again(
    pytester: pytest.Pytester,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    folder: str,
    named: tuple[str, ...],
    options: tuple[str, ...],
) -> None:
    """A green that comes from another supervisor would be worse than no command."""
    project.joinpath("other.ini").write_text("[pytest]\n")
    project.joinpath("plug.py").write_text(CONFTEST)
    if "plug" in options:
        project.joinpath("conftest.py").unlink()
    pytester.syspathinsert(project)
    monkeypatch.chdir(project / folder)
    first = pytester.runpytest(*named, *options)
    failed = find_digests(first)
    assert failed
    assert [find_digests(pytester.runpytest(*words)) for words in find_rerun_commands(first)] == [
        [digest] for digest in failed
    ]
    printed = re.findall(r"^FAILED (\S+)", first.stdout.str(), re.MULTILINE)
    assert len(printed) == len(failed)
    if named == BYTE:
        listed = [
            line for line in pytester.runpytest(*named, *options, "--collect-only", "-q").outlines if "::" in line
        ]
        assert all(line.startswith("agentproc-corpus/") for line in listed)
        assert find_digests(pytester.runpytest(*listed, *options)) == failed
    assert sorted(find_digests(pytester.runpytest(*printed, *options))) == sorted(failed)


@pytest.mark.slow
def test_a_conftest_file_of_another_folder_is_named(pytester: pytest.Pytester, project: Path) -> None:
    """It was loaded because its folder was named; a node id alone is an error, and never another supervisor's run."""
    project.joinpath("conftest.py").rename(project / "checks/conftest.py")
    project.joinpath("checks/test_marked.py").unlink()
    first = pytester.runpytest("checks", *BYTE)
    [words] = find_rerun_commands(first)
    node_id = "agentproc-corpus/activity/silence/byte-a-minute.scenario.yaml::byte-a-minute[mine-asyncio]"
    assert words == [
        "checks/conftest.py",
        node_id,
    ]
    assert find_digests(pytester.runpytest(*words)) == find_digests(first)
    alone = pytester.runpytest(node_id)
    alone.assert_outcomes(errors=1)
    assert (
        f"{node_id}: there is no such test: byte-a-minute[asyncio]; the brackets name the supervisor: "
        "name the folder of its conftest.py, too, or repeat --agentproc-subject"
    ) in alone.outlines


@pytest.mark.slow
def test_last_failed_and_deselect_know_the_ids_of_bundled_scenarios(pytester: pytest.Pytester, project: Path) -> None:
    """Their folder is on no disk, where `--lf` looks for the files of failed tests and skips all others."""
    project.joinpath("checks/test_other.py").write_text("def test_other(): assert False")
    some = ("checks/test_other.py", "--agentproc-corpus", "-k", "byte-a-minute or test_other")
    pytester.runpytest(*some).assert_outcomes(failed=2, deselected=len(load_all_bundled()) - 1)
    pytester.runpytest(*some, "--lf").assert_outcomes(failed=2, deselected=len(load_all_bundled()) - 1)
    node_id = "agentproc-corpus/activity/silence/byte-a-minute.scenario.yaml::byte-a-minute[mine-asyncio]"
    pytester.runpytest(*some, "--deselect", node_id).assert_outcomes(failed=1, deselected=len(load_all_bundled()))


@pytest.mark.usefixtures("project")
def test_a_bundled_scenario_is_named_by_its_node_id(pytester: pytest.Pytester) -> None:
    """By its path pytest takes the folder of the kit as the project, and loads no conftest file of this one."""
    file = next(file for file in list_corpus_files() if file.name == "byte-a-minute.scenario.yaml")
    result = pytester.runpytest(f"{file}::byte-a-minute[asyncio]")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.errlines[0] == (
        f"ERROR: {file} is outside of this project, so that no conftest.py of the project would be loaded: "
        "write agentproc-corpus/activity/silence/byte-a-minute.scenario.yaml::byte-a-minute[asyncio]"
    )
    result = pytester.runpytest("agentproc-corpus/activity/byte-a-minut.scenario.yaml")
    assert result.errlines[0] == (
        "ERROR: agentproc-corpus/activity/byte-a-minut.scenario.yaml: no bundled scenario has this name: "
        "did you mean agentproc-corpus/activity/silence/byte-a-minute.scenario.yaml?"
    )


def test_an_installed_scenario_is_named_by_its_node_id_too(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, project: Path
) -> None:
    """Without an ini file pytest takes a folder above both as the rootdir, and loads neither conftest file."""
    installed = project / "site/_corpus"
    installed.mkdir(parents=True)
    installed.joinpath("own.scenario.yaml").write_text(OWN)
    monkeypatch.setattr(_corpus, "find_corpus_folder", lambda: installed)
    project.joinpath("tox.ini").unlink()
    monkeypatch.chdir(project / "sub")
    result = pytester.runpytest("../site/_corpus/own.scenario.yaml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.errlines[0].endswith("would be loaded: write agentproc-corpus/own.scenario.yaml")
    project.joinpath("conftest.py").rename(project / "sub/conftest.py")
    pytester.syspathinsert(project)
    assert find_digests(pytester.runpytest("agentproc-corpus/own.scenario.yaml"))


def test_a_folder_of_the_same_name_is_the_projects_own(pytester: pytest.Pytester) -> None:
    """Node ids of the kit never hide files."""
    pytester.path.joinpath("agentproc-corpus").mkdir()
    pytester.path.joinpath("agentproc-corpus/test_own.py").write_text("def test_own(): pass")
    for word in ("agentproc-corpus", "agentproc-corpus/test_own.py::test_own"):
        pytester.runpytest(word).assert_outcomes(passed=1)
