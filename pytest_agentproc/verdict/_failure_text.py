"""The text of a failure: where, expected and seen, then the timeline and the processes. Never a stack."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING

from pytest_agentproc.errors import ClockError, SubjectError
from pytest_agentproc.events import (
    CallerActed,
    CallerWaits,
    OptionsNotObeyed,
    ProcessEnded,
    ProcessStarted,
    StartReported,
)
from pytest_agentproc.files import shorten_path
from pytest_agentproc.record import format_instant, render_text
from pytest_agentproc.verdict._comparison import choose_overall_verdict, list_unmet_checks
from pytest_agentproc.verdict._facts import find_last_step, list_leaks, list_lines_without_event
from pytest_agentproc.verdict._program_end import find_program_end
from pytest_agentproc.verdict._rows import CheckRow, Verdict
from pytest_agentproc.verdict._value_text import escape_unprintable_characters, quote, shorten_to_width, show_end_state
from pytest_agentproc.vocabulary import ARTIFACT_TEXTS, Outcome, explain_unobeyed_options

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_agentproc.plays import PlayResult
    from pytest_agentproc.record import Record
    from pytest_agentproc.scenario import Scenario


_MAX_TREE_LINES = 40
_MAX_COMMAND_CHARS = 100
_MAX_LEFT_COLUMN_WIDTH = 60


@dataclass(slots=True)
class _ProcessNode:
    """One process, and those that it gave birth to."""

    name: str
    pid: int
    line: int
    depth: int
    above: _ProcessNode | None
    children: list[_ProcessNode] = field(default_factory=list)
    end: str = "not seen to end"
    is_left: bool = False
    argv: Sequence[str] = ()
    """The words with which it was started; empty: they are not known."""
    facts: Sequence[str] = ()
    """What it held when it was left."""


def draw_tree(record: Record, scenario: Scenario) -> list[str]:
    """Draw every process that a run had: its name, pid and end, and the step that started it, or its command.

    A long drawing is cut: the processes that were left, and their parents, stay.

    Args:
        record: what happened.
        scenario: shows the steps as they are written in its file.

    Returns:
        the lines, one for each process, and one for what a left one held; none if there was no process.
    """
    nodes = list(_walk_nodes(_build_nodes(record)))
    kept = _choose_shown_nodes(nodes)
    shown = [node for node in nodes if id(node) in kept]
    source = scenario.text.splitlines()
    pairs = [(_format_left_side(node), _format_right_side(node, shorten_path(scenario.path), source)) for node in shown]
    width = min(_MAX_LEFT_COLUMN_WIDTH, max((len(left) for left, _ in pairs), default=0))
    lines = []
    for node, (left, right) in zip(shown, pairs, strict=True):
        lines.append(f"{left:<{width}}  {right}".rstrip())
        if node.facts:
            lines.append(f"{'  ' * node.depth}    {', '.join(node.facts)}")
    hidden = [node for node in nodes if id(node) not in kept]
    if hidden:
        count = sum(node.is_left for node in hidden)
        lines.append(f"... and {len(hidden)} more, {f'{count} of them left' if count else 'all gone'}")
    return lines


def _build_nodes(record: Record) -> list[_ProcessNode]:
    """Give the processes that the supervisor started, the others below them; then left programs that are no fakes."""
    roots: list[_ProcessNode] = []
    known: dict[str, _ProcessNode] = {}
    for event in record.events:
        if isinstance(event, ProcessStarted):
            above = known.get(event.parent)
            node = _ProcessNode(event.process, event.pid, event.line, above.depth + 1 if above else 0, above)
            known[node.name] = node
            (above.children if above else roots).append(node)
        elif isinstance(event, ProcessEnded) and event.process in known:
            end = f"signal {event.signal}" if event.signal else f"code {event.code}"
            known[event.process].end = f"gone, {end}, at {format_instant(event.at)}"
    _mark_left_processes(record, known, roots)
    return roots


def _mark_left_processes(record: Record, known: Mapping[str, _ProcessNode], roots: list[_ProcessNode]) -> None:
    programs: Mapping[str, str] = record.header.get("programs", {})
    for event in record.events:
        node = known.get(event.process)
        if node is not None and node.above is None and isinstance(event, StartReported):
            program = programs.get(node.name) or programs.get(node.name.rpartition(" ")[0], node.name)
            node.argv = (program, *event.given["argv"])
    for leak in list_leaks(record):
        if leak.pid:  # a program beside the fakes: they have told their pids before
            node = _ProcessNode(leak.process, leak.pid, 0, 0, None, end=show_end_state(leak.leaked), is_left=True)
            roots.append(node)
            node.facts = leak.facts
        elif (left := known.get(leak.process)) is not None:
            left.is_left = True
            left.argv = leak.argv or left.argv
            left.facts = leak.facts
            left.end = show_end_state(leak.leaked) + (
                f", {left.end.partition(', ')[2]}" if leak.leaked == "zombie" else ""
            )


def _walk_nodes(nodes: list[_ProcessNode]) -> Iterator[_ProcessNode]:
    waiting = nodes[::-1]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += node.children[::-1]


def _choose_shown_nodes(nodes: list[_ProcessNode]) -> set[int]:
    """Choose the processes to show: first those that were left and all above them, then the others, in order."""
    kept: set[int] = set()
    for shown in [*(node for node in nodes if node.is_left), *nodes]:
        line: list[_ProcessNode] = []
        above: _ProcessNode | None = shown
        while above is not None and id(above) not in kept:
            line.append(above)
            above = above.above
        if len(kept) + len(line) <= _MAX_TREE_LINES:
            kept.update(id(node) for node in line)
    return kept


def _format_left_side(node: _ProcessNode) -> str:
    pid = f" (pid {node.pid})" if node.pid else ""
    return f"{'  ' * node.depth}{node.name}{pid}: {node.end}"


def _format_right_side(node: _ProcessNode, path: str, source: Sequence[str]) -> str:
    if not 0 < node.line <= len(source):
        command = escape_unprintable_characters(shlex.join(node.argv)).replace("\n", "\\n")
        return shorten_to_width(command, _MAX_COMMAND_CHARS)
    return f"{path}:{node.line}: {shorten_to_width(source[node.line - 1].strip(), _MAX_COMMAND_CHARS)}"


_VERDICTS_THAT_HARM_NOTHING = (Verdict.PASSED, Verdict.NOT_APPLICABLE, Verdict.KNOWN, Verdict.NOT_EXERCISED)
"""The verdicts of checks that need no words, as they are listed."""


_MAX_PROGRAM_STDERR_LINES = 12
"""So many lines of a program's stderr are shown: the last ones."""


