"""Lets event loops make socket pairs where a test tool refuses every socket. Knows no event loop.

pytest-socket puts a class into `socket` that keeps tests off the network. It also refuses the socket pair with which an
event loop wakes itself, and the one that asyncio makes for the stdin of a process. Neither reaches a network, and the
code under test asked for neither.
"""

from __future__ import annotations

import _socket
import socket
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pytest_agentproc.interrupts import whole_block

if TYPE_CHECKING:
    from collections.abc import Iterator


class _FreeSocketPairs(ModuleType):
    """The module `socket`, whose pairs are of the interpreter's own class, which nobody can replace."""

    socketpair = staticmethod(_socket.socketpair)

    def __getattr__(self, name: str) -> Any:
        return getattr(socket, name)


_SOCKET_MODULE = _FreeSocketPairs("socket")


@whole_block
def allow_socket_pairs(*modules: ModuleType) -> Iterator[None]:
    """Have these modules find free socket pairs in what they call `socket`, while the block runs."""
    spaces = [vars(module) for module in modules]
    kept = [space["socket"] for space in spaces]
    for space in spaces:
        space["socket"] = _SOCKET_MODULE
    try:
        yield
    finally:
        for space, plain in zip(spaces, kept, strict=True):
            space["socket"] = plain
