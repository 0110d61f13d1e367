"""A player of a session, on a stage that only records: its answers with their times, and its waits."""

from __future__ import annotations

import json
from typing import Any

from pytest_agentproc.clock import NextMove
from pytest_agentproc.fake_agents.program import MAX_WRITE_BYTES
from pytest_agentproc.harness import InMemoryModel
from pytest_agentproc.record import Record
from pytest_agentproc.scenario import loads
from pytest_agentproc.vocabulary import Policy
from tests.unit.bookkeeping import StagedPlay

SECOND = 1_000_000_000


def build_session_play(steps: str, agent: str = "{dialect: pi, mode: rpc, version: 0.73}", **stage: Any) -> StagedPlay:
    """Put the player of a session's script on a stage."""
    scenario = loads(f"scenario: a\nagent: {agent}\nscript: [{steps}]\n")
    return StagedPlay(program=scenario.bind(Policy()).program, **stage)


def build_request(kind: str, number: int, **more: Any) -> bytes:
    """Make a command of pi's."""
    return json.dumps({"id": number, "type": kind, **more}).encode() + b"\n"


def build_prompt(number: int, text: str = "hi") -> bytes:
    """Make a prompt."""
    return build_request("prompt", number, message=text)


def list_written_events(done: list[tuple[Any, ...]]) -> list[str]:
    """Name the events that were written, and the other actions."""
    data = b"".join(act[1] for act in done if act[0] == "stdout")
    names = [json.loads(line) for line in data.splitlines()]
    events = [f"response {message['id']}" if message["type"] == "response" else message["type"] for message in names]
    return [*events, *(f"{act[0]} {act[1]}" for act in done if act[0] in ("exit", "stderr"))]


ACCEPTED = ["agent_start", "turn_start", "message_start", "message_end"]
ANSWERED = [
    "message_start",
    "message_update",
    "message_update",
    "message_update",
    "message_end",
    "turn_end",
    "agent_end",
]


def test_a_request_is_answered_in_the_grant_in_which_it_is_read() -> None:
    """The script may do anything: it may be silent for an hour."""
    playing = build_session_play("{silence: 1h}, {wait_for: prompt 1}, {answer: done}")
    assert list_written_events(playing.grant(0)) == []
    assert list_written_events(playing.grant(5, stdin=build_prompt(1) + build_prompt(2))) == [
        "response 1",
        *ACCEPTED,
        "response 2",
    ]
    assert list_written_events(playing.grant(3600 * SECOND)) == ANSWERED


def test_answers_come_before_the_output_of_the_script_at_the_same_instant() -> None:
    """A prompt is accepted before it is answered."""
    playing = build_session_play("{wait_for: prompt 1}, {answer: done}, {wait_for: prompt 2}, {answer: more}")
    playing.grant(0)
    assert list_written_events(playing.grant(1, stdin=build_prompt(1))) == ["response 1", *ACCEPTED, *ANSWERED]
    assert list_written_events(playing.grant(2, stdin=build_prompt(2))) == ["response 2", *ACCEPTED, *ANSWERED]


def test_a_session_lives_on_when_its_script_is_over_until_stdin_ends() -> None:
    """Then it exits 0; requests are answered until then."""
    playing = build_session_play("{wait_for: prompt 1}, {answer: done}")
    playing.grant(0)
    playing.grant(1, stdin=build_prompt(1))
    assert list_written_events(playing.grant(2, stdin=build_request("abort", 2))) == ["response 2"]
    assert list_written_events(playing.grant(3, stdin=b"")) == ["exit 0"]


def test_the_end_of_a_script_cuts_what_runs_beside_it_but_no_reaction() -> None:
    """The session serves on, and its script no longer."""
    beside = "{meanwhile: [{drip: {say: x, every: 5s}}]}, {when: cancel, do: [{acknowledge: cancel}]}"
    playing = build_session_play(f"{beside}, {{silence: 7s}}")
    playing.grant(0)
    assert list_written_events(playing.grant(5 * SECOND)) == ANSWERED[:5]
    untils = [playing.player.earliest_wake_instant]
    playing.grant(7 * SECOND)
    assert [*untils, playing.player.earliest_wake_instant] == [7 * SECOND, None]
    assert (
        list_written_events(playing.grant(8 * SECOND, stdin=build_prompt(1) + build_request("abort", 2)))[-1]
        == "response 2"
    )


def test_a_script_whose_prompt_can_never_come_is_over() -> None:
    """The end of stdin ends the session wherever the script waits for its caller."""
    for waits in ("{wait_for: prompt 1}", "{wait_for: cancel}"):
        playing = build_session_play(f"{waits}, {{answer: never}}")
        playing.grant(0)
        assert list_written_events(playing.grant(1, stdin=b"")) == ["exit 0"]


def test_a_script_goes_on_after_the_end_of_stdin() -> None:
    """The current step is finished, and then the session ends."""
    playing = build_session_play("{wait_for: prompt 1}, {silence: 5s}, {answer: done}")
    playing.grant(0)
    playing.grant(1, stdin=build_prompt(1))
    assert list_written_events(playing.grant(2, stdin=b"")) == []
    assert list_written_events(playing.grant(1 + 5 * SECOND)) == [*ANSWERED, "exit 0"]