def explain_play(played: PlayResult, rows: Sequence[CheckRow]) -> str:
    """Say what was expected, what was seen, and how it came to that.

    Returns:
        `file:line: claim` of the first check that did not pass; those checks with file and line, expected and seen; the
        step that the agent was at; the tree at the end, if a process was left that was to end; the timeline of both
        sides; the verdict with the record's digest.
    """
    scenario = played.bound.scenario
    reason = played.record.header.get("out_of_reach")
    clock = [f"it was played in real time: {reason}"] if reason else []
    verdict = f"{choose_overall_verdict(rows)}, record {played.record.digest()}"
    return "\n".join([describe_findings(played, rows), *clock, "", render_text(played.record, scenario), "", verdict])


def describe_findings(played: PlayResult, rows: Sequence[CheckRow]) -> str:
    """Give what `explain_play` gives, but for the timeline and the verdict; the last line says what to look up."""
    scenario = played.bound.scenario
    is_theirs = isinstance(played.fault, SubjectError)
    bad = [row for row in list_unmet_checks(rows) if not (is_theirs and row.verdict is Verdict.NOT_EXERCISED)]
    place = next((row.line for row in bad if row.line), None) or _find_first_nonblank_line(scenario)
    path = shorten_path(scenario.path)
    parts = [f"{path}:{place}: {scenario.claim}"]
    if scenario.harm and any(row.level == "must" and row.verdict is Verdict.FAILED for row in bad):
        parts.append(f"  harm: {scenario.harm}")
    parts.append("")
    for row in bad:
        parts += _format_row(path, row)
    for verdict in _VERDICTS_THAT_HARM_NOTHING:
        names = [row.key for row in rows if row.verdict is verdict and row not in bad]
        if names:
            parts.append(f"  {verdict}: {', '.join(names)}")
    for process in played.bound.parts or ("agent",):
        line = find_last_step(played.record, process)
        if line:
            whose = "the agent's" if process == "agent" else f"{process}'s"
            parts.append(f"  {whose} last step: {path}:{line}: {_quote_step(scenario, line)}")
    if isinstance(played.fault, ClockError):
        parts += _describe_caller_wait(scenario, played.record)
    parts += [f"  {line}" for line in _describe_unobeyed_options(played.record)]
    parts += _describe_program_end(played.record)
    parts += _quote_lines_without_event(scenario, played.record, bad)
    if any(row.key == "leaks" and row.verdict is Verdict.FAILED for row in rows):
        parts += _draw_final_tree(scenario, played.record)
    if bad:
        parts.append(f"  read more: agentproc explain {_choose_word_to_look_up(scenario, bad[0])}")
    return "\n".join(parts)


