"""Turns of a session: one turn's values, and the queue with one in flight. Pure; knows no process.

    queued --delivered--> in flight --its end, a timeout, the agent's end--> concluded
    in flight --cancel--> unacknowledged --its end, and its answer in a dialect that gives one--> acknowledged

Nothing is delivered while a turn is in flight (P9) or a cancel is unacknowledged (P3).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from pytest_agentproc.supervisor._ending import explain_silence
from pytest_agentproc.supervisor._events import TurnResult
from pytest_agentproc.supervisor._questions import OpenQuestions
from pytest_agentproc.supervisor._streams import Transcript
from pytest_agentproc.supervisor.dialects import (
    BACKGROUND_TURN_MARK,
    CancelAnswered,
    Finished,
    Message,
    Piece,
    PromptDeclined,
    Question,
    QuestionWithdrawn,
    TurnProgress,
)
from pytest_agentproc.vocabulary import Outcome, add_limit, compute_exit_code

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_agentproc.supervisor._router import TurnRouter
    from pytest_agentproc.supervisor._tools import ToolTracker
    from pytest_agentproc.supervisor._watchdog import TurnWatchdog
    from pytest_agentproc.supervisor.dialects import HistoryReplayed, SessionProtocol, TurnMeaning, WorkMeaning
    from pytest_agentproc.vocabulary import Policy


_MAX_UNFINISHED_MESSAGE_CHARS = 16 * 1024**2
"""So many characters of a message that comes in pieces are kept."""


class TurnAnswer:
    """Collect what the agent says in one turn, a prompt's or its own.

    `begun_at` is the instant of its first event; None before that.

    Args:
        limit: how many bytes of the transcript to keep, the last ones; None: all.
    """

    def __init__(self, limit: int | None = None) -> None:
        self.text: str | None = None
        self.stop_reason: str | None = None
        self.model: str | None = None
        self.usage: dict[str, Any] | None = None
        self.begun_at: int | None = None
        self._messages = Transcript(limit)
        self._id = ""
        self._blocks: list[str] = []
        self._pieces: list[str] = []
        self._size = 0
        self._is_torn = False

    @property
    def transcript(self) -> str:
        """All messages that have ended, each on a line of its own, as far back as the limit allows."""
        return str(self._messages)

    @property
    def is_cut(self) -> bool:
        """Whether the transcript is not whole."""
        return self._messages.is_cut or self._is_torn

    @property
    def has_words(self) -> bool:
        """Whether anything was said."""
        return self.text is not None or bool(self._blocks or self._pieces)

    def note_event(self, now: int) -> None:
        """Take note of an event of the turn; the first is its beginning."""
        if self.begun_at is None:
            self.begun_at = now

    def add_progress(self, progress: TurnProgress) -> str:
        """Take progress: what is whole replaces its pieces.

        Returns:
            what `end_message` returns, if the progress ends a message that came in pieces; else "".
        """
        if isinstance(progress, Message):
            self._add_whole_message(progress)
        elif progress.ends_message:
            return self.end_message()
        elif isinstance(progress, Piece):
            self._add_piece(self._pieces, progress.text)
        return ""

    def _add_whole_message(self, message: Message) -> None:
        self.stop_reason = message.stop_reason or self.stop_reason
        self.model = message.model or self.model
        self.usage = message.usage or self.usage
        self._pieces = []
        if not message.text:
            self.text = "" if message.ends_message else self.text  # an empty answer is an answer: older words are none
            return
        if not message.id or message.id != self._id:
            self.end_message()
        self._id = message.id
        self._add_piece(self._blocks, message.text)
        if not message.id:
            self.end_message()

    def _add_piece(self, parts: list[str], text: str) -> None:
        if text and self._size < _MAX_UNFINISHED_MESSAGE_CHARS:
            parts.append(text)
            self._size += len(text)
        else:
            self._is_torn = self._is_torn or bool(text)

    def end_message(self) -> str:
        """End the message under way: its blocks, and the pieces of a block that did not come.

        Returns:
            the text of these pieces: no whole block has repeated it.
        """
        pieces = "".join(self._pieces)
        text = "".join([*self._blocks, pieces])
        if text:
            self.text = text
            self._messages.add(text)
        self._id, self._blocks, self._pieces, self._size = "", [], [], 0
        return pieces

    def note_end(self, ended: Finished) -> None:
        """Take the end of a turn."""
        self.end_message()
        self.text = self.text if ended.text is None else ended.text
        self.stop_reason = ended.stop_reason or self.stop_reason
        self.model = ended.model or self.model
        self.usage = ended.usage or self.usage

    def build_result(self, ended: Finished, now: int) -> TurnResult:
        """Take the end of a background turn, and sum it up."""
        self.note_end(ended)
        outcome = Outcome.COMPLETED if ended.ok else Outcome.FAILED
        elapsed = 0 if self.begun_at is None else now - self.begun_at
        values = (self.text, self.stop_reason, self.model, self.usage, ended.error, elapsed, self.transcript)
        return TurnResult(outcome, 0 if ended.ok else 1, *values)


class TurnRecord:
    """One prompt on its way.

    `cause` is what the turn ends as because of a cancel, from the instant at which the cancel went out;
    `cancels` went out, and `answers` of their own came to them.

    Args:
        number: its place in the session, from 1.
        prompt: what is asked.
        limit: how many bytes of its transcript to keep; None: all.
    """

    def __init__(self, number: int, prompt: str, limit: int | None = None) -> None:
        self.number = number
        self.prompt = prompt
        self.answered = TurnAnswer(limit)
        self.delivered_at: int | None = None
        self.size = self.sent_to = 0
        self.outcome: Outcome | None = None
        self.outcome_at: int | None = None
        self.error = ""
        self.last_error = ""
        self.cause: Outcome | None = None
        self.has_begun = False
        self.has_ended = False
        self.cancels = 0
        self.answers = 0

    def end_once(self, outcome: Outcome, now: int, error: str = "") -> None:
        """End it, once."""
        self.answered.end_message()
        self.outcome, self.outcome_at, self.error = outcome, now, error

    def build_result(self, status: int | None, *, forced: bool, executable: bool) -> TurnResult:
        """Sum it up; the arguments are those of `exit_code`."""
        outcome, answered = self.outcome, self.answered
        assert outcome is not None
        assert self.outcome_at is not None
        return TurnResult(
            outcome=outcome,
            exit_code=compute_exit_code(outcome, status, forced=forced, executable=executable),
            text=answered.text,
            stop_reason=answered.stop_reason,
            model=answered.model,
            usage=answered.usage,
            error=self.error,
            elapsed=0 if self.delivered_at is None else self.outcome_at - self.delivered_at,
            transcript=answered.transcript,
        )


class OpenTurns:
    """Hold every prompt that has no outcome yet. The caller of a method writes the returned bytes to the agent.

    Args:
        policy: its `cancel_grace`, and the limits of what it holds.
        watchdog: the watchdog of the turn in flight.
        report_event: reports to the viewers: called with the kind, turn and text of a `SessionEvent`, and its other
            fields.
        has_handler: whether the caller answers questions; else they are denied at once (P7).
    """

    def __init__(
        self, policy: Policy, watchdog: TurnWatchdog, report_event: Callable[..., None], *, has_handler: bool
    ) -> None:
        self.queue: deque[TurnRecord] = deque()
        self.flight: TurnRecord | None = None
        self.unacknowledged: TurnRecord | None = None
        self.watchdog = watchdog
        self.cancel_deadline: int | None = None
        self.questions = OpenQuestions(policy, report_event)
        self.ended_with: tuple[int | None, bool, bool] = (None, False, True)
        self.read_stderr: Callable[[], bytes] = bytes
        """Gives the end of what the agent printed on stderr."""
        self.settings: dict[str, str] = {}
        """The mode and the model that the caller set last, if it set one."""
        self._limits = policy.nanoseconds()
        self._report_event = report_event
        self._has_handler = has_handler
        self._kept = policy.max_transcript_bytes
        self._background = TurnAnswer(self._kept)
        self._protocol: SessionProtocol
        self._router: TurnRouter
        self._tools: ToolTracker

    def connect_to_agent(self, protocol: SessionProtocol, router: TurnRouter, tools: ToolTracker) -> None:
        """Speak to a new agent process."""
        self._protocol, self._router, self._tools = protocol, router, tools
        self.watchdog.watch_new_agent()
        self.ended_with = (None, False, True)

    # Prompts and their ends.

    def queue_prompt(self, number: int, text: str) -> None:
        """Queue a prompt."""
        self.queue.append(TurnRecord(number, text, self._kept))
        self._report_event("prompt", number, text)

    def deliver_next_prompt(self, now: int) -> bytes:
        """Put the next prompt in flight, if it may go."""
        if self.flight is not None or self.unacknowledged is not None or not self.queue:
            return b""
        turn = self.flight = self.queue.popleft()
        turn.delivered_at = now
        turn.has_begun = self._protocol.begins_at_once
        self._router.note_delivered(turn.number, begins=turn.has_begun)
        self.watchdog.start(now)
        data = self._protocol.encode_prompt(turn.number, turn.prompt)
        turn.size = len(data)
        return data

    def cancel_turn(self, number: int | None, now: int) -> bytes:
        """Cancel a turn; None: the one in flight, or else the first that waits, for a handshake for example.

        A queued turn ends at once; a cancelled turn stays cancelled.
        """
        if number is None and self.flight is None and self.queue:
            number = self.queue[0].number
        for turn in tuple(self.queue):
            if turn.number == number:
                self.queue.remove(turn)
                self._conclude_turn(turn, Outcome.CANCELLED, now, "cancelled before it was delivered")
        flight = self.flight
        if flight is None or number not in (None, flight.number) or flight.cause is not None:
            return b""
        return self._cancel_with_outcome(flight, Outcome.CANCELLED, now)

    def switch_setting(self, what: str, name: str, now: int) -> bytes:
        """Switch the agent to a mode or a model, between turns or within one; each later agent gets it, too."""
        self.settings[what] = name
        return self._protocol.encode_switch(what, name)

    def encode_switches(self) -> bytes:
        """Give what sets the mode and the model of a new agent; nothing if the caller has set none."""
        return b"".join(self._protocol.encode_switch(what, name) for what, name in self.settings.items())

    def cancel_expired(self, now: int) -> bytes:
        """Cancel the turn in flight because its time is up: it has its outcome, the agent lives (P1).

        After a silence the error quotes the agent's last error, the question that is open, or the end of stderr.
        """
        due, turn = self.watchdog.find_expired_limit(now), self.flight
        if due is None or turn is None:
            return b""
        name, outcome = due
        error = f"{self.watchdog.explain_expiry(name, now)}: the turn was cancelled, the agent lives on"
        if outcome is not Outcome.OVERRAN:
            asked = self.questions.list_titles_of_turn(turn.number)
            error = explain_silence(error, turn.last_error, asked, self.read_stderr())
        data = self._cancel_with_outcome(turn, outcome, now)
        self._report_event("error", turn.number, error)
        self._conclude_turn(turn, outcome, now, error)
        return data

    def _cancel_with_outcome(self, turn: TurnRecord, cause: Outcome, now: int) -> bytes:
        turn.cause = cause
        self.unacknowledged, self.cancel_deadline = turn, add_limit(now, self._limits["cancel_grace"])
        self.watchdog.disarm()
        gone = self.questions.withdraw_of_turn(turn.number)
        denied = b"".join(self._protocol.encode_answer(question, allowed=None) for question in gone)
        return denied + self._send_cancel(turn)

    def _send_cancel(self, turn: TurnRecord) -> bytes:
        turn.cancels += 1
        return self._protocol.encode_cancel(turn.number)

    def note_error(self, words: str) -> None:
        """Keep the agent's words about an error in the turn in flight, until the turn makes progress."""
        if self.flight is not None:
            self.flight.last_error = words

    def requeue_unread_prompt(self, taken: int) -> None:
        """Put the prompt in flight before the queue, if not a byte of it is among so many that the agent took."""
        turn = self.flight
        if turn is not None and turn.cause is None and turn.sent_to - turn.size >= taken:
            self.queue.appendleft(turn)
            turn.delivered_at = self.flight = None
            self.watchdog.disarm()

    def lose_agent(self, outcome: Outcome, now: int, error: str) -> None:
        """The agent has ended, or is being ended: nothing is in flight any more."""
        if self.flight is not None:
            self._conclude_turn(self.flight, self.flight.cause or outcome, now, error)
        self.unacknowledged = self.cancel_deadline = None
        self.questions.withdraw_all()
        self.end_messages()
        self._background = TurnAnswer(self._kept)

    def refuse_queued(self, outcome: Outcome, error: str, now: int) -> None:
        """No agent will come: every queued prompt ends."""
        while self.queue:
            self._conclude_turn(self.queue.popleft(), outcome, now, error)

    def end_messages(self) -> None:
        """End the messages under way: viewers read what came in pieces before they read what comes next."""
        if self.flight is not None:
            self._show_message(self.flight.number, self.flight.answered.end_message())
        self._show_message(BACKGROUND_TURN_MARK, self._background.end_message())

    def _show_message(self, number: int, pieces: str) -> None:
        """Show viewers a message whole that came in pieces only."""
        if pieces:
            self._report_event("message", number, pieces)

    def _conclude_turn(self, turn: TurnRecord, outcome: Outcome, now: int, error: str = "") -> None:
        self._show_message(turn.number, turn.answered.end_message())
        turn.end_once(outcome, now, error)
        if turn is self.flight:
            self.flight = None
            self.watchdog.disarm()
        self._warn_of_cut_transcript(turn.number, turn.answered)
        status, forced, executable = self.ended_with
        result = turn.build_result(status, forced=forced, executable=executable)
        self._report_event("outcome", turn.number, outcome.value, result=result)

    def _warn_of_cut_transcript(self, number: int, answered: TurnAnswer) -> None:
        if answered.is_cut:
            self._report_event("warning", number, "transcript_truncated")

    # Lines of the agent.

    def handle_turn_meaning(self, meaning: TurnMeaning, now: int) -> bytes:
        """Take what the agent said."""
        if not isinstance(meaning, (TurnProgress, Finished)):
            return self._handle_other_meaning(meaning, now)
        owners = self._router.find_turns(meaning)
        self._return_words_to_background()
        self._note_turn_begin(owners, now)
        if isinstance(meaning, TurnProgress):
            for number in owners:
                self._handle_progress(meaning, number, now)
            return b""
        self._tools.note_turn_end()
        self.watchdog.note_work(busy=self._tools.is_busy, doing=self._tools.current_work_text)
        for number in owners:
            self._handle_end(meaning, number, now)
        return b""

    def show_replayed(self, replayed: HistoryReplayed) -> None:
        """Show viewers the past of a loaded session, which belongs to no turn (P5)."""
        self._report_event("past_prompt" if replayed.is_prompt else "past_message", None, replayed.text)

    def _note_turn_begin(self, owners: tuple[int, ...], now: int) -> None:
        """Note when turns begin. Forget a background turn that said nothing when a prompt's turn continues."""
        if BACKGROUND_TURN_MARK in owners:
            self._background.note_event(now)
        elif owners and not self._background.has_words:
            self._background.begun_at = None
        for turn in filter(None, map(self._find_live_turn, owners)):
            turn.answered.note_event(now)

    def _handle_other_meaning(self, meaning: TurnMeaning, now: int) -> bytes:
        """Take what is neither words nor an end."""
        if isinstance(meaning, PromptDeclined):
            return self._handle_declined(meaning, now)
        if isinstance(meaning, CancelAnswered):
            return self._handle_cancel_answered(meaning)
        if isinstance(meaning, QuestionWithdrawn):
            return self._withdraw_question(meaning.id, now)
        owners = self._router.find_turns(meaning)
        self._note_turn_begin(owners, now)
        return (
            self._handle_question(meaning, owners, now) if isinstance(meaning, Question) else self._handle_begin(owners)
        )

    def _find_live_turn(self, number: int) -> TurnRecord | None:
        known = (self.flight, self.unacknowledged)
        return next((turn for turn in known if turn is not None and turn.number == number), None)

    def _handle_begin(self, owners: tuple[int, ...]) -> bytes:
        """Follow a beginning; a cancel that went out before it had nothing to cancel, and goes out again."""
        again = b""
        for number in owners:
            turn = self._find_live_turn(number)
            if turn is not None and not turn.has_begun:
                turn.has_begun = True
                again += self._send_cancel(turn) if turn.cause is not None else b""
        return again

    def _handle_progress(self, progress: TurnProgress, number: int, now: int) -> None:
        turn = self.flight
        if number == BACKGROUND_TURN_MARK:
            self._show_message(BACKGROUND_TURN_MARK, self._background.add_progress(progress))
            self._report_event(progress.kind, BACKGROUND_TURN_MARK, progress.shown_text)
        elif turn is not None and turn.number == number:
            turn.last_error = ""
            self._show_message(number, turn.answered.add_progress(progress))
            self.watchdog.note_progress(now)
            self._report_event(progress.kind, number, progress.shown_text)
        else:
            self._report_event("late", number, progress.shown_text)

    def handle_work(self, worked: WorkMeaning, now: int) -> bytes:
        """Follow the tools; a message of the turn in flight that asks for one of the host's is its end (A7).

        For the caller the turn is over, for the agent it is not. So the session cancels it as after a timeout. Events
        before the acknowledgement are late; then the next prompt is delivered.
        """
        self._tools.feed(worked)
        self.watchdog.note_work(busy=self._tools.is_busy, doing=self._tools.current_work_text)
        turn = self.flight
        is_its_own = turn is not None and turn.cause is None and turn.number in self._router.running
        if turn is None or not is_its_own or not self._tools.is_handed_over(worked):
            return b""
        data = self._cancel_with_outcome(turn, Outcome.TOOL_USE, now)
        self._conclude_turn(turn, Outcome.TOOL_USE, now)
        return data

    def _handle_end(self, ended: Finished, number: int, now: int) -> None:
        if number == BACKGROUND_TURN_MARK:
            self._end_background_turn(ended, now)
            return
        turn = self._find_live_turn(number)
        if turn is None:
            self._report_event("late", number, ended.text or "")
            return
        turn.has_ended = True
        if turn is self.flight:
            self._show_message(number, turn.answered.end_message())
            turn.answered.note_end(ended)
            outcome = Outcome.COMPLETED if ended.ok else turn.cause or Outcome.FAILED
            self._conclude_turn(turn, outcome, now, ended.error if turn.cause is None else "the caller cancelled it")
        self._note_acknowledged(turn)

    def _end_background_turn(self, ended: Finished, now: int) -> None:
        said, self._background = self._background, TurnAnswer(self._kept)
        self._show_message(BACKGROUND_TURN_MARK, said.end_message())
        result = said.build_result(ended, now)
        self._warn_of_cut_transcript(BACKGROUND_TURN_MARK, said)
        self._report_event("background", BACKGROUND_TURN_MARK, said.text or "", result=result)

    def _return_words_to_background(self) -> None:
        """Give words to the background turn that they turned out to be of."""
        for number in self._router.retracted:
            turn = self._find_live_turn(number)
            if turn is not None:
                self._background, turn.answered = turn.answered, TurnAnswer(self._kept)
                turn.has_begun = False

    def _handle_declined(self, declined: PromptDeclined, now: int) -> bytes:
        self._router.forget_unstarted_turn(declined.number)
        turn = self._find_live_turn(declined.number)
        if turn is not None:
            turn.has_ended = True
            if turn is self.flight:
                self._conclude_turn(turn, turn.cause or Outcome.FAILED, now, declined.error)
            self._note_acknowledged(turn)
        return b""

    def _handle_cancel_answered(self, settled: CancelAnswered) -> bytes:
        turn = self.unacknowledged
        if turn is not None and turn.number == settled.number:
            turn.answers += 1
            self._note_acknowledged(turn)
        return b""

    def _note_acknowledged(self, turn: TurnRecord) -> None:
        is_through = turn.has_ended and (turn.answers >= turn.cancels or not self._protocol.answers_cancel)
        if turn is self.unacknowledged and is_through:
            self.unacknowledged = self.cancel_deadline = None

    # Questions.

    def _handle_question(self, question: Question, owners: tuple[int, ...], now: int) -> bytes:
        turn = self.flight
        is_ours = turn is not None and turn.number in owners
        is_cancelled = any(live.cause is not None for live in map(self._find_live_turn, owners) if live is not None)
        if is_ours and not is_cancelled:
            self.watchdog.note_progress(now)
        is_asked = self._has_handler and not is_cancelled and not self.questions.is_full
        asked = question if is_asked or not self._has_handler else None
        self._report_event("question", owners[0] if owners else None, question.title, question=asked)
        if not is_asked:
            return self._protocol.encode_answer(question, allowed=None if is_cancelled else False)
        self.questions.ask(question, owners, now)
        if is_ours:
            self.watchdog.pause_progress_limits()
        return b""

    def answer_question(self, name: str, now: int, *, allowed: bool) -> bytes:
        """Answer a question that is still open."""
        question = self.questions.take_answered(name)
        if question is None:
            return b""
        self._resume_limits(now)
        return self._protocol.encode_answer(question, allowed=allowed)

    def deny_late_questions(self, now: int) -> bytes:
        """Deny the questions that were not answered in time."""
        late = self.questions.withdraw_late(now)
        self._resume_limits(now)
        return b"".join(self._protocol.encode_answer(question, allowed=False) for question in late)

    def _withdraw_question(self, name: str, now: int) -> bytes:
        self.questions.withdraw(name)
        self._resume_limits(now)
        return b""

    def _resume_limits(self, now: int) -> None:
        """Have the prompt's deadline run again, once the caller owes its turn no answer."""
        turn = self.flight
        if turn is not None and turn.cause is None and not self.questions.has_open_in_turn(turn.number):
            self.watchdog.resume_progress_limits(now)
