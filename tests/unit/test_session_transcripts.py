"""Recorded conversations of the real CLIs, line by line: each prompt its own text, each background turn apart (B1, P5).

The tables say what is right for each file, from what the recording's prompts asked for; they are not copied from a run.
"""

from __future__ import annotations

import pytest

from tests.unit.session_replay import TIMED, Replayed, replay

PI: dict[str, Replayed] = {
    "abort-stream-prompt": Replayed({1: (False, "a long streamed an"), 2: (True, "second")}, settled=[1]),
    "abort-tool": Replayed({1: (False, None), 2: (True, "second")}, settled=[1]),
    "stdin-eof-tool": Replayed({}),  # it left in the middle of its tool
    "steer-during-tool": Replayed({1: (True, "second"), 2: (True, "second")}),  # two prompts, one run
    "tool": Replayed({1: (True, "pi answer"), 2: (True, "second")}),
    "two-prompts": Replayed({1: (True, "third")}, declined=[2]),  # the follow-up runs inside the first prompt's run
}


@pytest.mark.parametrize("name", PI)
def test_each_prompt_of_pi_has_its_own_turn(name: str) -> None:
    """Prompts sent while it is busy are refused, or folded into the run that they were meant for."""
    assert replay(TIMED / f"pi-rpc-{name}.jsonl", "pi") == PI[name]


def test_every_recording_has_its_row() -> None:
    """A recording that nobody judges is no evidence."""
    assert {file.stem.removeprefix("pi-rpc-") for file in TIMED.glob("pi-*.jsonl")} == set(PI)
