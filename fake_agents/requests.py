"""Reads a request: one line of JSON. Owns the reading; knows no dialect.

The C scanner alone, since the `json` package loads `re`; only a line that it cannot read costs that.
"""

from __future__ import annotations

import _json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _JsonScannerOptions:
    """The interface of the scanner's maker."""

    strict = False
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float


_scan_json = _json.make_scanner(_JsonScannerOptions())  # type: ignore[arg-type]  # it takes whatever has these names


def parse_json_object(request: bytes) -> dict[str, Any] | None:
    """Give the object that a line holds; None: it holds none."""
    text = request.decode("utf-8", "replace").strip("\ufeff \t\r\n")
    try:
        found, end = _scan_json(text, 0)
    except (StopIteration, ValueError, RecursionError, SystemError):  # CPython 3.11 raises the last one for bad JSON
        return None
    return found if isinstance(found, dict) and end == len(text) else None


def join_prompt_text(content: Any) -> str:
    """Give the text of a prompt: a string, or blocks of which some have text."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    return "".join(str(block["text"]) for block in blocks if isinstance(block, dict) and "text" in block)
