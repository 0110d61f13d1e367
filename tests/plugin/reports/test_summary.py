"""The end of a session that judged a supervisor under test: a table by rule, and one sentence."""

from __future__ import annotations

import re

import pytest

from pytest_agentproc.errors import KitError
from pytest_agentproc.harness import ScenarioRunner
from tests.plugin.scenarios import GREEN, RED
from tests.plugin.subjects.test_choice import MINE

SAID = re.compile(
    r"^agentproc: (\S+) ((?:is|has|was) [^:]*): (.*); (?P<clock>.*) clock; pytest-agentproc \d\S*, "
    r"corpus ([0-9a-f]{12}), digest ([0-9a-f]{12})$",
    re.MULTILINE,
)
NONE_FAILED = "must: 0 failed, should: 0 failed, undecided: 0"
NONE_PASSED = "0 passed, 0 not applicable, 0 known"


@pytest.fixture(autouse=True)
def _scenarios(pytester: pytest.Pytester) -> None:
    """Have a scenario that passes, one with too little reported, and an inapplicable scenario."""
    (pytester.path / "one.scenario.yaml").write_text(f"covers: [F1]\n{GREEN}")
    (pytester.path / "two.scenario.yaml").write_text(f"covers: [A1, T1]\n{RED}")
    limit = GREEN.replace("- say: hello", "- silence: max_runtime")
    (pytester.path / "limit.scenario.yaml").write_text(f"covers: [A2]\n{limit}")
    (pytester.path / "mine.py").write_text(MINE)


def find_sentences(result: pytest.RunResult) -> list[tuple[str, ...]]:
    """Give the sentences, each in its parts, with the two lines below it."""
    text = re.sub(r"\n  (?=\d+ |pytest-agentproc)", "; ", result.stdout.str())
    return [found.groups() for found in SAID.finditer(text)]


def test_a_foreign_subject_gets_a_table_and_a_sentence(pytester: pytest.Pytester) -> None:
    """The exit code stays pytest's."""
    result = pytester.runpytest("--agentproc-subject=mine:supervise")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.re_match_lines(
        [
            r"=+ agentproc =+",
            r"rule \(must, should: failed\) +must  should  undecided  passed  n/a",
            r"A1  any byte is activity.* +- +- +1 +- +-",
            "    silent for inactivity_timeout ends as inactive",
            r"T1  terminate and kill .* +- +- +1 +- +-",
            "    tree",
            r"F1  one line is one .* +- +- +- +1 +-",
            "    chunking",
            "nothing applied of: A2",
        ],
        consecutive=True,
    )
    [(name, verdict, figures, clock, _, _)] = find_sentences(result)
    assert (name, verdict, clock) == ("supervise", "is undecided", "virtual")
    assert figures == "must: 0 failed, should: 0 failed, undecided: 1; 1 passed, 1 not applicable, 0 known"


def test_each_of_several_subjects_has_its_own(pytester: pytest.Pytester) -> None:
    """The reference supervisor among them; a subject that breaks is counted as that."""
    result = pytester.runpytest("--agentproc-subject=reference,mine:breaks", "one.scenario.yaml")
    assert [parts[:3] for parts in find_sentences(result)] == [
        ("reference", "is conformant", f"{NONE_FAILED}; 1 passed, 0 not applicable, 0 known"),
        (
            "breaks",
            "has no verdict because of 1 adapter error",
            f"{NONE_FAILED}; 1 adapter error, 0 passed, 0 not applicable, 0 known",
        ),
    ]


def test_a_missing_report_is_skipped_with_the_reason(pytester: pytest.Pytester) -> None:
    """The sentence and the exit code say the same of it."""
    (pytester.path / "two.scenario.yaml").write_text(f"level: should\ncovers: [A1, T1]\n{RED}")
    result = pytester.runpytest("--agentproc-subject=mine:supervise", "-rs", "two.scenario.yaml", "one.scenario.yaml")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["*undecided: the subject does not report exit_code"])
    [(_, verdict, figures, *_)] = find_sentences(result)
    assert (verdict, figures) == ("is conformant", f"{NONE_FAILED}; 1 passed, 1 not applicable, 0 known")


