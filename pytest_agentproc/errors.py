"""The kit's exceptions. Owns their wording rules; refuses to know who raises them.

Three kinds are never mixed: a caller's mistake is one of these exceptions, an agent's behaviour is an `Outcome`
and is never raised, and a bug of ours is an assertion or a `KitError`. What breaks
in the supervisor under test is none of these: that is a `SubjectError`, either of the adapter or of the supervisor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = [
    "AdapterError",
    "AgentprocError",
    "BrokenFake",
    "CannotContinue",
    "ClockError",
    "Deadlock",
    "Declined",
    "EndlessAgent",
    "EndlessWait",
    "ForeignProgram",
    "Hang",
    "KitError",
    "NotApplicable",
    "ScenarioError",
    "ScenarioProblem",
    "Spin",
    "Stall",
    "SubjectError",
    "SupervisorCrash",
    "UsageError",
    "join_lines",
    "suggest_known_word",
]


class AgentprocError(Exception):
    """Every error that this kit raises on purpose."""


class UsageError(AgentprocError):
    """Report a caller's mistake: a lower-case clause with the value, then what to do.

    Args:
        message: what is wrong, with the value that was given.
        remedy: what the caller can do about it; printed on a line of its own.
    """

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(f"{message}\n{remedy}" if remedy else message)
        self.message = message
        self.remedy = remedy


def suggest_known_word(
    word: object, known: Iterable[str], otherwise: str | None = None, before: str = "", remedy: str = ""
) -> str:
    """Ask for the known word that is nearest to an unknown word.

    Args:
        word: the unknown word.
        known: all known words.
        otherwise: what to say if none is near; None: list them.
        before: what stands before the answer.
        remedy: the answer if the meaning of the word is known, as `vocabulary.find_remedy` gives it.
    """
    if remedy:
        return f"{before}{remedy}"
    from difflib import get_close_matches  # not at the top: most processes have no mistake to report

    words = list(known)
    near = get_close_matches(str(word), words, 1) or [each for each in words if each.lower() == str(word).lower()]
    if near:
        return f"{before}did you mean {near[0]}?"
    return f"known are {', '.join(words)}" if otherwise is None else otherwise


def join_lines(text: str) -> str:
    """Put a message of several lines on one."""
    return ": ".join(line.strip() for line in text.splitlines() if line.strip())


@dataclass(frozen=True, slots=True, order=True)
class ScenarioProblem:
    """One mistake in a scenario: where it stands (lines and columns count from 1) and what is wrong.

    In Python data, `path` is the path of the wrong value, such as `script[0].say`, and "" for no value of its own. Then
    `file` and `line` are those of the test, and `column` only gives the problems of a line their order.
    """

    file: str
    line: int
    column: int
    message: str
    path: str | None = None

    def __str__(self) -> str:
        if self.path is None:
            return f"{self.file}:{self.line}:{self.column}: {self.message}"
        return f"{self.file}:{self.line}: " + (f"{self.path}: " if self.path else "") + self.message


class ScenarioError(AgentprocError):
    """Report every problem of one scenario at once, in the order of their lines."""

    def __init__(self, problems: list[ScenarioProblem] | tuple[ScenarioProblem, ...]) -> None:
        self.problems = tuple(sorted(problems))
        super().__init__("\n".join(str(problem) for problem in self.problems))

    def __reduce__(self) -> tuple[type[ScenarioError], tuple[tuple[ScenarioProblem, ...]]]:
        """Have a copy, in another process, made of the problems."""
        return type(self), (self.problems,)


class NotApplicable(AgentprocError):
    """A scenario, or one check of it, needs a limit or an ability that the supervisor under test does not have.

    Args:
        name: the name of the limit, or what else it needs.
        line: the line that needs it.
    """

    def __init__(self, name: str, line: int) -> None:
        super().__init__(f"line {line} needs {name}, which the subject does not have")
        self.name = name
        self.line = line

    def __reduce__(self) -> tuple[Callable[..., NotApplicable], tuple[object, ...]]:
        """Have a copy, in another process, made of the same values."""
        return type(self), (self.name, self.line)

    def reason(self, owner: str = "subject") -> str:
        """Say why on one line.

        Args:
            owner: what the text calls the supervisor under test.
        """
        return f"line {self.line} needs {self.name}, which the {owner} does not have"


class Declined(NotApplicable):
    """An adapter raises this for an order that its supervisor cannot take: the scenario is not applicable.

    It counts only before an agent was started. Raised later it is an adapter error, because something was tried.

    Args:
        why: the reason, which the report shows.
    """

    def __init__(self, why: str) -> None:
        super().__init__(why, 0)
        self.args = (why,)

    def __reduce__(self) -> tuple[Callable[..., NotApplicable], tuple[object, ...]]:
        """Have a copy, in another process, made of the same values."""
        return type(self), (self.name,)

    def reason(self, owner: str = "subject") -> str:  # the adapter chose the words
        """Give the reason of the adapter, on one line."""
        return join_lines(self.name) or "no reason was given"


class CannotContinue(Declined):
    """The kit asked a program whether it can open a session that exists, and it cannot; its agent may run by then."""


class ClockError(AgentprocError):
    """Virtual time could not go on; the message names who waits for what."""

    reason = "clock"


class Deadlock(ClockError):
    """Nobody can move: everyone waits, and no deadline is left to jump to."""

    reason = "deadlock"


class Stall(ClockError):
    """A participant neither parked nor spoke within the real-time guard."""

    reason = "stall"


class ForeignProgram(ClockError):
    """A program that is neither a fake nor around one runs on in virtual time, and was not declared."""

    reason = "foreign process"


class EndlessAgent(ClockError):
    """An agent goes on for ever, and the supervisor does not end it though another one would."""

    reason = "endless run"


class EndlessWait(ClockError):
    """The supervisor did not return, long after it had to."""

    reason = "endless wait"


class BrokenFake(ClockError):
    """A fake agent failed by itself, so the run cannot go on: that says nothing of the supervisor."""

    reason = "broken fake"


class Hang(ClockError):
    """The supervising program waits with a period for something that never comes."""

    reason = "hang"


class Spin(ClockError):
    """The supervising program runs on without a byte, a jump or a pause."""

    reason = "spin"

    @classmethod
    def for_agent_starts(cls, count: int) -> Spin:
        """Make the error of a supervisor that has started so many agents, one after the other."""
        return cls(f"the supervisor starts its agent again and again, {count} times by now")


class SubjectError(AgentprocError):
    """The supervisor under test gave no answer: the adapter misused the kit, or the supervisor crashed."""

    reason = "error"


class AdapterError(SubjectError):
    """The adapter misuses the kit: that says nothing of what the supervisor does with agents."""

    reason = "adapter error"


class SupervisorCrash(SubjectError):
    """An exception came out of the supervisor under test.

    Args:
        message: what was raised, and where.
        is_in_adapter: whether all frames of the traceback are in the adapter's own module. If no agent was started
            either, the adapter is wrong, and the supervisor did not crash.
    """

    reason = "crash"

    def __init__(self, message: str, *, is_in_adapter: bool = False) -> None:
        super().__init__(message)
        self.is_in_adapter = is_in_adapter


class KitError(AgentprocError):
    """The kit itself failed: never a verdict on the program under test."""
