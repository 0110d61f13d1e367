"""The jump rule as values: each tie is decided by a rule and never by chance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.clock import HostState, JumpRule, NextMove

if TYPE_CHECKING:
    from pytest_agentproc.clock import SpawnPath

STUCK = (NextMove.STUCK, None)


def build_rule_with_parked(*processes: tuple[SpawnPath, int | None], now: int = 0) -> JumpRule:
    """Make a rule whose processes are parked, each until an instant."""
    rule = JumpRule()
    rule.now = now
    for path, until in processes:
        rule.park_process(path, until)
    return rule


def list_grants(rule: JumpRule, host: HostState | None = None) -> list[tuple[SpawnPath, int]]:
    """Grant until no process is left to grant; list which continued, and when."""
    made: list[tuple[SpawnPath, int]] = []
    while True:
        move, target = rule.choose_next_move(host or HostState())
        if move is not NextMove.GRANT:
            return made
        made.append((target, rule.now))
        rule.drop_process(target)


def test_a_host_with_news_goes_before_everybody() -> None:
    """The effects of one grant are seen before any other process adds to them."""
    rule = build_rule_with_parked(((0,), 0), ((1,), None))
    rule.request_grant((1,))
    assert rule.choose_next_move(HostState(ready=1, pending=0, deadline=(0, 0))) == (NextMove.LOOK, 1)


def test_a_run_begins_before_any_process_goes_on() -> None:
    """Runs of one instant start together; an agent of the first may not be ahead of the second's."""
    rule = build_rule_with_parked(((0,), 0), ((1,), None))
    rule.request_grant((1,))
    assert rule.choose_next_move(HostState(pending=2, deadline=(0, 0))) == (NextMove.START, 2)


def test_a_process_that_asks_goes_before_a_process_that_is_due() -> None:
    """A signal or a byte that has come wakes its process before time wakes another."""
    rule = build_rule_with_parked(((0,), 0), ((1,), None))
    rule.request_grant((1,))
    assert list_grants(rule) == [((1,), 0), ((0,), 0)]


def test_askers_go_in_spawn_order_and_not_in_that_of_asking() -> None:
    """The kernel reports them in any order; a path is the same in every run, a pid is not."""
    rule = build_rule_with_parked(((1,), None), ((0, 1), None), ((0,), None), ((0, 0), None))
    for path in ((1,), (0, 1), (0, 0), (0,)):
        rule.request_grant(path)
    assert [path for path, _ in list_grants(rule)] == [(0,), (0, 0), (0, 1), (1,)]


@pytest.mark.parametrize(
    ("deadline", "foreseen"),
    [(None, (7, (1,))), ((7, 0), (7, (1,))), ((6, 0), None)],
)
def test_who_goes_on_next_is_foreseen_and_no_time_goes_by(
    deadline: tuple[int, int] | None, foreseen: tuple[int, SpawnPath] | None
) -> None:
    """The host may still change it; nothing has happened yet."""
    rule = build_rule_with_parked(((0,), 9), ((1,), 7), now=5)
    assert (rule.find_first_process(deadline), rule.now) == (foreseen, 5)


def test_who_asks_is_foreseen_for_now() -> None:
    """The instant that it waited for does not matter."""
    rule = build_rule_with_parked(((0,), 5), ((1,), 9), now=5)
    rule.request_grant((1,))
    assert rule.find_first_process((5, 0)) == (5, (1,))


def test_asking_sticks_until_the_grant() -> None:
    """The readiness may be over by the time the host has looked; the wish to continue is not."""
    rule = build_rule_with_parked(((0,), None))
    rule.request_grant((0,))
    assert rule.choose_next_move(HostState(ready=0)) == (NextMove.LOOK, 0)
    assert rule.has_requested_grant((0,))
    assert rule.choose_next_move(HostState()) == (NextMove.GRANT, (0,))


def test_a_granted_process_that_parks_again_asks_no_more() -> None:
    """A wish is good for one grant, or a process would continue for ever."""
    rule = build_rule_with_parked(((0,), None))
    rule.request_grant((0,))
    rule.drop_process((0,))
    rule.park_process((0,), None)
    assert not rule.has_requested_grant((0,))
    assert rule.choose_next_move(HostState()) == STUCK


