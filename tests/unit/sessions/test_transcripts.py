"""Recorded conversations of the real CLIs, line by line: each prompt its own text, each background turn apart (B1, P5).

The tables say what is right for each file, from what the recording's prompts asked for; they are not copied from a run.
"""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_agentproc.supervisor import LineSplitter
from pytest_agentproc.supervisor.dialects import Noise, make_session_protocol
from tests.unit.sessions.replay import TIMED, Replayed, replay_file

PI: dict[str, Replayed] = {
    "abort-stream-prompt": Replayed({1: (False, "a long streamed an"), 2: (True, "second")}, settled=[1]),
    "abort-tool": Replayed({1: (False, None), 2: (True, "second")}, settled=[1]),
    "stdin-eof-tool": Replayed({}),  # it left in the middle of its tool
    "steer-during-tool": Replayed({1: (True, "second"), 2: (True, "second")}),  # two prompts, one run
    "tool": Replayed({1: (True, "pi answer"), 2: (True, "second")}),
    "two-prompts": Replayed({1: (True, "third")}, declined=[2]),  # the follow-up runs inside the first prompt's run
}


ONE, TWO, BG = (True, "answer one"), (True, "answer two"), "bg noted"
LONG = (True, "a long streamed answer with many chunks to be interrupted somewhere")
API_ERROR = "API Error: 400 fake 400"
CLAUDE: dict[str, tuple[list[tuple[bool, str | None]], list[str | None]]] = {
    "bg-error": ([(False, API_ERROR), TWO], [API_ERROR]),
    "bg-error-eof": ([(False, API_ERROR)], [API_ERROR]),
    "bg-failed-exit7": ([ONE], [BG]),
    "bg-killed-sigkill": ([ONE], [BG]),
    "bg-late": ([ONE, TWO], [BG]),
    "bg-overlap-during-final": ([ONE, TWO], [BG]),
    "bg-overlap-emit": ([ONE, TWO], [BG]),
    "bg-overlap-noenv": ([ONE, TWO], [BG]),
    "bg-overlap-partial": ([ONE, (True, "answer two is streamed slowly in many chunks w0")], [BG]),
    "bg-overlap-reads": ([ONE, TWO], [BG]),
    "bg-overlap-reads-replay": ([ONE, TWO], [BG]),
    "bg-overlap-tool": ([ONE, TWO], []),  # the notification is folded into the second prompt's tool
    "bg-overlap-tool-partial-replay": ([ONE, TWO], []),
    "bg-overlap-uuid": ([ONE, TWO], [BG]),
    "bg-stop-task": ([ONE, TWO], []),  # a task that the client stops is told in no turn
    "bg-turn-overlap": ([ONE, TWO], [BG]),  # the second prompt came during the background turn
    "bg-two": ([ONE, TWO], ["", BG]),  # two tasks at once: an empty result, then the real one
    "bg-two-gap": ([ONE], [BG, BG]),
    "fg-bash-3s-task-lines": ([ONE], []),  # a slow foreground tool prints task lines too
    "hooks-deny-late3": ([ONE, TWO], []),
    "hooks-interrupt-while-waiting": ([(False, None), TWO], []),
    "hooks-late3": ([ONE, TWO], []),
    "hooks-never-no-timeout": ([ONE], []),
    "hooks-never-timeout4": ([ONE, TWO], []),
    "hooks-post-never-timeout4": ([ONE], []),
    "hooks-stdin-eof-while-waiting": ([ONE], []),
    "hooks-timeout2-answer-at-6": ([ONE, TWO], []),
    "interrupt-idle": ([ONE, TWO], []),  # there was nothing to interrupt, and no result of it
    "interrupt-overlap": ([(False, "a long streamed "), TWO], []),
    "interrupt-overlap-nopartial-replay": ([(False, "a long streamed answer with many"), TWO], []),
    "interrupt-queued-first": ([(False, "a long streamed "), TWO], []),
    "interrupt-tool": ([(False, None), TWO], []),
    "interrupt-tool-then-prompt": ([(False, None), TWO], []),
    "interrupt-with-bg-task": ([ONE, (False, "a long strea")], []),
    "interrupt-with-bg-task-eof": ([ONE, (False, "a long streamed answ")], []),
    "stdin-eof-bg-200s": ([ONE], [BG]),
    "stdin-eof-bg-hooks": ([ONE], [BG]),
    "stdin-eof-bg-long": ([ONE], []),
    "stdin-eof-bg-nostate": ([ONE], []),
    "stdin-eof-bg-short": ([ONE], [BG]),
    "stdin-eof-bg-sigterm": ([ONE], []),
    "stdin-eof-midturn-bg": ([ONE, TWO], [BG]),
    "stdin-eof-right-after-prompt": ([ONE], []),
    "stdin-eof-streaming": ([LONG], []),
    "stdin-eof-tool": ([ONE], []),
    "stdin-eof-two-prompts": ([ONE, TWO], []),
    "two-prompts-midstream-uuid": ([LONG, TWO], []),
    "two-prompts-midtool-uuid": ([ONE, ONE], []),  # the second was swallowed: one result names both
    "two-prompts-queued": ([ONE, TWO], []),
    "two-prompts-queued-tool": ([ONE], []),  # swallowed as well, and without a uuid nothing says so
}


