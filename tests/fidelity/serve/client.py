"""A conversation with `opencode serve` over HTTP: the requests of a client, and the events that it sees.

Judges nothing. What comes out has the form of a CLI's output: a line of JSON for each event, and then one for each
answer. What the server tells beside a turn comes at no fixed place, and is left out: titles, diffs, what it has loaded.
"""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
import threading
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from tests.fidelity.running import CliRun

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

__all__ = ["ASKS_BEFORE_BASH", "run_server"]

ASKS_BEFORE_BASH = {"OPENCODE_CONFIG_CONTENT": json.dumps({"permission": {"bash": "ask"}})}
"""The environment of a server that asks for a permission."""

_BESIDE = (
    "plugin.",
    "catalog.",
    "reference.",
    "integration.",
    "project.",
    "session.diff",
    "session.updated",
    "server.h",
)
_PATIENCE = 3
"""Real seconds after a signal: the real server misses a first one now and then."""


class _Client:
    def __init__(self, port: int, limit: int) -> None:
        self._port = port
        self._limit = limit
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        self.events: list[str] = []
        self.answers: list[str] = []

    def read_events(self) -> None:
        """Read the events until the server has gone, in a thread of its own."""
        has_begun = threading.Event()
        self._begin_thread(self._keep_events, has_begun)
        assert has_begun.wait(self._limit)

    def _keep_events(self, has_begun: threading.Event) -> None:
        with self._request("GET", "/event", None) as answer, suppress(http.client.HTTPException, OSError):
            has_begun.set()
            while line := answer.readline():  # until the server is ended
                if line.startswith(b"data: "):
                    self._keep_event(json.loads(line[6:]))

    def _keep_event(self, event: dict[str, Any]) -> None:
        about = event["properties"]
        part, info = about.get("part", {}), about.get("info", {})
        state = part.get("state", {})
        is_progress = state.get("status") == "running" and "metadata" in state
        is_summary = info.get("role") == "user" and "summary" in info
        if event["type"].startswith(_BESIDE) or is_progress or is_summary:
            return
        kinds = {"type": part.get("type"), "status": state.get("status"), "role": info.get("role")}
        kinds["state"] = about.get("status", {}).get("type")
        with self._changed:
            item = {name: value for name, value in kinds.items() if value}
            self.events.append(json.dumps({**event, **({"item": item} if item else {})}))
            self._changed.notify_all()

    def send(self, words: str, method: str, path: str, body: Any) -> None:
        """Send a request once so many events have certain words; wait for its answer unless it is a prompt."""
        count, _, words = words.rpartition("x ")
        with self._changed:
            has_come = self._changed.wait_for(
                lambda: sum(words in event for event in self.events) >= int(count or "0"), self._limit
            )
        assert has_come, words
        for name, kind, told in (("<session>", "ses", self.answers), ("<permission>", "per", self.events)):
            found = re.findall(rf'"id": ?"({kind}_\w+)"', "".join(told))
            path = path.replace(name, found[-1] if found else "")
        if not method:
            return
        place = len(self.answers)
        self.answers.append("")
        self._begin_thread(self._keep_answer, place, method, path, body)
        if not path.endswith("/message"):
            self._threads[-1].join(self._limit)

    def _keep_answer(self, place: int, method: str, path: str, body: Any) -> None:
        with self._request(method, path, body) as answer:
            text = answer.read()
        found = {"type": "answer", "status": str(answer.status), "body": json.loads(text) if text else None}
        self.answers[place] = json.dumps(found)

    @contextmanager
    def _request(self, method: str, path: str, body: Any) -> Iterator[http.client.HTTPResponse]:
        data = None if body is None else json.dumps(body)
        with closing(http.client.HTTPConnection("127.0.0.1", self._port, timeout=self._limit)) as line:
            line.request(method, path, data, {"Content-Type": "application/json"})
            with closing(line.getresponse()) as answer:
                yield answer

    def _begin_thread(self, does: Any, *args: Any) -> None:
        self._threads.append(threading.Thread(target=does, args=args, daemon=True))
        self._threads[-1].start()

    def await_answers(self) -> None:
        """Wait until every request is answered."""
        for thread in self._threads[1:]:
            thread.join(self._limit)

    def await_end(self) -> None:
        """Wait for the end of the events, once the server has ended."""
        self._threads[0].join(self._limit)


def run_server(
    command: Sequence[str],
    environ: Mapping[str, str],
    folder: Path,
    requests: Sequence[tuple[str, str, str, Any]],
    limit: int,
) -> CliRun:
    """Start a server, talk to it, and end it.

    Args:
        command: the program and its arguments.
        environ: its environment.
        folder: its folder.
        requests: after how many events with which words each is sent, as `1x session.idle` ("" is at once), its method,
            path and body. `<session>` and `<permission>` stand for the last such id. Without a method it only waits.
        limit: real seconds for each wait.
    """
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=environ, cwd=folder, text=True) as program:
        watchdog = threading.Timer(limit, program.kill)
        watchdog.start()
        assert program.stdout is not None
        assert program.stderr is not None
        try:
            lines = [program.stdout.readline(), program.stdout.readline()]
            client = _Client(int(lines[-1].rpartition(":")[2]), limit)
            client.read_events()
            for request in requests:
                client.send(*request)
            client.await_answers()
            code = _end_server(program)
            client.await_end()
        finally:
            watchdog.cancel()
            program.kill()
        return CliRun(code, "\n".join([*client.events, *client.answers]), program.stderr.read())


def _end_server(program: subprocess.Popen[str]) -> int:
    while True:
        program.send_signal(signal.SIGTERM)
        try:
            return program.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            continue
