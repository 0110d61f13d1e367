"""The caller of a session as values: its actions with their times, and their look in a record."""

from __future__ import annotations

import pytest

from pytest_agentproc.events import CallerActed, encode_event
from pytest_agentproc.vocabulary import (
    Caller,
    CallerAction,
    CallerRole,
    Handler,
    HookReaction,
    find_needed_capabilities,
)

SECOND = 1_000_000_000


class PlayedCaller:
    """A caller, and what it noted."""

    def __init__(self, *drive: CallerAction, handler: Handler | None = None) -> None:
        self.noted: list[str] = []
        self.caller = Caller(drive, lambda action: self.noted.append(action.kind), {"": CallerRole(handler)})

    def act(self, seconds: float = 0) -> list[str]:
        """Give the kinds of what it does now."""
        return [action.kind for action in self.caller.act(round(seconds * SECOND))]


def test_a_drive_that_is_through_waits_for_every_outcome_and_closes() -> None:
    """A caller that closed while a prompt is under way would judge its own impatience."""
    play = PlayedCaller(CallerAction(1, "prompt", "a"), CallerAction(2, "prompt", "b"))
    assert play.act() == ["prompt", "prompt"]
    play.caller.note_event("outcome", 1, "completed")
    assert play.act() == []
    play.caller.note_event("outcome", 2, "completed")
    assert play.act() == ["close"]
    assert play.caller.is_done


@pytest.mark.parametrize(
    ("number", "outcomes", "words"),
    [
        (None, (1, 2), "cancel hits nothing: no turn is open"),
        (1, (1,), "cancel 1 hits nothing: turn 1 is over"),
        (3, (), "cancel 3 hits nothing: there is no turn 3 yet"),
        (None, (1,), "cancel"),
        (2, (1,), "cancel 2"),
    ],
)
def test_a_cancel_that_hits_nothing_says_why(number: int | None, outcomes: tuple[int, ...], words: str) -> None:
    """The timeline was silent, and its reader looked for the effect of the cancel."""
    shown: list[str] = []
    prompts = (CallerAction(1, "prompt", "a"), CallerAction(2, "prompt", "b"))
    caller = Caller(
        (*prompts, CallerAction(3, "cancel", number, at=SECOND)),
        lambda action: shown.append(encode_event(action.make_event(0)).data["does"]),
    )
    caller.act(0)
    for turn in outcomes:
        caller.note_event("outcome", turn, "completed")
    caller.act(SECOND)
    assert shown[2] == words


def test_a_deed_waits_for_its_instant_or_for_so_long_after_the_one_before() -> None:
    """`at` counts from the start, `after` and a plain wait from the item before."""
    play = PlayedCaller(
        CallerAction(1, "cancel", at=5 * SECOND),
        CallerAction(2, "stop", after=SECOND),
        CallerAction(3, "wait", 2 * SECOND),
    )
    assert play.act() == []
    assert play.caller.deadline == 5 * SECOND
    assert play.act(5) == ["cancel"]
    assert play.caller.deadline == 6 * SECOND
    assert play.act(6) == ["stop"]
    assert play.caller.deadline == 8 * SECOND
    assert play.act(8) == ["close"]


def test_a_status_that_was_left_again_has_been_waited_for() -> None:
    """A session may pass through a status between two looks of its caller."""
    play = PlayedCaller(CallerAction(1, "status", "restarting"))
    assert play.act() == []
    for status in ("ready", "restarting", "ready"):
        play.caller.note_event("status", None, status)
    assert play.act() == ["close"]


def test_a_status_before_the_item_before_counts_no_more() -> None:
    """A wait for `ready` after a stop means the next one."""
    statuses = [
        CallerAction(line, "status", status) for line, status in ((1, "ready"), (3, "restarting"), (4, "ready"))
    ]
    play = PlayedCaller(statuses[0], CallerAction(2, "stop"), *statuses[1:])
    play.caller.note_event("status", None, "ready")
    assert play.act() == ["stop"]
    play.caller.note_event("status", None, "restarting")
    play.caller.note_event("status", None, "ready")
    assert play.act() == ["close"]


def test_a_background_turn_without_a_word_counts_for_none() -> None:
    """One CLI prints an empty result before the real one, another does not."""
    play = PlayedCaller(CallerAction(1, "background", 1))
    play.caller.note_event("background", 0, "")
    assert play.act() == []
    play.caller.note_event("background", 0, "done")
    assert play.act() == ["close"]


