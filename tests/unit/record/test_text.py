"""The timeline as plain text: both sides, jumps, repetitions, and the steps that caused what is seen."""

from __future__ import annotations

import textwrap
from types import SimpleNamespace
from typing import Any

from pytest_agentproc.record import Record, render_text
from tests.event_lines import add_line

SECOND = 1_000_000_000
SCENARIO = SimpleNamespace(
    text=textwrap.dedent(
        """\
        scenario: a byte a minute
        script:
          - say: hello
          - spawn: {id: child1, inherits: [stdout]}
          - drip: {stdout: ".", every: 60s, for: 240s}
          - wait_for: signal
          - exit: 143
        """
    )
)


def build_record(*events: tuple[int, str, dict[str, Any]]) -> Record:
    """Make a record of events that are written by hand; the process is the agent unless it is named."""
    record = Record()
    for at, code, data in events:
        add_line(record, at, code, {"process": "agent", **data})
    return record


def draw_timeline(record: Record, scenario: Any = SCENARIO) -> str:
    """Draw a timeline with a line break in front, as the expectations have it."""
    return "\n" + render_text(record, scenario) + "\n"


def build_timer_event(**what: Any) -> dict[str, Any]:
    """Tell something of the inactivity timer."""
    return {"process": "supervisor", "timer": "inactivity_timeout", **what}


def record_whole_run() -> Record:
    """Play an agent that drips, falls silent, and leaves a child that holds its stdout."""
    events: list[tuple[int, str, dict[str, Any]]] = [
        (0, "p", {"seen": True, "pid": 7, "parent": "supervisor", "line": 0}),
        (0, "t", build_timer_event(armed=120 * SECOND)),
        (0, "i", {"by": "supervisor", "closed": True}),
        (0, "i", {"eof": True}),
        (0, "m", {"line": 3, "step": "say"}),
        (0, "o", {"bytes": b"hello\n", "line": 3}),
        (0, "o", {"by": "supervisor", "size": 6}),
        (0, "m", {"line": 4, "step": "spawn"}),
        (0, "p", {"process": "child1", "seen": True, "pid": 8, "parent": "agent", "line": 4}),
        (0, "m", {"line": 5, "step": "drip"}),
    ]
    for at in range(60, 300, 60):
        events += [
            (at * SECOND, "o", {"bytes": b".", "line": 5}),
            (at * SECOND, "o", {"by": "supervisor", "size": 1}),
            (at * SECOND, "t", build_timer_event(armed=(at + 120) * SECOND)),
        ]
    events += [
        (240 * SECOND, "m", {"line": 6, "step": "linger"}),
        (360 * SECOND, "t", build_timer_event(fired=True)),
        (360 * SECOND, "s", {"process": "tree", "by": "supervisor", "signal": "TERM"}),
        (360 * SECOND, "s", {"signal": "TERM"}),
        (360 * SECOND, "m", {"line": 7, "step": "exit"}),
        (360 * SECOND, "x", {"code": 143}),
        (360 * SECOND, "o", {"by": "supervisor", "eof": True}),
        (360 * SECOND, "x", {"by": "supervisor", "code": 143}),
        (360 * SECOND, "m", {"process": "supervisor", "outcome": "inactive"}),
        (362 * SECOND, "s", {"process": "tree", "by": "supervisor", "signal": "KILL"}),
        (362 * SECOND, "x", {"process": "child1", "signal": "KILL"}),
        (362 * SECOND, "m", {"process": "supervisor", "returned": True}),
    ]
    return build_record(*events)


