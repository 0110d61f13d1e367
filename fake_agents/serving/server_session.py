"""A session whose clients come over HTTP: requests in place of lines of stdin, streams of events in place of stdout.

A step `handshake` says when the server listens, and whether it does. Each stream begins with the news that it is
connected, and has a heartbeat every ten seconds: a client that takes every event for work never sees a silence.
"""

from __future__ import annotations

from pytest_agentproc.fake_agents.session import SessionHandler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from pytest_agentproc.fake_agents.contracts import ServerEncoder, ServerStage, SessionPlayer, TrackWait
    from pytest_agentproc.fake_agents.serving.http_server import HttpRequest

_HEARTBEAT_NS = 10_000_000_000


class ServerSession(SessionHandler):
    """The state of a server's player beside its tracks.

    Args:
        player: the player; its dialect must be a `ServerEncoder`.
        when: the kind of wait that ends as soon as a function says so.
    """

    def __init__(self, player: SessionPlayer, when: int) -> None:
        super().__init__(player, when)
        self._encoder: ServerEncoder = player.encoder  # type: ignore[assignment]
        stage: ServerStage = player.stage  # type: ignore[assignment]
        self._server = stage.open_server()
        self._streams: list[HttpRequest] = []
        """The requests that read events."""
        self._is_shaken = True
        player.begin_session_track(self._begin_serving(), 0)

    def write_words(self, data: bytes) -> Iterator[TrackWait]:
        """Send each line to all who read events, and note it."""
        if data:
            self._player.stage.add_note("o", data)
        for stream in self._streams:
            for line in data.splitlines():
                stream.connection.send_event(self._encoder.frame_event(line, stream.path))
        self._streams = [stream for stream in self._streams if stream.connection.is_open]
        return iter(())

    def take_requests(self) -> bool:
        """Take what has come; return whether it cancels the turn."""
        cancels = False
        for request in self._server.take_requests():
            words = request.method.encode(), request.path.encode(), request.body
            self._player.stage.add_note("i", b"%s %s %s\n" % words)
            cancels = self.handle_request(request) or cancels
        return cancels

    def handle_request(self, request: Any) -> bool:
        """Take one request; return whether it cancels the turn."""
        if request.path in self._encoder.streams and request.method == "GET":
            request.connection.begin_stream()
            self._streams.append(request)
            self._tell_stream(request, "connected")
            return False
        return super().handle_request(request)

    def _begin_serving(self) -> Iterator[TrackWait]:
        """Say what a server says first, and listen when the first steps have said it."""
        yield from self._player.write_stdout(self._encoder.notice)
        kind, value = self._handshake
        if kind == "error":
            yield from self._refuse_to_listen(value)
        elif kind == "after":
            self._player.begin_session_track(self._listen(), self._player.now + value)

    def _listen(self) -> Iterator[TrackWait]:
        try:
            port = self._server.listen(self._encoder.host, self._encoder.ports)
        except OSError:
            yield from self._refuse_to_listen("ServeError")
        else:
            yield from self._player.write_stdout(self._encoder.encode_listening(port))

    def _refuse_to_listen(self, words: str) -> Iterator[TrackWait]:
        self._player.stage.write_chunk("stderr", self._encoder.encode_handshake_refusal(b"", words))
        self._player.stage.exit_process(1)
        return iter(())

    def _tell_stream(self, stream: HttpRequest, kind: str) -> None:
        """Send an event of the server's own to one stream, and a heartbeat some time after it."""
        line = self._encoder.encode_stream_event(kind)
        self._player.stage.add_note("o", line)
        stream.connection.send_event(self._encoder.frame_event(line.rstrip(), stream.path))
        self._player.begin_session_track(self._beat(stream), self._player.now + _HEARTBEAT_NS)

    def _beat(self, stream: HttpRequest) -> Iterator[TrackWait]:
        self._player.count_drip()
        if stream.connection.is_open:
            self._tell_stream(stream, "heartbeat")
        yield from ()
