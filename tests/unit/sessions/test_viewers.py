"""A session keeps everything for its viewers, as long as it is no endless flood (P4, F6)."""

from __future__ import annotations

import pytest

from pytest_agentproc.supervisor import SessionEvent, Viewer
from tests.unit.session_stage import Stage


def read_ready_event(viewer: Viewer) -> SessionEvent:
    """Give a viewer an event that is there: nothing is waited for."""
    try:
        anext(viewer).__await__().send(None)
    except StopIteration as stop:
        event = stop.value
        assert isinstance(event, SessionEvent)
        return event
    raise AssertionError("it waits")


def test_a_viewer_that_attaches_late_sees_everything_from_the_beginning() -> None:
    """The second one as the first one did."""
    stage = Stage()
    stage.greet_as_pi()
    early = stage.session.attach()
    stage.prompt("one")
    stage.accept_prompt(1)
    stage.answer_and_settle("ONE")
    late = stage.session.attach()
    count = len(stage.events)
    assert (
        [read_ready_event(early) for _ in range(count)]
        == [read_ready_event(late) for _ in range(count)]
        == stage.events
    )


@pytest.mark.slow
def test_a_flood_of_events_is_bounded_and_the_newest_are_kept() -> None:
    """Also of events without a text: each costs something. A viewer that fell behind continues with the oldest kept."""
    session = Stage().session
    viewer = session.attach()
    for number in range(100_000):
        session.receive_event(SessionEvent(number, "delta", 0))
    session.receive_event(SessionEvent(100_000, "message", 0, "x" * 1_000_000))
    assert len(session.transcript) < 84_000
    assert read_ready_event(viewer) == session.transcript[0]
    assert read_ready_event(viewer) == session.transcript[1]
    assert session.transcript[-1].at == 100_000
