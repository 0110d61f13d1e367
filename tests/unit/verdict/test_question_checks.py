"""The words of a check on questions: only the agents' own record shows the questions, their answers and their times."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.handmade import SECOND, Events, Expected, judge_events, judge_one_key


def build_question_event(at: int, name: str, number: int = 1, kind: str = "permission", process: str = "agent") -> Any:
    """Make the event of a question."""
    return (at * SECOND, "m", {"process": process, "asked": name, "kind": kind, "number": number})


def build_answer_event(at: int, name: str, answer: str, number: int = 1, process: str = "agent") -> Any:
    """Make the event of an answer."""
    return (at * SECOND, "m", {"process": process, "answered": name, "answer": answer, "number": number})


def build_expected_question(
    name: str, answer: str | None = None, after: int | None = None, kind: str = "permission"
) -> dict[str, Any]:
    """Make an item as the scenario binds it."""
    return {"kind": kind, "name": name, "answer": answer, "after": None if after is None else after * SECOND}


TWO: Events = [
    build_question_event(1, "Bash"),
    build_question_event(2, "late", 2, "hook"),
    build_answer_event(4, "Bash", "deny"),
]
SEEN = "Bash: deny after 3 s, hook late: none"


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ([build_expected_question("Bash"), build_expected_question("late", kind="hook")], "Bash, hook late"),
        (
            [build_expected_question("Bash", "deny"), build_expected_question("late", "none", kind="hook")],
            "Bash: deny, hook late: none",
        ),
        (
            [build_expected_question("Bash", after=3), build_expected_question("late", kind="hook")],
            "Bash after 3 s, hook late",
        ),
    ],
)
def test_questions_pass_by_what_is_said_of_them(items: list[dict[str, Any]], words: str) -> None:
    """Keys that an item does not have are not checked."""
    assert judge_one_key("asked", items, events=TWO) == ("passed", words, SEEN, "")


@pytest.mark.parametrize(
    ("items", "hint"),
    [
        ([], "question 1: it was not expected"),
        ([build_expected_question("Bash")], "question 2: it was not expected"),
        (
            [
                build_expected_question("Bash"),
                build_expected_question("late", kind="hook"),
                build_expected_question("x"),
            ],
            "question 3: it was not asked",
        ),
        (
            [build_expected_question("Read"), build_expected_question("late", kind="hook")],
            "question 1: another one was asked",
        ),
        (
            [build_expected_question("Bash", kind="hook"), build_expected_question("late", kind="hook")],
            "question 1: another one was asked",
        ),
        (
            [build_expected_question("Bash", "allow"), build_expected_question("late", kind="hook")],
            "question 1: the agent got deny",
        ),
        (
            [build_expected_question("Bash", "none"), build_expected_question("late", kind="hook")],
            "question 1: the agent got deny",
        ),
        (
            [build_expected_question("Bash", "deny", 2), build_expected_question("late", kind="hook")],
            "question 1: the answer came 1 s later",
        ),
        (
            [build_expected_question("Bash", "deny", 5), build_expected_question("late", kind="hook")],
            "question 1: the answer came 2 s earlier",
        ),
        (
            [build_expected_question("Bash"), build_expected_question("late", "allow", kind="hook")],
            "question 2: it was never answered",
        ),
        (
            [build_expected_question("Bash"), build_expected_question("late", after=1, kind="hook")],
            "question 2: it was never answered",
        ),
    ],
)
def test_a_difference_names_its_question(items: list[dict[str, Any]], hint: str) -> None:
    """The first one is enough to look for."""
    assert judge_one_key("asked", items, events=TWO)[::3] == ("failed", hint)


def test_an_answer_belongs_to_its_own_question() -> None:
    """Two of one name, answered the other way round, and the same numbers in a second start of the agent."""
    events = [
        build_question_event(1, "Bash"),
        build_question_event(1, "Bash", 2),
        build_answer_event(2, "Bash", "allow", 2),
        build_answer_event(3, "Bash", "deny", 1),
        build_question_event(5, "Bash", process="agent 2"),
    ]
    words = "Bash: deny after 2 s, Bash: allow after 1 s, Bash: none"
    assert judge_one_key("asked", [build_expected_question("Bash")] * 3, events=events)[::2] == ("passed", words)


def test_nothing_asked_is_none() -> None:
    """A scenario may expect that the agent asks nothing."""
    assert judge_one_key("asked", []) == ("passed", "none", "none", "")


def test_an_answer_may_come_late_in_real_time() -> None:
    """As every other time there."""
    events = [build_question_event(0, "Bash"), build_answer_event(3, "Bash", "deny")]
    row = judge_events(Expected("asked", [build_expected_question("Bash", after=2)]), events=events, tolerance=SECOND)[
        0
    ]
    assert row.verdict == "passed"
