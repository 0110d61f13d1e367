"""A program that speaks ACP to an editor and runs an agent itself. Owns the editor's side.

The kit is the editor: JSON-RPC 2.0 over the program's stdin and stdout, a message a line. Requests for files and
terminals are refused at once, so that the program never waits for them.
"""

from __future__ import annotations

import json
import math
import os
import signal
import tempfile
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio

from pytest_agentproc.errors import CannotContinue, Declined
from pytest_agentproc.subjects._checked_subject import call_supervisor
from pytest_agentproc.subjects._client import Client
from pytest_agentproc.subjects._command import (
    Command,
    OutputStream,
    end_with_caller,
    make_placeholder_values,
    make_run_folder,
    record_end,
    record_given_up,
)
from pytest_agentproc.subjects._driven_sessions import ACTIONS_OF_DRIVEN_CLIENTS, SessionDriver
from pytest_agentproc.vocabulary import NANOSECONDS_PER_SECOND

if TYPE_CHECKING:
    from pytest_agentproc.vocabulary import RunReport, RunRequest


_OUTCOMES_BY_STOP_REASON = {"end_turn": "completed", "cancelled": "cancelled"}
_RPC_METHOD_NOT_FOUND, _RPC_INVALID_PARAMS = -32601, -32602
_PIECE = 1 << 16


class AcpProgram(Command):
    """An agent-side ACP program: one session, one prompt at a time.

    It is started as `Command` is. At the close its stdin ends; it gets TERM `close_grace` after that, and KILL
    `kill_grace` after TERM. By then its agent must have ended.
    """

    holds_sessions = True
    takes_runs = False
    actions = (*ACTIONS_OF_DRIVEN_CLIENTS, "load", "resume")

    async def run(self, order: RunRequest) -> RunReport:
        """Drive its session as the order's caller wants it.

        Raises:
            Declined: a real agent would be started in place of a missing one.
            SupervisorCrash: the program speaks no ACP.
        """
        self.require_no_real_agent(order)
        with tempfile.TemporaryDirectory(prefix="agentproc-") as base:
            editor = partial(_AcpEditorClient, program=self, folder=make_run_folder(base, order.prompt))
            return await call_supervisor(lambda order: SessionDriver(order, editor).run(), order, __name__)


class _RequestRefused(Exception):
    """An error that the program gave in answer."""


