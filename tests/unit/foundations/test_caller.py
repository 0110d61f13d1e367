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
