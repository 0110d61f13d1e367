"""An inner session of pytest: the suite in a folder, with one plugin or none. Judges nothing, installs nothing."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tests.neighbours.environments import describe_environment, find_interpreter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.neighbours.plugins import Neighbour, Proof

__all__ = ["SessionResult", "disprove", "interrupt_session", "run_suite"]

_SUITE = Path(__file__).parent / "suite"
_INI = "[pytest]\n"
_TIMEOUT_SECONDS = 180
"""Real seconds for one session; a hang is a failure."""
_DRAIN_SECONDS = 10
"""Real seconds for the last of the output, which a process that left the session may hold open."""
_TERMINAL_CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_BESIDE = "test_beside.py"
_PROOF = "test_proof.py"


@dataclass(frozen=True)
class SessionResult:
    """What a session came to.

    Args:
        code: its exit code.
        notes: for each test that did not pass wholly, its outcomes; for each other, nothing.
        beside: the same of the tests that use the plugin.
        output: all that it printed.
        left: the commands of processes that it left.
    """

    code: int
    notes: dict[str, dict[str, str]]
    beside: dict[str, dict[str, str]]
    output: str
    left: list[str]


def run_suite(folder: Path, pytest_version: str, neighbour: Neighbour | None) -> SessionResult:
    """Run all tests of the suite, and those that use the plugin."""
    return _run(folder, pytest_version, neighbour, ["."])


def interrupt_session(folder: Path, pytest_version: str, neighbour: Neighbour | None) -> SessionResult:
    """Run the two tests of which the second one presses Ctrl-C."""
    return _run(folder, pytest_version, neighbour, ["interrupt.py"])


def disprove(folder: Path, pytest_version: str, neighbour: Neighbour, proof: Proof) -> list[str]:
    """Run the session of a proof; give what is not as it says."""
    arguments = [_PROOF if proof.test else "red.scenario.yaml"]
    options = neighbour.options if proof.options is None else proof.options
    chosen = replace(neighbour, options=options, files={**neighbour.files, _PROOF: proof.test})
    result = _run(folder, pytest_version, chosen, arguments)
    problems = [] if result.code == int(proof.fails) else [f"the exit code is {result.code}"]
    if not re.search(proof.says, result.output):
        problems.append(f"the output does not say {proof.says}")
    if proof.hides and re.search(proof.hides, result.output):
        problems.append(f"the output says {proof.hides}")
    if not (folder / "project" / proof.leaves).exists():
        problems.append(f"there is no file {proof.leaves}")
    return [*problems, result.output] if problems else []


def _run(folder: Path, pytest_version: str, neighbour: Neighbour | None, arguments: Sequence[str]) -> SessionResult:
    python = find_interpreter(pytest_version, neighbour)
    place = folder / "project"
    shutil.copytree(_SUITE, place, ignore=shutil.ignore_patterns("__*"))
    options: Sequence[str] = ()
    ini = _INI
    if neighbour is not None:
        options, ini = neighbour.options, f"{_INI}{neighbour.ini}\n"
        for name, text in neighbour.files.items():
            (place / name).write_text(text.lstrip(), "utf-8")
        if neighbour.beside and arguments == ["."]:
            (place / _BESIDE).write_text(neighbour.beside.lstrip(), "utf-8")
    (place / "pytest.ini").write_text(ini, "utf-8")
    (folder / "kit").mkdir()
    command = [str(python), "-m", "pytest", *options, *arguments]
    code, output, left = _await_session(
        command,
        place,
        describe_environment(folder / "kit"),
        has_terminal=neighbour is not None and neighbour.needs_terminal,
    )
    notes = _read_notes(place / "notes.json")
    beside = {name: note for name, note in notes.items() if name.startswith(_BESIDE)}
    return SessionResult(code, {name: note for name, note in notes.items() if name not in beside}, beside, output, left)


def _await_session(
    command: Sequence[str], place: Path, environ: dict[str, str], *, has_terminal: bool
) -> tuple[int, str, list[str]]:
    """Start a session of the kernel, wait for its leader, and end all that is left of it."""
    reader, writer = os.openpty() if has_terminal else os.pipe()
    chunks: list[bytes] = []
    drain = threading.Thread(target=_drain, args=(reader, chunks))
    try:
        process = subprocess.Popen(
            command,
            cwd=place,
            env={**environ, "TMPDIR": str(place.parent)},
            stdin=subprocess.DEVNULL,
            stdout=writer,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    finally:
        os.close(writer)
    drain.start()
    try:
        with contextlib.suppress(subprocess.TimeoutExpired):  # its exit code says that it was killed, its output where
            process.wait(_TIMEOUT_SECONDS)
    finally:
        left = _end_session(process.pid)
        process.wait()
        drain.join(_DRAIN_SECONDS)
    printed = b"".join(chunks).decode(errors="replace").replace("\r\n", "\n")
    return process.returncode, _TERMINAL_CODES.sub("", printed), left


def _drain(reader: int, chunks: list[bytes]) -> None:
    """Read all that is printed; a terminal ends with an error."""
    with contextlib.suppress(OSError):
        while chunk := os.read(reader, 65536):
            chunks.append(chunk)
    os.close(reader)


def _end_session(leader: int) -> list[str]:
    """End the processes of a session; give the commands of those that had outlived its leader."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) != leader or fields[0] == "Z":
                continue
            words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            os.kill(int(entry.name), signal.SIGKILL)
        except (OSError, ValueError, IndexError):  # no process, or it is gone
            continue
        found.append(words)
    return sorted(found)


def _read_notes(file: Path) -> dict[str, dict[str, str]]:
    """Give the notes on each test that has a result: an interrupted one has none."""
    if not file.exists():
        return {}
    return {
        name: {
            part: f"{outcome}: {_hide_numbers(reason)}"
            for part, (outcome, reason) in parts.items()
            if outcome != "passed"
        }
        for name, parts in json.loads(file.read_text("utf-8")).items()
        if "call" in parts or any(outcome != "passed" for outcome, _ in parts.values())
    }


def _hide_numbers(reason: str) -> str:
    """Hide what differs from run to run."""
    return re.sub(r"\d+", "N", reason)
