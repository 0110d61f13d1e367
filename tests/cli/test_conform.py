"""`agentproc conform`: a supervisor is judged over the corpus, and its exit code says what came of it."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.cli import main
from tests.unit.page_reading import read_page

if TYPE_CHECKING:
    from collections.abc import Iterator

CONFTEST = """
from pytest_agentproc.subjects import NeverStartsAgent

def pytest_agentproc_subjects():
    class Mine(NeverStartsAgent):
        name = "mine"
    return [Mine()]
"""
TOLD = """\
rule (must, should: failed)                                    must  should  undecided  passed  n/a
A9  the one-number form of a limit means silence, never           -       1          1       -    -
    duration

as in bug reports                                              must  should  undecided  passed  n/a
K02  silent but alive, and killed for it                          -       1          1       -    -

what went wrong (must, should: scenarios)                                              must  should
not exercised: outcome: no agent was started; completed                                   1       -
  agentproc run one-number-is-silence --subject mine

agentproc: mine is undecided: must: 0 failed, should: 1 failed, undecided: 1
  0 passed, ...

rule (must, should: failed)                                    must  should  undecided  passed  n/a
A9  the one-number form of a limit means silence, never           -       -          -       1    -
    duration

agentproc: reference is conformant: must: 0 failed, should: 0 failed, undecided: 0
  1 passed, ...
agentproc: pages in pages/index.html
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Stand in a project whose pytest settings would break every run that took them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("PYTEST_ADDOPTS", "--no-such-option")
    Path("pytest.ini").write_text("[pytest]\naddopts = --neither\n", "utf-8")
    Path("conftest.py").write_text(CONFTEST, "utf-8")
    before = sys.path[:]
    yield
    sys.path[:] = before


@pytest.mark.slow
def test_conform_sums_up_each_supervisor_without_pytests_words(capsys: pytest.CaptureFixture[str]) -> None:
    """A user without pytest knowledge reads a table by rule and one sentence; a script reads the exit code."""
    argv = ["reference", "mine", "--rule", "A9", "--results", "out/results.json", "--report", "pages"]
    assert main(["conform", *argv]) == 1
    output, errors = capsys.readouterr()
    assert re.sub(r"(?<= passed, ).*\n.*", "...", output) == TOLD
    assert errors == ""
    subjects = json.loads(Path("out/results.json").read_text("utf-8"))["subjects"]
    assert [(subject["name"], subject["conformant"]) for subject in subjects] == [("mine", False), ("reference", True)]
    reading = read_page(Path("pages/index.html").read_text("utf-8"))
    listed = dict(re.findall(r"(\d+)(\D+)", item.text)[0][::-1] for item in reading.list_elements("li"))
    summed = {words: sum(map(int, re.findall(rf"(\d+) {words}", output))) for words in ("passed", "not applicable")}
    assert {words: int(listed.get(words, 0)) for words in summed} == summed
    assert (listed["failed at should"], listed["undecided"]) == ("1", "1")
    said = [element.text for element in reading.list_elements("p")]
    assert sorted(said) == [line for line in output.splitlines() if ": must: " in line]
    [page] = Path("pages").glob("*mine*.html")
    assert "<code>agentproc run one-number-is-silence --subject mine</code>" in page.read_text("utf-8")


@pytest.mark.slow
def test_a_program_that_starts_no_agent_has_no_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    """Green for nothing is the worst verdict: `cat` starts no agent."""
    assert main(["conform", "--command", "cat {agent}", "--clock", "virtual", "-k", "lingers", "--json"]) == 1
    [subject] = json.loads(capsys.readouterr().out)["subjects"]
    assert (subject["name"], subject["conformant"], subject["conformance"]) == ("cat", False, "has no verdict")


