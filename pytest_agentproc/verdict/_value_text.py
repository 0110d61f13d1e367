"""Owns how expected and seen values are written in a row; compares nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pytest_agentproc.record import format_duration, format_instant
from pytest_agentproc.scenario import TIME_EXPECT_KEYS
from pytest_agentproc.verdict._patterns import has_match

if TYPE_CHECKING:
    from pytest_agentproc.verdict._facts import EndStatus


MAX_QUOTED_CHARS = 300
"""A text of more characters is shown without its middle."""


def quote(text: str) -> str:
    """Write text on one line in double quotes; write the length of a long text, and leave out its middle."""
    if len(text) > MAX_QUOTED_CHARS:
        half = MAX_QUOTED_CHARS // 2
        return f"{len(text)} characters: {quote(text[:half])} ... {quote(text[-half:])}"
    return escape_unprintable_characters(json.dumps(text, ensure_ascii=False))


def escape_unprintable_characters(text: str) -> str:
    """Escape characters that a terminal obeys or hides: control characters but for line ends, DEL, C1, bidi marks."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char == "\n" else _escape_char(char) for char in text)


def _escape_char(char: str) -> str:
    return f"\\u{ord(char):04x}" if ord(char) < 1 << 16 else f"\\U{ord(char):08x}"


def join_names(names: Iterable[str]) -> str:
    """Write names with commas, or `none`."""
    return ", ".join(names) or "none"


def shorten_to_width(words: str, width: int) -> str:
    """Cut words to a width."""
    return words if len(words) <= width else words[: width - 3] + "..."


def show_end_state(state: str) -> str:
    """Write how a process was left."""
    return "still alive" if state == "alive" else state


def show_matcher(matcher: Mapping[str, str]) -> str:
    """Write a text matcher: exact text plainly, others with their word."""
    ((how, text),) = matcher.items()
    return quote(text) if how == "exact" else f"{how} {quote(text)}"


def show_instants(instants: Iterable[int]) -> str:
    """Write instants, or `none`."""
    return join_names(format_instant(at) for at in instants)


def show_signals(signals: Sequence[tuple[str, int]]) -> str:
    """Write signals with their instants."""
    return join_names(f"{name} at {format_instant(at)}" for name, at in signals)


def show_status(status: Mapping[str, Any] | EndStatus) -> str:
    """Write how an agent ended or was to end."""
    given = (
        status if isinstance(status, Mapping) else {key: getattr(status, key) for key in ("code", "signal", "forced")}
    )
    words = []
    if given.get("code") is not None:
        words.append(f"code {given['code']}")
    if given.get("signal") is not None:
        words.append(f"signal {given['signal']}")
    if given.get("forced") is not None:
        words.append("forced" if given["forced"] else "by itself")
    return ", ".join(words) or "unknown"


def show_questions(questions: Iterable[Mapping[str, Any]]) -> str:
    """Write questions with their answers and how long these took; a value of None is left out."""
    return join_names(_show_question(question) for question in questions)


def _show_question(question: Mapping[str, Any]) -> str:
    words = f"hook {question['name']}" if question["kind"] == "hook" else str(question["name"])
    words += f": {question['answer']}" if question["answer"] is not None else ""
    return words if question["after"] is None else f"{words} after {format_duration(question['after'])}"


def show_usage(usage: Mapping[str, Any]) -> str:
    """Write usage figures by their names."""
    return join_names(f"{key}: {json.dumps(value, default=str)}" for key, value in usage.items())


def show_variables(variables: Mapping[str, str | None]) -> str:
    """Write environment variables by their names."""
    return join_names(f"{name}: {'unset' if value is None else quote(value)}" for name, value in variables.items())


def is_text_matching(text: str, matcher: Mapping[str, str]) -> bool:
    """Say whether a text is, contains or fits what a matcher wants."""
    ((how, pattern),) = matcher.items()
    if how == "exact":
        return text == pattern
    return pattern in text if how == "contains" else has_match(pattern, text)


def show_wanted(key: str, wanted: Any) -> str:
    """Write the expected value of a key."""
    show = _FORMATTERS_BY_EXPECT_KEY.get(key.rpartition(".")[2])
    if show is not None:
        return show(wanted)
    return show_matcher(wanted) if isinstance(wanted, Mapping) else str(wanted)


def _show_warning(matcher: Mapping[str, str]) -> str:
    return matcher["exact"] if "exact" in matcher else show_matcher(matcher)


def _show_quoted_words(words: Iterable[str]) -> str:
    return join_names(quote(word) for word in words)


def _show_arguments(wanted: Sequence[str] | Mapping[str, Sequence[str]]) -> str:
    if isinstance(wanted, Mapping):
        return f"contains {_show_quoted_words(wanted['contains'])}"
    return _show_quoted_words(wanted)


def _show_outcome(wanted: str | Mapping[str, Any]) -> str:
    if isinstance(wanted, str):
        return wanted
    return " or ".join(wanted["any_of"]) if "any_of" in wanted else f"not {wanted['not']}"


def _show_status_or_end(wanted: str | Mapping[str, Any] | Sequence[str]) -> str:
    """Write a `status`: of a viewer, of a process, or of a session."""
    if isinstance(wanted, Mapping):
        return show_status(wanted)
    return wanted if isinstance(wanted, str) else join_names(wanted)


_FORMATTERS_BY_EXPECT_KEY: dict[str, Callable[[Any], str]] = {
    **dict.fromkeys(TIME_EXPECT_KEYS, format_instant),
    "outcome": _show_outcome,
    "signals": show_signals,
    "spawns": show_instants,
    "asked": show_questions,
    "agent_status": show_status,
    "argv": _show_arguments,
    "env": show_variables,
    "leaks": join_names,
    "called": show_signals,
    "warnings": lambda wanted: join_names(_show_warning(matcher) for matcher in wanted),
    "status": _show_status_or_end,
    "usage": show_usage,
}
