"""The player on a stage that only records what a program does in each grant, without a process."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pytest_agentproc.fake_agents.glob import _matches_glob_bytewise, matches_glob
from pytest_agentproc.fake_agents.player import ScriptPlayer
from pytest_agentproc.fake_agents.program import (
    ARGUMENT_NAMES_BY_OP,
    POLITE_SIGNALS,
    SESSION_ONLY_OPS,
    make_descendant_program,
)
from pytest_agentproc.fake_agents.session import SessionHandler
from tests.unit.bookkeeping import (
    FOR_EVER,
    INT,
    PIPE,
    TERM,
    StagedPlay,
    expect_output,
    number_steps,
    react_step,
    say_step,
)


def test_the_table_of_ops_is_what_is_played() -> None:
    """The author of a compiler or the reader of a program looks there."""
    played = [found[1] for name in dir(ScriptPlayer) if (found := re.fullmatch("_play_(.*)_step", name))]
    heard = [found[1] for name in dir(SessionHandler) if (found := re.fullmatch("play_(.*)_step", name))]
    assert sorted([*played, *heard]) == sorted(ARGUMENT_NAMES_BY_OP)
    assert sorted(heard) == sorted(SESSION_ONLY_OPS)


def test_tracks_run_in_order_of_appearance() -> None:
    """Two tracks that wake at one instant always write in the same order."""
    play = StagedPlay(
        ("meanwhile", number_steps(("sleep", 5), say_step("second"))), ("sleep", 5), say_step("first"), FOR_EVER
    )
    assert play.grant(0) == []
    assert play.player.earliest_wake_instant == 5
    assert play.grant(5) == expect_output("first", "second")


def test_a_grant_goes_on_until_every_track_is_parked() -> None:
    """A wait of no time is one turn for each other track and not another grant."""
    play = StagedPlay(
        ("meanwhile", number_steps(say_step("b"))), ("sleep", 0), say_step("a"), ("sleep", 0), say_step("c"), FOR_EVER
    )
    assert play.grant(0) == expect_output("a", "b", "c")
    assert play.player.earliest_wake_instant is None


def test_the_end_of_the_main_track_cuts_the_others() -> None:
    """The script ends with its main track, even where another is due at the very instant."""
    play = StagedPlay(("meanwhile", number_steps(("sleep", 5), say_step("never"))), ("sleep", 5))
    play.grant(0)
    assert play.grant(5) == [("exit", 0)]


def test_the_end_of_another_track_ends_nothing() -> None:
    """A track beside the main one only stops."""
    play = StagedPlay(("meanwhile", number_steps(say_step("beside"))), ("sleep", 5), say_step("main"))
    assert play.grant(0) == expect_output("beside")
    assert play.grant(5) == [*expect_output("main"), ("exit", 0)]


def test_a_reaction_runs_last_while_the_tracks_go_on() -> None:
    """A signal adds a track; it takes no other one's turn and stops none."""
    play = StagedPlay(react_step(say_step("caught")), ("sleep", 5), say_step("main"), FOR_EVER)
    assert play.grant(0) == [("catch", TERM)]
    assert play.grant(5, TERM) == [("s", TERM), *expect_output("main", "caught")]


def test_a_second_occurrence_restarts_the_reaction() -> None:
    """There is one track for each thing to react to: it begins anew and does not run twice."""
    play = StagedPlay(react_step(say_step("one"), ("sleep", 5), say_step("two")), FOR_EVER)
    play.grant(0)
    assert play.grant(1, TERM) == [("s", TERM), *expect_output("one")]
    assert play.grant(4, TERM) == [("s", TERM), *expect_output("one")]
    assert play.grant(6) == []
    assert play.grant(9) == expect_output("two")


def test_two_signals_at_once_react_in_their_order() -> None:
    """Both are heard before any track moves."""
    play = StagedPlay(react_step(say_step("term")), react_step(say_step("int"), to=INT), FOR_EVER)
    play.grant(0)
    assert play.grant(1, INT, TERM) == [("s", INT), ("s", TERM), *expect_output("int", "term")]


