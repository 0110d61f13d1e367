"""Plays a program on a stage, one grant at a time. Owns tracks and reactions; refuses every side effect of its own.

    run_until_parked(now)  -> the ready tracks run, in order of appearance, repeatedly, until all are parked
    earliest_wake_instant  -> the instant at which the earliest of them wants to go on (None: not by time alone)
    wanted_streams         -> the streams whose readiness would wake one of them

A track is a generator that yields what it waits for: the kind of the wait (`WAIT_FOR_INSTANT` and its siblings) and an
instant, a stream, a pattern, a function or None. The program ends with its main track; that of a session (`serves`)
lives on until stdin ends.
"""

from __future__ import annotations

from pytest_agentproc.fake_agents.glob import matches_glob
from pytest_agentproc.fake_agents.program import (
    GROUP_LEADING_SPAWN_WAYS,
    MAX_STDIN_READ_BYTES,
    MAX_WRITE_BYTES,
    POLITE_SIGNALS,
    SESSION_ONLY_OPS,
    SIGKILL,
    SIGPIPE,
    count_chunks_per_grant,
    make_descendant_program,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence
    from typing import Any

    from pytest_agentproc.fake_agents.contracts import (
        Encoder,
        LastWordsEncoder,
        MessageFileEncoder,
        SideEffectStage,
        ToolCallingEncoder,
        TrackWait,
        TurnLimitEncoder,
    )
    from pytest_agentproc.fake_agents.program import Program, Step
    from pytest_agentproc.fake_agents.session import SessionHandler
    from pytest_agentproc.fake_agents.session_files.disk import SessionFile

    ReactionKey = tuple[str, int | None]

(
    WAIT_FOR_INSTANT,
    WAIT_WHILE_BUSY,
    WAIT_FOR_ROOM,
    WAIT_FOR_LINE,
    WAIT_FOR_EOF,
    WAIT_FOR_SIGNAL,
    WAIT_FOREVER,
    WAIT_FOR_CONDITION,
) = range(8)  # the first two end at an instant
_EPIPE_REACTION_KEY = ("epipe", None)
_END_KEY = ("end", None)

MAX_DRIPS_PER_PROCESS = 25_000
"""So often the drips of one process print: more is an agent that nothing will ever end."""

MAX_ROOM_WAITS_PER_PROCESS = 100_000
"""So many times one process waits until a stream has room: that is a flood of 6 GiB, or 100 KiB byte by byte."""

MAX_SELF_FORKS = 2_000
"""So many times a process is followed by a fork of itself in virtual time."""


FAULT_EXIT_CODE = 70
"""The exit code of a fake that failed by itself, or whose session has ended."""


class UnplayableScript(Exception):
    """The script cannot be played; the words say why."""


class EndlessStep(UnplayableScript):
    """A step of the script went on for so long that nothing will end it."""


class ScriptTrack:
    """One line of play: a generator and what it waits for."""

    __slots__ = ("key", "kind", "since", "steps", "value")

    def __init__(self, steps: Iterator[TrackWait], key: ReactionKey | None = None) -> None:
        self.steps = steps
        self.key = key
        self.kind = WAIT_FOR_INSTANT
        self.value: Any = -1
        self.since = -1


class ScriptPlayer:
    """Play a program.

    Args:
        program: see `pytest_agentproc.fake_agents.program`.
        stage: does what the program says; see `pytest_agentproc.fake_agents.contracts`.
        encoder: the dialect's bytes for say, answer and result.
    """

    def __init__(self, program: Program, stage: SideEffectStage, encoder: Encoder) -> None:
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
        self.acting: ReactionKey | None = None
        self.reactions: dict[ReactionKey, Sequence[Step]] = {}
        self.default_reactions: dict[int, tuple[int | None, bool, str]] = program.get("signals", {})
        """What the real CLI does on a signal to which the script does not react."""
        self.open_tools: set[tuple[str, str]] = set()
        self.tool_children: list[str] = []
        """The children that were started while a tool ran, as long as one runs."""
        self.children = self.line = self.drips = self.waits = 0
        self.most_hops = MAX_SELF_FORKS
        """In real time there is no such number: a process without a pause forks itself as often as the machine can."""
        self.message_file: tuple[str, bytes] | None = None
        """The file for the last message of the turn, and what stderr says if there is no message; None: no file."""
        self.held: list[bytes] | None = None
        """What is written on stdout while a step collects it for one write; None: each write goes out."""
        self.session: SessionHandler | None = None
        self.session_file: SessionFile | None = None
        """The file on disk that keeps the session; None: there is none."""
        self.main = ScriptTrack(self._play_main_track(program["steps"]))
        self.tracks = [self.main]
        for signum in POLITE_SIGNALS if program.get("ignores_signals") else ():
            stage.catch_signal(signum)
        for signum, (code, _, _) in self.default_reactions.items():
            stage.catch_signal(signum, code)
        if program.get("kept_lines") is not None:
            from pytest_agentproc.fake_agents.session_files.disk import SessionFile  # few fakes have a home

            self.session_file = SessionFile(program)
        if program.get("serves"):
            self._open_session()

    def _open_session(self) -> None:
        from pytest_agentproc.fake_agents.session import SessionHandler  # a one-shot fake does not pay for it

        if getattr(self.encoder, "is_server", False):
            from pytest_agentproc.fake_agents.serving.server_session import ServerSession as SessionHandler  # the same

            self.reading = False
        self.session = SessionHandler(self, WAIT_FOR_CONDITION)
        self.tracks.insert(0, ScriptTrack(self.session.answer_client_requests()))

    def run_until_parked(self, now: int, signals: Sequence[int], *, readable: bool) -> None:
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
        if self.session is not None and self.session.take_requests():
            self._start_reaction(("cancel", None))
        moved = True
        while moved:
            moved = False
            for track in self.list_tracks():
                if self._is_track_ready(track) and track in self.tracks:
                    moved = True
                    self._advance_track(track)

    def list_tracks(self) -> tuple[ScriptTrack, ...]:
        """Give the tracks in order of appearance."""
        return tuple(self.tracks)

    @property
    def earliest_wake_instant(self) -> int | None:
        """The earliest instant that a track waits for, or None."""
        first = None
        for track in self.tracks:
            if track.kind <= WAIT_WHILE_BUSY and track.value is not None and (first is None or track.value < first):
                first = track.value
        return first

    @property
    def is_burning_cpu(self) -> bool:
        """Whether a track keeps a core busy meanwhile; in virtual time it only waits."""
        return any(track.kind == WAIT_WHILE_BUSY for track in self.tracks)

    @property
    def wanted_streams(self) -> tuple[bool, bool, bool]:
        """Which streams would wake a track: (stdin, stdout, stderr)."""
        stdout = stderr = False
        for track in self.tracks:
            if track.kind == WAIT_FOR_ROOM:
                stdout = stdout or track.value == "stdout"
                stderr = stderr or track.value == "stderr"
        return (self.reading and not self.at_eof, stdout, stderr)

    def _is_track_ready(self, track: ScriptTrack) -> bool:
        kind = track.kind
        if kind <= WAIT_WHILE_BUSY:
            return track.value is not None and bool(track.value <= self.now)
        if kind == WAIT_FOR_ROOM:
            return track.since < self.grants and self.stage.can_write_chunk(track.value)
        if kind == WAIT_FOR_LINE:
            return any(matches_glob(track.value, line) for line in self._split_stdin_lines())
        if kind == WAIT_FOR_EOF:
            return self.at_eof
        if kind == WAIT_FOR_CONDITION:
            return bool(track.value())
        return kind == WAIT_FOR_SIGNAL and track.since < self.heard

    def _advance_track(self, track: ScriptTrack) -> None:
        self.acting = track.key
        try:
            track.kind, track.value = next(track.steps)
        except StopIteration:
            self.tracks.remove(track)
            if track is self.main:
                self.stage.exit_process(self.code)
            return
        if track.kind == WAIT_FOR_ROOM:
            track.since = self.grants
        elif track.kind == WAIT_FOR_SIGNAL:
            track.since = self.heard

    def _handle_signal(self, signum: int) -> None:
        self.stage.add_note("s", signum)
        self.heard += 1
        if self._start_reaction(("signal", signum)) or signum not in self.default_reactions:
            return
        if not any(track.kind == WAIT_FOR_SIGNAL for track in self.tracks):
            self._react_as_real_cli(*self.default_reactions[signum])

    def _react_as_real_cli(self, code: int | None, kills_tools: bool, last_words: str) -> None:  # noqa: FBT001  # data
        """Do what the real CLI does on a signal: nothing (no code), or end; then nothing else is done any more."""
        if code is not None:
            desk = self.tracks[:1] if self.session is not None else []
            self.tracks = [*desk, ScriptTrack(self._end_as_real_cli(code, kills_tools, last_words), _END_KEY)]

    def _end_as_real_cli(self, code: int, kills_tools: bool, last_words: str) -> Iterator[TrackWait]:  # noqa: FBT001
        for name in self.tool_children if kills_tools else ():
            self.stage.signal_process(name, SIGKILL)
        if last_words:
            speaker: LastWordsEncoder = self.encoder  # type: ignore[assignment]
            self.held = None
            yield from self.write_words(speaker.encode_last_words(last_words, self.now))
        self.stage.exit_process(code)

    def _read_stdin(self) -> None:
        data = self.stage.read_stdin(MAX_STDIN_READ_BYTES)
        if data is None:
            return
        self.stage.add_note("i", data)
        self.uncut.append(data)
        self.at_eof = not data
        if self.session is not None and (self.at_eof or b"\n" in data):
            before = len(self.lines)
            for line in self._split_stdin_lines()[before:]:
                if self.session.handle_request(line):
                    self._start_reaction(("cancel", None))
            if self.at_eof:
                self.session.note_stdin_end()
        if self.at_eof:
            self._start_reaction(("eof", None))

    def _split_stdin_lines(self) -> list[bytes]:
        """Give the lines that came; a prompt is cut into them only on request, and few scripts ask."""
        if self.uncut:
            *lines, rest = b"".join(self.uncut).replace(b"\r\n", b"\n").split(b"\n")
            self.uncut = [] if self.at_eof else [rest]
            self.lines += [*lines, rest] if self.at_eof and rest else lines
        return self.lines

    def _start_reaction(self, key: ReactionKey) -> bool:
        steps = self.reactions.get(key)
        if steps is None:
            return False
        self.tracks = [track for track in self.tracks if track.key != key]
        self.tracks.append(ScriptTrack(self.play_steps(steps), key))
        return True

    def _play_main_track(self, steps: Sequence[Step]) -> Iterator[TrackWait]:
        yield from self.play_steps(steps)
        if self.session is not None:
            yield from self.session.serve_until_stdin_ends()

    def play_steps(self, steps: Sequence[Step]) -> Generator[TrackWait, None, bool]:
        """Play steps; return whether one waited for what can never come, so that the track is over."""
        for line, op, args in steps:
            self.line = line
            self.stage.add_note("m", (line, op))
            does = (
                getattr(self.session, f"play_{op}_step")
                if op in SESSION_ONLY_OPS
                else getattr(self, f"_play_{op}_step")
            )
            try:
                actions = does(*args)
                if actions is not None and (yield from actions):
                    return True
            except Exception as error:  # a step can hold others: the innermost one says where it was
                vars(error).setdefault("step", (line, args[0] if op == "event" else op))
                raise
        return False

    # The action of each op of the program, as a generator if it can wait.

    def _play_say_step(self, text: str, stop: str | None) -> Iterator[TrackWait]:
        return self.write_words(self.encoder.encode_text(text, stop, self.now))

    def _play_answer_step(self, text: str) -> Iterator[TrackWait]:
        yield from self.write_words(self.encoder.encode_answer(text, self.now))
        yield from self._save_last_message()

    def _play_result_step(self, fields: dict[str, Any]) -> Iterator[TrackWait]:
        if fields["is_error"] and self.encoder.error_is_exit:
            status = getattr(self.encoder, "error_status", None)
            self.code = 1 if status is None else fields.get("http_status", status) % 256
        data = self.encoder.encode_result(fields, self.now)
        is_on_stderr = fields["is_error"] and self.encoder.error_stream == "stderr"
        yield from self._write_stream("stderr", data) if is_on_stderr else self.write_words(data)
        yield from self._save_last_message()

    def _play_bytes_step(self, stream: str, data: bytes) -> Iterator[TrackWait]:
        return self._write_stream(stream, data)

    def _play_flood_step(self, stream: str, size: int) -> Iterator[TrackWait]:
        sizes = range(0, size, MAX_WRITE_BYTES)
        return self._write_chunks(
            stream, (b"x" * min(MAX_WRITE_BYTES, size - start) for start in sizes), count_chunks_per_grant(size)
        )

    def _play_drip_step(
        self, stream: str, data: bytes | None, text: str, every: int, until: int | None
    ) -> Iterator[TrackWait]:
        start = self.now
        at = start + every
        while until is None or at <= start + until:
            yield (WAIT_FOR_INSTANT, at)
            self.count_drip()
            yield from (
                self.write_words(self.encoder.encode_text(text, None, self.now))
                if data is None
                else self._write_stream(stream, data)
            )
            at += every

    def count_drip(self) -> None:
        """Count what is printed again and again."""
        self.drips += 1
        if self.drips > MAX_DRIPS_PER_PROCESS:
            raise EndlessStep(f"it printed {MAX_DRIPS_PER_PROCESS} times, and nothing ended it")

    def _play_event_step(self, kind: str, value: Any) -> Iterator[TrackWait]:
        self._note_tool(kind, value)
        yield from self.write_words(self.encoder.events[kind](value, self.now))
        yield from self._save_last_message()
        if kind == "tool_done" and getattr(self.encoder, "has_reached_turn_limit", False):
            limited: TurnLimitEncoder = self.encoder  # type: ignore[assignment]
            yield from self.write_words(limited.encode_turn_limit(self.now))
            self.stage.exit_process(1)

    def _note_tool(self, kind: str, value: Any) -> None:
        """Keep the tools and the background commands that run: what is started meanwhile belongs to them."""
        if kind in ("tool", "task"):
            self.open_tools.add((kind, value["id"]))
        elif kind in ("tool_done", "task_done"):
            self.open_tools.discard((kind.removesuffix("_done"), value["id"]))
            self.tool_children = self.tool_children if self.open_tools else []

    def _play_call_step(
        self, tool: str, answered: Sequence[Step], refused: Sequence[Step]
    ) -> Generator[TrackWait, None, bool]:
        """Call the tool of a server that this agent has started."""
        caller: ToolCallingEncoder = self.encoder  # type: ignore[assignment]
        call = caller.begin_tool_call(tool)
        yield (WAIT_FOR_CONDITION, call.poll_answer)
        is_result = caller.keep_tool_answer(tool, call)
        return (yield from self.play_steps(answered if is_result else refused))

    def _play_report_start_step(self, names: Sequence[str] | None) -> None:
        self.stage.add_note("g", self.stage.read_start_facts(names))

    def _play_report_unobeyed_step(self, options: Sequence[str]) -> None:
        self.stage.add_note("q", {"unobeyed": options, "dialect": self.program["dialect"]})

    def _play_need_terminal_step(self) -> Iterator[TrackWait]:
        """End as a CLI does that can only talk to a human."""
        if not self.stage.has_terminal():
            yield from self._write_stream("stderr", b"error: stdin is not a terminal\n")
            self.stage.exit_process(1)

    def _play_burn_cpu_step(self, duration: int | None) -> Iterator[TrackWait]:
        yield (WAIT_WHILE_BUSY, None if duration is None else self.now + duration)

    def _play_sleep_step(self, duration: int | None) -> Iterator[TrackWait]:
        yield (WAIT_FOREVER, None) if duration is None else (WAIT_FOR_INSTANT, self.now + duration)

    def _play_await_signal_step(self) -> Iterator[TrackWait]:
        for signum in POLITE_SIGNALS:
            self.stage.catch_signal(signum)
        yield (WAIT_FOR_SIGNAL, None)
        for signum in POLITE_SIGNALS:
            if ("signal", signum) in self.reactions:
                continue
            if signum in self.default_reactions:
                self.stage.catch_signal(signum, self.default_reactions[signum][0])
            else:
                self.stage.stop_catching_signal(signum)

    def _play_await_eof_step(self) -> Iterator[TrackWait]:
        yield (WAIT_FOR_EOF, None)

    def _play_read_stdin_step(
        self, patience: int | None, notice: bytes, warning: bytes, error: bytes, code: int | None
    ) -> Iterator[TrackWait]:
        """Read stdin to its end before the start, as a CLI does; one without a prompt ends (`code`) if it is empty."""
        yield from self._write_stream("stderr", notice)
        if patience is not None:
            deadline = self.now + patience
            timer = ScriptTrack(iter(()))
            timer.value = deadline
            self.tracks.append(timer)
            yield (WAIT_FOR_CONDITION, lambda: self.at_eof or self._has_stdin_data() or self.now >= deadline)
            if timer in self.tracks:
                self.tracks.remove(timer)
        if patience is None or self._has_stdin_data():
            yield (WAIT_FOR_EOF, None)
        elif not self.at_eof:
            yield from self._write_stream("stderr", warning)
        if code is not None and not self._has_stdin_data():
            yield from self._write_stream("stderr", error)
            self.stage.exit_process(code)

    def _has_stdin_data(self) -> bool:
        return bool(self.lines) or any(self.uncut)

    def _play_await_stdin_step(self, pattern: str) -> Iterator[TrackWait]:
        while not (
            found := [index for index, line in enumerate(self._split_stdin_lines()) if matches_glob(pattern, line)]
        ):
            yield (WAIT_FOR_LINE, pattern)
        del self.lines[: found[0] + 1]

    def _play_await_exit_step(self, name: str) -> Iterator[TrackWait]:
        self.stage.watch_process_end(name)
        yield (WAIT_FOR_CONDITION, lambda: self.stage.has_process_ended(name))

    def _play_stdin_step(self, what: str) -> None:
        self.reading = what == "read"

    def _play_close_step(self, stream: str) -> None:
        if stream == "stdin":
            self.reading = False
        self.stage.close_stream(stream)

    def _play_write_file_step(self, path: str, data: bytes) -> None:
        try:
            self.stage.write_file(path, data)
        except OSError as error:
            raise UnplayableScript(f"{path} cannot be written in the folder of the agent: {error}") from None

    def _play_open_message_file_step(self, path: str, error: str, warning: str) -> Iterator[TrackWait]:
        """Open the file for the last message, as a CLI does before its turn; end if it cannot be written."""
        try:
            self.stage.write_message_file(path, None)
        except OSError as fault:
            words = error.replace("{reason}", f"{fault.strerror} (os error {fault.errno})")
            yield from self._write_stream("stderr", f"{words}\n".encode())
            self.stage.exit_process(1)
        self.message_file = path, f"{warning}\n".encode()

    def _save_last_message(self) -> Iterator[TrackWait]:
        """Write the last message into its file if the turn has just ended well."""
        if self.message_file is None:
            return
        path, warning = self.message_file
        writer: MessageFileEncoder = self.encoder  # type: ignore[assignment]
        if not writer.has_ended_turn:
            return
        self.stage.write_message_file(path, writer.last_message.encode())
        if not writer.last_message:
            yield from self._write_stream("stderr", warning)

    def _play_when_step(self, kind: str, value: int | None, steps: Sequence[Step]) -> None:
        self.reactions[(kind, value)] = steps
        if value is not None:
            self.stage.catch_signal(value)

    def _play_meanwhile_step(self, steps: Sequence[Step]) -> None:
        self.tracks.append(ScriptTrack(self.play_steps(steps)))

    def _play_one_write_step(self, steps: Sequence[Step]) -> Iterator[TrackWait]:
        """Write at once what steps print that take no time."""
        self.held = []
        for _ in ScriptPlayer.play_steps(self, steps):  # a subclass may pause between steps, which are one here
            raise AssertionError("a step of one write waits")
        data, self.held = b"".join(self.held), None
        return self._write_stream("stdout", data)

    def _play_spawn_step(self, fields: dict[str, Any], steps: Sequence[Step] | None) -> None:
        fields = {**fields, "line": self.line}
        if "every" in fields:
            fields["until"] = None if fields["for"] is None else self.now + fields["for"]
        for _ in range(fields.get("heads", 1)):
            self._spawn_child(fields, steps)

    def _play_refork_step(self, fields: dict[str, Any]) -> Iterator[TrackWait]:
        """Live for one interval, and be followed by a fork of itself until the time is over."""
        end, next_hop = fields["until"], self.now + fields["every"]
        yield (WAIT_FOR_INSTANT, next_hop if end is None else min(next_hop, end))
        if end is None or self.now < end:
            hops = self.program.get("hops", 0) + 1
            if hops > self.most_hops:
                raise EndlessStep(f"it forked itself {self.most_hops} times, and nothing ended it")
            self.program = {**self.program, "hops": hops}
            self._spawn_child({**fields, "how": "new_session"}, None)
        self.stage.exit_process(0)

    def _spawn_child(self, fields: dict[str, Any], steps: Sequence[Step] | None) -> None:
        self.stage.spawn_descendant(self.children, fields, make_descendant_program(self.program, fields, steps))
        self.children += 1
        if self.open_tools and fields["how"] in ("same_group", *GROUP_LEADING_SPAWN_WAYS):
            self.tool_children.append(fields["id"])

    def _play_kill_step(self, name: str, signum: int) -> None:
        self.stage.signal_process(name, signum)

    def _play_exit_step(self, code: int) -> None:
        self.stage.exit_process(code)

    def _play_die_step(self, signum: int) -> None:
        self.stage.die_of_signal(signum)

    def begin_session_track(self, steps: Iterator[TrackWait], instant: int) -> ScriptTrack:
        """Begin a track of the session's own at an instant; give it."""
        track = ScriptTrack(steps, ("handshake", None))
        track.value = instant
        self.tracks.append(track)
        return track

    def write_words(self, data: bytes) -> Iterator[TrackWait]:
        """Write what the encoder gave where its client reads it."""
        return self._write_stream("stdout", data) if self.session is None else self.session.write_words(data)

    def write_stdout(self, data: bytes) -> Iterator[TrackWait]:
        """Write to stdout, as far as there is room; give what is waited for."""
        return self._write_stream("stdout", data)

    def _save_session_file(self) -> None:
        """Write into the session file what the encoder has told since the last call."""
        if self.session_file is not None:
            for path, data in self.session_file.encode_new_lines(self.now, self._read_whole_stdin):
                self.stage.append_session_file(path, data)

    def _read_whole_stdin(self) -> str:
        text = b"\n".join([*self.lines, *self.uncut]).decode("utf-8", "replace").strip()
        return text or str(self.program.get("prompt", ""))

    def _write_stream(self, stream: str, data: bytes) -> Iterator[TrackWait]:
        self._save_session_file()
        if self.held is not None and stream == "stdout":
            self.held.append(data)
            return iter(())
        piece = self.program.get("chunk")
        size = piece or MAX_WRITE_BYTES
        chunks = (data[start : start + size] for start in range(0, len(data), size))
        writes = self._write_chunks(stream, chunks, count_chunks_per_grant(len(data)) if piece is None else 1)
        return writes if self.session is None or stream != "stdout" else self.session.write_lines_exclusively(writes)

    def _write_chunks(self, stream: str, chunks: Iterable[bytes], together: int) -> Iterator[TrackWait]:
        """Write chunks: the first at once if there is room, and then this number together in each further grant."""
        for number, chunk in enumerate(chunks):
            if (number and not number % together) or not self.stage.can_write_chunk(stream):
                self.waits += 1
                if self.waits > MAX_ROOM_WAITS_PER_PROCESS:
                    raise EndlessStep(
                        f"it waited {MAX_ROOM_WAITS_PER_PROCESS} times for room to write, and nothing ended it"
                    )
                yield (WAIT_FOR_ROOM, stream)
            if not self.stage.write_chunk(stream, chunk):
                if self.reactions.get(_EPIPE_REACTION_KEY) == []:
                    return  # ignored: the track goes on without its words
                if self.acting == _EPIPE_REACTION_KEY or not self._start_reaction(_EPIPE_REACTION_KEY):
                    self.stage.die_of_signal(SIGPIPE)
                yield (WAIT_FOREVER, None)
