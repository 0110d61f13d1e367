"""The YAML language server that editors run, headless: with the schema it offers the words that a QA author may write.

It is asked as an editor asks it, over its stdin and stdout; the package stays in the user's cache folder.
"""

from __future__ import annotations

import json
import subprocess
import threading
from typing import TYPE_CHECKING, Any

import pytest

from pytest_agentproc.scenario import SCHEMA_MODELINE_FORMAT, build_schema
from tests.clients.packages import find_node, install_from_npm

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LIMIT = 60
"""Real seconds for one conversation."""

pytestmark = pytest.mark.slow

SCENARIO = "scenario: a\nagent: claude\nscript:\n  - answer: done\n  - \nexpect:\n  outcome: completed\n  \n"


class Server:
    """A server and its messages.

    Args:
        process: it.
        folder: where the schema is, and the files are said to be.
    """

    def __init__(self, process: subprocess.Popen[bytes], folder: Path) -> None:
        self._process, self._folder, self._count = process, folder, 0

    def ask(self, method: str, params: Any) -> Any:
        """Call a method; answer the server's requests meanwhile with nothing."""
        self._count += 1
        self._send({"id": self._count, "method": method, "params": params})
        while (reported := self._read()).get("id") != self._count or "method" in reported:
            if "id" in reported and "method" in reported:
                items = reported.get("params", {}).get("items", [])
                self._send({"id": reported["id"], "result": [None for _ in items]})
        return reported["result"]

    def tell(self, method: str, params: Any) -> None:
        """Notify it."""
        self._send({"method": method, "params": params})

    def open(self, text: str) -> str:
        """Open a file whose first line names the schema."""
        uri = (self._folder / "a.scenario.yaml").as_uri()
        text = SCHEMA_MODELINE_FORMAT.format("./agentproc.schema.json") + "\n" + text
        document = {"uri": uri, "languageId": "yaml", "version": 1, "text": text}
        self.tell("textDocument/didOpen", {"textDocument": document})
        return uri

    def complete_at(self, uri: str, line: int, character: int) -> dict[str, Any]:
        """Give its offers at a place, by their labels."""
        place = {"line": line, "character": character}
        found = self.ask("textDocument/completion", {"textDocument": {"uri": uri}, "position": place})
        return {item["label"]: item for item in found["items"]}

    def await_diagnostics(self) -> list[str]:
        """Wait for its list of mistakes."""
        while (reported := self._read()).get("method") != "textDocument/publishDiagnostics":
            pass
        return [diagnostic["message"] for diagnostic in reported["params"]["diagnostics"]]

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self._process.stdin.flush()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        size = 0
        while line := self._process.stdout.readline().strip():
            name, _, value = line.partition(b":")
            size = int(value) if name.lower() == b"content-length" else size
        assert size, "the server has gone"
        read: dict[str, Any] = json.loads(self._process.stdout.read(size))
        return read


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """Start a server within a bound, and end it."""
    program = install_from_npm("yaml-language-server") / "node_modules/yaml-language-server/bin/yaml-language-server"
    (tmp_path / "agentproc.schema.json").write_text(json.dumps(build_schema()), "utf-8")
    command = [find_node(), str(program), "--stdio"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        bound = threading.Timer(LIMIT, process.kill)
        bound.start()
        made = Server(process, tmp_path)
        snippets = {"completion": {"completionItem": {"snippetSupport": True}}}
        about = {"processId": None, "rootUri": tmp_path.as_uri(), "capabilities": {"textDocument": snippets}}
        made.ask("initialize", about)
        made.tell("initialized", {})
        yield made
        bound.cancel()
        process.kill()


def test_an_editor_offers_the_steps_with_their_words(server: Server) -> None:
    """A first-time author of a scenario learns its words in the editor."""
    uri = server.open(SCENARIO)
    steps = server.complete_at(uri, 5, 4)
    assert set(build_schema()["definitions"]["step"]["properties"]) - {"do"} <= set(steps)
    assert "does nothing for this time" in json.dumps(steps["silence"])
    assert {"agent_status", "elapsed", "text"} <= set(server.complete_at(uri, 8, 2))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("script:\n  - sya: done\n", "Property sya is not allowed."),
        ("script:\n  - silence: 5\n", "a number has no unit: write 10s, not 10"),
        ("script:\n  - silence: 1.5\n", "a number has no unit: write 10s, not 10"),
        (
            "script:\n  - silence: 5 parsecs\n",
            "write a time with its unit, such as 10s, or with limits, such as inactivity_timeout + 1s",
        ),
        ("script:\n  - say: null\n", 'this must be text: write "" for empty text'),
        ("script:\n  - spawn: 5\n", 'write a name of letters, digits, "-" and "_"'),
        ("policy: {max_line_bytes: 5}\nscript:\n  - answer: a\n", "a number has no unit: write 64 KiB, not 64"),
        ("policy: {kill_grace: 5}\nscript:\n  - answer: a\n", "a number has no unit: write 10s, not 10"),
        ("script:\n  - answer: a\nexpect: {elapsed: 5}\n", "a number has no unit: write 10s, not 10"),
    ],
)
def test_an_editor_says_what_is_wrong_and_what_to_write(server: Server, lines: str, message: str) -> None:
    """A mistake is underlined while it is written, with the remedy that `check` gives."""
    server.open(f"scenario: a\nagent: claude\n{lines}")
    assert server.await_diagnostics() == [message]


def test_an_editor_knows_the_modes_of_each_dialect(server: Server) -> None:
    """A mode is one of its dialect's: the editor lists them."""
    server.open("scenario: a\nagent: {dialect: pi, mode: session}\nscript:\n  - answer: a\n")
    assert server.await_diagnostics() == ['Value is not accepted. Valid values: "json", "rpc".']