def test_a_later_when_replaces_an_earlier_one() -> None:
    """A script may change its mind; from then on only the last word counts."""
    play = StagedPlay(react_step(say_step("old")), ("sleep", 5), react_step(say_step("new")), FOR_EVER)
    play.grant(0)
    assert play.grant(1, TERM) == [("s", TERM), *expect_output("old")]
    play.grant(5)
    assert play.grant(6, TERM) == [("s", TERM), *expect_output("new")]


def test_a_reaction_of_nothing_ignores() -> None:
    """The signal is caught and heard, and that is all."""
    play = StagedPlay(react_step(), FOR_EVER)
    assert play.grant(0) == [("catch", TERM)]
    assert play.grant(1, TERM) == [("s", TERM)]
    assert play.player.earliest_wake_instant is None


@pytest.mark.parametrize(("until", "drops"), [(6, [2, 4, 6]), (5, [2, 4]), (1, []), (None, [2, 4, 6, 8])])
def test_a_drip_includes_its_end(until: int | None, drops: list[int]) -> None:
    """The first drop comes after one interval, and one that falls on the end still falls."""
    play = StagedPlay(("drip", "stdout", b".", None, 2, until), FOR_EVER)
    assert [now for now in range(9) if play.grant(now)] == drops


def test_stdin_is_read_unless_the_script_stops_it() -> None:
    """`stdin: stop` leaves the bytes in the pipe, `stdin: read` takes them up again."""
    play = StagedPlay(("stdin", "stop"), ("sleep", 5), ("stdin", "read"), FOR_EVER)
    assert play.player.wanted_streams == (True, False, False)
    play.grant(0)
    assert play.player.wanted_streams == (False, False, False)
    assert play.grant(1, stdin=b"late") == []
    assert play.grant(5) == []
    assert play.player.wanted_streams == (True, False, False)
    assert play.grant(6) == [("i", b"late")]


def test_a_closed_stdin_is_read_no_more() -> None:
    """Nothing can wake a process through a stream that it has closed."""
    play = StagedPlay(("close", "stdin"), FOR_EVER)
    assert play.grant(0) == [("close", "stdin")]
    assert play.player.wanted_streams == (False, False, False)


def test_waiting_for_the_end_of_stdin_takes_all_bytes_before_it() -> None:
    """The end comes after the last byte; afterwards stdin wakes no process."""
    play = StagedPlay(("await_eof",), say_step("over"), FOR_EVER)
    play.grant(0)
    assert play.grant(0, stdin=b"prompt") == [("i", b"prompt")]
    assert play.grant(0, stdin=b"") == [("i", b""), *expect_output("over")]
    assert play.player.wanted_streams == (False, False, False)


def test_a_reaction_to_the_end_of_stdin_runs() -> None:
    """The end is an event like a signal."""
    play = StagedPlay(("when", "eof", None, number_steps(say_step("bye"))), FOR_EVER)
    play.grant(0)
    assert play.grant(0, stdin=b"") == [("i", b""), *expect_output("bye")]


@pytest.mark.parametrize("chunks", [(b"no\ngo on\n",), (b"no\ngo", b" on\r\n"), (b"go on", b"")])
def test_waiting_for_a_line_of_stdin_takes_whole_lines(chunks: tuple[bytes, ...]) -> None:
    """The pattern is a glob against a line, however it arrived and whether or not it was ended."""
    play = StagedPlay(("await_stdin", "go*n"), say_step("gone"), FOR_EVER)
    play.grant(0)
    for chunk in chunks[:-1]:
        assert play.grant(0, stdin=chunk) == [("i", chunk)]
    assert play.grant(0, stdin=chunks[-1]) == [("i", chunks[-1]), *expect_output("gone")]


def test_a_line_is_waited_for_once() -> None:
    """A line and all before it are used up by the wait that they end."""
    play = StagedPlay(("await_stdin", "go"), say_step("one"), ("await_stdin", "*"), say_step("two"), FOR_EVER)
    play.grant(0)
    assert play.grant(0, stdin=b"x\ngo\n")[1:] == expect_output("one")
    assert play.grant(0, stdin=b"y\n")[1:] == expect_output("two")


