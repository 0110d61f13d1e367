"""Agents that do harm, and a program that supervises one of them and says what it cost.

Usage: hostile.py WAY supervises the agent `hostile.py WAY agent` as a claude run. It prints one JSON object: the
outcome, the seconds of computing, the highest memory in MiB, the descriptors kept, and the commands that are left.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_WORD = "ATTACKED"
_MEGABYTE = 1 << 20


def _write_all(data: bytes, stream: int = 1) -> None:
    try:
        while data:
            data = data[os.write(stream, data) :]
    except BrokenPipeError:
        os._exit(0)


def _write_repeatedly(data: bytes, count: int, stream: int = 1) -> None:
    for _ in range(count):
        _write_all(data, stream)


def _write_events(make: Callable[[int], dict[str, Any]], count: int = 10_000) -> None:
    for start in range(0, count, 500):
        _write_all(b"".join(json.dumps(make(number)).encode() + b"\n" for number in range(start, start + 500)))


def _build_assistant_message(number: int, content: dict[str, Any]) -> dict[str, Any]:
    return {"type": "assistant", "message": {"id": f"m{number}", "content": [content]}}


def _fork_stubborn_children(count: int) -> None:
    """Have children that heed no TERM: some lead sessions of their own, some have no parent any more."""
    for number in range(count):
        if os.fork() == 0:
            if number % 3:
                os.setsid()
            if number % 3 == 1 and os.fork():
                os._exit(0)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.execv("/bin/sleep", ["sleep", "60"])  # noqa: S606  # a child as any
    _write_all(b"forked\n")


def _fork_and_linger() -> None:
    _fork_stubborn_children(30)
    signal.pause()


def _close_streams_and_wait() -> None:
    for number in range(3):
        os.close(number)
    signal.pause()


WAYS: dict[str, Callable[[], None]] = {
    "a flood": lambda: _write_repeatedly(b"x" * _MEGABYTE, 64),
    "a flood of stderr": lambda: _write_repeatedly(b"x\n" * (_MEGABYTE // 2), 32, 2),
    "a flood of empty lines": lambda: _write_all(b"\n" * (_MEGABYTE // 4)),
    "long lines": lambda: _write_repeatedly(b"y" * (15 * _MEGABYTE) + b"\n", 4),
    "half a line": lambda: _write_all(b'{"type":"assistant","message":{"content":[{"type":"te'),
    "an endless line": lambda: _write_repeatedly(b'{"type":"result"' * 50_000, 64),
    "bytes that are no text": lambda: _write_repeatedly(b"\0\xff\x1b[\r\n" * 50_000, 4),
    "deep JSON": lambda: _write_all(
        b'{"type":"assistant","message":' + b'{"a":' * 500_000 + b"1" + b"}" * 500_001 + b"\n"
    ),
    "large numbers": lambda: _write_all(
        b'{"type":"result","n":' + b"9" * 8_000_000 + b'}\n{"n":1e99999999}\n"\\ud800"\n'
    ),
    "many tools": lambda: _write_events(
        lambda number: _build_assistant_message(number, {"type": "tool_use", "id": f"t{number}", "name": "B"})
    ),
    "many texts": lambda: _write_events(
        lambda number: _build_assistant_message(number, {"type": "text", "text": "w" * 1000})
    ),
    "many tasks": lambda: _write_events(
        lambda number: {"type": "system", "subtype": "task_started", "task_id": f"t{number}"}
    ),
    "many questions": lambda: _write_events(
        lambda number: {"type": "control_request", "request_id": f"r{number}", "request": {"subtype": "can_use_tool"}}
    ),
    "closed streams": _close_streams_and_wait,
    "children that leave": lambda: _fork_stubborn_children(60),
    "children, and it lingers": _fork_and_linger,
    "stopped": lambda: os.kill(os.getpid(), signal.SIGSTOP),
}


def _find_leftovers(word: str) -> list[str]:
    found = []
    for folder in Path("/proc").iterdir():
        with suppress(OSError):
            if folder.name.isdecimal() and word.encode() in (folder / "environ").read_bytes():
                found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode())
                os.kill(int(folder.name), signal.SIGKILL)
    return found


def _supervise_hostile_agent(way: str) -> dict[str, Any]:
    import anyio

    from pytest_agentproc.supervisor import Policy, run_once

    word = uuid.uuid4().hex
    policy = Policy(inactivity_timeout=2, kill_grace=0.2, containment="keeper")
    argv = [sys.executable, __file__, way, "agent"]

    async def run() -> str:
        return (await run_once(argv, dialect="claude", policy=policy, env={**os.environ, _WORD: word})).outcome.value

    anyio.run(run)  # what loads late is loaded now
    before, began = len(os.listdir("/proc/self/fd")), time.process_time()  # noqa: PTH208  # counted, not opened
    outcome = anyio.run(run)
    seconds = time.process_time() - began
    kept = len(os.listdir("/proc/self/fd")) - before  # noqa: PTH208  # as above
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return {"outcome": outcome, "seconds": seconds, "megabytes": peak, "kept": kept, "left": _find_leftovers(word)}


if __name__ == "__main__":
    if sys.argv[2:]:
        WAYS[sys.argv[1]]()
    else:
        sys.stdout.write(json.dumps(_supervise_hostile_agent(sys.argv[1])))
