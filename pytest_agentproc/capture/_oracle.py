"""Tries out which step prints some lines: the fake's own encoder is asked. Owns its state; writes nothing.

A step is right if the encoder, as it stands after all steps before, prints these very lines, but for what varies.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from fake_agents.dialects import encoder
from pytest_agentproc.capture._candidates import candidates
from pytest_agentproc.capture._duplicates import duplicate
from pytest_agentproc.capture._likeness import alike
from pytest_agentproc.capture._quoting import flow
from pytest_agentproc.supervisor import Framing
from pytest_agentproc.supervisor.dialects import SESSIONS, Setting, decoder, talk

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_agentproc.capture._candidates import Candidate

__all__ = ["Oracle", "Step"]

_MOST_LINES = 3000
"""Of longer recordings each line is an event of its own: the encoder's state grows with what it said."""


class Step(NamedTuple):
    """A step, how many lines it prints, and whether a turn ends with it."""

    written: str
    lines: int
    ends_turn: bool = False


class Oracle:
    """Know what the fake would print.

    Args:
        program: a program of the dialect; its steps do not matter.
        lines: all lines that the agent printed, so that their meanings are known.
    """

    def __init__(self, program: dict[str, Any], lines: Sequence[bytes]) -> None:
        self._encoder: Any = encoder(program)
        self._meanings = _meanings(program, lines)
        self._lines = lines
        self._told = ""
        self._tools: set[str] = set()
        self.serves = bool(program["serves"])
        self.at = 0
        """How many of the lines have their steps."""

    def step(self, most: int) -> Step | None:
        """Give the step that prints the next lines, as many as can be, and go on behind them; None: no step does.

        Args:
            most: so many lines may be one step's.
        """
        lines = self._lines[self.at : self.at + most]
        best: tuple[int, Candidate, Any] | None = None
        if len(self._lines) <= _MOST_LINES:
            for candidate in candidates(lines, self._meanings[self.at : self.at + most], self._told):
                if candidate.op == "tool_done" and candidate.value["id"] not in self._tools:
                    continue  # it began as an event that no step tells
                trial = duplicate(self._encoder)
                count = _count(_printed(trial, candidate), lines)
                if count > (best[0] if best else 0):
                    best = count, candidate, trial
        if best is None:
            return self._event(lines[0])
        count, candidate, self._encoder = best
        self.at += count
        if candidate.op == "tool":
            self._tools.add(candidate.value["id"])
        if candidate.op in ("delta", "say", "answer", "result"):
            self._told = self._told + candidate.value if candidate.op == "delta" else ""
        return Step(candidate.written, count, candidate.op in ("answer", "result"))

    def _event(self, line: bytes) -> Step | None:
        """Give the event as it stands, if it is printed so to the byte."""
        value = _object(line)
        if value is None or "event" not in self._encoder.events:
            return None
        try:
            if self._encoder.events["event"](value, 0) != line:
                return None
        except (KeyError, TypeError, ValueError, AttributeError):
            return None
        self.at += 1
        return Step(f"event: {flow(value)}", 1, value.get("type") in ("result", "agent_end"))

    def skip(self) -> None:
        """Go on behind a line that no step prints."""
        self.at += 1

    def expects(self, data: bytes) -> bool:
        """Take what the fake prints by itself now; say whether that is what was printed."""
        count = _count(data, self._lines[self.at :]) if data else 0
        self.at += count
        return count > 0 or not data

    def hear(self, line: bytes) -> tuple[bytes, str]:
        """Take a line of stdin; give what is answered at once, and what it is."""
        reply, event = self._encoder.hear(line, 0)
        return reply + self._encoder.late(), event

    def take(self, number: int) -> bytes | None:
        """Take a prompt in hand, if it is there; give what begins its turn."""
        return self._encoder.take(number, 0) if self._encoder.has(number) else None

    def acknowledge(self) -> bytes:
        """End the turn that was cancelled; give what says so."""
        made: bytes = self._encoder.acknowledge(0)
        return made


def _printed(trial: Any, candidate: Candidate) -> bytes:
    try:
        if candidate.op == "say":
            return bytes(trial.say(*candidate.value, 0))
        if candidate.op in ("answer", "result"):
            return bytes(getattr(trial, candidate.op)(candidate.value, 0))
        return bytes(trial.events[candidate.op](candidate.value, 0)) if candidate.op in trial.events else b""
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, AssertionError):
        return b""


def _count(data: bytes, lines: Sequence[bytes]) -> int:
    """Say how many of the lines these bytes are; 0 if they are others."""
    made = data.splitlines(keepends=True) if b"\r" not in data else data.split(b"\n")
    if not made or len(made) > len(lines):
        return 0
    return len(made) if all(alike(*pair) for pair in zip(made, lines, strict=False)) else 0


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _meanings(program: dict[str, Any], lines: Sequence[bytes]) -> list[list[Any]]:
    dialect, mode = program["dialect"], program["mode"]
    is_session = dialect in SESSIONS and program["serves"]
    decode: Callable[[bytes], Sequence[Any]]
    decode = talk(dialect, mode, Setting()).decode if is_session else decoder(dialect, mode).decode
    found = []
    for line in lines:
        framed = [*Framing().feed(line)] if line.endswith(b"\n") else []
        found.append([meaning for one in framed for meaning in decode(one)])
    return found
