"""How a run ends: completion, the escalation of signals, the outcome table, and sentences that explain. Pure.

LINGER --linger_grace (and background_grace, while tasks run)--> TERM --linger_kill_grace or kill_grace--> KILL
stdin ends --close_grace--> TERM --kill_grace--> KILL
the agent exits by itself, descendants are left --> TERM --leftover_kill_grace--> KILL
"""

from __future__ import annotations

import shlex
import signal
from enum import Enum
from typing import TYPE_CHECKING, Any

from pytest_agentproc.supervisor._events import FinishRun, ReapAgent, SendSignal
from pytest_agentproc.supervisor._streams import Transcript
from pytest_agentproc.supervisor.dialects import Failure, Finished, Line, Message, Noise, Other, Piece, Resumed
from pytest_agentproc.vocabulary import Outcome, add_limit, compute_exit_code

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pytest_agentproc.supervisor._events import MachineCommand
    from pytest_agentproc.supervisor._streams import StdinFeeder
    from pytest_agentproc.supervisor._watchdog import Watchdog
    from pytest_agentproc.supervisor.dialects import Meaning
    from pytest_agentproc.vocabulary import Policy


_MAX_SHOWN_COMMAND_CHARS = 1000
"""Characters: a prompt may be part of the command, and of any length."""

_MAX_SHOWN_STDERR_CHARS = 1000
"""Bytes: the end of stderr, where an agent says why it gives up."""

_SHELL_EXIT_CODE_BASE = 128
"""A program that a signal ends in an orderly way exits with this plus the signal's number, as shells report it."""


def explain_exit(status: int | None, now: int, spawned_at: int, output_at: int | None) -> str:
    """Say how an agent exited, and how long after its last output.

    Args:
        status: its exit code, or minus the number of the signal that ended it; None: nobody here saw it.
        now: the instant of the exit, in nanoseconds, as the two others are.
        spawned_at: when it was started.
        output_at: when its last byte on stdout or stderr came; None: it never printed one.
    """
    since = spawned_at if output_at is None else output_at
    what = "its start, without any output" if output_at is None else "its last output"
    seconds = max(now - since, 0) / 1e9  # an exit may be noted before the last bytes are read
    return f"{_describe_status(status)}, {round(seconds, 3):g} s after {what}"  # nobody reads microseconds


def explain_start(reason: str, errno: int) -> str:
    """Say why an agent could not be started: the system's words and its error number, 0 if there is none."""
    return f"{reason} (errno {errno})" if errno else reason


def prefix_command(argv: Sequence[str], words: str) -> str:
    """Put the agent's command before a sentence; a long command is cut."""
    command = shlex.join(argv)
    if len(command) > _MAX_SHOWN_COMMAND_CHARS:
        command = f"{command[:_MAX_SHOWN_COMMAND_CHARS]}..."
    return f"{command}: {words}" if command else words


def append_stderr(words: str, stderr: bytes) -> str:
    """Put the end of stderr after a sentence: its last lines, if there is anything in them."""
    tail = stderr.rstrip()[-_MAX_SHOWN_STDERR_CHARS:]
    if len(tail) < len(stderr.rstrip()):
        tail = tail.partition(b"\n")[2] or tail  # half a line says little, unless it is all that there is
    text = tail.decode(errors="replace").strip()
    return f"{words}: {text}" if text else words


def explain_silence(words: str, error: str, asked: Sequence[str], stderr: bytes, unfinished: bytes = b"") -> str:
    """Put what may be the reason of a silence after a sentence: the first of these that there is.

    Args:
        words: the sentence.
        error: the agent's own words about its last error.
        asked: questions that wait for an answer.
        stderr: the end of what the agent printed there.
        unfinished: a last line on stdout that has no end, as a question at a prompt has none.
    """
    if error:
        return f"{words}; its last error: {error}"
    if asked:
        return f"{words}; no answer came to: {', '.join(asked)}"
    if unfinished.strip():
        return append_stderr(f"{words}; its last line, without an end", unfinished)
    return append_stderr(f"{words}; its last words on stderr", stderr) if stderr.strip() else words


def _describe_status(status: int | None) -> str:
    if status is None:
        return "it is not known how the agent ended: another part of this process reaped it"
    if status < 0:
        return f"{_name_signal(-status) or f'signal {-status}'} ended the agent"
    name = _name_signal(status - _SHELL_EXIT_CODE_BASE)
    return f"the agent exited with code {status}" + (f" (128 + {name})" if name else "")


def _name_signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return ""


