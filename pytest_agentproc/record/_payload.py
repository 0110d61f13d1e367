"""Owns bytes that came in pieces: whole while they are few, else their length, hash and ends."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from pytest_agentproc.events import InputRead, Payload

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_agentproc.events import StreamBytes


MAX_WHOLE_OUTPUT_BYTES = 64 * 1024
"""So much that a process wrote on one stream in one instant is kept whole."""

MAX_WHOLE_STDIN_BYTES = 16 * 1024 * 1024
"""So much that a process read from its stdin in one instant is kept whole: a check may want all of it."""

KEPT_BYTES_AT_EACH_END = 4 * 1024


class PayloadBuffer:
    """Bytes that are still coming.

    Args:
        limit: the number of bytes that are kept whole.

    `place` is that of the event that they belong to, -1 if they are of several; `whole` then gathers those of all.
    """

    __slots__ = ("_hash", "_head", "_parts", "_tail", "limit", "place", "size", "whole")

    def __init__(self, limit: int, place: int = -1) -> None:
        self.limit = limit
        self.place = place
        self.whole: PayloadBuffer | None = None
        self.size = 0
        self._parts: list[bytes] = []
        self._hash: hashlib._Hash | None = None
        self._head = self._tail = b""

    def add(self, data: bytes) -> None:
        """Take the next ones."""
        self.size += len(data)
        if self._hash is not None:
            self._hash.update(data)
            self._tail = (
                data[-KEPT_BYTES_AT_EACH_END:]
                if len(data) >= KEPT_BYTES_AT_EACH_END
                else (self._tail + data)[-KEPT_BYTES_AT_EACH_END:]
            )
            return
        self._parts.append(data)
        if self.size > self.limit:
            self._hash = hashlib.sha256()
            for part in self._parts:
                self._hash.update(part)
            self._head, self._tail = _take_first_bytes(self._parts), _take_last_bytes(self._parts)
            self._parts = []

    def copy(self) -> PayloadBuffer:
        """Give a copy that holds the same and continues by itself."""
        other = PayloadBuffer(self.limit)
        other.size, other._parts, other._head, other._tail = self.size, self._parts[:], self._head, self._tail
        other._hash = self._hash.copy() if self._hash is not None else None
        return other

    def get_payload(self) -> bytes | Payload:
        """Give what is kept."""
        if self._hash is None:
            return b"".join(self._parts)
        whole = self.whole.get_payload() if self.whole is not None else None
        assert not isinstance(whole, bytes)
        return Payload(self.size, self._hash.hexdigest(), self._head, self._tail, whole)


def get_payload_limit(event: StreamBytes) -> int:
    """Say how much of a stream's bytes is kept whole in one instant."""
    return MAX_WHOLE_STDIN_BYTES if isinstance(event, InputRead) else MAX_WHOLE_OUTPUT_BYTES


def join_payloads(parts: Sequence[bytes | Payload], limit: int) -> bytes | Payload:
    """Put what one stream carried in one instant together again.

    The hash of all parts is known if each is whole, or if there are no others in the instant.
    """
    if len(parts) == 1 and (isinstance(parts[0], Payload) or len(parts[0]) <= limit):
        return parts[0]
    known = [part for part in parts if isinstance(part, bytes)]
    if len(known) == len(parts):
        gathered = PayloadBuffer(limit)
        gathered.add(b"".join(known))
        return gathered.get_payload()
    size = sum(len(part) for part in parts)
    whole = next((part.whole for part in parts if isinstance(part, Payload)), None)
    if whole is not None and whole.size == size:
        return whole
    heads = (part if isinstance(part, bytes) else part.head for part in parts)
    tails = [part if isinstance(part, bytes) else part.tail for part in parts]
    return Payload(size, "", _take_first_bytes(heads), _take_last_bytes(tails), whole)


def _take_first_bytes(parts: Iterable[bytes]) -> bytes:
    head = b""
    for part in parts:
        head += part[: KEPT_BYTES_AT_EACH_END - len(head)]
        if len(head) == KEPT_BYTES_AT_EACH_END:
            break
    return head


def _take_last_bytes(parts: Sequence[bytes]) -> bytes:
    tail = b""
    for part in reversed(parts):
        tail = part[-(KEPT_BYTES_AT_EACH_END - len(tail)) :] + tail
        if len(tail) == KEPT_BYTES_AT_EACH_END:
            break
    return tail
