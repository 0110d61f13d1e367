"""The hub's socket in a private folder, where new participants say hello, and the epoll that serves it.

It is open only while virtual time runs. A fake that finds it shut runs in real time. So a fake learns its kind of time
at its start, and waits for no answer.

    connected --another user's--> refused
    connected --says nothing for 10 s, or anything but a hello with a token--> refused
    connected --a hello with a token of this run--> let in

Nothing is read from another user's process, and nothing is decoded before the token is known. A silent process blocks
no other: its link is put aside until it speaks.

The sockets are of the interpreter's own class. A test tool may have put another one into `socket`, such as
pytest-socket, which refuses every socket to keep tests off the network.
"""

from __future__ import annotations

import _socket
import contextlib
import os
import select
import socket
import struct
import threading
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_agentproc.fake_agents import wire
from pytest_agentproc.originals import monotonic

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator


class DescriptorPoller:
    """Call the handlers of readable descriptors, from any calling thread."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._epoll = select.epoll()
        self._handlers: dict[int, Callable[[], None]] = {}

    def watch(self, descriptor: int, handler: Callable[[], None]) -> None:
        """Call `handler` in each poll that finds the descriptor readable."""
        self._handlers[descriptor] = handler
        self._epoll.register(descriptor, select.EPOLLIN)

    def forget(self, descriptor: int) -> None:
        """Stop watching a descriptor; a closed one has left the poll by itself."""
        if descriptor in self._handlers:
            with contextlib.suppress(OSError):
                self._epoll.unregister(descriptor)
            self._handlers.pop(descriptor, None)

    def poll(self, timeout: float = 0.0) -> None:
        """Handle what is readable, or becomes so within `timeout` real seconds."""
        if timeout:
            # The wait is outside the lock. With the lock held for up to 50 ms, a start in another thread waited 100 ms
            # for a hello that was there.
            self._epoll.poll(timeout)
        with self.lock:
            for descriptor, _ in self._epoll.poll(0):
                handler = self._handlers.get(descriptor)
                if handler is not None:
                    handler()

    def close(self) -> None:
        """Close the descriptor, and drop the handlers."""
        self._epoll.close()
        self._handlers.clear()


_ROOT_USER_ID = 0
_HELLO_TIMEOUT_SECONDS = 10.0
"""Real seconds after which a connected but silent process is refused."""

_socket_name_numbers = count()
"""Numbers for the socket names of this process."""


class HelloMessage(NamedTuple):
    """The first message of a process.

    Args:
        link: the connected socket.
        pid: the process at its other end, as the kernel says.
        stage: its epoll descriptor.
        token: the token of its fake.
        fields: the rest of `wire.encode_hello_message`: parent pid, child index, name, line.
    """

    link: _socket.socket
    pid: int
    stage: int
    token: bytes
    fields: tuple[Any, ...]


class HubListener:
    """Let in the fakes of one run. Its descriptor is readable when a process connects or speaks."""

    def __init__(self) -> None:
        self._place: tuple[str, str] | None = None
        self._is_open = False
        self._epoll = select.epoll()
        self._listener: _socket.socket | None = None
        self._silent: dict[int, tuple[_socket.socket, int, float]] = {}
        """Connections without a message so far, by descriptor: the link, the pid, and the time of the connection."""

    def fileno(self) -> int:
        """Give the descriptor to wait at; -1 once it is closed."""
        return -1 if self._epoll.closed else self._epoll.fileno()

    @property
    def address(self) -> bytes:
        """The path of the socket; empty until the door has a place."""
        return b"" if self._place is None else os.fsencode(os.path.join(*self._place))

    def choose_socket_folder(self, folder: str) -> None:
        """Choose where the door is, unless it has a place already.

        Args:
            folder: a folder that only this user can enter.
        """
        if self._place is None:
            self._place = folder, f"hub-{next(_socket_name_numbers)}"
            if self._is_open:
                self._listen(*self._place)

    def open(self) -> None:
        """Listen at the door's place: at once if it has one, or as soon as it has."""
        self._is_open = True
        if self._place is not None and self._listener is None:
            self._listen(*self._place)

    def _listen(self, folder: str, name: str) -> None:
        self._listener, _ = bind_socket_in(folder, name, 256)
        self._listener.setblocking(False)
        self._epoll.register(self._listener, select.EPOLLIN)

    def receive_hellos(self, tokens: Container[bytes]) -> Iterator[HelloMessage]:
        """Give each hello that is there and has one of these tokens, without a wait."""
        for number, _ in self._epoll.poll(0):
            if number in self._silent:
                link, pid, _since = self._silent[number]
                yield from self._receive_hello(link, pid, tokens)
            else:
                yield from self._accept_connections(tokens)

    def _accept_connections(self, tokens: Container[bytes]) -> Iterator[HelloMessage]:
        """Accept every connection; most have brought their hello by then."""
        assert self._listener is not None, "only what was registered is found"
        while True:
            try:
                number, _ = self._listener._accept()  # type: ignore[attr-defined]  # noqa: SLF001  # it has no other
            except BlockingIOError:
                break
            link = _socket.socket(fileno=number)
            # The kernel's word for the peer, not the peer's own. In the abstract namespace, used before, any user could
            # connect, say nothing, and fail a run after 10 s.
            pid, user, _group = struct.unpack("iII", link.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12))
            if user not in (_ROOT_USER_ID, os.geteuid()):
                link.close()
                continue
            link.setblocking(False)
            yield from self._receive_hello(link, pid, tokens)
        self._close_silent_links()

    def _receive_hello(self, link: _socket.socket, pid: int, tokens: Container[bytes]) -> Iterator[HelloMessage]:
        try:
            message, descriptors, _, _ = socket.recv_fds(link, wire.MAX_MESSAGE_BYTES, 1)  # type: ignore[arg-type]
        except BlockingIOError:
            self._keep_silent_link(link, pid)
            return
        except ConnectionError:
            message, descriptors = b"", []
        if self._silent.pop(link.fileno(), None) is not None:
            self._epoll.unregister(link)
        token = message[: wire.TOKEN_BYTES]
        # The token is compared as bytes. To decode first would let any process of this user feed the parser.
        if descriptors and token in tokens:
            yield HelloMessage(link, pid, descriptors[0], token, wire.decode_hello_message(message))
            return
        link.close()
        # A refused message may have carried descriptors: open ones would be a leak that the sender controls.
        for descriptor in descriptors:
            os.close(descriptor)

    def _keep_silent_link(self, link: _socket.socket, pid: int) -> None:
        if link.fileno() not in self._silent:
            self._silent[link.fileno()] = link, pid, monotonic()
            self._epoll.register(link, select.EPOLLIN)

    def _close_silent_links(self) -> None:
        """Close each connection that has been silent for too long."""
        if self._silent:
            latest = monotonic() - _HELLO_TIMEOUT_SECONDS
            for number in [number for number, (_, _, since) in self._silent.items() if since < latest]:
                self._silent.pop(number)[0].close()

    def refuse_connections(self) -> None:
        """Refuse every process from now on; a process that has connected and was not let in is refused too."""
        self._is_open = False
        for link, _, _ in self._silent.values():
            link.close()
        self._silent.clear()
        if self._listener is not None:
            self._listener.close()
            self._listener = None
            with contextlib.suppress(FileNotFoundError):  # the folder went before
                os.unlink(self.address)

    def close(self) -> None:
        """Shut the door, and give every descriptor back."""
        self.refuse_connections()
        self._epoll.close()


def bind_socket_in(folder: str, name: str, backlog: int) -> tuple[_socket.socket, bytes]:
    """Listen at a socket in a folder; give it, and its path. A file of that name is removed first.

    A path that is too long for an address is reached through the folder's descriptor, as
    `pytest_agentproc.fake_agents.main` does it.
    """
    path = os.path.join(os.fsencode(folder), name.encode("ascii"))
    listener = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        if len(path) <= wire.MAX_SOCKET_ADDRESS_BYTES:
            listener.bind(path)
        else:
            number = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                listener.bind(f"/proc/self/fd/{number}/{name}")
            finally:
                os.close(number)
        os.chmod(path, 0o600)
        listener.listen(backlog)
    except BaseException:
        listener.close()
        raise
    return listener, path
