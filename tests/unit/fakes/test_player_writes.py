"""The writes of a fake in each grant: chunks, pieces of a size of their own, and more than a pipe holds."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_agentproc.fake_agents.program import MAX_WRITE_BYTES, PIPE_CAPACITY_BYTES
from tests.unit.bookkeeping import StagedPlay, expect_output, number_steps, say_step


def test_a_flood_is_one_chunk_a_grant() -> None:
    """Between any two chunks the other side may look, as with a pipe that is full."""
    play = StagedPlay(("flood", "stderr", 2 * MAX_WRITE_BYTES + 1))
    grants = [play.grant(0) for _ in range(3)]
    assert grants == [
        [("stderr", b"x" * MAX_WRITE_BYTES)],
        [("stderr", b"x" * MAX_WRITE_BYTES)],
        [("stderr", b"x"), ("exit", 0)],
    ]


@pytest.mark.parametrize(
    "step", [("flood", "stdout", PIPE_CAPACITY_BYTES + 1), ("bytes", "stdout", b"x" * (PIPE_CAPACITY_BYTES + 1))]
)
def test_what_no_pipe_holds_is_written_as_far_as_there_is_room(step: tuple[Any, ...]) -> None:
    """It waits for its reader at a full pipe, and not at each chunk before."""
    play = StagedPlay(step, room={"stdout": 10, "stderr": 0})
    assert play.grant(0) == [("stdout", b"x" * MAX_WRITE_BYTES)] * 10
    play.book.room["stdout"] = 99
    assert play.grant(0) == [("stdout", b"x" * MAX_WRITE_BYTES)] * 6
    assert play.grant(0) == [("stdout", b"x"), ("exit", 0)]


def test_a_write_of_what_a_pipe_holds_is_one_chunk_a_grant() -> None:
    """So is every word of an agent's that is not extremely long: a supervisor may act on its beginning."""
    play = StagedPlay(("bytes", "stdout", b"x" * PIPE_CAPACITY_BYTES))
    assert [play.grant(0) for _ in range(15)] == [[("stdout", b"x" * MAX_WRITE_BYTES)]] * 15


def test_pieces_of_a_size_of_their_own_stay_apart_however_many_there_are() -> None:
    """The scenario says how its agent writes."""
    program = {
        "dialect": "raw",
        "code": 0,
        "chunk": 61,
        "steps": number_steps(("bytes", "stdout", b"x" * (PIPE_CAPACITY_BYTES + 1))),
    }
    play = StagedPlay(program=program, room={"stdout": 9999, "stderr": 0})
    assert [play.grant(0) for _ in range(3)] == [[("stdout", b"x" * 61)]] * 3


def test_steps_of_one_write_are_read_at_once() -> None:
    """A supervisor that judges a whole read by its worst line shows itself only there."""
    lines = number_steps(("bytes", "stdout", b"npm\n"), say_step("hi"), ("bytes", "stdout", b"bye\n"))
    play = StagedPlay(("one_write", lines), say_step("more"))
    assert play.grant(0) == [("stdout", b"npm\nhi\nbye\n"), ("stdout", b"more\n"), ("exit", 0)]


def test_one_write_parks_while_there_is_no_room() -> None:
    """Its steps are played once, and its bytes wait."""
    play = StagedPlay(("one_write", number_steps(say_step("a"), say_step("b"))), room={"stdout": 0, "stderr": 0})
    assert play.grant(0) == []
    play.book.room["stdout"] = 1
    assert play.grant(0) == [("stdout", b"a\nb\n"), ("exit", 0)]


def test_a_write_parks_while_there_is_no_room() -> None:
    """A full pipe must show as 'waits for room', never as a blocked process."""
    play = StagedPlay(say_step("a"), say_step("b"), room={"stdout": 1, "stderr": 0})
    assert play.grant(0) == expect_output("a")
    assert (play.player.wanted_streams, play.player.earliest_wake_instant) == ((True, True, False), None)
    assert play.grant(0) == []
    play.book.room["stdout"] = 1
    assert play.grant(0) == [*expect_output("b"), ("exit", 0)]


def test_a_parked_write_holds_up_its_own_track_only() -> None:
    """An agent may write to stderr while its stdout has no reader."""
    play = StagedPlay(
        ("meanwhile", number_steps(("bytes", "stderr", b"e"))), say_step("a"), room={"stdout": 0, "stderr": 1}
    )
    assert play.grant(0) == [("stderr", b"e")]
