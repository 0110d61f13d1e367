"""JSON-RPC over lines, as an agent speaks it: requests and answers in, messages out. Knows no method.

Each prompt is a request, and waits until the script takes it in hand. The agent's own requests wait for their answers
in the track that asks.
"""

from __future__ import annotations

from pytest_agentproc.fake_agents.lines import Lines
from pytest_agentproc.fake_agents.objects import encode_json_line
from pytest_agentproc.fake_agents.questions import ANSWER_CANCELLED, ANSWER_GIVEN, ANSWER_REFUSED, ClientQuestions
from pytest_agentproc.fake_agents.requests import parse_json_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from pytest_agentproc.fake_agents.program import Program
    from pytest_agentproc.fake_agents.questions import ClientQuestion

PARSE_ERROR_CODE, INVALID_REQUEST_CODE, UNKNOWN_METHOD_CODE, INVALID_PARAMS_CODE, INTERNAL_ERROR_CODE = (
    -32700,
    -32600,
    -32601,
    -32602,
    -32603,
)


class JsonRpcEncoder:
    """The part of an encoder that is the same in every dialect of JSON-RPC.

    `prompts` are the requests with a prompt, each with its id first. `header` is the first part of every message.
    """

    error_is_exit = False
    error_stream = "stdout"
    code = 0
    version = 1
    history: Sequence[tuple[str, Any]] = ()
    modes: Sequence[str] = ()
    options: Mapping[str, Sequence[str]] = {}
    header: dict[str, str] = {"jsonrpc": "2.0"}  # noqa: RUF012  # a constant; `typing` is not loaded in a fake

    _handle_method_request: Callable[[Any, str, dict[str, Any], int], tuple[list[bytes], str]]
    """A dialect's own: takes the id, the method and the parameters of a request; gives what `handle_request` gives."""
    _settle_permission_question: Callable[[ClientQuestion, dict[str, Any]], None]
    """A dialect's own: settles the question for a permission by its answer; that of an error is empty."""

    def __init__(self, program: Program) -> None:
        self.questions = ClientQuestions()
        self.prompts: list[tuple[Any, str]] = []
        self._lines = Lines(program)
        self._is_cancelled = False

    def handle_request(self, request: bytes, now: int) -> tuple[bytes, str]:
        """Take a line: a request, a notification, or the answer to a request of the agent's."""
        message = parse_json_object(request)
        if message is None:
            return self._lines.join_reply(self._encode_parse_error()), ""
        method, params = message.get("method"), message.get("params")
        params = params if isinstance(params, dict) else {}
        if not isinstance(method, str):
            return self._lines.join_reply(self._handle_client_answer(message, now)), ""
        if "id" not in message:
            return b"", self._handle_notification(method, params)
        events, event = self._handle_method_request(message["id"], method, params, now)
        return self._lines.join_reply(events), event

    def note_stdin_end(self) -> None:
        """Take note that stdin has ended, which changes no line."""

    def take_late_answers(self) -> bytes:
        """Give nothing: all is answered at once."""
        return b""

    def encode_handshake_refusal(self, request: bytes, error: str) -> bytes:
        """Give the response that refuses `initialize`."""
        return self._lines.join_reply(
            [self._encode_error_response((parse_json_object(request) or {}).get("id"), INTERNAL_ERROR_CODE, error)]
        )

    def has_received_prompt(self, number: int) -> bool:
        """Say whether the prompt was received."""
        return len(self.prompts) >= number

    def _encode_parse_error(self) -> list[bytes]:
        return [self._encode_error_response(None, PARSE_ERROR_CODE, "Parse error")]

    def _handle_notification(self, method: str, params: dict[str, Any]) -> str:
        """Take a notification; give what `handle_request` gives as an event."""
        return ""

    def _handle_client_answer(self, answer: dict[str, Any], now: int) -> list[bytes]:
        """Take the answer to a request."""
        if "result" not in answer and "error" not in answer:
            return [self._encode_error_response(answer.get("id"), INVALID_REQUEST_CODE, "Invalid request")]
        question, result = self.questions.find_open_question(answer.get("id")), answer.get("result")
        if question is None:
            return []
        if question.fields["kind"] == "request":
            self.questions.settle_question(question, ANSWER_REFUSED if "error" in answer else ANSWER_GIVEN)
        else:
            self._settle_permission_question(question, result if isinstance(result, dict) else {})
        return []

    def _note_turn_cancel(self) -> str:
        """Take a cancel of the turn; a client may answer what is open first, and cancel then."""
        self._is_cancelled = True
        for question in self.questions.asked:
            question.dismissed = False
        return "cancel"

    def _dismiss_question(self, question: ClientQuestion) -> None:
        """Take the answer that no answer is given, which denies unless the turn is cancelled."""
        question.dismissed = not self._is_cancelled
        self.questions.settle_question(question, ANSWER_CANCELLED)

    def _encode_script_message(self, value: dict[str, Any]) -> bytes:
        """Give a message as it stands, but for an id such as `prompt 1`: that is the id of the prompt's request."""
        word, _, number = str(value.get("id")).partition(" ")
        if word == "prompt" and number.isdecimal() and 1 <= int(number) <= len(self.prompts):
            value = {**value, "id": self.prompts[int(number) - 1][0]}
        return encode_json_line(value)

    def _join_lines(self, events: list[bytes]) -> bytes:
        """Give the bytes of these messages; of none, nothing."""
        return self._lines.join(events)

    def _encode_request(self, number: Any, method: str, params: dict[str, Any]) -> bytes:
        """Give a request."""
        return encode_json_line({**self.header, "id": number, "method": method, "params": params})

    def _encode_notification(self, method: str, params: dict[str, Any]) -> bytes:
        """Give a notification."""
        return encode_json_line({**self.header, "method": method, "params": params})

    def _encode_response(self, number: Any, result: dict[str, Any]) -> bytes:
        """Give a response."""
        return encode_json_line({**self.header, "id": number, "result": result})

    def _encode_error_response(self, number: Any, code: int, message: str, data: dict[str, Any] | None = None) -> bytes:
        """Give a response that refuses."""
        error = {"code": code, "message": message, **({"data": data} if data else {})}
        return encode_json_line({**self.header, "id": number, "error": error})
