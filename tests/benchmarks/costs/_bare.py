"""What the costs of the kit are compared with: bare interpreters and ping-pongs. Knows nothing of the kit."""

from __future__ import annotations

import select
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["ENVIRONMENT", "INTERPRETER", "play_ping_pong", "spawn_bare_interpreter", "start_and_kill"]

ENVIRONMENT: Mapping[str, str] = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
"""As small as a fake's: its content changes how an interpreter starts."""

INTERPRETER = getattr(sys, "_base_executable", None) or sys.executable
"""The interpreter of the fakes, below any virtual environment."""


def spawn_bare_interpreter() -> None:
    """Run an interpreter that does nothing, and wait for its end."""
    command = [INTERPRETER, "-I", "-S", "-c", "pass"]
    subprocess.run(command, stdin=subprocess.DEVNULL, env=ENVIRONMENT, check=True, timeout=300)


def start_and_kill(command: Sequence[str], environment: Mapping[str, str] = ENVIRONMENT) -> None:
    """Start a program, read its first byte, and kill it."""
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL  # pi reads its stdin to the end before it speaks
    with subprocess.Popen(command, bufsize=0, stdin=nothing, stdout=pipe, stderr=pipe, env=environment) as process:
        assert process.stdout is not None
        data = process.stdout.read(1)
        process.kill()
    if not data:
        raise RuntimeError(f"{command[0]} ended without a byte")


_PONG = """
import select, _socket
link = _socket.socket(fileno=0)
poll = select.poll()
poll.register(0, select.POLLIN)
while poll.poll():
    message = link.recv(64)
    if not message:
        break
    link.send(message)
"""


def play_ping_pong(count: int) -> None:
    """Have two Python processes send one small message to and fro, as event-driven programs do."""
    link, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with other:
        pong = subprocess.Popen([INTERPRETER, "-I", "-S", "-c", _PONG], stdin=other.fileno(), env=ENVIRONMENT)
    poll = select.poll()
    poll.register(link, select.POLLIN)
    with pong, link:
        for _ in range(count):
            link.send(b"12345678")
            poll.poll()
            link.recv(64)
