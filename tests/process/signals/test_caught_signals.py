"""A waiting fake has reported every signal that it caught: no instant passes before it gets the signal."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from pytest_agentproc.clock._hub_socket import HelloMessage, HubListener
from pytest_agentproc.clock._participant import read_process_state
from tests.architecture.sources import ROOT

if TYPE_CHECKING:
    import _socket
    from collections.abc import Iterator

_DEAF = """\
import ctypes, signal, sys
from pytest_agentproc.fake_agents import main

def wait(player, stage, link):
    stage.catch_signal(signal.SIGTERM)
    libc, mutex = ctypes.CDLL(None), ctypes.create_string_buffer(128)
    libc.pthread_mutex_lock(mutex)
    link.send(b"ready")
    libc.pthread_mutex_lock(mutex)  # no signal interrupts this, and Python runs no handler meanwhile

signal.alarm(60)
main._play_program_by_hub_grants = wait
baked = {"hub": bytes.fromhex(sys.argv[1]), "token": b"t" * 16, "foreign": (), "host": 0}
program = {"name": "agent", "dialect": "raw", "mode": "", "code": 0, "newline": "lf", "serves": False, "steps": []}
program["encoder"] = ["pytest_agentproc.fake_agents.dialects.raw"]
main._play_program_in_virtual_time(baked, 0, -1, {"id": "agent", "line": 0}, program)
"""


def _open_listener(door: HubListener, folder: str) -> str:
    door.choose_socket_folder(folder)
    door.open()
    return door.address.hex()


@contextmanager
def _start_waiting_fake() -> Iterator[tuple[int, _socket.socket]]:
    """Start a fake that is past Python's last look at the signals, and waits after that; give its line."""
    with (
        closing(HubListener()) as door,
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen([sys.executable, "-c", _DEAF, _open_listener(door, folder)], cwd=ROOT) as process,
    ):
        try:
            hellos: list[HelloMessage] = []
            while not hellos:
                assert select.select([door], [], [], 30)[0], "no hello came"
                hellos += door.receive_hellos({b"t" * 16})
            os.close(hellos[0].stage)
            with closing(hellos[0].link) as link:
                link.settimeout(10)
                assert link.recv(16) == b"ready"
                while read_process_state(process.pid) != "S":
                    os.sched_yield()
                yield process.pid, link
        finally:
            process.kill()


def test_a_signal_is_reported_before_the_handler_has_run() -> None:
    """A handler in Python does not report a signal between the interpreter's last look and the call that waits."""
    with _start_waiting_fake() as (pid, link):
        os.kill(pid, signal.SIGTERM)
        assert link.recv(16) == bytes([signal.SIGTERM])
