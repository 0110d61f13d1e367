"""Which supervisors are under test: the option, the ini file, the hook; any other object is refused in a sentence."""

from __future__ import annotations

import re
from fnmatch import fnmatch

import pytest

from pytest_agentproc.harness import _supervise
from tests.plugin.items.test_options import list_collected_ids
from tests.plugin.scenarios import GREEN, RED

MINE = """\
import anyio
from pytest_agentproc.subjects import Function
from pytest_agentproc.vocabulary import Policy

async def supervise(order):
    done = await anyio.run_process(order.argv, env=order.env, check=False, start_new_session=True)
    return {"outcome": "completed", "text": done.stdout.decode().strip(), "elapsed": 0}

async def breaks(order):
    raise LookupError("no such thing")

def sync(order):
    return None

def make():
    return Function(supervise, name="made")

def two(a, b):
    pass

class Whole:
    name, keeps_artifacts, holds_sessions = "whole", False, False

    def policy(self, request):
        return Policy.for_dialect(request.dialect)

    async def run(self, order):
        return await supervise(order)

class Half:
    name = "half"

    async def run(self, order):
        return None

class Called:
    async def __call__(self, order):
        return await supervise(order)

class NoName(Whole):
    name = None

class Needs(Whole):
    def __init__(self, more):
        pass

class Bad(Whole):
    def __init__(self):
        raise OSError("no room")

number = 3
named = Function(supervise, name="named")
"""
SHOW = """
def pytest_agentproc_record(nodeid, record):
    print("SUBJECT", record.header["subject"], record.header["clock"])
"""


@pytest.fixture(autouse=True)
def _mine(pytester: pytest.Pytester) -> None:
    """Have one scenario, and a module with supervisors beside it."""
    (pytester.path / "one.scenario.yaml").write_text(GREEN)
    (pytester.path / "mine.py").write_text(MINE)
    pytester.makeconftest(SHOW)


def list_judged_subjects(result: pytest.RunResult) -> list[str]:
    """List the subjects that were played."""
    return re.findall(r"SUBJECT (.*)", result.stdout.str())


@pytest.mark.parametrize(
    ("name", "subject"),
    [
        ("reference", "reference"),
        ("mine:supervise", "supervise"),
        ("mine:make", "made"),
        ("mine:Whole", "whole"),
        ("mine:Called", "Called"),
        ("mine:named", "named"),
    ],
)
def test_a_subject_is_named_by_its_module(pytester: pytest.Pytester, name: str, subject: str) -> None:
    """A function, a factory, a class, an object: whatever a project has; the folder needs no setting."""
    result = pytester.runpytest("-s", f"--agentproc-subject={name}")
    result.assert_outcomes(passed=1)
    assert list_judged_subjects(result) == [f"{subject} virtual"]


def test_ids_name_each_supervisor_but_the_reference_alone(pytester: pytest.Pytester) -> None:
    """An id that is run without its options, or in another folder, must not pass with another supervisor."""
    result = pytester.runpytest("--collect-only", "-q", "--agentproc-subject=mine:make")
    assert list_collected_ids(result) == ["one.scenario.yaml::one[made-asyncio]"]
    names = "--agentproc-subject=reference, null,mine:make"
    several = pytester.runpytest("--collect-only", "-q", names, "--agentproc-clock=both")
    assert list_collected_ids(several) == [
        f"one.scenario.yaml::one[{name}-asyncio{clock}]"
        for name in ("reference", "null", "made")
        for clock in ("", "-real")
    ]


def test_the_ini_file_names_subjects_too(pytester: pytest.Pytester) -> None:
    """A project sets it once, and the command line wins."""
    pytester.makeini("[pytest]\nagentproc_subject = mine:make\n")
    assert list_judged_subjects(pytester.runpytest("-s")) == ["made virtual"]
    assert list_judged_subjects(pytester.runpytest("-s", "--agentproc-subject=reference")) == ["reference virtual"]


