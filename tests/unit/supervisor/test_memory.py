"""Memory is bounded whatever an agent prints (F6): what is kept, and that no more is held."""

from __future__ import annotations

import gc
import json
import sys
import tracemalloc
from itertools import pairwise
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_agentproc.supervisor import Outcome, Policy, RunMachine, RunSettings, _tools
from pytest_agentproc.supervisor import _events as machine_events
from pytest_agentproc.supervisor._streams import OutputTail, Transcript
from pytest_agentproc.supervisor.dialects import Line, Message, Noise, _claude_messages, _gemini, make_decoder
from pytest_agentproc.supervisor.dialects._raw import RawDecoder

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_agentproc.supervisor._result import Result

KIB, MIB = 1024, 1024**2
CLAUDE_DELTA = (
    b'{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"text_delta","text":"ab"}},'
    b'"parent_tool_use_id":null}\n'
)
CLAUDE_BLOCK = (
    b'{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"ab"}]},"parent_tool_use_id":null}\n'
)
CODEX_ITEM = b'{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"ab"}}\n'
LIMIT = 16 * KIB
SMALL = Policy(max_line_bytes=LIMIT, max_transcript_bytes=LIMIT)
TURN = b'{"type":"message_end","message":{"role":"assistant","content":"ab","stopReason":"toolUse"}}\n'
DELTA = b'{"type":"message","role":"assistant","content":"ab","delta":true}\n'


def build_running_machine(dialect: str = "raw", mode: str = "", policy: Policy = SMALL) -> RunMachine:
    """Make a machine whose agent was started."""
    machine = RunMachine(RunSettings(dialect, policy=policy, mode=mode))
    machine.feed(machine_events.RunStarted(), 0)
    machine.feed(machine_events.AgentSpawned(1), 0)
    return machine


def exit_agent(machine: RunMachine, status: int = 0) -> Result:
    """Have the agent exit, and give the result."""
    machine.feed(machine_events.AgentExited(status), 1)
    machine.feed(machine_events.TreeSwept(alone=True), 1)
    return machine.build_result(0)


