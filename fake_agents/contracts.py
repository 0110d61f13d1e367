"""The interfaces of a player's stage and dialect. Owns the forms alone: nothing here runs."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
    from typing import Any, Protocol

    from pytest_agentproc.fake_agents.program import Program, Step
    from pytest_agentproc.fake_agents.questions import ClientQuestion, ClientQuestions
    from pytest_agentproc.fake_agents.serving.http_server import HttpServer
    from pytest_agentproc.fake_agents.session_files.disk import SessionFile

    EventEncoders = Mapping[str, Callable[[Any, int], bytes]]
    """What a dialect can tell beside text: the name of a step, and the bytes for its value at an instant."""

    TrackWait = tuple[int, Any]
    """The kind of a track's wait, and its value."""

    class Encoder(Protocol):
        """A dialect's bytes for what a program says.

        If `error_is_exit`, an error result makes the exit code 1, or the HTTP status modulo 256, which is
        `error_status` if the script names none, if the encoder has that.
        """

        error_is_exit: bool
        error_stream: str
        events: EventEncoders

        def encode_text(self, text: str, stop: str | None, now: int) -> bytes:
            """Give the bytes of a piece of text."""

        def encode_answer(self, text: str, now: int) -> bytes:
            """Give the bytes of the final text and its completion."""

        def encode_result(self, fields: dict[str, Any], now: int) -> bytes:
            """Give the bytes of a completion."""

    class ToolCallingEncoder(Encoder, Protocol):
        """A dialect whose agent starts servers of its own (claude)."""

        def begin_tool_call(self, number: str) -> Any:
            """Call the tool of a server that the agent has started; `poll_answer` says whether the answer is there."""

        def keep_tool_answer(self, number: str, call: Any) -> bool:
            """Keep the answer of a call for the end of the tool; say whether it is a result."""

    class LastWordsEncoder(Encoder, Protocol):
        """A dialect whose CLI still prints something when a signal ends it (claude)."""

        def encode_last_words(self, what: str, now: int) -> bytes:
            """Give the ends of the tools that run ("tools"), or the end of the turn, too ("turn")."""

    class MessageFileEncoder(Encoder, Protocol):
        """A dialect whose CLI can write its last message into a file (codex).

        `last_message` is the text of the last message of the turn, "" if it had none.
        """

        has_ended_turn: bool
        last_message: str

    class TurnLimitEncoder(Encoder, Protocol):
        """A dialect whose CLI asks its model only so often (claude)."""

        most_turns: int
        has_reached_turn_limit: bool

        def encode_turn_limit(self, now: int) -> bytes:
            """Give the result of a run that would ask its model too often."""

    class SessionEncoder(Encoder, Protocol):
        """A dialect in a mode that hears requests, and asks.

        `code` is the exit code at the end of stdin, `version` the version that the handshake reports. `history` is the
        past of a session that is loaded: `prompt`, `think` or `answer`, each with its text, and `event`, each with its
        value. `modes` are the modes of a session, `options` its options, each with its values; the first is set.
        """

        code: int
        history: Sequence[tuple[str, Any]]
        modes: Sequence[str]
        options: Mapping[str, Sequence[str]]
        version: int
        questions: ClientQuestions

        def handle_request(self, request: Any, now: int) -> tuple[bytes, str]:
            """Take a line of stdin, or a request over HTTP; give the bytes that answer it at once, and a word.

            The word is "", "cancel", "fault", "handshake", or "connect": a handshake that names servers of the client.
            """

        def stop_awaiting_servers(self) -> bytes:
            """Wait no longer for the servers of the client; give no bytes (claude)."""

        def poll_tool_call(self, question: ClientQuestion) -> None:
            """Take the answer of a server that the agent has started, if it has come (claude)."""

        def take_late_answers(self) -> bytes:
            """Give the answers to all requests since the last call, after all immediate answers."""

        def note_stdin_end(self) -> None:
            """Take note that stdin has ended."""

        def encode_handshake_refusal(self, request: bytes, error: str) -> bytes:
            """Give the bytes that refuse a handshake."""

        def has_received_prompt(self, number: int) -> bool:
            """Say whether that prompt of the session, counted from 1, was received."""

        def begin_prompt_turn(self, number: int, now: int) -> bytes:
            """Count later words as part of that prompt; give the bytes that begin its turn."""

        def end_cancelled_turn(self, now: int) -> bytes:
            """Give the bytes that end the turn that was cancelled; none if none was."""

        def encode_cancel_receipt(self) -> bytes:
            """Give the bytes that say that a cancel was heard, and end nothing; none if none was (claude)."""

        def end_interrupted_turn(self, now: int) -> bytes:
            """Give the bytes that end the turn in hand as a signal interrupts it (claude)."""

        def ask_client(self, fields: dict[str, Any], now: int) -> tuple[ClientQuestion, bytes]:
            """Open a question; give the bytes that ask it."""

        def withdraw_question(self, question: ClientQuestion) -> bytes:
            """Take an unanswered question back, in a dialect that can; give the bytes that say so."""

    class ServerEncoder(SessionEncoder, Protocol):
        """A dialect in a mode whose sessions are held over HTTP (opencode serve).

        `host` is where it listens, on the first of `ports` that is free. `notice` is what stdout says before. Its words
        are lines: each goes to all who have asked for one of the paths of `streams`.
        """

        host: str
        ports: Sequence[int]
        notice: bytes
        streams: Sequence[str]

        def encode_listening(self, port: int) -> bytes:
            """Give the line of stdout that a client waits for."""

        def encode_stream_event(self, kind: str) -> bytes:
            """Give an event of the server itself: `connected` or `heartbeat`."""

        def frame_event(self, line: bytes, path: str) -> bytes:
            """Give an event as the stream of that path has it."""

    class SideEffectStage(Protocol):
        """Every side effect that a program can have."""

        def add_note(self, code: str, data: Any) -> None:
            """Keep something for the record."""

        def read_start_facts(self, names: Sequence[str] | None) -> dict[str, Any]:
            """Tell arguments, working directory, and these variables of the environment; None: all."""

        def has_terminal(self) -> bool:
            """Say whether stdin and stdout are a terminal."""

        def can_write_chunk(self, stream: str) -> bool:
            """Say whether a chunk can be written."""

        def write_chunk(self, stream: str, data: bytes) -> bool:
            """Write one chunk; False: there is no reader."""

        def write_file(self, path: str, data: bytes) -> None:
            """Write a file below the working directory; raises `OSError` if it cannot be written there."""

        def write_message_file(self, path: str, data: bytes | None) -> None:
            """Write a file that the arguments name; None: open it only. Raises `OSError` if it cannot be written."""

        def append_session_file(self, path: str, data: bytes) -> None:
            """Write at the end of a session file; a file that cannot be written is given up, as the real CLIs do."""

        def read_stdin(self, size: int) -> bytes | None:
            """Take what stdin has."""

        def close_stream(self, stream: str) -> None:
            """Close a stream."""

        def catch_signal(self, signum: int, exit_code: int | None = None) -> None:
            """Hear a signal; exit with a code at once while the encoder waits for another program."""

        def stop_catching_signal(self, signum: int) -> None:
            """Die of a signal again."""

        def spawn_descendant(self, index: int, fields: dict[str, Any], program: Program) -> None:
            """Start a descendant."""

        def watch_process_end(self, name: str) -> None:
            """Have the end of a child, or of the parent, wake the player."""

        def has_process_ended(self, name: str) -> bool:
            """Say whether that process has ended, or is no child of this one, or no parent."""

        def signal_process(self, name: str, signum: int) -> None:
            """Signal a child that lives, with the whole group if it leads one."""

        def exit_process(self, code: int) -> None:
            """Exit."""

        def die_of_signal(self, signum: int) -> None:
            """Die of a signal."""

    class ServerStage(SideEffectStage, Protocol):
        """A stage of a process that can be a server: of a real one."""

        def open_server(self) -> HttpServer:
            """Make a server, which does not listen yet."""

    class SessionPlayer(Protocol):
        """The part of a player that its session needs."""

        encoder: Encoder
        session_file: SessionFile | None
        stage: SideEffectStage
        tracks: list[Any]
        main: Any
        reactions: dict[tuple[str, int | None], Sequence[Step]]
        now: int
        code: int
        at_eof: bool

        def begin_session_track(self, steps: Iterator[TrackWait], instant: int) -> Any:
            """Add a track that begins at an instant."""

        def count_drip(self) -> None:
            """Count what is printed again and again; raises an error once that is endless."""

        def write_stdout(self, data: bytes) -> Iterator[TrackWait]:
            """Write to stdout, whole."""

        def play_steps(self, steps: Sequence[Step]) -> Generator[TrackWait, None, bool]:
            """Play steps; return whether a wait among them can never end."""