def test_a_conftest_contributes_one_in_a_few_lines(pytester: pytest.Pytester) -> None:
    """It takes the reference supervisor's place, until the option names another supervisor; it can be named, too."""
    pytester.makeconftest(
        f"{SHOW}\ndef pytest_agentproc_subjects(config):\n    import mine\n    return [mine.supervise]\n"
    )
    pytester.syspathinsert()
    assert list_judged_subjects(pytester.runpytest("-s")) == ["supervise virtual"]
    assert list_judged_subjects(pytester.runpytest("-s", "--agentproc-subject=reference,supervise")) == [
        "reference virtual",
        "supervise virtual",
    ]
    assert list_judged_subjects(pytester.runpytest("-s", "--agentproc-defect=no-grace")) == ["no-grace virtual"]


def test_a_function_in_a_thread_is_judged_in_virtual_time(pytester: pytest.Pytester) -> None:
    """Its process of its own needs no option, and finds the function by its name."""
    result = pytester.runpytest("--collect-only", "-q", "--agentproc-subject=mine:sync")
    assert list_collected_ids(result) == ["one.scenario.yaml::one[sync-asyncio]"]
    result = pytester.runpytest("--agentproc-subject=mine:sync")
    result.stdout.fnmatch_lines(["agentproc: sync *undecided: 1", "  0 passed, 0 not applicable*; virtual clock"])