def test_a_whole_run_reads_from_top_to_bottom() -> None:
    """This is what a QA person sees under a failure; every word of it is the product."""
    assert draw_timeline(record_whole_run()) == (
        r"""
 time  supervisor                             agent and descendants
  0 s                                         starts
       timer inactivity_timeout due at 120 s
       closes stdin
                                              reads the end of stdin
       reads stdout, 6 B                      stdout, 6 B "hello\n"  [line 3]
                                              child1: starts  [line 4]
                                              drip: {stdout: ".", every: 60s, for: 240s}  [line 5]
       ~~~ 60 s pass ~~~
 60 s  reads stdout, 1 B                      stdout, 1 B "."  [line 5]
       timer inactivity_timeout due at 180 s
       ... the same 2 times more, every 60 s, the last at 180 s
       ~~~ 60 s pass ~~~
240 s  reads stdout, 1 B                      stdout, 1 B "."  [line 5]
       timer inactivity_timeout due at 360 s
                                              wait_for: signal  [line 6]
       ~~~ 120 s pass ~~~
360 s  timer inactivity_timeout FIRES
       TERM ==> tree
                                              catches TERM
                                              exits with code 143  [line 7]
       sees the end of stdout
       sees agent: exits with code 143
       OUTCOME inactive
       ~~~ 2 s pass ~~~
362 s  KILL ==> tree
                                              child1: dies of KILL
       RETURNS
"""
    )


def test_every_kind_of_event_has_words() -> None:
    """An event without words would be a hole in the story."""
    record = build_record(
        (0, "o", {"closed": True}),
        (0, "m", {"kept": "stdin"}),
        (0, "e", {"bytes": b"\xff\n", "line": 2}),
        (0, "e", {"broken": True}),
        (0, "i", {"by": "supervisor", "size": 2048}),
        (0, "i", {"bytes": b"hi\n"}),
        (0, "i", {"by": "supervisor", "broken": True}),
        (0, "x", {"unknown": True}),
        (0, "p", {"process": "child3", "gone": True}),
        (0, "t", build_timer_event(off=True)),
        (0, "m", {"process": "child1", "leaked": "alive", "line": 4}),
        (0, "m", {"process": "child2", "leaked": "zombie", "line": 5}),
        (0, "m", {"process": "child3", "leaked": "stopped", "line": 5}),
        (0, "m", {"process": "supervisor", "stray": "TERM", "to": "process", "who": "sleep", "pid": 7, "place": "s:3"}),
        (0, "m", {"process": "supervisor", "stray": "TERM", "to": "freed", "who": "agent", "pid": 8, "place": "s:4"}),
        (0, "m", {"process": "supervisor", "stray": "KILL", "to": "own group", "who": "", "pid": 0, "place": "s:5"}),
        (0, "m", {"process": "supervisor", "stray": "HUP", "to": "decoy", "who": "in a session of its own"}),
        (0, "m", {"process": "supervisor", "fault": "deadlock", "message": "nobody can move\nagent waits for stdin"}),
    )
    assert draw_timeline(record) == (
        r"""
time  supervisor                                             agent and descendants
 0 s                                                         closes stdout
                                                             its stdin is closed, and no process sees that
                                                             stderr, 2 B "�\n"  [line 2]
                                                             finds stderr broken
      writes stdin, 2 KiB
                                                             reads stdin, 3 B "hi\n"
      finds stdin broken
                                                             ends, nobody knows how
                                                             child3: is gone
      timer inactivity_timeout off
                                                             child1: LEAKED: still alive  [line 4]
                                                             child2: LEAKED: zombie  [line 5]
                                                             child3: LEAKED: stopped  [line 5]
      TERM ==> process 7 (sleep), held back (s:3)
      TERM ==> 8, the pid that agent had (s:4)
      KILL ==> the process group of pytest, held back (s:5)
      HUP ==> a decoy process in a session of its own
      DEADLOCK: nobody can move
      agent waits for stdin
"""
    )


def test_what_two_steps_write_in_one_instant_is_shown_apart() -> None:
    """The normal form joins them; a reader wants to know which line wrote what."""
    record = build_record((0, "o", {"bytes": b"a", "line": 3}), (0, "o", {"bytes": b"b", "line": 4}))
    assert [line.split()[-1] for line in render_text(record).splitlines()[1:]] == ["3]", "4]"]


def test_a_step_without_its_file_is_shown_by_its_name() -> None:
    """A record outlives the file of its scenario."""
    assert "linger  [line 6]" in render_text(build_record((0, "m", {"line": 6, "step": "linger"})))


