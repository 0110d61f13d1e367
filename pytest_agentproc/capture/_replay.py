"""Plays a scenario's fake in memory, given what a recorded agent was given. Owns the stage; starts no process.

What comes on stdin comes when as much was printed as had been printed in the recording, or when nobody could go on.
"""

from __future__ import annotations

import contextlib
from collections import deque
from signal import Signals
from typing import TYPE_CHECKING, Any, NamedTuple

from fake_agents.dialects import encoder
from fake_agents.player import Player

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_agentproc.scenario import Bound

__all__ = ["Given", "Replayed", "replay"]

_MOST_GRANTS = 1_000_000


class Given(NamedTuple):
    """One thing that the agent was given.

    Args:
        data: bytes of stdin; empty: its end; a number: a signal.
        behind: how many lines it had printed before.
        at: when, in nanoseconds since the start, if that is known.
    """

    data: bytes | int
    behind: int
    at: int = 0


class _Left(BaseException):
    """Ends the play."""


class Replayed:
    """What the fake did, and the stage on which it does it.

    `out` and `err` are the bytes that it wrote, `events` all that happened, `ended` its exit code, or minus the
    number of a signal; None: it lives.
    """

    def __init__(self) -> None:
        self.out = bytearray()
        self.err = bytearray()
        self.lines = 0
        self.now = 0
        self.events: list[tuple[int, str, dict[str, Any]]] = []
        self.ended: int | None = None
        self.children: list[dict[str, Any]] = []
        self.caught: set[int] = set()
        self.input: deque[bytes] = deque()
        self._gone: set[str] = set()

    def take(self, code: str, data: dict[str, Any]) -> None:
        """Keep an event, as a record has it."""
        self.events.append((self.now, code, {"process": "agent", **data}))

    def meets(self, signum: int) -> str:
        """Say how it meets a signal."""
        return "caught" if signum in self.caught else "default"

    def note(self, code: str, data: Any) -> None:
        """Keep nothing."""

    def given(self, names: Sequence[str] | None) -> dict[str, Any]:
        """Tell nothing."""
        return {"argv": [], "env": dict.fromkeys(names or ()), "cwd": "/", "longest": 0}

    def writable(self, stream: str) -> bool:
        """There is always room."""
        return True

    def write(self, stream: str, data: bytes) -> bool:
        """Keep the bytes."""
        (self.out if stream == "stdout" else self.err).extend(data)
        self.lines += data.count(b"\n") if stream == "stdout" else 0
        self.take("o" if stream == "stdout" else "e", {"bytes": data})
        return True

    def read(self, size: int) -> bytes | None:
        """Give what stdin has."""
        return self.input.popleft() if self.input else None

    def close(self, stream: str) -> None:
        """Nobody is there to see it."""

    def catch(self, signum: int) -> None:
        """Hear a signal."""
        self.caught.add(signum)

    def release(self, signum: int) -> None:
        """Die of it again."""
        self.caught.discard(signum)

    def spawn(self, index: int, fields: dict[str, Any], program: dict[str, Any]) -> None:
        """Note the descendant; it does nothing here."""
        self.children.append(fields)

    def watch(self, name: str) -> None:
        """It is not there."""

    def is_gone(self, name: str) -> bool:
        """Everyone is gone at once."""
        return True

    def kill(self, name: str, signum: int) -> None:
        """Nobody is there."""

    def leave(self, code: int) -> None:
        """Exit."""
        self.ended = code
        self.take("x", {"code": code})
        raise _Left

    def die(self, signum: int) -> None:
        """Die of a signal."""
        self.ended = -signum
        self.take("x", {"signal": Signals(signum).name.removeprefix("SIG")})
        raise _Left


def replay(bound: Bound, argv: Sequence[str], prompt: str, given: Sequence[Given]) -> Replayed:
    """Play the agent of a scenario to its end, or until it waits for ever.

    Args:
        bound: the scenario under a policy.
        argv: the arguments with which the agent was called.
        prompt: the prompt that is in them.
        given: what it was given, in order.
    """
    stage = Replayed()
    program = {**bound.program, "argv": list(argv), "environ": {}, "prompt": prompt}
    player = Player(program, stage, encoder(program))
    coming = deque(given)
    with contextlib.suppress(_Left):
        _play(player, stage, coming)
    return stage


def _play(player: Player, stage: Replayed, coming: deque[Given]) -> None:
    now = 0
    for _ in range(_MOST_GRANTS):
        signals: list[int] = []
        if _is_due(coming, stage, now) and _is_parked(player, now):
            stage.now = now
            signals = _hand_over(coming.popleft(), stage)
        stage.now = now
        player.grant(now, signals, readable=bool(stage.input))
        if not _is_parked(player, now) or _is_due(coming, stage, now):
            continue
        waits = [coming[0].at] if coming and stage.lines >= coming[0].behind else []
        waits += [] if player.until is None else [player.until]
        if waits:
            now = min(waits)
        elif coming:
            coming[0] = coming[0]._replace(behind=0)
        else:
            return


def _is_due(coming: deque[Given], stage: Replayed, now: int) -> bool:
    return bool(coming) and stage.lines >= coming[0].behind and now >= coming[0].at


def _is_parked(player: Player, now: int) -> bool:
    return not any(player.wants[1:]) and (player.until is None or player.until > now)


def _hand_over(given: Given, stage: Replayed) -> list[int]:
    if isinstance(given.data, bytes):
        stage.input.append(given.data)
        stage.take("i", {"bytes": given.data} if given.data else {"eof": True})
        return []
    stage.take("s", {"signal": Signals(given.data).name.removeprefix("SIG"), "met": stage.meets(given.data)})
    if given.data not in stage.caught:
        stage.die(given.data)
    return [given.data]