def test_real_time_is_used_where_virtual_time_cannot_be_compiled(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No default run is 'all not applicable'; a request for virtual time reports what to install."""
    monkeypatch.setattr(_supervise, "_explain_missing_coordinator", lambda: "there is no `cc`\ninstall one")
    result = pytester.runpytest("--collect-only", "-q", "--agentproc-subject=mine:sync")
    assert list_collected_ids(result) == ["one.scenario.yaml::one[sync-asyncio-real]"]
    result = pytester.runpytest("-rs", "--agentproc-subject=mine:sync", "--agentproc-clock=virtual")
    result.assert_outcomes(skipped=1)
    why = "mine.py:12: sync is no `async def`, so it runs in a thread, and there is no `cc`"
    result.stdout.fnmatch_lines([f"*not applicable: {why}*"])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("refrence", "there is no such subject, did you mean reference? Others are package.module:attribute or *"),
        (
            "mine",
            "there is no such subject, known are reference, null, *, kill-at-once. Others are package.*",
        ),
        ("nowhere:x", "there is no module nowhere in *, nor where Python looks: write package.module:attribute *"),
        ("mine.sub:x", "there is no module mine.sub in *"),
        ("mine:supervize", "mine has no supervize: did you mean supervise?"),
        ("mine:", "mine has no attribute without a name: write the name of a function, *"),
        ("mine:number", "an int is no subject, it lacks name, keeps_artifacts, holds_sessions, policy, run: give an *"),
        ("mine:Half", "a Half is no subject, it lacks keeps_artifacts, holds_sessions, policy: give an `async def *"),
        ("mine:NoName", "its name is None: give it a text without a comma"),
        ("mine:two", "it does not take one argument, the order: give an `async def supervise(order)`, or what *"),
        ("mine:Needs", "Needs needs arguments: give what Needs(...) makes, or a factory without arguments"),
        ("mine:Bad", "Bad() raised OSError: no room"),
        ("broken:x", "importing broken: raised ZeroDivisionError: division by zero at *broken.py:2: mend that first"),
        ("lacks:x", "importing lacks: raised ModuleNotFoundError: No module named 'xyzzy' at *lacks.py:1: mend *"),
        ("odd.toml", "there is no key 'commando': did you mean command?"),
        ("none.toml", "No such file or directory: name a file that can be read"),
    ],
)
def test_what_is_no_subject_is_refused_before_anything_is_collected(
    pytester: pytest.Pytester, name: str, message: str
) -> None:
    """One sentence with a remedy; a stack would be ours."""
    (pytester.path / "broken.py").write_text("number = 1\nnumber / 0\n")
    (pytester.path / "lacks.py").write_text("import xyzzy\n")
    (pytester.path / "odd.toml").write_text("commando = 'env {agent}'\n")
    result = pytester.runpytest(f"--agentproc-subject={name}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    pattern = re.escape(f"ERROR: --agentproc-subject={name}: {message}").replace(r"\*", ".*")
    assert re.fullmatch(pattern, result.errlines[0]), result.errlines
    assert "Traceback" not in result.stderr.str()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return [3]", ": an int is no subject, it lacks *"),
        ("return 1 / 0", ": raised ZeroDivisionError: division by zero at conftest.py:2: mend that first"),
        (
            "from pytest_agentproc.subjects import Function; return Function(print, dialects=['claud'])",
            ": conftest.py:2: there is no dialect 'claud', did you mean claude?",
        ),
        (
            "from pytest_agentproc.subjects import Function; return Function(print, limits={'timeout': 3})",
            ": conftest.py:2: there is no limit 'timeout': inactivity_timeout limits silence, max_runtime a *",
        ),
        ("import mine; return [mine.make, mine.make]", ": two subjects are called made: give one of them another name"),
    ],
)
def test_a_hook_that_gives_none_is_refused_as_well(pytester: pytest.Pytester, body: str, message: str) -> None:
    """Its name stands in front."""
    pytester.syspathinsert()
    pytester.makeconftest(f"def pytest_agentproc_subjects(config):\n    {body}\n")
    result = pytester.runpytest()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    pattern = re.escape(f"ERROR: pytest_agentproc_subjects{message}").replace(r"\*", ".*")
    assert re.fullmatch(pattern, result.errlines[0]), result.errlines


def test_a_defect_is_the_cores(pytester: pytest.Pytester) -> None:
    """Beside another subject it means nothing."""
    result = pytester.runpytest("--agentproc-subject=mine:make", "--agentproc-defect=no-grace")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.errlines[0].startswith(
        "ERROR: --agentproc-defect=no-grace is built into the reference supervisor, and "
    )
    result = pytester.runpytest("-s", "--agentproc-subject=mine:make,reference", "--agentproc-defect=no-grace")
    assert list_judged_subjects(result) == ["made virtual", "no-grace virtual"]


def test_a_subject_that_breaks_is_an_adapter_error(pytester: pytest.Pytester) -> None:
    """The report shows their line, and no stack of pytest or of ours."""
    result = pytester.runpytest("--agentproc-subject=mine:breaks")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "one.scenario.yaml:1: an agent says hello and exits",
            "  answer: adapter error",
            "    expected  an answer",
            "    seen      it raised LookupError: no such thing",
            '*mine.py:10 in breaks: raise LookupError("no such thing")',
            "  not exercised: outcome, text, elapsed, leaks",
            "adapter error, record *",
        ]
    )
    assert not re.search(r"Traceback|pytest_agentproc/", result.stdout.str())


@pytest.mark.slow
def test_workers_find_the_subjects_themselves(pytester: pytest.Pytester) -> None:
    """The same ids in the same order."""
    (pytester.path / "two.scenario.yaml").write_text(RED)
    result = pytester.runpytest("-n", "2", "--agentproc-subject=reference,mine:make")
    result.assert_outcomes(passed=2, failed=2)


@pytest.mark.slow
def test_programs_are_named_by_their_command_lines_and_files(pytester: pytest.Pytester) -> None:
    """No Python is needed; a line each in the ini file, and a mistake is reported with the option that led to it."""
    (pytester.path / "mine.toml").write_text("command = 'env {agent}'\n")
    pytester.makeini("[pytest]\nagentproc_subject = mine.toml\nagentproc_command =\n  env {agent}\n  nice {agent}\n")
    result = pytester.runpytest("--collect-only", "-q")
    for name in ("mine", "env", "nice"):
        result.stdout.fnmatch_lines(f"*[[]{name}-asyncio[]]")
    wrong = pytester.runpytest("--agentproc-command=env")
    assert wrong.ret == pytest.ExitCode.USAGE_ERROR
    wrong.stderr.fnmatch_lines(
        "ERROR: --agentproc-command=env: the command 'env' has no {agent} in it: write 'my-supervisor *"
    )


@pytest.mark.slow
@pytest.mark.parametrize("place", ["inner", "."])
def test_a_program_is_named_as_seen_from_where_pytest_starts(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """A project keeps its ini file above; a file in the rootdir is found, too."""
    pytester.makeini("[pytest]")
    inner = pytester.mkdir("inner")
    (pytester.path / place / "mine.toml").write_text("command = 'env {agent}'\n")
    monkeypatch.chdir(inner)
    result = pytester.runpytest("--collect-only", "-q", "--agentproc-subject=mine.toml", "..")
    result.stdout.fnmatch_lines("*[[]mine-asyncio[]]")


LEAVING = """\
import anyio
from pytest_agentproc.subjects import Function

async def leaves(order):
    agent = await anyio.open_process(order.argv, env=order.env, stdout=None, stderr=None, start_new_session=True)
    await agent.wait()

def pytest_agentproc_subjects():
    return [Function(leaves, name=name, cancellable=can) for name, can in CASES]
"""


def test_a_cancelled_run_counts_for_supervisors_that_state_cancellation(pytester: pytest.Pytester) -> None:
    """Without a statement, the result is reported, but not as a fault; a supervisor that says no is not asked."""
    cases = 'CASES = [("stated", True), ("unstated", None), ("never", False)]\n'
    pytester.makeconftest(cases + LEAVING)
    chosen = ("-k", "run-with-servers-is-cancelled")
    result = pytester.runpytest_subprocess("--agentproc-corpus", "-q", "-rs", "--tb=line", "-p", "no:warnings", *chosen)
    told = "*informational: *leaks is agent (still alive), *, not none (it counts with a supervisor that is stated*"
    result.stdout.fnmatch_lines_random(
        [
            told,
            "*not applicable: line 5 needs a supervisor that is async, and can be cancelled*",
            "agentproc: stated is not conformant: must: 1 failed, *",
            "agentproc: unstated was not judged *: must: 0 failed, *",
            "  0 passed, *, 1 informational; *",
        ]
    )
    result.assert_outcomes(failed=1, skipped=2)


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["alone", "workers"])
@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("sh wrapper.sh {agent}", "there is no wrapper.sh in *: name the file by its path from there"),
        ("no-such-program {agent}", "no-such-program is not there: name an executable on PATH, or by its path *"),
        ("./wrapper.sh {agent}", "./wrapper.sh is not there: name an executable on PATH, or by its path *"),
    ],
)
def test_a_wrapper_that_is_not_there_is_one_adapter_error(
    pytester: pytest.Pytester, command: str, said: str, workers: list[str]
) -> None:
    """One mistake is said once, and not by each scenario."""
    pytester.path.joinpath("wrapper.toml").write_text(f"command = '{command}'\n")
    result = pytester.runpytest_subprocess("--agentproc-subject=wrapper.toml", *workers)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.outlines == []
    [line] = filter(None, result.errlines)
    assert fnmatch(line, f"ERROR: adapter error: wrapper: {said}")


def test_a_wrapper_of_a_conftest_that_is_not_there_keeps_no_other_test_from_running(
    pytester: pytest.Pytester,
) -> None:
    """A program that is not built yet is no matter of a unit test."""
    pytester.makeconftest(
        "from pytest_agentproc.subjects import Command\n"
        "def pytest_agentproc_subjects():\n    return [Command(['no-such-program', '{agent}'])]\n"
    )
    pytester.runpytest(pytester.makepyfile("def test_something():\n    pass\n")).assert_outcomes(passed=1)
