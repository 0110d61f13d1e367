"""A stage that only records what a program does in each grant, without a process. Judges nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_agentproc.fake_agents.player import ScriptPlayer
from tests.unit.encoders import make_encoder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_agentproc.fake_agents.program import Program, Step

TERM, INT, PIPE = 15, 2, 13
FOR_EVER = ("sleep", None)


class ProgramIsOver(Exception):
    """The program is over: nothing after it may happen."""


@dataclass
class RecordingStage:
    """A stage on which everything is written down.

    Args:
        room: how many chunks each stream has room for.
        broken: the streams without a reader.
        stdin: the bytes of stdin, read by read.
        gone: the processes that have ended.
    """

    room: dict[str, int] = field(default_factory=lambda: {"stdout": 99, "stderr": 99})
    broken: set[str] = field(default_factory=set)
    stdin: list[bytes] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)
    done: list[tuple[Any, ...]] = field(default_factory=list)

    def add_note(self, code: str, data: Any) -> None:
        """Keep what was heard and read, asked and answered."""
        if code in "isq":
            self.done.append((code, data))

    def read_start_facts(self, names: Sequence[str] | None) -> dict[str, Any]:
        """Tell of no variable."""
        return {"env": dict.fromkeys(names or ())}

    def can_write_chunk(self, stream: str) -> bool:
        """Say whether there is room, or no reader to make any."""
        return stream in self.broken or self.room[stream] > 0

    def write_chunk(self, stream: str, data: bytes) -> bool:
        """Take a chunk, unless the stream has no reader."""
        if stream in self.broken:
            return False
        self.room[stream] -= 1
        self.done.append((stream, data))
        return True

    def has_terminal(self) -> bool:
        """Have none."""
        return False

    def write_file(self, path: str, data: bytes) -> None:
        """Keep it."""
        self.done.append(("write_file", path, data))

    def write_message_file(self, path: str, data: bytes | None) -> None:
        """Keep it."""
        self.done.append(("write_message_file", path, data))

    def append_session_file(self, path: str, data: bytes) -> None:
        """Keep it."""
        self.done.append(("append_session_file", path, data))

    def read_stdin(self, size: int) -> bytes | None:
        """Give the next read."""
        return self.stdin.pop(0) if self.stdin else None

    def close_stream(self, stream: str) -> None:
        """Keep it."""
        self.done.append(("close", stream))

    def catch_signal(self, signum: int, exit_code: int | None = None) -> None:
        """Keep it."""
        self.done.append(("catch", signum))

    def stop_catching_signal(self, signum: int) -> None:
        """Keep it."""
        self.done.append(("release", signum))

    def spawn_descendant(self, index: int, fields: dict[str, Any], program: Program) -> None:
        """Keep who is to play what."""
        self.done.append(("spawn", index, fields["id"], [step[1:] for step in program["steps"]]))

    def watch_process_end(self, name: str) -> None:
        """Keep it."""
        self.done.append(("watch", name))

    def has_process_ended(self, name: str) -> bool:
        """Say whether the test has said so."""
        return name in self.gone

    def signal_process(self, name: str, signum: int) -> None:
        """Keep it."""
        self.done.append(("kill", name, signum))

    def exit_process(self, code: int) -> None:
        """Keep the code, and end."""
        self.done.append(("exit", code))
        raise ProgramIsOver

    def die_of_signal(self, signum: int) -> None:
        """Keep the signal, and end."""
        self.done.append(("die", signum))
        raise ProgramIsOver


class StagedPlay:
    """A player with its book; steps are (op, arguments...), or there is a whole program."""

    def __init__(self, *steps: tuple[Any, ...], program: Program | None = None, **stage: Any) -> None:
        program = program or {"dialect": "raw", "code": 0, "steps": number_steps(*steps)}
        self.book = RecordingStage(**stage)
        self.player = ScriptPlayer(program, self.book, make_encoder(program))

    def grant(self, now: int, *signals: int, stdin: bytes | None = None) -> list[tuple[Any, ...]]:
        """Let it continue, with bytes on stdin or without; give what it did."""
        self.book.done = []
        if stdin is not None:
            self.book.stdin.append(stdin)
        try:
            self.player.run_until_parked(now, signals, readable=bool(self.book.stdin))
        except ProgramIsOver:
            self.player.tracks = []
        return self.book.done


def number_steps(*steps: tuple[Any, ...]) -> list[Step]:
    """Number steps by line."""
    return [(line, step[0], step[1:]) for line, step in enumerate(steps, 1)]


def say_step(text: str) -> tuple[str, str, None]:
    """Make the step that prints a line."""
    return ("say", text, None)


def expect_output(*texts: str) -> list[tuple[str, bytes]]:
    """Give what is done where lines are printed."""
    return [("stdout", text.encode() + b"\n") for text in texts]


def react_step(*steps: tuple[Any, ...], to: int = TERM) -> tuple[Any, ...]:
    """Make the step that reacts to a signal."""
    return ("when", "signal", to, number_steps(*steps))
