"""A small HTTP/1.1 server inside a fake: its sockets, requests, answers and streams of events. Knows no dialect.

No call here waits. The player takes what has come whenever it runs; bytes that a client does not take yet are kept, as
the real CLI keeps them, and go out once the client reads.
"""

from __future__ import annotations

import _socket
import fcntl
import select
from errno import EADDRINUSE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_FIRST_OWN_DESCRIPTOR = 200
"""The sockets live up here, out of the way of what a scenario or a client does with low numbers."""

_REASONS = {200: "OK", 204: "No Content", 400: "Bad Request", 404: "Not Found"}
_MAX_RECEIVED_BYTES = 65536
_BACKLOG = 128


class BadRequest(Exception):
    """The client sent no HTTP."""


class HttpConnection:
    """One connection of a client.

    Args:
        line: its socket.
        epoll: what wakes the fake.

    `is_open` is false once either side has closed it.
    """

    def __init__(self, line: _socket.socket, epoll: select.epoll) -> None:
        self._line = line
        self._epoll = epoll
        self._received = b""
        self._unsent = b""
        self.is_open = True
        epoll.register(line.fileno(), select.EPOLLIN)

    def receive(self) -> Iterator[HttpRequest]:
        """Give the whole requests that have come; write what could not be written before."""
        self._flush()
        while self.is_open:
            try:
                data = self._line.recv(_MAX_RECEIVED_BYTES)
            except BlockingIOError:
                break
            except OSError:
                data = b""
            if not data:
                self.close()
            self._received += data
        try:
            while self.is_open and (found := _cut_request(self._received)) is not None:
                head, body, self._received = found
                yield HttpRequest(self, *head, body)
        except BadRequest:
            self.send_answer(400, b"", "text/plain")
            self.close()

    def send_answer(self, status: int, body: bytes, kind: str) -> None:
        """Answer a request, whole."""
        named = f"Content-Type: {kind}\r\n" if body else ""
        head = f"HTTP/1.1 {status} {_REASONS[status]}\r\n{named}Vary: Origin\r\nContent-Length: {len(body)}\r\n\r\n"
        self._send(head.encode() + body)

    def begin_stream(self) -> None:
        """Answer with a stream of events, which ends with the connection."""
        self._send(
            b"HTTP/1.1 200 OK\r\nCache-Control: no-cache, no-transform\r\nX-Content-Type-Options: nosniff\r\n"
            b"Content-Type: text/event-stream\r\nVary: Origin\r\nx-accel-buffering: no\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )

    def send_event(self, line: bytes) -> None:
        """Write an event into the stream."""
        data = b"data: %s\n\n" % line
        self._send(b"%x\r\n%s\r\n" % (len(data), data))

    def close(self) -> None:
        """Close it, or the copy that a fork of this process has."""
        self.is_open = False
        self._line.close()

    def _send(self, data: bytes) -> None:
        is_first = not self._unsent
        self._unsent += data
        if is_first:
            self._flush()

    def _flush(self) -> None:
        if not self.is_open or not self._unsent:
            return
        try:
            while self._unsent:
                self._unsent = self._unsent[self._line.send(self._unsent) :]
        except BlockingIOError:
            pass
        except OSError:  # the client has gone
            self.close()
            return
        wanted = select.EPOLLIN | (select.EPOLLOUT if self._unsent else 0)
        self._epoll.modify(self._line.fileno(), wanted)


class HttpRequest:
    """One request.

    Args:
        connection: where it came from, and its answer goes to.
        method: its method.
        path: the path, without what follows a `?`.
        body: its body.
    """

    def __init__(self, connection: HttpConnection, method: str, path: str, body: bytes) -> None:
        self.connection = connection
        self.method = method
        self.path = path
        self.body = body

    def answer(self, status: int, body: bytes, kind: str = "application/json") -> None:
        """Answer it."""
        self.connection.send_answer(status, body, kind)


class HttpServer:
    """A server on one port, and the connections of its clients.

    Args:
        epoll: what wakes the fake.
    """

    def __init__(self, epoll: select.epoll) -> None:
        self._epoll = epoll
        self._door: _socket.socket | None = None
        self._connections: list[HttpConnection] = []

    def listen(self, host: str, ports: Sequence[int]) -> int:
        """Listen on the first of these ports that is free; give it.

        Raises:
            OSError: there is no such host, or no port is free.
        """
        *firsts, last = ports
        for port in firsts:
            try:
                return self._listen_on_port(host, port)
            except OSError as error:
                if error.errno != EADDRINUSE:
                    raise
        return self._listen_on_port(host, last)

    def _listen_on_port(self, host: str, port: int) -> int:
        door = _move_up(_socket.socket())
        door.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
        try:
            door.bind((host, port))
            door.listen(_BACKLOG)
        except (OSError, OverflowError) as error:
            door.close()
            raise error if isinstance(error, OSError) else OSError(str(error)) from None
        door.setblocking(False)
        self._door = door
        self._epoll.register(door.fileno(), select.EPOLLIN)
        return int(door.getsockname()[1])

    def take_requests(self) -> Iterator[HttpRequest]:
        """Give the requests that have come, in the order of their connections."""
        while self._door is not None:
            try:
                number, _ = self._door._accept()  # type: ignore[attr-defined]  # noqa: SLF001  # `socket` calls it, too
            except BlockingIOError:
                break
            line = _move_up(_socket.socket(fileno=number))
            line.setblocking(False)
            line.setsockopt(_socket.IPPROTO_TCP, _socket.TCP_NODELAY, 1)
            self._connections.append(HttpConnection(line, self._epoll))
        for connection in list(self._connections):
            yield from connection.receive()
        self._connections = [connection for connection in self._connections if connection.is_open]

    def close(self) -> None:
        """Close the door and all connections."""
        if self._door is not None:
            self._door.close()
        for connection in self._connections:
            connection.close()


def _move_up(line: _socket.socket) -> _socket.socket:
    high = fcntl.fcntl(line.fileno(), fcntl.F_DUPFD_CLOEXEC, _FIRST_OWN_DESCRIPTOR)
    line.close()
    return _socket.socket(fileno=high)


def _cut_request(data: bytes) -> tuple[tuple[str, str], bytes, bytes] | None:
    """Give a request's method and path, its body, and what follows it; None: it is not whole yet."""
    head, end, rest = data.partition(b"\r\n\r\n")
    if not end:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):  # noqa: PLR2004  # method, path and version
        raise BadRequest
    fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    found = words[0], words[1].partition("?")[0]
    if fields.get("transfer-encoding", "").lower() == "chunked":
        whole = _join_chunks(rest)
        return whole and (found, *whole)
    length = fields.get("content-length", "0")
    if not length.isdecimal():
        raise BadRequest
    size = int(length)
    return (found, rest[:size], rest[size:]) if len(rest) >= size else None


def _join_chunks(data: bytes) -> tuple[bytes, bytes] | None:
    """Give a body that came in chunks, and what follows it; None: it is not whole yet."""
    body = b""
    while True:
        line, end, data = data.partition(b"\r\n")
        if not end:
            return None
        try:
            size = int(line.partition(b";")[0], 16)
        except ValueError:
            raise BadRequest from None
        if len(data) < size + 2:
            return None
        body, data = body + data[:size], data[size + 2 :]
        if size == 0:
            return body, data
