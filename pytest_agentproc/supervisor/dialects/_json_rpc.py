"""JSON-RPC 2.0 over lines, as a client speaks it: requests out; responses, notifications and requests in.

Knows no method and no fake's code. A request of the agent without a reader is answered at once with 'method not found',
so that the agent never waits.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from pytest_agentproc.supervisor.dialects._json import ObjectDecoder, encode_line
from pytest_agentproc.supervisor.dialects._meanings import ImmediateReply, MalformedLine, Other
from pytest_agentproc.supervisor.dialects._session_protocol import SessionDefaults

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_agentproc.supervisor.dialects._meanings import Meaning, Question
    from pytest_agentproc.supervisor.dialects._session_protocol import Setting


_RPC_METHOD_NOT_FOUND = -32601


class JsonRpcSessionProtocol(SessionDefaults, ObjectDecoder):
    """The part of a conversation that is the same in every dialect of JSON-RPC.

    `readers` are named after the kind of message and its method, such as `notification session/update`. `header` is the
    first part of every message.

    Args:
        setting: what it begins with.
    """

    header: Mapping[str, str] = {"jsonrpc": "2.0"}

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self.readers: dict[str, Callable[[dict[str, Any]], list[Meaning]]] = {
            "response": self._read_response,
            "request": self._refuse_request,
            "malformed": lambda value: [MalformedLine(f"no JSON-RPC message: {json.dumps(value)[:200]}")],
        }

    def _read_object(self, event: dict[str, Any], line: bytes) -> list[Meaning]:
        return self._read_event(self._find_kind(event), event)

    def _read_event(self, kind: str, event: dict[str, Any]) -> list[Meaning]:
        reader = self.readers.get(kind)
        return [Other(kind)] if reader is None else reader(event)

    def _find_kind(self, value: dict[str, Any]) -> str:
        """Say what kind of message this is, and its method if that has a reader."""
        method = value.get("method")
        if isinstance(method, str):
            kind = "request" if "id" in value else "notification"
            return f"{kind} {method}" if f"{kind} {method}" in self.readers else kind
        return "response" if "id" in value and ("result" in value or "error" in value) else "malformed"

    def encode_request(self, number: int, method: str, params: dict[str, Any]) -> bytes:
        """Give a request."""
        return encode_line({**self.header, "id": number, "method": method, "params": params})

    def encode_notification(self, method: str, **params: Any) -> bytes:
        """Give a notification."""
        return encode_line({**self.header, "method": method, **({"params": params} if params else {})})

    def encode_response(self, question: Question, result: dict[str, Any]) -> bytes:
        """Give the response to a request of the agent's."""
        return encode_line({**self.header, "id": json.loads(question.id), "result": result})

    def _read_response(self, value: dict[str, Any]) -> list[Meaning]:
        number, result = value["id"], value.get("result")
        is_ours = isinstance(number, int) and not isinstance(number, bool)
        return self._read_own_response(
            number if is_ours else -1, result if isinstance(result, dict) else {}, _read_error_message(value)
        )

    @abstractmethod
    def _read_own_response(self, number: int, response: dict[str, Any], error: str) -> list[Meaning]:
        """Take a response: the id of its request, -1 if it is no id of ours; its result; its error or ""."""

    def _refuse_request(self, value: dict[str, Any]) -> list[Meaning]:
        error = {"code": _RPC_METHOD_NOT_FOUND, "message": f"this client has no {value['method']}"}
        return [ImmediateReply(encode_line({**self.header, "id": value["id"], "error": error}))]


def _read_error_message(value: dict[str, Any]) -> str:
    if "error" not in value:
        return ""
    error = value["error"]
    return str(error.get("message") or error) if isinstance(error, dict) else str(error)
