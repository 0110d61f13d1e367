"""The drawing of a run's processes, line by line: it is what a reader of a leak looks at first."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pytest_agentproc.record import Record
from pytest_agentproc.verdict import explain_leaks
from pytest_agentproc.verdict._failure_text import draw_tree
from tests.event_lines import add_line

SECOND = 1_000_000_000
SCENARIO: Any = SimpleNamespace(
    path="x.scenario.yaml",
    text="scenario: a tree\nagent: pi\nscript:\n  - spawn: helper\n  - spawn: {id: tool, how: new_session}\n",
)


def record_of(*events: tuple[int, str, dict[str, Any]], **programs: str) -> Record:
    """Write a record whose head has the names of the fakes' programs."""
    record = Record({"programs": programs})
    for at, code, data in events:
        add_line(record, at, code, data)
    return record


def build_start_event(
    name: str, pid: int, parent: str = "supervisor", line: int = 0
) -> tuple[int, str, dict[str, Any]]:
    """Let a process be seen for the first time."""
    return 0, "p", {"process": name, "seen": True, "pid": pid, "parent": parent, "line": line}


def build_given_event(name: str, *argv: str) -> tuple[int, str, dict[str, Any]]:
    """Note the arguments of a start."""
    return 0, "m", {"process": name, "given": {"argv": list(argv)}}


def build_left_event(name: str, state: str, **more: Any) -> tuple[int, str, dict[str, Any]]:
    """Note that a process was left."""
    return 9 * SECOND, "m", {"process": name, "leaked": state, "line": 0, **more}


def test_every_process_is_there_with_its_end_and_its_step_or_command() -> None:
    """Children stand below the parent that they were born to; a command is what was started."""
    record = record_of(
        build_start_event("agent", 4711),
        build_given_event("agent", "--mode", "json", "-p", 'say\n"hi"\x1b'),
        build_start_event("helper", 4712, "agent", 4),
        build_start_event("tool", 4713, "helper", 5),
        (SECOND, "x", {"process": "agent", "code": 0}),
        (SECOND, "x", {"process": "agent", "by": "supervisor", "code": 3}),
        (2 * SECOND, "x", {"process": "tool", "signal": "KILL"}),
        build_left_event("helper", "alive", facts=["2.0 s old in real time", "listens on 127.0.0.1:3000"]),
        agent="pi",
    )
    assert draw_tree(record, SCENARIO) == [
        "agent (pid 4711): gone, code 0, at 1 s          pi --mode json -p 'say\\n\"hi\"\\u001b'",
        "  helper (pid 4712): still alive                x.scenario.yaml:4: - spawn: helper",
        "      2.0 s old in real time, listens on 127.0.0.1:3000",
        "    tool (pid 4713): gone, signal KILL, at 2 s  x.scenario.yaml:5: - spawn: {id: tool, how: new_session}",
    ]


def test_a_stopped_process_and_a_zombie_say_so() -> None:
    """A stopped one looks idle and a zombie dead: both are still there, and a zombie has an end to report."""
    record = record_of(
        build_start_event("agent", 7),
        build_start_event("agent 2", 8),
        build_given_event("agent", "--asked"),
        build_given_event("agent 2", "--asked"),
        (SECOND, "x", {"process": "agent 2", "signal": "TERM"}),
        build_left_event("agent", "stopped", argv=["pi", "--really"]),
        build_left_event("agent 2", "zombie"),
        agent="pi",
    )
    assert draw_tree(record, SCENARIO) == [
        "agent (pid 7): stopped                        pi --really",
        "agent 2 (pid 8): zombie, signal TERM, at 1 s  pi --asked",
    ]


def test_several_sessions_stand_beside_one_another() -> None:
    """Each has its own agent, and a fault leaves ends that were not seen. One did not report its arguments."""
    record = record_of(
        build_start_event("left", 7),
        build_start_event("right", 8),
        build_given_event("right", "--mode", "rpc"),
        left="agent",
        right="pi",
    )
    assert draw_tree(record, SCENARIO) == [
        "left (pid 7): not seen to end",
        "right (pid 8): not seen to end  pi --mode rpc",
    ]


def test_a_long_drawing_keeps_leftovers_and_their_ancestors() -> None:
    """Forty lines are read; the important line may be the last of hundreds."""
    helpers = [build_start_event(f"helper {number}", number, "agent", 4) for number in range(2, 100)]
    ends = [(SECOND, "x", {"process": f"helper {number}", "code": 0}) for number in range(2, 99)]
    record = record_of(build_start_event("agent", 1), *helpers, *ends, build_left_event("helper 99", "alive"))
    lines = draw_tree(record, SCENARIO)
    assert len(lines) == 41
    assert lines[0].startswith("agent (pid 1)")
    assert lines[1].startswith("  helper 2 (pid 2): gone")
    assert lines[39].startswith("  helper 99 (pid 99): still alive")
    assert lines[40] == "... and 59 more, all gone"


def test_more_left_than_there_is_room_for_are_counted() -> None:
    """A fork bomb is no reason to print it."""
    helpers = [build_start_event(f"helper {number}", number, "agent", 4) for number in range(2, 100)]
    record = record_of(
        build_start_event("agent", 1),
        *helpers,
        *(build_left_event(f"helper {number}", "alive") for number in range(2, 100)),
    )
    lines = draw_tree(record, SCENARIO)
    assert (len(lines), lines[40]) == (41, "... and 59 more, 59 of them left")


def test_a_deep_tree_is_drawn_without_recursion() -> None:
    """A chain of a thousand is cut like any other."""
    chain = [build_start_event(f"p{number}", number + 1, f"p{number - 1}", 4) for number in range(1, 2000)]
    lines = draw_tree(record_of(build_start_event("p0", 1), *chain), SCENARIO)
    assert (len(lines), lines[40]) == (41, "... and 1960 more, all gone")


def test_the_text_of_a_leak_has_the_tree() -> None:
    """Between the places and the timeline; a model's process has no pid."""
    record = record_of(
        build_start_event("agent", 0),
        build_start_event("helper", 0, "agent", 4),
        build_given_event("agent"),
        build_left_event("helper", "alive"),
        agent="pi",
    )
    lines = explain_leaks(SCENARIO, record).splitlines()
    assert lines[1:4] == [
        "  the tree at the end:",
        "    agent: not seen to end  pi",
        "      helper: still alive   x.scenario.yaml:4: - spawn: helper",
    ]
