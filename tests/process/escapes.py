"""Plain programs that leave their tree in every way there is. Knows no containment, and so no expectation."""

from __future__ import annotations

import select
import sys
import time
from typing import TYPE_CHECKING

from tests.process.stand import CEILING

if TYPE_CHECKING:
    from pytest_agentproc.tree import AgentChild

__all__ = ["HYDRA", "WAYS", "await_alone", "await_exit", "build_escape_command", "build_program_command", "read_line"]

WAYS = {
    "same group": "",
    "own group": "group",
    "own session": "session",
    "orphan": "orphan",
    "daemon": "session orphan",
    "daemon with closed streams": "session orphan closed",
    "daemon with a cleared environment": "session orphan bare",
    "daemon with neither": "session orphan closed bare",
    "ignores_signals": "ignores_signals",
    "stopped in a session of its own": "session stopped",
    "under a subreaper of its own": "nested session orphan closed bare",
}

_ESCAPE = """
import os, signal, sys
def escape(ways):
    told, tell = os.pipe()
    if os.fork() == 0:
        if "nested" in ways:
            import ctypes
            ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
            if os.fork():
                os.close(tell)
                signal.pause()
        if "session" in ways:
            os.setsid()
        if "group" in ways:
            os.setpgid(0, 0)
        if "orphan" in ways and os.fork():
            os._exit(0)
        if "ignores_signals" in ways:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.write(tell, b"%d" % os.getpid())
        if "closed" in ways:
            os.closerange(0, tell)
        argv = ["sh", "-c", "kill -STOP $$; sleep 60"] if "stopped" in ways else ["sleep", "60"]
        os.execve("/bin/" + argv[0], argv, {} if "bare" in ways else os.environ)
    os.close(tell)
    pid = int(os.read(told, 20))
    while os.read(told, 1):
        pass
    if "orphan" in ways and "nested" not in ways:
        os.wait()
    return pid
print(*[escape(ways) for ways in sys.argv[1:] if ways != "stay"], flush=True)
signal.pause() if "stay" in sys.argv else sys.stdin.read()
"""

HYDRA = """
import os, sys
for head in range(int(sys.argv[1])):
    if os.fork() == 0:
        os.close(1)
        os.setsid()
        for hop in range(1000):
            if os.fork():
                os._exit(0)
        os._exit(0)
print(flush=True)
sys.stdin.read()
"""
"""Many heads, each in a session of its own, that fork and leave without a pause: a signal finds its target dead.

After 1000 hops each head ends by itself: a test that fails must not fill the machine.
"""


def build_program_command(script: str, *arguments: str) -> list[str]:
    """Give the command of a small script."""
    return [getattr(sys, "_base_executable", sys.executable), "-I", "-S", "-c", script, *arguments]


def build_escape_command(*ways: str) -> list[str]:
    """Give the command of a program that prints the pids of the processes that leave it.

    It lives until its stdin ends, or for ever if "stay" is among the ways.
    """
    return build_program_command(_ESCAPE, *ways)


def read_line(child: AgentChild) -> bytes:
    """Read the line that a child prints."""
    data = b""
    child.watch_stream("stdout", wanted=True)
    while not data.endswith(b"\n"):
        _wait(child)
        data += child.read("stdout", 65536) or b""
    child.watch_stream("stdout", wanted=False)
    return data


def await_exit(child: AgentChild) -> int | None:
    """Wait for a child's end."""
    while "exit" not in child.poll():
        _wait(child)
    return child.read_exit_status()


def await_alone(child: AgentChild, seconds: float = CEILING) -> bool:
    """Look whenever a child has news, until the child is alone or the given real seconds have passed."""
    end = time.monotonic() + seconds
    while not child.is_alone():
        if not _wait(child, end - time.monotonic()):
            return False
        child.poll()
    return True


def _wait(child: AgentChild, seconds: float = CEILING) -> bool:
    poll = select.poll()
    poll.register(child.descriptor, select.POLLIN)
    return bool(poll.poll(max(seconds, 0) * 1000))
