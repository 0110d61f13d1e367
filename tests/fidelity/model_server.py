"""A scripted model on loopback, for the real CLIs: the four APIs that they speak. Judges nothing.

A conversation is a list of replies. Each request of the CLI that offers tools takes the next reply. The last reply
holds for all further requests. A request without tools is an errand of the CLI, such as a title: it gets a short text.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, ClassVar, Self

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["ModelServer", "Reply"]

_PACE = 0.1
"""Real seconds after each part of an answer to pi, which prints a message as it is when the next part has come, too.

The others get an answer at once: claude starts a tool as soon as its part has come, and the order would be a race.
"""


_ERRORS = {401: "authentication_error", 429: "rate_limit_error", 500: "api_error", 529: "overloaded_error"}
"""The type of an error of the API, by its status."""


@dataclass(frozen=True)
class Reply:
    """One answer of the model.

    Args:
        text: its text; "" if it has none.
        tools: the tools that it asks for, each with its input.
        status: an HTTP status instead of an answer; -1 closes the connection.
        words: the message of that error.
        stop: the stop reason of the answer (claude).
        to: words of the first prompt of the conversation that this answers, where a CLI holds several; "" is any.
        after: real seconds until it comes.
        thought: what the model thinks before it (opencode, pi).
        pause: real seconds between the two halves of the stream.
    """

    text: str = ""
    tools: Sequence[tuple[str, dict[str, Any]]] = ()
    status: int = 0
    words: str = "refused"
    stop: str = ""
    to: str = ""
    after: float = 0
    thought: str = ""
    pause: float = 0


@dataclass
class _Script:
    replies: Sequence[Reply] = (Reply("hello"),)
    taken: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)
    half_sent: threading.Event = field(default_factory=threading.Event)

    def reply_to(self, request: dict[str, Any]) -> tuple[int, Reply]:
        """Give the number of the answer, and the answer."""
        with self.lock:
            if not request.get("tools"):
                return 0, Reply("ok")
            first = json.dumps((request.get("messages") or [""])[0])
            to = next((reply.to for reply in self.replies if reply.to and reply.to in first), "")
            replies = [reply for reply in self.replies if reply.to == to]
            self.taken[to] += 1
            return self.taken.total(), replies[min(self.taken[to], len(replies)) - 1]


class ModelServer:
    """The server, open as long as its block."""

    def __enter__(self) -> Self:
        """Listen on a free port."""
        self.script = _Script()
        handler = type("_Handler", (_Handler,), {"server_script": self.script})
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop listening."""
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def answer_with(self, *replies: Reply) -> None:
        """Begin a conversation."""
        with self.script.lock:
            self.script.replies = replies
            self.script.taken.clear()


