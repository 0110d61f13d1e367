"""The caller of a session: how a drive ends."""

from __future__ import annotations

import pytest

from pytest_agentproc.vocabulary import Caller, CallerAction


def list_immediate_actions(*drive: CallerAction) -> list[str]:
    """List what a caller does at once, by kind."""
    return [action.kind for action in Caller(drive, lambda _: None).act(0)]


@pytest.mark.parametrize(
    "drive", [(), (CallerAction(1, "close"),), (CallerAction(1, "close"), CallerAction(2, "attach", "v"))]
)
def test_a_session_is_closed_once(drive: tuple[CallerAction, ...]) -> None:
    """A second close would be a deed that no scenario says, in a session that may be over."""
    assert list_immediate_actions(*drive).count("close") == 1


def test_a_drive_that_closes_waits_for_every_outcome_all_the_same() -> None:
    """A question to a closed session has its outcome soon, and the caller is not done before."""
    caller = Caller([CallerAction(1, "prompt", "hi"), CallerAction(1, "close")], lambda _: None)
    assert [action.kind for action in caller.act(0)] == ["prompt", "close"]
    assert not caller.is_done
    caller.note_event("outcome", 1, "stopped")
    assert caller.act(0) == []
    assert caller.is_done


@pytest.mark.parametrize(
    ("awaited", "reported", "is_over"),
    [
        ("question", [("question", "rm")], True),
        ("tool", [("tool", "make")], True),
        ("message", [("delta", ""), ("tool", "make")], False),
        ("message", [("delta", "I")], True),
        ("message", [("message", "I begin")], True),
        ("tool", [("delta", "I"), ("status", "prompting")], False),
        ("tool", [("outcome", "completed")], True),
        ("tool", [("status", "failed")], True),
    ],
)
def test_a_caller_waits_for_a_sign_within_the_turn(
    awaited: str, reported: list[tuple[str, str]], *, is_over: bool
) -> None:
    """A cancel in a tool needs no guessed instant. A sign that can no longer come is not waited for."""
    drive = [CallerAction(1, "prompt", "hi"), CallerAction(2, awaited), CallerAction(3, "cancel")]
    caller = Caller(drive, lambda _: None)
    caller.act(0)
    for kind, text in reported:
        caller.note_event(kind, 1, text)
    assert ("cancel" in [action.kind for action in caller.act(5)]) is is_over


def test_a_sign_before_the_last_action_does_not_count() -> None:
    """The second wait is for the second tool."""
    drive = [CallerAction(1, "prompt", "hi"), *(CallerAction(line, "tool") for line in (2, 3))]
    caller = Caller([*drive, CallerAction(4, "cancel")], lambda _: None)
    caller.act(0)
    caller.note_event("tool", 1, "make")
    assert caller.act(1) == []
    caller.note_event("tool", 1, "test")
    assert [action.kind for action in caller.act(2)] == ["cancel"]


def test_the_handlers_question_is_a_sign() -> None:
    """A subject that asks its handler need not report the question twice."""
    drive = [CallerAction(1, "prompt", "hi"), CallerAction(2, "question"), CallerAction(3, "cancel")]
    caller = Caller(drive, lambda _: None)
    caller.act(0)
    caller.note_question(1)
    assert [action.kind for action in caller.act(1)] == ["cancel"]
