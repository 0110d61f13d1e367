"""Owns the checks of a session: its turns, background turns, statuses and viewers, as the subject reports them.

A supervisor may end a turn whose prompt it never delivered: it was cancelled, refused, or its time was up. It cannot
have an answer to that prompt. So `completed` is wrong there, and so are words that the agent said in another turn.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from pytest_agentproc.events import (
    BackgroundEnded,
    InputRead,
    Payload,
    ProcessEnded,
    StartReported,
    StepBegun,
    TurnEnded,
)
from pytest_agentproc.plays import PlayResult
from pytest_agentproc.record import format_instant
from pytest_agentproc.verdict._facts import select_session_play
from pytest_agentproc.verdict._rows import (
    CheckRow,
    Finding,
    Verdict,
    is_duration_as_wanted,
    is_time_as_wanted,
)
from pytest_agentproc.verdict._value_text import is_text_matching, join_names, judge_text, quote, show_signals
from pytest_agentproc.vocabulary import OUTCOME_BY_LIMIT, Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_agentproc.record import Record
    from pytest_agentproc.vocabulary import RunReport, View


ExpectationCheck = Callable[[PlayResult, Any], Finding]
FINDING_NOT_REPORTED = Finding(Verdict.UNDECIDED, "not reported by the subject")
_LISTS_OF_TURNS = ("turns", "background")
_TURN_KEY_PATTERN = re.compile(r"turns\.(\d+)\.")
_OUTCOMES_OF_LIMITS = (*OUTCOME_BY_LIMIT.values(),)
"""Outcomes of a turn whose time was over."""
_STEPS_THAT_END_A_TURN = ("acknowledge", "answer", "result")
"""Steps with which an agent ends the turn in its hands: what it says behind them belongs to another."""
_COMPARED_PROMPT_CHARS = 20
"""So many characters show which prompt it is."""
_HINT_OF_UNDELIVERED_ANSWER = "deliver the prompt, or end its turn with another outcome"


def build_reported_check(name: str, judge: Callable[[PlayResult, Any, Any], Finding]) -> ExpectationCheck:
    """Make the check of a field of an answer: `judge` gets what was reported and what is wanted, if it was reported."""

    def check_reported_field(played: PlayResult, wanted: Any) -> Finding:
        seen = getattr(played.answer, name)
        if seen is None and name == "text" and played.answer is not None:
            if played.answer.outcome is not None and is_text_matching("", wanted):
                return Finding(Verdict.PASSED, "none")  # some write None for an answer without words
            return describe_missing_text(played.answer)
        return FINDING_NOT_REPORTED if seen is None else judge(played, seen, wanted)

    return check_reported_field


def describe_missing_text(answer: RunReport) -> Finding:
    """Say that there is no text; an ending that is no answer often has none."""
    if answer.outcome in (None, "completed"):
        return FINDING_NOT_REPORTED
    return Finding(Verdict.UNDECIDED, f"there is no text: the outcome is {answer.outcome}")


def find_session_check(key: str, check_of: Callable[[str], ExpectationCheck | None]) -> ExpectationCheck | None:
    """Find the check of a key of a session; None if it is none.

    Args:
        key: the expect key, dotted.
        check_of: finds the check of the same key of a run.
    """
    head, _, rest = key.partition(".")
    if head in _LISTS_OF_TURNS and rest:
        number, _, leaf = rest.partition(".")
        check = check_of(leaf)
        return None if check is None else _build_turn_check(head, int(number), leaf, check)
    if head == "viewers":
        name, _, leaf = rest.rpartition(".")
        return _build_viewer_check(name, leaf)
    return _CHECKS_OF_SESSIONS.get(key)


def is_turn_check(key: str) -> bool:
    """Say whether a check is about one turn or background turn."""
    head, _, rest = key.partition(".")
    return head in _LISTS_OF_TURNS and bool(rest)


def find_turn_number(key: str) -> int | None:
    """Give the number of the turn that a check is about; None if it is about none."""
    found = _TURN_KEY_PATTERN.match(key)
    return None if found is None else int(found[1])


def is_check_of_earlier_turn(key: str, others: Iterable[str]) -> bool:
    """Say whether a check is about a turn, and each of the others about a later one: one ends after the other."""
    number, *later = [find_turn_number(name) for name in (key, *others)]
    numbers = [other for other in later if other is not None]
    return number is not None and len(numbers) == len(later) and number < min(numbers, default=0)


def has_turn_ended(record: Record, key: str) -> bool:
    """Say whether the turn that a check is about came to its end, as the supervisor's side of the record reports it."""
    head, number, _ = key.split(".", 2)
    if head == "turns":
        return any(isinstance(event, TurnEnded) and event.turn == int(number) for event in record.events)
    return sum(isinstance(event, BackgroundEnded) and event.text != "" for event in record.events) >= int(number)