def test_a_flood_is_one_short_line() -> None:
    """No reader wants 256 KiB under a failure."""
    record = build_record(*[(0, "o", {"bytes": b"x" * 4096, "line": 3}) for _ in range(64)])
    (line,) = render_text(record).splitlines()[1:]
    assert line.strip() == '0 s              stdout, 256 KiB "' + "x" * 29 + '..."  [line 3]'


def test_an_irregular_repetition_says_no_period() -> None:
    """A period that is not there would be a lie."""
    record = build_record(*[(at * SECOND, "o", {"bytes": b".", "line": 5}) for at in (1, 2, 4)])
    assert "... the same 2 times more, the last at 4 s" in render_text(record)


def test_a_short_pause_is_no_jump() -> None:
    """Only long silences are worth a line of their own."""
    record = build_record((0, "s", {"signal": "TERM"}), (999_999_999, "s", {"signal": "INT"}))
    assert "pass" not in render_text(record)


def test_a_very_long_run_keeps_its_beginning_and_its_end() -> None:
    """The failure is at the end, its cause is at the beginning."""
    record = build_record(*[(at, "o", {"bytes": b"%d" % at, "line": 5}) for at in range(1000)])
    lines = render_text(record).splitlines()
    assert len(lines) == 161
    assert lines[80].strip() == "... 841 lines left out ..."
    assert '"999"' in lines[-1]


def test_output_is_shown_with_the_step_that_wrote_it() -> None:
    """A fake says which step it begins, not with every byte which step it came from."""
    record = build_record(
        (0, "m", {"line": 3, "step": "say"}),
        (0, "o", {"bytes": b"a"}),
        (0, "m", {"line": 5, "step": "drip"}),
        (60, "o", {"bytes": b"b"}),
    )
    assert [line.split()[-1] for line in render_text(record).splitlines()[1:]] == ["3]", "5]", "5]"]


def test_output_of_two_tracks_names_a_step_only_where_it_is_sure() -> None:
    """A wrong line would be worse than none."""
    record = build_record(
        (0, "m", {"line": 3, "step": "meanwhile"}),
        (0, "m", {"line": 4, "step": "drip"}),
        (0, "m", {"line": 5, "step": "say"}),
        (0, "o", {"bytes": b"a"}),
        (0, "m", {"line": 6, "step": "silence"}),
        (60, "o", {"bytes": b"b"}),
    )
    assert [line.split("  ")[-1] for line in render_text(record).splitlines()[3:]] == [
        "[line 5]",
        "[line 6]",
        'stdout, 1 B "b"',
    ]


def test_the_echo_of_a_death_is_not_shown() -> None:
    """`is gone` says nothing after `exits`; alone it is the only word on an end that was not seen."""
    record = build_record(
        (0, "x", {"code": 0}), (0, "p", {"gone": True}), (1, "p", {"process": "child1", "gone": True})
    )
    assert [line.split("  ")[-1] for line in render_text(record).splitlines()[1:]] == [
        "exits with code 0",
        "child1: is gone",
    ]


def test_a_descendant_without_a_script_is_its_spawn_step() -> None:
    """The steps that make it deaf and let it live are in no scenario."""
    record = build_record(
        (0, "m", {"line": 4, "step": "spawn"}),
        (0, "m", {"line": 5, "step": "sleep"}),
        (0, "p", {"process": "child1", "seen": True, "pid": 8, "parent": "agent", "line": 4}),
        (0, "m", {"process": "child1", "line": 4, "step": "when"}),
        (0, "m", {"process": "child1", "line": 4, "step": "sleep"}),
    )
    assert [line.split("  ")[-2:] for line in render_text(record).splitlines()[1:]] == [
        ["sleep", "[line 5]"],
        ["child1: starts", "[line 4]"],
    ]


def test_an_agent_closes_its_input() -> None:
    """It reads no more then, and its bytes have no reader to show."""
    assert draw_timeline(build_record((0, "i", {"closed": True, "line": 5}))) == (
        """
time  supervisor  agent and descendants
 0 s              closes stdin  [line 5]
"""
    )
