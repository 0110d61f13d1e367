"""What the real CLIs do with a stdin that stays open: with a prompt among the arguments or none, with a byte or none.

`python -m tests.fidelity.stdin` measures all again, and writes the file. The fakes are held against the file.
"""

from __future__ import annotations

import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

from pytest_agentproc.harness import ScenarioRunner
from pytest_agentproc.scenario import loads
from tests.fidelity.model_server import ModelServer
from tests.fidelity.running import RealCLI

__all__ = ["CASES", "MEASURED", "MODES", "measure_fake", "measure_real", "read_measured"]

MEASURED = Path(__file__).parents[1] / "data" / "real-stdin.txt"
"""One line for each mode and case: the exit code, whether it waited for the end of stdin, and stderr's first line."""

MODES: dict[tuple[str, str], tuple[tuple[str, ...], tuple[str, ...]]] = {
    ("claude", "text"): (("-p",), ("hi",)),
    ("claude", "json"): (("-p", "--output-format", "json"), ("hi",)),
    ("claude", "print"): (("-p", "--output-format", "stream-json", "--verbose"), ("hi",)),
    ("codex", "text"): (("exec", "--skip-git-repo-check"), ("hi",)),
    ("codex", "exec"): (("exec", "--skip-git-repo-check", "--json"), ("hi",)),
    ("gemini", "text"): (("-m", "gemini-2.5-flash", "--skip-trust"), ("-p", "hi")),
    ("gemini", "json"): (("-m", "gemini-2.5-flash", "--skip-trust", "-o", "json"), ("-p", "hi")),
    ("gemini", "stream"): (("-m", "gemini-2.5-flash", "--skip-trust", "-o", "stream-json"), ("-p", "hi")),
    ("opencode", "text"): (("run",), ("hi",)),
    ("opencode", "run"): (("run", "--format", "json"), ("hi",)),
    ("pi", "text"): (("--provider", "fake", "--model", "m1", "-p"), ("hi",)),
    ("pi", "json"): (("--provider", "fake", "--model", "m1", "--mode", "json", "-p"), ("hi",)),
}
"""By CLI and mode: the arguments, and those that hold the prompt."""
CASES = {
    "prompt": (True, ""),
    "prompt+byte": (True, "more\n"),
    "no-prompt": (False, ""),
    "no-prompt+byte": (False, "hi\n"),
}
"""Whether the arguments have the prompt, and what stdin has before it stays open."""
_PATIENCE = 30.0
"""Real seconds that stdin stays open: longer than a start takes."""
_LIMIT = 60.0
_NOISE = ("Ripgrep", "[STARTUP]", "> build", "\x1b[0m")
"""Lines for a person, which depend on the machine."""


def measure_real(cli: str, mode: str, case: str) -> str:
    """Start a real CLI, and say what it does, as `MEASURED` has it."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home, ModelServer() as server:
        real = RealCLI(cli, Path(home), server.url)
        return _start_and_watch(real.path, dict(real.environ), real.folder, cli, mode, case)


def measure_fake(cli: str, mode: str, case: str) -> str:
    """Start the fake of a CLI, and say what it does, as `MEASURED` has it."""
    with ScenarioRunner() as runner, tempfile.TemporaryDirectory() as folder:
        fake = runner.make_fake(loads(f"scenario: x\nagent: {cli}\nscript: [{{answer: hello}}]\n", "x"))
        seen = _start_and_watch(fake.path, {"LANG": "C.UTF-8"}, Path(folder), cli, mode, case, patience=5.0)
        fake.finish()
    return seen


def _start_and_watch(  # the start of a program
    path: str, environ: dict[str, str], folder: Path, cli: str, mode: str, case: str, *, patience: float = _PATIENCE
) -> str:
    argv, prompt = MODES[cli, mode]
    has_prompt, data = CASES[case]
    pipe = subprocess.PIPE
    command = [path, *argv, *(prompt if has_prompt else ())]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=environ, cwd=folder, text=True) as program:
        assert program.stdin is not None
        assert program.stderr is not None
        program.stdin.write(data)
        program.stdin.flush()
        waits = False
        try:
            program.wait(patience)  # its few lines fit into the pipes
        except subprocess.TimeoutExpired:
            waits = True
        with suppress(BrokenPipeError):
            program.stdin.close()
        try:
            code = program.wait(_LIMIT)
        finally:
            program.kill()
        errors = [line for line in program.stderr.read().splitlines() if not line.startswith(_NOISE)]
    return f"{code} {'waits' if waits else 'goes-on'} {errors[0] if errors else '-'}"


def read_measured() -> dict[tuple[str, str, str], str]:
    """Read the file: CLI, mode and case, and what was seen."""
    rows = [line.split(" ", 3) for line in MEASURED.read_text("utf-8").splitlines()]
    return {(cli, mode, case): seen for cli, mode, case, seen in rows}


def _write_measured() -> None:
    with MEASURED.open("w", encoding="utf-8") as file:
        for cli, mode in MODES:
            for case in CASES:
                file.write(f"{cli} {mode} {case} {measure_real(cli, mode, case)}\n")
                file.flush()


if __name__ == "__main__":
    _write_measured()