def _build_turn_check(head: str, number: int, leaf: str, check: ExpectationCheck) -> ExpectationCheck:
    def check_turn(played: PlayResult, wanted: Any) -> Finding:
        assert played.answer is not None
        turns = played.answer.turns if head == "turns" else played.answer.background
        if turns is None:
            return FINDING_NOT_REPORTED
        if len(turns) < number:
            kind = "turn" if head == "turns" else "background turn"
            count = f"was 1 {kind}" if len(turns) == 1 else f"were {len(turns) or 'no'} {kind}s"
            return Finding(Verdict.FAILED, f"there {count}")
        seen = turns[number - 1].elapsed
        may_wait = leaf == "elapsed" and head == "turns" and _has_waited_for_agent(played, number, wanted)
        if leaf == "elapsed" and seen is not None and (may_wait or is_duration_as_wanted(played, wanted, seen)):
            return Finding(Verdict.PASSED, format_instant(seen))
        outcome = turns[number - 1].outcome
        is_undelivered = outcome == Outcome.HANDSHAKE_FAILED or (
            outcome not in _OUTCOMES_OF_LIMITS and not _was_delivered(played, number)
        )
        if leaf == "elapsed" and head == "turns" and is_undelivered:
            return Finding(Verdict.NOT_APPLICABLE, "its prompt was never delivered, and elapsed counts from there")
        return check(played.select_part(turns[number - 1]), wanted)

    return check_turn


def _has_waited_for_agent(played: PlayResult, number: int, wanted: int) -> bool:
    """Say whether a turn took longer than expected because its client waited for an agent.

    A client that reports no statuses cannot say that the session is ready at once. It may report a timed-out turn when
    the agent has ended that turn, or has exited. It may also report it at once, in words of its own, and hold the next
    prompt back until then, or until the next agent has shaken hands. The turn begins when the agent reads the prompt.
    """
    answer = played.answer
    if answer is None or answer.turns is None or answer.statuses is not None:
        return False
    over, let_go = _find_turn_end(played.record, number)
    seen = answer.turns[number - 1].elapsed
    if over is None or seen is None or seen < wanted:
        return False
    if answer.turns[number - 1].outcome in _OUTCOMES_OF_LIMITS:
        return any(over - at <= played.tolerance for at in let_go)
    if number == 1 or answer.turns[number - 2].outcome == "completed":
        return False
    read_at = _find_reading_of_prompt(played, number, over - seen)
    return read_at is not None and is_duration_as_wanted(played, wanted, over - read_at)


def _find_reading_of_prompt(played: PlayResult, number: int, since: int) -> int | None:
    """Give the first instant, from `since` on, at which an agent read the beginning of a prompt; None if none did."""
    prompt = [action.value for action in played.bound.drive if action.kind == "prompt"][number - 1]
    start = json.dumps(prompt[:_COMPARED_PROMPT_CHARS])[1:-1].encode()
    read = (event for event in played.record.events if isinstance(event, InputRead) and event.at >= since)
    return next((event.at for event in read if isinstance(event.bytes, bytes) and start in event.bytes), None)


