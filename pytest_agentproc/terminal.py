"""What a terminal shows beside words: colours, and a line that takes the place of the one before. Loads nothing.

The rules of the colours are those of many programs: NO_COLOR (no-color.org) and FORCE_COLOR (force-color.org) decide,
the first before the second. Without them there are colours on a terminal that is not `dumb`.
"""

from __future__ import annotations

import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

PROGRESS_DESCRIPTOR_VARIABLE = "AGENTPROC_PROGRESS_DESCRIPTOR"
"""The environment variable by which `agentproc conform` names its terminal to the pytest that it runs."""

ERASE_LINE = "\r\x1b[K"
"""What makes the current line of a terminal empty."""

_GREEN, _RED, _YELLOW = 32, 31, 33
_COLOURS_BY_VERDICT = {
    "kit error": _YELLOW,
    "adapter error": _YELLOW,
    "crashed": _RED,
    "failed": _RED,
    "undecided": _YELLOW,
    "known": _YELLOW,
    "passed": _GREEN,
    "is conformant": _GREEN,
    "is not conformant": _RED,
}
_VERDICT_PATTERN = re.compile(
    r"^(?P<before>  (?:\w[\w. -]*?: )?|agentproc: .*? (?=is )|)"
    rf"(?P<verdict>{'|'.join(_COLOURS_BY_VERDICT)})(?=$|[:,;]|  | \()",
    re.MULTILINE,
)


def has_colours(stream: TextIO) -> bool:
    """Say whether what is written to a stream is shown with colours."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return os.environ.get("TERM") != "dumb" and is_terminal(stream)


def is_terminal(stream: TextIO) -> bool:
    """Say whether a stream is a terminal; what stands in its place may be closed, or no file at all."""
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):
        return False


def paint_verdicts(text: str, stream: TextIO) -> str:
    """Colour each verdict with which a line begins, alone or after the name of its check or supervisor.

    Args:
        text: lines of a report or of a summary.
        stream: where they are written.
    """
    if not has_colours(stream):
        return text
    return _VERDICT_PATTERN.sub(
        lambda found: f"{found['before']}\x1b[{_COLOURS_BY_VERDICT[found['verdict']]}m{found['verdict']}\x1b[0m", text
    )