def test_nobody_waits_for_what_a_failed_session_cannot_bring() -> None:
    """Its turns have their outcomes; a wait for ever would hide them in a deadlock."""
    play = PlayedCaller(CallerAction(1, "background", 1), CallerAction(2, "status", "ready"))
    play.caller.note_event("status", None, "failed")
    assert play.act() == ["close"]


def test_questions_are_answered_in_order_after_the_handlers_time() -> None:
    """The handler takes its time for each, whatever else the caller does meanwhile."""
    play = PlayedCaller(CallerAction(1, "turn", 1), handler=Handler(allowed=True, after=SECOND))
    assert play.caller.note_question(0) == 1
    assert play.caller.note_question(SECOND // 2) == 2
    assert play.caller.deadline == SECOND
    assert [(action.kind, action.value) for action in play.caller.act(2 * SECOND)] == [("answer", 1), ("answer", 2)]


def test_a_handler_that_never_answers_has_no_deadline() -> None:
    """The session's own limit has to end that."""
    play = PlayedCaller(handler=Handler(allowed=None))
    play.caller.note_question(0)
    assert play.caller.deadline is None


def test_a_wait_is_noted_once_and_only_if_it_lasts() -> None:
    """The timeline shows where a caller hangs, and is not full of waits that were none."""
    play = PlayedCaller(CallerAction(1, "prompt", "a"), CallerAction(2, "turn", 1), CallerAction(3, "wait", 0))
    play.act()
    play.act()
    assert play.noted == ["prompt", "turn"]
    play.caller.note_event("outcome", 1, "completed")
    play.act()
    assert play.noted == ["prompt", "turn", "close"]


def test_a_deed_says_what_it_is_and_where_it_stands() -> None:
    """A record tells the caller's side, too."""
    shown = [
        CallerAction(3, "prompt", "secret"),
        CallerAction(4, "turn", 2),
        CallerAction(5, "cancel"),
        CallerAction(0, "close"),
        CallerAction(6, "wait", 9),
    ]
    assert [encode_event(action.make_event(0)).data for action in shown] == [
        {"process": "caller", "does": "prompt", "line": 3},
        {"process": "caller", "waits": "for turn 2", "line": 4},
        {"process": "caller", "does": "cancel", "line": 5},
        {"process": "caller", "does": "close"},
        {"process": "caller", "waits": "", "line": 6},
    ]


class TwoSessions(PlayedCaller):
    """The caller of two sessions, left and right."""

    def __init__(self, *drive: CallerAction, left: CallerRole | None = None, right: CallerRole | None = None) -> None:
        self.noted = []
        roles = {"left": left or CallerRole(), "right": right or CallerRole()}
        self.caller = Caller(drive, lambda action: self.noted.append(f"{action.session} {action.kind}"), roles)

    def act(self, seconds: float = 0) -> list[str]:
        """Give what it does now, with the sessions."""
        return [f"{action.session} {action.kind}" for action in self.caller.act(round(seconds * SECOND))]


def test_one_drive_goes_through_all_sessions_and_closes_them_in_order() -> None:
    """It waits for the outcomes of all first: a session that was closed early would lose its turn."""
    play = TwoSessions(CallerAction(1, "prompt", "a", session="right"), CallerAction(2, "prompt", "b", session="left"))
    assert play.act() == ["right prompt", "left prompt"]
    play.caller.note_event("outcome", 1, "completed", "left")
    assert play.act() == []
    play.caller.note_event("outcome", 1, "completed", "right")
    assert play.act() == ["left close", "right close"]
    assert play.caller.is_done


def test_turns_background_turns_and_statuses_are_read_of_one_session() -> None:
    """The first turn of one is not the first turn of the other."""
    for kind, value, turn, text in (
        ("turn", 1, 1, "completed"),
        ("background", 1, 0, "done"),
        ("status", "ready", None, "ready"),
    ):
        play = TwoSessions(CallerAction(1, kind, value, session="left"))
        heard = "outcome" if kind == "turn" else kind
        play.caller.note_event(heard, turn, text, "right")
        assert play.act() == []
        play.caller.note_event(heard, turn, text, "left")
        assert play.act() == ["left close", "right close"]


def test_the_failure_of_one_session_ends_no_wait_for_the_other() -> None:
    """Only what cannot come any more is not waited for."""
    play = TwoSessions(CallerAction(1, "background", 1, session="left"))
    play.caller.note_event("status", None, "failed", "right")
    assert play.act() == []
    play.caller.note_event("status", None, "failed", "left")
    assert play.act() == ["left close", "right close"]


def test_a_status_is_looked_for_since_the_sessions_own_item_before() -> None:
    """An item of another session in between takes nothing from it."""
    between = CallerAction(2, "prompt", "a", session="right")
    play = TwoSessions(
        CallerAction(1, "stop", session="left"),
        between,
        CallerAction(3, "turn", 1, session="right"),
        CallerAction(4, "status", "restarting", session="left"),
    )
    assert play.act() == ["left stop", "right prompt"]
    for status in ("restarting", "ready"):
        play.caller.note_event("status", None, status, "left")
    play.caller.note_event("outcome", 1, "completed", "right")
    assert play.act() == ["left close", "right close"]


def test_time_between_items_counts_across_sessions() -> None:
    """`after` is after the item before, whosever it is."""
    play = TwoSessions(
        CallerAction(1, "prompt", "a", at=SECOND, session="left"),
        CallerAction(2, "prompt", "b", after=SECOND, session="right"),
    )
    assert play.act(1) == ["left prompt"]
    assert play.caller.deadline == 2 * SECOND
    assert play.act(2) == ["right prompt"]


def test_each_session_is_answered_by_its_own_handler() -> None:
    """Questions are counted per session, and a slow handler holds no other one up."""
    play = TwoSessions(
        CallerAction(1, "turn", 1, session="left"),
        left=CallerRole(Handler(allowed=True, after=3 * SECOND)),
        right=CallerRole(Handler(allowed=False, after=SECOND)),
    )
    assert [play.caller.note_question(0, name) for name in ("left", "right", "left")] == [1, 1, 2]
    assert play.caller.deadline == SECOND
    assert play.act(1) == ["right answer"]
    answers = [(action.session, action.value) for action in play.caller.act(3 * SECOND)]
    assert answers == [("left", 1), ("left", 2)]


def test_callbacks_of_all_sessions_are_registered_in_the_order_of_their_times() -> None:
    """At one instant by declaration."""
    late, early = HookReaction("late", "Stop", SECOND), HookReaction("early", "Stop")
    play = TwoSessions(
        CallerAction(1, "turn", 1, session="left"),
        left=CallerRole(hooks=(late, early)),
        right=CallerRole(hooks=(early, late)),
    )
    assert play.act() == ["left register", "right register"]
    assert play.act(1) == ["left register", "right register"]


def test_a_deed_in_one_of_several_sessions_says_in_which() -> None:
    """The timeline shows whose prompt it is."""
    shown = CallerAction(3, "prompt", "a", session="left").make_event(0)
    assert shown == CallerActed(0, "caller", "prompt", line=3, session="left")


PROMPT = ("prompt", "a")


@pytest.mark.parametrize(
    ("drive", "needed"),
    [
        ([PROMPT, ("turn", 1), PROMPT], {"prompt": 3}),
        ([PROMPT, PROMPT], {"prompt": 2, "queue": 2}),
        ([PROMPT, ("wait", SECOND), PROMPT], {"prompt": 3, "queue": 3}),
        ([PROMPT, ("cancel", None), PROMPT], {"prompt": 3, "cancel": 2}),
        ([PROMPT, ("cancel", 2), PROMPT], {"prompt": 3, "cancel": 2, "queue": 3}),
        ([PROMPT, ("stop", None), PROMPT], {"prompt": 3, "stop": 2}),
        ([("status", "restarting"), ("background", 1)], {"restart": 1, "background": 2}),
        ([("status", "ready"), ("settle", None)], {}),
    ],
)
def test_a_drive_needs_what_not_every_session_can_do(drive: list[tuple[str, object]], needed: dict[str, int]) -> None:
    """A prompt queues unless the one before has its outcome, or was given up."""
    assert find_needed_capabilities([CallerAction(line, *action) for line, action in enumerate(drive, 1)]) == needed


def test_prompts_of_two_sessions_do_not_queue() -> None:
    """Each session has a queue of its own."""
    assert find_needed_capabilities([CallerAction(1, *PROMPT, session="a"), CallerAction(2, *PROMPT, session="b")]) == {
        "prompt": 2
    }
