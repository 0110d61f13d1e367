"""What the real CLIs do on a signal: in each mode and state, with each signal, once and twice.

`python -m tests.fidelity.signals` measures all again, and writes the file. The fakes are held against the file.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_agentproc.harness import ScenarioRunner
from pytest_agentproc.scenario import loads
from tests.clients.packages import install_from_npm
from tests.fidelity.comparing import list_kinds
from tests.fidelity.model_server import ModelServer, Reply
from tests.fidelity.running import RealCLI, insert_ids

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["MEASURED", "PLACES", "SIGNALS", "Place", "measure_fake", "measure_real", "read_measured"]

MEASURED = Path(__file__).parents[1] / "data" / "real-signals.txt"
"""One line for each mode, state and signal: the exit code ("-" lives on), the tool, and what is still printed."""

_LIMIT = 60.0
"""Real seconds until a state is reached."""
_PATIENCE = 8.0
"""Real seconds that a CLI gets to end after the signals. Each state would last longer."""
_HOLD = 40.0
_PAUSE_BEFORE_SECOND = 0.3
_DEATH = 1.0
"""Real seconds after the end of a CLI until its tool has ended, too, or lives on; and its output is read."""
_SETTLED = 0.7
"""Real seconds after which a state that was reached has settled."""


@dataclass(frozen=True)
class Place:
    """A mode of a CLI, and how to bring it into each of its states.

    Args:
        cli: a name in `running.PACKAGES`.
        mode: the mode, as the fake calls it.
        argv: the arguments.
        tool: the call of the shell tool, of which `%s` is the command.
        talk: lines for stdin, each after a line with certain words; see `running.run_program`.
        end: words of the line that ends a turn; "" if the mode has no idle state.
        package: another package, whose program uses the CLI.
    """

    cli: str
    mode: str
    argv: tuple[str, ...]
    tool: tuple[str, dict[str, Any]]
    talk: tuple[tuple[str, str], ...] = ()
    end: str = ""
    package: str = ""

    @property
    def states(self) -> tuple[str, ...]:
        """Its states. An agent that asks before it runs a tool has none with a tool."""
        return ("model", "answering", *(() if self.package else ("tool",)), *(("idle",) if self.end else ()))


def _rpc(number: int, method: str, **params: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


_USER = json.dumps({"type": "user", "session_id": "", "message": {"role": "user", "content": "hi"}})
_BASH: tuple[str, dict[str, Any]] = ("Bash", {"command": "%s", "description": "d"})
_ACP = (
    ("", _rpc(0, "initialize", protocolVersion=1, clientCapabilities={})),
    ('"id":0', _rpc(1, "session/new", cwd="<folder>", mcpServers=[])),
    ('"id":1', _rpc(2, "session/prompt", sessionId="<session>", prompt=[{"type": "text", "text": "hi"}])),
)
_APP_SERVER = (
    ("", _rpc(0, "initialize", clientInfo={"name": "x", "title": None, "version": "1"})),
    ('"id":0', json.dumps({"method": "initialized"})),
    ("", _rpc(1, "thread/start", cwd="<folder>", sandbox="danger-full-access", approvalPolicy="never")),
    ('"thread/started"', _rpc(2, "turn/start", threadId="<thread>", input=[{"type": "text", "text": "hi"}])),
)
_CODEX_TOOL: tuple[str, dict[str, Any]] = ("exec_command", {"cmd": "%s", "yield_time_ms": 60000})
_CLAUDE_FLAGS = ("--output-format", "stream-json", "--verbose", "--allowedTools=Bash")
_OPENCODE_TOOL: tuple[str, dict[str, Any]] = ("bash", {"command": "%s", "description": "d"})
_PI = ("--model", "fake/m1")
PLACES = [
    Place("claude", "print", ("-p", *_CLAUDE_FLAGS, "hi"), _BASH),
    Place("claude", "session", (*_CLAUDE_FLAGS, "--input-format", "stream-json"), _BASH, (("", _USER),), '"result"'),
    Place("codex", "exec", ("exec", "--skip-git-repo-check", "--json", "--yolo", "hi"), _CODEX_TOOL),
    Place("codex", "app-server", ("app-server",), _CODEX_TOOL, _APP_SERVER, "turn/completed"),
    Place(
        "gemini",
        "stream",
        ("-m", "gemini-2.5-flash", "--skip-trust", "-y", "-o", "stream-json", "-p", "hi"),
        ("run_shell_command", {"command": "%s"}),
    ),
    Place("opencode", "json", ("run", "--format", "json", "hi"), _OPENCODE_TOOL),
    Place("opencode", "acp", ("acp",), _OPENCODE_TOOL, _ACP, '"id":2'),
    Place("pi", "json", (*_PI, "--mode", "json", "-p", "hi"), ("bash", {"command": "%s"})),
    Place(
        "pi",
        "rpc",
        (*_PI, "--mode", "rpc"),
        ("bash", {"command": "%s"}),
        (("", json.dumps({"type": "prompt", "message": "hi"})),),
        '"agent_end"',
    ),
    Place("claude", "acp", (), _BASH, _ACP, '"id":2', package="claude-agent-acp-0.101.0"),
]
SIGNALS = ("TERM", "INT", "HUP", "TERM+TERM", "INT+INT", "HUP+HUP")
"""The same twice is the first, and the second a moment later."""


class _Running:
    """One started CLI, whose output is collected."""

    def __init__(self, place: Place, path: str, environ: dict[str, str], folder: Path) -> None:
        pipe = subprocess.PIPE
        self.place, self.folder = place, folder
        self.program = subprocess.Popen(
            [path, *place.argv],
            stdin=pipe if place.talk else subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            env=environ,
            cwd=folder,
            text=True,
            start_new_session=True,
            preexec_fn=_reset_signals,  # noqa: PLW1509  # no thread of this program holds a lock here
        )
        self.lines: list[str] = []
        self.errors: list[str] = []
        self._threads: list[threading.Thread] = []
        self.changed = threading.Condition()
        for stream, kept in ((self.program.stdout, self.lines), (self.program.stderr, self.errors)):
            thread = threading.Thread(target=self._collect, args=(stream, kept), daemon=True)
            thread.start()
            self._threads.append(thread)

    def close(self) -> None:
        """Wait for its end, and close its pipes."""
        self.program.wait()
        for thread in self._threads:
            thread.join(_DEATH)
        for stream in (self.program.stdin, self.program.stdout, self.program.stderr):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()

    def _collect(self, stream: Any, kept: list[str]) -> None:
        for line in stream:
            with self.changed:
                kept.append(line)
                self.changed.notify_all()

    def await_line(self, words: str, start: int = 0) -> int:
        """Give the number of lines up to one with these words."""
        deadline = time.monotonic() + _LIMIT
        with self.changed:
            while True:
                for number, line in enumerate(self.lines[start:], start + 1):
                    if words in line:
                        return number
                assert self.changed.wait(deadline - time.monotonic()), (words, self.lines, self.errors)

    def say(self) -> None:
        """Say all that brings it to its first turn."""
        seen = 0
        assert self.program.stdin is not None or not self.place.talk
        for words, line in self.place.talk:
            if words:
                seen = self.await_line(words, seen)
            if self.program.stdin is not None:
                whole = insert_ids(line, self.lines).replace("<folder>", str(self.folder))
                self.program.stdin.write(f"{whole}\n")
                self.program.stdin.flush()


def _reset_signals() -> None:
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


def measure_real(place: Place, state: str, signals: str) -> str:
    """Bring a real CLI into a state, signal it, and say what it does, as `MEASURED` has it."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home, ModelServer() as server:
        cli = RealCLI(place.cli, Path(home), server.url)
        environ, path = dict(cli.environ), cli.path
        if place.package:
            environ["CLAUDE_CODE_EXECUTABLE"] = path
        if place.cli == "codex":
            [path] = map(str, (install_from_npm("codex") / "node_modules").glob("@openai/codex-*/vendor/*/bin/codex"))
        mark = cli.folder / "pid"
        command = f"tail -f /dev/null >/dev/null & echo $! >{mark}; wait"  # to a pipe it would end with its reader
        name, given = place.tool
        call = (name, {key: command if value == "%s" else value for key, value in given.items()})
        replies = {
            "model": (Reply("late", after=_HOLD),),
            "answering": (Reply("one two three", pause=_HOLD),),
            "tool": (Reply("see", [call]), Reply("done")),
            "idle": (Reply("hello"),),
        }
        server.answer_with(*replies[state])
        reached: dict[str, Callable[[], object]] = {
            "model": lambda: server.script.taken.total() > 0,
            "answering": server.script.half_sent.is_set,
            "tool": lambda: mark.exists() and mark.read_text("utf-8").strip(),
        }
        running = _Running(place, path, environ, cli.folder)
        reached["idle"] = lambda: any(place.end in line for line in running.lines)
        try:
            running.say()
            _await_state(running, reached[state])
            tool = int(mark.read_text("utf-8")) if mark.exists() else 0
            return _signal_and_watch(running, signals, tool)
        finally:
            _end(running, int(mark.read_text("utf-8") or 0) if mark.exists() else 0)


