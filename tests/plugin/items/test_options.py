"""The command line: backends, defects, the bundled scenarios; an impossible run is refused in one sentence."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from itertools import pairwise
from typing import Any

import pytest

from pytest_agentproc import defects
from tests.architecture.sources import ROOT
from tests.plugin.scenarios import CORPUS, GREEN


def list_collected_ids(result: pytest.RunResult) -> list[str]:
    """List the ids of a quiet collection."""
    return [line for line in result.outlines if "::" in line]


@pytest.mark.parametrize(
    ("arguments", "ini", "backends"),
    [
        ([], "", ["asyncio"]),
        (["--agentproc-backend=trio"], "", ["trio"]),
        (["--agentproc-backend=both"], "", ["asyncio", "trio"]),
        ([], "agentproc_backend = trio", ["trio"]),
        (["--agentproc-backend=asyncio"], "agentproc_backend = both", ["asyncio"]),
    ],
)
def test_a_scenario_runs_on_each_chosen_backend(
    pytester: pytest.Pytester, arguments: list[str], ini: str, backends: list[str]
) -> None:
    """The command line wins over the ini file, the ini file over asyncio."""
    pytester.makeini(f"[pytest]\n{ini}\n")
    (pytester.path / "one.scenario.yaml").write_text(GREEN)
    result = pytester.runpytest("--collect-only", "-q", *arguments)
    assert list_collected_ids(result) == [f"one.scenario.yaml::one[{backend}]" for backend in backends]


def test_a_missing_trio_is_one_clear_sentence(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """The remedy stands in the message, and the exit code says that the call was wrong."""
    find_spec = importlib.util.find_spec

    def without_trio(name: str, package: str | None = None) -> Any:
        return None if name == "trio" else find_spec(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", without_trio)
    result = pytester.runpytest("--agentproc-backend=both")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.errlines[0] == (
        "ERROR: agentproc backend both needs trio, which is not installed: "
        "run pip install 'pytest-agentproc[trio]' or choose --agentproc-backend=asyncio"
    )


KNOWN = ", ".join(defects.DEFECT_NAMES)


@pytest.mark.parametrize(
    ("option", "value", "remedy"),
    [
        ("backend", "curio", "must be one of asyncio, trio, both"),
        ("backend", "", "must be one of asyncio, trio, both"),
        ("defect", "no-such", f"there is no such defect, only {KNOWN}"),
        ("defect", "duration-timeouts", "there is no such defect, did you mean duration-timeout?"),
    ],
)
def test_a_wrong_value_is_refused_wherever_it_stands(
    pytester: pytest.Pytester, option: str, value: str, remedy: str
) -> None:
    """A typing mistake must not mean the default; the message names the place, the value and what is allowed."""
    result = pytester.runpytest(f"--agentproc-{option}={value}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.errlines[0] == f"ERROR: --agentproc-{option}={value}: {remedy}"
    pytester.makeini(f"[pytest]\nagentproc_{option} = {value}\n")
    result = pytester.runpytest()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.errlines[0] == f"ERROR: agentproc_{option} = {value}: {remedy}"


def test_a_flag_that_is_none_is_refused(pytester: pytest.Pytester) -> None:
    """An ini file knows flags by two words."""
    pytester.makeini("[pytest]\nagentproc_corpus = maybe\n")
    result = pytester.runpytest()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.errlines[0] == "ERROR: agentproc_corpus: invalid truth value 'maybe': write true or false"


def test_the_ini_file_can_name_a_defect_and_the_command_line_another_or_none(pytester: pytest.Pytester) -> None:
    """A project that studies one defect sets it once; a run without it is one word away."""
    pytester.makeini("[pytest]\nagentproc_defect = no-grace\n")
    (pytester.path / "one.scenario.yaml").write_text(GREEN)
    pytester.makeconftest(
        """
        def pytest_agentproc_record(nodeid, record):
            print("SUBJECT", record.header["subject"])
        """
    )
    subjects = []
    for arguments in ([], ["--agentproc-defect=one-grace"], ["--agentproc-defect="]):
        result = pytester.runpytest("-s", *arguments)
        subjects += [line.rpartition("SUBJECT ")[2] for line in result.outlines if "SUBJECT" in line]
    assert subjects == ["no-grace", "one-grace", "reference"]


@pytest.mark.slow
def test_the_corpus_is_found_from_an_empty_directory(pytester: pytest.Pytester) -> None:
    """That is how a downstream project meets the kit; ids do not depend on where it is installed."""
    result = pytester.runpytest("--agentproc-corpus", "--collect-only", "-q")
    assert list_collected_ids(result) == [f"agentproc-corpus/{node_id}" for node_id in CORPUS]


@pytest.mark.slow
@pytest.mark.parametrize(("ini", "count"), [("true", len(CORPUS)), ("false", 1)])
def test_the_ini_file_can_ask_for_the_corpus(pytester: pytest.Pytester, ini: str, count: int) -> None:
    """A project that only judges its supervisor says so once."""
    pytester.makeini(f"[pytest]\nagentproc_corpus = {ini}\n")
    pytester.makepyfile(test_own="def test_own(): pass")
    assert len(list_collected_ids(pytester.runpytest("--collect-only", "-q"))) == count


@pytest.mark.slow
def test_the_corpus_stands_in_for_other_tests_unless_they_are_named(pytester: pytest.Pytester) -> None:
    """The option for the bundled scenarios judges a supervisor; the project's own tests are another question."""
    pytester.makepyfile(test_own="def test_own(): pass")
    alone = list_collected_ids(pytester.runpytest("--agentproc-corpus", "--collect-only", "-q"))
    both = list_collected_ids(pytester.runpytest("--agentproc-corpus", "--collect-only", "-q", "test_own.py"))
    assert len(alone) == len(CORPUS)
    assert both == ["test_own.py::test_own", *alone]


