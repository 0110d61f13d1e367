"""Plays a program on a stage, one grant at a time. Owns tracks and reactions; refuses every side effect of its own.

    grant(now) -> the ready tracks run, in order of appearance, repeatedly, until all are parked
    until      -> the instant at which the earliest of them wants to go on (None: not by time alone)
    wants      -> the streams whose readiness would wake one of them

A track is a generator that yields what it waits for: `(TIME, instant)`, `(BUSY, instant)`, `(SPACE, stream)`,
`(LINE, pattern)`, `(EOF, None)`, `(SIGNAL, None)`, `(NEVER, None)` or `(WHEN, function)`. The program ends with its
main track; that of a session (`serves`) lives on until stdin ends.
"""

from __future__ import annotations

from pytest_agentproc.fake_agents.glob import matches
from pytest_agentproc.fake_agents.program import CHUNK, OF_SESSIONS, PIPE, POLITE, READ, count_together, make_descendant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence
    from typing import Any

    from pytest_agentproc.fake_agents.contracts import Caller, Encoder, Stage, Wait
    from pytest_agentproc.fake_agents.program import Program, Step
    from pytest_agentproc.fake_agents.session import Session

    Key = tuple[str, int | None]

TIME, BUSY, SPACE, LINE, EOF, SIGNAL, NEVER, WHEN = range(8)  # the first two end at an instant
_EPIPE = ("epipe", None)

MOST_DRIPS = 25_000
"""So often the drips of one process print: more is an agent that nothing will ever end."""

MOST_WAITS = 100_000
"""So many times one process waits until a stream has room: that is a flood of 6 GiB, or 100 KiB byte by byte."""

MOST_HOPS = 2_000
"""So many times a process is followed by a fork of itself in virtual time."""


class Unplayable(Exception):
    """The script cannot be played; the words say why."""


class Endless(Unplayable):
    """A step of the script went on for so long that nothing will end it."""


class Track:
    """One line of play: a generator and what it waits for."""

    __slots__ = ("key", "kind", "since", "steps", "value")

    def __init__(self, steps: Iterator[Wait], key: Key | None = None) -> None:
        self.steps = steps
        self.key = key
        self.kind = TIME
        self.value: Any = -1
        self.since = -1