def _choose_word_to_look_up(scenario: Scenario, row: CheckRow) -> str:
    """Choose the word to look up: of a failure a rule of the scenario, else the outcome or the key."""
    if row.verdict is not Verdict.FAILED:
        return str(row.verdict)
    if scenario.covers:
        return next(
            (rule for rule in scenario.covers if row.key == "leaks" and rule in _RULES_ABOUT_PROCESS_TREES),
            scenario.covers[0],
        )
    if row.seen in [*Outcome]:
        return row.seen
    return next((name for name in ARTIFACT_TEXTS if row.key.endswith(f".{name}")), row.key.rpartition(".")[2])


_RULES_ABOUT_PROCESS_TREES = ("T1", "T3", "T4", "T6")
"""The rules by which no process may be left."""


def find_first_difference(first: PlayResult, second: PlayResult) -> str:
    """Say in which line the timelines of two plays of one scenario first differ; empty: in none."""
    once, then = (render_text(played.record, played.bound.scenario) for played in (first, second))
    if once == then:
        return ""
    # Each line without its spaces: one side may be wider.
    lines = [[" ".join(line.split()) for line in timeline.splitlines()] for timeline in (once, then)]
    pairs = zip_longest(*lines, fillvalue="nothing")
    line, other = next((pair for pair in pairs if pair[0] != pair[1]), ("a line on one side", "the same on the other"))
    return f"once  {line}\nthen  {other}"


def are_plays_alike(first: PlayResult, second: PlayResult) -> bool:
    """Say whether two plays of one scenario went the same way, but for what a supervisor draws by chance.

    No verdict depends on the ids that a client makes. Input and output count by their size, and a fault of the clock
    without its pids and counts.
    """
    once, then = (
        _RANDOM_TIMELINE_PARTS_PATTERN.sub("", render_text(played.record, played.bound.scenario))
        for played in (first, second)
    )
    return once.split() == then.split()


_RANDOM_TIMELINE_PARTS_PATTERN = re.compile(
    r'(?<=B )"(?:[^"\\\n]|\\.)*"?|(?<=\(pid )\d+|\d+(?=, the pid that )|\d+(?= times\b)'
)


def explain_leaks(scenario: Scenario, record: Record) -> str:
    """Say which processes were left, each at the line of the step that started it, or that it was at.

    Returns:
        the text of a failure as `explain_play` writes it; empty if none was left.
    """
    left = list_leaks(record)
    if not left:
        return ""
    lines = []
    for leak in left:
        place = leak.line or find_last_step(record, leak.process) or _find_first_nonblank_line(scenario)
        words = f"{leak.process} was left ({show_end_state(leak.leaked)}): {_quote_step(scenario, place)}"
        lines.append(f"{shorten_path(scenario.path)}:{place}: {words}".rstrip(": "))
    return "\n".join([*lines, *_draw_final_tree(scenario, record), "", render_text(record, scenario)])


