"""The talk between a fake and the hub: one SEQPACKET message each. Owns the forms; refuses sockets and meaning.

    fake -> hub   hello  the bytes of the token, then (parent pid, child index, name, line); with the fake's epoll
                         descriptor
                  wait   ("W", until or None, wants, notes)  parked; also woken when its epoll descriptor is ready
                  notes  ("N", notes)                  more of them than fit into one message
                  bye    ("B", notes)                  about to be gone
                  death  ("D", signal number, notes)   about to die of a signal, where only a parent could tell
                  wake   one byte                      a signal was caught, whose number it is
    hub -> fake   grant  eight bytes of now, one byte: whether the epoll descriptor was ready

A note is (code, data): "o", "e" bytes written; "i" bytes read (none: EOF); "s" the signal caught; "m" (line, op);
"c" stream closed; "b" stream found broken; "p" (child index, pid, name, line) spawned; "g" what the agent was given;
"q" a question that it asked, or its answer; what else a verdict needs to know of it, as a mapping.
"""

from __future__ import annotations

import marshal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_MESSAGE_BYTES = 1 << 18
"""No message is longer than this."""

TOKEN_BYTES = 16
"""So many bytes are a token: they stand before all else, so that nothing is decoded without one."""

MAX_SOCKET_ADDRESS_BYTES = 107
"""So many bytes of a path fit into the address of a socket."""


def encode_hello_message(token: bytes, parent: int, index: int, name: str, line: int) -> bytes:
    """Introduce a process: root agents have index -1."""
    return token + marshal.dumps((parent, index, name, line))


def decode_hello_message(message: bytes) -> Any:
    """Read a hello, once its token is known."""
    return marshal.loads(memoryview(message)[TOKEN_BYTES:])


def encode_wait_message(until: int | None, wants: tuple[bool, bool, bool], notes: list[Any]) -> bytes:
    """Say 'parked until', and for room or data on which of stdin, stdout, stderr."""
    return marshal.dumps(("W", until, wants, notes))


def encode_notes_message(form: str, notes: list[Any]) -> bytes:
    """Send notes without parking: N (more to come) or B (bye)."""
    return marshal.dumps((form, notes))


def encode_death_message(signum: int, notes: list[Any]) -> bytes:
    """Say of which signal this process dies."""
    return marshal.dumps(("D", signum, notes))


def encode_grant_message(now: int, *, ready: bool) -> bytes:
    """Let a fake continue."""
    return now.to_bytes(8, "little") + (b"\1" if ready else b"\0")


def decode_grant_message(message: bytes) -> tuple[int, bool]:
    """Read a grant."""
    return int.from_bytes(message[:8], "little"), message[8] == 1


def decode_fake_message(message: bytes | bytearray) -> Any:
    """Read a fake's message, other than a wake; the bytes after it do not matter."""
    return marshal.loads(message)
