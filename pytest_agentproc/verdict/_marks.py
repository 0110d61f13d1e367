"""Owns what failed checks are about in a diagram: what was seen when, and when it was expected. Judges nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_agentproc.events import OutcomeReached, TurnEnded
from pytest_agentproc.record import FailureMark, format_instant
from pytest_agentproc.verdict import _facts
from pytest_agentproc.verdict._instants import find_instants
from pytest_agentproc.verdict._rows import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_agentproc.plays import PlayResult
    from pytest_agentproc.verdict._rows import CheckRow


_TEXT_BY_MARK_KIND = {"outcome": "the outcome", "returned": "the return", "start": "a start of the agent"}


def find_failure_marks(played: PlayResult, rows: Sequence[CheckRow]) -> list[FailureMark]:
    """Find what the failed checks of a run are about, each at its instant; several sessions have none."""
    wanted = {(expectation.key, expectation.line): expectation.wanted for expectation in played.bound.expect}
    failed = [row for row in rows if row.verdict is Verdict.FAILED and (row.key, row.line) in wanted]
    if played.bound.parts:
        return []
    return [mark for row in failed for mark in _find_row_marks(played, row, wanted[row.key, row.line])]


def _find_row_marks(played: PlayResult, row: CheckRow, wanted: Any) -> Iterator[FailureMark]:
    head, _, leaf = row.key.rpartition(".")
    process = head.removeprefix("processes.") if head.startswith("processes.") else ""
    if leaf == "outcome" and head in ("", *(f"turns.{number}" for number in range(1, 100))):
        turn = int(head.removeprefix("turns.")) if head else None
        seen = (
            event.at
            for event in played.record.events
            if isinstance(event, OutcomeReached if turn is None else TurnEnded) and turn == getattr(event, "turn", None)
        )
        yield FailureMark("outcome", "", next(seen, None), None, f"expected {row.wanted}", "")
    elif leaf == "signals" and (not head or process):
        yield from _find_signal_marks(_facts.list_signals(played.record, process or None), wanted, process)
    elif row.key == "spawns":
        seen_at = [at for _, at in _facts.list_agent_starts(played.record)]
        yield from _pair_instants("start", "", _list_items_not_in(seen_at, wanted), _list_items_not_in(wanted, seen_at))
    elif row.key in ("elapsed", "returned") or (process and leaf == "gone_at"):
        kind = {"elapsed": "outcome", "gone_at": "end"}.get(leaf, leaf)
        found = find_instants(played, row.key) or []
        yield from _pair_instants(kind, process, [at for at in found if at is not None], [wanted])


def _find_signal_marks(
    observed: list[tuple[str, int]], wanted: list[tuple[str, int]], process: str
) -> Iterator[FailureMark]:
    extra, missing = _list_items_not_in(observed, wanted), _list_items_not_in(wanted, observed)
    for name in dict.fromkeys(name for name, _ in (*extra, *missing)):
        came, due = ([at for other, at in those if other == name] for those in (extra, missing))
        yield from _pair_instants(name, process, came, due)


def _list_items_not_in(these: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    return [item for item in these if item not in others]


def _pair_instants(kind: str, process: str, observed: list[int], expected: list[int]) -> Iterator[FailureMark]:
    """Pair what was seen with what was expected, in the order of time; of either there may be more."""
    words = _TEXT_BY_MARK_KIND.get(kind, f"the end of {process}" if kind == "end" else kind)
    for number in range(max(len(observed), len(expected))):
        seen = observed[number] if number < len(observed) else None
        due = expected[number] if number < len(expected) else None
        note = "not expected" if due is None else f"expected at {format_instant(due)}"
        yield FailureMark(kind, process, seen, due, note, f"expected here: {words}")