def test_a_supervisor_to_which_nothing_applies_was_not_judged(pytester: pytest.Pytester) -> None:
    """It has shown nothing."""
    result = pytester.runpytest("--agentproc-subject=mine:make", "limit.scenario.yaml")
    assert result.ret == pytest.ExitCode.OK
    assert [parts[1:3] for parts in find_sentences(result)] == [
        ("was not judged because no check passed", f"{NONE_FAILED}; 0 passed, 1 not applicable, 0 known")
    ]


@pytest.mark.parametrize(
    ("options", "exit_code", "note"),
    [
        ([], pytest.ExitCode.TESTS_FAILED, True),
        (["--agentproc-level=must"], pytest.ExitCode.OK, False),
        (["-o", "agentproc_level=must"], pytest.ExitCode.OK, False),
    ],
)
def test_a_failed_should_fails_the_run_only_if_the_level_says_so(
    pytester: pytest.Pytester, options: list[str], exit_code: int, note: bool
) -> None:
    """The last line calls the supervisor conformant, so pytest agrees or says why it does not."""
    (pytester.path / "two.scenario.yaml").write_text(f"level: should\n{GREEN.replace('text: hello', 'text: bye')}")
    result = pytester.runpytest(
        "--agentproc-subject=mine:supervise", "one.scenario.yaml", "two.scenario.yaml", *options
    )
    assert result.ret == exit_code
    [(_, verdict, figures, *_)] = find_sentences(result)
    assert verdict == "is conformant"
    assert figures == "must: 0 failed, should: 1 failed, undecided: 0; 1 passed, 0 not applicable, 0 known"
    words = "  pytest fails for 1 scenario at level should; --agentproc-level=must lets it pass"
    assert (words in result.stdout.lines) is note


def test_the_level_lets_no_failed_must_pass(pytester: pytest.Pytester) -> None:
    """A file at level `should` may have a check at level `must`, and the other way round."""
    wrong = GREEN.replace("text: hello", "text: bye")
    (pytester.path / "two.scenario.yaml").write_text(wrong)
    (pytester.path / "three.scenario.yaml").write_text(f"level: info\n{wrong}")
    options = ["--agentproc-subject=mine:supervise", "--agentproc-level=must"]
    result = pytester.runpytest(*options, "two.scenario.yaml", "three.scenario.yaml")
    result.assert_outcomes(failed=1, skipped=1)


def test_of_the_plain_reference_nothing_is_said(pytester: pytest.Pytester) -> None:
    """A test of scenarios shows the same lines as every test of pytest."""
    assert find_sentences(pytester.runpytest()) == []
    assert find_sentences(pytester.runpytest("--agentproc-subject=reference")) == []
    assert find_sentences(pytester.runpytest("--agentproc-defect=no-grace")) == []
    assert find_sentences(pytester.runpytest("--collect-only", "--agentproc-subject=mine:make")) == []


@pytest.mark.slow
def test_the_bundled_corpus_has_its_sentence_for_the_reference_too(pytester: pytest.Pytester) -> None:
    """It says which corpus that was."""
    result = pytester.runpytest("--agentproc-corpus", "-k", "silent-then-output")
    assert [parts[:3] for parts in find_sentences(result)] == [
        ("reference", "is conformant", f"{NONE_FAILED}; 1 passed, 0 not applicable, 0 known")
    ]


@pytest.mark.once
@pytest.mark.slow
def test_workers_change_nothing_about_it(pytester: pytest.Pytester) -> None:
    """Hashes and figures are the same, whoever played what."""
    arguments = ["--agentproc-subject=mine:make,null", "--agentproc-backend=both"]
    alone = find_sentences(pytester.runpytest(*arguments))
    assert len(alone) == 2
    assert find_sentences(pytester.runpytest("-n", "2", *arguments)) == alone


