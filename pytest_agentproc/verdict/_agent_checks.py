"""Checks of the agent's side: its input, its questions and their answers, how often it was started."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from pytest_agentproc.events import InputRead, QuestionAnswered, QuestionAsked, SignalStrayed, StartFacts, StartReported
from pytest_agentproc.record import describe_stray_target, format_duration, format_instant
from pytest_agentproc.verdict._facts import find_gone_at, list_agent_starts, was_agent_started
from pytest_agentproc.verdict._rows import Finding, Verdict, is_duration_as_wanted, is_time_as_wanted
from pytest_agentproc.verdict._value_text import (
    join_names,
    judge_text,
    quote,
    show_instants,
    show_questions,
    show_variables,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_agentproc.plays import PlayResult
    from pytest_agentproc.record import Record


AskedQuestion = dict[str, Any]


def list_agent_questions(record: Record) -> list[AskedQuestion]:
    """List every question, in the order in which they were asked, with its answer and the time that took."""
    asked: dict[tuple[str, int], AskedQuestion] = {}
    start_instants: dict[tuple[str, int], int] = {}
    for event in record.events:
        if isinstance(event, QuestionAsked):
            key = event.process, event.number
            asked[key] = {"kind": event.kind, "name": event.asked, "answer": "none", "after": None}
            start_instants[key] = event.at
        elif isinstance(event, QuestionAnswered) and (key := (event.process, event.number)) in asked:
            asked[key] |= {"answer": event.answer, "after": event.at - start_instants[key]}
    return list(asked.values())


def _check_agent_questions(played: PlayResult, wanted: Sequence[Mapping[str, Any]]) -> Finding:
    seen = list_agent_questions(played.record)
    for number, (due, came) in enumerate(zip_longest(wanted, seen), 1):
        hint = _describe_question_difference(played, due, came)
        if hint:
            return Finding(Verdict.FAILED, show_questions(seen), f"question {number}: {hint}")
    return Finding(Verdict.PASSED, show_questions(seen))


def _describe_question_difference(
    played: PlayResult, due: Mapping[str, Any] | None, question: AskedQuestion | None
) -> str:
    """Say in what a question differs from the one that was expected; nothing if in nothing that is checked."""
    if due is None or question is None:
        return "it was not expected" if due is None else "it was not asked"
    if (due["kind"], due["name"]) != (question["kind"], question["name"]):
        return "another one was asked"
    if due["answer"] not in (None, question["answer"]):
        return "it was never answered" if question["answer"] == "none" else f"the agent got {question['answer']}"
    wanted, after = due["after"], question["after"]
    if wanted is None or (after is not None and is_duration_as_wanted(played, wanted, after)):
        return ""
    if after is None:
        return "it was never answered"
    return f"the answer came {format_duration(abs(after - wanted))} {'later' if after > wanted else 'earlier'}"


ASKED_CHECKS: dict[str, Callable[[PlayResult, Any], Finding]] = {"asked": _check_agent_questions}


def _check_spawn_times(played: PlayResult, wanted: Sequence[int]) -> Finding:
    seen = [at for _, at in list_agent_starts(played.record)]
    if len(seen) == len(wanted) and all(is_time_as_wanted(played, *pair) for pair in zip(wanted, seen, strict=True)):
        return Finding(Verdict.PASSED, show_instants(seen))
    more = [
        f"{name}, started at {format_instant(at)}, was not expected" for name, at in list_agent_starts(played.record)
    ]
    return Finding(Verdict.FAILED, show_instants(seen), "; ".join(more[len(wanted) :]))


def _check_processes_at_once(played: PlayResult, wanted: int) -> Finding:
    """Count at each start; a process that ended at that very instant does not count, so no order within it decides.

    In real time an end may be heard of late.
    """
    late = played.tolerance
    lives = [(name, at, find_gone_at(played.record, name)) for name, at in list_agent_starts(played.record)]
    most: list[str] = []
    for newest, at, _ in lives:
        beside = [name for name, start, end in lives if start <= at and (end is None or end > at + late)]
        most = max(most, beside if newest in beside else [*beside, newest], key=len)
    verdict = Verdict.PASSED if len(most) == wanted else Verdict.FAILED
    return Finding(verdict, str(len(most)), join_names(most) if verdict is Verdict.FAILED else "")


CHECKS_OF_AGENT_STARTS: dict[str, Callable[[PlayResult, Any], Finding]] = {
    "spawns": _check_spawn_times,
    "alive_at_once": _check_processes_at_once,
}


def _find_invocation(played: PlayResult, process: str) -> StartFacts | None:
    reports = (event for event in played.record.events if isinstance(event, StartReported))
    return next((report.given for report in reports if report.process == process), None)


def _build_invocation_check(
    check: Callable[[StartFacts, Any], Finding],
) -> Callable[[PlayResult, Any], Finding]:
    def check_agent_input(played: PlayResult, wanted: Any) -> Finding:
        given = _find_invocation(played, "agent")
        return Finding(Verdict.NOT_EXERCISED, "no agent was started") if given is None else check(given, wanted)

    return check_agent_input


def _build_start_check(
    check: Callable[[StartFacts, Any], Finding],
) -> Callable[[PlayResult, str, Any], Finding]:
    def check_start(played: PlayResult, process: str, wanted: Any) -> Finding:
        given = _find_invocation(played, process)
        return Finding(Verdict.NOT_EXERCISED, f"{process} did not run") if given is None else check(given, wanted)

    return check_start


def _cut_to_report_length(given: StartFacts, word: str) -> str:
    """Cut a word where the agent cuts its own report."""
    return word.encode()[: given["longest"]].decode(errors="replace")


_HINT_FOR_OWN_ARGV = "a supervisor that makes the command line itself states cannot=['argv']"
_HINT_FOR_OWN_STDIN = (
    f"the agent reads its prompt from stdin, and a program gets it on its own stdin to pass it on; {_HINT_FOR_OWN_ARGV}"
)
_HINT_FOR_OWN_ENV = "a supervisor with an environment and folder of its own states cannot=['env']"


def _check_argv(given: StartFacts, wanted: Sequence[str] | Mapping[str, Sequence[str]]) -> Finding:
    whole, part = ([], wanted["contains"]) if isinstance(wanted, Mapping) else (wanted, [])
    words, seen = [_cut_to_report_length(given, word) for word in part or whole], given["argv"]
    places = range(len(seen) - len(words) + 1) if part else ()
    fits = (not part and seen == words) or any(seen[place : place + len(words)] == words for place in places)
    return Finding.from_comparison(
        fits=fits, seen=join_names(quote(word) for word in given["argv"]), hint=_HINT_FOR_OWN_ARGV
    )


def _check_env(given: StartFacts, wanted: Mapping[str, str | None]) -> Finding:
    seen = {name: given["env"].get(name) for name in wanted}
    fits = all(
        seen[name] == (None if value is None else _cut_to_report_length(given, value)) for name, value in wanted.items()
    )
    return Finding.from_comparison(fits=fits, seen=show_variables(seen), hint=_HINT_FOR_OWN_ENV)


def _check_cwd(given: StartFacts, wanted: Mapping[str, str]) -> Finding:
    return judge_text(wanted, given["cwd"], hint=_HINT_FOR_OWN_ENV)


def _read_stdin(played: PlayResult) -> str | Finding:
    """Give all that the agent read from stdin; a finding if the record cannot tell."""
    if not was_agent_started(played.record):
        return Finding(Verdict.NOT_EXERCISED, "no agent was started")
    own = [event for event in played.record.events if isinstance(event, InputRead) and event.process == "agent"]
    read = [event.bytes for event in own if isinstance(event.bytes, bytes)]
    if len(read) < len(own):
        size = sum(len(event.bytes) for event in own)
        return Finding(Verdict.NOT_EXERCISED, f"{size} bytes, more than the record keeps of one instant")
    return b"".join(read).decode(errors="replace")


def _check_prompt(played: PlayResult, wanted: str) -> Finding:
    """Look for the prompt in each argument and on stdin, as most CLIs take it either way."""
    text, given = _read_stdin(played), _find_invocation(played, "agent")
    words = [] if given is None else [*given["argv"]]
    if any(wanted in word for word in [*words, *([text] if isinstance(text, str) else [])]):
        return Finding(Verdict.PASSED, quote(wanted))
    if isinstance(text, Finding):
        return text
    if given is not None and any(len(word.encode()) >= given["longest"] for word in words):
        return Finding(Verdict.NOT_EXERCISED, "an argument is longer than the agent reports")
    return Finding(Verdict.FAILED, f"arguments {join_names(map(quote, words))}; stdin {quote(text)}")


def _check_stdin(played: PlayResult, wanted: Mapping[str, str]) -> Finding:
    text = _read_stdin(played)
    if isinstance(text, Finding):
        return text
    hint = "" if played.bound.scenario.is_session else _HINT_FOR_OWN_STDIN
    return judge_text(wanted, text, hint=hint)


CHECKS_OF_RECEIVED_VALUES: dict[str, Callable[[PlayResult, Any], Finding]] = {
    "received.argv": _build_invocation_check(_check_argv),
    "received.env": _build_invocation_check(_check_env),
    "received.cwd": _build_invocation_check(_check_cwd),
    "received.stdin": _check_stdin,
    "received.prompt": _check_prompt,
}
CHECKS_OF_SINGLE_STARTS = {"argv": _build_start_check(_check_argv), "env": _build_start_check(_check_env)}
"""What a start of the agent was given, by the leaf of `processes`."""


_MAX_SHOWN_STRAY_SIGNALS = 3
_REASON_BY_STRAY_SIGNAL_TARGET = {
    "everything": "kill(-1), or a group of number 1, reaches every process that this user may signal; nobody got it",
    "own group": "pytest is in it and so are other tests, and nobody got it: start the agent in a session of its own",
    "itself": "it has no handler of the supervisor's for that, and did not get it",
    "process": "it is no part of this run, and did not get it: signal what was started, not what is named alike",
    "reused": "it is no part of this run, and did not get it: a pid is anybody's once its process is reaped",
    "group": "nobody in it is a part of this run, and nobody got it: a group's number is free once all in it are gone",
    "decoy": "a process beside the run, which nobody has a reason to signal",
}


def list_stray_signals(played: PlayResult) -> list[SignalStrayed]:
    """List the signals that were not meant for the run, in order; those for a pid that was free are among them."""
    return [event for event in played.record.events if isinstance(event, SignalStrayed)]


def check_stray_signals(played: PlayResult, _wanted: str) -> Finding:
    """Say whether every process beside the run was left alone. A signal for a pid that is free harms no process."""
    found = list_stray_signals(played)
    harms = [event for event in found if event.to != "freed"]
    if not harms:
        return Finding(Verdict.PASSED, "; ".join(["unharmed", *_describe_stray_signals(found)]))
    whys = dict.fromkeys(_explain_stray_signal(event) for event in harms)
    return Finding(Verdict.FAILED, "; ".join(_describe_stray_signals(harms)), "; ".join(whys))


def _describe_stray_signals(events: list[SignalStrayed]) -> list[str]:
    words = [_describe_stray_signal(event) for event in events[:_MAX_SHOWN_STRAY_SIGNALS]]
    return (
        [*words, f"{len(events) - _MAX_SHOWN_STRAY_SIGNALS} more"] if len(events) > _MAX_SHOWN_STRAY_SIGNALS else words
    )


def _describe_stray_signal(event: SignalStrayed) -> str:
    words = f"{event.stray} to {describe_stray_target(event)}"
    return f"{words}, sent by {event.place}" if event.place else words


def _explain_stray_signal(event: SignalStrayed) -> str:
    return _REASON_BY_STRAY_SIGNAL_TARGET[event.to] + (", and nobody knows who did" if event.origin else "")