class _Handler(BaseHTTPRequestHandler):
    server_script: ClassVar[_Script]

    def handle(self) -> None:
        """Take a client that is killed in the middle of an answer as one that has gone."""
        with suppress(ConnectionError):
            super().handle()

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def do_HEAD(self) -> None:
        """Say that the server is there."""
        self._send(200, b"", "text/plain")

    def do_GET(self) -> None:
        """Know of nothing."""
        self._send(404, b"{}", "application/json")

    def do_POST(self) -> None:
        """Answer a request to a model."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        request = json.loads(body or b"{}")
        path = self.path.partition("?")[0]
        form = next((form for end, form in _FORMS.items() if path.endswith(end)), None)
        if form is None:
            self._send(404, b"{}", "application/json")
            return
        number, reply = self.server_script.reply_to(request)
        threading.Event().wait(reply.after)
        if reply.status < 0:
            self.close_connection = True
            return
        if reply.status:
            kind = _ERRORS.get(reply.status, "invalid_request_error")
            error = {"type": "error", "error": {"type": kind, "message": reply.words, "code": reply.status}}
            self._send(reply.status, json.dumps(error).encode(), "application/json")
            return
        if path.endswith(":generateContent"):
            chunk = next(form(number, reply))[1]
            self._send(200, json.dumps(chunk).encode(), "application/json")
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        parts = []
        for event, data in form(number, reply):
            head = f"event: {event}\n" if event else ""
            parts.append(f"{head}data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode())
        if reply.pause:
            half = (len(parts) + 1) // 2
            self.wfile.write(b"".join(parts[:half]))
            self.wfile.flush()
            self.server_script.half_sent.set()
            threading.Event().wait(reply.pause)
            parts = parts[half:]
        for part in parts if form is _stream_openai_completions else [b"".join(parts)]:
            self.wfile.write(part)
            self.wfile.flush()
            threading.Event().wait(_PACE)

    def _send(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _stream_anthropic_messages(number: int, reply: Reply) -> Iterator[tuple[str, Any]]:
    """Stream an answer as Anthropic's messages API does."""
    about = {"id": f"msg_{number:02}", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5"}
    usage = {"input_tokens": 10, "output_tokens": 5, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    more: dict[str, Any] = {"content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    yield "message_start", {"type": "message_start", "message": {**about, **more}}
    blocks: list[tuple[dict[str, Any], dict[str, Any]]] = []
    if reply.text:
        blocks.append(({"type": "text", "text": ""}, {"type": "text_delta", "text": reply.text}))
    for place, (name, given) in enumerate(reply.tools):
        block = {"type": "tool_use", "id": f"toolu_{number:02}{place}", "name": name, "input": {}}
        blocks.append((block, {"type": "input_json_delta", "partial_json": json.dumps(given)}))
    for index, (block, delta) in enumerate(blocks):
        yield "content_block_start", {"type": "content_block_start", "index": index, "content_block": block}
        yield "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}
        yield "content_block_stop", {"type": "content_block_stop", "index": index}
    stop = reply.stop or ("tool_use" if reply.tools else "end_turn")
    delta = {"stop_reason": stop, "stop_sequence": None}
    yield "message_delta", {"type": "message_delta", "delta": delta, "usage": usage}
    yield "message_stop", {"type": "message_stop"}


def _stream_openai_responses(number: int, reply: Reply) -> Iterator[tuple[str, Any]]:
    """Stream an answer as OpenAI's responses API does."""
    yield "response.created", {"type": "response.created", "response": {"id": f"resp_{number}"}}
    items: list[dict[str, Any]] = []
    if reply.text:
        content = [{"type": "output_text", "text": reply.text}]
        items.append({"type": "message", "role": "assistant", "id": f"m{number}", "content": content})
    for place, (name, given) in enumerate(reply.tools):
        call = {"type": "function_call", "id": f"f{number}{place}", "call_id": f"call_{number}{place}"}
        items.append({**call, "name": name, "arguments": json.dumps(given)})
    for item in items:
        yield "response.output_item.done", {"type": "response.output_item.done", "item": item}
    usage = {"input_tokens": 10, "input_tokens_details": None, "output_tokens": 5, "output_tokens_details": None}
    done = {"id": f"resp_{number}", "usage": {**usage, "total_tokens": 15}}
    yield "response.completed", {"type": "response.completed", "response": done}


def _stream_openai_completions(number: int, reply: Reply) -> Iterator[tuple[str, Any]]:
    """Stream an answer as OpenAI's chat completions API does."""
    about = {"id": f"c{number}", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    deltas: list[dict[str, Any]] = [{"reasoning_content": reply.thought}] if reply.thought else []
    deltas += [{"role": "assistant", "content": reply.text}] if reply.text else []
    for place, (name, given) in enumerate(reply.tools):
        function = {"name": name, "arguments": json.dumps(given)}
        deltas.append(
            {"tool_calls": [{"index": place, "id": f"call_{number}{place}", "type": "function", "function": function}]}
        )
    for delta in deltas:
        yield "", {**about, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    end = "tool_calls" if reply.tools else "stop"
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    yield "", {**about, "choices": [{"index": 0, "delta": {}, "finish_reason": end}], "usage": usage}
    yield "", "[DONE]"


def _build_google_contents(_number: int, reply: Reply) -> Iterator[tuple[str, Any]]:
    """Give an answer as Google's generateContent does."""
    parts: list[dict[str, Any]] = [{"text": reply.text}] if reply.text else []
    parts += [{"functionCall": {"name": name, "args": given}} for name, given in reply.tools]
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
    candidate = {"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
    yield "", {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-2.5-flash"}


_FORMS = {
    "/v1/messages": _stream_anthropic_messages,
    "/responses": _stream_openai_responses,
    "/chat/completions": _stream_openai_completions,
    ":streamGenerateContent": _build_google_contents,
    ":generateContent": _build_google_contents,
}
