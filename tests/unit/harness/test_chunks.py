"""Agents that write in small pieces: what is written stays the same, and so does what is expected of its reader."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.errors import ScenarioError
from pytest_agentproc.events import OutputRead
from pytest_agentproc.harness import run_in_model
from pytest_agentproc.scenario import NotApplicable, apply_moves, find_movable_pieces, loads
from pytest_agentproc.subjects import reference_supervisor
from pytest_agentproc.verdict import Verdict, judge_play
from tests.bundled import load_all_bundled, load_bundled
from tests.event_lines import list_lines

if TYPE_CHECKING:
    from pytest_agentproc.scenario import Scenario

_GIVEN_UP = load_bundled("hook-given-up-is-called-no-more")


def _write_in_pieces(scenario: Scenario, number: int) -> Scenario | None:
    """Give a bundled scenario whose agents write in pieces of some size; None: that would take too long."""
    chosen = [(piece, piece.options[number]) for piece in find_movable_pieces(scenario) if piece.kind == "chunk"]
    return loads(apply_moves(scenario.text, chosen), scenario.path, Path(scenario.path).parent) if chosen else None


def test_each_piece_is_read_before_the_next_is_written() -> None:
    """That is what makes pieces of one write: without it they would be one again in the pipe."""
    scenario = loads("scenario: a\nagent: {dialect: raw, chunk: 2 B}\nscript: [say: abc]\n")
    events = run_in_model(scenario, reference_supervisor()).record.events
    assert [event.size for event in events if isinstance(event, OutputRead)] == [2, 2]


@pytest.mark.slow
def test_every_bundled_scenario_means_the_same_in_pieces() -> None:
    """No expectation, and no instant, may hang on where a read ends."""
    scenarios = [one for scenario in load_all_bundled() if (one := _write_in_pieces(scenario, 1)) is not None]
    reds = []
    for scenario in scenarios:
        try:
            verdict = judge_play(run_in_model(scenario, reference_supervisor())).verdict
        except NotApplicable:
            continue
        if verdict not in (Verdict.PASSED, Verdict.NOT_APPLICABLE):
            reds.append(scenario.id)
    assert reds == []
    assert len(scenarios) > len(load_all_bundled()) * 3 // 4


def test_an_agent_that_gives_up_waiting_says_so_to_the_end() -> None:
    """Its track was taken away within the line, and no other track could write any more."""
    scenario = _write_in_pieces(_GIVEN_UP, 2)
    assert scenario is not None
    assert judge_play(run_in_model(scenario, reference_supervisor())).verdict is Verdict.PASSED


_CUT = """\
scenario: a script ends while another track is within its line
agent: {dialect: pi, mode: rpc, chunk: 2 B}
drive: [{prompt: one}, {wait: 1s}]
script:
  - wait_for: prompt 1
  - answer: done
  - meanwhile: [raw: "abcdef\\n"]
  - silence: 0s
  - silence: 0s
"""


def test_a_track_that_is_cut_within_its_line_leaves_no_half_line() -> None:
    """The next bytes would stand in the middle of it, and its reader would lose both."""
    record = run_in_model(loads(_CUT), reference_supervisor()).record
    written = b"".join(data["bytes"] for _, code, data in list_lines(record) if code == "o" and "bytes" in data)
    assert b"\nabcdef\n" in written


@pytest.mark.parametrize(
    ("size", "reported"),
    [
        ("0 B", "agent.chunk is 0 bytes: at least 1, at most 4096 are possible"),
        ("8 KiB", "agent.chunk is 8192 bytes: at least 1, at most 4096 are possible"),
        ("7", "agent.chunk has no unit: write 7 B, or KiB, MiB, GiB"),
    ],
)
def test_a_piece_has_a_size(size: str, reported: str) -> None:
    """A larger one would not be sure to find room in a pipe that has some."""
    with pytest.raises(ScenarioError) as caught:
        loads(f"scenario: a\nagent: {{dialect: raw, chunk: {size}}}\nscript: [say: abc]\n")
    assert reported in str(caught.value)