class Player:
    """Play a program.

    Args:
        program: see `pytest_agentproc.fake_agents.program`.
        stage: does what the program says; see `pytest_agentproc.fake_agents.contracts`.
        encoder: the dialect's bytes for say, answer and result.
    """

    def __init__(self, program: Program, stage: Stage, encoder: Encoder) -> None:
        self.program = program
        self.stage = stage
        self.encoder = encoder
        self.now = 0
        self.code: int = program["code"]
        self.grants = 0
        self.reading: bool = program.get("reads", True)
        self.at_eof = False
        self.uncut: list[bytes] = []
        self.lines: list[bytes] = []
        self.heard = 0
        self.acting: Key | None = None
        self.reactions: dict[Key, Sequence[Step]] = {}
        self.children = self.line = self.drips = self.waits = 0
        self.most_hops = MOST_HOPS
        """In real time there is no such number: a process without a pause forks itself as often as the machine can."""
        self.session: Session | None = None
        self.main = Track(self._play_main(program["steps"]))
        self.tracks = [self.main]
        if program.get("ignores_signals"):
            for signum in POLITE:
                stage.catch(signum)
        if program.get("serves"):
            self._open_session()

    def _open_session(self) -> None:
        from pytest_agentproc.fake_agents.session import Session  # a one-shot fake does not pay for it

        self.session = Session(self, WHEN)
        self.tracks.insert(0, Track(self.session.answer_requests()))

    def grant(self, now: int, signals: Sequence[int], *, readable: bool) -> None:
        """Run until every track is parked.

        Args:
            now: the instant, in nanoseconds of the run's clock.
            signals: the numbers of signals caught since the last grant, in order.
            readable: whether stdin has something, EOF included.
        """
        self.now = now
        self.grants += 1
        for signum in signals:
            self._handle_signal(signum)
        if readable and self.reading and not self.at_eof:
            self._read_stdin()
        moved = True
        while moved:
            moved = False
            for track in self.list_tracks():
                if self._is_ready(track) and track in self.tracks:
                    moved = True
                    self._advance_track(track)

    def list_tracks(self) -> tuple[Track, ...]:
        """Give the tracks in order of appearance."""
        return tuple(self.tracks)

    @property
    def until(self) -> int | None:
        """The earliest instant that a track waits for, or None."""
        first = None
        for track in self.tracks:
            if track.kind <= BUSY and track.value is not None and (first is None or track.value < first):
                first = track.value
        return first

    @property
    def burns(self) -> bool:
        """Whether a track keeps a core busy meanwhile; in virtual time it only waits."""
        return any(track.kind == BUSY for track in self.tracks)

    @property
    def wants(self) -> tuple[bool, bool, bool]:
        """Which streams would wake a track: (stdin, stdout, stderr)."""
        stdout = stderr = False
        for track in self.tracks:
            if track.kind == SPACE:
                stdout = stdout or track.value == "stdout"
                stderr = stderr or track.value == "stderr"
        return (self.reading and not self.at_eof, stdout, stderr)

    def _is_ready(self, track: Track) -> bool:
        kind = track.kind
        if kind <= BUSY:
            return track.value is not None and bool(track.value <= self.now)
        if kind == SPACE:
            return track.since < self.grants and self.stage.can_write(track.value)
        if kind == LINE:
            return any(matches(track.value, line) for line in self._cut_lines())
        if kind == EOF:
            return self.at_eof
        if kind == WHEN:
            return bool(track.value())
        return kind == SIGNAL and track.since < self.heard

    def _advance_track(self, track: Track) -> None:
        self.acting = track.key
        try:
            track.kind, track.value = next(track.steps)
        except StopIteration:
            self.tracks.remove(track)
            if track is self.main:
                self.stage.exit_process(self.code)
            return
        if track.kind == SPACE:
            track.since = self.grants
        elif track.kind == SIGNAL:
            track.since = self.heard

    def _handle_signal(self, signum: int) -> None:
        self.stage.note("s", signum)
        self.heard += 1
        self._start_reaction(("signal", signum))

    def _read_stdin(self) -> None:
        data = self.stage.read(READ)
        if data is None:
            return
        self.stage.note("i", data)
        self.uncut.append(data)
        self.at_eof = not data
        if self.session is not None and (self.at_eof or b"\n" in data):
            before = len(self.lines)
            for line in self._cut_lines()[before:]:
                if self.session.handle_line(line):
                    self._start_reaction(("cancel", None))
            if self.at_eof:
                self.session.note_eof()
        if self.at_eof:
            self._start_reaction(("eof", None))

    def _cut_lines(self) -> list[bytes]:
        """Give the lines that came; a prompt is cut into them only on request, and few scripts ask."""
        if self.uncut:
            *lines, rest = b"".join(self.uncut).replace(b"\r\n", b"\n").split(b"\n")
            self.uncut = [] if self.at_eof else [rest]
            self.lines += [*lines, rest] if self.at_eof and rest else lines
        return self.lines

    def _start_reaction(self, key: Key) -> bool:
        steps = self.reactions.get(key)
        if steps is None:
            return False
        self.tracks = [track for track in self.tracks if track.key != key]
        self.tracks.append(Track(self.play(steps), key))
        return True

    def _play_main(self, steps: Sequence[Step]) -> Iterator[Wait]:
        yield from self.play(steps)
        if self.session is not None:
            yield from self.session.serve_until_eof()

    def play(self, steps: Sequence[Step]) -> Generator[Wait, None, bool]:
        """Play steps; return whether one waited for what can never come, so that the track is over."""
        for line, op, args in steps:
            self.line = line
            self.stage.note("m", (line, op))
            does = getattr(self.session, "do_" + op) if op in OF_SESSIONS else getattr(self, "_do_" + op)
            try:
                made = does(*args)
                if made is not None and (yield from made):
                    return True
            except Exception as error:  # a step can hold others: the innermost one says where it was
                vars(error).setdefault("step", (line, args[0] if op == "event" else op))
                raise
        return False

    # The action of each op of the program, as a generator if it can wait.

    def _do_say(self, text: str, stop: str | None) -> Iterator[Wait]:
        return self._write("stdout", self.encoder.say(text, stop, self.now))

    def _do_answer(self, text: str) -> Iterator[Wait]:
        return self._write("stdout", self.encoder.answer(text, self.now))

    def _do_result(self, fields: dict[str, Any]) -> Iterator[Wait]:
        if fields["is_error"] and self.encoder.error_is_exit:
            self.code = 1
        stream = self.encoder.error_stream if fields["is_error"] else "stdout"
        return self._write(stream, self.encoder.result(fields, self.now))

    def _do_bytes(self, stream: str, data: bytes) -> Iterator[Wait]:
        return self._write(stream, data)

    def _do_flood(self, stream: str, size: int) -> Iterator[Wait]:
        sizes = range(0, size, CHUNK)
        return self._emit(stream, (b"x" * min(CHUNK, size - start) for start in sizes), count_together(size))

    def _do_drip(self, stream: str, data: bytes | None, text: str, every: int, until: int | None) -> Iterator[Wait]:
        start = self.now
        at = start + every
        while until is None or at <= start + until:
            yield (TIME, at)
            self.drips += 1
            if self.drips > MOST_DRIPS:
                raise Endless(f"it printed {MOST_DRIPS} times, and nothing ended it")
            yield from self._write(stream, self.encoder.say(text, None, self.now) if data is None else data)
            at += every

    def _do_event(self, kind: str, value: Any) -> Iterator[Wait]:
        return self._write("stdout", self.encoder.events[kind](value, self.now))

    def _do_call(self, tool: str, answered: Sequence[Step], refused: Sequence[Step]) -> Generator[Wait, None, bool]:
        """Call the tool of a server that this agent has started."""
        caller: Caller = self.encoder  # type: ignore[assignment]
        call = caller.begin_call(tool)
        yield (WHEN, call.poll)
        is_result = caller.keep_answer(tool, call)
        return (yield from self.play(answered if is_result else refused))

    def _do_tell(self, names: Sequence[str] | None) -> None:
        self.stage.note("g", self.stage.read_start_facts(names))

    def _do_need_terminal(self) -> Iterator[Wait]:
        """End as a CLI does that can only talk to a human."""
        if not self.stage.is_terminal():
            yield from self._write("stderr", b"error: stdin is not a terminal\n")
            self.stage.exit_process(1)

    def _do_burn_cpu(self, duration: int | None) -> Iterator[Wait]:
        yield (BUSY, None if duration is None else self.now + duration)

    def _do_sleep(self, duration: int | None) -> Iterator[Wait]:
        yield (NEVER, None) if duration is None else (TIME, self.now + duration)

    def _do_await_signal(self) -> Iterator[Wait]:
        for signum in POLITE:
            self.stage.catch(signum)
        yield (SIGNAL, None)
        for signum in POLITE:
            if ("signal", signum) not in self.reactions:
                self.stage.stop_catching(signum)

    def _do_await_eof(self) -> Iterator[Wait]:
        yield (EOF, None)

    def _do_await_prompt_text(self, error: bytes, code: int) -> Iterator[Wait]:
        """Wait for a prompt on stdin, as a CLI does that has none among its arguments; without one it ends."""
        yield (EOF, None)
        if not self._cut_lines():
            yield from self._write("stderr", error)
            self.stage.exit_process(code)

    def _do_await_stdin(self, pattern: str) -> Iterator[Wait]:
        while not (found := [index for index, line in enumerate(self._cut_lines()) if matches(pattern, line)]):
            yield (LINE, pattern)
        del self.lines[: found[0] + 1]

    def _do_await_exit(self, name: str) -> Iterator[Wait]:
        self.stage.watch(name)
        yield (WHEN, lambda: self.stage.is_gone(name))

    def _do_stdin(self, what: str) -> None:
        self.reading = what == "read"

    def _do_close(self, stream: str) -> None:
        if stream == "stdin":
            self.reading = False
        self.stage.close(stream)

    def _do_when(self, kind: str, value: int | None, steps: Sequence[Step]) -> None:
        self.reactions[(kind, value)] = steps
        if value is not None:
            self.stage.catch(value)

    def _do_meanwhile(self, steps: Sequence[Step]) -> None:
        self.tracks.append(Track(self.play(steps)))

    def _do_spawn(self, fields: dict[str, Any], steps: Sequence[Step] | None) -> None:
        fields = {**fields, "line": self.line}
        if "every" in fields:
            fields["until"] = None if fields["for"] is None else self.now + fields["for"]
        for _ in range(fields.get("heads", 1)):
            self._spawn_child(fields, steps)

    def _do_hop(self, fields: dict[str, Any]) -> Iterator[Wait]:
        """Live for one interval, and be followed by a fork of itself until the time is over."""
        end, next_hop = fields["until"], self.now + fields["every"]
        yield (TIME, next_hop if end is None else min(next_hop, end))
        if end is None or self.now < end:
            hops = self.program.get("hops", 0) + 1
            if hops > self.most_hops:
                raise Endless(f"it forked itself {self.most_hops} times, and nothing ended it")
            self.program = {**self.program, "hops": hops}
            self._spawn_child({**fields, "how": "new_session"}, None)
        self.stage.exit_process(0)

    def _spawn_child(self, fields: dict[str, Any], steps: Sequence[Step] | None) -> None:
        self.stage.spawn(self.children, fields, make_descendant(self.program, fields, steps))
        self.children += 1

    def _do_kill(self, name: str, signum: int) -> None:
        self.stage.kill(name, signum)

    def _do_exit(self, code: int) -> None:
        self.stage.exit_process(code)

    def _do_die(self, signum: int) -> None:
        self.stage.die(signum)

    def begin_track(self, steps: Iterator[Wait], instant: int) -> Track:
        """Begin a track of the session's own at an instant; give it."""
        track = Track(steps, ("handshake", None))
        track.value = instant
        self.tracks.append(track)
        return track

    def write(self, data: bytes) -> Iterator[Wait]:
        """Write to stdout, as far as there is room; give what is waited for."""
        return self._write("stdout", data)

    def _write(self, stream: str, data: bytes) -> Iterator[Wait]:
        piece = self.program.get("chunk")
        size = piece or CHUNK
        chunks = (data[start : start + size] for start in range(0, len(data), size))
        made = self._emit(stream, chunks, count_together(len(data)) if piece is None else 1)
        return made if self.session is None or stream != "stdout" else self.session.write_exclusively(made)

    def _emit(self, stream: str, chunks: Iterable[bytes], together: int) -> Iterator[Wait]:
        """Write chunks: the first at once if there is room, and then this number together in each further grant."""
        for number, chunk in enumerate(chunks):
            if (number and not number % together) or not self.stage.can_write(stream):
                self.waits += 1
                if self.waits > MOST_WAITS:
                    raise Endless(f"it waited {MOST_WAITS} times for room to write, and nothing ended it")
                yield (SPACE, stream)
            if not self.stage.write(stream, chunk):
                if self.reactions.get(_EPIPE) == []:
                    return  # ignored: the track goes on without its words
                if self.acting == _EPIPE or not self._start_reaction(_EPIPE):
                    self.stage.die(PIPE)
                yield (NEVER, None)
