"""`agentproc search`: what it prints, the file that it writes, and how it refuses."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.cli import main

if TYPE_CHECKING:
    from pathlib import Path

_TEXT = """\
scenario: an agent that pauses is ended for its silence alone
agent: pi
script:
  - say: a
  - silence: {between: [0s, inactivity_timeout + 10s]}
  - one_of: [{answer: x}, {exit: 3}]
"""


_SOUND = """\
scenario: an agent that exits soon is not ended
agent: pi
script:
  - silence: {between: [1s, 2s]}
  - exit: 3
"""

_CLOSED = """\
scenario: an agent that exits in time is not called silent
agent: pi
script:
  - silence: 5s
  - exit: 3
expect: {outcome: incomplete, exit_code: 3, elapsed: 5s}
"""


def _replace_figures(text: str) -> str:
    text = re.sub(r"\d+ settings, \d+ of them", "N settings, N of them", text)
    return re.sub(r"\d+\.\d s", "T s", re.sub(r"\d+ settings in", "N settings in", text))


@pytest.mark.slow
def test_a_find_is_confirmed_with_real_processes_and_can_be_played_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the words to the file: the command that is printed is red on the defect, and green on the reference."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pauses.scenario.yaml").write_text(_TEXT, "utf-8")
    assert main(["search", "pauses.scenario.yaml", "--defect", "timer-beats-exit", "--seed", "1"]) == 1
    found = "found-pauses-timer-beats-exit.scenario.yaml"
    output = re.sub(r"setting \d+", "setting N", _replace_figures(capsys.readouterr().out))
    assert output == (
        "pauses: N settings in T s: setting N breaks a promise, three times of three with real processes\n"
        "  outcome is inactive, not incomplete\n"
        f"  agentproc run {found} --defect timer-beats-exit\n"
    )
    assert main(["run", found, "--defect", "timer-beats-exit"]) == 1
    assert main(["run", found]) == 0


@pytest.mark.slow
def test_a_find_in_a_file_without_open_values_is_confirmed_and_can_be_played_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file itself is green on the defect; what it becomes when a time of it is moved is not."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "exits.scenario.yaml").write_text(_CLOSED, "utf-8")
    defect = ["--defect", "timer-beats-exit"]
    assert main(["run", "exits.scenario.yaml", *defect]) == 0
    capsys.readouterr()
    assert main(["search", "exits.scenario.yaml", "--explore", *defect, "--runs", "40"]) == 1
    found = "found-exits-timer-beats-exit.scenario.yaml"
    output = re.sub(r"setting \d+", "setting N", _replace_figures(capsys.readouterr().out))
    assert output == (
        "exits: N settings, N of them within what the file expects, in T s: "
        "setting N breaks a promise, three times of three with real processes\n"
        "  outcome is inactive, not incomplete\n"
        f"  agentproc run {found} --defect timer-beats-exit\n"
    )
    text = (tmp_path / found).read_text("utf-8")
    assert text.startswith("# found by agentproc search --explore --seed 0 in setting ")
    assert text.endswith("catches: {timer-beats-exit: outcome}\n")
    assert main(["run", found, *defect]) == 1
    assert main(["run", found]) == 0


def test_nothing_found_is_said_with_its_seed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """How much was looked at, and how to look at the same again."""
    file = tmp_path / "pauses.scenario.yaml"
    file.write_text(_TEXT, "utf-8")
    assert main(["search", str(file), "--runs", "20", "--seed", "4"]) == 0
    assert _replace_figures(capsys.readouterr().out) == "pauses: N settings in T s, seed 4: nothing found\n"


@pytest.mark.slow
def test_several_at_a_time_are_printed_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same seed draws the same settings, whoever draws them, and the files come in the order of their names."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").mkdir()
    for name, text in (("a", _TEXT), ("b", _TEXT.replace("exit: 3", "exit: 0")), ("c", _SOUND)):
        (tmp_path / "there" / f"{name}.scenario.yaml").write_text(text, "utf-8")
    words = ["search", "there", "--defect", "timer-beats-exit", "--seed", "1"]
    lines = []
    for jobs in ("1", "2"):
        assert main([*words, "-j", jobs]) == 1
        lines.append(re.sub(r"\d+\.\d s", "T s", capsys.readouterr().out))
    assert lines[0] == lines[1]
    assert [line[0] for line in lines[0].splitlines() if line[0] != " "] == ["a", "b", "c"]
    assert {file.name[:8] for file in tmp_path.glob("found-*")} == {"found-a-", "found-b-"}


_OF_RAW = """\
from pytest_agentproc.subjects import Function

async def run(order):
    return "completed"

