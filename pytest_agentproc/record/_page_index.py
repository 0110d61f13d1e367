"""Owns the page that lists pages: scenarios by the rules that they cover, a column for each way they were played."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pytest_agentproc.record._page import render_document
from pytest_agentproc.record._page_rows import clip_text, escape_html
from pytest_agentproc.vocabulary import RULES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


_VERDICTS_SHOWN_AS_GOOD = frozenset({"passed", "not applicable"})
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
        file: its page, beside the index; "" if none was kept.
    """

    name: str
    claim: str
    covers: tuple[str, ...]
    way: tuple[str, ...]
    verdict: str
    file: str = ""


def render_index(entries: Iterable[IndexEntry]) -> str:
    """Write the list of all pages as an HTML page; the order of the entries does not count.

    Args:
        entries: what was played; a scenario that covers two rules stands below both.
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
        f"{_render_verdict_counts(played)}"
        f'</header>\n<main class="list"><table class="index" id="all" tabindex="-1"><thead><tr>'
        f'<th scope="col">scenario</th>{heads}</tr></thead>\n<tbody>\n{body}\n</tbody></table></main>',
    )


def _render_verdict_counts(played: Sequence[IndexEntry]) -> str:
    """Say how often there was each verdict: what is red first."""
    verdicts = sorted(
        {entry.verdict for entry in played}, key=lambda verdict: (verdict in _VERDICTS_SHOWN_AS_GOOD, verdict)
    )
    counts = [
        (f' class="{_get_css_class(verdict)}"', sum(entry.verdict == verdict for entry in played), verdict)
        for verdict in verdicts
    ]
    counts.append(("", len({(entry.name, entry.claim) for entry in played}), "scenarios"))
    items = "".join(f"<li{kind}><b>{count}</b>{escape_html(what)}</li>" for kind, count, what in counts)
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
    verdict = f'<span class="{_get_css_class(entry.verdict)}">{escape_html(entry.verdict)}</span>'
    return f'<a href="{escape_html(entry.file)}">{verdict}</a>' if entry.file else verdict


def _get_css_class(verdict: str) -> str:
    return "good" if verdict in _VERDICTS_SHOWN_AS_GOOD else "bad"
