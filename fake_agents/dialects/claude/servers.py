"""The MCP servers of claude: those that it starts, and those in its client's own process. Knows no turn.

`--mcp-config` names both. The client can also name its own ones in `initialize`. Each message to a server of the client
is a control request. The first prompt waits until each server has given its tools.
"""

from __future__ import annotations

from pytest_agentproc.fake_agents.objects import encode_json_line
from pytest_agentproc.fake_agents.program import find_option_value
from pytest_agentproc.fake_agents.requests import join_prompt_text, parse_json_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pytest_agentproc.fake_agents.program import Program
    from pytest_agentproc.fake_agents.tool_servers import ToolServer

_PENDING_STATE, _CONNECTED_STATE, _FAILED_STATE = "pending", "connected", "failed"
_INITIALIZED_METHOD = "notifications/initialized"
_CLIENT_INFO = {
    "name": "claude-code",
    "title": "Claude Code",
    "description": "Anthropic's agentic coding tool",
    "websiteUrl": "https://claude.com/claude-code",
    "version": "2.1.332",
}
_INITIALIZE_PARAMS: dict[str, Any] = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": _CLIENT_INFO}
_CLIENT_CAPABILITIES = {"roots": {"listChanged": True}, "elicitation": {"form": {}, "url": {}}}
"""The abilities of claude that a started server may use."""

_DEFAULT_TIMEOUT_MS, _MAX_TIMEOUT_MS = 30_000, 2**31 - 1
"""The milliseconds that a server has for an answer if `MCP_TIMEOUT` says nothing, and the most that it can say."""

CALL_CANCEL_REASON = "AbortError: remote-cancel"
UNANSWERED_CALL_ERROR = (
    "The tool call was interrupted before a result was received. It may or may not have completed on the server — "
    "verify before assuming it succeeded, and retry if needed."
)
"""The error of a call that stdin's end leaves without an answer."""


class _ClientServer:
    __slots__ = ("messages", "name", "state", "tools")

    def __init__(self, name: str) -> None:
        self.name = name
        self.state = _PENDING_STATE
        self.tools: list[str] = []
        self.messages = 0


