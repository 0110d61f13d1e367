"""The lines of claude beside its turns: a script names them, and a supervisor knows which are progress."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_agentproc.supervisor import Setting, Watchdog
from pytest_agentproc.supervisor.dialects import (
    ToolEnded,
    ToolStarted,
    TurnProgress,
    make_decoder,
    make_session_protocol,
)
from pytest_agentproc.vocabulary import DIALECTS, Policy
from tests.architecture.sources import ROOT
from tests.unit.conversations import Conversation
from tests.unit.scenario.test_compile import compile_step

PROGRESS = {
    "keep_alive": False,
    "rate_limit": False,
    "api_retry": False,
    "requesting": False,
    "compacting": True,
    "compacted": True,
    "compact_boundary": True,
    "permission_denied": False,
    "hook_started": True,
    "hook_progress": True,
    "hook_response": True,
}
"""Every line, and whether claude has got any further with it."""

LINES = DIALECTS["claude"].lines


def encode_line(name: str, **more: Any) -> bytes:
    """Give a line as the fake prints it."""
    fake = Conversation("claude", "print")
    fake.tell("line", {**LINES[name], **more})
    [event] = fake.take_printed()
    assert ("session_id" in event, "uuid" in event) == (name != "keep_alive",) * 2
    return json.dumps(event).encode()


def test_the_page_and_this_table_have_every_line() -> None:
    """A line without a fact would be decoded by accident."""
    page = (ROOT / "docs" / "explanation" / "protocol-claude.md").read_text("utf-8")
    rows = [row.split(" | ") for row in page.splitlines() if row.startswith("| `")]
    fields = {
        row[0].strip("| `"): row[3].startswith("yes") for row in rows if len(row) == 4 and row[0].strip("| `") in LINES
    }
    assert [*LINES] == [*PROGRESS]
    assert fields == PROGRESS


@pytest.mark.parametrize("name", PROGRESS)
def test_a_line_is_progress_of_a_run_if_the_table_says_so(name: str) -> None:
    """Every one is activity: that is a matter of bytes."""
    decoding = make_decoder("claude", "print")
    if name == "compacted":
        decoding.decode(encode_line("compacting"))
    watchdog = Watchdog(Policy())
    assert any(watchdog.is_progress(meaning) for meaning in decoding.decode(encode_line(name))) is PROGRESS[name]


@pytest.mark.parametrize("name", [name for name in PROGRESS if name != "compact_boundary"])
def test_a_line_is_progress_of_a_session_if_the_table_says_so(name: str) -> None:
    """A boundary after a compaction that is over already says nothing new."""
    talking = make_session_protocol("claude", "session", Setting())
    if name == "compacted":
        talking.decode(encode_line("compacting"))
    assert any(isinstance(meaning, TurnProgress) for meaning in talking.decode(encode_line(name))) is PROGRESS[name]


def test_a_hook_is_in_flight_until_its_response() -> None:
    """Two hooks at a time are two."""
    decoding = make_decoder("claude", "print")
    names = ("hook_started", "hook_started", "hook_response")
    found = [decoding.decode(encode_line(name, hook_id=key)) for name, key in zip(names, "aba", strict=True)]
    name = LINES["hook_started"]["hook_name"]
    assert found == [[ToolStarted("hook a", name)], [ToolStarted("hook b", name)], [ToolEnded("hook a", name)]]


@pytest.mark.parametrize(
    ("step", "wanted"),
    [
        ("event: api_retry", ("line", LINES["api_retry"])),
        ("event: {api_retry: {attempt: 3}}", ("line", {**LINES["api_retry"], "attempt": 3})),
        ("event: {type: api_retry}", ("event", {"type": "api_retry"})),
    ],
)
def test_a_script_names_a_line(step: str, wanted: tuple[str, Any]) -> None:
    """Its fields replace those of the table; an event with a type stands as it is."""
    *_, (line, op, args) = compile_step(step, "claude")["steps"]
    assert (line, op, args) == (4, "event", wanted)