@pytest.mark.parametrize("signum", POLITE_SIGNALS)
def test_lingering_until_a_signal_ends_with_any_polite_one(signum: int) -> None:
    """The script continues, and from then on the signals kill again except for those with a reaction."""
    play = StagedPlay(react_step(to=INT), ("await_signal",), say_step("bye"), FOR_EVER)
    assert play.grant(0)[1:] == [("catch", each) for each in POLITE_SIGNALS]
    assert play.grant(5) == []
    released = [("release", each) for each in POLITE_SIGNALS if each != INT]
    assert play.grant(6, signum) == [("s", signum), *released, *expect_output("bye")]


def test_a_signal_before_the_lingering_does_not_end_it() -> None:
    """Only what comes while it lingers counts."""
    play = StagedPlay(react_step(), ("sleep", 5), ("await_signal",), say_step("bye"))
    play.grant(0)
    play.grant(1, TERM)
    assert ("exit", 0) not in play.grant(5)
    assert play.grant(6, TERM)[-1] == ("exit", 0)


TOOL = ("event", "tool", {"id": "t", "name": "bash", "input": {}})
DONE = ("event", "tool_done", {"id": "t", "output": "", "error": None})
CHILD = {"id": "a", "how": "new_session", "inherits": [], "ignores_signals": False, "for": None}
BASH = ("spawn", CHILD, None)
AS_REAL = [
    pytest.param([BASH], {TERM: (143, True, "")}, [("exit", 143)], id="no tool runs"),
    pytest.param([TOOL, BASH], {TERM: (143, True, "")}, [("kill", "a", 9), ("exit", 143)], id="a tool runs"),
    pytest.param([TOOL, BASH], {TERM: (143, False, "")}, [("exit", 143)], id="a tool lives on"),
    pytest.param([TOOL, BASH, DONE], {TERM: (143, True, "")}, [("exit", 143)], id="the tool is done"),
    pytest.param(
        [TOOL, ("spawn", {**CHILD, "how": "daemon"}, None)], {TERM: (143, True, "")}, [("exit", 143)], id="a daemon"
    ),
    pytest.param([TOOL, BASH], {TERM: (None, False, "")}, [], id="the signal is ignored"),
    pytest.param([react_step(("exit", 3))], {TERM: (143, True, "")}, [("exit", 3)], id="the script reacts"),
    pytest.param([react_step()], {TERM: (143, True, "")}, [], id="the script ignores it"),
    pytest.param([react_step(("die", 15))], {TERM: (143, True, "")}, [("die", 15)], id="the script dies of it"),
]


@pytest.mark.parametrize(("steps", "signals", "done"), AS_REAL)
def test_a_signal_has_the_effect_that_it_has_on_the_real_cli(
    steps: list[tuple[Any, ...]], signals: dict[int, Any], done: list[tuple[Any, ...]]
) -> None:
    """Unless the script reacts; the process that a running tool started is killed."""
    program = {"dialect": "gemini", "mode": "stream", "code": 0, "encoder": [_GEMINI], "signals": signals}
    play = StagedPlay(program={**program, "steps": number_steps(*steps, FOR_EVER)})
    assert ("catch", TERM) in [*play.book.done, *play.grant(0)]
    assert play.grant(1, TERM) == [("s", TERM), *done]


_GEMINI = "pytest_agentproc.fake_agents.dialects.gemini"


def test_lingering_until_a_signal_takes_it_before_the_real_reaction() -> None:
    """And from then on the signal has its real effect again."""
    program = {"dialect": "raw", "code": 0, "signals": {TERM: (143, False, "")}}
    play = StagedPlay(program={**program, "steps": number_steps(("await_signal",), say_step("bye"), FOR_EVER)})
    play.grant(0)
    assert play.grant(1, TERM) == [("s", TERM), ("catch", TERM), ("release", 2), ("release", 1), *expect_output("bye")]
    assert play.grant(2, TERM) == [("s", TERM), ("exit", 143)]


def test_a_descendant_dies_of_signals_as_any_program() -> None:
    """The real reactions are those of the CLI, and not those of its tools."""
    program = {"steps": [], "signals": {TERM: (143, False, "")}}
    assert make_descendant_program(program, {**CHILD, "line": 1}, None)["signals"] == {}


