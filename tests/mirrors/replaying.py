"""Gives a fake the input of a real CLI, in the recorded order, and watches its actions. Knows no dialect."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from anyio.streams.buffered import BufferedByteReceiveStream

if TYPE_CHECKING:
    from collections.abc import Callable

    from anyio.abc import Process

    from pytest_agentproc.clock import VirtualClock
    from tests.mirrors.recordings import Moment, Recording

__all__ = ["ObservedFake", "describe_shape", "replay"]

_LIMIT = 1 << 24
_PATIENCE = 100_000.0
"""Virtual seconds in which a line that is to come must have come."""

Row = tuple[int, int, int, int]
"""Pid, parent, process group, session."""


@dataclass
class ObservedFake:
    """The actions of a fake: the lines of stdout, the shapes of its tree where the recorder looked, its end."""

    lines: list[Any] = field(default_factory=list)
    shapes: list[Any] = field(default_factory=list)
    code: int | None = None


class _Replay:
    def __init__(self, process: Process, pids: Callable[[], list[int]]) -> None:
        assert process.stdout is not None
        self.process = process
        self.pids = pids
        self.seen = ObservedFake()
        self.out = BufferedByteReceiveStream(process.stdout)
        self.named: dict[int, int] = {}

    async def replay_moments(self, moments: tuple[Moment, ...]) -> ObservedFake:
        """Go through the moments; a moment without a method here needs none."""
        is_closed = not any(moment.kind in ("in", "eof") for moment in moments)
        if is_closed:  # the recorded CLI had no stdin
            await self._on_eof(None)
        for moment in moments:
            does = getattr(self, f"_on_{moment.kind}", None)
            if does is not None:
                await does(moment.value)
        if not any(moment.kind == "end" for moment in moments):
            if not is_closed:
                await self._on_eof(None)
            with anyio.move_on_after(_PATIENCE):
                await self._on_end(None)
        return self.seen

    async def _on_out(self, value: Any) -> None:
        """Take the next line; a fake that has none is asked no more."""
        try:
            if isinstance(value, str) and "\n" in value:
                line = await self._read_rest()
            else:
                with anyio.fail_after(_PATIENCE):
                    line = (await self.out.receive_until(b"\n", _LIMIT)).decode()
        except (anyio.IncompleteRead, TimeoutError):
            return
        self.seen.lines.append(line if isinstance(value, str) else json.loads(line))

    async def _read_rest(self) -> str:
        data = b""
        try:
            while True:
                data += await self.out.receive()
        except anyio.EndOfStream:
            return data.decode().rstrip("\n")

    async def _on_in(self, value: Any) -> None:
        assert self.process.stdin is not None
        await self.process.stdin.send(json.dumps(self._replace_session_id(value)).encode() + b"\n")

    def _replace_session_id(self, value: Any) -> Any:
        """Send a session's message to the session that the fake made: a client repeats the id that it was given."""
        params = value.get("params")
        if not isinstance(params, dict) or "sessionId" not in params:
            return value
        message = [line if isinstance(line, dict) else json.loads(line) for line in self.seen.lines]
        made = [line["result"]["sessionId"] for line in message if "sessionId" in line.get("result", {})]
        return {**value, "params": {**params, "sessionId": made[-1]}}

    async def _on_eof(self, _value: Any) -> None:
        assert self.process.stdin is not None
        await self.process.stdin.aclose()

    async def _on_wait(self, seconds: float) -> None:
        await anyio.sleep(seconds)

    async def _on_signal(self, value: tuple[str, str]) -> None:
        name, to = value
        await anyio.sleep(0.001)
        number = getattr(signal, "SIG" + name)
        if to == "group":
            os.killpg(self.process.pid, number)
        else:
            os.kill(self.process.pid, number)

    async def _on_kill(self, pid: int | None) -> None:
        await anyio.sleep(0.001)
        os.kill(self.process.pid if pid is None else self.named[pid], signal.SIGKILL)

    async def _on_clean(self, _value: Any) -> None:
        """End every process left in its group, as the recorder did."""
        for pid in self.pids():
            os.kill(pid, signal.SIGKILL)

    async def _on_ps(self, rows: list[Row]) -> None:
        await anyio.sleep(0.001)
        own = [row for pid in self.pids() if (row := _read_row(pid)) is not None]
        self.seen.shapes.append(describe_shape(own))
        self.named.update({recorded[0]: mine[0] for recorded, mine in zip(rows, own, strict=False)})

    async def _on_exit(self, _code: int) -> None:
        with anyio.move_on_after(_PATIENCE):
            self.seen.code = await self.process.wait()

    async def _on_end(self, _value: Any) -> None:
        """Take every line until the end of stdout: lines beyond the recording are reported too."""
        rest = await self._read_rest()
        self.seen.lines += rest.splitlines()


def replay(virtual_clock: VirtualClock, argv: list[str], recording: Recording) -> ObservedFake:
    """Start a fake and take it through a recording.

    Args:
        virtual_clock: the clock that the fake, the only one there, obeys.
        argv: the command.
        recording: what to do, and what to wait for.
    """

    def list_living_pids() -> list[int]:
        """Give the pids of the fake's processes that live, in the order of their birth."""
        return [
            participant.pid for participant in virtual_clock.hub.registry.list_in_spawn_order() if participant.is_alive
        ]

    seen: ObservedFake = virtual_clock.run(_replay, argv, recording, list_living_pids)
    return seen


async def _replay(argv: list[str], recording: Recording, pids: Callable[[], list[int]]) -> ObservedFake:
    env = {**os.environ, **recording.env}
    async with await anyio.open_process(argv, env=env, start_new_session=True) as process:
        try:
            return await _Replay(process, pids).replay_moments(recording.moments)
        finally:
            for pid in pids():
                os.kill(pid, signal.SIGKILL)


def _read_row(pid: int) -> Row | None:
    """Ask the kernel for a process; None: it has ended, or is a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    state, parent, group, session = stat.rpartition(")")[2].split()[:4]
    return None if state == "Z" else (pid, int(parent), int(group), int(session))


def describe_shape(rows: list[Row]) -> list[tuple[Any, ...]]:
    """Say of each process which of them is its parent and leads its group and session; 'gone' for none of them."""
    places = {row[0]: index for index, row in enumerate(rows)}
    return [tuple(places.get(pid, "gone") for pid in row[1:]) for row in rows]