def test_a_reaction_to_the_end_of_stdin_stands_for_the_exit() -> None:
    """So a session outlives its stdin: for good, or as long as the reaction takes."""
    playing = build_session_play("{when: eof, do: [{silence: 9s}, {exit: 3}]}")
    playing.grant(0)
    assert list_written_events(playing.grant(1, stdin=b"")) == []
    assert list_written_events(playing.grant(1 + 9 * SECOND)) == ["exit 3"]


def test_a_cancel_is_the_scripts_to_acknowledge() -> None:
    """Until then it is not answered, and neither are the requests after it."""
    playing = build_session_play("{wait_for: prompt 1}, {wait_for: cancel}, {silence: 5s}, {acknowledge: cancel}")
    playing.grant(0)
    playing.grant(1, stdin=build_prompt(1))
    assert list_written_events(playing.grant(2, stdin=build_request("abort", 2) + build_prompt(3))) == []
    ended = ["message_start", "message_end", "turn_end", "agent_end", "response 2"]
    assert list_written_events(playing.grant(2 + 5 * SECOND)) == [*ended, "response 3", *ACCEPTED]


def test_a_reaction_to_a_cancel_runs_beside_the_script() -> None:
    """And starts again with the next one."""
    playing = build_session_play("{when: cancel, do: [{silence: 1s}, {acknowledge: cancel}]}, {silence: for ever}")
    playing.grant(0)
    playing.grant(1, stdin=build_prompt(1) + build_request("abort", 2))
    assert "response 2" in list_written_events(playing.grant(1 + SECOND))
    playing.grant(2 * SECOND, stdin=build_prompt(3) + build_request("abort", 4))
    assert "response 4" in list_written_events(playing.grant(3 * SECOND))


def test_an_acknowledgement_without_a_cancel_says_nothing() -> None:
    """There is no client that it could report to."""
    playing = build_session_play("{acknowledge: cancel}, {silence: for ever}")
    assert list_written_events(playing.grant(0)) == []


def test_the_model_plays_a_session_as_it_is() -> None:
    """The same player on the stage in memory: two prompts, an abort, the end of stdin."""
    steps = "{wait_for: prompt 1}, {silence: 1h}, {answer: done}, {wait_for: cancel}, {acknowledge: cancel}"
    scenario = loads(f"scenario: a\nagent: {{dialect: pi, mode: rpc, version: 0.73}}\nscript: [{steps}]\n")
    model = InMemoryModel(Record())
    world = model.start_agent(scenario.bind(Policy()).program, 0)

    def told(*requests: bytes) -> list[str]:
        for sent in requests:
            world.write(memoryview(sent))
        model.settle_events()
        while (move := model.rule.choose_next_move(model.collect_host_state()))[0] is NextMove.GRANT:
            model.grant(model.processes[move[1]])
            model.settle_events()
        return list_written_events([("stdout", world.read("stdout", 1 << 16) or b"")])

    assert told(build_prompt(1)) == ["response 1", *ACCEPTED, *ANSWERED]
    assert model.now() == 3600 * SECOND
    ended = ["message_start", "message_end", "turn_end", "agent_end"]
    assert told(build_prompt(2), build_request("abort", 3)) == ["response 2", *ACCEPTED, *ended, "response 3"]
    world.close_stdin()
    assert told() == []
    assert world.read_exit_status() == 0


def test_a_line_is_written_whole_before_the_next_begins() -> None:
    """An answer that comes while a long text waits for room does not stand in the middle of it."""
    playing = build_session_play(f"{{wait_for: prompt 1}}, {{say: {'x' * 3 * MAX_WRITE_BYTES}}}")
    playing.grant(0)
    done = playing.grant(1, stdin=build_prompt(1))
    done += playing.grant(2, stdin=build_request("abort", 2) + build_request("get_state", 3))
    while (more := playing.grant(3)) != []:
        done += more
    assert list_written_events(done)[:6] == ["response 1", *ACCEPTED, "message_start"]


def test_the_last_request_needs_no_newline() -> None:
    """Readers of lines take what is left at the end."""
    playing = build_session_play("{silence: for ever}")
    playing.grant(0)
    playing.grant(1, stdin=build_request("abort", 1)[:-1])
    assert list_written_events(playing.grant(2, stdin=b"")) == ["response 1"]


def test_an_empty_line_is_no_request() -> None:
    """Nobody answers it."""
    playing = build_session_play("{silence: for ever}")
    playing.grant(0)
    assert playing.grant(1, stdin=b"\n\r\n") == [("i", b"\n\r\n")]


def test_a_handshake_goes_as_the_script_says() -> None:
    """Never, later, or refused; other requests are answered meanwhile."""
    for agent, shake in (
        ("acp", b'{"id":1,"method":"initialize"}\n'),
        ("{dialect: claude, mode: session}", b'{"type":"control_request","request":{"subtype":"initialize"}}\n'),
    ):
        answered = {}
        for how in ("never", "{after: 5s}", "{error: no key}"):
            playing = build_session_play(f"{{handshake: {how}}}, {{silence: for ever}}", agent)
            playing.grant(0)
            at_once = [act[1] for act in playing.grant(1, stdin=shake) if act[0] == "stdout"]
            answered[how] = (at_once, [act[1] for act in playing.grant(1 + 5 * SECOND)])
        assert answered["never"] == ([], [])
        assert [len(reported) for reported in answered["{after: 5s}"]] == [0, 1]
        assert b'"no key"' in answered["{error: no key}"][0][0]
