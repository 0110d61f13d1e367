"""The check on unrelated processes, in words: what was signalled, by whom, and why that is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_agentproc.errors import Deadlock
from pytest_agentproc.record import Record
from pytest_agentproc.verdict import Verdict, choose_overall_verdict
from tests.event_lines import add_line
from tests.unit.handmade import Expected, judge_events, judge_one_key

if TYPE_CHECKING:
    from tests.unit.handmade import Events


def build_stray_signal(to: str, **more: Any) -> Events:
    """Note one signal that was not meant for the run."""
    data = {"process": "supervisor", "stray": "TERM", "to": to, "who": "", "pid": 7, "place": "s.py:3", **more}
    return [(9, "m", data)]


@pytest.mark.parametrize(
    ("events", "observed", "hint"),
    [
        (
            build_stray_signal("everything", pid=-1),
            "TERM to every process there is, sent by s.py:3",
            "kill(-1), or a group of number 1, reaches every process that this user may signal; nobody got it",
        ),
        (
            build_stray_signal("own group"),
            "TERM to the process group of pytest, sent by s.py:3",
            "pytest is in it and so are other tests, and nobody got it: start the agent in a session of its own",
        ),
        (
            build_stray_signal("itself"),
            "TERM to pytest itself, sent by s.py:3",
            "it has no handler of the supervisor's for that, and did not get it",
        ),
        (
            build_stray_signal("process", who="sleep"),
            "TERM to process 7 (sleep), sent by s.py:3",
            "it is no part of this run, and did not get it: signal what was started, not what is named alike",
        ),
        (
            build_stray_signal("reused", who="sleep, once agent"),
            "TERM to process 7 (sleep, once agent), sent by s.py:3",
            "it is no part of this run, and did not get it: a pid is anybody's once its process is reaped",
        ),
        (
            build_stray_signal("group", who="sleep"),
            "TERM to process group 7 (sleep), sent by s.py:3",
            "nobody in it is a part of this run, and nobody got it: a group's number is free once all in it are gone",
        ),
        (
            [(9, "m", {"process": "supervisor", "stray": "KILL", "to": "decoy", "who": "in a session of its own"})],
            "KILL to a decoy process in a session of its own",
            "a process beside the run, which nobody has a reason to signal",
        ),
    ],
    ids=["everything", "own group", "itself", "process", "reused", "group", "decoy"],
)
def test_a_harmed_bystander_fails_without_a_word_in_the_file(events: Events, observed: str, hint: str) -> None:
    """Like a leak, it needs no request; it says who it was, where the signal came from, and what to do."""
    (row,) = judge_events(events=events)
    assert (row.key, row.line, row.wanted, row.verdict) == ("unrelated_processes", 0, "unharmed", Verdict.FAILED)
    assert (row.seen, row.hint) == (observed, hint)


def test_a_file_may_state_it() -> None:
    """So that a defect can be said to turn it red."""
    assert judge_one_key("unrelated_processes", "unharmed") == ("passed", "unharmed", "unharmed", "")
    assert judge_one_key("unrelated_processes", "unharmed", events=build_stray_signal("itself"))[0] == "failed"


def test_a_signal_for_a_pid_that_is_free_harms_nobody() -> None:
    """It might have hit the next process of that pid: it is reported, and decides nothing."""
    events = build_stray_signal("freed", who="agent")
    assert judge_events(events=events) == ()
    assert judge_one_key("unrelated_processes", "unharmed", events=events)[2] == (
        "unharmed; TERM to 7, the pid that agent had, sent by s.py:3"
    )


def test_many_are_counted() -> None:
    """A loop that kills is one mistake."""
    (row,) = judge_events(events=build_stray_signal("itself") * 5)
    assert row.seen == "; ".join(["TERM to pytest itself, sent by s.py:3"] * 3 + ["2 more"])
    assert row.hint.count(";") == 0


def test_it_is_seen_through_a_fault() -> None:
    """A run that ended in a deadlock may have killed a process before; the deadlock fails it for itself."""
    rows = judge_events(events=build_stray_signal("itself"), fault=Deadlock("nobody can move"))
    assert [(row.key, row.verdict) for row in rows] == [
        ("outcome", Verdict.FAILED),
        ("unrelated_processes", Verdict.FAILED),
    ]
    stated = judge_events(
        Expected("unrelated_processes", "unharmed"),
        events=build_stray_signal("itself"),
        fault=Deadlock("nobody can move"),
    )
    assert [(row.key, row.line, row.verdict) for row in stated] == [
        ("outcome", 0, Verdict.FAILED),
        ("unrelated_processes", 9, Verdict.FAILED),
    ]
    assert choose_overall_verdict(rows) is Verdict.FAILED


def test_places_and_pids_make_no_other_run() -> None:
    """The digest of a run is the same in every checkout; whom it hit counts."""

    def digest(**more: Any) -> str:
        record = Record()
        ((at, code, data),) = build_stray_signal("process", **more)
        add_line(record, at, code, data)
        return record.digest()

    assert digest(pid=8, place="elsewhere.py:1") == digest()
    assert digest(who="cat") != digest()