def test_who_is_not_parked_cannot_ask() -> None:
    """A late wake-up of a process that is running or gone must not be granted."""
    rule = build_rule_with_parked()
    rule.request_grant((0,))
    assert rule.choose_next_move(HostState()) == STUCK


def test_the_earliest_goes_first_and_time_moves_with_it() -> None:
    """Time is nothing but the instant of who goes next."""
    rule = build_rule_with_parked(((0,), 30), ((1,), 10), ((2,), 20))
    assert list_grants(rule) == [((1,), 10), ((2,), 20), ((0,), 30)]


def test_who_is_due_at_one_instant_goes_in_spawn_order() -> None:
    """A tie is broken by the script, whoever parked first."""
    rule = build_rule_with_parked(((1,), 5), ((0, 2), 5), ((0,), 5), ((0, 10), 5))
    assert list_grants(rule) == [((0,), 5), ((0, 2), 5), ((0, 10), 5), ((1,), 5)]


@pytest.mark.parametrize(
    ("deadline", "move", "now"),
    [(9, (NextMove.FIRE, 0), 9), (10, (NextMove.GRANT, (3,)), 10), (11, (NextMove.GRANT, (3,)), 10)],
)
def test_an_agent_goes_before_a_deadline_of_its_instant(
    deadline: int, move: tuple[NextMove, int | SpawnPath], now: int
) -> None:
    """An act at the very last moment is in time, and a nanosecond later it is not."""
    rule = build_rule_with_parked(((3,), 10))
    assert rule.choose_next_move(HostState(deadline=(deadline, 0))) == move
    assert rule.now == now


def test_a_deadline_fires_when_nobody_else_can_move() -> None:
    """A process that waits for the host alone holds no time."""
    rule = build_rule_with_parked(((0,), None))
    assert rule.choose_next_move(HostState(deadline=(7, 4))) == (NextMove.FIRE, 4)
    assert rule.now == 7


def test_an_overdue_deadline_fires_now_and_after_agents_that_are_due_now() -> None:
    """A deadline may be set in the past, but time never goes back, and the tie stays the agents'."""
    rule = build_rule_with_parked(((0,), 10), now=10)
    overdue = HostState(deadline=(3, 0))
    assert list_grants(rule, overdue) == [((0,), 10)]
    assert rule.choose_next_move(overdue) == (NextMove.FIRE, 0)
    assert rule.now == 10


def test_a_deadlock_is_reported_and_moves_no_time() -> None:
    """A deadlock is an answer of its own, so that it can be explained where it happened."""
    rule = build_rule_with_parked(((0,), None), ((1,), None), now=8)
    assert rule.choose_next_move(HostState()) == STUCK
    assert rule.now == 8


def test_an_instant_that_has_passed_is_now() -> None:
    """Processes that are late are equally late: spawn order decides, and time stands."""
    rule = build_rule_with_parked(((1,), 3), ((0,), 6), ((2,), 10), now=10)
    assert list_grants(rule) == [((0,), 10), ((1,), 10), ((2,), 10)]


def test_who_is_dropped_is_neither_due_nor_asks() -> None:
    """A process that died or was stopped must not be granted, whatever it wanted."""
    rule = build_rule_with_parked(((0,), 5), ((1,), None), ((2,), 7))
    rule.request_grant((1,))
    rule.drop_process((0,))
    rule.drop_process((1,))
    rule.drop_process((9,))
    assert list_grants(rule) == [((2,), 7)]


@pytest.mark.parametrize(("again", "expected"), [(20, [((0,), 20)]), (2, [((0,), 2)]), (None, [])])
def test_only_the_last_parking_counts(again: int | None, expected: list[tuple[SpawnPath, int]]) -> None:
    """A signal may cut a sleep short, and the old plan is void."""
    rule = build_rule_with_parked(((0,), 5), ((0,), again))
    assert list_grants(rule) == expected


def test_a_process_that_parks_for_the_same_instant_twice_goes_once() -> None:
    """The first parking leaves its mark behind, which must not count as a second one."""
    rule = build_rule_with_parked(((0,), 5), ((0,), 5))
    assert list_grants(rule) == [((0,), 5)]