class McpServers:
    """All servers of an agent, its own ones started.

    Args:
        program: the program; its arguments can name servers.
        uuid: makes the id of a control request.
    """

    def __init__(self, program: Program, uuid: Callable[[], str]) -> None:
        config = parse_json_object(find_option_value(program, "--mcp-config").encode()) or {}
        given = config.get("mcpServers")
        given = given if isinstance(given, dict) else {}
        self._named = [name for name, of in given.items() if isinstance(of, dict) and of.get("type") == "sdk"]
        self._uuid = uuid
        self._errors = [*program.get("server_errors", {}).values()]
        self._own = [_start_tool_server(program, *server) for server in program.get("servers", {}).items()]
        self._servers: dict[str, _ClientServer] = {}
        self._handshakes: dict[str, tuple[_ClientServer, str]] = {}

    def begin_client_handshakes(self, asked: dict[str, Any]) -> list[bytes]:
        """Give the first message to each server that the arguments or `initialize` name."""
        more = asked.get("sdkMcpServers")
        names = [*self._named, *(more if isinstance(more, list) else ())]
        self._servers = {str(name): _ClientServer(str(name)) for name in names}
        return [
            self._encode_handshake_message(server, "initialize", _INITIALIZE_PARAMS)
            for server in self._servers.values()
        ]

    def handle_handshake_answer(self, key: Any, response: dict[str, Any]) -> list[bytes]:
        """Take the answer to a message of a handshake; give the messages that follow."""
        server, method = self._handshakes.pop(key, (None, ""))
        if server is None or server.state != _PENDING_STATE:
            return []
        result, _ = read_server_answer(response)
        if result is None:
            server.state = _FAILED_STATE
            return []
        if method != "tools/list":
            return [
                self._encode_handshake_message(
                    server, "tools/list" if method == _INITIALIZED_METHOD else _INITIALIZED_METHOD
                )
            ]
        tools = result.get("tools")
        server.tools = [str(tool.get("name")) for tool in tools if isinstance(tool, dict)] if tools else []
        server.state = _CONNECTED_STATE
        return []

    def fail_pending_servers(self) -> None:
        """Wait no longer for servers that have not given their tools."""
        for server in self._servers.values():
            server.state = _FAILED_STATE if server.state == _PENDING_STATE else server.state

    @property
    def has_pending_servers(self) -> bool:
        """Whether a server has not given its tools, and may still do so."""
        return any(server.state == _PENDING_STATE for server in self._servers.values())

    def describe_servers(self, tools: list[str]) -> dict[str, Any]:
        """Give the fields of `init` about servers and tools, if there are servers, or mistakes in their entries."""
        if not self._servers and not self._own and not self._errors:
            return {}
        servers: list[Any] = [*self._own, *self._servers.values()]
        more = [f"mcp__{server.name}__{tool}" for server in servers for tool in server.tools or ()]
        listed = [
            {
                "name": server.name,
                "status": _FAILED_STATE if server.tools is None else _CONNECTED_STATE,
                "source": "dynamic",
            }
            for server in self._own
        ]
        listed += [{"name": server.name, "status": server.state, "source": "sdk"} for server in self._servers.values()]
        errors = {"mcp_server_errors": self._errors} if self._errors else {}
        return {"tools": [*tools, *more], "mcp_servers": listed, **errors}

    def describe_status(self) -> list[dict[str, Any]]:
        """Give the state of each server that is known to have begun, or to have failed."""
        found = []
        for server in self._own:
            config = {"type": "stdio", "command": server.config.get("command"), "args": server.config.get("args", [])}
            about = {"config": config, "transport": "stdio", "scope": "dynamic", "source": "dynamic"}
            found.append(_describe_state(server.name, server.tools, about))
        for client in self._servers.values():
            about = {"transport": "sdk", "scope": "dynamic", "source": "sdk"}
            if client.state != _PENDING_STATE:
                found.append(
                    _describe_state(client.name, client.tools if client.state == _CONNECTED_STATE else None, about)
                )
        return found

    def describe_server_tool(self, block: dict[str, Any]) -> dict[str, Any]:
        """Give the field of a message about a tool of a server."""
        server, tool = _find_server_tool([*self._own, *self._servers.values()], str(block["name"]))
        if server is None:
            return {}
        shown = {"display_name": tool.replace("_", " ").capitalize(), "server_display_name": server.name}
        return {"tool_use_meta": [{"id": block["id"], **shown, "tool_name": tool}]}

    def begin_tool_call(self, call: dict[str, Any]) -> ServerToolCall:
        """Call a tool of a server that claude has started; if no such server has it, the answer is that error."""
        server, tool = _find_server_tool(self._own, call["name"])
        return ServerToolCall(call, server, server.begin_tool_call(tool, call["input"], call["id"]) if server else 0)

    def encode_tool_call(self, key: str, call: dict[str, Any]) -> tuple[int, bytes] | None:
        """Give the number of a call in its server's session and its control request; None: no server has the tool."""
        server, tool = _find_server_tool([*self._servers.values()], call["name"])
        if server is None:
            return None
        number = server.messages
        meta = {"claudecode/toolUseId": call["id"], "progressToken": number}
        given = {"name": tool, "arguments": call["input"], "_meta": meta}
        return number, self._encode_server_message(
            server, self._build_numbered_request(server, "tools/call", given), key
        )

    def encode_call_cancel(self, name: str, number: int) -> bytes:
        """Give the message that cancels the call of a tool of that name."""
        server, _ = _find_server_tool([*self._servers.values()], name)
        assert server is not None
        about = {"requestId": number, "reason": CALL_CANCEL_REASON}
        return self._encode_server_message(
            server, {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": about}
        )

    def _encode_handshake_message(
        self, server: _ClientServer, method: str, params: dict[str, Any] | None = None
    ) -> bytes:
        key = self._uuid()
        self._handshakes[key] = server, method
        is_note = method == _INITIALIZED_METHOD
        message = (
            {"jsonrpc": "2.0", "method": method} if is_note else self._build_numbered_request(server, method, params)
        )
        return self._encode_server_message(server, message, key)

    def _build_numbered_request(
        self, server: _ClientServer, method: str, params: dict[str, Any] | None
    ) -> dict[str, Any]:
        number, server.messages = server.messages, server.messages + 1
        return {"method": method, **({"params": params} if params else {}), "jsonrpc": "2.0", "id": number}

    def _encode_server_message(self, server: _ClientServer, message: dict[str, Any], key: str = "") -> bytes:
        request = {"subtype": "mcp_message", "server_name": server.name, "message": message}
        return encode_json_line({"type": "control_request", "request_id": key or self._uuid(), "request": request})


class ServerToolCall:
    """A call of a tool; `answer` is None until its server has answered: then a result or None, and the error.

    Args:
        call: the tool as the script names it.
        server: the server that has it; None: there is none.
        number: the number of the message.
    """

    def __init__(self, call: dict[str, Any], server: Any, number: int) -> None:
        self._server, self._number = server, number
        self.is_refused = server is None
        error = f"Error: No such tool available: {call['name']}"
        self.answer: tuple[dict[str, Any] | None, str] | None = (None, error) if server is None else None

    def poll_answer(self) -> bool:
        """Take the answer if it has come; say whether it is there."""
        if self.answer is None:
            message = self._server.take_call_answer(self._number)
            self.answer = None if message is None else _read_mcp_answer(message)
        return self.answer is not None

    def cancel_if_unanswered(self) -> None:
        """Say to the server that its answer is not wanted any more, unless it is there already."""
        if self.answer is None:
            self._server.cancel_call(self._number, CALL_CANCEL_REASON)


def _describe_state(name: str, tools: list[str] | None, about: dict[str, Any]) -> dict[str, Any]:
    if tools is None:
        return {"name": name, "status": _FAILED_STATE, "error": "the server did not begin", **about}
    listed = [{"name": tool, "annotations": {}} for tool in tools]
    info = {"name": name, "version": "1"}
    return {"name": name, "status": _CONNECTED_STATE, "serverInfo": info, **about, "tools": listed}


def _start_tool_server(program: Program, name: str, config: dict[str, Any]) -> ToolServer:
    from pytest_agentproc.fake_agents.tool_servers import ToolServer  # few agents pay for it

    # The real CLI takes the digits at the begin, and has a limit of its own if they are no positive number.
    given = program["environ"].get(b"MCP_TIMEOUT", b"").strip()
    digits = given[: len(given) - len(given.lstrip(b"0123456789"))]
    limit = min(int(digits or b"0"), _MAX_TIMEOUT_MS) or _DEFAULT_TIMEOUT_MS
    return ToolServer(name, config, {**_INITIALIZE_PARAMS, "capabilities": _CLIENT_CAPABILITIES}, limit / 1000)


def _find_server_tool(servers: list[Any], name: str) -> tuple[Any, str]:
    """Find the connected server that has a tool, and the tool's own name."""
    for server in servers:
        tool = name.removeprefix(f"mcp__{server.name}__")
        if tool != name and tool in (server.tools or ()):
            return server, tool
    return None, ""


def read_server_answer(response: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """Read the answer of a server in the client: its result, or None and the error."""
    answer = response.get("response")
    message = answer.get("mcp_response") if isinstance(answer, dict) else None
    if response.get("subtype") != "success" or not isinstance(message, dict):
        return None, str(response.get("error", "the host gave no answer of MCP"))
    return _read_mcp_answer(message)


def _read_mcp_answer(message: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """Read an answer of MCP. A tool reports its error within its result."""
    result, error = message.get("result"), message.get("error")
    if not isinstance(result, dict):
        return None, str(error.get("message")) if isinstance(error, dict) else "the server gave no result"
    return (None, join_prompt_text(result.get("content"))) if result.get("isError") else (result, "")