def _find_turn_end(record: Record, number: int) -> tuple[int | None, list[int]]:
    """Give when a turn was reported as over, and when an agent ended a turn, or exited, before that."""
    let_go: list[int] = []
    for event in record.events:
        match event:
            case TurnEnded() if event.turn == number:
                return event.at, let_go
            case ProcessEnded():
                let_go.append(event.at)
            case StepBegun() if event.step in _STEPS_THAT_END_A_TURN:
                let_go.append(event.at)
    return None, let_go


def _check_background(_played: PlayResult, turns: Sequence[RunReport], wanted: int) -> Finding:
    texts = join_names(quote(turn.text or "") for turn in turns)
    seen = f"{len(turns)}: {texts}" if turns else "none"
    return Finding.from_comparison(fits=len(turns) == wanted, seen=seen)


def _check_statuses(_played: PlayResult, observed: Sequence[str], wanted: Sequence[str]) -> Finding:
    return Finding.from_comparison(
        fits=_drop_transient_ready(observed) == _drop_transient_ready(wanted), seen=join_names(observed)
    )


def _drop_transient_ready(statuses: Sequence[str]) -> list[str]:
    """Leave out a `ready` that a session passes through between its handshake and the prompt that waits for it."""
    return [
        status
        for before, status, after in zip(("", *statuses), statuses, (*statuses[1:], ""), strict=False)
        if (status, after) != ("ready", "prompting") or before not in ("starting", "restarting")
    ]


def _compare_order(seen: Sequence[str] | None, wanted: Sequence[str]) -> Finding:
    """Compare the order of events, and name the first event that is not in its place."""
    if seen is None:
        return Finding(Verdict.NOT_APPLICABLE, "the supervisor does not report the order of events")
    pairs = enumerate(zip_longest(seen, wanted), start=1)
    hint = next(
        (
            f"event {place} is {came or 'missing'}, and {due or 'no event'} was expected there"
            for place, (came, due) in pairs
            if came != due
        ),
        "",
    )
    return Finding.from_comparison(fits=not hint, seen=str([*seen]), hint=hint)


def _build_viewer_check(name: str, leaf: str) -> ExpectationCheck:
    def judge_viewer(_played: PlayResult, views: Mapping[str, View], wanted: Any) -> Finding:
        if name not in views:
            return Finding(Verdict.NOT_EXERCISED, f"there was no viewer {name}")
        seen = getattr(views[name], leaf)
        if leaf == "saw":
            return _compare_order(seen, tuple(wanted))
        return Finding.from_comparison(fits=seen == wanted, seen=seen) if leaf == "status" else judge_text(wanted, seen)

    return build_reported_check("viewers", judge_viewer)


def _check_callback_calls(
    played: PlayResult, observed: Sequence[tuple[str, int]], wanted: Sequence[tuple[str, int]]
) -> Finding:
    same = [name for name, _ in observed] == [name for name, _ in wanted]
    fits = same and all(is_time_as_wanted(played, due, at) for (_, due), (_, at) in zip(wanted, observed, strict=True))
    return Finding.from_comparison(fits=fits, seen=show_signals(observed))


_CHECKS_OF_SESSIONS: dict[str, ExpectationCheck] = {
    "background": build_reported_check("background", _check_background),
    "status": build_reported_check("statuses", _check_statuses),
    "called": build_reported_check("called", _check_callback_calls),
}


# Prompts that were not delivered.


def fail_undelivered_answers(played: PlayResult, rows: Sequence[CheckRow]) -> list[CheckRow]:
    """Fail the outcome of each turn that is reported as answered though no agent got its prompt.

    No limit and no delay explains that, so it is red at must, whether or not the file states the outcome. A prompt for
    which the script does not wait says nothing: its agent may have answered before it read.
    """
    found = list(rows)
    for prefix in [f"sessions.{name}." for name in played.bound.parts] or [""]:
        part, _ = select_session_play(played, f"{prefix}turns")
        for number, seen in _find_undelivered_answers(part):
            key = f"{prefix}turns.{number}.outcome"
            stated = next((row for row in rows if row.key == key and row.level == "must"), None)
            if stated is None:
                found.append(CheckRow(key, 0, "no answer", seen, Verdict.FAILED, _HINT_OF_UNDELIVERED_ANSWER))
            else:
                found[rows.index(stated)] = replace(
                    stated, seen=seen, verdict=Verdict.FAILED, hint=_HINT_OF_UNDELIVERED_ANSWER, unstated=()
                )
    return found


