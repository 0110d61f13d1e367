"""The questions of an agent that its caller owes an answer (P7). Pure; knows no dialect and answers none itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_agentproc.supervisor.dialects import Question
    from pytest_agentproc.vocabulary import Policy

__all__ = ["Questions"]


@dataclass(frozen=True, slots=True)
class _Open:
    """A question, the turns that it belongs to, and the instant at which it is denied."""

    question: Question
    owners: tuple[int, ...]
    deadline: int


class Questions:
    """Hold what is open. Whoever wants an answer no more, or gets one from elsewhere, is told of as `withdrawn`.

    Args:
        policy: its `permission_timeout`.
        tell: how viewers are told.
    """

    MOST = 1000
    """So many may be open; what is asked beyond them is denied at once (F6)."""

    def __init__(self, policy: Policy, tell: Callable[..., None]) -> None:
        limit = policy.nanoseconds()["permission_timeout"]
        assert limit is not None
        self._limit = limit
        self._tell = tell
        self._open: dict[str, _Open] = {}

    def __len__(self) -> int:
        return len(self._open)

    @property
    def deadline(self) -> int | None:
        """The instant at which the oldest open question is denied."""
        return min(one.deadline for one in self._open.values()) if self._open else None

    @property
    def is_full(self) -> bool:
        """Whether no more can be asked."""
        return len(self._open) >= self.MOST

    def ask(self, question: Question, owners: tuple[int, ...], now: int) -> None:
        """Take a question; one of the same name is withdrawn."""
        self.withdraw(question.id)
        self._open[question.id] = _Open(question, owners, now + self._limit)

    def answer(self, name: str) -> Question | None:
        """Give the question that its caller answers, if it is open still."""
        one = self._open.pop(name, None)
        return None if one is None else one.question

    def withdraw(self, name: str) -> None:
        """Forget a question."""
        one = self._open.pop(name, None)
        if one is not None:
            self._tell("withdrawn", next(iter(one.owners), None), one.question.title, question=one.question)

    def withdraw_of(self, number: int) -> list[Question]:
        """Forget the questions of a turn; those of a background turn, which goes on, stay."""
        return self._drop([one for one in self._open.values() if number in one.owners])

    def withdraw_late(self, now: int) -> list[Question]:
        """Forget what nobody answered in time."""
        return self._drop([one for one in self._open.values() if one.deadline <= now])

    def withdraw_all(self) -> None:
        """Forget everything: the agent that asked is gone."""
        self._drop(list(self._open.values()))

    def _drop(self, gone: list[_Open]) -> list[Question]:
        for one in gone:
            self.withdraw(one.question.id)
        return [one.question for one in gone]

    def has_of(self, number: int) -> bool:
        """Say whether a question of a turn is open."""
        return any(number in one.owners for one in self._open.values())