class _AcpEditorClient(Client):
    """The editor that has started the program."""

    def __init__(self, order: RunRequest, permit: Any, *, program: AcpProgram, folder: str) -> None:
        super().__init__(order, permit)
        self._program, self._folder = program, folder
        self._asked: dict[int, anyio.Event] = {}
        self._answers: dict[int, dict[str, Any]] = {}
        self._said = ""
        self._session = ""
        self._ended = anyio.Event()

    async def start(self) -> None:
        """Start the program, and shake hands with it."""
        given, self._to = os.pipe2(os.O_CLOEXEC)
        self._stdout, self._stderr = (self.stack.enter_context(OutputStream(name)) for name in ("stdout", "stderr"))
        self.stack.callback(self._close_stdin)
        try:
            words, here, env = self._program.make_start_arguments(
                self.order, make_placeholder_values(self.order, self._folder, self._program.working_folder)
            )
            self._pid = self.order.keeper.start(words, here, env, (given, self._stdout.given, self._stderr.given))
        finally:
            os.close(given)
        os.set_blocking(self._to, False)
        self._end = os.pidfd_open(self._pid)
        self.stack.callback(os.close, self._end)
        self.stack.push(self._record_end)
        self._group = await self.enter_context(anyio.create_task_group())
        self.stack.callback(self._group.cancel_scope.cancel)
        for task in (self._stderr.read_until_cancelled, self._read_messages, self._wait_for_end):
            self._group.start_soon(task)
        self._group.start_soon(end_with_caller, self.order, self._pid, self._close_stdin)
        try:
            initialized = await self._send_request("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
            self._session = await self._open_session(initialized.get("agentCapabilities"))
        except (_RequestRefused, EOFError, Declined):
            await self.close()
            raise

    async def _open_session(self, able: Any) -> str:
        """Have the program make a session, or load or resume the one that the order names; give its id."""
        where = {"cwd": self.order.cwd, "mcpServers": []}
        known = self.order.continues
        if known is None:
            return str((await self._send_request("session/new", where)).get("sessionId", ""))
        able = able if isinstance(able, dict) else {}
        more = able.get("sessionCapabilities")
        can_resume = isinstance(more, dict) and more.get("resume") is not None
        if not (able.get("loadSession") if known.how == "load" else can_resume):
            raise CannotContinue(f"a program that can {known.how} a session")
        await self._send_request(f"session/{known.how}", {"sessionId": known.id, **where})
        return known.id

    async def prompt(self, text: str) -> dict[str, Any]:
        """Send a prompt, and give the end of its turn."""
        self._said = ""
        words = {"sessionId": self._session, "prompt": [{"type": "text", "text": text}]}
        reason = (await self._send_request("session/prompt", words)).get("stopReason")
        return {
            "outcome": _OUTCOMES_BY_STOP_REASON.get(str(reason), "failed"),
            "text": self._said,
            "stop_reason": reason,
        }

    async def cancel(self) -> None:
        """Cancel the turn in flight."""
        await self._send_message({"method": "session/cancel", "params": {"sessionId": self._session}})

    async def close(self) -> None:
        """End its stdin, as an editor that quits; then it gets TERM and KILL.

        TERM comes after all graces that it states: until then it may be ending its own agent by them, as P8 demands.
        """
        self._close_stdin()
        limits, scale = self.order.policy.nanoseconds(), self.order.scale
        graces = (limits[f"{name}_grace"] for name in ("close", "kill", "leftover_kill"))
        close, kill, leftover = (math.inf if grace is None else grace for grace in graces)
        for grace, number in (
            (close + kill + leftover + NANOSECONDS_PER_SECOND, signal.SIGTERM),
            (kill + NANOSECONDS_PER_SECOND, signal.SIGKILL),
        ):
            with anyio.move_on_after(grace / NANOSECONDS_PER_SECOND / scale):
                await self._ended.wait()
                return
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._end, number)
        await self._ended.wait()

    def outcome_of_prompt_error(self, error: Exception) -> str:
        """See `Client.outcome_of_prompt_error`: an error in answer to a prompt is a failed turn."""
        return "failed" if isinstance(error, _RequestRefused) else super().outcome_of_prompt_error(error)

    def outcome_of_start_error(self, error: Exception) -> str:
        """See `Client.outcome_of_start_error`."""
        return "handshake_failed" if isinstance(error, _RequestRefused) else super().outcome_of_start_error(error)

    # Messages.

    async def _send_request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        number = len(self._asked)
        answered = self._asked[number] = anyio.Event()
        await self._send_message({"id": number, "method": method, "params": params})
        if not self._ended.is_set():
            await answered.wait()
        answer = self._answers.get(number)
        if answer is None:
            raise EOFError("the program has ended")
        if "error" in answer:
            raise _RequestRefused(json.dumps(answer["error"])[:500])
        result = answer.get("result")
        return result if isinstance(result, dict) else {}

    async def _send_message(self, message: dict[str, Any]) -> None:
        left = memoryview(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        while left and not self._ended.is_set():
            try:
                left = left[os.write(self._to, left) :]
            except BlockingIOError:
                await anyio.wait_writable(self._to)
            except BrokenPipeError:
                return

    async def _read_messages(self) -> None:
        while True:
            await anyio.wait_readable(self._stdout.source)
            self._handle_printed_messages()

    async def _wait_for_end(self) -> None:
        await anyio.wait_readable(self._end)
        self._handle_printed_messages()  # a loop may report the end first, while the pipe still holds the last answer
        self._ended.set()
        for answered in self._asked.values():
            answered.set()

    def _handle_printed_messages(self) -> None:
        self._stdout.read_available()
        *lines, rest = bytes(self._stdout.data).split(b"\n")
        self._stdout.data[:] = rest
        for line in lines:
            with suppress(ValueError):
                self._handle_message(json.loads(line))

    def _handle_message(self, message: Any) -> None:
        if not isinstance(message, dict):
            return
        method, number, params = message.get("method"), message.get("id"), message.get("params")
        if method is None and isinstance(number, int) and number in self._asked:
            self._answers[number] = message
            self._asked[number].set()
        elif method == "session/update":
            self._said += _read_message_text(params, self._session)
        elif method is not None and "id" in message:
            self._group.start_soon(self._answer_request, message)

    async def _answer_request(self, message: dict[str, Any]) -> None:
        """Answer what the program asks of its editor."""
        answer: dict[str, Any] = {
            "error": {"code": _RPC_METHOD_NOT_FOUND, "message": f"this editor has no {message['method']}"}
        }
        if message["method"] == "session/request_permission":
            kind = "allow" if await self.ask_permission() else "reject"
            try:
                chosen = [option["optionId"] for option in message["params"]["options"] if kind in option["kind"]][:1]
                outcome = {"outcome": "selected", "optionId": chosen[0]} if chosen else {"outcome": "cancelled"}
                answer = {"result": {"outcome": outcome}}
            except (KeyError, TypeError) as error:
                answer = {"error": {"code": _RPC_INVALID_PARAMS, "message": f"session/request_permission: {error!r}"}}
        await self._send_message({"id": message["id"], **answer})

    def _record_end(self, error_type: type[BaseException] | None, *_error: object) -> None:
        if self._ended.is_set():
            self._stderr.read_available()
            record_end(self.order, self.order.keeper.reap(self._pid), self._stderr.tail_text)
        elif error_type is not None and issubclass(error_type, anyio.get_cancelled_exc_class()):
            self._stderr.read_available()
            record_given_up(self.order, self._stderr.tail_text)

    def _close_stdin(self) -> None:
        if self._to >= 0:
            os.close(self._to)
            self._to = -1


def _read_message_text(params: Any, session: str) -> str:
    """Give the words of an update, if it has some of this session."""
    update = params.get("update") if isinstance(params, dict) else None
    if not isinstance(update, dict) or params.get("sessionId", session) != session:
        return ""
    content = update.get("content")
    is_said = update.get("sessionUpdate") == "agent_message_chunk" and isinstance(content, dict)
    return str(content.get("text", "")) if is_said and content else ""