_TOOL = "{tool: {id: t, name: Bash, input: {command: x}}}, {spawn: {id: t, how: new_session, script: [{silence: 60s}]}}"
_SCRIPTS = {"model": "", "answering": "", "tool": f"{_TOOL}, ", "idle": "{answer: hello}, "}
_HAS_DELTAS = ("claude", "pi")


def measure_fake(place: Place, state: str, signals: str) -> str:
    """Bring the fake of a CLI into a state, signal it, and say what it does, as `MEASURED` has it."""
    is_session = bool(place.end)
    dialect = "acp" if place.mode == "acp" else place.cli
    mode = {"opencode": "run", "acp": "session"}.get(dialect, place.mode)
    began = "{wait_for: prompt 1}, " if is_session else "{begin: turn}, "
    began += "{delta: one}, " if state == "answering" and dialect in _HAS_DELTAS else ""
    script = f"[{began}{_SCRIPTS[state]}{{silence: 60s}}]"
    agent = f"{{dialect: {dialect}, mode: {mode}}}"
    with ScenarioRunner() as runner, tempfile.TemporaryDirectory() as folder:
        fake = runner.make_fake(loads(f"scenario: x\nagent: {agent}\nscript: {script}\n", "x"))
        running = _Running(place, fake.path, {"LANG": "C.UTF-8"}, Path(folder))
        children = Path(f"/proc/{running.program.pid}/task/{running.program.pid}/children")
        try:
            running.say()
            _await_state(running, (lambda: children.read_text("utf-8").split()) if state == "tool" else None)
            tool = int(children.read_text("utf-8").split()[0]) if state == "tool" else 0
            return _signal_and_watch(running, signals, tool)
        finally:
            _end(running, 0)
            fake.finish()