@pytest.mark.slow
@pytest.mark.parametrize("named", ["", "scenarios", "."])
def test_in_its_own_project_the_corpus_is_collected_once_with_ids_that_can_be_named(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    """An editable install finds scenarios/ beside the package, also if that folder was named as well."""
    monkeypatch.chdir(ROOT)
    arguments = ["-p", "no:cacheprovider", "-c", "pyproject.toml", "--rootdir", ".", "--agentproc-corpus"]
    if named == ".":
        arguments += ["--ignore=tests", "--ignore=pytest_agentproc"]
    result = pytester.runpytest(*arguments, "--collect-only", "-q", *filter(None, [named]))
    assert list_collected_ids(result) == [f"scenarios/{node_id}" for node_id in CORPUS]


LOADED_WHERE_UNUSED = {
    "pytest_agentproc",
    "pytest_agentproc.corpus",
    "pytest_agentproc.hookspecs",
    "pytest_agentproc.interrupts",
    "pytest_agentproc.machine",
    "pytest_agentproc.originals",
    "pytest_agentproc.plugin",
    "pytest_agentproc.plugin._fixtures",
    "pytest_agentproc.plugin._hooks",
    "pytest_agentproc.plugin._interruption",
    "pytest_agentproc.plugin._options",
    "pytest_agentproc.plugin._rewriting",
}

FOREIGN_CONFTEST = """
    import pathlib, sys
    def pytest_unconfigure(config):
        if not hasattr(config, "workerinput"):
            pathlib.Path("loaded.txt").write_text("\\n".join(sys.modules))
"""

FOREIGN_TESTS = """
    import pytest
    def test_passes(record_property):
        record_property("key", "value")
    def test_fails():
        assert {"a": 1} == {"a": 2}
    @pytest.mark.xfail(strict=True)
    def test_is_expected_to_fail():
        pass
    @pytest.mark.parametrize("value", [1, 2])
    def test_has_parameters(value):
        pytest.skip("why not")
    async def test_is_async():
        pass
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        (),
        ("test_foreign.py", "-v"),
        (".", "missing-agentproc-corpus.py::test_a"),
        ("{here}/test_foreign.py::test_passes", "--junitxml=junit.xml"),
        ("test_foreign.py", "--collect-only", "-q"),
        ("-p", "xdist", "-n", "1", "test_foreign.py"),
        ("--fixtures", "test_foreign.py"),
        ("--help",),
    ],
    ids=" ".join,
)
def test_a_suite_that_does_not_use_the_kit_does_not_load_it(pytester: pytest.Pytester, words: tuple[str, ...]) -> None:
    """Every pytest run of every project that has the kit installed pays for what it imports."""
    pytester.makeconftest(FOREIGN_CONFTEST)
    pytester.makepyfile(test_foreign=FOREIGN_TESTS)
    command = [sys.executable, "-m", "pytest", "-p", "no:anyio", *(word.format(here=pytester.path) for word in words)]
    loaded = []
    for more in (["-p", "no:agentproc"], []):
        pytester.run(*command, *more)
        loaded.append({*(pytester.path / "loaded.txt").read_text().split()})
    assert loaded[1] - loaded[0] == LOADED_WHERE_UNUSED


@pytest.mark.slow
def test_the_plugin_itself_loads_nothing_else() -> None:
    """What an import of the plugin loads, every start of pytest loads."""
    code = "import sys, pytest; bare = {*sys.modules}; import pytest_agentproc.plugin; print(*{*sys.modules} - bare)"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert {*printed.split()} == LOADED_WHERE_UNUSED - {"pytest_agentproc.hookspecs"}


def test_the_options_are_documented(pytester: pytest.Pytester) -> None:
    """`pytest --help` is the reference: every option stands in both lists."""
    lines = [" ".join(line.split()) for line in pytester.runpytest("--help").outlines]
    begin = lines.index("agent supervisors (pytest-agentproc):")
    assert " ".join(lines[begin + 1 : lines.index("", begin)]) == (
        "--agentproc-corpus run the scenarios that come with pytest-agentproc; other tests only if they are named "
        "--agentproc-backend=BACKEND event loop of supervisors: asyncio, trio or both; default: asyncio "
        "--agentproc-clock=CLOCK time in which scenarios are played: virtual, real or both; or model: virtual "
        "without a process, the reference supervisor only; default: virtual "
        "--agentproc-repeat=REPEAT run each scenario this many times in virtual time; report a difference as a kit "
        "error; default: 1 "
        "--agentproc-search=SEARCH try this many settings of each scenario's open values; report each failure; "
        "default: 0 "
        "--agentproc-explore=EXPLORE vary scenarios without open values, in this many settings of each; "
        "default: 0 "
        "--agentproc-scale=SCALE in real time every duration is divided by it; auto: as fast as can be judged; "
        "default: auto "
        "--agentproc-virtual-sync be ready for sync tests in virtual time from the start: pytest-xdist needs it, and a "
        "session without it starts again once such a test is collected "
        "--agentproc-process-tree fail every test that leaves a process behind, as if it had asked for process_tree "
        "--agentproc-subject=SUBJECT supervisors that are judged in place of the reference supervisor, with commas: "
        "null, spawn-and-forget, subprocess.run, kill-at-once, reference (the reference supervisor), those of the hook "
        "pytest_agentproc_subjects, package.module:attribute, or a TOML file that describes a program; default: none "
        "--agentproc-level=LEVEL lowest level at which a failed check fails the run: should; or must: a failed should "
        "is counted only; default: should "
        "--agentproc-rule=RULE collect only scenarios that cover one of these rules, with commas: C1,T1; default: none "
        "--agentproc-command=COMMAND program that is judged in place of the reference supervisor: "
        "my-supervisor --timeout {inactivity_timeout} {agent}; several on a line each; default: none "
        "--agentproc-baseline=BASELINE file of known failures; without a word agentproc-baseline.yaml beside the ini "
        "file, if it is there; default: none "
        "--agentproc-update-baseline write that file: list what fails now, and nothing else "
        "--agentproc-results=RESULTS file for the results of all scenarios as one JSON object; default: none "
        "--agentproc-report=REPORT folder for an HTML page of each scenario that is played, and an index of them; "
        "default: none "
        "--agentproc-timeline=TIMELINE which scenarios are kept as a page: on-failure, always, off; "
        "auto: all if there is a report, else failures; default: auto "
        "--agentproc-defect=DEFECT judge the reference supervisor with this defect built in, to see what catches it; "
        "default: none"
    )
    assert [line for line in lines if line.startswith("agentproc_")] == [
        "agentproc_corpus (bool):",
        "agentproc_backend (string):",
        "agentproc_clock (string):",
        "agentproc_repeat (string):",
        "agentproc_search (string):",
        "agentproc_explore (string):",
        "agentproc_scale (string):",
        "agentproc_virtual_sync (bool):",
        "agentproc_process_tree (bool):",
        "agentproc_subject (string):",
        "agentproc_level (string):",
        "agentproc_rule (string):",
        "agentproc_command (string):",
        "agentproc_baseline (string):",
        "agentproc_update_baseline (bool):",
        "agentproc_results (string):",
        "agentproc_report (string):",
        "agentproc_timeline (string):",
        "agentproc_defect (string):",
    ]


def test_the_marker_is_documented(pytester: pytest.Pytester) -> None:
    """`pytest --markers` says what it takes."""
    assert (
        "@pytest.mark.virtual_time(start, backend, allow): the test runs in virtual time, "
        "which begins at this date; allow names programs that are no fakes and may run beside the agent"
    ) in pytester.runpytest("--markers").outlines


def test_the_fixtures_are_documented(pytester: pytest.Pytester) -> None:
    """`pytest --fixtures` shows what each is for in its first line."""
    lines = pytester.runpytest("--fixtures").outlines
    firsts = {line.partition(" -- ")[0]: after.strip() for line, after in pairwise(lines) if " -- " in line}
    assert firsts["virtual_clock"].startswith("Run async code in virtual time: ")
    assert firsts["fake_agent"].startswith("Make a fake agent: ")
    assert firsts["fake_agents"].startswith("Put several fake agents by name on PATH")
    assert firsts["agent_run"].startswith("Run a scenario under the reference supervisor in virtual time")