@pytest.mark.slow
@pytest.mark.parametrize("hook", ["terminal_summary", "sessionfinish"])
def test_a_report_of_another_plugin_that_fails_loses_no_verdict(pytester: pytest.Pytester, hook: str) -> None:
    """The summary and the results are what a night of plays was for."""
    error = 'raise SystemError("the report of another plugin")'
    pytester.makeconftest(f"import pytest\n@pytest.hookimpl(tryfirst=True)\ndef pytest_{hook}():\n    {error}\n")
    result = pytester.runpytest_subprocess("--agentproc-subject=mine:supervise", "--agentproc-results=results.json")
    assert "SystemError: the report of another plugin" in result.stdout.str() + result.stderr.str()
    assert [parts[:2] for parts in find_sentences(result)] == [("supervise", "is undecided")]
    assert (pytester.path / "results.json").exists()


@pytest.mark.slow
def test_what_a_supervisor_leaves_to_the_collector_breaks_no_report(pytester: pytest.Pytester) -> None:
    """In CPython 3.11 a finalizer that prints a traceback breaks a parser that it interrupts."""
    pytester.makepyfile(
        leaky="""
        import gc, traceback
        from mine import supervise

        class Transport:
            def __init__(self):
                self.loop = self

            def __del__(self):
                try:
                    (1 + 2) / (len("") + 0)
                except ZeroDivisionError:
                    traceback.format_exc()

        KEPT = []

        async def leave(order):
            KEPT.extend(Transport() for _ in range(300))
            return await supervise(order)
        """,
        conftest="""
        import ast, gc
        import leaky

        def pytest_sessionfinish():
            leaky.KEPT.clear()

        def pytest_terminal_summary(terminalreporter):
            gc.set_threshold(50, 5, 5)
            ast.parse("def f(a):\\n    return [a, a, a]\\n" * 3000)
            terminalreporter.write_line("the report of another plugin")
        """,
    )
    result = pytester.runpytest_subprocess("--agentproc-subject=leaky:leave", "one.scenario.yaml")
    assert "SystemError" not in result.stdout.str() + result.stderr.str()
    result.stdout.fnmatch_lines(["the report of another plugin", "*= agentproc =*"])


def test_a_kit_error_is_called_so_in_the_failure_and_in_the_summary(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No user looks for its cause in the supervisor."""

    def fail(*_: object, **__: object) -> None:
        raise KitError("the fake agent itself failed")

    monkeypatch.setattr(ScenarioRunner, "play", fail)
    result = pytester.runpytest("--agentproc-subject=mine:supervise", "one.scenario.yaml")
    result.stdout.fnmatch_lines(
        ["kit error: the fake agent itself failed", "kit error: the fake agent itself failed   *1  *-"]
    )


PART = "was not judged to the end, as the session was interrupted"
ENDED = """
import os, signal

def pytest_runtest_logreport(report):
    if report.when != "call" or report.skipped:
        return
    if (child := os.fork()) == 0:
        os.kill(os.getpid(), signal.SIGTERM)
        os._exit(0)
    print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    os.kill(os.getpid(), signal.SIG{name})


def pytest_unconfigure():
    print("handler", signal.getsignal(signal.SIGTERM).name)
"""


@pytest.mark.parametrize("name", ["TERM", "INT"])
def test_a_session_that_is_ended_early_shows_the_results_so_far(pytester: pytest.Pytester, name: str) -> None:
    """`timeout 120 pytest` sends TERM: the figures until then help, and they are no verdict on the supervisor."""
    pytester.makeconftest(ENDED.replace("{name}", name))
    result = pytester.runpytest_subprocess("--agentproc-subject=mine:supervise", "-s", timeout=60)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.re_match_lines(
        [
            ".*child -15",
            r"F1  one line is one .* +- +- +- +1 +-",
            f"agentproc: supervise {PART}: {NONE_FAILED}",
            "  1 passed, .*",
            "handler SIG_DFL",
        ]
    )


def test_a_program_that_handles_term_by_itself_keeps_its_handler(pytester: pytest.Pytester) -> None:
    """Another plugin may end a session its own way."""
    pytester.makeconftest(
        """
        import signal

        signal.signal(signal.SIGTERM, signal.SIG_IGN)


        def pytest_runtest_logreport(report):
            assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
        """
    )
    result = pytester.runpytest_subprocess("--agentproc-subject=mine:supervise", "one.scenario.yaml", timeout=60)
    result.assert_outcomes(passed=1)