def feed_repeatedly(machine: RunMachine, stream: str, chunk: bytes, size: int) -> int:
    """Feed a chunk until this number of bytes went in, and give the size of everything that the machine holds."""
    event = machine_events.OutputRead(stream, chunk, drained=True)
    for _ in range(size // len(chunk)):
        machine.feed(event, 0)
    machine.feed(machine_events.StreamReady("stdin"), 0)  # what the last chunk meant is kept until the next event
    return sum_held_sizes(machine)


def sum_held_sizes(root: object) -> int:
    """Sum the sizes of all that can be reached from an object, but for code."""
    seen: dict[int, object] = {}
    found = [root]
    while found:
        item = found.pop()
        if id(item) not in seen and not isinstance(item, (type, ModuleType, FunctionType, BuiltinFunctionType)):
            seen[id(item)] = item
            found += gc.get_referents(item)
    return sum(sys.getsizeof(value) for value in seen.values())


FLOODS = {
    "short lines": ("raw", "", "stdout", b"x\n" * 256),
    "empty lines": ("raw", "", "stdout", b"\n" * 512),
    "no UTF-8": ("raw", "", "stdout", b"\xff" * 511 + b"\n"),
    "a line without end": ("raw", "", "stdout", b"xy"),
    "long lines": ("raw", "", "stdout", b"x" * 1023 + b"\n"),
    "messages": ("pi", "json", "stdout", TURN * 4),
    "noise": ("pi", "json", "stdout", b"{ \n" * 170),
    "text of gemini": ("gemini", "text", "stdout", b"x\n" * 256),
    "deltas of one message": ("gemini", "stream", "stdout", DELTA * 8),
    "deltas of claude": ("claude", "print", "stdout", CLAUDE_DELTA * 4),
    "blocks of one message": ("claude", "print", "stdout", CLAUDE_BLOCK * 4),
    "messages of codex": ("codex", "exec", "stdout", CODEX_ITEM * 4),
    "an object that never ends": ("gemini", "json", "stdout", b"{\n" + b"\n" * 510),
    "objects that never end": ("gemini", "json", "stdout", b"{ \n" * 170),
    "an object with a long text": ("gemini", "json", "stdout", b'{"response": "' + b"x" * 500 + b'"\n'),
}


@pytest.mark.once
@pytest.mark.slow
@pytest.mark.parametrize("kind", FLOODS)
def test_what_is_held_does_not_grow_with_what_is_printed(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once a limit was met four times over, twice as much again adds nothing: twice the limit is held at most."""
    monkeypatch.setattr(_gemini, "_MAX_ANSWER_BYTES", LIMIT)
    dialect, mode, stream, chunk = FLOODS[kind]
    machine = build_running_machine(dialect, mode)
    nothing = sum_held_sizes(machine)
    assert feed_repeatedly(machine, stream, chunk, 4 * LIMIT) < nothing + 2.5 * LIMIT
    assert feed_repeatedly(machine, stream, chunk, 8 * LIMIT) < nothing + 2.5 * LIMIT


def _build_tool_line(number: int) -> bytes:
    block = {"type": "tool_use", "id": f"t{number}", "name": "Agent", "input": {}}
    return json.dumps({"type": "assistant", "message": {"id": f"m{number}", "content": [block]}}).encode() + b"\n"


def _build_sub_agent_line(number: int) -> bytes:
    message = {"id": f"m{number}", "content": [{"type": "text", "text": "ab"}]}
    return json.dumps({"type": "assistant", "message": message, "parent_tool_use_id": f"t{number}"}).encode() + b"\n"


@pytest.mark.parametrize("line", [_build_tool_line, _build_sub_agent_line])
def test_of_tools_and_sub_agents_without_end_so_many_are_followed(
    line: Callable[[int], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent that begins and never ends fills no table for ever."""
    monkeypatch.setattr(_tools, "MAX_TOOLS_IN_FLIGHT", 20)
    monkeypatch.setattr(_claude_messages, "MAX_TOOLS_IN_FLIGHT", 20)
    monkeypatch.setattr(_claude_messages, "_MAX_FOLLOWED_MESSAGES", 20)
    machine = build_running_machine("claude", "print")
    sizes = []
    for number in range(1000, 3000):
        machine.feed(machine_events.OutputRead("stdout", line(number), drained=True), 0)
        if number % 1000 in (500, 999):
            sizes.append(sum_held_sizes(machine))
    assert max(sizes) < sizes[0] * 1.5


def _build_long_tool_line(number: int) -> bytes:
    return (
        _build_tool_line(number).replace(b'", "name"', b"x" * 7 * KIB + b'", "name"').replace(b"Agent", b"A" * 7 * KIB)
    )


def _build_long_sub_agent_line(number: int) -> bytes:
    return _build_sub_agent_line(number).replace(b"ab", b"a" * 15 * KIB)


@pytest.mark.parametrize("line", [_build_long_tool_line, _build_long_sub_agent_line])
def test_neither_long_ids_nor_many_sub_agents_fill_the_memory(
    line: Callable[[int], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of a thousand may be as long as a line."""
    monkeypatch.setattr(_claude_messages, "_MAX_SUBAGENT_MESSAGE_BYTES", KIB)
    machine = build_running_machine("claude", "print")
    nothing = sum_held_sizes(machine)
    for number in range(100):
        machine.feed(machine_events.OutputRead("stdout", line(number), drained=True), 0)
    assert sum_held_sizes(machine) < nothing + 100 * 4 * KIB


@pytest.mark.parametrize("size", [1, 64 * KIB])
def test_twice_the_tail_is_all_that_is_held_of_stderr(size: int) -> None:
    """And a byte at a time costs no copy of the tail for each."""
    machine = build_running_machine()
    nothing = sum_held_sizes(machine)
    assert feed_repeatedly(machine, "stderr", b"!" * size, 192 * KIB) < nothing + 160 * KIB
    assert feed_repeatedly(machine, "stderr", b"!" * size, 192 * KIB) < nothing + 160 * KIB


@pytest.mark.once
@pytest.mark.slow
def test_a_gibibyte_goes_through_the_default_limits() -> None:
    """A build log without end is cut, and the machine holds at most twice the kept part."""
    machine = build_running_machine(policy=Policy())
    line = b"x" * 65535 + b"\n"
    assert (
        feed_repeatedly(machine, "stderr", line, 768 * MIB) + feed_repeatedly(machine, "stdout", line, 256 * MIB)
        < 40 * MIB
    )
    result = exit_agent(machine)
    assert (len(result.transcript), len(result.stderr_tail)) == (16 * MIB - 1, 64 * KIB)
    assert result.warnings == ("transcript_truncated",)


def test_a_long_text_in_an_object_is_not_held_a_hundred_times() -> None:
    """A pattern that could go back remembers every step: a text of 16 MiB once took 2 GiB to read."""
    machine = build_running_machine("gemini", "json", Policy())
    tracemalloc.start()
    try:
        feed_repeatedly(machine, "stdout", b'{"response": "' + b"x" * MIB + b'"}\n', MIB + 17)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * MIB
    assert exit_agent(machine).text == "x" * MIB


def test_the_end_of_a_transcript_begins_with_a_line() -> None:
    """Half a line would be something that the agent never said."""
    machine = build_running_machine(policy=Policy(max_transcript_bytes=8))
    machine.feed(machine_events.OutputRead("stdout", b"one\ntwo\nthree\n", drained=True), 0)
    result = exit_agent(machine)
    assert (result.text, result.transcript, result.warnings) == ("three", "three", ("transcript_truncated",))
    assert (result.outcome, result.exit_code) == (Outcome.COMPLETED, 0)


@pytest.mark.parametrize(
    ("limit", "kept"),
    [
        (None, "one\ntwo\nsix"),
        (11, "one\ntwo\nsix"),
        (10, "two\nsix"),
        (7, "two\nsix"),
        (6, "six"),
        (3, "six"),
        (1, "six"),
    ],
)
def test_a_line_is_kept_if_all_of_it_is_within_the_limit(limit: int | None, kept: str) -> None:
    """The line that begins right at the cut is a whole one."""
    transcript = Transcript(limit)
    for word in ("one", "two", "six"):
        transcript.add(word)
    assert (str(transcript), transcript.is_cut, transcript.last) == (kept, kept != "one\ntwo\nsix", "six")


def test_the_final_message_is_whole_however_long_it_is() -> None:
    """It is what the caller waited for; one line carried it, and the longest line bounds it."""
    machine = build_running_machine("pi", "json", Policy(max_transcript_bytes=10))
    for text in ("let me see", "a long last message\nof two lines"):
        message = {"role": "assistant", "content": text, "stopReason": "stop"}
        line = json.dumps({"type": "message_end", "message": message}).encode() + b"\n"
        machine.feed(machine_events.OutputRead("stdout", line, drained=True), 0)
    result = exit_agent(machine)
    assert result.text == result.transcript == "a long last message\nof two lines"
    assert result.warnings == ("transcript_truncated",)


def test_the_warnings_of_an_exit_and_of_a_transcript_stand_side_by_side() -> None:
    """Neither hides the other."""
    machine = build_running_machine("pi", "json", Policy(max_transcript_bytes=1))
    machine.feed(machine_events.OutputRead("stdout", TURN + TURN.replace(b"toolUse", b"stop"), drained=True), 0)
    assert exit_agent(machine, 3).warnings == ("exit_contradicts_result", "transcript_truncated")


def test_a_message_of_deltas_keeps_its_end_and_no_torn_character() -> None:
    """It came on many lines, so that no line's length bounds it."""
    decoding = make_decoder("gemini", "stream")
    decoding.limit = 4
    for text in ("ab", "\u20ac", "c"):
        delta = {"type": "message", "role": "assistant", "content": text, "delta": True}
        decoding.decode(json.dumps(delta).encode())
    assert decoding.end(b"") == [Message("\u20acc", is_torn=True)]
    decoding.decode(DELTA)
    assert decoding.end(b"") == [Message("ab")]


def test_an_object_that_is_given_up_counts_its_lines_as_noise() -> None:
    """Blank ones do not count, as they do not elsewhere."""
    decoding = make_decoder("gemini", "json")
    for line in (b"{", b"", b'  "a": 1,', b" "):
        assert decoding.decode(line) == []
    assert decoding.end(b"") == [Noise(b'{\n\n  "a": 1,\n \n', 2)]


def test_half_a_surrogate_pair_is_no_reason_to_lose_a_message() -> None:
    """JSON can hold one, UTF-8 cannot."""
    transcript = Transcript(8)
    transcript.add("\ud83d")
    transcript.add("ok")
    assert (str(transcript), Transcript(None).last) == ("\ud83d\nok", None)


@settings(deadline=None)  # the machine may be busy
@given(st.binary(max_size=60), st.lists(st.integers(0, 60)), st.integers(1, 9))
def test_a_tail_is_the_end_whatever_the_pieces_were(data: bytes, cuts: list[int], limit: int) -> None:
    """The bytes held beyond it never show."""
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    tail = OutputTail(limit)
    for begin, end in pairwise(places):
        tail.add(data[begin:end])
    assert (bytes(tail), tail.size, tail.is_cut) == (data[-limit:], len(data), len(data) > limit)


@settings(deadline=None)  # the machine may be busy
@given(st.lists(st.text(alphabet="a\u20ac\n", max_size=6), max_size=8), st.integers(1, 20))
def test_a_transcript_is_an_end_of_all_messages(said: list[str], limit: int) -> None:
    """It is cut where a line begins, is within the limit unless the last message is not, and holds that one whole."""
    transcript = Transcript(limit)
    for text in said:
        transcript.add(text)
    whole, kept = "\n".join(said), str(transcript)
    assert whole.endswith(kept)
    assert kept == whole or whole[: len(whole) - len(kept)].endswith("\n")
    assert kept.endswith(said[-1] if said else "")
    assert len(kept.encode()) <= max(limit, len(said[-1].encode()) if said else 0)
    assert transcript.is_cut == (len(whole.encode()) > limit)


@settings(deadline=None)  # the machine may be busy
@given(
    st.lists(st.lists(st.text(alphabet="a\u20ac", max_size=6), min_size=1, max_size=4), max_size=4), st.integers(1, 20)
)
def test_lines_that_come_together_are_kept_as_each_by_itself(chunks: list[list[str]], limit: int) -> None:
    """The number of lines in a read does not matter."""
    together, alone = Transcript(limit), Transcript(limit)
    for chunk in chunks:
        together.add_lines("\n".join(chunk))
        for line in chunk:
            alone.add_lines(line)
    assert (str(together), together.last, together.is_cut) == (str(alone), alone.last, alone.is_cut)


@settings(deadline=None)  # the machine may be busy
@given(st.lists(st.binary(max_size=6).map(lambda line: line.replace(b"\n", b"\xe2\x82")), min_size=1, max_size=5))
def test_plain_lines_mean_together_what_each_means_by_itself(lines: list[bytes]) -> None:
    """Half a character at a line's end takes nothing of the next line."""
    decoding = RawDecoder()
    alone = [meaning.text for line in lines for meaning in decoding.decode(line) if isinstance(meaning, Line)]
    assert decoding.decode_all(lines) == [Line("\n".join(alone))]
    assert decoding.decode_all([]) == []
