"""Owns one piece of a file that can be moved: where it stands, what may be there instead, how a time is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_agentproc.scenario._expressions import (
    TIMES,
    Expression,
    ExpressionError,
    NotApplicable,
    Unfit,
    evaluate,
    parse_expression,
)
from pytest_agentproc.scenario._expressions import names as names_of
from pytest_agentproc.scenario._nodes import Mapping, Node, Sequence

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Mapping as Words

__all__ = ["Movable", "nodes_of", "written_time"]


@dataclass(frozen=True, slots=True)
class Movable:
    """One piece of a file that can be moved.

    Args:
        kind: `time`, `pause` (between two steps, or two deeds of a caller: no time), `cut`, `chunk` (all that an agent
            writes, in pieces) or `order`.
        line: its line in the file.
        text: what stands there.
        start: where that begins in the file's text, and `stop` where it ends.
        options: other texts for its place; of a pause one with a gap for the time; of a time none.
        expression: the time; None for the other kinds.
        repeats: whether it says how often something happens, so that a much shorter or longer one has no end.
    """

    kind: str
    line: int
    text: str
    start: int
    stop: int
    options: tuple[str, ...] = ()
    expression: Expression | None = None
    repeats: bool = False

    def worth(self, limits: Words[str, int | None]) -> int | None:
        """Evaluate the time that stands there; None: it is none under these limits.

        Args:
            limits: every limit as a whole number, None where it is off; see `Policy.whole`.
        """
        if self.expression is None:
            return 0 if self.kind == "pause" else None
        try:
            return evaluate(self.expression, limits)
        except (NotApplicable, Unfit):
            return None

    def read(self, text: str, limits: Words[str, int | None]) -> int | None:
        """Evaluate another time for this place, as `at` writes it; None: it is none."""
        if self.kind == "pause":
            before, after = self.options[0].format("\0").split("\0")
            text = text.removeprefix(before).removesuffix(after) or "0s"
        try:
            return evaluate(Expression(text, 0, 0, parse_expression(text), TIMES), limits)
        except (NotApplicable, Unfit, ExpressionError):
            return None

    def at(self, worth: int, limits: Words[str, int | None]) -> str:
        """Write another time for this place: one that names limits is still told from them.

        Args:
            worth: the time, in nanoseconds.
            limits: as in `worth`.
        """
        now = self.worth(limits)
        assert now is not None, "it is a time"
        if worth == now:
            return self.text
        if self.expression is None:
            return self.options[0].format(written_time(worth))
        if not names_of(self.expression.tree):
            return written_time(worth)
        sign = "+" if worth > now else "-"
        return f"{self.text} {sign} {written_time(abs(worth - now))}"


def nodes_of(node: Node) -> Iterator[Node]:
    """Yield a node and all below it, but for keys."""
    yield node
    below = [value for _, value in node.pairs] if isinstance(node, Mapping) else ()
    for inner in node.items if isinstance(node, Sequence) else below:
        yield from nodes_of(inner)


def written_time(worth: int) -> str:
    """Write a time in the longest unit that is exact, up to seconds."""
    unit = next(unit for unit in ("s", "ms", "us", "ns") if worth % TIMES.units[unit] == 0)
    return f"{worth // TIMES.units[unit]}{unit}"
