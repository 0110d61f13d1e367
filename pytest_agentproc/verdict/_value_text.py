"""Owns how expected and seen values are written in a row, and how two texts are compared and laid side by side."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from pytest_agentproc.record import format_duration, format_instant
from pytest_agentproc.scenario import TIME_EXPECT_KEYS
from pytest_agentproc.verdict._patterns import has_match
from pytest_agentproc.verdict._rows import Finding

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


# The drawing follows ndiff, which needs minutes for texts that have little in common. So lines are paired by their
# order here, and only the first difference of a pair is marked.
_MIN_LONG_TEXT_CHARS = 200
_MAX_COMPARED_LINES = 400
"""So many lines of each text are paired: the time grows with the product of both."""

_MAX_DRAWN_LINES = 30
_LINES_AROUND_DIFFERENCE = 2
_MAX_LINE_CHARS = 90
_CHARS_BEFORE_DIFFERENCE = 40
_DIFF_HEADING, _DIFF_MORE = "- expected, + seen", "... and more"


def judge_text(wanted: Mapping[str, str], observed: str, *, hint: str = "", stripped: str | None = None) -> Finding:
    """Compare a text with a matcher.

    Args:
        wanted: the matcher.
        observed: the text.
        hint: what may explain a failure.
        stripped: the same text in another form that is right, too.
    """
    if is_text_matching(observed, wanted) or (stripped is not None and is_text_matching(stripped, wanted)):
        return Finding.from_comparison(fits=True, seen=quote(observed))
    diff = draw_text_difference(wanted["exact"], observed) if "exact" in wanted else ""
    return Finding.from_comparison(fits=False, seen=quote(observed), hint=hint)._replace(diff=diff)


def draw_text_difference(wanted: str, observed: str) -> str:
    """Draw the lines in which two texts differ, and those around; empty if they are short, or one of them is empty."""
    is_long = "\n" in wanted.strip("\n") or len(wanted) > _MIN_LONG_TEXT_CHARS
    if not is_long or not observed or wanted == observed:
        return ""
    drawn = list(_draw_lines(wanted.split("\n"), observed.split("\n")))
    if len(drawn) > _MAX_DRAWN_LINES:
        drawn[_MAX_DRAWN_LINES:] = [_DIFF_MORE]
    return "\n".join([_DIFF_HEADING, *drawn])


def _draw_lines(wanted: Sequence[str], observed: Sequence[str]) -> Iterator[str]:
    same = _count_equal(wanted, observed)
    begin = max(same - _LINES_AROUND_DIFFERENCE, 0)
    end = begin + _MAX_COMPARED_LINES
    # Junk would be each line that stands often in a long text, such as an empty one.
    matcher = SequenceMatcher(None, wanted[begin:end], observed[begin:end], autojunk=False)
    for group in matcher.get_grouped_opcodes(_LINES_AROUND_DIFFERENCE):
        yield f"@@ line {begin + group[0][1] + 1} @@"
        for tag, first, last, start, stop in group:
            before, after = wanted[begin + first : begin + last], observed[begin + start : begin + stop]
            if tag == "equal":
                yield from (f"  {_cut_line(line, 0)}" for line in before)
            else:
                yield from _draw_replaced_lines(before, after)
    if wanted[end:] != observed[end:]:
        yield _DIFF_MORE


def _draw_replaced_lines(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    """Draw lines that stand in the place of others: in pairs, if there are as many of them."""
    if len(before) != len(after):
        yield from (f"- {_cut_line(line, 0)}" for line in before)
        yield from (f"+ {_cut_line(line, 0)}" for line in after)
        return
    for line, other in zip(before, after, strict=True):
        at = _count_equal(line, other)
        hidden = max(at - _CHARS_BEFORE_DIFFERENCE, 0) if max(len(line), len(other)) > _MAX_LINE_CHARS else 0
        yield f"- {_cut_line(line, hidden)}"
        yield f"+ {_cut_line(other, hidden)}"
        if at:
            yield f"  {' ' * (at - hidden + (len('...') if hidden else 0))}^"


def _cut_line(line: str, hidden: int) -> str:
    """Write a line without its first characters, and no longer than lines are; show blanks at its end."""
    cut = line[hidden : hidden + _MAX_LINE_CHARS]
    dots = "..." if hidden + _MAX_LINE_CHARS < len(line) else ""
    kept = cut.rstrip(" ")
    blanks = "" if dots else "\\u0020" * (len(cut) - len(kept))
    return f"{'...' if hidden else ''}{cut if dots else kept}{blanks}{dots}"


def _count_equal(first: Sequence[str], second: Sequence[str]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))