def test_writing_to_nobody_dies_of_the_pipe_signal() -> None:
    """So does any program that leaves the signal alone."""
    assert StagedPlay(say_step("a"), say_step("b"), broken={"stdout"}).grant(0) == [("die", PIPE)]


def test_a_reaction_to_a_broken_pipe_replaces_the_death() -> None:
    """The track that wrote is at its end; the reaction decides what comes."""
    play = StagedPlay(
        ("when", "epipe", None, number_steps(("exit", 9))), say_step("a"), say_step("b"), broken={"stdout"}
    )
    assert play.grant(0) == [("exit", 9)]


def test_a_broken_pipe_that_is_ignored_lets_the_track_go_on() -> None:
    """Its words are lost; later words are not."""
    assert StagedPlay(("when", "epipe", None, []), say_step("a"), ("exit", 4), broken={"stdout"}).grant(0) == [
        ("exit", 4)
    ]


def test_a_reaction_that_writes_to_nobody_too_dies_of_it() -> None:
    """It would else start itself again and again, in one instant."""
    play = StagedPlay(("when", "epipe", None, number_steps(say_step("x"))), say_step("a"), broken={"stdout"})
    assert play.grant(0) == [("die", PIPE)]


def test_an_agent_that_needs_a_terminal_ends_without_one() -> None:
    """A CLI for humans alone does so when a program starts it with pipes."""
    error = ("stderr", b"error: stdin is not a terminal\n")
    assert StagedPlay(("need_terminal",), say_step("a")).grant(0) == [error, ("exit", 1)]


@pytest.mark.parametrize(("step", "end"), [(("exit", 3), ("exit", 3)), (("die", 9), ("die", 9))])
def test_an_end_in_any_track_ends_the_program(step: tuple[str, int], end: tuple[str, int]) -> None:
    """Nothing after it happens, in no track."""
    play = StagedPlay(("meanwhile", number_steps(step)), ("meanwhile", number_steps(say_step("never"))), FOR_EVER)
    assert play.grant(0) == [end]


def test_an_error_result_makes_the_exit_code_where_the_exit_is_the_result() -> None:
    """In a dialect of plain lines nothing else could report it."""
    fields = {"text": "broken", "is_error": True, "usage": None}
    assert StagedPlay(("result", fields)).grant(0) == [*expect_output("broken"), ("exit", 1)]


def test_descendants_are_numbered_and_play_what_they_are_given() -> None:
    """A script of its own, or living on for its time; a deaf one first ignores the polite signals."""
    plain = {"id": "a", "how": "same_group", "inherits": [], "ignores_signals": False, "for": 7}
    deaf = {**plain, "id": "b", "ignores_signals": True}
    play = StagedPlay(("spawn", plain, None), ("spawn", deaf, number_steps(say_step("x"))), FOR_EVER)
    ignoring: list[tuple[Any, ...]] = [("when", ("signal", signum, [])) for signum in POLITE_SIGNALS]
    assert play.grant(0) == [
        ("spawn", 0, "a", [("sleep", (7,))]),
        ("spawn", 1, "b", [*ignoring, ("say", ("x", None))]),
    ]


def test_a_child_is_killed_by_its_name() -> None:
    """The stage knows its pid, and whether it lives."""
    assert StagedPlay(("kill", "a", 9), FOR_EVER).grant(0) == [("kill", "a", 9)]


HOPPING = {"id": "h", "how": "refork", "inherits": [], "ignores_signals": False, "for": 5, "every": 2, "heads": 2}


def test_what_reforks_is_spawned_head_by_head_and_follows_itself_until_its_time_is_over() -> None:
    """Each lives for its interval, the last for what is left; who follows leads a session as its parent exits."""
    play = StagedPlay(("sleep", 1), ("spawn", HOPPING, None), FOR_EVER)
    play.grant(0)
    begun = {**HOPPING, "line": 2, "until": 6}
    assert play.grant(1) == [("spawn", index, "h", [("refork", (begun,))]) for index in range(2)]
    for born, dies, is_followed in ((1, 3, True), (3, 5, True), (5, 6, False)):
        hop = StagedPlay(("refork", begun))
        hop.grant(born)
        assert hop.player.earliest_wake_instant == dies
        next_hop = ("spawn", 0, "h", [("refork", ({**begun, "how": "new_session"},))])
        assert hop.grant(dies) == [*([next_hop] if is_followed else []), ("exit", 0)]


