"""The conversation of `codex app-server`: JSON-RPC without its header. Knows no other dialect and no fake's code.

The handshake is `initialize`, `initialized`, and `thread/start`. A later agent of the same session resumes the thread;
if it cannot, it starts a new one, unless the caller continues a thread: that conversation would be lost. The response
to `turn/start` gives the turn its id, and every line about a turn has that id. A turn that no prompt began is a
background turn. `turn/completed` is the end, also after an interrupt. An `error` with `willRetry: false` ends the turn,
too: codex does not always complete such a turn (codex-plugin-cc#698). Another thread's lines are a sub-agent's: they
show that work continues, and belong to no turn.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_agentproc.supervisor.dialects._json import as_dict, as_text
from pytest_agentproc.supervisor.dialects._json_rpc import JsonRpcSessionProtocol
from pytest_agentproc.supervisor.dialects._meanings import (
    BACKGROUND_TURN_MARK,
    MAX_TOOLS_IN_FLIGHT,
    Compaction,
    Failure,
    Finished,
    HandshakeDone,
    HandshakeRefused,
    ImmediateReply,
    Message,
    Nested,
    Other,
    Piece,
    PromptDeclined,
    Question,
    QuestionWithdrawn,
    SwitchRefused,
    ToolEnded,
    ToolProgress,
    ToolStarted,
    TurnBegun,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_agentproc.supervisor.dialects._meanings import Meaning
    from pytest_agentproc.supervisor.dialects._session_protocol import Setting

    Reader = Callable[[dict[str, Any], tuple[int, ...]], list[Meaning]]


_INITIALIZE_REQUEST_ID, _RESUME_THREAD_REQUEST_ID, _START_THREAD_REQUEST_ID = 0, 1, 2
"""The ids of the handshake; those of a turn are odd for its start, and even for its interrupt."""

_REQUEST_ID_BEFORE_FIRST_SWITCH = 10**9
"""No session has so many turns. A request for a mode has an even id, one for a model an odd one."""

_INITIALIZE_PARAMETERS = {
    "clientInfo": {"name": "pytest-agentproc", "version": "1"},
    "capabilities": {"experimentalApi": True},  # thread/settings/update needs it
}
_DECISION_WORD_BY_ANSWER = {True: "accept", False: "decline", None: "cancel"}
_ITEM_TYPES_WITHOUT_TOOL = frozenset({"userMessage", "hookPrompt", "enteredReviewMode", "exitedReviewMode"})
_ITEM_TYPES_OF_THOUGHTS = frozenset({"reasoning", "plan"})


class CodexSessionProtocol(JsonRpcSessionProtocol):
    """Talk to `codex app-server` over its stdin and stdout."""

    is_marked = True
    begins_at_once = False
    answers_cancel = False
    header: dict[str, str] = {}  # noqa: RUF012  # it is a constant

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._thread = setting.session or (setting.continues.id if setting.continues else "")
        self._is_greeted = False
        self._model: str | None = None
        self._usage: dict[str, Any] | None = None
        self._switches = 0
        self._turns: dict[str, int] = {}
        self._own = ""
        """The last turn that the agent began by itself."""
        readers: dict[str, Reader] = {
            "notification turn/started": lambda _, marks: [TurnBegun(marks)],
            "notification turn/completed": self._read_turn_end,
            "notification error": _read_error,
            "notification item/started": lambda params, marks: _read_item(params, marks, is_over=False),
            "notification item/completed": lambda params, marks: _read_item(params, marks, is_over=True),
            "notification item/agentMessage/delta": lambda params, marks: [
                Piece(str(params.get("delta", "")), marks=marks)
            ],
            "notification item/commandExecution/outputDelta": lambda _, marks: [ToolProgress(marks=marks)],
            "notification thread/tokenUsage/updated": self._read_usage,
        }
        for kind in ("textDelta", "summaryTextDelta"):
            readers[f"notification item/reasoning/{kind}"] = lambda _, marks: [Piece(marks=marks)]
        self.readers |= {name: self._wrap_in_thread_filter(name, reader) for name, reader in readers.items()}
        self.readers["notification serverRequest/resolved"] = (
            _read_resolved_request  # a sub-agent asks in a thread of its own
        )
        for kind in ("commandExecution", "fileChange"):
            self.readers[f"request item/{kind}/requestApproval"] = self._read_question

    def encode_greeting(self) -> bytes:
        """Begin the handshake."""
        return self.encode_request(_INITIALIZE_REQUEST_ID, "initialize", _INITIALIZE_PARAMETERS)

    def encode_prompt(self, number: int, text: str) -> bytes:
        """Give the prompt of a turn; its number is in the request's id."""
        words = {"threadId": self._thread, "input": [{"type": "text", "text": text}]}
        return self.encode_request(2 * number + 1, "turn/start", words)

    def encode_cancel(self, number: int) -> bytes:
        """Interrupt a turn. Before the agent has named it there is nothing to interrupt."""
        names = [name for name, turn in self._turns.items() if turn == number]
        if not names:
            return b""
        return self.encode_request(2 * number + 2, "turn/interrupt", {"threadId": self._thread, "turnId": names[0]})

    def encode_switch(self, what: str, name: str) -> bytes:
        """Change the thread's settings for the turns to come; a collaboration mode names the model, too."""
        self._switches += 2
        wanted: dict[str, Any] = {"model": name}
        if what == "model":
            self._model = name
        else:
            wanted = {"collaborationMode": {"mode": name, "settings": {"model": self._model}}}
        number = _REQUEST_ID_BEFORE_FIRST_SWITCH + self._switches + (what == "model")
        return self.encode_request(number, "thread/settings/update", {"threadId": self._thread, **wanted})

    def encode_answer(self, question: Question, *, allowed: bool | None) -> bytes:
        """Accept or decline, or cancel with the turn."""
        return self.encode_response(question, {"decision": _DECISION_WORD_BY_ANSWER[allowed]})

    # Responses.

    def _read_own_response(self, number: int, response: dict[str, Any], error: str) -> list[Meaning]:
        if number > _REQUEST_ID_BEFORE_FIRST_SWITCH:
            return [SwitchRefused("model" if number % 2 else "mode", error) if error else Other("response")]
        if number > _START_THREAD_REQUEST_ID and number % 2:
            return self._read_turn_start(number // 2, response, error)
        return (
            [Other("response")]
            if number not in (_INITIALIZE_REQUEST_ID, _RESUME_THREAD_REQUEST_ID, _START_THREAD_REQUEST_ID)
            else self._read_handshake(number, response, error)
        )

    def _read_handshake(self, number: int, response: dict[str, Any], error: str) -> list[Meaning]:
        if self._is_greeted:
            return [Other("response")]
        if number == _INITIALIZE_REQUEST_ID and not error:
            return [ImmediateReply(self.encode_notification("initialized") + self._open_thread())]
        if number == _RESUME_THREAD_REQUEST_ID and error and self.setting.continues is None:
            self._thread = ""
            return [ImmediateReply(self._open_thread())]
        if error:
            return [HandshakeRefused(error)]
        name = as_text(as_dict(response.get("thread")).get("id"))
        if not name:
            return [HandshakeRefused("the response has no thread id")]
        self._thread, self._is_greeted = name, True
        self._model = as_text(response.get("model"))
        return [HandshakeDone(name)]

    def _open_thread(self) -> bytes:
        if self._thread:
            return self.encode_request(_RESUME_THREAD_REQUEST_ID, "thread/resume", {"threadId": self._thread})
        return self.encode_request(_START_THREAD_REQUEST_ID, "thread/start", {"cwd": self.setting.cwd})

    def _read_turn_start(self, number: int, response: dict[str, Any], error: str) -> list[Meaning]:
        name = as_text(as_dict(response.get("turn")).get("id"))
        if error or name is None:
            return [PromptDeclined(number, error or "the response has no turn id")]
        if len(self._turns) >= MAX_TOOLS_IN_FLIGHT:
            del self._turns[next(iter(self._turns))]
        self._turns[name] = number
        return [TurnBegun((number,))]

    # Requests and notifications.

    def _wrap_in_thread_filter(self, name: str, reader: Reader) -> Callable[[dict[str, Any]], list[Meaning]]:
        """Have a reader read the lines about this thread, except for turns that it has seen no beginning of."""

        def read(value: dict[str, Any]) -> list[Meaning]:
            params = value.get("params")
            if not isinstance(params, dict):
                return [Other(name)]
            if params.get("threadId", self._thread) != self._thread:
                is_end = name == "notification turn/completed"
                return [Nested(Finished(True) if is_end else Other(name))]
            turn = _find_turn_id(params)
            if turn and turn not in self._turns and name == "notification turn/started":
                self._own = turn
            marks = self._find_turns(turn)
            return [Other(name)] if turn and not marks else reader(params, marks)

        return read

    def _find_turns(self, turn: str) -> tuple[int, ...]:
        if turn in self._turns:
            return (self._turns[turn],)
        return (BACKGROUND_TURN_MARK,) if turn and turn == self._own else ()

    def _read_question(self, value: dict[str, Any]) -> list[Meaning]:
        detail = as_dict(value.get("params"))
        title = str(detail.get("command") or detail.get("reason") or detail.get("itemId") or "")
        return [Question(json.dumps(value["id"]), title, detail, self._find_turns(_find_turn_id(detail)))]

    def _read_usage(self, params: dict[str, Any], _marks: tuple[int, ...]) -> list[Meaning]:
        usage = params.get("tokenUsage")
        total = usage.get("total") if isinstance(usage, dict) else None
        self._usage = total if isinstance(total, dict) else None
        return [Other("thread/tokenUsage/updated")]

    def _read_turn_end(self, params: dict[str, Any], marks: tuple[int, ...]) -> list[Meaning]:
        turn = as_dict(params.get("turn"))
        status, words = str(turn.get("status", "no turn")), str(as_dict(turn.get("error")).get("message") or "")
        usage, self._usage = self._usage, None
        ok = status == "completed"
        return [
            Finished(
                ok,
                error="" if ok else words or status,
                model=self._model,
                usage=usage,
                stop_reason=status,
                marks=marks,
            )
        ]


def _find_turn_id(params: dict[str, Any]) -> str:
    """Give the id of the turn that a line is about; "" if it names none."""
    turn = params.get("turn")
    name = turn.get("id") if isinstance(turn, dict) else params.get("turnId")
    return name if isinstance(name, str) else ""


def _read_resolved_request(value: dict[str, Any]) -> list[Meaning]:
    params = value.get("params")
    return [QuestionWithdrawn(json.dumps(params.get("requestId")))] if isinstance(params, dict) else [Other("resolved")]


def _read_error(params: dict[str, Any], marks: tuple[int, ...]) -> list[Meaning]:
    words = str(as_dict(params.get("error")).get("message") or "error")
    return [Finished(False, error=words, marks=marks)] if params.get("willRetry") is False else [Failure(words)]


def _read_item(params: dict[str, Any], marks: tuple[int, ...], *, is_over: bool) -> list[Meaning]:
    item = params.get("item")
    if not isinstance(item, dict):
        return [Other("item")]
    kind, number = str(item.get("type")), str(item.get("id"))
    if kind == "agentMessage":
        whole = Message(str(item.get("text", "")), marks=marks, ends_message=True)
        return [whole if is_over else Piece(marks=marks)]
    if kind == "contextCompaction":
        return [Compaction(is_over, marks=marks)]
    if kind in _ITEM_TYPES_OF_THOUGHTS:
        return [Piece(marks=marks)]
    if kind in _ITEM_TYPES_WITHOUT_TOOL:
        return [Other(kind)]
    name = str(item.get("command") or item.get("tool") or kind)
    return [(ToolEnded if is_over else ToolStarted)(number, name, marks=marks, ends_message=True)]
