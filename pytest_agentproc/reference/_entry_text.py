"""Owns how an entry of the reference looks: plain text for a terminal, Markdown for a page. Knows no entry."""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_agentproc.reference._entries import ReferenceEntry


_PAGE_BY_ENTRY_KIND = {
    "outcome": "outcomes",
    "verdict": "verdicts",
    "level": "levels",
    "limit": "limits",
    "step": "steps",
    "expect key": "expect",
    "drive item": "drive",
    "file key": "scenarios",
    "signal": "signals",
    "defect": "defects",
    "bug family": "bug-families",
}


def find_page(entry: ReferenceEntry) -> str:
    """Name the page of an entry, below the folder of the reference and without its ending."""
    return f"rules/{entry.name}" if entry.kind == "rule" else _PAGE_BY_ENTRY_KIND[entry.kind]


def make_heading_anchor(name: str) -> str:
    """Give the anchor of a heading, as GitHub and MyST make it."""
    return re.sub(r"[^\w\- ]", "", name.lower()).replace(" ", "-")


def format_for_terminal(entry: ReferenceEntry, width: int) -> str:
    """Write an entry for a terminal."""
    lines = [f"{entry.name} ({entry.kind})", *textwrap.wrap(entry.says, width), ""]
    for title, text in entry.facts:
        lines += textwrap.wrap(f"{title}: {text}", width, subsequent_indent="  ", break_on_hyphens=False)
    lines += [""] if entry.facts else []
    if entry.example.text:
        lines += [f"example{f' ({entry.example.file})' if entry.example.file else ''}:"]
        lines += textwrap.indent(entry.example.text.rstrip(), "  ").splitlines()
    lines += [f"  $ {command}" for command in entry.example.commands]
    return "\n".join(lines).rstrip() + "\n"


def format_as_markdown(entry: ReferenceEntry, heading: str = "##") -> str:
    """Write an entry for a page: its heading is its anchor."""
    parts = [f"{heading} {entry.name}", entry.says]
    up = "../" * find_page(entry).count("/")
    parts += (
        ["\n".join(f"- **{title}:** {_format_fact(title, text, up)}" for title, text in entry.facts)]
        if entry.facts
        else []
    )
    if entry.example.text:
        name = f"# {entry.example.file}\n" if entry.example.file else ""
        parts += [f"```{entry.example.language}\n{name}{entry.example.text.rstrip()}\n```"]
    if entry.example.commands:
        parts += ["```sh\n" + "\n".join(entry.example.commands) + "\n```"]
    return "\n\n".join(parts) + "\n"


_LINK_TEMPLATE_BY_FACT_TITLE = {
    "Rule": "rules/{}.md",
    "Rules": "rules/{}.md",
    "Limit": "limits.md#{}",
    "Bug families": "bug-families.md#{}",
    "Defects that break it": "defects.md#{}",
}
"""Facts that name other entries, each with the place of one."""


def _format_fact(title: str, text: str, up: str) -> str:
    """Write a fact; the names in it lead to their pages, and an address leads there."""
    if text.startswith("https://"):
        return f"<{text}>"
    if title not in _LINK_TEMPLATE_BY_FACT_TITLE:
        return _escape_markdown(text)
    names, colon, rest = text.partition(":")
    place = up + _LINK_TEMPLATE_BY_FACT_TITLE[title]
    links = (
        f"[{name}]({place.format(make_heading_anchor(name) if '#' in place else name)})" for name in names.split(", ")
    )
    return ", ".join(links) + colon + _escape_markdown(rest)


def _escape_markdown(text: str) -> str:
    """Keep what Markdown would take for its own; text between backquotes stays as it is."""
    return re.sub(r"(`[^`]*`)|([*<>\[\]])", lambda found: found[1] or f"\\{found[2]}", text)
