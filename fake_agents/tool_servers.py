"""An MCP server that a fake starts as its child: the handshake, its tools and the calls. Knows no dialect.

The fake waits for each answer of the handshake. In virtual time it waits for the answer to a call, too: no time passes
meanwhile. In real time the script's other steps run until the answer has come.
"""

from __future__ import annotations

import posix
import time

from pytest_agentproc.fake_agents.children import ChildProgram
from pytest_agentproc.fake_agents.objects import encode_json_line
from pytest_agentproc.fake_agents.requests import parse_json_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_PROBE_REQUEST_ID = "server-discover-probe-1"
_MAX_PROBE_SECONDS = 3.0
"""The real seconds after which the real CLI sends its second message without an answer to the first one."""

_CONNECTION_CLOSED_ANSWER = {"error": {"message": "Connection closed"}}


class ToolServer:
    """A server that was started; `tools` are the names of its tools, and None if it failed.

    Args:
        name: its name in the configuration.
        config: its `command`, `args` and `env`.
        hello: the parameters of `initialize`.
        limit: real seconds that it has for each answer of the handshake.
    """

    def __init__(self, name: str, config: dict[str, Any], hello: dict[str, Any], limit: float) -> None:
        self.name = name
        self.config = config
        self.tools: list[str] | None = None
        self.messages = 0
        self._answers: dict[Any, dict[str, Any]] = {}
        """The answers to other calls that came before the one that was waited for."""
        try:
            command = [_expand_variables(word) for word in (config["command"], *config.get("args", ()))]
            more = {key.encode(): _expand_variables(value) for key, value in config.get("env", {}).items()}
            self._child = ChildProgram(command, {b"CLAUDE_PROJECT_DIR": posix.getcwdb(), **more})
            self.tools = self._connect_and_list_tools(hello, limit)
        except (OSError, EOFError, ValueError):  # the last one is for a text that no argument can have
            return

    def _connect_and_list_tools(self, hello: dict[str, Any], limit: float) -> list[str] | None:
        """Shake hands and list the tools; None: an answer did not come, or was an error."""
        self._send_message({"jsonrpc": "2.0", "id": _PROBE_REQUEST_ID, "method": "server/discover", "params": {}})
        self._receive_answer(_PROBE_REQUEST_ID, min(limit / 3, _MAX_PROBE_SECONDS))
        initialized = self._receive_answer(self._send_request("initialize", hello), limit)
        if initialized is None or "result" not in initialized:
            return None
        self._send_message({"jsonrpc": "2.0", "method": "notifications/initialized"})
        listed = self._receive_answer(self._send_request("tools/list", None), limit)
        if listed is None or not isinstance(listed.get("result"), dict):
            return None
        tools = listed["result"].get("tools")
        return [str(tool.get("name")) for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []

    def begin_tool_call(self, tool: str, arguments: dict[str, Any], call: str) -> int:
        """Call a tool, and give the number of the message."""
        meta = {"claudecode/toolUseId": call, "progressToken": self.messages}
        try:
            return self._send_request("tools/call", {"name": tool, "arguments": arguments, "_meta": meta})
        except OSError:  # it has ended, or does not read: there will be no answer to what was not sent
            self._answers[self.messages - 1] = _CONNECTION_CLOSED_ANSWER
            return self.messages - 1

    def take_call_answer(self, number: int) -> dict[str, Any] | None:
        """Give the answer to a call; None: it has not come, and the fake is woken when more comes."""
        try:
            return self._receive_answer(number, 0 if self._child.is_watched else None)
        except (EOFError, OSError):
            return _CONNECTION_CLOSED_ANSWER

    def cancel_call(self, number: int, reason: str) -> None:
        """Say that a call is cancelled."""
        about = {"requestId": number, "reason": reason}
        try:
            self._send_message({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": about})
        except OSError:
            return

    def _send_request(self, method: str, params: dict[str, Any] | None) -> int:
        number, self.messages = self.messages, self.messages + 1
        self._send_message({"method": method, **({"params": params} if params else {}), "jsonrpc": "2.0", "id": number})
        return number

    def _send_message(self, message: dict[str, Any]) -> None:
        self._child.write_stdin(encode_json_line(message) + b"\n")

    def _receive_answer(self, key: int | str, seconds: float | None) -> dict[str, Any] | None:
        """Give the answer to a request; keep the answers to others, and answer the server meanwhile."""
        limit = time.monotonic() + seconds if seconds else None  # a program that is no server may print without end
        while key not in self._answers and (limit is None or time.monotonic() < limit):
            line = self._child.read_stdout_line(seconds)
            if line is None:
                break
            message = parse_json_object(line) or {}
            if "method" in message:
                self._answer_server_request(message)
            elif isinstance(message.get("id"), int | str):
                self._answers[message["id"]] = message
        return self._answers.pop(key, None)

    def _answer_server_request(self, message: dict[str, Any]) -> None:
        """Answer a request of the server, which may wait for that: it asks for the folder, or for what no fake has."""
        if "id" in message:
            results = {"ping": {}, "roots/list": {"roots": [{"uri": f"file://{posix.getcwd()}"}]}}
            result = results.get(str(message["method"]))
            fields = (
                {"error": {"code": -32601, "message": "Method not found"}} if result is None else {"result": result}
            )
            self._send_message({"jsonrpc": "2.0", "id": message["id"], **fields})


def _expand_variables(text: str) -> bytes:
    """Put variables in the places of `${NAME}` and `${NAME:-default}`; without a value and a default it stays."""
    if "${" not in text:
        return text.encode()
    import re  # slow to load, and needed by few

    def look_up_variable(place: re.Match[bytes]) -> bytes:
        default = place[0] if place[2] is None else place[2]
        return posix.environ.get(place[1], default)

    return re.sub(rb"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}", look_up_variable, text.encode())