class Completion:
    """Follow a run's events to its result.

    `at` is the instant of the completion, None while there is none; `ok` says whether its result is good.
    """

    def __init__(self) -> None:
        self.at: int | None = None
        self.ok: bool | None = None
        self.final = False
        self.error = ""
        self.messages = Transcript(None)
        self.result: str | None = None
        self.has_lines = False
        self.stop_reason: str | None = None
        self.model: str | None = None
        self.usage: dict[str, Any] | None = None
        self.noise = 0
        self._is_torn = False

    def limit_transcript(self, size: int | None) -> None:
        """Keep this number of bytes of the transcript from now on, the last ones; None: all of them (F6)."""
        self.messages = Transcript(size)

    def feed(self, meaning: Meaning, now: int) -> None:
        """Take one event."""
        if isinstance(meaning, (Other, Piece)):
            return
        if isinstance(meaning, Message):
            self._add_message(meaning)
        elif isinstance(meaning, Line):
            self.has_lines = True
            self.messages.add_lines(meaning.text)
        elif isinstance(meaning, Finished):
            self.finish(meaning, now)
        elif isinstance(meaning, Resumed):
            self.undo_completion()
        elif isinstance(meaning, Noise):
            self.noise += meaning.lines
        elif isinstance(meaning, Failure):
            self.error = meaning.error

    @property
    def text(self) -> str | None:
        """The final message, or the transcript of a dialect without messages; None if there was none."""
        if self.result is not None:
            return self.result
        return self.transcript if self.has_lines else self.messages.last

    @property
    def transcript(self) -> str:
        """All messages or lines, as far back as the limit allows."""
        return str(self.messages)

    @property
    def warnings(self) -> list[str]:
        """Warn of a transcript that is not whole."""
        return ["transcript_truncated"] if self.messages.is_cut or self._is_torn else []

    def finish(self, meaning: Finished, now: int) -> None:
        """Complete. A second completion changes the result, not the instant. A final completion never changes."""
        if self.final:
            return
        if self.at is None:
            self.at = now
        self.model = meaning.model or self.model
        self.usage = meaning.usage or self.usage
        self.result = meaning.text if meaning.text is not None else self.result
        self.stop_reason = meaning.stop_reason or self.stop_reason
        if meaning.ok is not None:
            self.ok = meaning.ok
            self.error = meaning.error
        elif self.ok is None:
            self.ok = True
        self.final = self.final or meaning.final

    def undo_completion(self) -> None:
        """Take a completion back that was not final."""
        if not self.final:
            self.at = self.ok = None
            self.error = ""

    def _add_message(self, message: Message) -> None:
        if message.text is not None:
            self.messages.add(message.text)
            self._is_torn = self._is_torn or message.is_torn
        self.stop_reason = message.stop_reason or self.stop_reason
        self.model = message.model or self.model
        self.usage = message.usage or self.usage


class OutcomeRules:
    """Judge a run by its completion, or else by the agent's exit; `unstarted` is one whose agent cannot be started."""

    unstarted = Outcome.SPAWN_FAILED

    def is_missing(self, errno: int) -> bool:
        """Say whether a start failed because there is no such file; else it is there and cannot be executed (P6)."""
        return errno in _ERRNOS_OF_MISSING_FILE

    def is_gone(self, streams: Collection[str], *, has_exited: bool) -> bool:
        """Say whether the agent has ended: its exit alone decides, even while streams are open (C4)."""
        return has_exited

    def is_input_lost(self, feeder: StdinFeeder, *, silent: bool) -> bool:
        """Say whether a run fails for a prompt that was not read: only once the agent lives on in silence (F5)."""
        return silent and feeder.is_broken and not feeder.is_delivered

    def has_final_outcome(self, outcome: Outcome | None, completion: Completion) -> bool:
        """Say whether a run has its outcome when its agent ends. Later events change nothing (A1)."""
        return outcome is not None

    def judge_exit(
        self, completion: Completion, status: int, watchdog: Watchdog, now: int, *, has_completion: bool
    ) -> Outcome:
        """Say the outcome of a run whose agent exited by itself; exit beats a deadline of the same instant (A4)."""
        if completion.at is not None:
            return self.judge_completion(completion)
        if has_completion:
            is_told = bool(completion.error) and status > 0
            return Outcome.FAILED if is_told else Outcome.INCOMPLETE
        if status < 0:
            return Outcome.INCOMPLETE
        return Outcome.COMPLETED if status == 0 else Outcome.FAILED

    def judge_unseen_exit(self, completion: Completion) -> Outcome:
        """Say the outcome of a run of which nobody saw how its agent exited: only a result of its own is good."""
        return Outcome.INCOMPLETE if completion.at is None else self.judge_completion(completion)

    def judge_completion(self, completion: Completion) -> Outcome:
        """Say the outcome of a completion."""
        return Outcome.COMPLETED if completion.ok else Outcome.FAILED

    def explain_missing_result(self, error: str, words: str, stderr: bytes) -> str:
        """Explain an exit without a result.

        Args:
            error: the agent's own words about an error, if it had any.
            words: how it exited, and when.
            stderr: the end of what it printed there; it is quoted if the agent had no words of its own.
        """
        return f"{error}; {words}" if error else append_stderr(words, stderr)

    def choose_exit_code(self, outcome: Outcome, status: int | None, *, forced: bool, executable: bool) -> int:
        """Say what the supervising program should exit with."""
        return compute_exit_code(outcome, status, forced=forced, executable=executable)

    def find_warnings(self, outcome: Outcome, status: int | None, *, forced: bool) -> list[str]:
        """Warn of a good result and then a self-chosen exit code."""
        if outcome is Outcome.COMPLETED and not forced and status is not None and status > 0:
            return ["exit_contradicts_result"]
        return []


