"""The check of the signals that a process got, and the end of a process without a grace.

With no time between TERM and KILL, the arrival of TERM cannot be seen: TERM may be left out, or be overtaken by KILL.
"""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any

from pytest_agentproc.record import format_duration, format_instant
from pytest_agentproc.verdict import _facts
from pytest_agentproc.verdict._rows import Finding, Verdict, is_time_as_wanted
from pytest_agentproc.verdict._value_text import show_signals
from pytest_agentproc.vocabulary import SIGNALS_THAT_BEGIN_ENDING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_agentproc.plays import PlayResult
    from pytest_agentproc.verdict._facts import EndStatus


_OUTCOMES_WITH_LINGER_GRACE = ("completed", "failed", "incomplete")
"""Outcomes after which `linger_kill_grace` is the grace of an agent that lives on."""


def has_no_grace(played: PlayResult, process: str | None = None, at: int | None = None) -> bool:
    """Say whether the grace between TERM and KILL is 0 for a process; where several may count, whether all are.

    Args:
        played: what was played, with the limits that its supervisor states.
        process: the process, as the record calls it; None: any agent.
        at: the instant at which it was to get TERM; None: not known.
    """
    limits = played.bound.policy.nanoseconds()
    return all(limits.get(name) == 0 for name in _list_grace_limits(played, process, at))


def _list_grace_limits(played: PlayResult, process: str | None, at: int | None) -> list[str]:
    """Name the graces that may count: of a descendant whose agent had ended by itself it is that of leftovers."""
    is_agent = process is None or process.partition(" ")[0] == "agent"
    if not is_agent and at is not None and _facts.had_agent_ended_itself(played.record, at + played.tolerance):
        return ["leftover_kill_grace"]
    if played.bound.scenario.is_session:
        return ["kill_grace"]
    wanted = next((expectation.wanted for expectation in played.bound.expect if expectation.key == "outcome"), None)
    outcome = wanted if isinstance(wanted, str) else None
    if outcome is None and wanted is not None and played.answer is not None:
        outcome = played.answer.outcome  # it may be one of several
    names = ["kill_grace"] * (outcome not in _OUTCOMES_WITH_LINGER_GRACE)
    return names + ["linger_kill_grace"] * (outcome is None or outcome in _OUTCOMES_WITH_LINGER_GRACE)


def merge_final_signals(
    signals: Sequence[tuple[str, int]], tolerance: int, escalation: tuple[str, str]
) -> list[tuple[str, int]]:
    """Take the first signal, KILL, and both at the same instant for one and the same."""
    ends: list[tuple[str, int]] = []
    for name, at in signals:
        is_behind_term = name == "KILL" and ends and ends[-1][0] == escalation[0] and at - ends[-1][1] <= tolerance
        if not is_behind_term:
            ends.append((name, at))
    return [("KILL" if name in escalation else name, at) for name, at in ends]


def was_killed_at_once(wanted: Mapping[str, Any], seen: EndStatus, first: str) -> bool:
    """Say whether an agent was to be ended by the first signal, in whatever way it took that, and was killed."""
    by_term = wanted.get("signal") == first or wanted.get("code") is not None
    return bool(wanted.get("forced")) and by_term and seen.forced and seen.signal == "KILL"


SignalAndInstant = tuple[str, int]
"""A signal and its instant."""


def check_signals(played: PlayResult, process: str | None, wanted: Sequence[SignalAndInstant]) -> Finding:
    """Compare what a process (None: every agent) caught, and what it died of, with what it was to get."""
    pairs = [(name, at) for name, at in wanted]
    seen = _facts.list_signals(played.record, process)
    if _list_signal_names(seen) != _list_signal_names(pairs):
        seen = _drop_repeated_signals(
            _drop_polite_signals(seen, played.bound.first_signal), _find_signal_tolerance(played)
        )
    term = next((at for name, at in pairs if name == played.bound.first_signal), None)
    if term is not None and has_no_grace(played, process, term):
        escalation = (played.bound.first_signal, "KILL")
        ends, due_ends = (
            merge_final_signals(seen, played.tolerance, escalation),
            merge_final_signals(pairs, 0, escalation),
        )
        if _list_signal_names(ends) == _list_signal_names(due_ends) and all(
            is_time_as_wanted(played, due, at) for (_, due), (_, at) in zip(due_ends, ends, strict=True)
        ):
            return Finding(Verdict.PASSED, show_signals(seen))
    if _list_signal_names(seen) != _list_signal_names(pairs):
        return Finding(Verdict.FAILED, show_signals(seen), _describe_name_difference(played, pairs, seen))
    both = zip(pairs, seen, strict=True)
    hints = [
        f"{name} {describe_time_difference(due, at)}"
        for (name, due), (_, at) in both
        if not is_time_as_wanted(played, due, at)
    ]
    return Finding(Verdict.FAILED if hints else Verdict.PASSED, show_signals(seen), ", ".join(hints))


