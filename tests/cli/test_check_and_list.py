"""`agentproc check` and `agentproc list`, and what all commands do with a line that cannot be meant."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.cli import main
from pytest_agentproc.cli._commands import MODULE_AND_PURPOSE_BY_COMMAND
from pytest_agentproc.defects import DEFECTS
from pytest_agentproc.scenario import load_for_each_agent
from pytest_agentproc.vocabulary import DIALECTS
from tests.architecture.sources import ROOT

if TYPE_CHECKING:
    from pathlib import Path

GOOD = "scenario: it says hello\nagent: raw\nscript: [{answer: hello}]\n"
BAD = "scenario: it says hello\nagent: raw\nscript:\n  - sya: hello\n  - silence: 1 week\n"
TOLD = """\
bad.scenario.yaml:4:5: unknown step "sya": did you mean "say"?
bad.scenario.yaml:5:16: unknown unit "week": the units are ns, us, ms, s, m, h
"""

_load_once = functools.cache(load_for_each_agent)
"""To read all bundled scenarios takes more than a second, and the calls of `list` here are forty."""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in a folder with a good and a bad scenario."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("pytest_agentproc.cli._list_command.load_for_each_agent", _load_once)
    tmp_path.joinpath("good.scenario.yaml").write_text(GOOD, "utf-8")
    tmp_path.joinpath("bad.scenario.yaml").write_text(BAD, "utf-8")
    return tmp_path


@pytest.mark.slow
def test_check_reports_all_problems_of_all_files(capsys: pytest.CaptureFixture[str]) -> None:
    """Editors and continuous integration read `file:line:column: message`, one problem a line."""
    assert main(["check", "good.scenario.yaml"]) == 0
    assert capsys.readouterr().out == ""
    assert main(["check", "good.scenario.yaml", "bad.scenario.yaml"]) == 1
    assert capsys.readouterr().out == TOLD
    assert main(["check", "--json", "."]) == 1
    output = json.loads(capsys.readouterr().out)
    assert (output["files"], [(problem["line"], problem["column"]) for problem in output["problems"]]) == (
        2,
        [(4, 5), (5, 16)],
    )


def test_a_word_that_a_plugin_may_add_is_reported_as_known_to_pytest(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The author of a contributed dialect learns at once which plugin knows it; a typing mistake has its own hint."""
    here.joinpath("toy.scenario.yaml").write_text(GOOD.replace("raw", "toy"), "utf-8")
    for command, code in (("check", 1), ("run", 2)):
        assert main([command, "toy.scenario.yaml"]) == code
        output = capsys.readouterr()
        assert output.err.endswith(
            f"agentproc {command}: dialects and steps that a conftest.py or a plugin adds are known to pytest alone: "
            "try pytest FILE\n"
        )
        assert 'toy.scenario.yaml:2:8: unknown dialect "toy": known are raw' in output.out + output.err
    assert main(["check", "bad.scenario.yaml"]) == 1
    assert capsys.readouterr().err == ""


@pytest.mark.slow
def test_the_corpus_is_without_mistake() -> None:
    """A folder is all scenarios below it."""
    assert main(["check", str(ROOT / "scenarios")]) == 0


