"""The words of a check on questions: only the agents' own record shows the questions, their answers and their times."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.handmade import SECOND, Events, Expected, judge, judged


def asked(at: int, name: str, number: int = 1, kind: str = "permission", process: str = "agent") -> Any:
    """Make the event of a question."""
    return (at * SECOND, "m", {"process": process, "asked": name, "kind": kind, "number": number})


def answered(at: int, name: str, answer: str, number: int = 1, process: str = "agent") -> Any:
    """Make the event of an answer."""
    return (at * SECOND, "m", {"process": process, "answered": name, "answer": answer, "number": number})


def wanted(name: str, answer: str | None = None, after: int | None = None, kind: str = "permission") -> dict[str, Any]:
    """Make an item as the scenario binds it."""
    return {"kind": kind, "name": name, "answer": answer, "after": None if after is None else after * SECOND}


TWO: Events = [asked(1, "Bash"), asked(2, "late", 2, "hook"), answered(4, "Bash", "deny")]
SEEN = "Bash: deny after 3 s, hook late: none"


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ([wanted("Bash"), wanted("late", kind="hook")], "Bash, hook late"),
        ([wanted("Bash", "deny"), wanted("late", "none", kind="hook")], "Bash: deny, hook late: none"),
        ([wanted("Bash", after=3), wanted("late", kind="hook")], "Bash after 3 s, hook late"),
    ],
)
def test_questions_pass_by_what_is_said_of_them(items: list[dict[str, Any]], words: str) -> None:
    """Keys that an item does not have are not checked."""
    assert judge("asked", items, events=TWO) == ("passed", words, SEEN, "")


@pytest.mark.parametrize(
    ("items", "hint"),
    [
        ([], "question 1: it was not expected"),
        ([wanted("Bash")], "question 2: it was not expected"),
        ([wanted("Bash"), wanted("late", kind="hook"), wanted("x")], "question 3: it was not asked"),
        ([wanted("Read"), wanted("late", kind="hook")], "question 1: another one was asked"),
        ([wanted("Bash", kind="hook"), wanted("late", kind="hook")], "question 1: another one was asked"),
        ([wanted("Bash", "allow"), wanted("late", kind="hook")], "question 1: the agent got deny"),
        ([wanted("Bash", "none"), wanted("late", kind="hook")], "question 1: the agent got deny"),
        ([wanted("Bash", "deny", 2), wanted("late", kind="hook")], "question 1: the answer came 1 s later"),
        ([wanted("Bash", "deny", 5), wanted("late", kind="hook")], "question 1: the answer came 2 s earlier"),
        ([wanted("Bash"), wanted("late", "allow", kind="hook")], "question 2: it was never answered"),
        ([wanted("Bash"), wanted("late", after=1, kind="hook")], "question 2: it was never answered"),
    ],
)
def test_a_difference_names_its_question(items: list[dict[str, Any]], hint: str) -> None:
    """The first one is enough to look for."""
    assert judge("asked", items, events=TWO)[::3] == ("failed", hint)


def test_an_answer_belongs_to_its_own_question() -> None:
    """Two of one name, answered the other way round, and the same numbers in a second start of the agent."""
    events = [
        asked(1, "Bash"),
        asked(1, "Bash", 2),
        answered(2, "Bash", "allow", 2),
        answered(3, "Bash", "deny", 1),
        asked(5, "Bash", process="agent 2"),
    ]
    words = "Bash: deny after 2 s, Bash: allow after 1 s, Bash: none"
    assert judge("asked", [wanted("Bash")] * 3, events=events)[::2] == ("passed", words)


def test_what_the_supervisor_says_of_answers_is_nothing() -> None:
    """And nothing asked is `none`."""
    events: Events = [(0, "m", {"process": "agent", "by": "supervisor", "asked": "x", "kind": "hook", "number": 1})]
    assert judge("asked", [], events=events) == ("passed", "none", "none", "")


def test_an_answer_may_come_late_in_real_time() -> None:
    """As every other time there."""
    events = [asked(0, "Bash"), answered(3, "Bash", "deny")]
    row = judged(Expected("asked", [wanted("Bash", after=2)]), events=events, tolerance=SECOND)[0]
    assert row.verdict == "passed"