_ERRNOS_OF_MISSING_FILE = frozenset({2, 20})


class EscalationStep(Enum):
    """The step that the escalation waits to take."""

    NONE = "none"
    TERMINATE = "terminate"
    KILL = "kill"
    DONE = "done"


_STEPS_AFTER_TERM = (EscalationStep.KILL, EscalationStep.DONE)


class Escalation:
    """Say when to terminate and when to kill."""

    reach = "tree"

    def __init__(self, policy: Policy) -> None:
        self.limits = policy.nanoseconds()
        self.containment = policy.containment
        self.escalation_step = EscalationStep.NONE
        self.timer = ""
        self.deadline: int | None = None
        self._kill_grace = "kill_grace"

    def start_linger_grace(self, now: int, *, is_working: bool = False) -> None:
        """Give the agent its grace after a completion, a longer one if commands of its own still run (C1)."""
        self._kill_grace = "linger_kill_grace"
        more = self.limits["background_grace"] if is_working else 0
        self._start_timer(EscalationStep.TERMINATE, "linger_grace", None if more is None else now + more)

    def note_output(self, now: int) -> None:
        """Take note of output in a grace: it makes none longer (C1)."""

    def start_close_grace(self, now: int) -> None:
        """Give the agent of a session its grace after the end of its stdin (P8)."""
        self._start_timer(EscalationStep.TERMINATE, "close_grace", now)

    def stop_waiting(self) -> None:
        """Stop waiting: the completion was taken back."""
        if self.escalation_step is EscalationStep.TERMINATE:
            self.escalation_step, self.deadline, self.timer = EscalationStep.NONE, None, ""

    def terminate(self, now: int, *, leftovers: bool = False) -> SendSignal:
        """Terminate now; the kill comes after its grace."""
        if leftovers:
            self._kill_grace = "leftover_kill_grace"
        self._start_timer(EscalationStep.KILL, self._kill_grace, now)
        return SendSignal("TERM", self.reach)

    def restart_kill_grace(self, now: int) -> None:
        """Count the grace from the instant at which the signals have gone out: finding a tree takes real time."""
        if self.escalation_step is EscalationStep.KILL and self.deadline is not None:
            self._start_timer(EscalationStep.KILL, self.timer, now)

    def take_due_step(self, now: int) -> MachineCommand:
        """Take the step whose instant has come."""
        if self.escalation_step is EscalationStep.TERMINATE:
            return self.terminate(now)
        self.escalation_step, self.deadline, self.timer = EscalationStep.DONE, None, ""
        return SendSignal("KILL", self.reach)

    def end_leftovers(self, now: int) -> list[MachineCommand]:
        """Say what to do about descendants that a dead agent left: terminate, unless that is under way (T6)."""
        return [] if self.has_signalled else [self.terminate(now, leftovers=True)]

    def finish(self) -> list[MachineCommand]:
        """Say what is left to do once the tree is dead: reap the agent (T3)."""
        self.deadline = None
        return [ReapAgent(), FinishRun()]

    @property
    def has_signalled(self) -> bool:
        """Whether TERM was sent."""
        return self.escalation_step in _STEPS_AFTER_TERM

    def _start_timer(self, escalation_step: EscalationStep, grace: str, since: int | None) -> None:
        """Count a grace from an instant; None, or a grace that is off: the step never comes."""
        limit = self.limits[grace]
        self.escalation_step, self.timer = escalation_step, grace
        self.deadline = None if since is None else add_limit(since, limit)
