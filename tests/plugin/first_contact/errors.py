"""The words of a failed inner run: the text of its exception, line by line. Knows no test."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

__all__ = ["list_error_lines"]

_INDENT = "E       "


def list_error_lines(result: pytest.RunResult) -> list[str]:
    """List the lines that pytest marks with an E, without the indent that they share."""
    return [line.removeprefix(_INDENT).rstrip() for line in result.stdout.lines if line.startswith("E ")]
