"""Owns one check per expect key: the value seen, whether it is the wanted one, and a hint if one applies."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, Any

from pytest_agentproc.record import format_duration, format_instant
from pytest_agentproc.verdict import _facts
from pytest_agentproc.verdict._agent_checks import (
    ASKED_CHECKS,
    CHECKS_OF_AGENT_STARTS,
    CHECKS_OF_RECEIVED_VALUES,
    CHECKS_OF_SINGLE_STARTS,
    check_stray_signals,
)
from pytest_agentproc.verdict._artifact_checks import build_artifacts_check
from pytest_agentproc.verdict._rows import Finding, Verdict, is_duration_as_wanted, is_time_as_wanted
from pytest_agentproc.verdict._session_checks import (
    FINDING_NOT_REPORTED,
    ExpectationCheck,
    build_reported_check,
    find_session_check,
)
from pytest_agentproc.verdict._signal_checks import (
    check_signals,
    describe_time_difference,
    has_no_grace,
    was_killed_at_once,
)
from pytest_agentproc.verdict._value_text import (
    MAX_QUOTED_CHARS,
    is_text_matching,
    join_names,
    judge_text,
    show_end_state,
    show_status,
    show_usage,
)
from pytest_agentproc.vocabulary import INCOMPLETE_ARTIFACTS_WARNING, UNKNOWN_EXIT_WARNING, list_time_names

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pytest_agentproc.events import Leaked
    from pytest_agentproc.plays import PlayResult

_MIN_CHARS_TO_STATE_LENGTH = 80
"""A text of more characters that fits no matcher is shown with its length."""


def find_check(key: str) -> ExpectationCheck | None:
    """Find the check of an expect key; None if there is none."""
    head, _, rest = key.partition(".")
    if head == "artifacts":
        return build_artifacts_check(rest, _check_instant)
    of_session = find_session_check(key, _CHECKS_BY_EXPECT_KEY.get)
    if of_session is not None:
        return of_session
    if key == "elapsed":
        return _check_elapsed_of_run
    if head != "processes":
        return (
            _CHECKS_BY_EXPECT_KEY.get(key)
            or CHECKS_OF_RECEIVED_VALUES.get(key)
            or CHECKS_OF_AGENT_STARTS.get(key)
            or ASKED_CHECKS.get(key)
        )
    process, _, leaf = rest.rpartition(".")
    check = _CHECKS_OF_PROCESSES.get(leaf)
    return None if check is None else _build_process_check(check, process)


def check_leaks(played: PlayResult, wanted: Sequence[str]) -> Finding:
    """Compare the processes that were left with those that were to be left."""
    left = _facts.list_leaks(played.record)
    if sorted(leak.process for leak in left) == sorted(wanted):
        return Finding(Verdict.PASSED, join_names(leak.process for leak in left))
    unwanted = [leak for leak in left if leak.process not in wanted]
    hints = [_describe_leak(leak) for leak in unwanted if leak.line or wanted]
    is_agent_left = any(leak.process.partition(" ")[0] == "agent" for leak in left)
    if not is_agent_left and not _facts.list_signals(played.record) and _is_own_session_left(played, unwanted):
        is_reference = played.reference is None and played.unstated is None
        remedy = "write policy: {containment: subreaper}" if is_reference else "a subreaper or a keeper does"
        hints.append(
            "the agent ended by itself, and then a process group does not lead to a child in a session of its own: "
            f"{remedy}"
        )
    missing = [process for process in wanted if process not in {leak.process for leak in left}]
    hints += [f"{process} was to be left, but is gone" for process in missing]
    seen = join_names(f"{leak.process} ({show_end_state(leak.leaked)})" for leak in left)
    return Finding(Verdict.FAILED, seen, "; ".join(hints), unwanted[0].line if unwanted else 0)


_SPAWN_WAYS_OUT_OF_THE_SESSION = ("new_session", "daemon", "launcher", "refork")


def _is_own_session_left(played: PlayResult, left: Sequence[Leaked]) -> bool:
    """Say whether a process that was left is in a session of its own, where only the weakest containment held."""
    if played.bound.policy.has_containment("subreaper"):
        return False
    steps = [step for script in played.bound.scenario.scripts for step in script]
    ways = {step.line: step.value.get("how") for step in steps if step.name == "spawn"}
    return any(ways.get(leak.line) in _SPAWN_WAYS_OUT_OF_THE_SESSION for leak in left)


def _check_pipes_left(played: PlayResult, wanted: int) -> Finding:
    """Compare the number of pipes that the supervisor has not closed."""
    left = played.pipes_left
    if left is None:
        return Finding(
            Verdict.NOT_APPLICABLE, "its pipes are counted in virtual time alone, and in the kit's own process"
        )
    return Finding.from_comparison(fits=left == wanted, seen=str(left))


def _describe_leak(leak: Leaked) -> str:
    started = f"was started by line {leak.line}" if leak.line else "was not to be left"
    return f"{leak.process} {started}"


def _check_outcome(played: PlayResult, observed: str, wanted: str | Mapping[str, Any]) -> Finding:
    hint = _find_exit_hint(played) or _find_silence_hint(played) if observed == "inactive" else ""
    if isinstance(wanted, str):
        fits = observed == wanted
    else:
        fits = observed in wanted["any_of"] if "any_of" in wanted else observed != wanted["not"]
    return Finding.from_comparison(fits=fits, seen=str(observed), hint=hint)


def _find_exit_hint(played: PlayResult) -> str:
    """Say that the agent that was called inactive had ended by itself."""
    status = _facts.find_end_status(played.record)
    outcome_at = _facts.find_outcome_at(played.record)
    if status is None or status.forced or outcome_at is None or status.at > outcome_at:
        return ""
    return f"the agent had ended by itself, at {format_instant(status.at)}"


def _find_silence_hint(played: PlayResult) -> str:
    """Say that the agent was not silent long enough to be called inactive."""
    limit = played.bound.policy.nanoseconds().get("inactivity_timeout")
    outcome_at = _facts.find_outcome_at(played.record)
    if limit is None or outcome_at is None:
        return ""
    last = _facts.find_last_byte_at(played.record)
    if last is None or outcome_at - last >= limit:
        return ""
    before = f"{format_duration(outcome_at - last)} before" if outcome_at > last else "the same instant"
    return f"the last byte came at {format_instant(last)}, {before}; inactivity_timeout is {format_duration(limit)}"


def _check_exit_code(played: PlayResult, observed: int, wanted: int) -> Finding:
    status = _facts.find_end_status(played.record)
    own = status is not None and observed in status.list_exit_codes()
    hint = (
        f"{observed} is how the agent ended, which agent_status reports; exit_code is the supervisor's own"
        if own
        else ""
    )
    return Finding.from_comparison(fits=observed == wanted, seen=str(observed), hint=hint)


def _check_agent_status(played: PlayResult, wanted: Mapping[str, Any]) -> Finding:
    if not _facts.was_agent_started(played.record):
        return Finding(Verdict.FAILED, "no agent was started")
    return _check_end_status(played, None, wanted)


def _check_end_status(played: PlayResult, process: str | None, wanted: Mapping[str, Any]) -> Finding:
    status = _facts.find_end_status(played.record, process)
    if status is None:
        return Finding(Verdict.FAILED, "it did not end")
    if status.code is None and status.signal is None:
        return Finding(Verdict.UNDECIDED, "nobody knows how it ended")
    fits = all(getattr(status, key) == value for key, value in wanted.items() if value is not None)
    fits = fits or (has_no_grace(played) and was_killed_at_once(wanted, status, played.bound.first_signal))
    return Finding.from_comparison(fits=fits, seen=show_status(status))


def _build_equality_check(name: str) -> ExpectationCheck:
    return build_reported_check(
        name, lambda _, observed, wanted: Finding.from_comparison(fits=observed == wanted, seen=str(observed))
    )


def _check_usage(_played: PlayResult, observed: Mapping[str, Any], wanted: Mapping[str, Any]) -> Finding:
    fits = all(key in observed and observed[key] == value for key, value in wanted.items())
    return Finding.from_comparison(fits=fits, seen=show_usage(observed))


def _check_warnings(played: PlayResult, observed: Sequence[str], wanted: Sequence[Mapping[str, str]]) -> Finding:
    decides = any(key.rpartition(".")[2] == "warnings" for key in played.bound.scenario.catches.values())
    judged = [
        name
        for name in observed
        if name in _WARNINGS_WITH_FIXED_NAMES
        or any(is_text_matching(name, like) for like in wanted)
        or (decides and len(name.split()) > 1)
    ]
    if observed and not wanted and not judged:
        return Finding(Verdict.NOT_APPLICABLE, f"{join_names(observed)}: what else is odd is the subject's own to say")
    return Finding.from_comparison(
        fits=len(judged) == len(wanted) and all(map(is_text_matching, judged, wanted)), seen=join_names(observed)
    )


_WARNINGS_WITH_FIXED_NAMES = (
    "exit_contradicts_result",
    UNKNOWN_EXIT_WARNING,
    "transcript_truncated",
    INCOMPLETE_ARTIFACTS_WARNING,
)
"""The warnings that have a name. A supervisor may have others; a sentence is judged by the files that turn on one."""


def _build_text_check(name: str) -> ExpectationCheck:
    def check_text(played: PlayResult, seen: str | bytes, wanted: Mapping[str, str]) -> Finding:
        text = seen.decode(errors="replace") if isinstance(seen, bytes) else str(seen)
        hint = (
            _describe_text_difference(played, name, wanted["exact"], text)
            if "exact" in wanted
            else _describe_text_size(text)
        )
        stripped = text.rstrip("\r\n") if _is_agent_output(played, name) else None
        return judge_text(wanted, text, hint=hint, stripped=stripped)

    return build_reported_check(name, check_text)


def _check_error(played: PlayResult, wanted: Mapping[str, str]) -> Finding:
    """Take None for an empty text where there was to be no error: some write the one for that, others the other.

    Where there was to be one, None says nothing of it, and an empty text that there was none.
    """
    assert played.answer is not None
    if played.answer.error is None and is_text_matching("", wanted):
        return Finding(Verdict.PASSED, "none")
    return _build_text_check("error")(played, wanted)


def _is_agent_output(played: PlayResult, name: str) -> bool:
    """Say whether a text is what an agent printed and nothing else: it may include the end of its last line."""
    return name in ("text", "transcript") and played.bound.scenario.mode == "text"


def _describe_text_size(text: str) -> str:
    """Say how long a text is, if it is shown whole and too long to count by eye."""
    return f"it has {len(text)} characters" if _MIN_CHARS_TO_STATE_LENGTH < len(text) <= MAX_QUOTED_CHARS else ""


def _describe_text_difference(played: PlayResult, name: str, wanted: str, observed: str) -> str:
    if wanted.split() == observed.split():
        return "they differ in white space only"
    transcript = played.answer.transcript if played.answer is not None and name == "text" else None
    if wanted and transcript and wanted in transcript and wanted not in observed:
        return "the transcript has it: it is not the final message"
    lengths = (
        "" if len(observed) == len(wanted) else f": {len(wanted)} characters were wanted, and {len(observed)} came"
    )
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(wanted, observed, strict=False)))
    return f"they differ from character {same + 1} on{lengths}" if same else ""


def _check_instant(played: PlayResult, wanted: int, observed: int) -> Finding:
    if is_time_as_wanted(played, wanted, observed):
        return Finding(Verdict.PASSED, format_instant(observed))
    hint = describe_time_difference(wanted, observed)
    if played.tolerance and observed > wanted:
        hint += f", and {format_duration(played.compute_allowed_delay(observed))} are allowed here"
    policy = {} if played.bound.parts else played.bound.policy.nanoseconds()
    is_session = played.answer is not None and played.answer.turns is not None
    theirs = policy.keys() & {*list_time_names(is_session=is_session)}
    limits = [name for name in policy if name in theirs and policy[name] == observed != 0]
    if limits:
        hint += f"; {format_instant(observed)} is {' and '.join(limits)}"
    return Finding(Verdict.FAILED, format_instant(observed), hint)


def _check_elapsed(played: PlayResult, wanted: int) -> Finding:
    assert played.answer is not None
    seen = played.answer.elapsed
    started = _facts.find_first_seen_at(played.record, "agent")
    end = None if seen is None or started is None else started + seen
    if seen is not None and is_duration_as_wanted(
        played, wanted, seen, end
    ):  # it counts from when the start was through
        return Finding(Verdict.PASSED, format_instant(seen))
    return FINDING_NOT_REPORTED if seen is None else _check_instant(played, wanted, seen)


def _check_elapsed_of_run(played: PlayResult, wanted: int) -> Finding:
    """Judge when a supervisor knew its outcome by what it did, if it does not say.

    It had its outcome when it first signalled the tree, or returned. That is right at the wanted instant, or, for a
    signal, a stated grace of a lingering agent after it. A return before the wanted instant is wrong whatever it knew.
    Anything later shows nothing: it may have known, and waited.
    """
    finding = _check_elapsed(played, wanted)
    started, acted = _facts.find_first_seen_at(played.record, "agent"), _facts.find_first_action_at(played.record)
    if finding is not FINDING_NOT_REPORTED or started is None or acted is None:
        return finding
    returned = _facts.find_returned_at(played.record)
    graces = (0,) if acted == returned else _list_graces_after_completion(played)
    if any(is_duration_as_wanted(played, wanted, acted - started - grace, acted) for grace in graces):
        return Finding(Verdict.PASSED, f"acted at {format_instant(acted)}")
    if returned is not None and returned - started < wanted - played.compute_allowed_delay(returned) // 4:
        return Finding(
            Verdict.FAILED,
            f"returned at {format_instant(returned)}",
            describe_time_difference(wanted, returned - started),
        )
    return finding


def _list_graces_after_completion(played: PlayResult) -> tuple[int, ...]:
    """Give the times, as stated, that may lie between the outcome of a completed run and its first signal."""
    limits = played.bound.policy.nanoseconds()
    linger, background = (limits.get(name) or 0 for name in ("linger_grace", "background_grace"))
    is_open = any(
        expectation.key == "outcome" and expectation.wanted not in ("completed", "failed")
        for expectation in played.bound.expect
    )
    return (0,) if is_open else (0, linger, linger + background)


def _check_return_instant(played: PlayResult, wanted: int) -> Finding:
    seen = _facts.find_returned_at(played.record)
    return Finding(Verdict.FAILED, "it did not return") if seen is None else _check_instant(played, wanted, seen)


def _check_agent_signals(played: PlayResult, wanted: Sequence[tuple[str, int]]) -> Finding:
    return check_signals(played, None, wanted)


def _check_process_end(played: PlayResult, process: str, wanted: int) -> Finding:
    seen = _facts.find_gone_at(played.record, process)
    return Finding(Verdict.FAILED, "it never ended") if seen is None else _check_instant(played, wanted, seen)


def _check_process_alive(played: PlayResult, process: str, wanted: int) -> Finding:
    start = _facts.find_first_seen_at(played.record, process)
    end = _facts.find_gone_at(played.record, process)
    assert start is not None
    seen = f"started at {format_instant(start)}, " + (
        "never ended" if end is None else f"ended at {format_instant(end)}"
    )
    return Finding.from_comparison(fits=start <= wanted + played.tolerance and (end is None or wanted < end), seen=seen)


def _build_process_check(check: Callable[[PlayResult, str, Any], Finding], process: str) -> ExpectationCheck:
    def check_if_started(played: PlayResult, wanted: Any) -> Finding:
        if _facts.find_first_seen_at(played.record, process) is None:
            return Finding(Verdict.NOT_EXERCISED, f"there was no process {process}")
        return check(played, process, wanted)

    return check_if_started


_CHECKS_OF_PROCESSES: dict[str, Callable[[PlayResult, str, Any], Finding]] = {
    "signals": check_signals,
    "gone_at": _check_process_end,
    "alive_at": _check_process_alive,
    "status": _check_end_status,
    **CHECKS_OF_SINGLE_STARTS,
}
_CHECKS_BY_EXPECT_KEY: dict[str, ExpectationCheck] = {
    "outcome": build_reported_check("outcome", _check_outcome),
    "exit_code": build_reported_check("exit_code", _check_exit_code),
    "agent_status": _check_agent_status,
    "text": _build_text_check("text"),
    "transcript": _build_text_check("transcript"),
    "stop_reason": _build_equality_check("stop_reason"),
    "model": _build_equality_check("model"),
    "usage": build_reported_check("usage", _check_usage),
    "elapsed": _check_elapsed,
    "returned": _check_return_instant,
    "signals": _check_agent_signals,
    "error": _check_error,
    "warnings": build_reported_check("warnings", _check_warnings),
    "noise": _build_equality_check("noise"),
    "stderr_tail": _build_text_check("stderr_tail"),
    "leaks": check_leaks,
    "pipes_left": _check_pipes_left,
    "unrelated_processes": check_stray_signals,
}
