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
        "  $ agentproc run claude-exits-1-after-a-good-result --command '{agent}'\n"
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
        ("zombi", "did you mean spawn: zombie?"),
        ("qqq", "agentproc explain lists all words"),
        ("ignore", 'as a step: write "- when: {signal: TERM}", and below it "do: []", which ignores the signal\n'),
        ("hang", "as a step: write silence: for ever\nas an outcome: write inactive\n"),
        (
            "timeout",
            "as a step: write silence\nas a limit: inactivity_timeout limits silence, max_runtime a whole run,",
        ),
        ("n/a", "as a verdict: not applicable\n"),
        ("macos", "fakes run on Linux only. check, explain, import, list, new and schema run on any platform\n"),
        ("T5", "T5 would say that the agents go when the supervisor is killed."),
    ],
)
def test_an_unknown_word_gets_what_it_means_or_the_nearest_ones(
    word: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody knows all words."""
    assert main(["explain", word]) == 2
    assert capsys.readouterr().err.startswith(f"agentproc explain: there is no word '{word}'\n{hint}")


@pytest.mark.slow
@pytest.mark.parametrize("word", ["TERM", "SIGTERM", "sigterm"])
def test_a_signal_is_explained_by_its_name(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Scenarios write TERM, all other tools SIGTERM."""
    assert main(["explain", word]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("TERM (signal)\nThe process is asked to end.")
    assert (
        f'{word} as a step: write die: TERM for its own death, or to ignore it "- when: {{signal: TERM}}",' in printed
    )


@pytest.mark.slow
def test_without_a_word_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """A reader sees which words there are."""
    assert main(["explain"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("rule: A1, A2,")
    assert "\nverdict: kit error, adapter error, crashed, failed," in printed


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["P5", "P6"], ["P5 (rule)", "P6 (rule)"]),
        (["how"], ["new_session: the leader of a session; found by a walk"]),
        (["leaks"], ["containment subreaper or keeper only"]),
        (["containment"], ["does not find a child in a session of its own"]),
    ],
)
def test_several_words_and_the_values_of_a_key_are_explained(
    words: list[str], shown: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A user gives the words that a failure names."""
    assert main(["explain", *words]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert [part for part in shown if part not in printed] == []