@pytest.mark.parametrize("name", CLAUDE)
def test_each_prompt_of_claude_has_its_own_turn_and_each_background_turn_is_apart(name: str) -> None:
    """However the background turn lies: before, during or after the next prompt, with uuids and without."""
    turns, background = CLAUDE[name]
    seen = replay_file(TIMED / f"{name}.jsonl", "claude")
    assert seen.turns == dict(enumerate(turns, 1))
    assert (seen.background, seen.noise) == (background, 0)


@pytest.mark.parametrize("name", PI)
def test_each_prompt_of_pi_has_its_own_turn(name: str) -> None:
    """Prompts sent while it is busy are refused, or folded into the run that they were meant for."""
    assert replay_file(TIMED / f"pi-rpc-{name}.jsonl", "pi") == PI[name]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "dialect"), [("pi-rpc-two-prompts", "pi"), ("bg-overlap-uuid", "claude")])
@given(cuts=st.lists(st.integers(1, 5000), min_size=1), noise=st.lists(st.integers(0, 40), max_size=5))
@settings(max_examples=30, deadline=None)
def test_chunks_and_noise_change_no_meaning(name: str, dialect: str, cuts: list[int], noise: list[int]) -> None:
    """One line is one event however it arrives; a line that is no event is counted and changes nothing (F1, F2)."""
    entries = map(json.loads, (TIMED / f"{name}.jsonl").read_text("utf-8").splitlines())
    lines = [json.dumps(entry["line"], ensure_ascii=False).encode() for entry in entries if entry["dir"] == "<<"]
    plain, chunked = make_session_protocol(dialect), make_session_protocol(dialect)
    whole = [meaning for line in lines for meaning in plain.decode(line)]
    for place in noise:
        lines.insert(min(place, len(lines)), b"warning: {noise")
    data, framing, seen = b"\r\n".join(lines) + b"\n", LineSplitter(), []
    for size in itertools.cycle(cuts):
        seen += [meaning for line in framing.feed(data[:size]) for meaning in chunked.decode(line)]
        data = data[size:]
        if not data:
            break
    assert [meaning for meaning in seen if not isinstance(meaning, Noise)] == whole
    assert len(seen) - len(whole) == len(noise)


def test_every_recording_has_its_row() -> None:
    """A recording without a verdict is no evidence."""
    assert {file.stem for file in TIMED.iterdir()} == {*CLAUDE, *(f"pi-rpc-{name}" for name in PI)}
