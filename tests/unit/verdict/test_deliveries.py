"""An answer to a prompt that no agent got is red at must, whatever else is excused; another end of that turn is not."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_agentproc.events import Payload
from pytest_agentproc.plays import PlayResult, PollingPace
from pytest_agentproc.record import Record
from pytest_agentproc.verdict import Verdict, judge_all_expectations
from pytest_agentproc.vocabulary import CallerAction, RunReport
from tests.event_lines import add_line
from tests.unit.handmade import BoundScenario, Expected, Script, play_by_hand

COMPLETED = "completed"
FIRST = json.dumps({"method": "session/prompt", "params": {"prompt": [{"type": "text", "text": "one"}]}}) + "\n"
SECOND = json.dumps({"type": "user", "message": {"content": "do the\n second \u00e9 thing now"}}) + "\n"
BOTH = ((COMPLETED, "1"), (COMPLETED, "2"))


def build_play(
    turns: tuple[tuple[str, str | None], ...], read: Any, prompts: tuple[str, ...], awaited: int = 2
) -> PlayResult:
    """Write a session by hand: what it reports, what its agent read and waits for, and what the caller asked."""
    expect = (Expected("turns.2.outcome", COMPLETED), Expected("turns.2.outcome", COMPLETED, level="info"))
    drive = tuple(CallerAction(5, "prompt", text) for text in prompts)
    record = Record()
    add_line(record, 0, "p", {"process": "agent", "seen": True, "parent": "supervisor", "line": 0})
    longest = 1024 if "long" not in prompts else 11
    given = {"argv": ["--print", "by argument"], "env": {}, "cwd": "/", "longest": longest}
    add_line(record, 0, "m", {"process": "agent", "given": given})
    if read:
        add_line(record, 0, "i", {"process": "agent", "bytes": read})
    answer = RunReport(turns=tuple(RunReport(outcome=outcome, text=text) for outcome, text in turns))
    steps = tuple(SimpleNamespace(name="wait_for", value={"eof": number}) for number in range(1, awaited + 1))
    script = Script(is_session=True, scripts=((*steps, SimpleNamespace(name="answer", value="2")),))
    return play_by_hand(BoundScenario(expect, scenario=script, drive=drive), record, answer)


PROMPTS = ("one", "do the\n second \u00e9 thing now")


@pytest.mark.parametrize(
    ("turns", "read", "prompts", "failed"),
    [
        pytest.param(BOTH, FIRST + SECOND, PROMPTS, [], id="delivered"),
        pytest.param(BOTH, FIRST, PROMPTS, ["turns.2.outcome"], id="answered, and never delivered"),
        pytest.param(BOTH, "", PROMPTS, ["turns.2.outcome", "turns.1.outcome"], id="nothing was delivered"),
        pytest.param(((COMPLETED, "1"), (COMPLETED, None)), FIRST, PROMPTS, ["turns.2.outcome"], id="without a text"),
        pytest.param(((COMPLETED, "1"), ("failed", "1")), FIRST, PROMPTS, ["turns.2.outcome"], id="words of turn 1"),
        pytest.param((("failed", "no login"), ("failed", "no login")), "", PROMPTS, [], id="one error for both"),
        *(
            pytest.param(((COMPLETED, "1"), (outcome, None)), FIRST, PROMPTS, [], id=f"{outcome} before its delivery")
            for outcome in ("cancelled", "stopped", "failed", "timed_out", "handshake_failed", "agent_lost")
        ),
        pytest.param(BOTH, FIRST + SECOND[:50], PROMPTS, [], id="answered before the prompt was read to its end"),
        pytest.param(BOTH, FIRST + json.dumps("so: do the second \u00e9 thing now!"), PROMPTS, [], id="white space"),
        pytest.param(BOTH, FIRST, ("one", "by argument"), [], id="delivered as an argument"),
        pytest.param(BOTH, FIRST, ("one", "long"), [], id="an argument that was not kept whole"),
        pytest.param(BOTH, FIRST, ("one", "one"), ["turns.2.outcome"], id="one text asked twice and delivered once"),
        pytest.param((("cancelled", None), (COMPLETED, "1")), FIRST, ("one", "one"), [], id="one of them answered"),
        pytest.param(BOTH, Payload(99, "", b"x", b"x"), PROMPTS, [], id="a record that did not keep all input"),
    ],
)
def test_an_answer_needs_a_delivered_prompt(turns: Any, read: Any, prompts: Any, failed: list[str]) -> None:
    """A caller would believe that the work is done which no agent was asked for."""
    data = read.encode() if isinstance(read, str) else read
    rows = judge_all_expectations(build_play(turns, data, prompts))
    told = [row for row in rows if "no agent got" in row.seen]
    assert [(row.key, row.level, row.verdict) for row in told] == [(key, "must", Verdict.FAILED) for key in failed]


@pytest.mark.parametrize("awaited", [0, 1])
def test_an_agent_that_does_not_wait_for_a_prompt_may_answer_it_unread(awaited: int) -> None:
    """Its supervisor has written the prompt, and cannot know that the agent has not read it."""
    rows = judge_all_expectations(build_play(BOTH, FIRST.encode(), PROMPTS, awaited))
    assert [row for row in rows if row.verdict is Verdict.FAILED] == []


def test_nothing_excuses_such_an_answer() -> None:
    """Neither does a limit of the supervisor, nor that it looks in turns."""
    looks = PollingPace(period=50_000_000, margin=0)
    played = replace(build_play(BOTH, FIRST.encode(), PROMPTS), polling=looks)
    row = judge_all_expectations(played)[0]
    assert (row.key, row.verdict, row.seen) == (
        "turns.2.outcome",
        Verdict.FAILED,
        "completed, and no agent got this prompt",
    )


@pytest.mark.parametrize(
    ("outcome", "read", "verdict"),
    [
        *((outcome, FIRST, "not applicable") for outcome in ("cancelled", "stopped", "failed", "handshake_failed")),
        ("cancelled", FIRST + SECOND, "failed"),
        ("timed_out", FIRST, "failed"),
    ],
)
def test_a_turn_has_no_time_before_its_prompt_is_delivered(outcome: str, read: str, verdict: str) -> None:
    """A prompt that was cancelled in the queue was said to end 5 s too early. A limit counts from the delivery."""
    play = build_play(((COMPLETED, "1"), (outcome, None)), read.encode(), PROMPTS)
    assert play.answer is not None
    answer = replace(play.answer, turns=tuple(replace(turn, elapsed=0) for turn in play.answer.turns or ()))
    expect: Any = (Expected("turns.2.elapsed", 5 * 10**9),)
    bound = replace(play.bound, expect=expect)
    assert judge_all_expectations(replace(play, answer=answer, bound=bound))[0].verdict.value == verdict