subject = Function(run, dialects=["raw"])
"""


def test_a_supervisor_without_such_agents_is_not_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """That nothing was found would be true, and say the wrong thing."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "of_raw.py").write_text(_OF_RAW, "utf-8")
    (tmp_path / "pauses.scenario.yaml").write_text(_TEXT, "utf-8")
    assert main(["search", "pauses.scenario.yaml", "--subject", "of_raw:subject", "--runs", "5"]) == 0
    assert capsys.readouterr().out == (
        "pauses: not applicable: line 1 needs agents of pi json, which the supervisor does not have\n"
    )


def test_a_search_without_time_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file may be as valid as can be."""
    file = tmp_path / "pauses.scenario.yaml"
    for text, word in ((_TEXT, "--seed=1"), (_CLOSED, "--explore")):
        file.write_text(text, "utf-8")
        assert main(["search", str(file), word, "--seconds", "1e-9"]) == 0
        assert capsys.readouterr().out == "pauses: not searched: the time was over before the first setting\n"


_PAST_ITS_END = """\
scenario: an agent speaks on behind its last word
agent: pi
script:
  - answer: x
  - silence: {between: [1s, 2s]}
  - say: y
"""


def test_a_file_whose_agent_there_is_nowhere_is_not_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of such an agent nothing is asked of others: that is not the same as that nothing was found."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "of_pi.py").write_text(_OF_RAW.replace("raw", "pi"), "utf-8")
    (tmp_path / "speaks.scenario.yaml").write_text(_PAST_ITS_END, "utf-8")
    assert main(["search", "speaks.scenario.yaml", "--subject", "of_pi:subject", "--runs", "5"]) == 0
    assert capsys.readouterr().out == (
        "speaks: not searched: no setting is a valid file with an agent that is silent after its last word\n"
    )


@pytest.mark.slow
def test_settings_that_are_not_played_are_counted_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only what was played was found to be sound."""
    file = tmp_path / "speaks.scenario.yaml"
    file.write_text(_PAST_ITS_END.replace("- say: y", "- one_of: [{say: y}, {exit: 0}]"), "utf-8")
    words = ["--subject", "tests.plugin.examples.streaming:subject", "--runs", "5"]
    assert main(["search", str(file), *words]) == 0
    output = _replace_figures(capsys.readouterr().out)
    assert output == "speaks: N settings, N of them played, in T s, seed 0: nothing found\n"


_OF_TRIO = """\
import trio
from pytest_agentproc.subjects import Function

async def run(order):
    trio.current_time()
    return "completed"

subject = Function(run, dialects=["pi"])
"""


@pytest.mark.slow
def test_a_supervisor_of_trio_is_searched_on_trio(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On another loop it would raise at once; and so would the play of what is found."""
    pytest.importorskip("trio")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "of_trio.py").write_text(_OF_TRIO, "utf-8")
    (tmp_path / "exits.scenario.yaml").write_text(_SOUND, "utf-8")
    words = ["exits.scenario.yaml", "--subject", "of_trio:subject", "--backend", "trio"]
    assert main(["search", *words, "--runs", "5"]) == 1
    output = capsys.readouterr().out
    assert "agentproc run found-exits-run.scenario.yaml --subject of_trio:subject --backend trio" in output
    assert "raised" not in output


def test_a_file_whose_expectations_nobody_meets_is_not_explored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing was looked at then, and a plain "nothing found" would hide it."""
    file = tmp_path / "exits.scenario.yaml"
    file.write_text(_CLOSED.replace("exit_code: 3", "exit_code: 4"), "utf-8")
    assert main(["search", str(file), "--explore", "--runs", "5"]) == 0
    assert capsys.readouterr().out == (
        "exits: not explored: with these limits the reference does not meet what the file expects\n"
    )
    file.write_text(_CLOSED, "utf-8")
    assert main(["search", str(file), "--explore", "--runs", "5"]) == 0
    assert _replace_figures(capsys.readouterr().out) == (
        "exits: N settings, N of them within what the file expects, in T s, seed 0: nothing found\n"
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nosuch-*"], "nosuch-*: there is no such file, and no bundled scenario of such a name\ntry 'open-*'"),
        (
            ["lingers-and-ignores-term"],
            (
                "lingers-and-ignores-term: no value is left open there\n"
                "write {between: [0s, 700s]} in the place of one, or --explore"
            ),
        ),
        (
            ["open-run*", "--explore"],
            "open-run*: values are left open there\nleave --explore out: they are what is searched",
        ),
        (["open-*", "--runs", "0"], "--runs 0: at least one setting is played\ntry --runs 2000"),
        (["open-*", "--seconds", "0"], "--seconds 0: from above 0 to 86400\ntry --seconds 60"),
        (["open-*", "-j", "0"], "-j 0: at least one scenario is searched at a time\ntry -j 1"),
        (["open-*", "--out", "nowhere"], "--out nowhere: there is no such folder\nmake it first"),
    ],
)
def test_what_cannot_be_searched_is_refused_with_a_remedy(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A mistake on the command line is no traceback, and no verdict."""
    assert main(["search", *words]) == 2
    assert capsys.readouterr().err == f"agentproc search: {message}\n"
