"""The reference: every word of scenarios and verdicts with its text and an example. Checks and runs nothing.

`list_entries` makes it from the tables that check, judge and supervise. `agentproc explain` prints an entry with
`format_for_terminal`, and the pages of the documentation write it with `format_as_markdown`: so both say the same.
"""

from __future__ import annotations

from pytest_agentproc.reference._bundled_scenarios import BundledScenario, read_bundled_scenarios
from pytest_agentproc.reference._dangers import DANGERS, Danger, find_reason, find_trials, list_agents
from pytest_agentproc.reference._entries import Example, ReferenceEntry, find_entries, find_meanings, list_entries
from pytest_agentproc.reference._entry_text import (
    find_page,
    format_as_markdown,
    format_for_terminal,
    make_heading_anchor,
)

__all__ = [
    "DANGERS",
    "BundledScenario",
    "Danger",
    "Example",
    "ReferenceEntry",
    "find_entries",
    "find_meanings",
    "find_page",
    "find_reason",
    "find_trials",
    "format_as_markdown",
    "format_for_terminal",
    "list_agents",
    "list_entries",
    "make_heading_anchor",
    "read_bundled_scenarios",
]
