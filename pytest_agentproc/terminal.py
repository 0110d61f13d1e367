"""What a terminal shows beside words: colours, and a line that takes the place of the one before. Loads nothing.

The rules of the colours are those of many programs: NO_COLOR (no-color.org) and FORCE_COLOR (force-color.org) decide,
the first before the second. Without them there are colours on a terminal that is not `dumb`.
"""

from __future__ import annotations

import os
import re
import shutil
import textwrap
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self, TextIO

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


_NARROWEST_COLUMN = 30


def format_columns(rows: Sequence[tuple[str, ...]], stream: TextIO, indent: str = "") -> list[str]:
    """Write rows below each other; on a terminal the last column is folded, and stands below the others if need be.

    Args:
        rows: the cells of each row, as many in each.
        stream: where the lines are written. In a file each row is one line, for programs that read lines.
        indent: stands before each line.
    """
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)][:-1]
    heads = [indent + "".join(f"{cell:{width}}  " for cell, width in zip(row, widths, strict=False)) for row in rows]
    if not is_terminal(stream):
        return [head + row[-1] for head, row in zip(heads, rows, strict=True)]
    columns = shutil.get_terminal_size().columns - 1
    room = columns - sum(widths) - 2 * len(widths) - len(indent)
    lines: list[str] = []
    for head, row in zip(heads, rows, strict=True):
        if room >= _NARROWEST_COLUMN:
            first, below = head, " " * len(head)
        else:
            lines += textwrap.wrap(head, columns, subsequent_indent=f"{indent}  ")
            first = below = f"{indent}    "
        lines += textwrap.wrap(row[-1], columns, initial_indent=first, subsequent_indent=below)
    return lines


_SECONDS_BEFORE_PROGRESS, _SECONDS_BETWEEN_LINES = 2.0, 1.0


class ProgressLine:
    """One line on a terminal that says how far a long command is, and is gone when the command is over.

    Args:
        stream: where it is shown; nothing is, if that is none, or no terminal.
        clock: gives real seconds. For the first two seconds nothing is shown, then at most one line a second.
    """

    def __init__(self, stream: TextIO | None, clock: Callable[[], float]) -> None:
        self._stream = stream if stream is not None and is_terminal(stream) else None
        self._clock = clock
        self._begun = clock()
        self._due = self._begun + _SECONDS_BEFORE_PROGRESS
        self._is_shown = False

    def __enter__(self) -> Self:
        """Begin a block, after which the line is empty."""
        return self

    def __exit__(self, *_exception: object) -> None:
        """Make the line empty."""
        self.erase()

    def show(self, words: str) -> None:
        """Show words and the seconds since the beginning in place of the line before, if it is time."""
        now = self._clock()
        if self._stream is None or now < self._due:
            return
        self._due = now + _SECONDS_BETWEEN_LINES
        self._is_shown = True
        width = shutil.get_terminal_size().columns - 1
        self._write(f"{ERASE_LINE}{f'{words} in {now - self._begun:.0f} s'[:width]}")

    def erase(self) -> None:
        """Make the line empty, so that a result can stand there."""
        if self._is_shown:
            self._is_shown = False
            self._write(ERASE_LINE)

    def _write(self, text: str) -> None:
        assert self._stream is not None, "only a line on a terminal is written"
        with suppress(OSError):  # the terminal has gone; the results have not
            self._stream.write(text)
            self._stream.flush()


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