def _find_undelivered_answers(played: PlayResult) -> Iterator[tuple[int, str]]:
    """Yield each turn that cannot have the answer that it is reported with, and what is reported."""
    turns = () if played.answer is None else played.answer.turns or ()
    prompts, counts = _count_deliveries(played)
    if not counts:
        return
    left = dict(counts)
    prompts = prompts[: _count_awaited_prompts(played.bound.scenario.scripts)]
    for number, (prompt, turn) in enumerate(zip(prompts, turns, strict=False), 1):
        words = _find_words_of_another(turns, number)
        if turn.outcome != "completed" and not words:
            continue
        left[prompt] -= 1
        if left[prompt] < 0:
            yield number, f"{turn.outcome}{words}, and no agent got this prompt"


def _count_awaited_prompts(scripts: Iterable[Sequence[Any]]) -> int:
    """Count the prompts that the scripts wait for; 0 if one waits for none: its agent may answer unasked."""
    waits = ([step.value.get("eof") for step in script if step.name == "wait_for"] for script in scripts)
    counts = [max((number for number in numbers if isinstance(number, int)), default=0) for numbers in waits]
    return sum(counts) if all(counts) else 0


def _find_words_of_another(turns: Sequence[RunReport], number: int) -> str:
    """Say whose words a turn has, if it has the whole text of another one that was answered."""
    text = turns[number - 1].text
    for place, turn in enumerate(turns, 1):
        if text and place != number and turn.text == text and turn.outcome == "completed":
            return f" with {quote(text)}, the words of turn {place}"
    return ""


def _count_deliveries(played: PlayResult) -> tuple[list[str], dict[str, int] | None]:
    """Give the prompts of a session, and how often its agents got each; None if the record cannot tell.

    A prompt without a line is the usual one: a test that holds the session itself asks others.
    """
    if not played.bound.scenario.is_session:
        return [], {}
    prompts = [_squeeze(action.value) for action in played.bound.drive if action.kind == "prompt" and action.line]
    texts = _list_received_texts(played.record)
    return prompts, None if texts is None else {prompt: sum(prompt in text for text in texts) for prompt in prompts}


def _was_delivered(played: PlayResult, number: int) -> bool:
    """Say whether an agent got the prompt of a turn, as far as the record can tell."""
    prompts, counts = _count_deliveries(played)
    return number > len(prompts) or counts is None or counts[prompts[number - 1]] > 0


def _list_received_texts(record: Record) -> list[str] | None:
    """Give every text that an agent got: in an object, as a line of its own, or as an argument.

    None: not all of it was kept, or the agent did not read a line to its end.
    """
    read: dict[str, list[bytes]] = {}
    found: list[str] = []
    for event in record.events:
        if isinstance(event, InputRead):
            if isinstance(event.bytes, Payload):
                return None
            read.setdefault(event.process, []).append(event.bytes)
        elif isinstance(event, StartReported):
            if any(len(word.encode()) >= event.given["longest"] for word in event.given["argv"]):
                return None
            found += map(_squeeze, event.given["argv"])
    for pieces in read.values():
        for line in b"".join(pieces).decode(errors="replace").split("\n"):
            try:
                found += map(_squeeze, _iterate_texts(json.loads(line)))
            except (ValueError, RecursionError):
                if line.startswith("{"):
                    return None
                found.append(_squeeze(line))
    return found


def _iterate_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _iterate_texts(item)


def _squeeze(text: str) -> str:
    """Give a text with one space for each stretch of white space, which supervisors may write in other ways."""
    return " ".join(text.split())
