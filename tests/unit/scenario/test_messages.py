"""The messages for a tester about a broken scenario: every problem of the file at once, located, word for word.

Of the three messages that the language's reference asks for, `x5` and `f01` have the first and the third. The second is
about a drive that does not wait for a background turn: this version of the language has neither.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_agentproc.errors import ScenarioError, ScenarioProblem
from pytest_agentproc.scenario import load, loads

MALFORMED = Path(__file__).parents[1] / "malformed"
"""Pairs: NAME.yaml is wrong, NAME.txt is all that is said about it."""

NAMES = sorted(file.stem for file in MALFORMED.glob("*.yaml"))


@pytest.mark.parametrize("name", NAMES)
def test_a_malformed_file_gets_all_its_messages_at_once(name: str) -> None:
    """An author who mends one message only to meet the next gives up at the third."""
    text = (MALFORMED / f"{name}.yaml").read_text("utf-8")
    with pytest.raises(ScenarioError) as caught:
        loads(text, name, MALFORMED)
    assert str(caught.value).splitlines() == (MALFORMED / f"{name}.txt").read_text("utf-8").splitlines()


def test_a_command_is_refused_wherever_it_may_be_tried() -> None:
    """A scenario is data from anywhere: it starts nothing, and says so wherever a program could be named."""
    keys = ("command", "argv", "exec", "run", "shell", "program")
    for key in keys:
        for text in (
            f"scenario: a\nagent: {{dialect: raw, {key}: ls}}\nscript: []\n",
            f"scenario: a\nagent: raw\nscript: []\n{key}: ls\n",
            f"scenario: a\nagent: raw\nscript: [{{{key}: ls}}]\n",
            f"scenario: a\nagent: raw\nscript: [{{spawn: {{id: x, {key}: ls}}}}]\n",
        ):
            with pytest.raises(
                ScenarioError, match=rf'unknown .* "{key}": a scenario starts no command: every process'
            ):
                loads(text)


def test_every_pinned_message_belongs_to_a_file() -> None:
    """A text without its file pins nothing."""
    assert sorted(file.stem for file in MALFORMED.glob("*.txt")) == NAMES


def test_problems_carry_the_path_as_it_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative path is what an editor or a terminal opens on a click."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.scenario.yaml").write_text("scenario: a\nagent: raw\nscript: [{exit: x}]\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ScenarioError) as caught:
        load("sub/a.scenario.yaml")
    message = 'exit must be a whole number from 0 to 255, not "x"'
    assert caught.value.problems == (ScenarioProblem("sub/a.scenario.yaml", 3, 17, message),)


def test_a_file_that_is_not_there_is_a_located_problem() -> None:
    """A wrong path on the command line is no reason for a stack."""
    with pytest.raises(ScenarioError, match=r"^no/such\.scenario\.yaml:1:1: the file cannot be read: No such file"):
        load("no/such.scenario.yaml")


def test_a_file_that_is_not_utf_8_is_a_located_problem(tmp_path: Path) -> None:
    """The byte is named by line and column, so that an editor finds it."""
    file = tmp_path / "latin.scenario.yaml"
    file.write_bytes("scenario: a\nsource: café\n".encode("latin-1"))
    with pytest.raises(ScenarioError) as caught:
        load(file)
    assert str(caught.value) == f"{file}:2:12: the file is not UTF-8"


@pytest.mark.parametrize("text", ["[" * 200_000, "{a: " * 50_000, "- " * 50_000, "? " * 50_000])
def test_bottomless_nesting_is_refused_at_once(text: str) -> None:
    """A broken generator must not cost a stack overflow or a minute."""
    with pytest.raises(ScenarioError, match=r"^<text>:1:\d+: nested deeper than 40 levels$"):
        loads(text)


def test_a_control_character_is_located() -> None:
    """A byte that no editor shows is found by its place only."""
    with pytest.raises(ScenarioError, match=r"^<text>:2:6: a character that YAML does not allow: write it in a quoted"):
        loads("scenario: a\nagent\x07: raw\n")


def test_a_file_that_is_all_wrong_has_a_hundred_problems_reported() -> None:
    """No user reads more of them, and a file of another kind has thousands."""
    with pytest.raises(ScenarioError) as caught:
        loads("scenario: a\nagent: raw\nscript:\n" + "- sya: x\n" * 5000)
    assert len(caught.value.problems) == 101
    assert str(caught.value.problems[-1]) == "<text>:104:3: there are more than 100 problems: mend these first"


OPEN = "scenario: a\nagent: raw\nscript:\n"


def test_a_file_with_open_values_that_is_all_wrong_has_a_hundred_problems_reported() -> None:
    """Each value of an open one is tried in a reading of its own, which gives up as well."""
    with pytest.raises(ScenarioError) as caught:
        loads(OPEN + "- silence: {between: [0s, 1s]}\n" + "- sya: x\n" * 5000)
    assert str(caught.value.problems[-1]).endswith("there are more than 100 problems: mend these first")


def test_a_file_has_at_most_a_hundred_open_values() -> None:
    """The time to check a file grows with its size times their number."""
    with pytest.raises(ScenarioError) as caught:
        loads(OPEN + "- silence: {between: [0s, 1s]}\n" * 101)
    assert str(caught.value) == "<text>:104:12: the scenario has 101 open values: at most 100 are read"


@pytest.mark.parametrize("end", ["\x85", "\u2028", "\u2029"])
def test_a_line_that_ends_for_yaml_alone_is_refused(end: str) -> None:
    """No editor would show the lines that messages speak of."""
    with pytest.raises(ScenarioError) as caught:
        loads(f"scenario: a\r\nagent: raw\rscript:\n- say: 'a{end}b'\n")
    message = (
        f'U+{ord(end):04X} ends a line for YAML and for no editor: write "\\u{ord(end):04x}", in a quoted text '
        f'(in a text of Python "\\\\u{ord(end):04x}")'
    )
    assert str(caught.value) == f"<text>:4:10: {message}"