def describe_time_difference(wanted: int, seen: int) -> str:
    """Say how far an instant is from the wanted one."""
    return f"{format_duration(abs(seen - wanted))} {'later' if seen > wanted else 'earlier'}"


def _list_signal_names(signals: Sequence[SignalAndInstant]) -> list[str]:
    return [name for name, _ in signals]


def _find_signal_tolerance(played: PlayResult) -> int:
    """Say within how much time two signals may be one: in real time the quarter second in which nothing is decided."""
    return played.tolerance // 4 if played.record.header.get("clock") == "real" else played.tolerance


def _drop_polite_signals(observed: Sequence[SignalAndInstant], first: str) -> list[SignalAndInstant]:
    """Leave out the polite signals after the first one of a supervisor that begins with another one than TERM."""
    first_place = next((place for place, (name, _) in enumerate(observed) if name == first), len(observed))
    escalation_steps = {*SIGNALS_THAT_BEGIN_ENDING} - {first} if first != "TERM" else set()
    return [sent for place, sent in enumerate(observed) if place < first_place or sent[0] not in escalation_steps]


def _drop_repeated_signals(observed: Sequence[SignalAndInstant], tolerance: int) -> list[SignalAndInstant]:
    """Take a signal that comes twice at one instant for one, as pending ones are: one to a group, and one to each."""
    found: list[SignalAndInstant] = []
    for name, at in observed:
        if not (found and found[-1][0] == name and at - found[-1][1] <= tolerance):
            found.append((name, at))
    return found


def _describe_name_difference(
    played: PlayResult, wanted: Sequence[SignalAndInstant], observed: Sequence[SignalAndInstant]
) -> str:
    """Say which signal was too much, or did not come: the first of which that is true."""
    if sorted(_list_signal_names(wanted)) == sorted(_list_signal_names(observed)):
        return "they came in another order"
    for (name, at), was_wanted in _find_unpaired_signals(played, wanted, observed):
        if was_wanted and not any(_is_same_signal(played, (name, at), came) for came in observed):
            return f"{name} at {format_instant(at)} did not come"
        if not was_wanted and not any(_is_same_signal(played, due, (name, at)) for due in wanted):
            when = f" at {format_instant(at)}" if name in _list_signal_names(wanted) else ""
            return f"{name}{when} was not expected"
    often = next(
        name
        for name in _list_signal_names([*observed, *wanted])
        if _list_signal_names(observed).count(name) != _list_signal_names(wanted).count(name)
    )
    counts = [_format_signal_count(_list_signal_names(signals).count(often)) for signals in (wanted, observed)]
    return f"{often} was to come {counts[0]}, and came {counts[1]}"


def _is_same_signal(played: PlayResult, due: SignalAndInstant, seen: SignalAndInstant) -> bool:
    return due[0] == seen[0] and is_time_as_wanted(played, due[1], seen[1])


def _format_signal_count(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def _find_unpaired_signals(
    played: PlayResult, wanted: Sequence[SignalAndInstant], observed: Sequence[SignalAndInstant]
) -> Iterator[tuple[SignalAndInstant, bool]]:
    """Give the signals without a counterpart in the other list, in order; the flag says that it was wanted.

    First a signal is paired with the same one at its instant, then the others by their names alone.
    """
    missing, extra = [], [*observed]
    for due in wanted:
        same = next((came for came in extra if _is_same_signal(played, due, came)), None)
        if same is None:
            missing.append(due)
        else:
            extra.remove(same)
    for tag, begin, end, first, last in SequenceMatcher(
        None, _list_signal_names(missing), _list_signal_names(extra), autojunk=False
    ).get_opcodes():
        if tag != "equal":
            yield from ((due, True) for due in missing[begin:end])
            yield from ((came, False) for came in extra[first:last])
