"""The questions that an agent asks its client: which are open, how each was answered. Knows no wire format."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


ANSWER_ALLOW, ANSWER_DENY, ANSWER_CANCELLED = "allow", "deny", "cancelled"
ANSWER_GIVEN, ANSWER_REFUSED = "answered", "refused"


class ClientQuestion:
    """One question; `answer` is empty while it is open.

    Args:
        number: its place among all questions, counted from 1.
        key: the id of its request.
        fields: what the script says of it.
        tool: the id of the tool that it is about.
        in_turn: whether it was asked within a turn.

    `given_up` is true for one that was taken back since no answer came in time, `dismissed` for one that its client
    answered with `cancelled` though no turn is cancelled: that denies. `call` is the call of a tool of a server that
    the agent has started: its answer is not the client's.
    """

    __slots__ = ("answer", "call", "dismissed", "fields", "given_up", "in_turn", "key", "number", "tool")

    def __init__(self, number: int, key: Any, fields: dict[str, Any], tool: str, *, in_turn: bool) -> None:
        self.number = number
        self.key = key
        self.fields = fields
        self.tool = tool
        self.in_turn = in_turn
        self.answer = ""
        self.call: Any = None
        self.given_up = False
        self.dismissed = False

    @property
    def asked_note(self) -> dict[str, Any]:
        """The record's fields about it: its subject, its kind, its number."""
        return {"asked": self.fields["name"], "kind": self.fields["kind"], "number": self.number}

    @property
    def answered_note(self) -> dict[str, Any]:
        """The record's fields about its answer."""
        return {"answered": self.fields["name"], "answer": self.answer, "number": self.number}


class ClientQuestions:
    """All questions of a session, in order; an answer is that of the first open one with its id."""

    def __init__(self) -> None:
        self.asked: list[ClientQuestion] = []
        self._news: list[ClientQuestion] = []

    def open_question(
        self, key: Any, fields: dict[str, Any], tool: str = "", *, in_turn: bool = False
    ) -> ClientQuestion:
        """Open a question."""
        question = ClientQuestion(len(self.asked) + 1, key, fields, tool, in_turn=in_turn)
        self.asked.append(question)
        return question

    def find_open_question(self, key: Any) -> ClientQuestion | None:
        """Give the first open question with that id, which is of the same type, too."""
        same = (
            question
            for question in self.list_open_questions()
            if type(question.key) is type(key) and question.key == key
        )
        return next(same, None)

    def list_open_questions(self) -> list[ClientQuestion]:
        """Give the questions that wait for an answer."""
        return [question for question in self.asked if not question.answer]

    def settle_question(self, question: ClientQuestion, answer: str) -> None:
        """Take the answer: allow, deny or cancelled; of a request answered or refused."""
        question.answer = answer
        self._news.append(question)

    def take_newly_settled(self) -> list[ClientQuestion]:
        """Give what was answered since the last call."""
        news, self._news = self._news, []
        return news
