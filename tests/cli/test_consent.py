"""`record` and `import` ask before they write: what they say, what is a yes, and what they do without a terminal."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
from pathlib import Path

import pytest

SECRET = "hX7pQ2mZ9tR4"  # noqa: S105  # of this test alone
LOG = '{"type":"assistant","message":{"content":[{"type":"text","text":"password: hX7pQ2mZ9tR4"}]}}\n'
COMMANDS = {
    "record": ["record", "--out", "x.scenario.yaml", "--", "sh", "-c", f"touch ran; echo password: {SECRET}; exit 3"],
    "import": ["import", "log.txt", "--dialect", "claude", "--out", "x.scenario.yaml"],
}
CODE_AFTER = {"record": (3, 3), "import": (0, 1)}
"""The exit codes after yes and after no."""
CEILING = 60

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("log.txt").write_text(LOG, "utf-8")


def answer_questions(words: list[str], *answers: bytes) -> tuple[int, str]:
    """Run a command at a terminal, and give an answer to each of its questions; give its code and its stderr."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "pytest_agentproc", *words]
    with subprocess.Popen(command, stdin=theirs, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as running:
        os.close(theirs)
        assert running.stderr is not None
        shown, waiting = b"", list(answers)
        try:
            while select.select([running.stderr], [], [], CEILING)[0]:
                if not (read := os.read(running.stderr.fileno(), 1 << 16)):
                    break
                shown += read
                if shown.endswith(b"[l]ook: ") and waiting:
                    os.write(ours, waiting.pop(0))
            code = running.wait(CEILING)
        finally:
            running.kill()
            os.close(ours)
    return code, shown.decode()


def read_written_files() -> str:
    """Give all that the command wrote."""
    return "".join(file.read_text("utf-8") for file in sorted(Path().glob("x.*")))


@pytest.mark.parametrize("command", COMMANDS)
def test_without_a_terminal_nothing_runs_and_nothing_is_written(command: str) -> None:
    """A pipe cannot look, and its bytes belong to the program."""
    words = [sys.executable, "-m", "pytest_agentproc", *COMMANDS[command]]
    completed = subprocess.run(words, input=b"y\n", capture_output=True, check=False, timeout=CEILING)
    assert completed.returncode == 2
    assert completed.stderr.decode() == (
        f"agentproc {command}: stdin is no terminal, so nobody can be asked to look before the files are written\n"
        "add --yes to write them without a question, and read them before you give them away\n"
    )
    assert (read_written_files(), Path("ran").exists()) == ("", False)


@pytest.mark.parametrize("command", COMMANDS)
def test_yes_writes_without_a_question(command: str) -> None:
    """A script says it beforehand; it sees what was replaced all the same."""
    words = [sys.executable, "-m", "pytest_agentproc", command, "--yes", *COMMANDS[command][1:]]
    completed = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=CEILING)
    assert completed.returncode == CODE_AFTER[command][0]
    assert f"agentproc {command}: redacted redacted1: value of a telling name (1 in " in completed.stderr.decode()
    assert SECRET not in read_written_files()
    assert "redacted1" in read_written_files()


@pytest.mark.parametrize("command", COMMANDS)
def test_the_question_shows_what_was_replaced_and_a_look_shows_the_rest(command: str) -> None:
    """The secret itself is shown nowhere."""
    code, shown = answer_questions(COMMANDS[command], b"what?\n", b"look\n", b"y\n")
    assert code == CODE_AFTER[command][0]
    assert shown.count("[y]es, [n]o, [l]ook: ") == 3
    assert re.match(rf"agentproc {command}: redacted redacted1: value of a telling name \(1 in [^\n]+\)\n", shown)
    assert "password: redacted1xxx" in shown
    assert SECRET not in shown + read_written_files()
    assert "redacted1" in read_written_files()


@pytest.mark.parametrize("answer", [b"n\n", b"\x04", b"no\n"], ids=["n", "end of input", "no"])
@pytest.mark.parametrize("command", COMMANDS)
def test_no_and_no_answer_write_nothing(command: str, answer: bytes) -> None:
    """Only a yes is a yes."""
    code, shown = answer_questions(COMMANDS[command], answer)
    assert (code, read_written_files()) == (CODE_AFTER[command][1], "")
    assert shown.endswith(f"agentproc {command}: nothing was written\n")
