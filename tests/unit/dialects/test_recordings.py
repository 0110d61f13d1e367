"""Every recording of a real CLI: each of its lines is a known event, whatever the pipe and other programs do to it.

The table of codex says what is right for each file, from how the recorder says that the process ended; it is not copied
from a run.
"""

from __future__ import annotations

import json
from itertools import cycle
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_agentproc.supervisor import LineSplitter, Outcome, Policy, RunMachine, RunSettings
from pytest_agentproc.supervisor import _events as machine_events
from pytest_agentproc.supervisor.dialects import MalformedLine, Noise, Setting, make_decoder, make_session_protocol
from tests.architecture.sources import ROOT

if TYPE_CHECKING:
    from pathlib import Path

DATA = ROOT / "tests" / "data" / "transcripts"
FILES = sorted(str(file.relative_to(DATA)) for file in DATA.rglob("*.json*"))
IN_SESSIONS = ("timed", "cut", "sessions")

NOISE: dict[str, int] = {}
"""How many lines of a recording are no JSON."""


def find_dialect(file: Path) -> tuple[str, str]:
    """Say in which dialect and mode a file was recorded."""
    folder, name = file.parent.name, file.name
    if folder in IN_SESSIONS:
        return ("pi", "rpc") if name.startswith("pi-rpc") else ("claude", "session")
    if folder == "runs":
        folder = {"p": "claude"}.get(name.split("-")[0], name.split("-")[0])
    modes = {"claude": "print", "pi": "json", "codex": "exec", "gemini": "json" if name.endswith(".json") else "stream"}
    return folder, modes[folder]


def read_printed_lines(file: Path) -> list[bytes]:
    """Give the lines that the CLI printed."""
    lines = []
    for line in file.read_text("utf-8").splitlines():
        entry: Any = json.loads(line) if line.startswith('{"') else None
        if isinstance(entry, dict) and "dir" in entry:
            words = entry["line"]
            if entry["dir"] == "<<":
                lines.append((words if isinstance(words, str) else json.dumps(words, ensure_ascii=False)).encode())
        elif not (isinstance(entry, dict) and ">>" in entry):
            lines.append(line.encode())
    return lines


def decode_chunks(name: str, chunks: list[bytes]) -> list[Any]:
    """Decode what came in chunks, to its end."""
    dialect, mode = find_dialect(DATA / name)
    framing = LineSplitter()
    notes: list[Any] = []
    if mode in ("session", "rpc"):
        talking = make_session_protocol(dialect, "", Setting("/work", "key"))
        for lines in (*map(framing.feed, chunks), framing.flush()):
            notes += [meaning for line in lines for meaning in talking.decode(line)]
        return notes
    decoding = make_decoder(dialect, mode)
    for lines in (*map(framing.feed, chunks), framing.flush()):
        notes += [meaning for line in lines for meaning in decoding.decode(line)]
    return notes + list(decoding.end(b""))


@pytest.mark.parametrize("name", FILES)
def test_every_line_of_a_recording_is_a_known_event(name: str) -> None:
    """The real CLI never prints an odd line: an odd line would be a hole in the decoder."""
    text = decode_chunks(name, [b"\n".join(read_printed_lines(DATA / name)) + b"\n"])
    odd = [meaning for meaning in text if isinstance(meaning, MalformedLine | Noise)]
    assert len(odd) == NOISE.get(name, 0), odd


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
@given(cuts=st.lists(st.integers(1, 5000), min_size=1), noise=st.lists(st.integers(0, 400), max_size=5))
@settings(max_examples=5, deadline=None)
def test_chunks_and_noise_between_the_lines_change_no_event(name: str, cuts: list[int], noise: list[int]) -> None:
    """A pipe cuts where it likes, and others print to it as well (F1, F2)."""
    lines = read_printed_lines(DATA / name)
    whole = decode_chunks(name, [b"\n".join(lines) + b"\n"])
    places = [] if find_dialect(DATA / name)[1] == "json" and name.endswith(".json") else noise
    for place in places:
        lines.insert(place % (len(lines) + 1), b"warning: {noise")
    data, chunks = b"\r\n".join(lines), []
    for size in cycle(cuts):
        chunks.append(data[:size])
        data = data[size:]
        if not data:
            break
    told = decode_chunks(name, chunks)
    assert [meaning for meaning in told if not isinstance(meaning, Noise)] == [
        meaning for meaning in whole if not isinstance(meaning, Noise)
    ]
    assert sum(isinstance(meaning, Noise) for meaning in told) == len(places) + NOISE.get(name, 0)


KILLED, TERMINATED = (Outcome.INCOMPLETE, 137, None, None), (Outcome.INCOMPLETE, 143, None, None)
GONE = (Outcome.INCOMPLETE, 1, None, None)
CODEX: dict[str, tuple[Outcome, int, str | None, int | None]] = {
    "killpg-term-tool": TERMINATED,
    "nosandbox-sigint-tool": GONE,  # it exits with 1
    "nosandbox-sigkill-tool": KILLED,
    "nosandbox-sigterm-tool": TERMINATED,
    "resume": (Outcome.COMPLETED, 0, "second answer", 30),
    "resume-after-sigterm": (Outcome.COMPLETED, 0, "after term", 10),
    "resume-unknown": GONE,  # a word on stderr, nothing on stdout, and an exit with 1
    "sigint-tool": GONE,
    "sigkill-tool": KILLED,
    "sigterm-tool": TERMINATED,
    "tool": (Outcome.COMPLETED, 0, "codex answer", 20),
    "wrapper-nosandbox-sigterm-tool": GONE,  # its wrapper exits with 0, and there is no result
    "wrapper-sigkill-tool": KILLED,
    "wrapper-sigterm-tool": GONE,
}


@pytest.mark.parametrize("name", CODEX)
def test_a_recorded_run_of_codex_comes_to_what_it_was(name: str) -> None:
    """Outcome, exit code, text and tokens of a run whose lines come at the recorded instants."""
    machine, status, at = RunMachine(RunSettings("codex", policy=Policy())), None, 0
    machine.feed(machine_events.RunStarted(), 0)
    machine.feed(machine_events.AgentSpawned(7), 0)
    for text in (DATA / "runs" / f"codex-{name}.jsonl").read_text("utf-8").splitlines():
        entry = json.loads(text)
        at, line = entry["t_ms"] * 1_000_000, entry["line"]
        if entry["dir"] == "<<":
            machine.feed(machine_events.OutputRead("stdout", json.dumps(line).encode() + b"\n", drained=True), at)
        elif "stderr" in line:
            machine.feed(machine_events.OutputRead("stderr", line["stderr"].encode() + b"\n", drained=True), at)
        elif line.get("event") == "exit":
            status = line["rc"]
            machine.feed(machine_events.AgentExited(status), at)
            machine.feed(machine_events.TreeSwept(alone=True), at)
            break
    assert status is not None
    result = machine.build_result(0)
    tokens = (result.usage or {}).get("input_tokens")
    assert (result.outcome, result.exit_code, result.text, tokens) == CODEX[name]
    assert (result.agent_status, result.noise) == (status, 0)


def test_every_recorded_run_of_codex_has_its_row() -> None:
    """A recording without a verdict is no evidence."""
    assert {file.stem for file in (DATA / "runs").glob("codex-*")} == {f"codex-{name}" for name in CODEX}
