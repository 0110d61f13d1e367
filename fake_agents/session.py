"""The session's side of a player: what is heard, who waits for it, and whose line is being written.

Owns the desk, the track that answers requests before any other track moves; knows no wire format.
"""

from __future__ import annotations

from pytest_agentproc.fake_agents.questions import ANSWER_ALLOW, ANSWER_DENY, ANSWER_GIVEN, ANSWER_REFUSED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence
    from typing import Any

    from pytest_agentproc.fake_agents.contracts import SessionEncoder, SessionPlayer, TrackWait
    from pytest_agentproc.fake_agents.program import Step
    from pytest_agentproc.fake_agents.questions import ClientQuestion

    WaitCondition = Callable[[], bool]


_EOF_REACTION_KEY = ("eof", None)
_SERVER_CONNECT_LIMIT_NS = 60_000_000_000
"""So long a claude waits for the servers of its client: its first prompt has no turn before."""
_IMMEDIATE_HANDSHAKE = ("after", 0)
"""How a handshake goes that the script says nothing about."""


class SessionHandler:
    """The state of a session's player beside its tracks.

    Args:
        player: the player; its dialect must be a `SessionEncoder`.
        when: the kind of wait that ends as soon as a function says so.
    """

    def __init__(self, player: SessionPlayer, when: int) -> None:
        self._player = player
        self._host: SessionEncoder = player.encoder  # type: ignore[assignment]
        self._when = when
        self._replies: list[bytes] = []
        self._has_heard = False
        self._cancels = self._awaited = 0
        self._writer: Iterator[TrackWait] | None = None
        self._rest: Iterator[TrackWait] | None = None
        """The rest of a line whose track was cut within it."""
        self._handshake: tuple[str, Any] = _IMMEDIATE_HANDSHAKE
        self._is_shaken = False
        """Whether the client asked for a handshake, or it is noted that it began without one."""

    def play_handshake_step(self, kind: str, value: Any) -> None:
        """Say how handshakes go from now on: never, after a time, refused, or what they tell."""
        if kind in ("history", "modes", "options"):
            setattr(self._host, kind, value)
            return
        if kind == "version":
            self._host.version = value
            kind, value = _IMMEDIATE_HANDSHAKE
        self._handshake = (kind, value)

    def write_words(self, data: bytes) -> Iterator[TrackWait]:
        """Write what the encoder gave where the client reads it."""
        return self._player.write_stdout(data)

    def take_requests(self) -> bool:
        """Take what has come beside stdin; return whether it cancels the turn."""
        return False

    def handle_request(self, request: Any) -> bool:
        """Take one line of stdin, or one request over HTTP; return whether it cancels the turn."""
        if not request:
            return False
        self._has_heard = True
        if self._player.session_file is not None:
            self._player.session_file.note_request(request, self._player.now)
        reply, event = self._host.handle_request(request, self._player.now)
        if event == "fault":
            self._player.stage.write_chunk("stderr", reply)
            self._player.stage.exit_process(1)
        elif event in ("handshake", "connect"):
            self._is_shaken = True
            self._answer_handshake(request, reply)
            if event == "connect":
                is_withheld = self._handshake[0] in ("never", "error")
                self._player.begin_session_track(
                    self._stop_awaiting_servers(), self._player.now + (0 if is_withheld else _SERVER_CONNECT_LIMIT_NS)
                )
        elif reply and self._handshake[0] != "never":  # who does not wait for the handshake gets no answer either
            self._replies.append(reply)
        self._cancels += event == "cancel"
        self._note_settled_questions()
        self._note_missing_handshake()
        return event == "cancel"

    def note_stdin_end(self) -> None:
        """Take the end of stdin."""
        self._host.note_stdin_end()
        self._note_settled_questions()

    def _note_settled_questions(self) -> None:
        for question in self._host.questions.take_newly_settled():
            self._player.stage.add_note("q", question.answered_note)

    def _note_missing_handshake(self) -> None:
        """Note that a prompt came first, if the script withholds a handshake that was not requested."""
        if self._handshake != _IMMEDIATE_HANDSHAKE and not self._is_shaken and self._host.has_received_prompt(1):
            self._is_shaken = True
            self._player.stage.add_note("q", {"begun_without": "handshake"})

    def _answer_handshake(self, request: bytes, reply: bytes) -> None:
        kind, value = self._handshake
        if kind == "error":
            self._replies.append(self._host.encode_handshake_refusal(request, value))
        elif kind == "after" and value == 0:
            self._replies.append(reply)
        elif kind == "after":
            self._player.begin_session_track(self.write_words(reply), self._player.now + value)

    def _stop_awaiting_servers(self) -> Iterator[TrackWait]:
        yield from self.write_words(self._host.stop_awaiting_servers())

    def answer_client_requests(self) -> Iterator[TrackWait]:
        """Answer the requests that the dialect answers by itself; end the lines that no other track ends, for ever."""
        while True:
            yield self._wait_for_condition(lambda: self._has_heard or self._rest is not None)
            if self._rest is not None:
                yield from self._finish_cut_line()
                continue
            reply, self._replies, self._has_heard = b"".join(self._replies) + self._host.take_late_answers(), [], False
            yield from self.write_words(reply)

    def serve_until_stdin_ends(self) -> Iterator[TrackWait]:
        """Live on until stdin ends, unless the script reacts to that; of its tracks the reactions stay."""
        player = self._player
        desk = player.tracks[0]
        player.tracks = [track for track in player.tracks if track in (desk, player.main) or track.key is not None]
        yield self._wait_for_condition(self._has_stdin_ended_for_good)
        player.code = self._host.code

    def play_await_prompt_step(self, number: int) -> Generator[TrackWait, None, bool]:
        """Wait for a prompt and take it in hand; return whether it can never come."""
        yield self._wait_for_condition(
            lambda: self._host.has_received_prompt(number) or self._has_stdin_ended_for_good()
        )
        if not self._host.has_received_prompt(number):
            return True
        yield from self.write_words(self._host.begin_prompt_turn(number, self._player.now))
        return False

    def play_await_cancel_step(self) -> Generator[TrackWait, None, bool]:
        """Wait for a cancel that was not waited for; return whether it can never come."""
        yield self._wait_for_condition(lambda: self._cancels > self._awaited or self._has_stdin_ended_for_good())
        if self._cancels == self._awaited:
            return True
        self._awaited += 1
        return False

    def play_receipt_step(self) -> Iterator[TrackWait]:
        """Say that the cancel was heard."""
        return self.write_words(self._host.encode_cancel_receipt())

    def play_acknowledge_step(self) -> Iterator[TrackWait]:
        """End the cancelled turn."""
        return self.write_words(self._host.end_cancelled_turn(self._player.now))

    def play_interrupted_step(self) -> Iterator[TrackWait]:
        """End the turn in hand."""
        return self.write_words(self._host.end_interrupted_turn(self._player.now))

    def play_ask_step(
        self, fields: dict[str, Any], allowed: Sequence[Step], denied: Sequence[Step], unanswered: Sequence[Step]
    ) -> Generator[TrackWait, None, bool]:
        """Ask, wait for the answer and play its branch; return whether no answer, or nothing in it, can ever come."""
        question, data = self._host.ask_client(fields, self._player.now)
        yield from self.write_words(data)
        self._player.stage.add_note("q", question.asked_note)
        limit = fields.get("for")
        patience = (
            None
            if limit is None
            else self._player.begin_session_track(self._withdraw_question(question), self._player.now + limit)
        )
        yield self._wait_for_condition(lambda: self._is_question_settled(question))
        self._note_settled_questions()
        if patience in self._player.tracks and not question.given_up:
            self._player.tracks.remove(patience)  # one that gives up writes its line to the end
        if question.dismissed:
            self._host.questions.settle_question(question, ANSWER_DENY)
            self._note_settled_questions()
        branches = {ANSWER_ALLOW: allowed, ANSWER_GIVEN: allowed, ANSWER_DENY: denied, ANSWER_REFUSED: denied}
        steps = unanswered if question.given_up else branches.get(question.answer, ())
        return not question.answer or (yield from self._player.play_steps(steps))

    def _is_question_settled(self, question: ClientQuestion) -> bool:
        """Say whether it is answered, or cannot be: the end of stdin leaves only the answers of the agent's servers."""
        if question.call is None:
            return bool(question.answer) or self._has_stdin_ended_for_good()
        if not question.answer:
            self._host.poll_tool_call(question)
        return bool(question.answer)

    def _withdraw_question(self, question: ClientQuestion) -> Iterator[TrackWait]:
        """Take a question back that was not answered in time."""
        data = self._host.withdraw_question(question)
        self._note_settled_questions()
        yield from self.write_words(data)

    def write_lines_exclusively(self, writing: Iterator[TrackWait]) -> Iterator[TrackWait]:
        """Write whole lines: while one track waits for room, no other begins."""
        while self._writer is not None:
            yield self._wait_for_condition(lambda: self._writer is None or self._rest is not None)
            if self._rest is not None:
                yield from self._finish_cut_line()
        yield from self._write_whole_line(writing)

    def _finish_cut_line(self) -> Iterator[TrackWait]:
        assert self._rest is not None
        rest, self._rest = self._rest, None
        return self._write_whole_line(rest)

    def _write_whole_line(self, writing: Iterator[TrackWait]) -> Iterator[TrackWait]:
        """Write to the end of the line: if the track is cut before, another one does."""
        self._writer = writing
        try:
            for wait in writing:  # noqa: UP028  # `yield from` would end `writing` with its track
                yield wait
        except GeneratorExit:
            self._rest = writing
            raise
        self._writer = None

    def _has_stdin_ended_for_good(self) -> bool:
        return self._player.at_eof and _EOF_REACTION_KEY not in self._player.reactions

    def _wait_for_condition(self, opinion: WaitCondition) -> tuple[int, Any]:
        return (self._when, opinion)