def _describe_unobeyed_options(record: Record) -> list[str]:
    """Say which options the agents were given that the fakes do not obey, and what the real CLI would have done."""
    found: dict[str, list[str]] = {}
    for event in record.events:
        if isinstance(event, OptionsNotObeyed):
            found.setdefault(event.dialect, []).extend(explain_unobeyed_options(event.dialect, event.unobeyed))
    lines = []
    for dialect, options in found.items():
        lines.append(f"the fake {dialect} does not obey these options, which may be the reason:")
        lines += [f"  {option}" for option in dict.fromkeys(options)]
    return lines


def _describe_caller_wait(scenario: Scenario, record: Record) -> list[str]:
    """Say for what the caller of a session waits, if waiting is the last thing it did."""
    done = [event for event in record.events if isinstance(event, CallerActed | CallerWaits)]
    if not done or isinstance(done[-1], CallerActed):
        return []
    waits, line = f"waits {done[-1].waits}".rstrip(), done[-1].line
    return [f"  the caller {waits}: {shorten_path(scenario.path)}:{line}: {_quote_step(scenario, line)}"]


def _describe_program_end(record: Record) -> list[str]:
    """Say how a program that supervised ended, and what it said on stderr before."""
    ended = find_program_end(record)
    if ended is None:
        return []
    lines = [line for line in ended.stderr.splitlines() if line.strip()]
    text = ", and on its stderr stands" if lines else ""
    dots = ["    ..."] if len(lines) > _MAX_PROGRAM_STDERR_LINES else []
    return [
        f"  the program {ended.program}{text}",
        *dots,
        *(f"    {line}" for line in lines[-_MAX_PROGRAM_STDERR_LINES:]),
    ]


_KEYS_THAT_NOISE_EXPLAINS = ("noise", "outcome")
"""The keys whose failure such a line may explain."""

_MAX_QUOTED_NOISE_LINES = 3


def _quote_lines_without_event(scenario: Scenario, record: Record, bad: Sequence[CheckRow]) -> list[str]:
    """Quote the lines that an agent printed, and that are no events, where they may be why a check failed."""
    if not scenario.prints_events or not any(row.key.endswith(_KEYS_THAT_NOISE_EXPLAINS) for row in bad):
        return []
    found = list_lines_without_event(record)
    more = [f"    ... and {len(found) - _MAX_QUOTED_NOISE_LINES} more"] if len(found) > _MAX_QUOTED_NOISE_LINES else []
    lines = [f"    {quote(shorten_to_width(line, _MAX_COMMAND_CHARS))}" for line in found[:_MAX_QUOTED_NOISE_LINES]]
    return ["  lines on stdout that are no JSON object:", *lines, *more] if found else []


def _draw_final_tree(scenario: Scenario, record: Record) -> list[str]:
    drawing = draw_tree(record, scenario)
    return ["  the tree at the end:", *(f"    {line}" for line in drawing)] if drawing else []


def _find_first_nonblank_line(scenario: Scenario) -> int:
    return next((number for number, line in enumerate(scenario.text.splitlines(), 1) if line.strip()), 1)


def _quote_step(scenario: Scenario, line: int) -> str:
    source = scenario.text.splitlines()
    return source[line - 1].strip() if 0 < line <= len(source) else ""


def _format_row(path: str, row: CheckRow) -> list[str]:
    place = f"  {path}:{row.line}" if row.line else ""
    level = "" if row.level == "must" else f" (level {row.level})"
    lines = [
        f"  {row.key}: {row.verdict}{level}{place}",
        f"    expected  {row.wanted}",
        f"    seen      {_indent_lines(row.seen)}",
    ]
    if row.hint:
        lines.append(f"              ({_indent_lines(row.hint)})")
    lines += [f"      {line}".rstrip() for line in row.diff.splitlines()]
    return lines


def _indent_lines(words: str) -> str:
    return words.replace("\n", "\n" + " " * 14)
