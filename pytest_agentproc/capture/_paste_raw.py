"""Owns the draft of a log without a dialect: what it printed, line by line. Knows no event."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_agentproc.capture._meaning import Told
from pytest_agentproc.capture._paste_draft import Content, Line

if TYPE_CHECKING:
    from pytest_agentproc.capture._paste import Pasted

__all__ = ["raw_content"]


def raw_content(things: list[Pasted]) -> Content:
    """Take what stands in blocks of code for output; where there is no block, every line."""
    fenced = [thing for thing in things if thing.is_fenced]
    printed = fenced or things
    lines = [Line(Told("raw", thing.text + "\n")) for thing in printed]
    return Content("text", lines=lines, read=len(printed))