def _await_state(running: _Running, is_reached: Callable[[], object] | None) -> None:
    """Wait until the state is reached; without a condition, for a moment."""
    deadline = time.monotonic() + _LIMIT
    while is_reached is not None and not is_reached():
        assert time.monotonic() < deadline, (running.lines, running.errors)
        assert running.program.poll() is None, (running.lines, running.errors)
        threading.Event().wait(0.02)
    threading.Event().wait(_SETTLED)


def _signal_and_watch(running: _Running, signals: str, tool: int) -> str:
    program, before = running.program, len(running.lines)
    for number, name in enumerate(signals.split("+")):
        threading.Event().wait(_PAUSE_BEFORE_SECOND if number else 0)
        with suppress(ProcessLookupError):
            os.kill(program.pid, getattr(signal, f"SIG{name}"))
    try:
        code = str(program.wait(_PATIENCE))
    except subprocess.TimeoutExpired:
        code = "-"
    deadline = time.monotonic() + _DEATH
    while _is_alive(tool) and time.monotonic() < deadline:
        threading.Event().wait(0.02)
    threading.Event().wait(0.1)
    fate = ("lives" if _is_alive(tool) else "killed") if tool else "-"
    return " ".join([code, fate, *(kind.replace(" ", "-") for kind in list_kinds("".join(running.lines[before:])))])


def _is_alive(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0] != "Z"
    return False


def _end(running: _Running, tool: int) -> None:
    """End the CLI with its group, and the tool; then its output has ended."""
    for pid in (-running.program.pid, tool):
        with suppress(ProcessLookupError):
            if pid:
                os.kill(pid, signal.SIGKILL)
    running.close()


def read_measured() -> dict[tuple[str, str, str, str], str]:
    """Read the file: CLI, mode, state and signals, and what was seen."""
    rows = [line.split(" ", 4) for line in MEASURED.read_text("utf-8").splitlines()]
    return {(cli, mode, state, signals): seen for cli, mode, state, signals, seen in rows}


def _write_measured() -> None:
    with MEASURED.open("w", encoding="utf-8") as file:
        for place in PLACES:
            for state in place.states:
                for signals in SIGNALS:
                    seen = measure_real(place, state, signals)
                    file.write(f"{place.cli} {place.mode} {state} {signals} {seen}\n")
                    file.flush()


if __name__ == "__main__":
    _write_measured()
