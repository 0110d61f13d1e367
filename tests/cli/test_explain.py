"""`agentproc explain`: the text of the reference, where the question arises."""

from __future__ import annotations

import pytest

from pytest_agentproc.cli import main
from pytest_agentproc.reference import find_entries, format_for_terminal, list_entries

pytestmark = pytest.mark.once


@pytest.mark.slow
def test_every_word_is_explained(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """What is printed is the entry of the reference, and nothing else."""
    monkeypatch.setenv("COLUMNS", "80")
    for entry in list_entries()[::25]:
        assert main(["explain", *entry.name.split()]) == 0
        assert format_for_terminal(entry, 80) in capsys.readouterr().out
    assert [entry for entry in list_entries() if entry not in find_entries(entry.name)[0]] == []


@pytest.mark.slow
def test_a_word_is_shown_with_its_facts_and_an_example(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader of a failure reads this next."""
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["explain", "undecided"]) == 0
    assert capsys.readouterr().out == (
        "undecided (verdict)\n"
        "The supervisor does not report the value that the check needs. At level `must`,\n"
        "undecided fails the test.\n"
        "\n"
        "What to do: Have the supervisor report the value that the message names.\n"
        "\n"
        "  $ agentproc run exits-3-after-a-good-result --command '{agent}'\n"
    )


@pytest.mark.slow
def test_a_key_that_stands_at_several_places_is_explained_at_each(capsys: pytest.CaptureFixture[str]) -> None:
    """A failure names the last part of a key only."""
    assert main(["explain", "elapsed"]) == 0
    heads = [line for line in capsys.readouterr().out.splitlines() if line.endswith("(expect key)")]
    assert heads == ["elapsed (expect key)", "turns: elapsed (expect key)", "result.json: elapsed (expect key)"]
    assert main(["explain", "turns.elapsed"]) == 0
    assert capsys.readouterr().out.startswith("turns: elapsed (expect key)\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("t11", "did you mean T1, K11?"),
        ("timeout", "did you mean inactivity_timeout, internal_tool_timeout, progress_timeout,"),
        ("qqq", "agentproc explain lists all words"),
    ],
)
def test_an_unknown_word_gets_the_nearest_ones(word: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody knows all words."""
    assert main(["explain", word]) == 2
    assert capsys.readouterr().err.startswith(f"agentproc explain: there is no word '{word}'\n{hint}")


@pytest.mark.slow
def test_without_a_word_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """A reader sees which words there are."""
    assert main(["explain"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("rule: A1, A2,")
    assert "\nverdict: kit error, adapter error, crashed, failed," in printed