@pytest.mark.slow
def test_list_filters_by_what_it_groups_by(capsys: pytest.CaptureFixture[str]) -> None:
    """A user with a bug report looks for the scenario that is like it."""
    assert main(["list", "--rule", "C1", "--dialect", "pi", "--json", "lingers", "ignores"]) == 0
    [row] = json.loads(capsys.readouterr().out)
    assert (row["id"], row["families"], row["dialects"]) == ("lingers-and-ignores-term", ["K01", "K05"], ["pi"])
    assert main(["list", "--by", "family", "--rule", "T2"]) == 0
    assert "K18  a signal for the wrong process" in capsys.readouterr().out
    assert main(["list", "no-such-behaviour"]) == 1
    assert main(["list", "--dialect", "pi", "no-such-behaviour"]) == 1, "pi is a dialect, whatever the word finds"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("word", "first"),
    [
        ("partial", "half-a-line-without-a-result[claude]"),
        ("zombie", "zombie-of-the-agents"),
        ("zombies", "zombie-of-the-agents"),
        ("orphan", "daemon-below-a-nested-subreaper"),
        ("timeout", "open-session-timeouts"),
        ("permission", "claude-asks-the-host"),
        ("double_fork", "daemon-below-a-nested-subreaper"),
        ("open handles", "grandchild-inherits-stdout-and-ignores-term"),
        ("never exits", "closes-both-and-lingers"),
        ("hangs", "closes-both-and-lingers"),
        ("docker", "daemon-below-a-nested-subreaper"),
        ("oom", "claude-killed"),
        ("429", "codex-session-overloaded"),
        ("ctrl-c", "codex-session-interrupt-before-the-turn-has-a-name"),
    ],
)
def test_list_finds_by_the_word_that_people_type(word: str, first: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Words of one meaning find the same; scenarios with such a word in the id come first."""
    for words in ([word], word.split()):
        assert main(["list", *words]) == 0
        assert capsys.readouterr().out.startswith(f"{first} ")


@pytest.mark.parametrize(
    ("report", "defect"),
    [
        ("never sends cancel", "cancel-is-not-sent"),
        ("stderr pipe is full and blocks the agent", "stderr-unread"),
        ("Killed while a tool was running", "internal-tools-ignored"),
        ("the prompt is sent again after a crash", "crash-repeats-the-prompt"),
        ("a zombie", "leaves-zombie"),
        ("only the tail of the answer", "answer-is-its-tail"),
    ],
)
def test_list_finds_the_defect_that_is_like_a_report(
    report: str, defect: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A tester has words of a user, and not the name that the kit gave to the fault."""
    assert main(["list", "--defects", *report.split()]) == 0
    assert capsys.readouterr().out.split()[0] == defect
    assert main(["list", "--defects", "--json", *report.split()]) == 0
    assert json.loads(capsys.readouterr().out)[0]["name"] == defect


def test_list_of_defects_refuses_what_is_about_scenarios(capsys: pytest.CaptureFixture[str]) -> None:
    """Without words it lists all defects, and words that fit nothing are a failure."""
    assert main(["list", "--defects"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(DEFECTS)
    assert main(["list", "--defects", "xyzzy"]) == 1
    assert capsys.readouterr().out == "no defect has such words: `agentproc list --defects` shows them all\n"
    assert main(["list", "--defects", "--rule", "C1"]) == 2
    assert capsys.readouterr().err == (
        "agentproc list: --rule is about scenarios, and --defects lists none\nleave --rule out\n"
    )


def test_list_of_agents_names_the_versions_that_the_fakes_imitate(capsys: pytest.CaptureFixture[str]) -> None:
    """The first is that of an agent without `version`."""
    assert main(["list", "--agents"]) == 0
    rows = [line.split("  ") for line in capsys.readouterr().out.splitlines()]
    found = {name.strip(): [*filter(None, map(str.strip, rest))] for name, *rest in rows}
    assert found["pi"] == ["1.6.0, 0.73.1", "json, rpc"]
    assert found["raw"] == ["no version", "text"]
    assert main(["list", "--agents", "--json"]) == 0
    shown = {row["dialect"]: row["versions"] for row in json.loads(capsys.readouterr().out)}
    assert shown == {name: list(dialect.versions) for name, dialect in DIALECTS.items()}
    assert main(["list", "--agents", "linger"]) == 2
    assert capsys.readouterr().err == (
        "agentproc list: a WORD is about scenarios, and --agents lists none\nleave a WORD out\n"
    )


@pytest.mark.parametrize(
    ("argv", "reported"),
    [
        (["chek"], "agentproc: there is no command chek: did you mean check?\n"),
        (["--jsn"], "agentproc: there is no option --jsn: the commands are"),
        (["check"], "agentproc check: the following arguments are required: PATH\nagentproc check --help shows"),
        (["check", "nope"], "agentproc check: nope: there is no such file or folder\nname scenario files"),
        (["list", "--rule", "c1"], "agentproc list: --rule c1: there is no such rule\ndid you mean C1?\n"),
    ],
)
def test_a_line_that_cannot_be_meant_is_a_sentence_and_2(
    argv: list[str], reported: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A script must tell its own mistake from a finding, and a person wants one sentence."""
    assert main(argv) == 2
    assert capsys.readouterr().err.startswith(reported)


@pytest.mark.slow
@pytest.mark.parametrize("command", [[], *([name] for name in MODULE_AND_PURPOSE_BY_COMMAND)])
def test_help_teaches(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """The help of each command says what its exit codes mean and shows how it is used."""
    assert main([*command, "--help"]) == 0
    printed = capsys.readouterr().out
    assert "usage: agentproc" in printed
    assert not command or ("exit codes:" in printed and "examples:" in printed)


def test_what_needs_linux_says_so_elsewhere(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One clear sentence, and not the stack of a module that is not there."""
    monkeypatch.setattr("sys.platform", "win32")
    assert main(["run", "lingers-and-ignores-term"]) == 2
    assert capsys.readouterr().err == (
        "agentproc run: it starts processes, which needs Linux (pidfd, /proc), and this is win32\n"
        "check, explain, list, new, schema and import run on any platform\n"
    )


def test_a_mistake_of_the_kits_is_3_and_never_a_verdict(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A script that reads 1 as not conformant must not report our bug as its supervisor's bug."""
    monkeypatch.setattr("pytest_agentproc.cli._check_command.load_for_each_agent", lambda _file: 1 // 0)
    assert main(["check", "good.scenario.yaml"]) == 3
    assert capsys.readouterr().err.endswith(
        "agentproc check: this is a mistake of the kit, not yours: please report the lines above\n"
    )


@pytest.mark.slow
def test_a_reader_that_has_gone_is_no_failure() -> None:
    """`agentproc list | head -1` prints one line, and nothing on stderr."""
    script = f'"{sys.executable}" -m pytest_agentproc list --json | head -1'
    completed = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    assert (completed.stdout, completed.stderr) == ("[\n", "")


@pytest.mark.parametrize(
    ("name", "called"), [("hang.yaml", "hang"), ("hang.yml", "hang"), ("hang.scenario.yml", "hang")]
)
def test_a_file_that_pytest_would_not_collect_is_named(
    name: str, called: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The commands take any name, and pytest says only that it found nothing."""
    monkeypatch.chdir(tmp_path)
    hint = f"{name}: pytest collects only *.scenario.yaml: call the file {called}.scenario.yaml\n"
    tmp_path.joinpath(name).write_text("scenario: a\nagent: raw\nscript: [{answer: hi}]\nexpect: {text: hi}\n", "utf-8")
    assert main(["check", name]) == 0
    assert capsys.readouterr().err == f"agentproc check: {hint}"
    assert main(["run", name, "--clock", "model"]) == 0
    assert capsys.readouterr().err == f"agentproc run: {hint}"


@pytest.mark.parametrize(
    ("lines", "hint"),
    [
        ("", "it has no expect, so only processes that are left make it red: "),
        (
            "expect: {text: hi}\ncatches: {waits-for-exti: text}\n",
            "catches: the kit has no defect waits-for-exti: did you mean waits-for-exit?\n",
        ),
        ("expect: {text: hi}\ncatches: {waits-for-exit: text}\n", None),
        ("should: {text: hi}\n", None),
        ("expect: {}\n", None),
    ],
)
def test_check_hints_at_what_is_seldom_meant(
    lines: str, hint: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is no mistake: a plugin may have defects of its own, and a scenario may look for leaks alone."""
    path = tmp_path / "x.scenario.yaml"
    path.write_text(f"scenario: a\nagent: raw\nscript: [{{say: hi}}]\n{lines}", "utf-8")
    assert main(["check", str(path)]) == 0
    output, errors = capsys.readouterr()
    assert output == ""
    assert errors.startswith(f"agentproc check: {path}: {hint}") if hint else errors == ""
