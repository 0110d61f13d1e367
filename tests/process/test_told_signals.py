"""A fake that waits has told of every signal that it caught: no instant goes by before it is heard."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pytest_agentproc.clock._participant import new_listener, process_state, receive_hello
from tests.architecture.sources import ROOT

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator

_DEAF = """\
import ctypes, signal, sys
from fake_agents import main

def wait(player, stage, link):
    stage.catch(signal.SIGTERM)
    libc, mutex = ctypes.CDLL(None), ctypes.create_string_buffer(128)
    libc.pthread_mutex_lock(mutex)
    link.send(b"ready")
    libc.pthread_mutex_lock(mutex)  # no signal interrupts this, and Python runs no handler meanwhile

signal.alarm(60)
main._play_by_grants = wait
baked = {"hub": bytes.fromhex(sys.argv[1]), "token": b"token", "foreign": (), "host": 0}
program = {"name": "agent", "dialect": "raw", "mode": "", "code": 0, "newline": "lf", "serves": False, "steps": []}
main._live_by_grants(baked, 0, -1, {"id": "agent", "line": 0}, program)
"""


@contextmanager
def _fake() -> Iterator[tuple[int, socket.socket]]:
    """Start a fake that is past Python's last look at the signals that came, and behind that waits; give its line."""
    listener, address = new_listener()
    with listener, subprocess.Popen([sys.executable, "-c", _DEAF, address.hex()], cwd=ROOT) as process:
        try:
            assert select.select([listener], [], [], 30)[0], "no hello came"
            hello = receive_hello(listener, {b"token"})
            assert hello is not None
            os.close(hello[2])
            with hello[0] as link:
                link.settimeout(10)
                assert link.recv(16) == b"ready"
                while process_state(process.pid) != "S":
                    os.sched_yield()
                yield process.pid, link
        finally:
            process.kill()


def test_a_signal_is_told_before_the_handler_has_run() -> None:
    """One that comes between the interpreter's last look and the call that waits is not told by a handler in Python."""
    with _fake() as (pid, link):
        os.kill(pid, signal.SIGTERM)
        assert link.recv(16) == bytes([signal.SIGTERM])