@pytest.mark.parametrize(
    ("argv", "reported"),
    [
        ([], "there is no supervisor to judge\nname one, such as reference"),
        (["reference", "--command", "cat {agent}"], "SUBJECT and --command exclude each other\n"),
        (["reference", "--rule", "C11"], "--rule C11: there is no such rule\nthere are A1, "),
        (["nope:it"], "nope:it: there is no module nope in "),
        (["reference", "-j", "0"], "-j 0: it must be at least 1\n"),
        pytest.param(["nul"], "nul: there is no such subject, did you mean null?", marks=pytest.mark.slow),
        pytest.param(["reference", "-k", "nothing_like_it"], "no scenario is like that\n", marks=pytest.mark.slow),
    ],
)
def test_what_cannot_be_judged_is_a_sentence_and_2(
    argv: list[str], reported: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A mistyped word is no verdict on any supervisor."""
    assert main(["conform", *argv]) == 2
    assert capsys.readouterr().err.startswith(f"agentproc conform: {reported}")


@pytest.mark.slow
def test_a_conftest_that_breaks_is_the_users(capsys: pytest.CaptureFixture[str]) -> None:
    """It contributes supervisors, so the command reports its mistake, and not a failure of the kit."""
    Path("conftest.py").write_text("import no_such_module\n", "utf-8")
    assert main(["conform", "reference", "--rule", "A9"]) == 2
    assert "ModuleNotFoundError: No module named 'no_such_module'" in capsys.readouterr().err


RAISES = """
from pytest_agentproc.subjects import Function

def pytest_agentproc_subjects():
    async def broken(order):
        raise LookupError("no such loop")
    return [Function(broken, dialects=["raw"], limits={"inactivity_timeout": 60})]
"""


@pytest.mark.slow
def test_a_mistake_in_all_scenarios_is_reported_once(capsys: pytest.CaptureFixture[str]) -> None:
    """Why nothing was judged; a scenario for information alone is not counted."""
    Path("conftest.py").write_text(RAISES, "utf-8")
    assert (
        main(
            [
                "conform",
                "broken",
                "-k",
                "run-that-ignores-term-is-cancelled or silent-but-computing or silent-past-the-limit",
            ]
        )
        == 1
    )
    [heading, cause, command] = capsys.readouterr().out.split("\n\n")[-2].splitlines()
    assert heading.startswith("what went wrong (must, should: scenarios)  ")
    assert re.fullmatch("adapter error: conftest.py:6 in broken: LookupError: no such loop +1 +1", cause)
    assert "silent-past-the-limit" in command


@pytest.mark.slow
def test_the_command_that_is_printed_for_a_program_is_the_commands_own(capsys: pytest.CaptureFixture[str]) -> None:
    """The module that the judgement wrote for it is deleted by then."""
    assert main(["conform", "--command", "sh -c 'exit 3' {agent}", "-k", "claude-api-error"]) == 1
    output = capsys.readouterr().out
    assert "adapter error: it exits with code * before it starts an agent" in output
    assert """agentproc run claude-api-error --command 'sh -c '"'"'exit 3'"'"' {agent}'\n""" in output


@pytest.mark.slow
def test_a_missing_wrapper_is_reported_before_anything_is_run(capsys: pytest.CaptureFixture[str]) -> None:
    """It would be an adapter error of each scenario."""
    assert main(["conform", "--command", "python3 no_such.py {agent}"]) == 2
    assert capsys.readouterr().err.startswith("agentproc conform: adapter error: python3: there is no no_such.py in ")


@pytest.mark.slow
def test_a_judgement_leaves_no_folder_that_it_does_not_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Forgotten pages fill the disk of a machine that judges every night."""
    elsewhere = tmp_path / "temporary"
    elsewhere.mkdir()
    monkeypatch.setenv("TMPDIR", str(elsewhere))
    monkeypatch.setattr("tempfile.tempdir", None)
    assert main(["conform", "null", "--rule", "A9"]) == 1
    assert "is undecided" in capsys.readouterr().out
    assert [*elsewhere.iterdir()] == []
