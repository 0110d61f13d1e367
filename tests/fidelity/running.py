"""Starts a real CLI, or a fake, with the same arguments and the same stdin. Compares nothing.

A real CLI has a home of its own, and its model is the scripted server on loopback. No request leaves the machine: every
proxy that it may use is a closed port.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.clients.packages import install_from_npm

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

__all__ = ["PACKAGES", "CliRun", "RealCLI", "insert_ids", "run_program"]

PACKAGES = {"claude": "claude", "codex": "codex", "gemini": "gemini", "opencode": "opencode", "pi": "pi-coding-agent"}
"""The keys of `packages.NPM`, by CLI."""

_IDS = {
    "thread": r'"thread":{"id"',
    "turn": r'"turn":{"id"',
    "session": r'"sessionId"',
    "request": r'"request_id"',
    "message": r'"jsonrpc":"2.0","id"',
}
"""The text before the id of each thing whose last id a client can need."""


@dataclass(frozen=True)
class CliRun:
    """One start: its exit code, and what it printed."""

    code: int
    stdout: str
    stderr: str


def run_program(
    command: Sequence[str],
    environ: Mapping[str, str],
    folder: Path,
    stdin: str = "",
    talk: Sequence[tuple[str, str]] = (),
    limit: int = 60,
) -> CliRun:
    """Start a program and wait for its end.

    Args:
        command: the program and its arguments.
        environ: its environment.
        folder: its folder.
        stdin: what it reads.
        talk: instead of that, what it reads after it printed a line with certain words; "" is at once. Then stdin ends.
            `<thread>`, `<turn>`, `<session>`, `<request>` and `<message>` stand for the last such id that it printed.
        limit: real seconds after which it is killed, and its processes with it.
    """
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=pipe, env=environ, cwd=folder, text=True, start_new_session=True
    ) as program:
        watchdog = threading.Timer(limit, os.killpg, (program.pid, signal.SIGKILL))
        watchdog.start()
        try:
            if not talk:
                stdout, stderr = program.communicate(stdin)
                return CliRun(program.returncode, stdout, stderr)
            return _talk(program, talk)
        finally:
            watchdog.cancel()
            program.kill()


def _talk(program: subprocess.Popen[str], talk: Sequence[tuple[str, str]]) -> CliRun:
    assert program.stdin is not None
    assert program.stdout is not None
    assert program.stderr is not None
    lines: list[str] = []
    for words, line in talk:
        while words and not (lines and words in lines[-1]):
            lines.append(program.stdout.readline())
            assert lines[-1], f"it ended before it printed {words}: {''.join(lines)}{program.stderr.read()}"
        if line:
            program.stdin.write(f"{insert_ids(line, lines)}\n")
            program.stdin.flush()
    program.stdin.close()
    rest = program.stdout.read()
    return CliRun(program.wait(), "".join(lines) + rest, program.stderr.read())


def insert_ids(line: str, printed: list[str]) -> str:
    """Write the last id of a thread, a turn and a session that was printed in the place of its name."""
    text = "".join(printed)
    for name, reported in _IDS.items():
        found = re.findall(rf'{reported}: ?"?([^",}}]+)', text)
        line = line.replace(f"<{name}>", found[-1]) if found else line
    return line


class RealCLI:
    """A real CLI in a home of its own.

    Args:
        name: a key of `PACKAGES`.
        home: an empty folder.
        url: the scripted server.
        packages: its package and version; None: those of `packages.NPM`.
    """

    def __init__(self, name: str, home: Path, url: str, packages: Mapping[str, str] | None = None) -> None:
        self.name = name
        self.folder = home / "work"
        self.folder.mkdir(parents=True)
        (home / "tmp").mkdir()
        programs = install_from_npm(PACKAGES[name], packages) / "node_modules" / ".bin"
        self.path = str(programs / name)
        node = programs / "node"  # the Node that it comes with, if it needs one of its own
        folder = os.path.dirname(str(node) if node.exists() else shutil.which("node") or "")  # noqa: PTH120
        self.environ = {
            "PATH": os.pathsep.join([folder, os.defpath]),
            "HOME": str(home),
            "TMPDIR": str(home / "tmp"),
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
            "LANG": "C.UTF-8",
            **dict.fromkeys(("HTTPS_PROXY", "HTTP_PROXY"), "http://127.0.0.1:9"),
            "NO_PROXY": "127.0.0.1",
            **getattr(self, f"_{name}")(home, url),
        }

    def _claude(self, _home: Path, url: str) -> dict[str, str]:
        return {
            "ANTHROPIC_API_KEY": "none",
            "ANTHROPIC_BASE_URL": url,
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }

    def _codex(self, home: Path, url: str) -> dict[str, str]:
        provider = {"name": "fake", "base_url": f"{url}/v1", "wire_api": "responses", "stream_max_retries": 0}
        lines = [f"{key} = {json.dumps(value)}" for key, value in {**provider, "request_max_retries": 0}.items()]
        head = ['model = "m1"', 'model_provider = "fake"', "[model_providers.fake]"]
        (home / ".codex").mkdir()
        (home / ".codex" / "config.toml").write_text("\n".join([*head, *lines, ""]), encoding="utf-8")
        (home / ".codex" / "auth.json").write_text(json.dumps({"OPENAI_API_KEY": "sk-none"}), encoding="utf-8")
        return {"CODEX_HOME": str(home / ".codex")}

    def _gemini(self, home: Path, url: str) -> dict[str, str]:
        (home / ".gemini").mkdir()
        settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}, "general": {"enableAutoUpdate": False}}
        (home / ".gemini" / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
        return {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": url}

    def _opencode(self, home: Path, url: str) -> dict[str, str]:
        options = {"baseURL": f"{url}/v1", "apiKey": "none"}
        model = {"name": "m1", "tool_call": True, "limit": {"context": 100_000, "output": 4000}}
        provider = {"npm": "@ai-sdk/openai-compatible", "name": "fake", "options": options, "models": {"m1": model}}
        names = {"model": "fake/m1", "small_model": "fake/m1", "autoupdate": False, "share": "disabled"}
        folder = home / ".config" / "opencode"
        folder.mkdir(parents=True)
        (folder / "opencode.json").write_text(json.dumps({**names, "provider": {"fake": provider}}), encoding="utf-8")
        return dict.fromkeys(("OPENCODE_DISABLE_MODELS_FETCH", "OPENCODE_DISABLE_AUTOUPDATE"), "1")

    def _pi(self, home: Path, url: str) -> dict[str, str]:
        folder = home / ".pi" / "agent"
        folder.mkdir(parents=True)
        models = {"baseUrl": f"{url}/v1", "api": "openai-completions", "apiKey": "none", "models": [{"id": "m1"}]}
        (folder / "models.json").write_text(json.dumps({"providers": {"fake": models}}), encoding="utf-8")
        return {"PI_OFFLINE": "1"}
