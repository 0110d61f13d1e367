"""Owns the page that lists pages: scenarios by the rules that they cover, a column for each way they were played."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from pytest_agentproc.record._page import render_document
from pytest_agentproc.record._page_rows import clip_text, escape_html
from pytest_agentproc.vocabulary import RULES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


_VERDICTS_SHOWN_AS_GOOD = frozenset({"passed", "not applicable"})
_WORDS_BY_COLUMN = {
    "must": "failed at must",
    "should": "failed at should",
    "errors": "errors of the kit or an adapter",
    "undecided": "undecided",
    "known": "known",
    "informational": "informational",
    "passed": "passed",
    "n/a": "not applicable",
}
"""What is counted, by the columns of the summary, in the order of the page."""

_COLUMNS_SHOWN_AS_BAD = ("must", "errors", "undecided")
_RULE_OF_UNASSIGNED_SCENARIOS = ""
_NOT_PLAYED_HTML = '<span class="aside">not played</span>'


class IndexEntry(NamedTuple):
    """One play.

    Args:
        name: the scenario's.
        claim: what must be true of a supervisor.
        covers: the rules that it is about.
        way: how it was played: subject, backend, clock.
        verdict: what came of it.
        columns: the columns of the summary in which it counts.
        file: its page, beside the index; "" if none was kept.
    """

    name: str
    claim: str
    covers: tuple[str, ...]
    way: tuple[str, ...]
    verdict: str
    columns: tuple[str, ...]
    file: str = ""


def render_index(entries: Iterable[IndexEntry], conclusions: Sequence[str] = ()) -> str:
    """Write the list of all pages as an HTML page; the order of the entries does not count.

    Args:
        entries: what was judged; a scenario that covers two rules stands below both.
        conclusions: the sentence on each subject.
    """
    played = sorted(entries)
    ways = sorted({entry.way for entry in played})
    heads = "".join(f'<th scope="col">{"<br>".join(map(escape_html, way))}</th>' for way in ways)
    body = "\n".join(
        _render_rule_section(
            rule, [entry for entry in played if rule in (entry.covers or (_RULE_OF_UNASSIGNED_SCENARIOS,))], ways
        )
        for rule in sorted({rule for entry in played for rule in entry.covers or (_RULE_OF_UNASSIGNED_SCENARIOS,)})
    )
    return render_document(
        "agentproc: what was played",
        f'<a class="skip" href="#all">Skip to the scenarios</a>\n<header><h1>What was played</h1>'
        f"{''.join(f'<p>{escape_html(line)}</p>' for line in conclusions)}{_render_verdict_counts(played)}"
        f'</header>\n<main class="list"><table class="index" id="all" tabindex="-1"><thead><tr>'
        f'<th scope="col">scenario</th>{heads}</tr></thead>\n<tbody>\n{body}\n</tbody></table></main>',
    )


def _render_verdict_counts(played: Sequence[IndexEntry]) -> str:
    """Count as the summary does: what is red first."""
    found = Counter(column for entry in played for column in entry.columns)
    counts = [
        (' class="bad"' if column in _COLUMNS_SHOWN_AS_BAD else "", found[column], words)
        for column, words in _WORDS_BY_COLUMN.items()
        if found[column]
    ]
    counts.append(("", len({(entry.name, entry.claim) for entry in played}), "scenarios"))
    items = "".join(f"<li{kind}><b>{count}</b>{words}</li>" for kind, count, words in counts)
    return f'<ul class="counts">{items}</ul>'


def _render_rule_section(rule: str, entries: Sequence[IndexEntry], ways: Sequence[tuple[str, ...]]) -> str:
    title = f"<code>{escape_html(rule)}</code>{escape_html(RULES[rule].demands)}" if rule else "no rule"
    rows = [f'<tr class="rule"><th scope="colgroup" colspan="{len(ways) + 1}">{title}</th></tr>']
    for name, claim in dict.fromkeys((entry.name, entry.claim) for entry in entries):
        own = [entry for entry in entries if (entry.name, entry.claim) == (name, claim)]
        cells = "".join(
            f"<td>{', '.join(_render_verdict_cell(entry) for entry in own if entry.way == way) or _NOT_PLAYED_HTML}"
            "</td>"
            for way in ways
        )
        words = f'{escape_html(clip_text(claim, 300))}<span class="id">{escape_html(clip_text(name, 200))}</span>'
        rows.append(f'<tr><th scope="row">{words}</th>{cells}</tr>')
    return "\n".join(rows)


def _render_verdict_cell(entry: IndexEntry) -> str:
    is_should = "should" in entry.columns and "must" not in entry.columns
    kind = "should" if is_should else "good" if entry.verdict in _VERDICTS_SHOWN_AS_GOOD else "bad"
    verdict = f'<span class="{kind}">{escape_html(entry.verdict)}{" (should)" if is_should else ""}</span>'
    return f'<a href="{escape_html(entry.file)}">{verdict}</a>' if entry.file else verdict
