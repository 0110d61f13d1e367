"""The reference: every word of scenarios and verdicts with its text and an example. Checks and runs nothing.

`entries` makes it from the tables that check, judge and supervise. `agentproc explain` prints an entry with `shown`,
and the pages of the documentation write it with `written`: so both say the same.
"""

from __future__ import annotations

from pytest_agentproc.reference._bundled import Bundled, bundled
from pytest_agentproc.reference._entries import Entry, Example, entries, find
from pytest_agentproc.reference._written import anchor, page_of, shown, written

__all__ = ["Bundled", "Entry", "Example", "anchor", "bundled", "entries", "find", "page_of", "shown", "written"]
