"""The parts of recording that need no process: where it is possible, the cuts, the pauses and the texts."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.capture import AgentIdentity, draft_scenario_from_recording, identify_agent, require_linux
from pytest_agentproc.capture._guesses import generate_step_candidates
from pytest_agentproc.errors import UsageError
from pytest_agentproc.events import Event, OutputWritten, ProcessEnded, ProcessGone, decode_event
from pytest_agentproc.scenario import load
from pytest_agentproc.supervisor.dialects import Message, Piece

if TYPE_CHECKING:
    from pathlib import Path

RAW = AgentIdentity("raw", "text", ())
MS = 1_000_000


def record_output(*chunks: tuple[int, bytes]) -> list[Event]:
    """Give what is recorded of a program that prints these bytes, each at its millisecond, and exits with 0."""
    events = [OutputWritten(at * MS, "agent", data, "stdout") for at, data in chunks]
    return [*events, ProcessEnded(events[-1].at, "agent", 0)]


def draft_steps(folder: Path, events: list[Event], identity: AgentIdentity = RAW) -> list[str]:
    """Give the steps that are made of a recording."""
    draft = draft_scenario_from_recording(
        folder / "x.scenario.yaml", events, identity, [], "a program as it was recorded"
    )
    assert draft.notes == []
    return [line.strip() for line in draft.text.splitlines() if line.startswith("  - ")]


def test_elsewhere_than_on_linux_one_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """No user should have to read a traceback to learn it."""
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(UsageError) as error:
        require_linux()
    assert str(error.value) == "programs can be recorded on Linux only, and this is win32\nrecord there, check here"


@pytest.mark.slow
def test_what_no_program_needs_is_not_loaded_before_it() -> None:
    """The program waits for the recorder to start; language, runner and page are loaded after it."""
    code = "import sys, pytest_agentproc.capture as c; c.run_and_record_program; print(*sorted(sys.modules))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30).stdout
    assert not {"yaml", "trio", "pytest", "pytest_agentproc.harness"} & {*shown.split()}


def test_pauses_are_rounded_and_what_is_lost_is_made_up_for(tmp_path: Path) -> None:
    """Ten pauses that are each some milliseconds too short would be a different program."""
    made = draft_steps(tmp_path, record_output((10, b"a\n"), (1244, b"b\n"), (2488, b"c\n"), (2500, b"d\n")))
    assert made == ["- say: a", "- silence: 1.2s", "- say: b", "- silence: 1.3s", "- say: c", "- say: d"]


def test_half_a_line_stays_half_a_line(tmp_path: Path) -> None:
    """Where a program pauses inside of a line, its supervisor must not take that for silence."""
    identity = AgentIdentity("codex", "exec", ())
    made = draft_steps(tmp_path, record_output((0, b'{"type":"x"'), (400, b"}\n")), identity)
    assert made == ['- raw: "{\\"type\\":\\"x\\""', "- silence: 400ms", '- raw: "}\\n"']


def test_who_was_gone_before_a_line_is_gone_before_it(tmp_path: Path) -> None:
    """On a busy machine a descendant begins late: by its pause alone the program would be done before it."""
    seen = {"process": "sleep", "seen": True, "since": 2 * MS, "how": "same_group", "inherits": True}
    said, closed = record_output((302, b"line\n"))
    gone = ProcessGone(305 * MS, "sleep")
    made = draft_steps(tmp_path, [decode_event(27 * MS, "p", seen), said, gone, replace(closed, at=306 * MS)])
    assert made == ["- spawn: {id: sleep, how: same_group, for: 300ms}", "- wait_for: {exit: sleep}", "- say: line"]


def test_a_line_without_a_step_of_its_own_is_an_event_or_raw(tmp_path: Path) -> None:
    """An event only where the fake prints the very same bytes: blanks and odd numbers are bytes, too."""
    lines = [b'{"type":"new.thing","count":1}\n', b'{"type": "spaced"}\n', b"not json: x\n"]
    made = draft_steps(tmp_path, record_output((0, b"".join(lines))), AgentIdentity("codex", "exec", ()))
    assert made[0] == "- event: {type: new.thing, count: 1}"
    assert [step.split(":")[0] for step in made[1:]] == ["- raw", "- raw"]


@pytest.mark.parametrize(
    "text", ["yes", "012", "a: b", "- x", "'", "\u2028", "\x7f", "\U0001f600", "null", "~", "#", ""]
)
def test_a_text_is_read_back_as_it_was_said(text: str, tmp_path: Path) -> None:
    """YAML takes many a word for something else."""
    draft_steps(tmp_path, record_output((0, text.encode() + b"\n")))
    made = load(tmp_path / "x.scenario.yaml")
    assert made.claim == "a program as it was recorded"


def test_bytes_that_are_no_text_are_kept(tmp_path: Path) -> None:
    """A few stand in the file, many beside it."""
    assert draft_steps(tmp_path, record_output((0, b"\xff\x00"))) == ['- raw: {base64: "/wA="}']
    assert draft_steps(tmp_path, record_output((0, b"\xff" * 5000))) == ["- raw: {file: x.1.bin}"]
    assert (tmp_path / "x.1.bin").read_bytes() == b"\xff" * 5000


@pytest.mark.parametrize(
    ("command", "dialect", "mode"),
    [
        ("/usr/bin/claude -p --output-format stream-json hi", "claude", "print"),
        ("claude --output-format stream-json --input-format stream-json", "claude", "session"),
        ("pi --mode rpc", "pi", "rpc"),
        ("codex exec --json hi", "codex", "exec"),
        ("gemini -o stream-json -p hi", "gemini", "stream"),
        ("make test", "raw", "text"),
    ],
)
def test_the_command_line_says_which_agent_prints(command: str, dialect: str, mode: str) -> None:
    """A user who records claude should not have to say that it is claude."""
    identity = identify_agent(command.split(), b"")
    assert (identity.dialect, identity.mode) == (dialect, mode)


def test_a_message_is_tried_before_its_pieces() -> None:
    """Only few texts are tried, and a message may come in more pieces."""
    meanings = [*map(Piece, "abcde"), Message("abcde")]
    assert next(generate_step_candidates([], [meanings], "")).written == "answer: abcde"
