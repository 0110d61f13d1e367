"""Frames that no agent should send, between the turns of a session: they go out as they stand and change nothing."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_agentproc.fake_agents.program import MAX_WRITE_BYTES
from pytest_agentproc.scenario import loads
from pytest_agentproc.vocabulary import Policy
from tests.unit.bookkeeping import StagedPlay

PI = ("{dialect: pi, mode: rpc}", b'{"type":"prompt","id":"%d","message":"hi"}\n', b"")
CLAUDE = (
    "{dialect: claude, mode: session}",
    b'{"type":"user","uuid":"u%d","message":{"role":"user","content":"hi"},"parent_tool_use_id":null}\n',
    b'{"type":"control_request","request_id":"c","request":{"subtype":"set_permission_mode","mode":"default"}}\n',
)
ACP = (
    "acp",
    b'{"jsonrpc":"2.0","id":%d,"method":"session/prompt","params":{"sessionId":"sess_1","prompt":[]}}\n',
    b'{"jsonrpc":"2.0","id":0,"method":"session/new","params":{}}\n',
)
FRAMES = {
    "a wrong id": b'{"jsonrpc":"2.0","id":99,"result":{"stopReason":"end_turn"}}\n',
    "an answer given twice": b'{"type":"response","id":"1","success":true}\n' * 2,
    "two objects on one line": b'{"type":"keep_alive"}{"type":"keep_alive"}\n',
    "no JSON": b'{"type":\n',
    "no UTF-8": b"\xff\xfe\n",
    "a huge line": b"x" * 200_000 + b"\n",
    "half a line": b'{"type"',
}


def play_two_turns(agent: str, frame: bytes) -> StagedPlay:
    """Play two turns with a frame between them."""
    raw = f"- raw: {{hex: {frame.hex()}}}" if frame else "- silence: 0s"
    steps = ("- wait_for: prompt 1", "- answer: one", raw, "- silence: 1s", "- wait_for: prompt 2", "- answer: two")
    text = f"scenario: a\nagent: {agent}\nscript:\n" + "".join(f"  {step}\n" for step in steps)
    return StagedPlay(program=loads(text).bind(Policy()).program, room={"stdout": 999, "stderr": 0})


def read_stdout_to_end(play: StagedPlay, now: int, stdin: bytes | None = None) -> bytes:
    """Give what goes to stdout until nothing more does."""
    second = 1_000_000_000
    data = b""
    while more := [words[1] for words in play.grant(now * second, stdin=stdin) if words[0] == "stdout"]:
        data, stdin = data + b"".join(more), None
    return data


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
@pytest.mark.parametrize("dialect", [PI, CLAUDE, ACP], ids=lambda dialect: dialect[0])
def test_a_frame_goes_out_as_it_stands_and_the_next_turn_is_as_without_it(dialect: Any, frame: bytes) -> None:
    """The script alone says what is wrong; the dialect's own words stay right."""
    agent, prompt, greeting = dialect
    with_it, without = play_two_turns(agent, frame), play_two_turns(agent, b"")
    first, clean = (read_stdout_to_end(fake, 0, greeting + prompt % 1) for fake in (with_it, without))
    assert first == clean + frame
    assert read_stdout_to_end(with_it, 2, prompt % 2) == read_stdout_to_end(without, 2, prompt % 2) != b""


def test_what_the_dialect_answers_never_comes_into_the_middle_of_a_frame() -> None:
    """A line that waits for room is one line: the answer to a request comes after it."""
    agent, prompt, request = CLAUDE
    playing = play_two_turns(agent, FRAMES["a huge line"])
    playing.book.room["stdout"] = 5
    first = read_stdout_to_end(playing, 0, prompt % 1)
    assert len(first) > MAX_WRITE_BYTES
    assert first.endswith(b"x")
    assert read_stdout_to_end(playing, 0, request) == b""
    playing.book.room["stdout"] = 99
    rest = read_stdout_to_end(playing, 0)
    assert rest.strip(b"x").startswith(b'\n{"type":"control_response"')
