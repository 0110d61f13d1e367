"""Fakes of `opencode serve`, as processes: they listen, answer over HTTP and tell their events in virtual time."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from tests.event_lines import list_lines

if TYPE_CHECKING:
    from anyio.abc import Process, SocketStream

    from tests.process.stand import Stand

AGENT = "{dialect: opencode, mode: serve}"
PROMPT = {"parts": [{"type": "text", "text": "hi"}]}
SERVED = """
- handshake: {after: 2s}
- wait_for: prompt 1
- silence: 1h
- answer: done
"""


async def read_port(process: Process) -> int:
    """Read the port from the line that says that the server listens."""
    assert process.stdout is not None
    text = b""
    while b"listening on" not in text or not text.endswith(b"\n"):
        text += await process.stdout.receive()
    return int(text.rpartition(b":")[2])


async def send_request(port: int, method: str, path: str, body: Any = None) -> SocketStream:
    """Send a request on a connection of its own."""
    line = await anyio.connect_tcp("127.0.0.1", port)
    data = b"" if body is None else json.dumps(body).encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(data)}\r\n\r\n"
    await line.send(head.encode() + data)
    return line


async def read_answer(line: SocketStream) -> tuple[int, Any]:
    """Read an answer, and close its connection."""
    text = b""
    while b"\r\n\r\n" not in text:
        text += await line.receive()
    head, _, body = text.partition(b"\r\n\r\n")
    size = int(head.partition(b"Content-Length: ")[2].partition(b"\r\n")[0])
    while len(body) < size:
        body += await line.receive()
    await line.aclose()
    return int(head.split(b" ")[1]), json.loads(body) if body else None


async def ask(port: int, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    """Send a request, and give its status and its answer."""
    return await read_answer(await send_request(port, method, path, body))


async def talk(argv: list[str]) -> tuple[list[tuple[float, str]], Any, float]:
    """Prompt, and give all events with their instants, the answer, and how long that took."""
    began = anyio.current_time()
    events: list[tuple[float, str]] = []
    async with await anyio.open_process(argv, stdin=None, stderr=None) as process, anyio.create_task_group() as group:
        port = await read_port(process)
        stream = await send_request(port, "GET", "/event")

        async def keep_events() -> None:
            async for data in stream:
                kinds = [json.loads(part.partition(b"\n\n")[0])["type"] for part in data.split(b"data: ")[1:]]
                events.extend((anyio.current_time() - began, kind) for kind in kinds)

        group.start_soon(keep_events)
        _, session = await ask(port, "POST", "/session", {})
        _, answer = await ask(port, "POST", f"/session/{session['id']}/message", PROMPT)
        took = anyio.current_time() - began
        process.terminate()
        await process.wait()
    await stream.aclose()
    return events, answer, took


def test_an_hour_of_a_turn_is_exact_and_has_a_heartbeat_every_ten_seconds(stand: Stand, backend: str) -> None:
    """Bytes on loopback take no time; a supervisor that takes each event for work never sees a silence."""
    argv = stand.fake(SERVED, AGENT)

    async def host() -> Any:
        return await talk(argv)

    events, answer, took = stand.run(host, backend=backend)
    assert took == 3602.0
    assert [part.get("text") for part in answer["parts"]] == [None, "done", None]
    beats = [at for at, kind in events if kind == "server.heartbeat"]
    assert beats == [12.0 + 10 * number for number in range(360)]
    assert [at for at, kind in events if kind == "session.idle"] == [3602.0]
    read = b"".join(event.data.get("bytes", b"") for event in list_lines(stand.fakes[0].record) if event.code == "i")
    assert read.splitlines()[1] == b"POST /session {}"


def test_a_descendant_holds_no_connection_of_the_server(stand: Stand, backend: str) -> None:
    """A client must see the end of a killed server, also if its tool lives on."""
    script = "- wait_for: prompt 1\n- spawn: {id: tool, inherits: [], for: 1m}\n- silence: 1s\n- die: KILL"
    argv = stand.fake(script, AGENT)

    async def host() -> float:
        began = anyio.current_time()
        async with await anyio.open_process(argv, stdin=None, stderr=None) as process:
            port = await read_port(process)
            _, session = await ask(port, "POST", "/session", {})
            line = await send_request(port, "POST", f"/session/{session['id']}/message", PROMPT)
            with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
                await read_answer(line)
            await line.aclose()
            return anyio.current_time() - began

    assert stand.run(host, backend=backend) == 1.0


def test_a_server_takes_what_is_http_and_refuses_the_rest(stand: Stand, backend: str) -> None:
    """Each refusal is an answer, and none ends the server."""
    argv = stand.fake("- wait_for: prompt 1", AGENT)

    async def host() -> Any:
        async with await anyio.open_process(argv, stdin=None, stderr=None) as process:
            port = await read_port(process)
            statuses = [(await ask(port, *words))[0] for words in (("GET", "/nothing"), ("GET", "/session/nosuch"))]
            for text in (
                b"POST /session HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n",
                b"POST /session HTTP/1.1\r\nContent-Length: 1\r\n\r\n{",
                b"POST /session HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
                b"POST /session HTTP/1.1\r\nContent-Length: many\r\n\r\n",
                b"hello\r\n\r\n",
            ):
                line = await anyio.connect_tcp("127.0.0.1", port)
                await line.send(text[:20])
                await line.send(text[20:])
                statuses.append((await read_answer(line))[0])
            statuses.append((await ask(port, "GET", "/global/health"))[0])
            process.terminate()
            await process.wait()
            return statuses

    assert stand.run(host, backend=backend) == [404, 404, 200, 400, 400, 400, 400, 200]


@pytest.mark.parametrize("script", ["- handshake: {error: ServeError}\n- wait_for: prompt 1", "- wait_for: prompt 1"])
def test_a_server_that_cannot_listen_says_so_as_the_real_one_does(stand: Stand, backend: str, script: str) -> None:
    """By its script, or since the port is taken."""
    path = stand.fake(script, AGENT)[0]

    async def host(port: int) -> Any:
        ran = await anyio.run_process([path, "serve", f"--port={port}"], check=False)
        return ran.returncode, ran.stdout.decode(), ran.stderr.decode()

    with socket.create_server(("127.0.0.1", 0)) as taken:
        ran = stand.run(lambda: host(taken.getsockname()[1]), backend=backend)
    notice = "Warning: OPENCODE_SERVER_PASSWORD is not set; server is unsecured.\n"
    assert ran == (1, notice, "\x1b[91m\x1b[1mError: \x1b[0mUnexpected error\n\nServeError\n")