def test_what_reforks_for_ever_never_stops() -> None:
    """Only a signal ends it."""
    hop = StagedPlay(("refork", {**HOPPING, "line": 2, "until": None}))
    hop.grant(10**12)
    assert [act[0] for act in hop.grant(10**12 + 2)] == ["spawn", "exit"]


def test_a_deaf_descendant_is_deaf_from_its_birth() -> None:
    """A signal may come before its first grant, above all if it is stopped until then."""
    spawned = make_descendant_program(
        {"dialect": "raw"}, {"id": "d", "line": 1, "inherits": [], "ignores_signals": True, "for": None}, None
    )
    play = StagedPlay(program=spawned)
    assert play.book.done == [("catch", signum) for signum in POLITE_SIGNALS]
    assert play.grant(0, TERM)[0] == ("s", TERM)


def test_a_cleared_environment_is_empty_for_the_program_too() -> None:
    """The bytes that a dialect reads from it are not there, for its children neither."""
    fields = {"id": "d", "line": 1, "inherits": [], "ignores_signals": False, "for": None, "clear_env": True}
    assert make_descendant_program({"dialect": "raw", "environ": {b"A": b"1"}}, fields, None)["environ"] == {}


def test_a_busy_track_waits_like_a_silent_one_and_says_that_it_burns() -> None:
    """In virtual time a burnt core is only a duration; in real time the stage has to know."""
    play = StagedPlay(("burn_cpu", 5), say_step("cool"))
    play.grant(0)
    assert (play.player.is_burning_cpu, play.player.earliest_wake_instant) == (True, 5)
    assert play.grant(5) == [*expect_output("cool"), ("exit", 0)]


def test_an_end_is_waited_for() -> None:
    """Every event wakes a track that waits for a process; it continues once that process has ended."""
    play = StagedPlay(("await_exit", "x"), say_step("gone"), FOR_EVER)
    assert play.grant(0) == [("watch", "x")]
    assert play.grant(1) == []
    play.book.gone.add("x")
    assert play.grant(2) == expect_output("gone")


@pytest.mark.parametrize(
    ("pattern", "fits", "fits_not"),
    [
        ("", [""], ["a"]),
        ("ab", ["ab"], ["", "a", "abc", "xab"]),
        ("*", ["", "a", "ab"], []),
        ("a*", ["a", "ab"], ["", "ba"]),
        ("*a", ["a", "ba", "aba"], ["", "ab"]),
        ("ab*ba", ["abba", "abxba"], ["aba", "ab", "ba"]),
        ("*a*b*", ["ab", "xaxbx", "aab"], ["ba", "a"]),
        ("a*bc*c", ["abcc", "abcbcc"], ["abc", "acbc"]),
        ("?*b", ["ab", "xxb", "bb"], ["b", "a"]),
    ],
)
def test_a_pattern_fits_a_whole_line_whichever_way_it_is_looked_for(
    pattern: str, fits: list[str], fits_not: list[str]
) -> None:
    """A pattern without single bytes that are any is looked for part by part; both ways say the same."""
    for lines, wanted in ((fits, True), (fits_not, False)):
        for line in lines:
            assert matches_glob(pattern, line.encode()) is wanted, line
            assert _matches_glob_bytewise(pattern.encode(), line.encode()) is wanted, line


def test_lines_that_came_before_anybody_asked_for_one_are_whole() -> None:
    """A line's end may come in two pieces, and the awaited line may have been there long before."""
    play = StagedPlay(("await_eof",), ("await_stdin", "one"), say_step("1"), ("await_stdin", "last"), say_step("2"))
    play.grant(0, stdin=b"zero\r\none\r")
    play.grant(0, stdin=b"\nlast")
    assert play.grant(0, stdin=b"")[-3:] == [*expect_output("1", "2"), ("exit", 0)]
